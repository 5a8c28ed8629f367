package fsck_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	cbt "cloud.google.com/go/bigtable"
	"go.uber.org/goleak"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/internal/fsck"
	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const network = vaa.Testnet

// world is an archive with a history in which everything occurs, and the stream
// that was published of it.
type world struct {
	t       *testing.T
	store   archive.Store
	raw     *cbt.Client // nil: the store is the model
	sets    vaa.GuardianSets
	guards  []*vaatest.Guardians
	entries []feed.Entry

	plain, resigned, contested, completed, vanished, evidenced *vaa.VAA
	displaced                                                  vaa.Digest // of the VAA that contested's lost to
	observed                                                   vaa.Digest // the digest that vanished
	live                                                       archive.Offset
	history                                                    archive.Offset // of a batch of history of several events
	end                                                        archive.Offset
}

func onModel(t *testing.T) *world {
	return newWorld(t, memarchive.New(network, time.Now), nil)
}

func onBigtable(t *testing.T) *world {
	t.Helper()
	addr := testenv.BTTest(t)
	clients, err := bigtable.DialLocal(t.Context(), addr, bigtable.LocalInstance)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clients.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := bigtable.Create(t.Context(), clients.Admin, clients.Data, network); err != nil {
		t.Fatal(err)
	}
	store, err := bigtable.Open(t.Context(), clients.Data, network)
	if err != nil {
		t.Fatal(err)
	}
	return newWorld(t, store, clients.Data)
}

func newWorld(t *testing.T, store archive.Store, raw *cbt.Client) *world {
	t.Helper()
	w := &world{t: t, store: store, raw: raw}
	for i := range uint32(3) {
		w.guards = append(w.guards, vaatest.NewGuardians(7, i, 4))
	}
	w.sets = vaatest.Sets(network, w.guards...)
	r := rand.New(rand.NewPCG(7, 7))
	make := func(set int) *vaa.VAA { return vaatest.NewVAA(r, w.guards[set]) }
	writer := ingest.NewWriter(ingest.WriterConfig{Store: store})
	write := func(class archive.Class, items ...ingest.Item) {
		t.Helper()
		results, err := writer.Write(t.Context(), class, items)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if r.Outcome == archive.OutcomeInvalid {
				t.Fatalf("item %d: %s: %s", i, r.Reason, r.Detail)
			}
		}
	}
	w.plain, w.resigned, w.contested, w.evidenced = make(0), make(0), make(1), make(0)
	w.plain.Sequence = 1<<63 + 12345 // more than a signed or floating number holds
	w.guards[0].Sign(w.plain)
	w.guards[0].Sign(w.evidenced, 0, 1, 2)
	write(archive.ClassLive, linked(signed(w.plain), "aa", archive.TrustClaimed), signed(w.resigned), signed(w.contested), signed(w.evidenced))
	write(archive.ClassLive, signed(vaatest.Resign(w.resigned, w.guards[2])), signed(vaatest.Resign(w.resigned, w.guards[1])))
	lost := vaatest.Equivocate(w.contested, w.guards[1])
	w.displaced = w.contested.Digest()
	w.contested = vaatest.Equivocate(lost, w.guards[2])
	write(archive.ClassLive, linked(signed(lost), "bb", archive.TrustPeer), signed(w.contested))
	write(archive.ClassLive, signed(vaatest.Resign(w.evidenced, w.guards[0], 0, 1, 3)), linked(signed(w.plain), "aa", archive.TrustChain))

	w.completed, w.vanished = make(2), make(2)
	other := vaatest.Equivocate(w.vanished, w.guards[2])
	w.observed = w.vanished.Digest()
	write(archive.ClassLive, linked(observed(&w.completed.Body), "cc", archive.TrustChain), observed(&w.vanished.Body))
	final := observed(&other.Body)
	final.Final = true
	write(archive.ClassLive, linked(signed(w.completed), "dd", archive.TrustPeer), final)
	w.vanished = other

	var old []ingest.Item
	for range 5 {
		old = append(old, signed(make(1)))
	}
	write(archive.ClassHistory, old[:3]...)
	write(archive.ClassHistory, old[3:]...)
	write(archive.ClassLive, signed(make(2)), signed(make(2)))
	for b, err := range store.Batches(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Class == archive.ClassHistory && w.history == 0 {
			w.history = b.Offset
		}
		w.live, w.end = b.Offset, b.End()
	}
	w.publish()
	return w
}

