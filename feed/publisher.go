package feed

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
)

// Window is how much of the journal's past the stream holds. What is older is
// trimmed and can be read from the journal.
const Window = 24 * time.Hour

// Journal is the part of archive.Journal that the feed reads.
type Journal interface {
	Batches(ctx context.Context, from archive.Offset) iter.Seq2[archive.Batch, error]
	Watermark(ctx context.Context) (archive.Offset, error)
}

// Stream is the stream of one network. After any error the outcome is unknown,
// and the request may still land much later.
type Stream interface {
	// Last returns the newest entry, the zero Item when there is none.
	Last(ctx context.Context) (Item, error)

	// Append adds items (at least one, ids ascending) if the newest entry is still
	// last; if last is the zero Item, if there is none. It returns what is the
	// newest entry then: the last of items, or another if it added nothing. A
	// repetition of what had succeeded adds nothing and returns the same.
	Append(ctx context.Context, last Item, items []Item) (Item, error)

	// Delete removes the whole stream if its newest entry is still last, and
	// returns what is the newest entry then: the zero Item if it did.
	Delete(ctx context.Context, last Item) (Item, error)

	// Trim removes entries of before a time, and the oldest beyond maxEntries when
	// that is positive, but never the newest. It may stop early; it returns how
	// many it removed, 0 when nothing is left to remove.
	Trim(ctx context.Context, before time.Time, maxEntries int64) (int64, error)
}

// Lock elects the active one of several publishers.
type Lock interface {
	// Hold takes or renews the lock and reports whether it is held.
	Hold(ctx context.Context) (bool, error)
	// Release gives the lock up if it is held.
	Release(ctx context.Context) error
}

// PublisherConfig is what a publisher is made of.
type PublisherConfig struct {
	Journal Journal
	Store   archive.StoreInfo // the store that Journal is of
	Stream  Stream
	// Lock lets one publisher work while others stand by; nil lets this one
	// always work. It saves work only: any number of publishers do no harm.
	Lock       Lock
	Now        func() time.Time      // nil: time.Now
	Logger     *zap.Logger           // nil: none
	Registerer prometheus.Registerer // nil: metrics are not collected
	// MaxBytes bounds the stream's data, approximately. 0: 1 GiB.
	MaxBytes int64
	// MaxEntries bounds what one step appends. 0: 200.
	MaxEntries int
}

const (
	defaultMaxBytes   = 1 << 30
	defaultMaxEntries = 200
	maxStepBytes      = 4 << 20 // VAA bytes that one step appends; one larger event goes alone
	maxStepBatches    = 100     // batches that one step reads: a run of history is one entry
	minSizeSample     = 100     // entries seen before their mean size means anything
	maxSizeSample     = 1 << 16 // entries after which the older half counts for less
)

// NewerEpochError says that the stream is of a later history than the store: the
// store was restored or moved, and this process has the old one open.
type NewerEpochError struct {
	Stream, Store uint64 // epochs
}

func (e *NewerEpochError) Error() string {
	return fmt.Sprintf("the stream is of epoch %d and this store of epoch %d: it was restored or replaced, open the newest one", e.Stream, e.Store)
}

// Publisher copies applied batches of the journal into the stream, in order and
// without a hole. Run, PublishOnce and Trim are for one goroutine at a time; Wake
// and WaitCaughtUp may be called by any.
type Publisher struct {
	cfg     PublisherConfig
	log     *zap.Logger
	metrics *publisherMetrics
	wake    chan struct{}

	// Of the goroutine that publishes.
	checked Item           // an entry that is known to be the journal's
	start   archive.Offset // where the window starts, while the stream is empty
	sizes   sizes
	held    bool // the lock, as far as known
	heldAt  time.Time
	trimAt  time.Time
	failing bool

	mu        sync.Mutex
	published archive.Offset
	changed   chan struct{} // closed when published changes
}

// sizes is a mean of entry sizes in which old ones count for less.
type sizes struct{ entries, bytes int64 }

func (s *sizes) add(item Item) {
	if s.entries >= maxSizeSample {
		s.entries, s.bytes = s.entries/2, s.bytes/2
	}
	s.entries, s.bytes = s.entries+1, s.bytes+int64(len(item.Data))
}

