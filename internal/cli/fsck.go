package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/attestry/attestry/derive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/internal/fsck"
	"github.com/attestry/attestry/internal/run"
)

func (a *app) fsckCmd() *cobra.Command {
	var (
		out  format
		wait time.Duration
	)
	cmd := &cobra.Command{
		Use:   "fsck",
		Short: "Check that journal, rows, index and stream agree: exit 1 if anything is found",
		Long: `Reads the whole archive and checks it: every row decodes and verifies, rows and index
agree, the journal is dense and applied and each event is in its row, and the stream
in Redis, if one is known, is the journal's. It changes nothing.`,
		Example: `  attestry fsck
  attestry fsck --wait 30s -o json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, c *config, archive *run.Archive) error {
				cfg := fsck.Config{Store: archive.Store, Sets: archive.Verifier.Sets(), Wait: wait}
				reader, err := archive.Reader(feed.ReaderConfig{Logger: a.logger(c, zap.WarnLevel)})
				switch {
				case err == nil:
					defer reader.Close() //nolint:errcheck // nothing was written
					cfg.Window = reader.Window
				case errors.Is(err, run.ErrNoRedis):
					fmt.Fprintln(a.stderr, "no Redis is known: the stream is not checked; give --redis-url to check it")
				default:
					return err
				}
				report, err := fsck.Run(ctx, cfg)
				if err != nil {
					return err
				}
				if out.of(cmd) == formatJSON {
					err = writeJSON(cmd.OutOrStdout(), report)
				} else {
					err = describeReport(cmd.OutOrStdout(), &report)
				}
				if err == nil && report.FindingsTotal > 0 {
					err = fmt.Errorf("the archive of %s has %d findings", c.Network, report.FindingsTotal)
				}
				return err
			})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Second, "longest wait for what is just being applied or published")
	out.register(cmd)
	return cmd
}

func describeReport(w io.Writer, r *fsck.Report) error {
	t := table{w: w}
	t.row("network", r.Network)
	t.row("generation", fmt.Sprint(r.Generation))
	t.row("epoch", fmt.Sprint(r.Epoch))
	t.row("batches", fmt.Sprint(r.Batches))
	t.row("events", fmt.Sprint(r.Events))
	t.row("rows", fmt.Sprint(r.Rows))
	t.row("versions", fmt.Sprint(r.Versions))
	t.row("index rows", fmt.Sprint(r.IndexRows))
	t.row("stream entries", text(r.StreamEntries))
	t.row("findings", fmt.Sprint(r.FindingsTotal))
	for _, f := range r.Findings {
		t.row("  "+string(f.Kind), f.Where+": "+f.Detail)
	}
	return t.err
}

func (a *app) rollupCmd() *cobra.Command {
	return group(&cobra.Command{
		Use:   "rollup",
		Short: "Check or rebuild the counts of messages by time",
		Long: `Works on the buckets in which attestry serve counts messages, by minute, 5 minutes,
hour, day and all time, of the network, each chain and each emitter.`,
		Example: "  attestry rollup verify",
	}, a.rollupVerifyCmd(), a.rollupRebuildCmd())
}

func (a *app) rollupVerifyCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Count all rows and compare: exit 1 if a bucket is wrong",
		Long: `Reads every row and compares each bucket with what the rows say. It changes nothing
and may run beside attestry serve.`,
		Example: `  attestry rollup verify
  attestry rollup verify -o json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, c *config, archive *run.Archive) error {
				v, err := archive.VerifyRollups(ctx)
				if err != nil {
					return err
				}
				if out.of(cmd) == formatJSON {
					err = writeJSON(cmd.OutOrStdout(), v)
				} else {
					err = describeVerified(cmd.OutOrStdout(), &v)
				}
				if err == nil && v.DifferencesTotal > 0 {
					err = fmt.Errorf("%d rollup buckets of %s are wrong; count them anew with `attestry rollup rebuild`", v.DifferencesTotal, c.Network)
				}
				return err
			})
		},
	}
	out.register(cmd)
	return cmd
}

func describeVerified(w io.Writer, v *derive.Verified) error {
	t := table{w: w}
	t.row("generation", fmt.Sprint(v.Generation))
	t.row("through offset", fmt.Sprint(v.Through))
	t.row("rows", fmt.Sprint(v.Rows))
	t.row("buckets", fmt.Sprint(v.Buckets))
	t.row("differences", fmt.Sprint(v.DifferencesTotal))
	for _, d := range v.Differences {
		t.row("  "+d.Bucket, fmt.Sprintf("%+v, should be %+v", d.Stored, d.Want))
	}
	return t.err
}

func (a *app) rollupRebuildCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Count all rows anew into new buckets, then use those",
		Long: `Counts every row into a new generation of buckets and then makes it the one that
answers. It may run beside attestry serve, and may be interrupted and repeated. The
old buckets are removed a few seconds later.`,
		Example: "  attestry rollup rebuild",
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(ctx context.Context, _ *config, archive *run.Archive) error {
				r, err := archive.RebuildRollups(ctx)
				if err != nil {
					return err
				}
				if out.of(cmd) == formatJSON {
					return writeJSON(cmd.OutOrStdout(), r)
				}
				t := table{w: cmd.OutOrStdout()}
				t.row("generation", fmt.Sprint(r.Generation))
				t.row("through offset", fmt.Sprint(r.Through))
				t.row("rows", fmt.Sprint(r.Rows))
				t.row("buckets", fmt.Sprint(r.Buckets))
				return t.err
			})
		},
	}
	out.register(cmd)
	return cmd
}
