package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

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
