package derive_test

import (
	"bufio"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/derive"
	"github.com/attestry/attestry/emulator"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

// newEmbedded returns a store of a network on the project's own server.
func newEmbedded(t testing.TB, network vaa.Network) archive.Store {
	t.Helper()
	server, err := emulator.Create(t.TempDir(), emulator.Options{})
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		must(t, server.Close())
		must(t, <-ended)
	})
	clients, err := bigtable.DialLocal(context.Background(), l.Addr().String(), bigtable.LocalInstance)
	must(t, err)
	t.Cleanup(func() { must(t, clients.Close()) })
	_, err = bigtable.Create(t.Context(), clients.Admin, clients.Data, network)
	must(t, err)
	s, err := bigtable.Open(t.Context(), clients.Data, network)
	must(t, err)
	return s
}

func realVAAs(t testing.TB, network vaa.Network) []ingest.Item {
	t.Helper()
	f, err := os.Open("../testdata/vaas/vaas-" + network.String() + ".ndjson")
	must(t, err)
	defer f.Close() //nolint:errcheck // it was read
	var items []ingest.Item
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			VAA []byte `json:"vaa"`
		}
		must(t, json.Unmarshal(lines.Bytes(), &line))
		v, err := vaa.Parse(line.VAA)
		must(t, err)
		items = append(items, ingest.Item{ID: v.MessageID(), Digest: v.Digest(), VAA: v, Raw: line.VAA, Source: "test"})
	}
	must(t, lines.Err())
	if len(items) == 0 {
		t.Fatalf("no VAAs of %s", network)
	}
	return items
}

// TestRealVAAs counts VAAs of years, on the model and on the embedded server, finds
// what was made wrong, and rebuilds it.
func TestRealVAAs(t *testing.T) {
	t.Parallel()
	for _, network := range []vaa.Network{vaa.Mainnet, vaa.Testnet, vaa.Devnet} {
		items := realVAAs(t, network)
		model := memarchive.New(network, time.Now)
		want := map[string]archive.Counts{}
		for _, s := range []archive.Store{model, newEmbedded(t, network)} {
			w := ingest.NewWriter(ingest.WriterConfig{Store: s})
			c := newConsumer(t, s)
			for len(items) > 0 {
				n := min(len(items), 50)
				_, err := w.Write(t.Context(), archive.ClassHistory, items[:n])
				must(t, err)
				_, err = c.Turn(t.Context())
				must(t, err)
				items = items[n:]
			}
			items = realVAAs(t, network)
			catchUp(t, c)
			got := stored(t, s, 0)
			if s == model {
				want = (&world{t: t, store: model}).counted()
			}
			diff(t, network.String(), got, want)
			plantAndRebuild(t, s, want)
		}
		for _, err := range model.Violations() {
			t.Error(err)
		}
	}
}

// plantAndRebuild makes buckets wrong in every way: changed, missing, of a time or an
// emitter without messages.
func plantAndRebuild(t *testing.T, s archive.Store, want map[string]archive.Counts) {
	t.Helper()
	v, err := derive.Verify(t.Context(), s)
	must(t, err)
	if v.DifferencesTotal != 0 || v.Buckets < len(want) || v.Rows == 0 || v.Through == 0 {
		t.Fatalf("of %d right buckets: %+v", len(want), v)
	}
	var some archive.Bucket
	for b, err := range s.ScanBuckets(t.Context(), 0, "60min:emitter:", "", 0) {
		must(t, err)
		if some = b; b.Messages > 0 {
			break // and not one of which all moved
		}
	}
	network := archive.KeyOf(archive.PeriodAll, archive.Scope{}, 0)
	planted := []archive.Bucket{
		{BucketKey: some.BucketKey, Through: v.Through, Counts: archive.Counts{}},
		{BucketKey: network, Through: v.Through, Counts: want[network.String()].Sum(archive.Counts{Resigned: 1})},
		{BucketKey: archive.KeyOf(archive.Period1Min, some.Scope, 1<<32-1), Through: v.Through, Counts: archive.Counts{Messages: 1}},
		{BucketKey: archive.KeyOf(archive.Period1Day, archive.Scope{Level: archive.LevelEmitter, Chain: 9999}, 0), Through: v.Through, Counts: archive.Counts{Messages: 1}},
	}
	must(t, s.PutBuckets(t.Context(), 0, planted))
	differences := map[string]archive.Counts{}
	for _, p := range planted {
		differences[p.String()] = p.Counts
	}
	v, err = derive.Verify(t.Context(), s)
	must(t, err)
	found := map[string]archive.Counts{}
	for _, d := range v.Differences {
		found[d.Bucket] = d.Stored
		diff(t, "what is wanted of "+d.Bucket, d.Want, want[d.Bucket])
	}
	diff(t, "differences", found, differences)

	built, err := derive.Rebuild(t.Context(), s, func(context.Context) {})
	must(t, err)
	diff(t, "rebuilt", stored(t, s, built.Generation), want)
	diff(t, "left of what was", stored(t, s, 0), map[string]archive.Counts{})
	if v, err = derive.Verify(t.Context(), s); err != nil || v.DifferencesTotal != 0 || v.Generation != built.Generation {
		t.Errorf("after the rebuild: %+v, %v", v, err)
	}
}

