package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"
	"go.yaml.in/yaml/v3"

	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/internal/run"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/vaa"
)

// setting is one value that can be set in a file, the environment and, unless it
// is secret, by a flag. Its name is the same everywhere: data-dir is --data-dir
// and ATTESTRY_DATA_DIR.
type setting struct {
	name, fallback, usage string
	env                   string // ATTESTRY_<NAME> when empty
	command               string // the only command that has the flag; "" is every one
	secret                bool   // only in the environment, never shown
}

func (s setting) envName() string {
	return cmp.Or(s.env, "ATTESTRY_"+strings.ToUpper(strings.ReplaceAll(s.name, "-", "_")))
}

func settings() []setting {
	return []setting{
		{name: "network", fallback: "mainnet", usage: "network: mainnet, testnet or devnet"},
		{name: "data-dir", fallback: "./data", usage: "directory of the serve that keeps or knows the data"},
		{name: "bigtable-emulator-host", env: "BIGTABLE_EMULATOR_HOST", usage: "Bigtable server without credentials, host:port; wins over --project"},
		{name: "project", usage: "Google Cloud project of the store"},
		{name: "instance", usage: "Bigtable instance of the store"},
		{name: "app-profile", usage: "Bigtable app profile, with single-cluster routing and single-row transactions"},
		{name: "redis-url", usage: "Redis of the stream: redis://host:port/db, rediss:// for TLS; a password only in ATTESTRY_REDIS_URL"},
		{name: "redis-password", secret: true},
		{name: "redis-password-file", usage: "file that holds the password of the Redis"},
		{name: "http", fallback: "127.0.0.1:7070", command: "serve", usage: "address of the query service; without it PORT is honoured, on all interfaces"},
		{name: "rate-limit", fallback: "0", command: "serve", usage: "requests a minute that an address may make, 0 for any number; one process counts for itself"},
		{name: "trusted-proxies", fallback: "0", command: "serve", usage: "addresses at the end of X-Forwarded-For that come from proxies of ours; 2 behind a Google load balancer"},
		{name: "api-keys-file", command: "serve", usage: "file of API keys: lines of a name, the SHA-256 of the key in hex and, unless it is good for any number, its requests a minute"},
		{name: "cors-origins", fallback: "*", command: "serve", usage: "origins whose pages may read answers, parted by commas; * for any"},
		{name: "guardian-api", fallback: guardianLenient, command: "serve", usage: "lenient answers for chains that guardians gave up, for PythNet and for emitters in any spelling; strict refuses what guardians refuse"},
		{name: "log-level", usage: "least level of logs: debug, info, warn or error (default info for serve, warn elsewhere)"},
		{name: "log-format", fallback: logAuto, usage: "form of logs: json, console, or auto by whether standard error is a terminal"},
	}
}

// The values of --guardian-api.
const (
	guardianLenient = "lenient"
	guardianStrict  = "strict"
)

// registerFlags gives a command the flags of those settings that belong to one, or
// only those named.
func registerFlags(cmd *cobra.Command, command string, names ...string) {
	flags := cmd.PersistentFlags()
	for _, s := range settings() {
		if !s.secret && s.command == command && (names == nil || slices.Contains(names, s.name)) {
			flags.String(s.name, s.fallback, s.usage+" ["+s.envName()+"]")
		}
	}
}

// value is the text of a setting and where it comes from.
type value struct{ text, origin string }

const originDefault = "default"

func (v value) set() bool { return v.origin != originDefault }

// config is the program's configuration.
type config struct {
	run.Config
	http         string
	limits       web.Limits
	strict       bool           // of the guardians' interface
	logLevel     *zapcore.Level // nil: the command's own
	logFormat    string
	traceProject string // of the traces that the log names; "" when it is not known

	values map[string]value
}

// problem is something wrong with the configuration.
type problem struct {
	text   string
	secret bool // a secret is where others can read it
}

// configError is everything that is wrong with the configuration.
type configError struct{ problems []problem }

func (e *configError) Error() string {
	if len(e.problems) == 1 {
		return "configuration: " + e.problems[0].text
	}
	text := fmt.Sprintf("configuration has %d problems:", len(e.problems))
	for _, p := range e.problems {
		text += "\n  " + p.text
	}
	return text
}

// config reads the configuration of a command. The error names all problems at
// once.
func (a *app) config(cmd *cobra.Command) (*config, error) {
	r := &configReader{app: a, values: map[string]value{}}
	r.layer(cmd)
	c := r.check()
	if len(r.problems) > 0 {
		return c, &configError{r.problems}
	}
	return c, nil
}

type configReader struct {
	*app
	values   map[string]value
	problems []problem
}

func (r *configReader) problem(format string, args ...any) {
	r.problems = append(r.problems, problem{text: fmt.Sprintf(format, args...)})
}

func (r *configReader) leak(format string, args ...any) {
	r.problems = append(r.problems, problem{text: fmt.Sprintf(format, args...), secret: true})
}

