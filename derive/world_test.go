package derive_test

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

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/derive"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world writes random deliveries into an archive by the writer of production.
type world struct {
	t      testing.TB
	r      *rand.Rand
	store  *memarchive.Store
	writer *ingest.Writer
	sets   []*vaatest.Guardians
	clock  time.Time
	bodies map[vaa.MessageID][]vaa.Body // that were delivered
	ids    []vaa.MessageID
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), clock: start, bodies: map[vaa.MessageID][]vaa.Body{}}
	for i := range uint32(3) {
		w.sets = append(w.sets, vaatest.NewGuardians(seed, i, 3))
	}
	w.store = memarchive.New(vaa.Devnet, w.now)
	w.writer = ingest.NewWriter(ingest.WriterConfig{Store: w.store, Now: w.now})
	return w
}

func (w *world) now() time.Time { return w.clock }

// deliver writes some items: VAAs and publications of few messages, old and new, with
// digests that contradict each other, under several sets, of trust and finality of
// all kinds, and again what came before.
func (w *world) deliver() {
	w.t.Helper()
	w.clock = w.clock.Add(time.Duration(w.r.IntN(100)) * time.Second)
	items := make([]ingest.Item, 1+w.r.IntN(8))
	for i := range items {
		items[i] = w.item()
	}
	class := []archive.Class{archive.ClassLive, archive.ClassHistory}[w.r.IntN(2)]
	_, err := w.writer.Write(w.t.Context(), class, items)
	must(w.t, err)
}

func (w *world) item() ingest.Item {
	body := w.body()
	it := ingest.Item{ID: body.MessageID(), Digest: body.Digest(), Source: "test"}
	if w.r.IntN(3) == 0 {
		it.Link = &archive.Link{TxID: strings.Repeat("ab", 1+w.r.IntN(3)), Trust: archive.Trust(1 + w.r.IntN(3)), Source: "test"}
	}
	if w.r.IntN(2) == 0 {
		it.Body, it.RawBody = &body, body.Append(nil)
		it.Final, it.Trust = w.r.IntN(2) == 0, archive.Trust(1+w.r.IntN(3))
		return it
	}
	v := &vaa.VAA{Version: 1, Body: body}
	w.sets[w.r.IntN(len(w.sets))].Sign(v)
	it.VAA, it.Raw = v, v.Append(nil)
	return it
}

func (w *world) body() vaa.Body {
	var b vaa.Body
	if len(w.ids) == 0 || w.r.IntN(4) == 0 { // of a new message
		b.EmitterChain = vaa.ChainID(1 + w.r.IntN(2)*19)
		b.EmitterAddress[31], b.Sequence = byte(w.r.IntN(2)), w.r.Uint64()
		w.ids = append(w.ids, b.MessageID())
	} else {
		id := w.ids[w.r.IntN(len(w.ids))]
		if known := w.bodies[id]; w.r.IntN(3) > 0 {
			return known[w.r.IntN(len(known))]
		}
		b = w.bodies[id][0]
	}
	b.Timestamp, b.Nonce = uint32(start.Unix())-w.r.Uint32N(120), w.r.Uint32()
	if w.r.IntN(3) == 0 {
		b.Timestamp -= w.r.Uint32N(3 * 86400)
	}
	w.bodies[b.MessageID()] = append(w.bodies[b.MessageID()], b)
	return b
}

