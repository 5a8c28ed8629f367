package fsck

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

const (
	// bytesKept is how long the journal keeps the bytes of its events at least.
	bytesKept = 7 * 24 * time.Hour
	// batchIDs is the number of batches within which ids are compared. A batch that
	// is sent again by mistake follows its first self closely.
	batchIDs = 1 << 18
)

// journal is what the first walk over the journal remembers.
type journal struct {
	c         *checker
	watermark archive.Offset // as it was before the walk
	ids       map[string]bool
	ring      []string // the keys of ids, the oldest at next once it is full
	next      int
	last      time.Time // wall time of the batch before
	unapplied []archive.Offset
}

// walk calls f with each batch of the journal in order. It goes on behind damage
// that readers stop at: a hole, a row that cannot be read, a row inside the range
// of another. It returns the end of what it read. The first walk looks for the
// damage; later ones go the same way.
func (c *checker) walk(ctx context.Context, first bool, f func(*archive.Batch)) (archive.Offset, error) {
	next := archive.Offset(1)
	var last archive.Offset // where the batch before next began
	for {
		start, unreadable := next, false
		for b, err := range c.store.Batches(ctx, next) {
			if err != nil {
				if down := c.answers(ctx); down != nil {
					return next, errors.Join(err, down)
				}
				if first {
					c.found(KindBatchUnreadable, text(next), "%v", err)
				}
				unreadable = true
				break
			}
			f(&b)
			last, next = b.Offset, b.End()
		}
		if first {
			if err := c.lookBehind(ctx, last, next, unreadable); err != nil {
				return next, err
			}
			c.publishable = min(c.publishable, next)
		}
		resume, ok := c.resume[next]
		if !ok || resume == start {
			return next, ctx.Err()
		}
		next = resume
	}
}

// lookBehind finds out whether and where the journal goes on although a scan
// stopped at next, behind the batch that begins at last.
func (c *checker) lookBehind(ctx context.Context, last, next archive.Offset, unreadable bool) error {
	overlap := false
	for o, err := range c.store.BatchOffsets(ctx, last+1) {
		switch {
		case err != nil:
			if down := c.answers(ctx); down != nil {
				return errors.Join(err, down)
			}
			return nil // a key that is none: the scan has found it
		case o < next:
			overlap = true
			c.found(KindJournalOverlap, text(o), "a batch begins here, inside the batch at offset %d", last)
			continue
		case unreadable && o == next:
			continue
		case o == next:
			// Without an overlap, the journal has grown since: that is not of this check.
			if overlap {
				c.resume[next] = next
			}
			return nil
		}
		if _, grown, err := c.batchAt(ctx, next); err != nil || grown {
			return err
		}
		if !unreadable {
			c.found(KindJournalHole, text(next), "offsets %d to %d are missing: no reader of the journal goes beyond", next, o-1)
		}
		c.resume[next] = o
		return nil
	}
	return ctx.Err()
}

// batchAt returns the batch that begins at an offset, false when none does or it
// cannot be read.
func (c *checker) batchAt(ctx context.Context, o archive.Offset) (archive.Batch, bool, error) {
	for b, err := range c.store.Batches(ctx, o) {
		if err != nil {
			if down := c.answers(ctx); down != nil {
				return b, false, errors.Join(err, down)
			}
			return b, false, nil
		}
		return b, b.Offset == o, nil
	}
	return archive.Batch{}, false, ctx.Err()
}

// collect walks over the journal and gathers the events of the next messages
// behind a row key. The first walk judges the journal itself.
func (c *checker) collect(ctx context.Context, after string) (*slice, error) {
	s := newSlice(c, after)
	if after != "" {
		var err error
		s.end, err = c.walk(ctx, false, s.add)
		return s, err
	}
	watermark, err := c.store.Watermark(ctx)
	if err != nil {
		return nil, err
	}
	c.publishable = math.MaxUint64
	j := &journal{c: c, watermark: watermark, ids: map[string]bool{}}
	s.end, err = c.walk(ctx, true, func(b *archive.Batch) {
		j.check(b)
		s.add(b)
	})
	if err != nil {
		return nil, err
	}
	c.report.End = s.end
	if watermark > s.end {
		c.found(KindWatermarkAhead, text(watermark), "the watermark is beyond the journal's end at %d", s.end)
	}
	return s, j.settle(ctx, s)
}

