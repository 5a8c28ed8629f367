package fsck_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/internal/fsck"
	"github.com/attestry/attestry/vaa"
)

// TestStreamDamage spoils the entries of a good stream.
func TestStreamDamage(t *testing.T) {
	w := onModel(t)
	skipped := slices.IndexFunc(w.entries, func(e feed.Entry) bool { return e.Event == nil })
	if skipped < 1 || w.entries[skipped].From == w.entries[skipped].ID.Offset {
		t.Fatal("the history has no run of several events")
	}
	change := func(i int, f func(*feed.Entry)) func([]feed.Entry) []feed.Entry {
		return func(entries []feed.Entry) []feed.Entry {
			e := entries[i]
			if e.Event != nil {
				event := *e.Event
				e.Event = &event
			}
			f(&e)
			entries[i] = e
			return entries
		}
	}
	for _, c := range []struct {
		name  string
		spoil func([]feed.Entry) []feed.Entry
		want  []fsck.Kind
	}{
		{"nothing", func(e []feed.Entry) []feed.Entry { return e }, nil},
		{"a late start", func(e []feed.Entry) []feed.Entry { return e[3:] }, []fsck.Kind{fsck.KindStreamStartsLate}},
		{"empty", func([]feed.Entry) []feed.Entry { return nil }, []fsck.Kind{fsck.KindStreamBehind}},
		{"behind", func(e []feed.Entry) []feed.Entry { return e[:len(e)-1] }, []fsck.Kind{fsck.KindStreamBehind}},
		{"a hole", func(e []feed.Entry) []feed.Entry { return slices.Delete(e, 2, 3) }, []fsck.Kind{fsck.KindStreamHole}},
		{"a repetition", func(e []feed.Entry) []feed.Entry { return slices.Insert(e, 2, e[1]) }, []fsck.Kind{fsck.KindStreamOverlap}},
		{"two runs of history that overlap", func(e []feed.Entry) []feed.Entry {
			first := e[skipped]
			first.ID = w.firstRun()
			return slices.Insert(e, skipped, first)
		}, []fsck.Kind{fsck.KindStreamOverlap}},
		{"two runs of history that follow each other", func(e []feed.Entry) []feed.Entry {
			first := e[skipped]
			first.ID = w.firstRun()
			e[skipped].From = first.ID.Offset + 1
			return slices.Insert(e, skipped, first)
		}, nil},
		{"another epoch", change(2, func(e *feed.Entry) { e.Epoch = 2 }), []fsck.Kind{fsck.KindStreamForeign}},
		{"another network", change(2, func(e *feed.Entry) { e.Network = vaa.Mainnet }), []fsck.Kind{fsck.KindStreamForeign}},
		{"another event", change(2, func(e *feed.Entry) { e.Event.Source = "other" }), []fsck.Kind{fsck.KindStreamEntryWrong}},
		{"other bytes", change(0, func(e *feed.Entry) { e.Event.Bytes = e.Event.Bytes[1:] }), []fsck.Kind{fsck.KindStreamEntryWrong}},
		{"another time", change(0, func(e *feed.Entry) { e.ID.Millis++ }), []fsck.Kind{fsck.KindStreamEntryWrong}},
		{"another class", change(0, func(e *feed.Entry) { e.Class = archive.ClassHistory }), []fsck.Kind{fsck.KindStreamEntryWrong}},
		{"live is skipped", change(0, func(e *feed.Entry) { e.Event = nil }), []fsck.Kind{fsck.KindStreamEntryWrong}},
		{"a run of history ends within a batch", func(e []feed.Entry) []feed.Entry {
			e = e[:skipped+1]
			e[skipped].ID.Offset--
			return e
		}, []fsck.Kind{fsck.KindStreamBehind, fsck.KindStreamEntryWrong}},
		{"history is sent", func(e []feed.Entry) []feed.Entry {
			event := *e[0].Event
			event.Offset = e[skipped].From
			e[skipped].Event, e[skipped].ID.Offset, e[skipped].Network = &event, e[skipped].From, network
			return e[:skipped+1]
		}, []fsck.Kind{fsck.KindStreamBehind, fsck.KindStreamEntryWrong}},
		{"ahead", func(e []feed.Entry) []feed.Entry {
			next := e[len(e)-1]
			next.From, next.ID.Offset = w.end, w.end
			return append(e, next)
		}, []fsck.Kind{fsck.KindStreamAhead}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := w.config()
			cfg.Window = windowOf(c.spoil(slices.Clone(w.entries))...)
			expect(t, run(t, cfg), c.want...)
		})
	}
}

