package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

var errReply = errors.New("no reply")

// faulty is a store whose appends go through a function.
type faulty struct {
	archive.Store
	append func(b archive.Batch) error
}

func (f *faulty) Append(_ context.Context, b archive.Batch) error { return f.append(b) }

func noPause(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func newModel(t *testing.T, now func() time.Time) *memarchive.Store {
	t.Helper()
	s := memarchive.New(vaa.Mainnet, now)
	t.Cleanup(func() {
		for _, err := range s.Violations() {
			t.Error(err)
		}
	})
	return s
}

func mustWrite(t *testing.T, w *ingest.Writer, class archive.Class, items ...ingest.Item) []archive.Outcome {
	t.Helper()
	results, err := w.Write(t.Context(), class, items)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := make([]archive.Outcome, len(results))
	for i, r := range results {
		outcomes[i] = r.Outcome
	}
	return outcomes
}

func batches(t *testing.T, s archive.Journal) []archive.Batch {
	t.Helper()
	var all []archive.Batch
	for b, err := range s.Batches(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// TestAppendFaultsInPairs lets the first two sends of a batch go wrong in every
// combination. The VAA is in the journal once, and its outcome is the one that it
// had there.
func TestAppendFaultsInPairs(t *testing.T) {
	m := newEquivocations(rand.New(rand.NewPCG(11, 1)))
	const (
		fine = iota
		notApplied
		replyLost
		takenByAnother     // by another message's batch
		takenByTheSame     // by another writer with the same item
		takenAndLost       // as takenByAnother, and the reply says nothing
		takenByTheSameLost // as takenByTheSame, and the reply says nothing
		faults
	)
	for first := range faults {
		for second := range faults {
			t.Run(fmt.Sprintf("%d then %d", first, second), func(t *testing.T) {
				store := newModel(t, time.Now)
				other := ingest.NewWriter(ingest.WriterConfig{Store: store})
				r := rand.New(rand.NewPCG(uint64(first), uint64(second)))
				sends, foreign, same := 0, 0, false
				f := &faulty{Store: store}
				f.append = func(b archive.Batch) error {
					fault := fine
					if sends < 2 {
						fault = []int{first, second}[sends]
					}
					sends++
					switch fault {
					case notApplied:
						return errReply
					case takenByAnother, takenAndLost:
						mustWrite(t, other, archive.ClassLive, newEquivocations(r).signed("a", 1))
						foreign++
					case takenByTheSame, takenByTheSameLost:
						mustWrite(t, other, archive.ClassLive, m.signed("a", 1))
						same = true
					}
					err := store.Append(t.Context(), b)
					if fault == replyLost || fault == takenAndLost || fault == takenByTheSameLost {
						return errReply
					}
					return err
				}
				w := ingest.NewWriter(ingest.WriterConfig{Store: f, Pause: noPause})
				got := mustWrite(t, w, archive.ClassLive, m.signed("a", 1))[0]
				// Where another brought the same VAA first, this one is a duplicate. It was
				// first if its lost first send had its effect.
				want := archive.OutcomeAccepted
				if same && !(first == replyLost || first == fine) {
					want = archive.OutcomeDuplicate
				}
				if got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				n, all := 0, batches(t, store)
				for _, b := range all {
					if b.Events[0].ID == m.signed("a", 1).ID {
						n++
					}
					if !b.Applied {
						t.Errorf("the batch at offset %d is not applied", b.Offset)
					}
				}
				if n != 1 || len(all) != 1+foreign {
					t.Errorf("%d batches of the VAA, %d in all; want 1 and %d", n, len(all), 1+foreign)
				}
			})
		}
	}
}

// TestAppendOutcomeStaysUnknown: nothing is settled, and neither a new attempt nor
// the old request that lands at last does harm.
func TestAppendOutcomeStaysUnknown(t *testing.T) {
	for _, landsFirst := range []bool{false, true} {
		m := newEquivocations(rand.New(rand.NewPCG(12, 1)))
		store := newModel(t, time.Now)
		var sent archive.Batch
		f := &faulty{Store: store, append: func(b archive.Batch) error { sent = b; return errReply }}
		w := ingest.NewWriter(ingest.WriterConfig{Store: f, Pause: noPause})
		items := []ingest.Item{m.signed("a", 1), m.signed("b", 2)}
		results, err := w.Write(t.Context(), archive.ClassLive, items)
		if !errors.Is(err, errReply) || results[0].Outcome != archive.OutcomeError || results[1].Outcome != archive.OutcomeError {
			t.Fatalf("got %v, %v", results, err)
		}
		want := []archive.Outcome{archive.OutcomeAccepted, archive.OutcomeConflict}
		if landsFirst {
			if err := store.Append(t.Context(), sent); err != nil {
				t.Fatal(err)
			}
			want = []archive.Outcome{archive.OutcomeDuplicate, archive.OutcomeDuplicate}
		}
		f.append = func(b archive.Batch) error { return store.Append(t.Context(), b) }
		if diff := cmp.Diff(want, mustWrite(t, w, archive.ClassLive, items...)); diff != "" {
			t.Errorf("lands first %t (-want +got):\n%s", landsFirst, diff)
		}
		if err := store.Append(t.Context(), sent); !errors.Is(err, archive.ErrOffsetTaken) {
			t.Errorf("the late request: got %v, want %v", err, archive.ErrOffsetTaken)
		}
		if n := len(batches(t, store)); n != 1 {
			t.Errorf("%d batches, want 1", n)
		}
	}
}

// TestOwnEarlierBatch: a batch that this writer gave up lands when it sends the
// next at the same offset. It is another batch, though the same writer's.
func TestOwnEarlierBatch(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 1))
	store := newModel(t, time.Now)
	var sent archive.Batch
	f := &faulty{Store: store, append: func(b archive.Batch) error { sent = b; return errReply }}
	w := ingest.NewWriter(ingest.WriterConfig{Store: f, Pause: noPause})
	if _, err := w.Write(t.Context(), archive.ClassLive, []ingest.Item{newEquivocations(r).signed("a", 1)}); !errors.Is(err, errReply) {
		t.Fatalf("got %v, want %v", err, errReply)
	}
	f.append = func(b archive.Batch) error {
		if err := store.Append(t.Context(), sent); err != nil && !errors.Is(err, archive.ErrOffsetTaken) {
			return err
		}
		return store.Append(t.Context(), b)
	}
	it := newEquivocations(r).signed("a", 1)
	mustWrite(t, w, archive.ClassLive, it)
	if all := batches(t, store); len(all) != 2 || all[1].Events[0].ID != it.ID {
		t.Errorf("%d batches, want the late one and then the new one", len(all))
	}
}

// TestBatchLimits says for each run of items how many events its batches get.
func TestBatchLimits(t *testing.T) {
	g := vaatest.NewGuardians(7, 1, 1)
	r := rand.New(rand.NewPCG(13, 1))
	sized := func(payload int) ingest.Item {
		v := vaatest.NewVAA(r, g)
		v.Payload = make([]byte, payload)
		g.Sign(v)
		return ingest.Item{ID: v.MessageID(), Digest: v.Digest(), VAA: v, Raw: v.Append(nil), Source: "test"}
	}
	many := make([]ingest.Item, 450)
	for i := range many {
		many[i] = sized(10)
	}
	const kib = 1 << 10
	large := sized(3 << 20)
	body := large.VAA.Body
	body.Payload = []byte{1}
	observed := ingest.Item{ID: large.ID, Digest: body.Digest(), Body: &body, RawBody: body.Append(nil), Trust: archive.TrustChain, Source: "test"}
	pairs := make([]ingest.Item, 0, 150)
	for range 75 { // each an observed event, then a vanished one with its successor
		v := vaatest.NewVAA(r, g)
		for range 2 {
			b := v.Body
			pairs = append(pairs, ingest.Item{ID: b.MessageID(), Digest: b.Digest(), Body: &b, RawBody: b.Append(nil), Trust: archive.TrustChain, Final: true})
			v = vaatest.Equivocate(v, g)
		}
	}
	for _, c := range []struct {
		name  string
		items []ingest.Item
		want  []int
	}{
		{"events", many, []int{200, 200, 50}},
		{"two events of an item stay together", pairs, []int{199, 26}},
		{"bytes", []ingest.Item{sized(900 * kib), sized(900 * kib), sized(900 * kib)}, []int{2, 1}},
		{"one larger goes alone", []ingest.Item{sized(1), sized(3000 * kib), sized(1), sized(1)}, []int{1, 1, 2}},
		{"one larger with what vanishes for it", []ingest.Item{observed, sized(1), large, sized(1)}, []int{2, 2, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := newModel(t, time.Now)
			w := ingest.NewWriter(ingest.WriterConfig{Store: store})
			for i, o := range mustWrite(t, w, archive.ClassLive, c.items...) {
				if o != archive.OutcomeAccepted {
					t.Errorf("item %d: %s", i, o)
				}
			}
			var got []int
			for _, b := range batches(t, store) {
				got = append(got, len(b.Events))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("events of the batches (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExpiredGoApart: what an expired set signed is history, in batches of its
// own, whatever stands beside it.
func TestExpiredGoApart(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	var items []ingest.Item
	for _, expired := range []bool{false, true, true, false, true} {
		it := newEquivocations(r).signed("a", 1)
		it.Expired = expired
		items = append(items, it)
	}
	for class, want := range map[archive.Class]string{
		archive.ClassLive:    "live:1 history:2 live:1 history:1",
		archive.ClassHistory: "history:5",
	} {
		store := newModel(t, time.Now)
		mustWrite(t, ingest.NewWriter(ingest.WriterConfig{Store: store}), class, items...)
		var got []string
		for _, b := range batches(t, store) {
			got = append(got, fmt.Sprintf("%s:%d", b.Class, len(b.Events)))
			for i := range b.Events {
				if e := &b.Events[i]; e.Expired != items[e.Offset-1].Expired {
					t.Errorf("offset %d: expired is %t", e.Offset, e.Expired)
				}
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("class %s: got batches %s, want %s", class, got, want)
		}
	}
}

// TestWallTime: a batch is never older than the one before it, though its
// writer's clock is behind and it reads nothing of the journal but its end.
func TestWallTime(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := rand.New(rand.NewPCG(15, 1))
	store := newModel(t, func() time.Time { return now })
	at := func(offset time.Duration) ingest.WriterConfig {
		return ingest.WriterConfig{Store: store, Now: func() time.Time { return now.Add(offset) }}
	}
	fast, slow := ingest.NewWriter(at(5*time.Second)), ingest.NewWriter(at(-5*time.Second))
	for range 2 {
		mustWrite(t, fast, archive.ClassLive, newEquivocations(r).signed("a", 1))
		mustWrite(t, slow, archive.ClassLive, newEquivocations(r).signed("a", 1))
		mustWrite(t, slow, archive.ClassLive, newEquivocations(r).signed("a", 1))
	}
	all := batches(t, store)
	if err := store.RaiseWatermark(t.Context(), all[len(all)-1].End()); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, ingest.NewWriter(at(-5*time.Second)), archive.ClassLive, newEquivocations(r).signed("a", 1))
	for _, b := range batches(t, store) {
		if want := now.Add(5 * time.Second); !b.WallTime.Equal(want) {
			t.Errorf("the batch at offset %d is of %s, want %s", b.Offset, b.WallTime, want)
		}
	}
}

// onStores runs a test on the reference model and on a Bigtable server.
func onStores(t *testing.T, test func(t *testing.T, open func() archive.Store)) {
	t.Run("model", func(t *testing.T) {
		s := newModel(t, time.Now)
		test(t, func() archive.Store { return s })
	})
	t.Run("bigtable", func(t *testing.T) {
		if testing.Short() {
			// The race detector runs the short form, and the client library's test server
			// has a race of its own between a stream that ends early and a write.
			t.Skip("not in the short form")
		}
		addr := testenv.BTTest(t)
		c, err := bigtable.DialLocal(t.Context(), addr, bigtable.LocalInstance)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		if _, err := bigtable.Create(t.Context(), c.Admin, c.Data, vaa.Mainnet); err != nil {
			t.Fatal(err)
		}
		test(t, func() archive.Store {
			s, err := bigtable.Open(t.Context(), c.Data, vaa.Mainnet)
			if err != nil {
				t.Fatal(err)
			}
			return s
		})
	})
}

// TestRace lets two writers write the same items at once: each VAA is journalled
// once, and both are told so.
func TestRace(t *testing.T) {
	onStores(t, func(t *testing.T, open func() archive.Store) {
		seed := testenv.Seed(t)
		r := rand.New(rand.NewPCG(seed, 0))
		var items []ingest.Item
		for range 6 {
			m := newEquivocations(r)
			items = append(items, m.signed("a", 1), m.signed("b", 1), m.signed("a", 2), m.published("c", archive.TrustChain, true))
		}
		var g errgroup.Group
		for i := range 2 {
			w := ingest.NewWriter(ingest.WriterConfig{Store: open()})
			mine := append([]ingest.Item(nil), items...)
			rand.New(rand.NewPCG(seed, uint64(i+1))).Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
			g.Go(func() error {
				for at := 0; at < len(mine); at += 3 {
					results, err := w.Write(t.Context(), archive.ClassLive, mine[at:at+3])
					if err != nil {
						return err
					}
					for _, r := range results {
						if r.Outcome == archive.OutcomeError || r.Outcome == archive.OutcomeInvalid {
							return fmt.Errorf("got %v", r)
						}
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for _, b := range batches(t, open()) {
			for i := range b.Events {
				if e := &b.Events[i]; e.Signed() {
					seen[fmt.Sprint(e.Digest, *e.GuardianSetIndex)]++
				}
			}
		}
		for i := range items {
			if it := &items[i]; it.Signed() && seen[fmt.Sprint(it.Digest, it.VAA.GuardianSetIndex)] != 1 {
				t.Errorf("item %d is journalled %d times", i, seen[fmt.Sprint(it.Digest, it.VAA.GuardianSetIndex)])
			}
		}
	})
}

// TestEquivocationsInEveryOrder: whoever writes them and whatever comes first, the
// newest set's digest is canonical, else the first journalled, and all bytes are
// readable.
func TestEquivocationsInEveryOrder(t *testing.T) {
	onStores(t, func(t *testing.T, open func() archive.Store) {
		store := open()
		writers := []*ingest.Writer{ingest.NewWriter(ingest.WriterConfig{Store: open()}), ingest.NewWriter(ingest.WriterConfig{Store: open()})}
		for n, set := range [][3]uint32{{1, 2, 3}, {1, 2, 2}, {1, 1, 1}, {3, 1, 1}} {
			for at, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
				m := newEquivocations(rand.New(rand.NewPCG(uint64(n), uint64(at))))
				var canonical ingest.Item
				for turn, i := range order {
					it := m.signed([]string{"a", "b", "c"}[i], set[i])
					mustWrite(t, writers[turn%2], archive.ClassLive, it)
					if canonical.VAA == nil || it.VAA.GuardianSetIndex > canonical.VAA.GuardianSetIndex {
						canonical = it
					}
				}
				r, err := store.Get(t.Context(), canonical.ID, archive.Columns{})
				if err != nil {
					t.Fatal(err)
				}
				if s := r.Signed(); s == nil || string(s.Bytes) != string(canonical.Raw) || *r.Publication.Digest != canonical.Digest {
					t.Errorf("sets %v in order %v: the canonical VAA is another", set, order)
				}
				for i, name := range []string{"a", "b", "c"} {
					if it := m.signed(name, set[i]); !r.Known(it.Digest, set[i]) {
						t.Errorf("sets %v in order %v: the VAA %s is not in the row", set, order, name)
					}
				}
				// A digest that lost twice may be listed twice.
				if conflicts := slices.Compact(r.Conflicts()); len(r.Versions) != 3 || len(conflicts) != 2 {
					t.Errorf("sets %v in order %v: %d versions, conflicts %v", set, order, len(r.Versions), conflicts)
				}
			}
		}
	})
}
