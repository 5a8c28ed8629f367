package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/ingest"
)

// source delivers items in an order. One that redelivers keeps its position in
// the archive; of one that does not, each item comes once.
type source struct {
	name       string
	class      archive.Class
	items      []ingest.Item
	redelivers bool
	next       int            // of one that does not redeliver
	settled    map[int]settle // items that the source was told it may forget
}

// settle is what a source was told of an item.
type settle struct {
	outcome archive.Outcome
	early   bool // before the outcome was known
}

// cast draws the sources and the processes.
func (w *world) cast() {
	first, n := w.r.IntN(len(w.universe.messages)), 1+w.r.IntN(5)
	add := func(name string, class archive.Class, redelivers bool) *source {
		s := &source{name: name, class: class, redelivers: redelivers, settled: map[int]settle{}}
		for range 4 + w.r.IntN(18) {
			s.items = append(s.items, w.universe.draw(w.r, first, n, name))
		}
		w.sources = append(w.sources, s)
		return s
	}
	file, backfill := add("file", archive.ClassLive, true), add("backfill", archive.ClassHistory, true)
	w.add("file-1", false, file.follow)
	w.add("file-2", false, file.follow) // believes that it alone reads the source
	w.add("backfill", false, backfill.follow)
	for i := range 2 {
		name := fmt.Sprintf("spy-%d", i)
		w.add(name, false, add(name, archive.ClassLive, false).spy)
		w.add(fmt.Sprintf("publisher-%d", i), true, w.publisher)
		d := &reader{name: fmt.Sprintf("reader-%d", i)}
		w.readers = append(w.readers, d)
		w.add(d.name, true, func(a *actor) {
			for {
				a.park()
				d.read(w)
			}
		})
	}
	w.add("applier", true, applier)
	if w.moves && w.chance(0.5) {
		w.add("mover", true, w.mover)
	}
}

func (a *actor) writer(p *process) *ingest.Writer {
	return ingest.NewWriter(ingest.WriterConfig{
		Store: p, Now: a.now, NewID: a.newID,
		Pause: func(ctx context.Context, _ time.Duration) error { a.park(); return ctx.Err() },
	})
}

// write hands items over and takes note of what the source may forget.
func (s *source) write(a *actor, w *ingest.Writer, at, n int) error {
	early := a.w.options.off == ackedEarly && !s.redelivers
	for i := at; early && i < at+n; i++ {
		s.settled[i] = settle{early: true}
	}
	results, err := w.Write(context.Background(), s.class, s.items[at:at+n])
	for i, r := range results {
		if !early && r.Outcome != archive.OutcomeError && r.Outcome != 0 {
			s.settled[at+i] = settle{outcome: r.Outcome}
		}
		if r.Outcome == 0 {
			a.w.problem("%s: item %d has no outcome, and the error is %v", s.name, at+i, err)
		}
	}
	return err
}

// follow reads a source that redelivers, from its cursor on, to its end.
func (s *source) follow(a *actor) {
	ctx := context.Background()
	for {
		p := a.open()
		w := a.writer(p)
		for tries := 0; !a.w.calm || tries < 100; tries++ {
			position, err := p.Cursor(ctx, s.name)
			if err != nil {
				continue
			}
			at := int(position)
			if at == len(s.items) {
				return
			}
			n := min(1+a.w.r.IntN(4), len(s.items)-at)
			if err := s.write(a, w, at, n); errors.Is(err, archive.ErrSealed) {
				break
			} else if err != nil {
				continue
			}
			// CRASH HERE: the items are settled and the cursor does not say so. They
			// come again.
			_ = p.CommitCursor(ctx, s.name, position, position+uint64(n)) // looked at again
		}
		if a.w.calm {
			a.w.problem("%s: does not come to its end", s.name)
			return
		}
	}
}

// spy is fed by a source that delivers once. What it could not settle it tries
// again while it lives.
func (s *source) spy(a *actor) {
	for s.next < len(s.items) {
		p := a.open()
		w := a.writer(p)
		for s.next < len(s.items) {
			at := s.next
			n := min(1+a.w.r.IntN(3), len(s.items)-at)
			s.next += n
			var err error
			for range 6 {
				if err = s.write(a, w, at, n); err == nil {
					break
				}
				if errors.Is(err, archive.ErrSealed) {
					p = a.open()
					w = a.writer(p)
				}
			}
		}
	}
}

// applier repairs what others left, and raises the watermark.
func applier(a *actor) {
	ctx := context.Background()
	for {
		p := a.open()
		w := a.writer(p)
		for range 8 {
			a.park()
			switch a.w.r.IntN(3) {
			case 0:
				_ = w.ApplyPending(ctx) // tried again
			case 1:
				_ = w.Sweep(ctx)
			case 2:
				raise(ctx, p)
			}
		}
	}
}

// raise raises the watermark to the first batch that is not applied.
func raise(ctx context.Context, p *process) {
	w := archive.Offset(1)
	for b, err := range p.Batches(ctx, 1) {
		if err != nil || !b.Applied {
			break
		}
		w = b.End()
	}
	_ = p.RaiseWatermark(ctx, w)
}

// publisher publishes until its store is replaced, and then from the next.
func (w *world) publisher(a *actor) {
	ctx := context.Background()
	for {
		pub := a.publisher()
		for {
			a.park()
			if _, err := pub.PublishOnce(ctx); err != nil {
				if _, newer := errors.AsType[*feed.NewerEpochError](err); newer {
					break
				}
			}
			if w.chance(0.05) {
				_, _ = pub.Trim(ctx)
			}
		}
	}
}

func (a *actor) publisher() *feed.Publisher {
	p := a.open()
	p.publisher = true
	info := p.g.info
	if a.w.options.off == anyEpoch {
		info.Epoch = 1
	}
	pub, err := feed.NewPublisher(feed.PublisherConfig{
		Journal: p, Store: info, Stream: &stream{a: a, m: a.w.redis, epoch: info.Epoch}, Now: a.now,
		MaxEntries: 1 + a.w.r.IntN(8),
	})
	if err != nil {
		panic(err) // impossible: nothing is missing
	}
	return pub
}
