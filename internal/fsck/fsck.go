// Package fsck checks an archive: the journal in itself, the rows against the
// journal, the index against the rows, the stream against the journal. It shares
// no code with the writers that it checks, writes nothing, and may run beside
// them: what is being applied or published meanwhile is looked at again.
//
// It reads the store in passes. In each it collects from the journal the events
// of as many messages as its memory holds, in the order of row keys, and compares
// them with one scan of their rows and one of the whole index. The events of one
// message, of which archive.MaxVersions and archive.MaxLinks bound the number, are
// held in any case. Beyond that it remembers the ids of the last 262,144 batches
// and eight bytes for each batch that is not applied.
package fsck

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/vaa"
)

// Config says what to check. Store and Sets are required.
type Config struct {
	// Store must also list the rows of its index and journal as archive/memarchive
	// and bigtable do.
	Store archive.Store
	// Sets are the guardian sets known for the store's network, learnt ones too.
	Sets vaa.GuardianSets
	// Window yields the stream's entries as feed.Reader.Window does. Nil: there is
	// no stream, and none is checked.
	Window func(context.Context) iter.Seq2[feed.Entry, error]
	// Wait bounds how long, in all, the check waits for what normal life brings
	// about by itself: batches are applied, the stream follows the journal. 0 does
	// not wait.
	Wait time.Duration
	// MemoryBytes bounds the memory for events and index keys, approximately.
	// A pass needs about 700 bytes an event. 0: 256 MiB.
	MemoryBytes int64
	// MaxFindings bounds the findings that are kept; all are counted. 0: 100.
	MaxFindings int
	// Now is the clock by which the retention of bytes is judged. Nil: time.Now.
	Now func() time.Time
}

// Report is what was counted and found.
type Report struct {
	Network       string         `json:"network"`
	Generation    uint64         `json:"generation,string"`
	Epoch         uint64         `json:"epoch,string"`
	Batches       int            `json:"batches"`
	Events        int            `json:"events"`
	End           archive.Offset `json:"end,string"` // of the journal as far as it was checked
	Rows          int            `json:"rows"`
	Versions      int            `json:"versions"` // verified VAAs in the rows
	IndexRows     int            `json:"indexRows"`
	StreamEntries *int           `json:"streamEntries"` // nil: no stream was checked
	Passes        int            `json:"passes"`
	// Findings are the first MaxFindings of FindingsTotal.
	Findings      []Finding `json:"findings"`
	FindingsTotal int       `json:"findingsTotal"`
}

// Finding is one thing that is not as it must be.
type Finding struct {
	Kind Kind `json:"kind"`
	// Where is the row key of the message or index row, the journal's offset, or the
	// id of the stream's entry.
	Where  string `json:"where"`
	Detail string `json:"detail"`
}

func (f Finding) String() string { return fmt.Sprintf("%s at %s: %s", f.Kind, f.Where, f.Detail) }

// Kind is the stable name of a sort of finding.
type Kind string

// The kinds of findings in the journal.
const (
	KindBatchUnreadable   Kind = "batch_unreadable"
	KindJournalHole       Kind = "journal_hole"
	KindJournalOverlap    Kind = "journal_overlap"
	KindBatchRepeated     Kind = "batch_repeated"
	KindWallTimeDecreases Kind = "wall_time_decreases"
	KindBatchNotApplied   Kind = "batch_not_applied"
	KindWatermarkAhead    Kind = "watermark_ahead" // of a batch that is not applied, or of the journal's end
	KindEventInvalid      Kind = "event_invalid"   // contradicts its bytes or its batch
	KindEventBytesMissing Kind = "event_bytes_missing"
	KindEventRepeated     Kind = "event_repeated" // a VAA's (digest, set) journalled twice
	KindDecisionWrong     Kind = "decision_wrong" // the event's kind or choice is not the rule's
)

// The kinds of findings in the rows.
const (
	KindRowUnreadable          Kind = "row_unreadable"
	KindRowMissing             Kind = "row_missing"
	KindRowWithoutEvent        Kind = "row_without_event"
	KindRowKeyWrong            Kind = "row_key_wrong" // not that of the message in the row
	KindDigestWrong            Kind = "digest_wrong"
	KindVAANotVerified         Kind = "vaa_not_verified"
	KindCanonicalWrong         Kind = "canonical_wrong"
	KindPublicationDiffers     Kind = "publication_differs"
	KindVersionMissing         Kind = "version_missing"
	KindVersionWithoutEvent    Kind = "version_without_event"
	KindVersionDiffers         Kind = "version_differs"
	KindLinkDiffers            Kind = "link_differs" // missing, without event or another than the event's
	KindMarkDiffers            Kind = "mark_differs"
	KindEvidenceNotVerified    Kind = "evidence_not_verified"
	KindEvidenceWithoutVersion Kind = "evidence_without_version"
)