// more writes messages, old and new, as another writer does.
func (w *world) more() {
	w.t.Helper()
	r := rand.New(rand.NewPCG(8, 8))
	writer := ingest.NewWriter(ingest.WriterConfig{Store: w.store})
	_, err := writer.Write(w.t.Context(), archive.ClassLive, []ingest.Item{
		signed(vaatest.NewVAA(r, w.guards[1])), signed(vaatest.NewVAA(r, w.guards[2])),
		linked(signed(vaatest.Resign(w.plain, w.guards[2])), "ee", archive.TrustPeer),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// append appends a batch and does not apply it, as a writer that dies.
func (w *world) append() archive.Batch {
	w.t.Helper()
	v := vaatest.NewVAA(rand.New(rand.NewPCG(9, 9)), w.guards[1])
	e := archive.Event{
		Offset: w.end, Kind: archive.KindQuorum, ID: v.MessageID(), Digest: v.Digest(), GuardianSetIndex: &v.GuardianSetIndex, Canonical: true,
		Time: v.Time(), Source: "test", Bytes: v.Append(nil),
	}
	e.RecordedAt = time.Now().UTC().Truncate(time.Millisecond)
	b := archive.Batch{Offset: w.end, ID: "last", Writer: "dead", WallTime: e.RecordedAt, Class: archive.ClassLive, Events: []archive.Event{e}}
	if err := w.store.Append(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
	return b
}

func (w *world) apply(b archive.Batch) {
	w.t.Helper()
	if err := w.store.Apply(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
	if err := w.store.MarkApplied(w.t.Context(), b.Offset); err != nil {
		w.t.Fatal(err)
	}
}

func signed(v *vaa.VAA) ingest.Item {
	return ingest.Item{ID: v.MessageID(), Digest: v.Digest(), VAA: v, Raw: v.Append(nil), Source: "test"}
}

func observed(b *vaa.Body) ingest.Item {
	return ingest.Item{ID: b.MessageID(), Digest: b.Digest(), Body: b, RawBody: b.Append(nil), Trust: archive.TrustChain, Source: "test"}
}

func linked(it ingest.Item, txID string, trust archive.Trust) ingest.Item {
	it.Link = &archive.Link{TxID: txID, Trust: trust, Source: "test"}
	return it
}

// publish fills a stream from the journal and keeps what it then holds.
func (w *world) publish() {
	w.t.Helper()
	var stream stream
	p, err := feed.NewPublisher(feed.PublisherConfig{Journal: w.store, Store: w.store.Info(), Stream: &stream})
	if err != nil {
		w.t.Fatal(err)
	}
	for more := true; more; {
		if more, err = p.PublishOnce(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	w.entries = nil
	for _, item := range stream {
		e, err := feed.ParseEntry(item)
		if err != nil {
			w.t.Fatal(err)
		}
		w.entries = append(w.entries, e)
	}
}

// stream is a stream for one publisher.
type stream []feed.Item

func (s *stream) Last(context.Context) (feed.Item, error) {
	if len(*s) == 0 {
		return feed.Item{}, nil
	}
	return (*s)[len(*s)-1], nil
}

func (s *stream) Append(ctx context.Context, _ feed.Item, items []feed.Item) (feed.Item, error) {
	*s = append(*s, items...)
	return s.Last(ctx)
}

func (s *stream) Delete(context.Context, feed.Item) (feed.Item, error) {
	*s = nil
	return feed.Item{}, nil
}

func (s *stream) Trim(context.Context, time.Time, int64) (int64, error) { return 0, nil }

func (w *world) config() fsck.Config {
	return fsck.Config{Store: w.store, Sets: w.sets, Window: windowOf(w.entries...)}
}

func windowOf(entries ...feed.Entry) func(context.Context) iter.Seq2[feed.Entry, error] {
	return func(context.Context) iter.Seq2[feed.Entry, error] {
		return func(yield func(feed.Entry, error) bool) {
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

func run(t *testing.T, cfg fsck.Config) fsck.Report {
	t.Helper()
	report, err := fsck.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// kinds returns the kinds of a report's findings, sorted, each once.
func kinds(r fsck.Report) []fsck.Kind {
	var all []fsck.Kind
	for _, f := range r.Findings {
		all = append(all, f.Kind)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// expect checks the kinds of the findings.
func expect(t *testing.T, r fsck.Report, want ...fsck.Kind) {
	t.Helper()
	slices.Sort(want)
	if got := kinds(r); !slices.Equal(got, want) {
		t.Errorf("found kinds %q, want %q", got, want)
		for _, f := range r.Findings {
			t.Log(f)
		}
	}
}

// The raw table operations below are how damage is done.

func (w *world) table(name string) *cbt.Table {
	return w.raw.Open(schema.TableID(network.String(), 1, name))
}

func (w *world) mutate(table, key string, change func(*cbt.Mutation)) {
	w.t.Helper()
	m := cbt.NewMutation()
	change(m)
	if err := w.table(table).Apply(w.t.Context(), key, m); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deleteRow(table, key string) {
	w.t.Helper()
	w.mutate(table, key, func(m *cbt.Mutation) { m.DeleteRow() })
}

func (w *world) deleteColumn(table, key, family, column string) {
	w.t.Helper()
	w.mutate(table, key, func(m *cbt.Mutation) { m.DeleteCellsInColumn(family, column) })
}

// overwrite changes the newest cell of a column, which must be there, and keeps its
// timestamp.
func (w *world) overwrite(table, key, family, column string, change func([]byte) []byte) {
	w.t.Helper()
	row, err := w.table(table).ReadRow(w.t.Context(), key, cbt.RowFilter(cbt.LatestNFilter(1)))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, item := range row[family] {
		if item.Column == family+":"+column {
			value := change(slices.Clone(item.Value))
			w.mutate(table, key, func(m *cbt.Mutation) { m.Set(family, column, item.Timestamp, value) })
			return
		}
	}
	w.t.Fatalf("row %s of %s has no column %s:%s", key, table, family, column)
}

func to(value string) func([]byte) []byte { return func([]byte) []byte { return []byte(value) } }

func flip(b []byte) []byte { b[len(b)-1] ^= 1; return b }

func keyOf(v *vaa.VAA) string { return rowkey.Of(v.MessageID()) }

// columnWith returns the only column of a row's family with a prefix.
func (w *world) columnWith(key, family, prefix string) string {
	w.t.Helper()
	row, err := w.table(schema.Attestations).ReadRow(w.t.Context(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, item := range row[family] {
		if name := item.Column[len(family)+1:]; len(name) > len(prefix) && name[:len(prefix)] == prefix {
			return name
		}
	}
	w.t.Fatalf("row %s has no column %s:%s…", key, family, prefix)
	return ""
}

func offset(o archive.Offset) string { return rowkey.Offset(uint64(o)) }
