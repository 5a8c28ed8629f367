package ingest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// Store is the part of the archive that a writer needs.
type Store interface {
	archive.Reader
	archive.Journal
	archive.Applier
}

// Bounds of a writer's waits.
const (
	callTimeout    = 30 * time.Second // one durable call
	appendAttempts = 5                // sends of one batch whose outcome stays unknown
	applyAttempts  = 5
	applyTimeout   = 5 * time.Minute        // to apply what is pending; the rest is for the next time
	retryPause     = 100 * time.Millisecond // first pause between attempts, doubled each time
	// staleAfter is the age from which a batch that is not applied is taken to
	// belong to a dead writer.
	staleAfter = 10 * time.Second
)

// Writer classifies items, appends what is new to the journal and applies it. It
// is the durable heart of ingestion; everything before it can be repeated.
//
// Its methods may be called concurrently; one append is in flight at a time
// (docs/protocol.md, rule 2).
type Writer struct {
	store Store
	now   func() time.Time
	pause func(ctx context.Context, d time.Duration) error
	newID func() string
	log   *zap.Logger
	id    string

	mu sync.Mutex // held over a whole write; guards the rest
	// low is an offset below which every batch is applied, the end of a row that
	// was read; 0 before the first look.
	low archive.Offset
	// lowTime is the wall time of the batch that ends at low; zero when low is 0 or 1.
	lowTime time.Time
	// raised is the watermark as last stored.
	raised archive.Offset
	// tailAhead: the journal's newest batch was ahead of this clock when last seen.
	tailAhead bool
}

// WriterConfig is what a writer is made of. Store is required; the rest has
// defaults.
type WriterConfig struct {
	Store  Store
	Logger *zap.Logger
	// Now, Pause and NewID replace the clock, waiting and random ids in
	// simulations.
	Now   func() time.Time
	Pause func(ctx context.Context, d time.Duration) error
	NewID func() string
}

// NewWriter returns a writer with a writer id of its own.
func NewWriter(c WriterConfig) *Writer {
	w := &Writer{store: c.Store, now: c.Now, pause: c.Pause, newID: c.NewID, log: c.Logger}
	if w.now == nil {
		w.now = time.Now
	}
	if w.pause == nil {
		w.pause = sleep
	}
	if w.newID == nil {
		w.newID = randomID
	}
	if w.log == nil {
		w.log = zap.NewNop()
	}
	w.id = w.newID()
	return w
}

// Write settles items in their order: each gets the outcome that holds after its
// event is durable. On an error the items that were not settled have
// OutcomeError; they are to be delivered again, which does no harm to those whose
// event is in the journal after all.
//
// Items of one id may repeat. Items of class live that were signed by an expired
// set are journalled as history.
func (w *Writer) Write(ctx context.Context, class archive.Class, items []Item) ([]Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	results := make([]Result, len(items))
	for done := 0; done < len(items); {
		part := items[done:min(done+archive.MaxBatchItems, len(items))]
		n, err := w.writeBatch(ctx, class, part, results[done:])
		if err != nil {
			for i := done; i < len(items); i++ {
				results[i] = Result{Outcome: archive.OutcomeError, Reason: reasonStore, Detail: err.Error()}
			}
			return results, err
		}
		done += n
	}
	return results, nil
}

// writeBatch settles as many of the first items as fit into one batch of the
// journal, and returns their number.
func (w *Writer) writeBatch(ctx context.Context, class archive.Class, items []Item, results []Result) (int, error) {
	t, err := w.look(ctx)
	if err != nil {
		return 0, err
	}
	// The rows are read after the look at W and T: what was applied before W is in
	// them, what was appended since is in t (rule 1).
	rows, err := w.rows(ctx, items)
	if err != nil {
		return 0, err
	}
	var p plan
	raced := 0
	for ; ; raced++ {
		if p, err = newPlan(class, items, rows, t); err != nil {
			return 0, err
		}
		if len(p.batch.Events) == 0 {
			break
		}
		p.batch.ID, p.batch.Writer, p.batch.Offset = w.newID(), w.id, t.end
		p.batch.WallTime = t.wallTime(w.now())
		sent := w.now()
		err := w.append(ctx, p.batch)
		if err == nil {
			if raced > 0 {
				// The others lost to this batch: they get the next turn.
				defer w.rest(ctx, class, w.now().Sub(sent))
			}
			break
		}
		if !errors.Is(err, archive.ErrOffsetTaken) {
			return 0, err
		}
		// Another was first. The rows read before stay good: what came between is in
		// the journal, behind what was read of it (rule 9).
		if err := w.extend(ctx, t); err != nil {
			return 0, err
		}
		if err := w.yield(ctx, class, raced); err != nil {
			return 0, err
		}
	}
	// CRASH HERE: the events are durable and their outcome is decided; rows and
	// index lack them. Whoever next meets the unapplied batch applies it.
	w.apply(ctx, t)
	// CRASH HERE: applied or not, nothing is settled. The items come again and are
	// duplicates.
	if err := w.keepEvidence(ctx, p.evidence); err != nil {
		return 0, err
	}
	if err := w.call(ctx, "check the store's generation", w.store.CheckOpen); err != nil {
		return 0, err
	}
	copy(results, p.results)
	return len(p.results), nil
}