// settle waits a bounded time for batches to be applied.
func (j *journal) settle(ctx context.Context, s *slice) error {
	for _, o := range j.unapplied {
		for {
			b, ok, err := j.c.batchAt(ctx, o)
			if err != nil {
				return err
			}
			if ok && b.Applied {
				s.applied(o)
				break
			}
			if !j.c.pause(ctx) {
				j.c.found(KindBatchNotApplied, text(o), "the batch is not applied: its rows and index rows may be missing")
				j.c.publishable = min(j.c.publishable, o)
				break
			}
		}
	}
	return ctx.Err()
}

func (j *journal) check(b *archive.Batch) {
	c := j.c
	c.report.Batches++
	c.report.Events += len(b.Events)
	if err := b.Check(); err != nil {
		c.found(KindEventInvalid, text(b.Offset), "%v", err)
	}
	if b.WallTime.Before(j.last) {
		c.found(KindWallTimeDecreases, text(b.Offset), "wall time %s is before its predecessor's %s", rfc3339(b.WallTime), rfc3339(j.last))
	}
	j.last = b.WallTime
	if j.repeated(b.ID) {
		c.found(KindBatchRepeated, text(b.Offset), "batch id %s was at an earlier offset", b.ID)
	}
	if !b.Applied {
		j.unapplied = append(j.unapplied, b.Offset)
		if b.Offset < j.watermark {
			c.found(KindWatermarkAhead, text(b.Offset), "the batch is not applied, but the watermark is %d", j.watermark)
		}
	}
	for i := range b.Events {
		if err := checkEvent(&b.Events[i]); err != nil {
			c.found(KindEventInvalid, text(b.Events[i].Offset), "%v", err)
		}
		if needsBytes(&b.Events[i]) && b.Events[i].Bytes == nil && (!b.Applied || c.cfg.Now().Sub(b.WallTime) < bytesKept) {
			c.found(KindEventBytesMissing, text(b.Events[i].Offset), "the %s of %s has no bytes, though its batch is younger than %s or not applied",
				b.Events[i].Kind, b.Events[i].ID, bytesKept)
		}
	}
}

// repeated reports whether the id is among those of the last batches.
func (j *journal) repeated(id string) bool {
	if j.ids[id] {
		return true
	}
	if len(j.ring) < batchIDs {
		j.ring = append(j.ring, id)
	} else {
		delete(j.ids, j.ring[j.next])
		j.ring[j.next] = id
		j.next = (j.next + 1) % batchIDs
	}
	j.ids[id] = true
	return false
}

// needsBytes reports whether the event is about bytes.
func needsBytes(e *archive.Event) bool { return e.Signed() || e.Kind == archive.KindObserved }

// checkEvent compares what an event says with its bytes.
func checkEvent(e *archive.Event) error {
	if e.Kind < archive.KindQuorum || e.Kind > archive.KindVanished {
		return fmt.Errorf("%s is no kind of event", e.Kind)
	}
	if e.Bytes == nil {
		return nil
	}
	if !needsBytes(e) {
		return fmt.Errorf("a %s without guardian set has bytes", e.Kind)
	}
	if e.Signed() {
		v, err := vaa.Parse(e.Bytes)
		if err != nil {
			return err
		}
		if v.GuardianSetIndex != *e.GuardianSetIndex {
			return fmt.Errorf("guardian set %d, but the VAA names %d", *e.GuardianSetIndex, v.GuardianSetIndex)
		}
	}
	b, err := e.Body()
	if err != nil {
		return err
	}
	switch {
	case b.MessageID() != e.ID:
		return fmt.Errorf("message %s, but its bytes are of %s", e.ID, b.MessageID())
	case b.Digest() != e.Digest:
		return fmt.Errorf("digest %s, but that of its bytes is %s", e.Digest, b.Digest())
	case !b.Time().Equal(e.Time):
		return fmt.Errorf("time %s, but that of its bytes is %s", rfc3339(e.Time), rfc3339(b.Time()))
	}
	return nil
}

func text(o archive.Offset) string { return strconv.FormatUint(uint64(o), 10) }

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
