package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/internal/run"
	"github.com/attestry/attestry/query"
)

func (a *app) serveCmd() *cobra.Command {
	var samples []string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the whole archive: store, stream, publisher and query service",
		Long: `Runs the archive in one process: the query service over HTTP, the publisher, and the
sweeper that finishes what a crash left. Without a store that is named
(BIGTABLE_EMULATOR_HOST, --project and --instance) or a Redis (--redis-url) it
embeds them and holds --data-dir; the other commands find them by it.

The embedded store keeps its data in the data directory. Several serves, and ingests
beside them, may work on a store that is named: one of them publishes.

Anybody may ask as often as they like, unless --rate-limit bounds the requests of an
address; the owner of a key in --api-keys-file, sent as X-Api-Key, has a limit of their
own. Behind proxies --trusted-proxies says whose word on addresses is taken. Every
process counts for itself.

HTTP, and gRPC for health checks (grpc.health.v1), share one port without TLS. On
SIGTERM requests in flight have 7 s to finish. With --log-format json entries are as
Cloud Logging reads them, with their trace if --project or GOOGLE_CLOUD_PROJECT names
the project.`,
		Example: `  attestry serve
  attestry serve --sample testdata/vaas/vaas-mainnet.ndjson --http 127.0.0.1:8080
  attestry serve --project my-project --instance attestry --redis-url redis://10.0.0.3:6379`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			inputs, err := a.openFiles(cmd.Context(), samples)
			if err != nil {
				return err
			}
			return run.Serve(cmd.Context(), run.ServeConfig{
				Config: c.Config, HTTP: c.http, Logger: a.logger(c, zap.InfoLevel), TraceProject: c.traceProject,
				Limits: c.limits, StrictGuardian: c.strict, Version: version,
				Ready: func(ctx context.Context, s *run.Server) error {
					return a.ready(ctx, cmd.OutOrStdout(), c, s, inputs)
				},
			})
		},
	}
	registerFlags(cmd, "serve")
	cmd.Flags().StringArrayVar(&samples, "sample", nil, "file of VAAs to take in after the start, as attestry ingest does; may be repeated")
	return cmd
}

// ready says where everything is, takes the samples in, and gives examples.
func (a *app) ready(ctx context.Context, w io.Writer, c *config, s *run.Server, inputs []input) error {
	url := "http://" + s.HTTP
	fmt.Fprintf(w, "attestry serves %s at %s\n", c.Network, url)
	fmt.Fprintf(w, "  messages  %s/v1/attestations?limit=10\n", url)
	fmt.Fprintf(w, "  state     %s/readyz  %s/health  %s/metrics\n", url, url, url)
	fmt.Fprintf(w, "  bigtable  %s\n", s.Bigtable)
	if s.Embedded {
		fmt.Fprintf(w, "            its data are in %s and stay there; every acknowledged write is on disk\n", harmless(s.StoreDir()))
	}
	if s.EmbeddedRedis {
		fmt.Fprintf(w, "  redis     %s, stream %s\n", *s.Redis, feed.Events(c.Network))
	}
	if len(inputs) == 0 {
		return nil
	}
	runner := s.Runner(archive.ClassHistory)
	var total ingest.Summary
	for _, in := range inputs {
		start := time.Now()
		summary, err := runner.Run(ctx, in)
		total.Add(summary)
		if err != nil {
			return fmt.Errorf("take the sample in: %w", err)
		}
		fmt.Fprintf(w, "sample %s: %s in %s\n", in.Name(), counts(summary), time.Since(start).Round(time.Millisecond))
	}
	page, err := scanPage(ctx, s.Query(), archive.Range{}, archive.Columns{}, query.Paging{Limit: 1})
	if err != nil {
		return fmt.Errorf("look at the samples: %w", err)
	}
	if len(page.Items) > 0 {
		a.examples(w, c, s, &page.Items[0])
	}
	return nil
}

// examples shows how a message is looked up.
func (a *app) examples(w io.Writer, c *config, s *run.Server, m *query.Attestation) {
	url := "http://" + s.HTTP
	program := a.name
	if dir := c.values["data-dir"]; dir.set() && dir.text != "./data" {
		program = strings.Join([]string{program, "--data-dir", dir.text}, " ")
	}
	if n := c.values["network"]; n.set() && c.Network.String() != "mainnet" {
		program += " --network " + c.Network.String()
	}
	fmt.Fprintf(w, "try\n")
	fmt.Fprintf(w, "  curl -s %s/v1/attestations/%s\n", url, m.ID)
	fmt.Fprintf(w, "  curl -s %s/v1/signed_vaa/%s\n", url, m.ID)
	fmt.Fprintf(w, "  %s get %s\n", program, text(m.Digest))
	fmt.Fprintf(w, "  %s scan %d: --limit 10\n", program, m.EmitterChain)
	fmt.Fprintf(w, "  %s tail --from earliest\n", program)
	if s.EmbeddedRedis {
		host, port, _ := strings.Cut(*s.Redis, ":")
		fmt.Fprintf(w, "  redis-cli -h %s -p %s XREVRANGE '%s' + - COUNT 3\n", host, port, feed.Events(c.Network))
	}
}

func (a *app) statusCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Ask a running serve whether it is ready: exit 1 if it is not",
		Long: `Asks the attestry serve at --http, or at PORT; else the one that runs on --data-dir.
Exit code 0 says that it can answer questions. It is the health check of the image.`,
		Example: `  attestry status
  attestry status --http 127.0.0.1:8080 -o json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			addr := ""
			if c.values["http"].set() {
				addr = c.http
			}
			status, ready, err := run.AskStatus(cmd.Context(), c.DataDir, addr, c.http)
			if err != nil {
				return err
			}
			if out.of(cmd) == formatJSON {
				err = writeJSON(cmd.OutOrStdout(), status)
			} else {
				t := table{w: cmd.OutOrStdout()}
				t.row("status", status.Status)
				for _, name := range slices.Sorted(maps.Keys(status.Checks)) {
					how := "ok"
					if e := status.Checks[name].Error; e != nil {
						how = *e
					}
					t.row("  "+name, how)
				}
				err = t.err
			}
			if err == nil && !ready {
				err = errors.New("attestry serve answers and is not ready")
			}
			return err
		},
	}
	registerFlags(cmd, "serve", "http")
	out.register(cmd)
	return cmd
}