// firstRun returns the id of an entry that skips the first batch of history only.
func (w *world) firstRun() feed.ID {
	for b, err := range w.store.Batches(w.t.Context(), w.history) {
		if err != nil {
			w.t.Fatal(err)
		}
		return feed.ID{Millis: uint64(b.WallTime.UnixMilli()), Offset: b.End() - 1}
	}
	return feed.ID{}
}

// TestStreamOfAnOldJournal: what is older than the window need not be in the
// stream.
func TestStreamOfAnOldJournal(t *testing.T) {
	w := onModel(t)
	for _, from := range []int{0, 3, len(w.entries)} {
		cfg := w.config()
		cfg.Window = windowOf(w.entries[from:]...)
		cfg.Now = func() time.Time { return time.Now().Add(feed.Window + time.Hour) }
		expect(t, run(t, cfg))
	}
}

func TestUnreadableEntries(t *testing.T) {
	w := onModel(t)
	cfg := w.config()
	bad := errors.New("cannot be read")
	cfg.Window = func(context.Context) iter.Seq2[feed.Entry, error] {
		return func(yield func(feed.Entry, error) bool) {
			for i, e := range w.entries {
				if i == 2 {
					yield(feed.Entry{ID: e.ID}, bad)
				} else {
					yield(e, nil)
				}
			}
		}
	}
	expect(t, run(t, cfg), fsck.KindStreamEntryUnreadable)

	down := errors.New("down")
	cfg.Window = func(context.Context) iter.Seq2[feed.Entry, error] {
		return func(yield func(feed.Entry, error) bool) { yield(feed.Entry{}, down) }
	}
	if _, err := fsck.Run(t.Context(), cfg); !errors.Is(err, down) {
		t.Errorf("got %v, want %v", err, down)
	}
}

// TestWaits: what comes within the time to wait is no finding.
func TestWaits(t *testing.T) {
	w := onModel(t)
	cfg := w.config()
	cfg.Wait = time.Minute
	reads := 0
	cfg.Window = func(ctx context.Context) iter.Seq2[feed.Entry, error] {
		reads++
		return windowOf(w.entries[:len(w.entries)-2+min(reads-1, 2)]...)(ctx)
	}
	r := run(t, cfg)
	expect(t, r)
	if reads != 3 || *r.StreamEntries != len(w.entries) {
		t.Errorf("%d reads, %d entries; want 3 and %d", reads, *r.StreamEntries, len(w.entries))
	}
}

// growing is a store that another writer writes to while it is checked.
type growing struct {
	*memarchive.Store
	grow func() // called once, before the rows are scanned
}

func (g *growing) Scan(ctx context.Context, r archive.Range, c archive.Columns) iter.Seq2[archive.Record, error] {
	if g.grow != nil {
		g.grow()
		g.grow = nil
	}
	return g.Store.Scan(ctx, r, c)
}

// TestBesideAWriter: what is appended and applied while the check runs is no
// finding, even without waiting.
func TestBesideAWriter(t *testing.T) {
	w := onModel(t)
	cfg := w.config()
	cfg.Window = nil
	cfg.Store = &growing{w.store.(*memarchive.Store), func() { w.more() }}
	r := run(t, cfg)
	expect(t, r)
	if r.End != w.end || r.StreamEntries != nil {
		t.Errorf("checked up to %d, want %d; entries %v, want none", r.End, w.end, r.StreamEntries)
	}
}

// TestBesideAnApplier: a batch that is not applied at first, and is while the check
// waits.
func TestBesideAnApplier(t *testing.T) {
	w := onModel(t)
	b := w.append()
	cfg := w.config()
	cfg.Window = nil
	expect(t, run(t, cfg), fsck.KindBatchNotApplied)
	cfg.Wait = time.Minute
	looks := 0
	cfg.Store = &applying{w.store.(*memarchive.Store), func(o archive.Offset) {
		if looks++; o == b.Offset && looks > 2 {
			w.apply(b)
		}
	}}
	expect(t, run(t, cfg))
}

// applying calls a function before the journal is read.
type applying struct {
	*memarchive.Store
	before func(archive.Offset)
}

func (a *applying) Batches(ctx context.Context, from archive.Offset) iter.Seq2[archive.Batch, error] {
	a.before(from)
	return a.Store.Batches(ctx, from)
}
