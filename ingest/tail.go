package ingest

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// tail is what a writer read of the journal's end.
type tail struct {
	// w is the first offset whose batch was not applied when it was looked at.
	w archive.Offset
	// end is the end of the last row that was read (rule 2).
	end archive.Offset
	// events are those in [w, end), by id and ascending.
	events map[vaa.MessageID][]archive.Event
	last   time.Time // wall time of the batch that ends at end
}

// look reads W and then T (rule 1).
func (w *Writer) look(ctx context.Context) (*tail, error) {
	if w.low == 0 {
		if err := w.begin(ctx); err != nil {
			return nil, err
		}
	}
	t := &tail{w: w.low, end: w.low, last: w.lowTime, events: map[vaa.MessageID][]archive.Event{}}
	if err := w.read(ctx, t, true); err != nil {
		return nil, err
	}
	// A healthy writer goes on with the tail's time, but somebody's clock is wrong.
	if ahead := t.last.Sub(w.now()); ahead > clockOff != w.tailAhead {
		w.tailAhead = !w.tailAhead
		w.log.Warn("the journal's newest batch is ahead of this clock", zap.Bool("now", w.tailAhead), zap.Duration("by", ahead))
	}
	return t, nil
}

// begin takes the stored watermark for the first look.
func (w *Writer) begin(ctx context.Context) error {
	var low archive.Offset
	err := w.call(ctx, "read the watermark", func(ctx context.Context) error {
		var err error
		low, err = w.store.Watermark(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if low > 1 {
		// The next batch may not be older than this one (rule 8).
		b, found, err := w.holding(ctx, low-1)
		if err != nil {
			return err
		}
		if !found || b.End() != low {
			return fmt.Errorf("read the journal: no batch ends at the watermark %d; run attestry fsck", low)
		}
		w.lowTime = b.WallTime
	}
	w.low, w.raised = low, low
	return nil
}

// extend reads on from where t ends. W stays where it was: rows may have been
// read since, and what was applied after that is not in them.
func (w *Writer) extend(ctx context.Context, t *tail) error { return w.read(ctx, t, false) }

func (w *Writer) read(ctx context.Context, t *tail, findW bool) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for b, err := range w.store.Batches(ctx, t.end) {
		if err != nil {
			return fmt.Errorf("read the journal from offset %d: %w", t.end, err)
		}
		t.end, t.last = b.End(), b.WallTime
		if findW = findW && b.Applied; findW {
			t.w = t.end
			w.low, w.lowTime = t.end, t.last
			continue
		}
		for _, e := range b.Events {
			t.events[e.ID] = append(t.events[e.ID], e)
		}
	}
	return nil
}

// wallTime is a batch's time: never before its predecessor's (rule 8), in
// milliseconds, as stream ids are made of it.
func (t *tail) wallTime(now time.Time) time.Time {
	return later(now, t.last).UTC().Truncate(time.Millisecond)
}

// apply applies this writer's batches in [w, end] and those of others that have
// waited too long. What fails is logged and tried again with the next write or
// by a sweeper: the events are durable, so the items are settled all the same.
func (w *Writer) apply(ctx context.Context, t *tail) {
	if err := w.applyPending(ctx, func(b *archive.Batch) bool {
		return b.Writer == w.id || w.now().Sub(b.WallTime) > staleAfter
	}); err != nil {
		w.log.Warn("a batch of the journal is not applied yet", zap.Error(err), zap.Uint64("from", uint64(t.w)))
	}
}

// ApplyPending applies every batch that is not applied, whoever appended it and
// however long ago, and raises the watermark. It is what repairs the archive
// after a crash, and the same code as in normal life.
func (w *Writer) ApplyPending(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.look(ctx); err != nil {
		return err
	}
	return w.applyPending(ctx, func(*archive.Batch) bool { return true })
}

// Sweep applies the batches that have waited longer than a living writer needs.
func (w *Writer) Sweep(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.look(ctx); err != nil {
		return err
	}
	return w.applyPending(ctx, func(b *archive.Batch) bool { return w.now().Sub(b.WallTime) > staleAfter })
}

// applyPending reads the journal from the first batch that may not be applied,
// and applies what the rows of the journal say (rule 10) of the batches that mine
// selects.
func (w *Writer) applyPending(ctx context.Context, mine func(*archive.Batch) bool) error {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	dense := true // every batch so far is applied
	var failed error
	for b, err := range w.store.Batches(ctx, w.low) {
		if err != nil {
			return fmt.Errorf("read the journal from offset %d: %w", w.low, err)
		}
		if !b.Applied && mine(&b) {
			if err := w.applyBatch(ctx, b); err != nil {
				failed = err
			} else {
				b.Applied = true
			}
		}
		dense = dense && b.Applied
		if dense {
			w.low, w.lowTime = b.End(), b.WallTime
		}
	}
	if failed == nil && w.low > w.raised+10*archive.MaxBatchEvents {
		// A stale watermark is right too; it only saves a later start some reading.
		failed = w.call(ctx, "raise the watermark", func(ctx context.Context) error { return w.store.RaiseWatermark(ctx, w.low) })
		if failed == nil {
			w.raised = w.low
		}
	}
	return failed
}

func (w *Writer) applyBatch(ctx context.Context, b archive.Batch) error {
	var err error
	for attempt := range applyAttempts {
		if attempt > 0 {
			if err := w.pause(ctx, retryPause<<(attempt-1)); err != nil {
				return err
			}
		}
		err = w.call(ctx, fmt.Sprintf("apply the batch at offset %d", b.Offset), func(ctx context.Context) error {
			if err := w.store.Apply(ctx, b); err != nil {
				return err
			}
			// CRASH HERE: the rows are written but the batch does not say so. It is
			// applied once more, to the same effect: cells carry their event's offset.
			return w.store.MarkApplied(ctx, b.Offset)
		})
		if err == nil {
			return nil
		}
	}
	return err
}

// classifyColumns are the cells that classification looks at: all versions of
// the verified VAAs, and of the publication what identifies it.
func classifyColumns() archive.Columns {
	return archive.Columns{Qualifiers: []string{
		schema.ColDigest, schema.ColTimestamp, schema.ColInitiatingTxID, schema.PrefixTxID, schema.PrefixVanished,
		schema.ColSignedVAA, schema.PrefixConflict, schema.PrefixOther, schema.PrefixSignature,
	}}
}