// TestRandomOnEmbedded counts on the embedded server what the model's histories hold:
// what events say of before goes through the journal's cells.
func TestRandomOnEmbedded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4711)
	s := newEmbedded(t, vaa.Devnet)
	for range 60 {
		w.deliver()
	}
	for b, err := range w.store.Batches(t.Context(), 1) {
		must(t, err)
		must(t, s.Append(t.Context(), b))
		must(t, s.Apply(t.Context(), b))
		must(t, s.MarkApplied(t.Context(), b.Offset))
	}
	catchUp(t, newConsumer(t, s))
	diff(t, "buckets", stored(t, s, 0), w.counted())
	plantAndRebuild(t, s, w.counted())
}

// BenchmarkConsumer counts events of a journal on the embedded server: of a live hour
// of 40 emitters, and of single messages that are years apart.
func BenchmarkConsumer(b *testing.B) {
	for _, c := range []struct {
		name     string
		emitters int
		seconds  uint32
	}{{"live", 40, 3600}, {"history", 2000, 4 * 365 * 86400}} {
		b.Run(c.name, func(b *testing.B) {
			const events = 20_000
			s := newEmbedded(b, vaa.Devnet)
			r, g := rand.New(rand.NewPCG(1, 1)), vaatest.NewGuardians(1, 0, 1)
			w := ingest.NewWriter(ingest.WriterConfig{Store: s})
			for n := 0; n < events; n += 200 {
				items := make([]ingest.Item, 200)
				for i := range items {
					v := &vaa.VAA{Version: 1, Body: vaatest.NewBody(r)}
					v.EmitterChain, v.EmitterAddress = vaa.ChainID(1+r.IntN(20)), vaa.Address{}
					v.EmitterAddress[30], v.EmitterAddress[31] = byte(r.IntN(c.emitters)>>8), byte(r.IntN(c.emitters))
					v.Timestamp = 1_700_000_000 + uint32(uint64(c.seconds)*uint64(n+i)/events)
					if c.emitters > 40 {
						v.Timestamp = 1_600_000_000 + r.Uint32N(c.seconds)
					}
					g.Sign(v)
					items[i] = ingest.Item{ID: v.MessageID(), Digest: v.Digest(), VAA: v, Raw: v.Append(nil), Source: "bench"}
				}
				_, err := w.Write(b.Context(), archive.ClassHistory, items)
				must(b, err)
			}
			b.ResetTimer()
			for b.Loop() {
				b.StopTimer()
				must(b, s.DropBuckets(b.Context(), 1))
				consumer := newConsumer(b, &fromStart{Store: s})
				b.StartTimer()
				catchUp(b, consumer)
			}
			b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
			buckets := 0
			for _, err := range s.ScanBuckets(b.Context(), 0, "", "", 0) {
				must(b, err)
				buckets++
			}
			b.ReportMetric(float64(buckets)/events, "buckets/event")
		})
	}
}

// fromStart forgets the cursors that another run has committed.
type fromStart struct {
	archive.Store
	position uint64
}

func (f *fromStart) Cursor(_ context.Context, name string) (uint64, error) {
	if name == "rollup:0" {
		return f.position, nil
	}
	return 0, nil
}

func (f *fromStart) CommitCursor(_ context.Context, _ string, _, to uint64) error {
	f.position = to
	return nil
}
