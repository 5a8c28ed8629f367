package fsck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
)

const (
	// windowSlack allows for clocks that differ, of publishers and of the check.
	windowSlack = time.Minute
	// smallStream is what no publisher trims: half of the bytes that one lets a
	// stream have.
	smallStream = 512 << 20
	// entryBytes is what an entry has beside its VAA in base64, at least.
	entryBytes = 300
)

// checkStream compares the stream's entries with the journal. The stream may lag
// behind it as long as there is time to wait.
func (c *checker) checkStream(ctx context.Context) error {
	before := c.report
	for {
		next, err := c.readStream(ctx)
		if err != nil || next >= c.publishable {
			return err
		}
		if next == 0 { // empty, as it is when all is older than the window
			if recent, err := c.recent(ctx, c.publishable-1); err != nil || !recent {
				return err
			}
		}
		if c.report.FindingsTotal > before.FindingsTotal || !c.pause(ctx) {
			c.found(KindStreamBehind, text(next), "the stream ends before this offset, the applied journal before %d", c.publishable)
			return ctx.Err()
		}
		c.report = before // it is read anew
	}
}

// recent reports whether the batch that holds an offset is of the stream's window.
func (c *checker) recent(ctx context.Context, o archive.Offset) (bool, error) {
	journal := &cursor{c: c}
	defer journal.close()
	if ok, err := journal.at(ctx, o); err != nil || !ok {
		return false, err
	}
	return c.cfg.Now().Sub(journal.batch.WallTime) <= feed.Window-windowSlack, nil
}

// readStream reads the stream once and returns the offset behind its last entry, 0
// when it is empty.
func (c *checker) readStream(ctx context.Context) (archive.Offset, error) {
	entries, bytes, first, next := 0, 0, archive.Offset(0), archive.Offset(0)
	c.report.StreamEntries = &entries
	journal := &cursor{c: c}
	defer journal.close()
	for e, err := range c.cfg.Window(ctx) {
		if err != nil && e.ID == (feed.ID{}) {
			return next, err
		}
		entries++
		where := e.ID.String()
		if err != nil {
			c.found(KindStreamEntryUnreadable, where, "%v", err)
			next = max(next, e.ID.Offset+1)
			continue
		}
		if e.Event != nil {
			bytes += entryBytes + len(e.Event.Bytes)*4/3
		}
		foreign := e.Epoch != c.info.Epoch || e.Event != nil && e.Network != c.info.Network
		switch {
		case foreign:
			c.found(KindStreamForeign, where, "it is of another history than epoch %d of %s", c.info.Epoch, c.info.Network)
		case next == 0:
			first = e.From
		case e.From > next:
			c.found(KindStreamHole, where, "offsets %d to %d are missing before it", next, e.From-1)
		case e.From < next:
			c.found(KindStreamOverlap, where, "it begins at offset %d, which the entry before had passed", e.From)
		}
		next = max(next, e.ID.Offset+1)
		if foreign {
			continue
		}
		if kind, problem, err := journal.compare(ctx, &e); err != nil {
			return next, err
		} else if problem != "" {
			c.found(kind, where, "%s", problem)
		}
	}
	if bytes < smallStream && first > 1 {
		if recent, err := c.recent(ctx, first-1); err != nil {
			return next, err
		} else if recent {
			c.found(KindStreamStartsLate, text(first), "the events before this offset are of the last %s and not in the stream", feed.Window)
		}
	}
	return next, ctx.Err()
}

// cursor reads the journal beside the stream.
type cursor struct {
	c     *checker
	next  func() (archive.Batch, error, bool)
	stop  func()
	batch archive.Batch // the last one read
}

func (j *cursor) close() {
	if j.stop != nil {
		j.stop()
	}
	j.next, j.stop = nil, nil
}

func (j *cursor) holds(o archive.Offset) bool { return j.batch.Offset <= o && o < j.batch.End() }

// at moves to the batch that holds an offset, which mostly is this one or the next.
// It reports false when the journal has none.
func (j *cursor) at(ctx context.Context, o archive.Offset) (bool, error) {
	for j.next != nil && j.batch.End() <= o {
		b, err, ok := j.next()
		if !ok || err != nil {
			break // at its end, which may have moved since: begin anew
		}
		j.batch = b
	}
	if j.next != nil && j.holds(o) {
		return true, nil
	}
	j.close()
	j.next, j.stop = iter.Pull2(j.c.store.Batches(ctx, o))
	b, err, ok := j.next()
	if err != nil {
		if down := j.c.answers(ctx); down != nil {
			return false, errors.Join(err, down)
		}
		ok = false // found when the journal was judged
	}
	j.batch = b
	return ok && j.holds(o), ctx.Err()
}

// compare says how an entry is not what the journal has at its offsets, "" if it
// is.
func (j *cursor) compare(ctx context.Context, e *feed.Entry) (Kind, string, error) {
	for o := e.From; o <= e.ID.Offset; o = j.batch.End() {
		ok, err := j.at(ctx, o)
		if err != nil {
			return "", "", err
		}
		if !ok {
			return KindStreamAhead, fmt.Sprintf("the journal has nothing at offset %d", o), nil
		}
		if !j.batch.Applied { // when it was read, which may be a while ago
			b, ok, err := j.c.batchAt(ctx, j.batch.Offset)
			if err != nil {
				return "", "", err
			}
			if !ok || !b.Applied {
				return KindStreamEntryWrong, fmt.Sprintf("the batch at offset %d is not applied", j.batch.Offset), nil
			}
		}
		if e.Event != nil {
			return KindStreamEntryWrong, j.compareEvent(e), nil
		}
		if j.batch.Class != archive.ClassHistory {
			return KindStreamEntryWrong, fmt.Sprintf("the batch at offset %d is of class %s, but skipped", j.batch.Offset, j.batch.Class), nil
		}
	}
	if e.ID != (feed.ID{Millis: uint64(j.batch.WallTime.UnixMilli()), Offset: j.batch.End() - 1}) {
		return KindStreamEntryWrong, fmt.Sprintf("it ends with the batch at offset %d of %s, which ends at %d", j.batch.Offset, rfc3339(j.batch.WallTime), j.batch.End()-1), nil
	}
	return "", "", nil
}

func (j *cursor) compareEvent(e *feed.Entry) string {
	want, got := &j.batch.Events[e.ID.Offset-j.batch.Offset], e.Event
	switch {
	case e.ID.Millis != uint64(j.batch.WallTime.UnixMilli()) || !got.RecordedAt.Equal(j.batch.WallTime):
		return fmt.Sprintf("recorded at %s, but the batch is of %s", rfc3339(got.RecordedAt), rfc3339(j.batch.WallTime))
	case j.batch.Class != archive.ClassLive || e.Class != archive.ClassLive:
		return fmt.Sprintf("an event of class %s, in the stream %s", j.batch.Class, e.Class)
	case want.Signed() && want.Bytes != nil && !bytes.Equal(want.Bytes, got.Bytes):
		return "the bytes of its VAA are not the journal's"
	}
	a, err := json.Marshal(want)
	if err != nil {
		return err.Error()
	}
	b, err := json.Marshal(got)
	if err != nil {
		return err.Error()
	}
	if !bytes.Equal(a, b) {
		return fmt.Sprintf("the event is %s, the journal's is %s", b, a)
	}
	return ""
}
