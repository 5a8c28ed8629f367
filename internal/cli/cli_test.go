package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newApp returns the program in an environment of its own, and what it writes.
func newApp(env map[string]string) (a *app, stdout, stderr *bytes.Buffer) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return &app{
		name: "attestry", stdin: strings.NewReader(""), stdout: stdout, stderr: stderr,
		getenv: func(name string) string { return env[name] },
	}, stdout, stderr
}

// walk calls f with every command of the tree.
func walk(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		walk(c, f)
	}
}

// TestHelp finds a summary and an example in the help of every command, and the
// example's own flags among the command's.
func TestHelp(t *testing.T) {
	a, _, _ := newApp(nil)
	walk(a.root(), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		t.Run(path, func(t *testing.T) {
			a, stdout, stderr := newApp(nil)
			if code := a.execute(t.Context(), append(strings.Fields(path)[1:], "--help")); code != exitDone {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			for _, want := range []string{"Usage:", "Examples:", "attestry"} {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("help has no %q:\n%s", want, stdout)
				}
			}
			if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
				t.Errorf("summary is %q", cmd.Short)
			}
			if !strings.Contains(cmd.Example, path) {
				t.Errorf("the example does not call %s:\n%s", path, cmd.Example)
			}
			checkExample(t, cmd)
		})
	})
}

// checkExample looks up each flag of the example's lines.
func checkExample(t *testing.T, cmd *cobra.Command) {
	for line := range strings.Lines(cmd.Example) {
		_, call, _ := strings.Cut(line, "attestry ")
		words := strings.Fields(call)
		target, rest, err := cmd.Root().Find(words)
		if err != nil {
			t.Errorf("example %q: %v", line, err)
			continue
		}
		for _, word := range rest {
			name, isFlag := strings.CutPrefix(word, "--")
			if isFlag && target.Flag(name) == nil && target.Root().PersistentFlags().Lookup(name) == nil {
				t.Errorf("example %q: %s has no flag --%s", line, target.CommandPath(), name)
			}
		}
	}
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{errors.New("x"), exitFailed},
		{misused("x"), exitUsage},
		{fmt.Errorf("a: %w", misused("x")), exitUsage},
		{&configError{[]problem{{text: "x"}}}, exitUsage},
		{&codeError{exitFailed, &configError{[]problem{{text: "x"}}}}, exitFailed},
		{fmt.Errorf("a: %w", archive.ErrNotFound), exitNotFound},
		{query.Invalid("id", "x"), exitRefused},
		{refused(errors.New("x")), exitRefused},
		{errors.Join(errors.New("close"), refused(errors.New("x"))), exitRefused},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("exit code of %v is %d, want %d", c.err, got, c.want)
		}
	}
}

func TestCell(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "-"},
		{"-", "-"},
		{"Wrapped Ether", "Wrapped Ether"},
		{"Ünïcode 漢字 🜚", "Ünïcode 漢字 🜚"},
		{"a\x1b[2Jb", `a\u{1b}[2Jb`},
		{"a\u009b2Jb", `a\u{9b}2Jb`},
		{"a\r\n\tb\x00\x7f", `a\u{d}\u{a}\u{9}b\u{0}\u{7f}`},
		{"USD\u202eCDSU", `USD\u{202e}CDSU`},
		{"a\u2066b\u2069\u200e\u061c", `a\u{2066}b\u{2069}\u{200e}\u{61c}`},
		{"US\u200bDC\ufeff", `US\u{200b}DC\u{feff}`},
		{"line\u2028break", `line\u{2028}break`},
		{"bad\xffbytes", `bad\xffbytes`},
		{"true \ufffd", "true \ufffd"},
		{"=HYPERLINK(1)", "'=HYPERLINK(1)"},
		{"+1", "'+1"},
		{"-1", "'-1"},
		{"@SUM(A1)", "'@SUM(A1)"},
		{"\t=1", `\u{9}=1`},
	} {
		if got := cell(c.text); got != c.want {
			t.Errorf("cell(%q) is %q, want %q", c.text, got, c.want)
		}
	}
}