// counted counts what the journal says happened, message by message: not by what
// events say of what stood before them.
func (w *world) counted() map[string]archive.Counts {
	w.t.Helper()
	type message struct {
		at                         time.Time
		signed, conflict, resigned bool
	}
	messages := map[vaa.MessageID]*message{}
	for b, err := range w.store.Batches(w.t.Context(), 1) {
		must(w.t, err)
		for i := range b.Events {
			e := &b.Events[i]
			m := messages[e.ID]
			if m == nil {
				m = &message{}
				messages[e.ID] = m
			}
			if e.WritesBody() {
				body, err := e.Body()
				must(w.t, err)
				m.at = body.Time()
			}
			m.signed = m.signed || e.Signed()
			m.conflict = m.conflict || e.Kind == archive.KindConflict
			m.resigned = m.resigned || e.Kind == archive.KindResigned
		}
	}
	out := map[string]archive.Counts{}
	for id, m := range messages {
		one := archive.Counts{Messages: 1}
		for _, x := range []struct {
			is    bool
			count *int64
		}{{m.signed, &one.Quorum}, {!m.signed, &one.Observed}, {m.conflict, &one.Conflicts}, {m.resigned, &one.Resigned}} {
			if x.is {
				*x.count = 1
			}
		}
		chain := rowChain(id)
		day := m.at.Truncate(24 * time.Hour)
		for _, scope := range []string{"network", "chain:" + chain, "emitter:" + chain + ":" + id.EmitterAddress.String()} {
			for period, at := range map[string]time.Time{
				"1min": m.at.Truncate(time.Minute), "5min": m.at.Truncate(5 * time.Minute), "60min": m.at.Truncate(time.Hour), "1day": day, "all": time.Unix(0, 0),
			} {
				key := fmt.Sprintf("%s:%s:%010d", period, scope, at.Unix())
				out[key] = out[key].Sum(one)
			}
		}
	}
	return out
}

func rowChain(id vaa.MessageID) string {
	chain, _, _ := strings.Cut(id.String(), "/")
	return chain
}

// stored returns the buckets of a generation that are not zero.
func stored(t testing.TB, s archive.RollupStore, generation uint64) map[string]archive.Counts {
	t.Helper()
	out := map[string]archive.Counts{}
	for b, err := range s.ScanBuckets(t.Context(), generation, "", "", 0) {
		must(t, err)
		if b.Counts != (archive.Counts{}) {
			out[b.String()] = b.Counts
		}
	}
	return out
}

func newConsumer(t testing.TB, s derive.Store) *derive.Consumer {
	t.Helper()
	c, err := derive.NewConsumer(s, nil, nil)
	must(t, err)
	return c
}

func catchUp(t testing.TB, c *derive.Consumer) {
	t.Helper()
	for {
		more, err := c.Turn(t.Context())
		must(t, err)
		if !more {
			return
		}
	}
}

func diff(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

var errCrash = errors.New("crash")

// faulty is a store whose writes go wrong in every way: without effect, in part, with
// their effect and without a reply, or long after their sender gave up. Between them
// others may act.
type faulty struct {
	*memarchive.Store
	r      *rand.Rand
	faults int      // one step in so many goes wrong; 0: none
	late   []func() // writes that are still to land
	act    func()   // what others do meanwhile; nil: nothing
}

func (f *faulty) do(effect, part func() error) error {
	if f.act != nil && f.r.IntN(3) == 0 {
		act := f.act
		f.act = nil // not within itself
		act()
		f.act = act
	}
	if len(f.late) > 0 && f.r.IntN(3) == 0 {
		i := f.r.IntN(len(f.late))
		f.late[i]()
		f.late = slices.Delete(f.late, i, i+1)
	}
	if f.faults == 0 || f.r.IntN(f.faults) > 0 {
		return effect()
	}
	switch f.r.IntN(4) {
	case 0:
		return errCrash
	case 1:
		return errors.Join(errCrash, part())
	case 2:
		return errors.Join(errCrash, effect())
	}
	f.late = append(f.late, func() { effect() }) //nolint:errcheck // nobody waits for it
	return errCrash
}

func (f *faulty) PutBuckets(ctx context.Context, generation uint64, buckets []archive.Bucket) error {
	put := func() error { return f.Store.PutBuckets(context.WithoutCancel(ctx), generation, buckets) }
	return f.do(put, func() error {
		some := slices.Clone(buckets)
		f.r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		return f.Store.PutBuckets(ctx, generation, some[:f.r.IntN(len(some)+1)])
	})
}

func (f *faulty) CommitCursor(ctx context.Context, source string, from, to uint64) error {
	return f.do(func() error { return f.Store.CommitCursor(context.WithoutCancel(ctx), source, from, to) }, func() error { return nil })
}
