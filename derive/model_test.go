package derive_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/derive"
)

// TestModel runs random histories with two consumers that fail at every step, in each
// other's midst. Buckets are what the journal says in the end, however it was counted.
func TestModel(t *testing.T) {
	t.Parallel()
	var seen struct{ moved, conflicts, resigned, vanished, both int }
	for seed := range uint64(40) {
		w := newWorld(t, seed)
		f := &faulty{Store: w.store, r: rand.New(rand.NewPCG(seed, 2)), faults: 2}
		one, two := newConsumer(t, f), newConsumer(t, f)
		f.act = func() {
			if w.r.IntN(2) == 0 {
				w.deliver()
			}
			tolerate(t, two)
			seen.both++
		}
		for range 40 {
			switch w.r.IntN(3) {
			case 0:
				w.deliver()
			default:
				tolerate(t, one)
			}
		}
		f.faults = 0
		catchUp(t, one)
		for len(f.late) > 0 {
			f.late[0]()
			f.late = f.late[1:]
		}
		f.act = nil
		catchUp(t, two)
		want := w.counted()
		if got := stored(t, w.store, 0); len(got) != len(want) {
			t.Logf("seed %d", seed)
			diff(t, "buckets", got, want)
		} else {
			for k := range want {
				if got[k] != want[k] {
					t.Fatalf("seed %d: bucket %s: %+v, want %+v", seed, k, got[k], want[k])
				}
			}
		}
		verified(t, w, seed)
		for b, err := range w.store.Batches(t.Context(), 1) {
			must(t, err)
			for i := range b.Events {
				e := &b.Events[i]
				after, err := e.After()
				must(t, err)
				if e.Before != nil && !e.Before.Time.Equal(after.Time) {
					seen.moved++
				}
				switch e.Kind {
				case archive.KindConflict:
					seen.conflicts++
				case archive.KindResigned:
					seen.resigned++
				case archive.KindVanished:
					seen.vanished++
				}
			}
		}
		for _, err := range w.store.Violations() {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if seen.moved == 0 || seen.conflicts == 0 || seen.resigned == 0 || seen.vanished == 0 || seen.both == 0 {
		t.Errorf("the histories lack something: %+v", seen)
	}
}

// tolerate takes a turn that may fail by a fault.
func tolerate(t *testing.T, c *derive.Consumer) {
	t.Helper()
	if _, err := c.Turn(t.Context()); err != nil && !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
}

func verified(t *testing.T, w *world, seed uint64) {
	t.Helper()
	v, err := derive.Verify(t.Context(), w.store)
	must(t, err)
	if v.DifferencesTotal != 0 || v.Rows != len(w.rows()) {
		t.Fatalf("seed %d: verified %d rows of %d, %d differences: %+v", seed, v.Rows, len(w.rows()), v.DifferencesTotal, v.Differences)
	}
}

func (w *world) rows() (all []archive.Record) {
	for r, err := range w.store.Scan(w.t.Context(), archive.Range{}, archive.Columns{}) {
		must(w.t, err)
		all = append(all, r)
	}
	return all
}

// TestStandingIsWhatRowsSay: what events say of before and after is what the row
// says that they make.
func TestStandingIsWhatRowsSay(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		w := newWorld(t, seed+1000)
		for range 30 {
			w.deliver()
		}
		rows := map[string]*archive.Record{}
		for b, err := range w.store.Batches(t.Context(), 1) {
			must(t, err)
			for _, e := range b.Events {
				r := rows[e.ID.String()]
				if r == nil {
					r = &archive.Record{ID: e.ID}
					rows[e.ID.String()] = r
				}
				diff(t, "before", e.Before, r.Standing())
				after, err := e.After()
				must(t, err)
				must(t, r.Apply(e))
				diff(t, e.Kind.String(), after, r.Standing())
			}
		}
	}
}

// TestRebuildBesideConsumers rebuilds and verifies while messages come in and are
// counted, with wrong buckets before, and with faults in all of it.
func TestRebuildBesideConsumers(t *testing.T) {
	t.Parallel()
	finished, failed := 0, 0
	for seed := range uint64(30) {
		w := newWorld(t, seed+2000)
		f := &faulty{Store: w.store, r: rand.New(rand.NewPCG(seed, 3)), faults: int(seed%2) * 40}
		c := newConsumer(t, f)
		for range 10 {
			w.deliver()
			tolerate(t, c)
		}
		wrong := archive.Bucket{
			BucketKey: archive.KeyOf(archive.Period5Min, archive.Scope{Level: archive.LevelChain, Chain: 3}, 600), Through: 1,
			Counts: archive.Counts{Messages: 7},
		}
		must(t, w.store.PutBuckets(t.Context(), 0, []archive.Bucket{wrong}))
		s := &busy{faulty: f, act: func() {
			w.deliver()
			tolerate(t, c)
		}}
		for {
			_, err := derive.Rebuild(t.Context(), s, func(context.Context) { s.act() })
			if err == nil {
				break
			}
			if failed++; !errors.Is(err, errCrash) && !errors.Is(err, archive.ErrCursorMoved) {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		finished++
		f.faults = 0
		v, err := derive.Verify(t.Context(), s)
		must(t, err)
		if v.DifferencesTotal != 0 || v.Generation == 0 {
			t.Fatalf("seed %d: %+v", seed, v)
		}
		for _, land := range f.late {
			land()
		}
		catchUp(t, c)
		diff(t, "buckets", stored(t, w.store, v.Generation), w.counted())
		diff(t, "the generations before", stored(t, w.store, 0), map[string]archive.Counts{})
	}
	if failed == 0 || finished != 30 {
		t.Errorf("%d rebuilds finished and %d failed", finished, failed)
	}
}

// busy is a store in which others act while rows and buckets are read.
type busy struct {
	*faulty
	act func()
}

func (b *busy) Scan(ctx context.Context, r archive.Range, c archive.Columns) iter.Seq2[archive.Record, error] {
	r.Limit = 3 // small pages, so that much happens between them
	inner := b.faulty.Scan(ctx, r, c)
	return func(yield func(archive.Record, error) bool) {
		for row, err := range inner {
			if b.r.IntN(4) == 0 {
				b.act()
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

func (b *busy) ScanBuckets(ctx context.Context, generation uint64, start, end string, limit int) iter.Seq2[archive.Bucket, error] {
	if b.r.IntN(4) == 0 {
		b.act()
	}
	inner := b.faulty.ScanBuckets(ctx, generation, start, end, limit)
	return func(yield func(archive.Bucket, error) bool) {
		for bucket, err := range inner {
			if b.r.IntN(20) == 0 {
				b.act()
			}
			if !yield(bucket, err) {
				return
			}
		}
	}
}