// TestHarmless shows that nothing gets through that a terminal might obey, and
// that JSON means the same as before.
func TestHarmless(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		for _, r := range cell(s) {
			if !unicode.IsPrint(r) {
				t.Fatalf("cell(%q) has %U", s, r)
			}
		}
		if first := cell(s)[0]; s != "" && s != "-" && strings.IndexByte("=+-@\t\r", first) >= 0 {
			t.Fatalf("cell(%q) begins with %q", s, first)
		}
		var b bytes.Buffer
		if err := writeJSON(&b, s); err != nil {
			t.Fatal(err)
		}
		line := strings.TrimSuffix(b.String(), "\n")
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Fatalf("the JSON of %q has %U", s, r)
			}
		}
		var got string
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if got != s {
			t.Fatalf("%q is %q after its JSON", s, got)
		}
	})
}

func TestRedacted(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"", ""},
		{"localhost:6379", "localhost:6379"},
		{"redis://localhost:6379/1", "redis://localhost:6379/1"},
		{"redis://:pw@localhost", "redis://(secret)@localhost"},
		{"rediss://user:p@ss@host:1/2", "rediss://(secret)@host:1/2"},
		{"user:pw@host", "(secret)@host"},
		{":pw://x@host", "(secret)@host"},
	} {
		if got := redacted(c.url); got != c.want {
			t.Errorf("redacted(%q) is %q, want %q", c.url, got, c.want)
		}
	}
}

// TestSettings holds the table of settings together: names are unique, in the form
// of flags, and each that is no secret is a flag of the commands that have it.
func TestSettings(t *testing.T) {
	a, _, _ := newApp(nil)
	root := a.root()
	var names, envs []string
	for _, s := range settings() {
		names, envs = append(names, s.name), append(envs, s.envName())
		cmd := root
		if s.command != "" {
			var err error
			if cmd, _, err = root.Find([]string{s.command}); err != nil {
				t.Fatal(err)
			}
		}
		if flag := cmd.PersistentFlags().Lookup(s.name); (flag == nil) != s.secret {
			t.Errorf("%s: secret %t, flag %v", s.name, s.secret, flag)
		}
		if strings.Trim(s.name, "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("%s: not in the form of a flag", s.name)
		}
	}
	for _, list := range [][]string{names, envs} {
		if unique := slices.Compact(slices.Sorted(slices.Values(list))); len(unique) != len(list) {
			t.Errorf("names repeat: %s", cmp.Diff(slices.Sorted(slices.Values(list)), unique))
		}
	}
}

// TestNoSecretInOutput gives the program a password in every way it takes one, and
// looks for it in all that it says.
func TestNoSecretInOutput(t *testing.T) {
	const secret = "hunter2"
	for _, env := range []map[string]string{
		{"ATTESTRY_REDIS_URL": "redis://:" + secret + "@127.0.0.1:1"},
		{"ATTESTRY_REDIS_URL": "redis://:" + secret + "@127.0.0.1:1/x"},
		{"ATTESTRY_REDIS_URL": "redis://:" + secret + "@127.0.0.1:1?no=such"},
		{"ATTESTRY_REDIS_URL": "nonsense:" + secret + "@127.0.0.1"},
		{"ATTESTRY_REDIS_URL": "127.0.0.1:1", "ATTESTRY_REDIS_PASSWORD": secret},
		{"ATTESTRY_REDIS_PASSWORD": secret},
	} {
		for _, args := range [][]string{
			{"config", "print", "-o", "table"},
			{"config", "print", "-o", "json"},
			{"config", "validate"},
			{"version"},
			{"tail", "--data-dir", t.TempDir()},
			{"serve", "--data-dir", t.TempDir(), "--http", "x"},
		} {
			a, stdout, stderr := newApp(env)
			a.execute(t.Context(), args)
			if said := stdout.String() + stderr.String(); strings.Contains(said, secret) {
				t.Errorf("%v %v says the password:\n%s", env, args, said)
			}
		}
	}
}