// The kinds of findings in the index and the stream.
const (
	KindIndexRowUnreadable     Kind = "index_row_unreadable"
	KindIndexRowMissing        Kind = "index_row_missing"
	KindIndexRowWithoutMessage Kind = "index_row_without_message"

	KindStreamEntryUnreadable Kind = "stream_entry_unreadable"
	KindStreamForeign         Kind = "stream_foreign" // of another epoch or network
	KindStreamHole            Kind = "stream_hole"
	KindStreamStartsLate      Kind = "stream_starts_late" // within the window, though nothing had to be trimmed
	KindStreamOverlap         Kind = "stream_overlap"
	KindStreamEntryWrong      Kind = "stream_entry_wrong" // not what the journal has there
	KindStreamAhead           Kind = "stream_ahead"       // of the journal
	KindStreamBehind          Kind = "stream_behind"      // the journal, after the wait
)

const (
	defaultMemoryBytes = 256 << 20
	defaultMaxFindings = 100
	pollInterval       = 100 * time.Millisecond
)

// store is what the check reads.
type store interface {
	archive.Store
	// IndexRows yields every row of the index.
	IndexRows(ctx context.Context) iter.Seq2[archive.IndexRow, error]
	// BatchOffsets yields the offsets of the journal's rows, those behind a hole too.
	BatchOffsets(ctx context.Context, from archive.Offset) iter.Seq2[archive.Offset, error]
}

// checker is the state of one run.
type checker struct {
	cfg    Config
	store  store
	info   archive.StoreInfo
	seed   maphash.Seed
	wait   time.Duration // what is left of it
	report Report
	// publishable is the end of what a publisher can have published: of the applied
	// batches before the first hole.
	publishable archive.Offset
	// resume says where to go on reading the journal where a scan stops at damage.
	resume map[archive.Offset]archive.Offset
}

// Run checks the store and returns what it found. An error means that the check
// could not be completed, not that something is wrong with the data; the report
// holds what was found until then.
func Run(ctx context.Context, cfg Config) (Report, error) {
	s, ok := cfg.Store.(store)
	if !ok {
		return Report{}, errors.New("check the store: it cannot list the rows of its index and journal")
	}
	info := s.Info()
	if cfg.Sets.Network() != info.Network {
		return Report{}, fmt.Errorf("check the store of %s: the guardian sets given are those of %s", info.Network, cfg.Sets.Network())
	}
	if cfg.MemoryBytes <= 0 {
		cfg.MemoryBytes = defaultMemoryBytes
	}
	if cfg.MaxFindings <= 0 {
		cfg.MaxFindings = defaultMaxFindings
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &checker{cfg: cfg, store: s, info: info, seed: maphash.MakeSeed(), wait: cfg.Wait, resume: map[archive.Offset]archive.Offset{}}
	c.report = Report{
		Network: info.Network.String(), Generation: info.Generation, Epoch: info.Epoch, Findings: []Finding{},
	}
	if err := c.run(ctx); err != nil {
		return c.report, fmt.Errorf("check the store of %s: %w", info.Network, err)
	}
	return c.report, nil
}

func (c *checker) run(ctx context.Context) error {
	for after := ""; ; {
		s, err := c.collect(ctx, after)
		if err != nil {
			return err
		}
		if err := c.checkRows(ctx, s); err != nil {
			return err
		}
		if err := c.checkIndex(ctx, s); err != nil {
			return err
		}
		c.report.Passes++
		if s.last == "" {
			break
		}
		after = s.last
	}
	if c.cfg.Window == nil {
		return nil
	}
	return c.checkStream(ctx)
}

// found counts a finding and keeps it while there is room.
func (c *checker) found(kind Kind, where, format string, args ...any) {
	c.add(finding(kind, where, format, args...))
}

func (c *checker) add(findings ...Finding) {
	for _, f := range findings {
		if c.report.FindingsTotal++; len(c.report.Findings) < c.cfg.MaxFindings {
			c.report.Findings = append(c.report.Findings, f)
		}
	}
}

func finding(kind Kind, where, format string, args ...any) Finding {
	return Finding{Kind: kind, Where: where, Detail: fmt.Sprintf(format, args...)}
}

// pause waits a moment, and reports false when the time for waiting is used up or
// the context has ended.
func (c *checker) pause(ctx context.Context) bool {
	if c.wait <= 0 {
		return false
	}
	d := min(c.wait, pollInterval)
	c.wait -= d
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// answers returns an error when the store does not answer at all, so that an
// error about one row is not taken for one of the store.
func (c *checker) answers(ctx context.Context) error {
	_, err := c.store.Watermark(ctx)
	return err
}
