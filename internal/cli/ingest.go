package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/ingest/source/file"
	"github.com/attestry/attestry/internal/run"
)

const (
	// catchUpTimeout bounds the wait for the stream at the end of a run. It is longer
	// than the lock of a publisher that died lasts.
	catchUpTimeout = 20 * time.Second
	plainInterval  = time.Second // between lines of progress
)

func (a *app) ingestCmd() *cobra.Command {
	var (
		out   format
		class string
	)
	cmd := &cobra.Command{
		Use:   "ingest FILE…",
		Short: "Take the VAAs of files into the archive",
		Long: `Reads VAAs from files (- is standard input), verifies and stores them: lines of JSON
{"vaa": base64 or hexadecimal, "txId": …}, CSV lines chain:emitter:sequence,<hex>,
bare hexadecimal or base64 lines, or one binary VAA a file; .gz and .zst are read as
they are. What does not verify is kept as a reject with the reason. The same file
again changes nothing.

Exit code 0 says that every item is settled, 1 that some are not: run it again.`,
		Example: `  attestry ingest testdata/vaas/vaas-mainnet.ndjson
  zcat dump.gz | attestry ingest - -o json
  attestry ingest --class live today.ndjson`,
		Args: arguments(1, -1, "give the files to read, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			parsed, err := archive.ParseClass(class)
			if err != nil {
				return misused("--class: %w", err)
			}
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			sources, err := a.openFiles(cmd.Context(), args)
			if err != nil {
				return err
			}
			summary, err := a.ingest(cmd, c, parsed, sources)
			if summary.Total() > 0 || err == nil {
				err = errors.Join(writeSummary(cmd.OutOrStdout(), out.of(cmd), summary), err)
			}
			switch {
			case errors.Is(err, context.Canceled):
				return fmt.Errorf("interrupted: what is counted is stored; run it again for the rest (%w)", err)
			case err == nil && summary.Errors() > 0:
				return fmt.Errorf("%d items are not settled: run it again, what is stored will be duplicate", summary.Errors())
			}
			return err
		},
	}
	cmd.Flags().StringVar(&class, "class", archive.ClassHistory.String(), "class of the events: live, or history, which the stream only mentions")
	out.register(cmd)
	return cmd
}

// input is a file and its size in bytes, -1 if that cannot be known.
type input struct {
	*file.Source
	size int64
}