// TestLogIsCloudLogging reads what the logger writes as Cloud Logging does.
func TestLogIsCloudLogging(t *testing.T) {
	a, _, stderr := newApp(nil)
	log := a.logger(&config{logFormat: logJSON}, zap.DebugLevel)
	log.Debug("a")
	log.Info("a")
	log.Warn("a")
	log.Error("a", zap.Error(errors.New("b")))
	log.DPanic("a")
	var got []string
	for line := range strings.Lines(stderr.String()) {
		var entry struct {
			Severity, Message string
			Time              time.Time
			Error             string
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if entry.Time.IsZero() {
			t.Errorf("%q has no time", line)
		}
		got = append(got, entry.Severity+" "+entry.Message+entry.Error)
	}
	if diff := cmp.Diff([]string{"DEBUG a", "INFO a", "WARNING a", "ERROR ab", "CRITICAL a"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestFailureIsLogged tells why a command failed in the form of the logs, where one
// is asked for, and else in words.
func TestFailureIsLogged(t *testing.T) {
	for format, want := range map[string]string{"json": `"severity":"ERROR"`, "": "attestry: no store is named"} {
		a, _, stderr := newApp(map[string]string{"ATTESTRY_LOG_FORMAT": format, "ATTESTRY_DATA_DIR": t.TempDir()})
		if code := a.execute(t.Context(), []string{"scan"}); code != exitFailed {
			t.Errorf("exit code %d", code)
		}
		if got := stderr.String(); !strings.Contains(got, want) || !strings.Contains(got, "no store is named") || strings.Count(got, "\n") != 1 {
			t.Errorf("log format %q: %s", format, got)
		}
	}
}

func TestTraceProject(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, ""},
		{map[string]string{"GOOGLE_CLOUD_PROJECT": "g"}, "g"},
		{map[string]string{"GOOGLE_CLOUD_PROJECT": "g", "ATTESTRY_PROJECT": "p", "ATTESTRY_INSTANCE": "i"}, "p"},
	} {
		a, _, _ := newApp(c.env)
		got, err := a.config(a.serveCmd())
		if err != nil || got.traceProject != c.want {
			t.Errorf("%v: traces are in %q, want %q, %v", c.env, got.traceProject, c.want, err)
		}
	}
}

// TestIngestStops ends an ingest whose standard input says nothing more, and leaves
// nothing half done: the second run finds what the first has stored.
func TestIngestStops(t *testing.T) {
	env := map[string]string{"ATTESTRY_DATA_DIR": t.TempDir()}
	data, err := os.ReadFile("../../testdata/vaas/vaas-mainnet.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	in, w := io.Pipe()
	defer w.Close()
	go func() {
		w.Write(data) //nolint:errcheck // the reader closes its end
		cancel()
	}()
	a, stdout, stderr := newApp(env)
	a.stdin = in
	if code := a.execute(ctx, []string{"ingest", "-", "-o", "json"}); code != exitFailed || !strings.Contains(stderr.String(), "interrupted") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	summary := func(text string) (outcomes struct{ Accepted, Duplicate int }) {
		if text == "" {
			return outcomes
		}
		if err := json.Unmarshal([]byte(text), &outcomes); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return outcomes
	}
	first := summary(stdout.String())
	a, stdout, stderr = newApp(env)
	a.stdin = bytes.NewReader(data)
	if code := a.execute(t.Context(), []string{"ingest", "-", "-o", "json"}); code != exitDone {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	if second := summary(stdout.String()); second.Accepted+second.Duplicate != 146 || second.Duplicate < first.Accepted {
		t.Errorf("%+v, then %+v of 146", first, second)
	}
	a, stdout, stderr = newApp(env)
	if code := a.execute(t.Context(), []string{"fsck", "-o", "json"}); code != exitDone {
		t.Errorf("fsck: exit code %d: %s%s", code, stdout, stderr)
	}
}
