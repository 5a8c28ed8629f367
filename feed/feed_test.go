package feed_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func TestMain(m *testing.M) {
	// The client's probe of a server that refuses connections notices within a
	// second that it was closed, and nothing can wait for it.
	probe := goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
	goleak.VerifyTestMain(m, probe)
}

const network = vaa.Testnet

// history is a journal under construction, on the reference model. The feed's
// epoch is the test's choice, for the feed knows it from its configuration.
type history struct {
	*memarchive.Store
	t    testing.TB
	rand *rand.Rand
	by   *vaatest.Guardians
	now  time.Time
	end  archive.Offset
}

func newHistory(t testing.TB, seed uint64) *history {
	h := &history{
		t: t, rand: rand.New(rand.NewPCG(seed, 0)), by: vaatest.NewGuardians(seed, 3, 1),
		now: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC), end: 1,
	}
	h.Store = memarchive.New(network, func() time.Time { return h.now })
	return h
}

// clock is the Now of a publisher on this history.
func (h *history) clock() time.Time { return h.now }

// add appends a batch of n events at the history's time and does not apply it.
// Every fourth event is a publication without a signed VAA.
func (h *history) add(class archive.Class, n int) archive.Batch {
	h.t.Helper()
	b := archive.Batch{Offset: h.end, ID: "b" + h.now.String(), Writer: "w", WallTime: h.now, Class: class}
	for range n {
		v := vaatest.NewVAA(h.rand, h.by)
		e := archive.Event{Offset: b.End(), ID: v.MessageID(), Digest: v.Digest(), Canonical: true, Time: v.Time(), Source: "test"}
		if e.Offset%4 == 0 {
			e.Kind, e.Bytes = archive.KindObserved, v.Body.Append(nil)
		} else {
			set := v.GuardianSetIndex
			e.Kind, e.Bytes, e.GuardianSetIndex = archive.KindQuorum, v.Append(nil), &set
		}
		b.Events = append(b.Events, e)
	}
	if err := h.Append(h.t.Context(), b); err != nil {
		h.t.Fatal(err)
	}
	h.end = b.End()
	return b
}

func (h *history) apply(b archive.Batch) {
	h.t.Helper()
	if err := errors.Join(h.Apply(h.t.Context(), b), h.MarkApplied(h.t.Context(), b.Offset)); err != nil {
		h.t.Fatal(err)
	}
}

// live adds and applies a live batch of n events.
func (h *history) live(n int) archive.Batch {
	h.t.Helper()
	b := h.add(archive.ClassLive, n)
	h.apply(b)
	return b
}

// old adds and applies a batch of n events of class history.
func (h *history) old(n int) archive.Batch {
	h.t.Helper()
	b := h.add(archive.ClassHistory, n)
	h.apply(b)
	return b
}

// events returns the journal's batches from its beginning, and the batch of every
// offset.
func (h *history) events() map[archive.Offset]archive.Batch {
	all := map[archive.Offset]archive.Batch{}
	for b, err := range h.Batches(h.t.Context(), 1) {
		if err != nil {
			h.t.Fatal(err)
		}
		for o := b.Offset; o < b.End(); o++ {
			all[o] = b
		}
	}
	return all
}

// check fails unless the entries stand, without a hole, for the offsets from
// first to last: a live event by its own entry, history by skipped entries.
func (h *history) check(epoch uint64, first, last archive.Offset, entries []feed.Entry) {
	h.t.Helper()
	if problem := h.differs(epoch, first, last, entries); problem != "" {
		h.t.Fatal(problem)
	}
}