// NewPublisher returns a publisher. Errors: a missing part, or metrics that the
// registerer refuses.
func NewPublisher(cfg PublisherConfig) (*Publisher, error) {
	switch {
	case cfg.Journal == nil || cfg.Stream == nil:
		return nil, fmt.Errorf("new publisher: needs a journal and a stream")
	case cfg.Store.Epoch == 0 || cfg.Store.Network == 0:
		return nil, fmt.Errorf("new publisher: the store has no epoch or no network")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, defaultMaxBytes)
	cfg.MaxEntries = cmp.Or(cfg.MaxEntries, defaultMaxEntries)
	metrics, err := newPublisherMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("new publisher: %w", err)
	}
	return &Publisher{
		cfg: cfg, log: cfg.Logger, metrics: metrics,
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}, nil
}

// PublishOnce takes one step: it reads the stream's last entry and appends what
// the journal has applied after it, or replaces a stream that is not of this
// journal. It reports whether there may be more to do at once. Errors:
// NewerEpochError when this store is not the newest; any other may be retried.
func (p *Publisher) PublishOnce(ctx context.Context) (progress bool, err error) {
	progress, err = p.publish(ctx)
	if err != nil {
		p.metrics.errors.Inc()
	}
	return progress, err
}

func (p *Publisher) publish(ctx context.Context) (bool, error) {
	last, err := p.cfg.Stream.Last(ctx)
	if err != nil {
		return false, err
	}
	if own, err := p.isOwn(ctx, last); err != nil {
		return false, err
	} else if !own {
		return true, p.replace(ctx, last)
	}
	from := last.ID.Offset + 1
	if last == (Item{}) {
		if from, err = p.windowStart(ctx); err != nil {
			return false, err
		}
	} else {
		p.start = 0
	}
	p.observe(from - 1)
	entries, err := p.collect(ctx, from)
	if err != nil || len(entries) == 0 {
		return false, err
	}
	items, err := encode(last, entries)
	if err != nil {
		return false, err
	}
	// Here the batches are durable and applied, and the stream lacks them. After a
	// crash any publisher finds the same end of the stream and appends the same
	// entries. If this request lands when others have appended, the comparison
	// fails and it adds nothing.
	found, err := p.cfg.Stream.Append(ctx, last, items)
	if err != nil {
		return false, err
	}
	if found != items[len(items)-1] {
		p.metrics.compareLost.Inc()
		return true, nil
	}
	p.checked, p.start = found, 0
	for i := range entries {
		p.sizes.add(items[i])
		p.metrics.published.WithLabelValues(kindOf(&entries[i])).Inc()
	}
	p.observe(found.ID.Offset)
	return true, nil
}

// isOwn reports whether the stream's last entry is this journal's: of its epoch
// and the very event (or run of history) that the journal has at its offset.
func (p *Publisher) isOwn(ctx context.Context, last Item) (bool, error) {
	if last == (Item{}) || last == p.checked {
		return true, nil
	}
	if epoch := epochOf(last); epoch > p.cfg.Store.Epoch {
		return false, &NewerEpochError{Stream: epoch, Store: p.cfg.Store.Epoch}
	}
	entry, err := ParseEntry(last)
	if err != nil || entry.Epoch < p.cfg.Store.Epoch {
		return false, nil // not what this program writes for this history
	}
	for b, err := range p.cfg.Journal.Batches(ctx, last.ID.Offset) {
		if err != nil {
			return false, err
		}
		if entry.isFrom(&b, p.cfg.Store) {
			p.checked = last
			return true, nil
		}
		break
	}
	return false, nil
}

// replace deletes a foreign stream. The next step fills it.
func (p *Publisher) replace(ctx context.Context, last Item) error {
	// After a crash right behind the deletion the stream is empty, and whoever
	// publishes next fills it. A deletion that lands late finds another last entry
	// and does nothing.
	found, err := p.cfg.Stream.Delete(ctx, last)
	if err != nil {
		return err
	}
	if found != (Item{}) {
		p.metrics.compareLost.Inc()
		return nil
	}
	p.metrics.replaced.Inc()
	p.log.Warn("replaced a stream that is not of this journal",
		zap.Stringer("last", last.ID), zap.Uint64("streamEpoch", epochOf(last)), zap.Uint64("storeEpoch", p.cfg.Store.Epoch))
	return nil
}

