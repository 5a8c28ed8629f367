package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/internal/run"
)

// errEnough ends a tail that has shown what was asked for.
var errEnough = errors.New("enough")

func (a *app) tailCmd() *cobra.Command {
	var (
		out   format
		from  string
		count int
	)
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Follow the archive's stream of events",
		Long: `Shows each event of the stream as it comes, in order and without a hole: what
Redis does not hold any more is read from the journal. A run of history is one entry
that names the offsets which it stands for.`,
		Example: `  attestry tail
  attestry tail --from earliest -n 10
  attestry tail --from 1 -o json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			position, err := parsePosition(from)
			if err != nil {
				return err
			}
			if count < 0 {
				return misused("-n %d is negative: write how many entries to show, 0 for all", count)
			}
			return a.with(cmd, func(ctx context.Context, c *config, archive *run.Archive) error {
				log := a.logger(c, zap.WarnLevel)
				reader, err := archive.Reader(feed.ReaderConfig{Logger: log.Named("reader")})
				if err != nil {
					return err
				}
				defer reader.Close() //nolint:errcheck // nothing was written
				err = follow(ctx, reader, position, count, entryWriter(cmd.OutOrStdout(), out.of(cmd)))
				if ctx.Err() != nil {
					return nil // a signal is how a tail ends
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "latest", "where to begin: latest, earliest (what the stream still holds), or an offset of the journal")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "end after so many entries; 0 never ends")
	out.register(cmd)
	return cmd
}

func parsePosition(from string) (feed.Position, error) {
	switch from {
	case "latest":
		return feed.Latest(), nil
	case "earliest":
		return feed.Earliest(), nil
	}
	offset, err := strconv.ParseUint(from, 10, 64)
	if err != nil || offset == 0 {
		return feed.Position{}, misused("--from %q is no position: write latest, earliest or an offset from 1", from)
	}
	return feed.After(archive.Offset(offset - 1)), nil
}

func follow(ctx context.Context, reader *feed.Reader, from feed.Position, count int, show func(*feed.Entry) error) error {
	shown := 0
	err := reader.Tail(ctx, from, func(e feed.Entry) error {
		if err := show(&e); err != nil {
			return err
		}
		if shown++; shown == count {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// entryWriter returns what shows an entry: in JSON as the stream holds it.
func entryWriter(w io.Writer, format string) func(*feed.Entry) error {
	if format == formatJSON {
		return func(e *feed.Entry) error {
			item, err := e.Item()
			if err != nil {
				return err
			}
			return writeLine(w, []byte(item.Data))
		}
	}
	const line = "%-8s  %-24s  %-8s  %-7s  %3s  %s\n"
	head := false
	return func(e *feed.Entry) error {
		if !head {
			head = true
			fmt.Fprintf(w, line, "OFFSET", "RECORDED", "KIND", "CLASS", "SET", "MESSAGE")
		}
		if e.Event == nil {
			_, err := fmt.Fprintf(w, line, decimal(e.ID.Offset), "-", "skipped", "history", "-",
				fmt.Sprintf("offsets %d to %d", e.From, e.ID.Offset))
			return err
		}
		_, err := fmt.Fprintf(w, line, decimal(e.ID.Offset), e.Event.RecordedAt.UTC().Format("2006-01-02T15:04:05.000Z"),
			e.Event.Kind, e.Class, cell(text(e.Event.GuardianSetIndex)), e.Event.ID)
		return err
	}
}