// publisher returns a publisher of the history on a stream.
func (h *history) publisher(stream feed.Stream, epoch uint64, change ...func(*feed.PublisherConfig)) *feed.Publisher {
	h.t.Helper()
	cfg := feed.PublisherConfig{
		Journal: h, Store: archive.StoreInfo{Network: network, Generation: 1, Epoch: epoch}, Stream: stream, Now: h.clock,
	}
	for _, f := range change {
		f(&cfg)
	}
	p, err := feed.NewPublisher(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// publish steps until there is nothing left to do.
func publish(t testing.TB, p *feed.Publisher) {
	t.Helper()
	for range 10_000 {
		progress, err := p.PublishOnce(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !progress {
			return
		}
	}
	t.Fatal("the publisher finds no end")
}

// server is a Redis of one test.
type server struct {
	addr   string
	client *redis.Client
}

func (s *server) stream() *feed.RedisStream { return feed.NewRedisStream(s.client, network) }

// reader returns a reader of its own; journal may be nil.
func (s *server) reader(t testing.TB, epoch uint64, journal feed.Journal) *feed.Reader {
	t.Helper()
	return s.watchedReader(t, epoch, journal, nil)
}

// watchedReader returns a reader whose commands a limiter, unless nil, watches.
func (s *server) watchedReader(t testing.TB, epoch uint64, journal feed.Journal, limiter redis.Limiter) *feed.Reader {
	t.Helper()
	options, err := feed.Options(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	options.Limiter = limiter
	r, err := feed.NewReader(feed.ReaderConfig{
		Redis: options, Store: archive.StoreInfo{Network: network, Epoch: epoch}, Journal: journal,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// window returns all entries of the stream.
func (s *server) window(t testing.TB) []feed.Entry {
	t.Helper()
	entries, err := all(s.reader(t, 0, nil).Window(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// set makes the stream hold exactly these items.
func (s *server) set(t testing.TB, items []feed.Item) {
	t.Helper()
	key := feed.Events(network)
	if err := s.client.Del(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		s.add(t, item.ID.String(), "data", item.Data)
	}
}

// add adds an entry as anyone could.
func (s *server) add(t testing.TB, id string, values ...string) {
	t.Helper()
	err := s.client.XAdd(t.Context(), &redis.XAddArgs{Stream: feed.Events(network), ID: id, Values: values}).Err()
	if err != nil {
		t.Fatal(err)
	}
}

func all(seq iter.Seq2[feed.Entry, error]) ([]feed.Entry, error) {
	var entries []feed.Entry
	for e, err := range seq {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func connect(t testing.TB, addr string) *server {
	t.Helper()
	options, err := feed.Options(addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{addr: addr, client: redis.NewClient(options)}
	t.Cleanup(func() {
		if err := s.client.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// onEach runs a test on the embedded Redis and on a real one.
func onEach(t *testing.T, test func(*testing.T, *server)) {
	t.Run("embedded", func(t *testing.T) {
		e, err := feed.NewEmbedded("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		test(t, connect(t, e.Addr()))
	})
	t.Run("redis-server", func(t *testing.T) { test(t, connect(t, testenv.RedisServer(t))) })
}

// model is a Stream in memory with the rules of Redis: ids ascend, and the last
// one survives the trimming of all entries.
type model struct {
	mu    sync.Mutex
	items []feed.Item
	top   feed.ID // of the stream as it exists
	down  error
	trims int
}

func (m *model) last() feed.Item {
	if len(m.items) == 0 {
		return feed.Item{}
	}
	return m.items[len(m.items)-1]
}

func (m *model) Last(context.Context) (feed.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last(), m.down
}

func (m *model) Append(_ context.Context, last feed.Item, items []feed.Item) (feed.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil || m.last() != last {
		return m.last(), m.down
	}
	if len(m.items) == 0 {
		m.top = feed.ID{}
	}
	for _, item := range items {
		if item.ID.Compare(m.top) <= 0 {
			return feed.Item{}, errors.New("id is equal to or smaller than the top one")
		}
		m.items, m.top = append(m.items, item), item.ID
	}
	return m.last(), nil
}

func (m *model) Delete(_ context.Context, last feed.Item) (feed.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down == nil && m.last() == last {
		m.items, m.top = nil, feed.ID{}
	}
	return m.last(), m.down
}

func (m *model) Trim(_ context.Context, before time.Time, _ int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return 0, m.down
	}
	m.trims++
	n := 0
	for n < len(m.items)-1 && int64(m.items[n].ID.Millis) < before.UnixMilli() {
		n++
	}
	m.items = m.items[n:]
	return int64(n), nil
}

func (m *model) set(items []feed.Item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.items, m.top = slices.Clone(items), feed.ID{}
	if len(items) > 0 {
		m.top = items[len(items)-1].ID
	}
}

func (m *model) snapshot() []feed.Item {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.items)
}

func (m *model) setDown(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = err
}