// layer puts defaults, file, environment and flags on each other.
func (r *configReader) layer(cmd *cobra.Command) {
	for _, s := range settings() {
		r.values[s.name] = value{s.fallback, originDefault}
	}
	if port := r.getenv("PORT"); port != "" {
		r.values["http"] = value{net.JoinHostPort("0.0.0.0", port), "PORT"}
	}
	name := r.getenv("ATTESTRY_CONFIG")
	if f := cmd.Flags().Lookup("config"); f != nil && f.Changed {
		name = f.Value.String()
	}
	if name != "" {
		r.file(name)
	}
	for _, s := range settings() {
		if text := r.getenv(s.envName()); text != "" {
			r.values[s.name] = value{text, s.envName()}
		}
		if f := cmd.Flags().Lookup(s.name); f != nil && f.Changed {
			r.values[s.name] = value{f.Value.String(), "--" + s.name}
		}
	}
}

// file reads a flat YAML mapping of setting names to values.
func (r *configReader) file(name string) {
	f, err := os.Open(name)
	if err != nil {
		r.problem("open the file of --config: %v", err)
		return
	}
	defer f.Close() //nolint:errcheck // nothing was written
	var nodes map[string]yaml.Node
	decoder := yaml.NewDecoder(f)
	if err := decoder.Decode(&nodes); err != nil && !errors.Is(err, io.EOF) {
		r.problem("%s: want lines of `name: value`: %v", name, err)
		return
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		r.problem("%s: want one YAML document", name)
	}
	keys := make([]string, 0, len(nodes))
	for key := range nodes {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(nodes[a].Line, nodes[b].Line) })
	for _, key := range keys {
		r.fileValue(name, key, nodes[key])
	}
}

func (r *configReader) fileValue(file, key string, node yaml.Node) {
	origin := fmt.Sprintf("%s line %d", file, node.Line)
	all := settings()
	i := slices.IndexFunc(all, func(s setting) bool { return s.name == key })
	switch {
	case i < 0:
		r.problem("%s: key %q is unknown: use one of %s", origin, key, strings.Join(fileKeys(), ", "))
	case node.Kind != yaml.ScalarNode || node.Tag == "!!null":
		r.problem("%s: %s needs a single value", origin, key)
	case all[i].secret:
		r.leak("%s: %s is a secret, and a file of settings is no place for it: set %s, or %s-file to a file that holds it alone",
			origin, key, all[i].envName(), key)
	default:
		r.values[key] = value{node.Value, origin}
	}
}

func fileKeys() []string {
	var keys []string
	for _, s := range settings() {
		if !s.secret {
			keys = append(keys, s.name)
		}
	}
	return keys
}

// check reads the values and notes what is wrong with them.
func (r *configReader) check() *config {
	c := &config{values: r.values, http: r.values["http"].text, logFormat: r.values["log-format"].text}
	c.DataDir = r.values["data-dir"].text
	c.EmulatorHost = r.values["bigtable-emulator-host"].text
	c.Project, c.Instance, c.AppProfile = r.values["project"].text, r.values["instance"].text, r.values["app-profile"].text
	c.traceProject = cmp.Or(c.Project, r.getenv("GOOGLE_CLOUD_PROJECT"))
	var err error
	if c.Network, err = vaa.ParseNetwork(r.values["network"].text); err != nil {
		r.invalid("network", err.Error())
	}
	if c.DataDir == "" {
		r.invalid("data-dir", "is empty: name a directory")
	}
	if (c.Project == "") != (c.Instance == "") {
		r.problem("project is %q and instance is %q: give both for Cloud Bigtable, or neither", c.Project, c.Instance)
	}
	if c.AppProfile != "" && c.Project == "" {
		r.invalid("app-profile", "needs project and instance")
	}
	if c.EmulatorHost != "" {
		r.hostPort("bigtable-emulator-host", c.EmulatorHost)
	}
	r.hostPort("http", c.http)
	if level := r.values["log-level"].text; level != "" {
		parsed, err := zapcore.ParseLevel(level)
		if err != nil || parsed > zapcore.ErrorLevel {
			r.invalid("log-level", fmt.Sprintf("%q is unknown: write debug, info, warn or error", level))
		}
		c.logLevel = &parsed
	}
	if !slices.Contains([]string{logAuto, logConsole, logJSON}, c.logFormat) {
		r.invalid("log-format", fmt.Sprintf("%q is unknown: write json, console or auto", c.logFormat))
	}
	switch text := r.values["guardian-api"].text; text {
	case guardianLenient:
	case guardianStrict:
		c.strict = true
	default:
		r.invalid("guardian-api", fmt.Sprintf("%q is unknown: write lenient or strict", text))
	}
	r.redis(c)
	r.limits(&c.limits)
	return c
}