// windowStart returns the offset of the first batch that is not older than the
// window, or the one after the journal's end. It is searched for once while the
// stream stays empty.
func (p *Publisher) windowStart(ctx context.Context) (archive.Offset, error) {
	if p.start != 0 {
		return p.start, nil
	}
	oldest := p.cfg.Now().Add(-Window)
	// Wall times do not decrease along the journal, so what is true of an offset is
	// true of all after it.
	within := func(o archive.Offset) (bool, error) {
		for b, err := range p.cfg.Journal.Batches(ctx, o) {
			return err == nil && !b.WallTime.Before(oldest), err
		}
		return true, nil // at or after the journal's end
	}
	low := archive.Offset(0) // before the window
	high, err := p.cfg.Journal.Watermark(ctx)
	if err != nil {
		return 0, err
	}
	high = max(high, 1)
	for step := archive.Offset(1); ; step *= 2 {
		ok, err := within(high)
		if err != nil {
			return 0, err
		}
		if ok || high == math.MaxUint64 {
			break
		}
		low = high
		high += min(step, math.MaxUint64-high)
	}
	for high-low > 1 {
		mid := low + (high-low)/2
		ok, err := within(mid)
		if err != nil {
			return 0, err
		}
		if ok {
			high = mid
		} else {
			low = mid
		}
	}
	p.start = high
	return high, nil
}

// collect returns the entries of consecutive applied batches from an offset on,
// within the bounds of one step.
func (p *Publisher) collect(ctx context.Context, from archive.Offset) ([]Entry, error) {
	var entries []Entry
	next, batches := from, 0
	for b, err := range p.cfg.Journal.Batches(ctx, from) {
		if err != nil {
			return nil, err
		}
		if b.Offset > next || b.End() <= next {
			break // a hole: a scan is not a snapshot
		}
		p.metrics.head.Set(float64(b.End() - 1))
		if !b.Applied {
			break
		}
		if entries, err = appendEntries(entries, &b, next, p.cfg.Store); err != nil {
			return nil, err
		}
		next, batches = b.End(), batches+1
		if n := p.cut(entries); n < len(entries) {
			return entries[:n], nil
		}
		if batches == maxStepBatches {
			break
		}
	}
	return entries, nil
}

// cut returns how many of the entries one step may append, at least one of them.
func (p *Publisher) cut(entries []Entry) int {
	bytes := 0
	for i := range entries {
		if event := entries[i].Event; event != nil {
			bytes += len(event.Bytes)
		}
		if i == p.cfg.MaxEntries || i > 0 && bytes > maxStepBytes {
			return i
		}
	}
	return len(entries)
}

// encode returns the entries as items to follow last.
func encode(last Item, entries []Entry) ([]Item, error) {
	items := make([]Item, len(entries))
	for i := range entries {
		var err error
		if items[i], err = entries[i].Item(); err != nil {
			return nil, err
		}
		if items[i].ID.Compare(last.ID) <= 0 {
			return nil, fmt.Errorf("journal at offset %d: its wall time is before that of its predecessor (ids %s and %s)",
				items[i].ID.Offset, last.ID, items[i].ID)
		}
		last = items[i]
	}
	return items, nil
}

// Trim drops from the stream what is older than the window, and the oldest
// entries beyond MaxBytes as estimated from the mean size of those published
// lately. It returns how many went; when that is not 0 there may be more.
func (p *Publisher) Trim(ctx context.Context) (int64, error) {
	var maxEntries int64
	if p.sizes.entries >= minSizeSample {
		maxEntries = max(p.cfg.MaxBytes/max(p.sizes.bytes/p.sizes.entries, 1), 1)
	}
	n, err := p.cfg.Stream.Trim(ctx, p.cfg.Now().Add(-Window), maxEntries)
	p.metrics.trimmed.Add(float64(n))
	return n, err
}
