package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/vaa"
)

// quiesce ends all trouble: what is still under way lands or never does, sources
// that redeliver do so to their end, what is not applied is, and the stream is
// filled.
func (w *world) quiesce() error {
	w.calm = true
	for len(w.pending) > 0 {
		if i := w.r.IntN(len(w.pending)); w.chance(0.7) {
			w.land(i)
		} else {
			w.pending = slices.Delete(w.pending, i, i+1)
		}
	}
	ctx := context.Background()
	last := &actor{w: w, name: "last"}
	for _, s := range w.sources {
		if s.redelivers {
			s.follow(last)
		}
	}
	p := last.open()
	if err := last.writer(p).ApplyPending(ctx); err != nil {
		return err
	}
	for range 2 { // the second finds nothing to do
		pub := last.publisher()
		for progress := true; progress && !w.spent(); {
			var err error
			if progress, err = pub.PublishOnce(ctx); err != nil {
				return fmt.Errorf("publish: %w", err)
			}
		}
	}
	for _, d := range w.readers {
		d.read(w)
	}
	return nil
}

func (w *world) newest() *generation { return w.generations[len(w.generations)-1] }

// check holds what is left against the journal.
func (w *world) check() []error {
	ctx := context.Background()
	for _, g := range w.generations {
		if m, ok := g.store.(*memarchive.Store); ok {
			for _, err := range m.Violations() {
				w.problem("generation %d: %w", g.info.Generation, err)
			}
		}
	}
	g := w.newest()
	var journal []archive.Batch
	for b, err := range g.store.Batches(ctx, 1) {
		if err != nil {
			w.problem("read the journal: %w", err)
			return w.problems
		}
		if !b.Applied {
			w.problem("the batch at offset %d is not applied", b.Offset)
		}
		journal = append(journal, b)
	}
	w.checkLegal(journal)
	p, err := project(journal)
	if err != nil {
		w.problem("project: %w", err)
		return w.problems
	}
	w.checkRows(ctx, g, p)
	w.checkIndex(ctx, g, p)
	w.checkSettled(ctx, g, journal)
	w.checkStream(journal)
	return w.problems
}

// checkLegal holds the journal against the reference model, whoever kept it.
func (w *world) checkLegal(journal []archive.Batch) {
	m := memarchive.New(network, func() time.Time { return w.now })
	for _, b := range journal {
		if err := m.Append(context.Background(), b); err != nil {
			w.problem("the journal: %w", err)
			return
		}
	}
	seen := map[string]archive.Offset{}
	for _, b := range journal {
		for i := range b.Events {
			e := &b.Events[i]
			if !e.Signed() {
				continue
			}
			if *e.GuardianSetIndex == expiredSet && b.Class == archive.ClassLive {
				w.problem("offset %d is live, but signed by an expired set", e.Offset)
			}
			key := fmt.Sprint(e.ID, e.Digest, *e.GuardianSetIndex)
			if o, ok := seen[key]; ok {
				w.problem("offsets %d and %d are the same VAA", o, e.Offset)
			}
			seen[key] = e.Offset
		}
	}
}

func (w *world) checkRows(ctx context.Context, g *generation, p *projection) {
	rows := map[vaa.MessageID]archive.Record{}
	for r, err := range g.store.Scan(ctx, archive.Range{}, archive.Columns{}) {
		if err != nil {
			w.problem("scan: %w", err)
			return
		}
		rows[r.ID] = r
	}
	if w.off == lastApplied {
		rows = g.model.all()
	}
	for id, r := range rows {
		m := p.rows[id]
		if m == nil {
			w.problem("row %s: not in the journal", id)
			continue
		}
		if diff := cmp.Diff(comparable(m.Record), comparable(r)); diff != "" {
			w.problem("row %s is not the journal's projection (-journal +row):\n%s\nits events:\n%s", id, diff, m.events)
		}
	}
	for id := range p.rows {
		if _, ok := rows[id]; !ok {
			w.problem("row %s is missing", id)
		}
	}
}