func (r *configReader) limits(l *web.Limits) {
	l.PerMinute = r.count("rate-limit", web.MaxPerMinute)
	l.TrustedProxies = r.count("trusted-proxies", web.MaxTrustedProxies)
	var err error
	if l.Origins, err = web.ParseOrigins(r.values["cors-origins"].text); err != nil {
		r.invalid("cors-origins", err.Error())
	}
	name := r.values["api-keys-file"].text
	if name == "" {
		return
	}
	f, err := os.Open(name)
	if err != nil {
		r.invalid("api-keys-file", err.Error())
		return
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if l.Keys, err = web.ParseKeys(f); err != nil {
		r.invalid("api-keys-file", fmt.Sprintf("%s: %v", name, err))
	}
}

// count reads a setting that is a number from 0 to most.
func (r *configReader) count(name string, most int) int {
	text := r.values[name].text
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		r.invalid(name, fmt.Sprintf("%q is not a number from 0 to %d", text, most))
	}
	return n
}

// invalid notes what is wrong with the value of a setting, and where that is.
func (r *configReader) invalid(name, what string) {
	r.problem("%s: %s (from %s)", name, what, r.values[name].origin)
}

func (r *configReader) hostPort(name, text string) {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		r.invalid(name, fmt.Sprintf("%q is no address: write host:port, as 127.0.0.1:7070", text))
	}
}

func (r *configReader) redis(c *config) {
	url, password, file := r.values["redis-url"], r.values["redis-password"], r.values["redis-password-file"]
	c.RedisURL, c.RedisPassword = url.text, password.text
	if url.text == "" {
		for _, v := range []value{password, file} {
			if v.set() {
				r.problem("a password of the Redis is given (%s) and no redis-url: say which Redis it is of", v.origin)
			}
		}
		return
	}
	options, err := feed.Options(url.text)
	switch {
	case err != nil:
		r.invalid("redis-url", err.Error())
	case options.Password != "" && url.origin != "ATTESTRY_REDIS_URL":
		r.leak("redis-url: holds a password where others can read it (%s): set ATTESTRY_REDIS_URL or ATTESTRY_REDIS_PASSWORD, or name a file by redis-password-file", url.origin)
	}
	switch {
	case password.set() && file.set():
		r.problem("the password of the Redis is given twice, by %s and %s: give it once", password.origin, file.origin)
	case file.set():
		secret, err := os.ReadFile(file.text)
		if err != nil {
			r.invalid("redis-password-file", err.Error())
		}
		c.RedisPassword = strings.TrimRight(string(secret), "\r\n")
	}
}

// shown returns the text of a setting as it may be printed.
func (c *config) shown(s setting) string {
	text := c.values[s.name].text
	switch {
	case s.secret && text != "":
		return "(secret)"
	case s.name == "redis-url":
		return redacted(text)
	}
	return text
}

// redacted hides the user and password of a URL, whatever else is in it.
func redacted(url string) string {
	at := strings.LastIndex(url, "@")
	if at < 0 {
		return url
	}
	if scheme, _, ok := strings.Cut(url, "://"); ok && strings.Trim(scheme, "redis") == "" {
		return scheme + "://(secret)" + url[at:]
	}
	return "(secret)" + url[at:]
}

func (a *app) configCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show or check the configuration",
		Long: `Settings are, each over the one before: defaults, the YAML file that --config
or ATTESTRY_CONFIG names, the environment, flags. The file has one line
"name: value" for each setting, named as the flags are.`,
		Example: "  attestry config print --config attestry.yaml",
	}
	return group(cmd, a.configPrintCmd(), a.configValidateCmd())
}

// shownSetting is one setting as config print shows it.
type shownSetting struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"` // nil when not set
	Origin string  `json:"origin"`
}

func (a *app) configPrintCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Show every setting and where it comes from; secrets are not shown",
		Example: `  attestry config print
  ATTESTRY_NETWORK=testnet attestry config print -o json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			var shown []shownSetting
			for _, s := range settings() {
				line := shownSetting{Name: s.name, Origin: c.values[s.name].origin}
				if text := c.shown(s); text != "" {
					line.Value = &text
				}
				shown = append(shown, line)
			}
			if out.of(cmd) == formatJSON {
				return errors.Join(writeJSON(cmd.OutOrStdout(), shown), err)
			}
			for _, s := range shown {
				fmt.Fprintf(cmd.OutOrStdout(), "%-22s  %-24s  %s\n", s.Name, cell(text(s.Value)), harmless(s.Origin))
			}
			return err
		},
	}
	out.register(cmd)
	return cmd
}

func (a *app) configValidateCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration: exit 0 if it is good, 1 if not, 2 if a secret is where others can read it",
		Example: `  attestry config validate --config attestry.yaml
  attestry config validate --config attestry.yaml --network testnet`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := a.config(cmd)
			if e, ok := errors.AsType[*configError](err); ok {
				code := exitFailed
				if slices.ContainsFunc(e.problems, func(p problem) bool { return p.secret }) {
					code = exitUsage
				}
				return &codeError{code, err}
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the configuration is good")
			return nil
		},
	}
}