// append sends a batch until its outcome is definite. ErrOffsetTaken means that
// another batch is at its offset.
func (w *Writer) append(ctx context.Context, b archive.Batch) error {
	var last error
	for attempt := range appendAttempts {
		if attempt > 0 {
			if err := w.pause(ctx, retryPause<<(attempt-1)); err != nil {
				return err
			}
		}
		err := w.call(ctx, "append to the journal", func(ctx context.Context) error { return w.store.Append(ctx, b) })
		if err == nil {
			return nil
		}
		if errors.Is(err, archive.ErrTooLarge) {
			return err
		}
		last = err
		// The outcome is unknown, or the offset is taken, perhaps by this very batch
		// in an earlier send. What lies there tells; an absent row tells nothing, and
		// the same bytes are sent again (rule 6).
		there, found, err := w.holding(ctx, b.Offset)
		switch {
		case err != nil:
			last = err
		case found && there.ID == b.ID:
			return nil
		case found:
			return fmt.Errorf("append at offset %d: %w", b.Offset, archive.ErrOffsetTaken)
		}
	}
	return fmt.Errorf("append at offset %d: outcome unknown after %d attempts: %w", b.Offset, appendAttempts, last)
}

// holding reads the batch that holds an offset.
func (w *Writer) holding(ctx context.Context, o archive.Offset) (archive.Batch, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for b, err := range w.store.Batches(ctx, o) {
		if err != nil {
			return archive.Batch{}, false, fmt.Errorf("read the journal at offset %d: %w", o, err)
		}
		return b, true, nil
	}
	return archive.Batch{}, false, nil
}

// rows reads what is stored of the items' ids, as far as classification needs it.
func (w *Writer) rows(ctx context.Context, items []Item) (map[vaa.MessageID]archive.Record, error) {
	ids := make([]vaa.MessageID, 0, len(items))
	seen := make(map[vaa.MessageID]bool, len(items))
	for i := range items {
		if id := items[i].ID; !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	var rows map[vaa.MessageID]archive.Record
	err := w.call(ctx, "read rows", func(ctx context.Context) error {
		var err error
		rows, err = w.store.GetAll(ctx, ids, classifyColumns())
		return err
	})
	return rows, err
}

func (w *Writer) keepEvidence(ctx context.Context, evidence []archive.Evidence) error {
	if len(evidence) == 0 {
		return nil
	}
	return w.call(ctx, "keep signatures", func(ctx context.Context) error { return w.store.PutEvidence(ctx, evidence) })
}

// yield waits a little after a lost race, longer for history, so that writers
// behind a busy one get their turn and live goes first.
func (w *Writer) yield(ctx context.Context, class archive.Class, raced int) error {
	pause := min(time.Duration(raced)*2*time.Millisecond, 100*time.Millisecond)
	if class == archive.ClassHistory {
		pause *= 4
	}
	if pause == 0 {
		return nil
	}
	return w.pause(ctx, pause)
}

// rest waits a round trip after a race that was won, longer for history.
func (w *Writer) rest(ctx context.Context, class archive.Class, roundTrip time.Duration) {
	if class == archive.ClassHistory {
		roundTrip *= 4
	}
	_ = w.pause(ctx, min(roundTrip, time.Second)) // an end of ctx shows in the next call
}

func (w *Writer) call(ctx context.Context, what string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func randomID() string {
	var b [16]byte
	rand.Read(b[:]) //nolint:errcheck // documented never to fail
	return hex.EncodeToString(b[:])
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if cmp.Compare(a.UnixMilli(), b.UnixMilli()) < 0 {
		return b
	}
	return a
}