// openFiles opens the files of a run, whose standard input ends with ctx.
func (a *app) openFiles(ctx context.Context, names []string) ([]input, error) {
	var inputs []input
	stdin := a.stdin
	if slices.Contains(names, "-") {
		stdin = interruptible(ctx, stdin)
	}
	for _, name := range names {
		source, err := file.Open(name, stdin)
		if err != nil {
			return nil, err
		}
		in := input{source, -1}
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			in.size = info.Size()
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// interruptible returns a reader of r whose reads fail when ctx ends: a pipe into
// which nobody writes must not hold the program up. A read of r that is then under
// way is left to the end of the process.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	return out
}

// ingest runs the sources one after another into the archive, with a publisher
// beside it if a Redis is known.
func (a *app) ingest(cmd *cobra.Command, c *config, class archive.Class, inputs []input) (summary ingest.Summary, err error) {
	ctx, log := cmd.Context(), a.logger(c, zap.WarnLevel)
	conn, err := run.Connect(ctx, c.Config)
	if errors.Is(err, run.ErrNoArchive) {
		fmt.Fprintf(a.stderr, "no store is named and no attestry serve runs on %s: made a store there\n", harmless(c.DataDir))
		conn, err = run.ConnectEmbedded(ctx, c.Config)
	}
	if err != nil {
		return summary, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	opened, err := open(ctx, conn)
	if err != nil {
		return summary, err
	}
	show := a.newProgress(inputs)
	cfg := ingest.RunnerConfig{
		Store: opened.Store, Verifier: opened.Verifier, Class: class, Logger: log.Named("ingest"), OnProgress: show.items,
		Writer: ingest.NewWriter(ingest.WriterConfig{Store: opened.Store, Logger: log.Named("writer")}),
	}
	if !conn.HasRedis() {
		return runAll(ctx, ingest.NewRunner(cfg), inputs, show)
	}
	publishing, err := opened.Publish(ctx, log)
	if err != nil {
		return summary, err
	}
	defer func() { err = errors.Join(err, publishing.Close()) }()
	cfg.Wake = publishing.Wake
	summary, err = runAll(ctx, ingest.NewRunner(cfg), inputs, show)
	if err == nil {
		a.catchUp(ctx, publishing)
	}
	return summary, err
}

func runAll(ctx context.Context, runner *ingest.Runner, inputs []input, show *progress) (ingest.Summary, error) {
	var total ingest.Summary
	defer show.end()
	for _, in := range inputs {
		show.begin(in)
		summary, err := runner.Run(ctx, in)
		total.Add(summary)
		show.done(summary)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// catchUp waits a bounded time for the stream. What is stored is stored, so that a
// stream that is behind is told and is no failure.
func (a *app) catchUp(ctx context.Context, p *run.Publishing) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	if err := p.CatchUp(ctx); err != nil {
		fmt.Fprintf(a.stderr, "everything is stored, but the stream in Redis is behind: %s; a publisher of attestry serve or of the next ingest goes on\n",
			harmless(err.Error()))
	}
}

// progress shows how far a run is: a bar on a terminal, else a line now and then.
// Reads come from another goroutine than the rest; the bar has a lock of its own.
type progress struct {
	w      io.Writer
	bar    *progressbar.ProgressBar // nil: plain lines
	name   string
	before ingest.Summary // of the inputs that are done
	last   time.Time
}

func (a *app) newProgress(inputs []input) *progress {
	p := &progress{w: a.stderr, last: time.Now()}
	if !isTerminal(a.stderr) {
		return p
	}
	total := int64(0)
	for _, in := range inputs {
		if in.size < 0 {
			total = -1
			break
		}
		total += in.size
	}
	p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(a.stderr), progressbar.OptionShowBytes(true),
		progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetDescription("reading"))
	return p
}

func (p *progress) begin(in input) {
	p.name = in.Name()
	if p.bar != nil {
		in.OnRead(func(n int) { _ = p.bar.Add(n) }) // a terminal that is gone has nobody to tell
	}
}

// items is told what became of the items of the input so far.
func (p *progress) items(s ingest.Summary) {
	if p.bar != nil {
		total := p.before.Total() + s.Total()
		p.bar.Describe(fmt.Sprintf("%d items, %d new", total, total-p.before.Outcomes[archive.OutcomeDuplicate]-s.Outcomes[archive.OutcomeDuplicate]))
		return
	}
	if now := time.Now(); now.Sub(p.last) >= plainInterval {
		p.last = now
		p.line("reading", s)
	}
}

func (p *progress) done(s ingest.Summary) {
	p.before.Add(s)
	if p.bar == nil {
		p.line("read", s)
	}
}

func (p *progress) line(what string, s ingest.Summary) {
	fmt.Fprintf(p.w, "%s %s: %s\n", what, p.name, counts(s))
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// counts are the outcomes that occurred, in words.
func counts(s ingest.Summary) string {
	var parts []string
	for _, o := range archive.Outcomes() {
		if n := s.Outcomes[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func writeSummary(w io.Writer, format string, s ingest.Summary) error {
	if format == formatJSON {
		return writeJSON(w, s)
	}
	t := table{w: w}
	for _, o := range archive.Outcomes() {
		t.row(o.String(), fmt.Sprint(s.Outcomes[o]))
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		t.row("  "+reason, fmt.Sprint(s.Reasons[reason]))
	}
	if s.RejectsDropped > 0 {
		t.row("not kept", fmt.Sprintf("%d rejects beyond the cap of an hour", s.RejectsDropped))
	}
	return t.err
}