// checkIndex asks for every key that the journal makes, and for all times.
func (w *world) checkIndex(ctx context.Context, g *generation, p *projection) {
	for _, key := range slices.Sorted(maps.Keys(p.index)) {
		id, err := rowkey.Indexed(key)
		if err != nil {
			w.problem("index: %w", err)
			continue
		}
		l := archive.Lookup{By: archive.ByTime}
		if kind, rest, _ := strings.Cut(key, ":"); kind != "time" {
			l.By, l.Key = archive.ByDigest, rest[:64]
			switch kind {
			case "tx":
				l.By = archive.ByTx
			case "to":
				l.By = archive.ByRecipient
			}
		}
		want := slices.SortedFunc(maps.Keys(p.index[key]), func(a, b vaa.Digest) int { return strings.Compare(a.String(), b.String()) })
		ok := false
		for ref, err := range g.store.Lookup(ctx, l) {
			if err != nil {
				w.problem("look up %s: %w", key, err)
			}
			if w.off == oneDigest {
				ref.Digests = []vaa.Digest{g.model.index[key]}
			}
			ok = ok || ref.ID == id && slices.Equal(ref.Digests, want)
		}
		if !ok {
			w.problem("index row %s does not say %v", key, want)
		}
	}
	n, times := 0, 0
	for range g.store.Lookup(ctx, archive.Lookup{By: archive.ByTime}) {
		n++
	}
	for key := range p.index {
		if strings.HasPrefix(key, "time:") {
			times++
		}
	}
	if n != times {
		w.problem("the index has %d times, the journal %d", n, times)
	}
}

// checkSettled looks for every item that a source was told it may forget.
func (w *world) checkSettled(ctx context.Context, g *generation, journal []archive.Batch) {
	var events []archive.Event
	for _, b := range journal {
		events = append(events, b.Events...)
	}
	for _, s := range w.sources {
		for i, settled := range s.settled {
			if settled.outcome == archive.OutcomeInvalid {
				continue
			}
			if err := w.there(ctx, g, events, &s.items[i], settled); err != nil {
				w.problem("%s: item %d was settled as %s, but %w", s.name, i, settled.outcome, err)
			}
		}
		if n := len(s.settled); s.redelivers && n < len(s.items) {
			w.problem("%s: %d of %d items were settled", s.name, n, len(s.items))
		}
	}
}

var errMissing = errors.New("it is missing")

// checkStream holds the stream's end against the journal: live events one by one,
// history as skipped runs, from the beginning of the window at the latest.
func (w *world) checkStream(journal []archive.Batch) {
	live := map[archive.Offset]int{}
	next := archive.Offset(0)
	for i := range w.redis.items {
		e := &w.redis.items[i].Entry
		if epoch := w.newest().info.Epoch; e.Epoch != epoch && w.off != anyEpoch {
			w.problem("stream: entry %s is of epoch %d, not %d", e.ID, e.Epoch, epoch)
		}
		if next == 0 {
			next = e.From
		}
		if e.From != next {
			w.problem("stream: offset %d is followed by %d", next-1, e.From)
		}
		if next = e.ID.Offset + 1; e.Event != nil {
			live[e.ID.Offset]++
		}
	}
	oldest, first := w.now.Add(-feed.Window+time.Minute), archive.Offset(0)
	if len(w.redis.items) > 0 {
		first = w.redis.items[0].From
	}
	for _, b := range journal {
		for i := range b.Events {
			o := b.Offset + archive.Offset(i)
			due := first != 0 && o >= first
			switch {
			case !due && b.WallTime.After(oldest):
				w.problem("stream: offset %d is in the window and missing", o)
			case due && (live[o] == 1) != (b.Class == archive.ClassLive):
				w.problem("stream: offset %d of class %s is there %d times", o, b.Class, live[o])
			}
			for _, d := range w.readers {
				if d.epoch == w.newest().info.Epoch && o >= d.first && o <= d.last && (d.live[o] == 1) != (b.Class == archive.ClassLive) {
					w.problem("%s: offset %d of class %s came %d times", d.name, o, b.Class, d.live[o])
				}
			}
		}
		if b.End() > next && b.WallTime.After(oldest) {
			w.problem("stream: ends before offset %d", b.Offset)
		}
	}
}
