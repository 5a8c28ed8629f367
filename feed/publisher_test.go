package feed_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/feed"
)

func TestPublish(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 2)
		registry := prometheus.NewPedanticRegistry()
		p := h.publisher(s.stream(), 7, func(cfg *feed.PublisherConfig) { cfg.Registerer = registry; cfg.MaxEntries = 4 })
		publish(t, p)
		h.check(7, 1, 0, s.window(t))

		h.live(3)
		h.old(5)
		h.old(200)
		h.now = h.now.Add(time.Second)
		shown := h.live(9)
		h.old(1)
		publish(t, p)
		h.check(7, 1, 218, s.window(t))
		if n := len(s.window(t)); n != 3+1+9+1 {
			t.Errorf("%d entries: consecutive batches of history are not one", n)
		}
		sync, err := s.client.HGetAll(t.Context(), feed.Sync(network)).Result()
		if err != nil {
			t.Fatal(err)
		}
		last := shown.Events[len(shown.Events)-1]
		if _, err := time.Parse(time.RFC3339Nano, sync["last_updated"]); err != nil {
			t.Error(err)
		}
		delete(sync, "last_updated")
		if diff := cmp.Diff(map[string]string{"offset": "218", "row_key": rowkey.Of(last.ID), "digest": last.Digest.String()}, sync); diff != "" {
			t.Errorf("sync hash (-want +got):\n%s", diff)
		}

		// Another that begins now finds nothing to do and changes nothing.
		before := s.window(t)
		publish(t, h.publisher(s.stream(), 7))
		if diff := cmp.Diff(before, s.window(t)); diff != "" {
			t.Errorf("changed (-before +after):\n%s", diff)
		}
		// Every fourth of the live offsets 1 to 3 and 209 to 217 is no signed VAA.
		want := map[string]float64{"quorum": 10, "observed": 2, "skipped": 2}
		if diff := cmp.Diff(want, published(t, registry)); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
	})
}

func TestStopsAtUnappliedBatch(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 3)
		p := h.publisher(s.stream(), 1)
		h.live(2)
		missing := h.add(archive.ClassLive, 2)
		h.live(2)
		publish(t, p)
		h.check(1, 1, 2, s.window(t))
		h.apply(missing)
		publish(t, p)
		h.check(1, 1, 6, s.window(t))
	})
}

func TestFillsEmptyStreamFromTheWindow(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 4)
		const old = 37
		for i := range 60 {
			if i == old {
				h.now = h.now.Add(feed.Window)
			}
			h.live(1 + i%3)
			h.now = h.now.Add(time.Second)
		}
		h.now = h.now.Add(-time.Minute) // of the clock that decides
		var first archive.Offset
		for _, b := range h.events() {
			if age := h.now.Sub(b.WallTime); age <= feed.Window && (first == 0 || b.Offset < first) {
				first = b.Offset
			}
		}
		for _, watermark := range []archive.Offset{1, first / 2, h.end} {
			if err := h.RaiseWatermark(t.Context(), watermark); err != nil {
				t.Fatal(err)
			}
			s.set(t, nil)
			publish(t, h.publisher(s.stream(), 1))
			h.check(1, first, h.end-1, s.window(t))
		}
	})
}

func TestNothingInTheWindow(t *testing.T) {
	h := newHistory(t, 5)
	h.live(5)
	h.now = h.now.Add(feed.Window + time.Second)
	m := &model{}
	p := h.publisher(m, 1)
	publish(t, p)
	h.check(1, 1, 0, decode(t, m.snapshot()))
	if err := p.WaitCaughtUp(t.Context(), 5); err != nil {
		t.Errorf("what is older than the window counts as published: %v", err)
	}
	h.live(2)
	publish(t, p)
	h.check(1, 6, 7, decode(t, m.snapshot()))
}

func TestEmptiedStreamKeepsNoId(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 6)
		h.live(3)
		// Trimming to nothing leaves an id that is higher than all of the journal.
		s.add(t, strconv.FormatInt(h.now.Add(time.Hour).UnixMilli(), 10)+"-1", "data", "x")
		if err := s.client.XTrimMaxLen(t.Context(), feed.Events(network), 0).Err(); err != nil {
			t.Fatal(err)
		}
		publish(t, h.publisher(s.stream(), 1))
		h.check(1, 1, 3, s.window(t))
	})
}

// TestForeignStreams puts into Redis what is not the journal's and expects the
// journal's window afterwards.
func TestForeignStreams(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 7)
		h.live(4)
		h.old(3)
		h.live(2)
		other := newHistory(t, 8)
		other.live(6)
		longer := newHistory(t, 9)
		longer.live(20)
		own := &model{}
		publish(t, h.publisher(own, 3))
		items := own.snapshot()
		for _, c := range []struct {
			name string
			set  func()
		}{
			{"lower epoch", func() { publish(t, h.publisher(s.stream(), 2)) }},
			{"lower epoch, other events", func() { publish(t, other.publisher(s.stream(), 2)) }},
			{"same epoch, other events", func() { publish(t, other.publisher(s.stream(), 3)) }},
			{"same epoch, beyond the journal's end", func() { publish(t, longer.publisher(s.stream(), 3)) }},
			{"same epoch, a run of history that ends elsewhere", func() {
				entry := decode(t, items)[4]
				entry.ID.Offset--
				item, err := entry.Item()
				if err != nil {
					t.Fatal(err)
				}
				s.set(t, []feed.Item{item})
			}},
			{"not JSON", func() { s.add(t, "1-1", "data", "hello") }},
			{"another field", func() { s.add(t, "1-1", "payload", "hello", "data2", "x") }},
			{"an entry of somebody behind ours", func() {
				s.set(t, items)
				s.add(t, "9999999999999-1", "data", items[0].Data)
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				s.set(t, nil)
				c.set()
				registry := prometheus.NewPedanticRegistry()
				publish(t, h.publisher(s.stream(), 3, func(cfg *feed.PublisherConfig) { cfg.Registerer = registry }))
				h.check(3, 1, 9, s.window(t))
				if n := counter(t, registry, "attestry_feed_replaced_total"); n != 1 {
					t.Errorf("replaced %v times", n)
				}
			})
		}
	})
}

func TestStreamOfHigherEpochStays(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h, newer := newHistory(t, 10), newHistory(t, 11)
		h.live(5)
		newer.live(3)
		publish(t, newer.publisher(s.stream(), 9))
		_, err := h.publisher(s.stream(), 8).PublishOnce(t.Context())
		e, ok := errors.AsType[*feed.NewerEpochError](err)
		if !ok || e.Stream != 9 || e.Store != 8 {
			t.Fatalf("got %v", err)
		}
		newer.check(9, 1, 3, s.window(t))
		// Also when a later version of the program wrote what this one cannot read.
		s.add(t, "9999999999999-4", "data", `{"epoch":"9","kind":"new"}`)
		if _, err := h.publisher(s.stream(), 8).PublishOnce(t.Context()); !cmp.Equal(err, error(e)) {
			t.Fatalf("got %v", err)
		}
	})
}

// TestRedisLosesItsData rolls Redis back behind the publisher's back.
func TestRedisLosesItsData(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 12)
		p := h.publisher(s.stream(), 1)
		h.live(5)
		h.old(2)
		h.live(5)
		publish(t, p)
		key := feed.Events(network)
		messages, err := s.client.XRange(t.Context(), key, "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		want := s.window(t)
		for keep := range messages {
			if err := s.client.Del(t.Context(), key).Err(); err != nil {
				t.Fatal(err)
			}
			for _, m := range messages[:keep] {
				s.add(t, m.ID, "data", m.Values["data"].(string))
			}
			publish(t, p)
			if diff := cmp.Diff(want, s.window(t)); diff != "" {
				t.Fatalf("rolled back to %d entries (-want +got):\n%s", keep, diff)
			}
		}
	})
}

func TestTrim(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 13)
		registry := prometheus.NewPedanticRegistry()
		p := h.publisher(s.stream(), 1, func(cfg *feed.PublisherConfig) { cfg.Registerer = registry; cfg.MaxBytes = 100 << 10 })
		for range 40 {
			h.live(10)
			h.now = h.now.Add(time.Minute)
		}
		publish(t, p)
		trim := func() {
			t.Helper()
			for {
				n, err := p.Trim(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					return
				}
			}
		}
		trim() // by bytes: an entry has more than 500, a node of the server at most 100 entries
		entries := s.window(t)
		if len(entries) > 300 || len(entries) < 10 {
			t.Errorf("%d entries left", len(entries))
		}
		h.check(1, entries[0].From, 400, entries)

		h.now = h.now.Add(2 * feed.Window)
		trim() // by time: the newest stays, and with it at most the rest of its node
		entries = s.window(t)
		if len(entries) == 0 || len(entries) > 100 {
			t.Errorf("%d entries left", len(entries))
		}
		h.check(1, entries[0].From, 400, entries)
		if n := counter(t, registry, "attestry_feed_trimmed_total"); n != float64(400-len(entries)) {
			t.Errorf("counted %v trimmed", n)
		}
		h.live(1)
		publish(t, p)
		entries = s.window(t)
		h.check(1, entries[0].From, 401, entries)
	})
}

// ages is a journal that has a batch of one event at every offset up to its end:
// offset o is one second older than o+1, the end is of now.
type ages struct {
	end archive.Offset
	now time.Time
	h   *history // whose first event is that of every offset
}

func (a *ages) Watermark(context.Context) (archive.Offset, error) { return a.end / 3, nil }

func (a *ages) Batches(_ context.Context, from archive.Offset) iter.Seq2[archive.Batch, error] {
	return func(yield func(archive.Batch, error) bool) {
		for o := from; o <= a.end; o++ {
			b := a.h.events()[1]
			age := time.Duration(math.MaxInt64)
			if back := a.end - o; back < 1<<30 {
				age = time.Duration(back) * time.Second
			}
			b.Offset, b.WallTime = o, a.now.Add(-age)
			if b.WallTime.Unix() < 0 {
				b.WallTime = time.Unix(0, 0)
			}
			event := b.Events[0]
			event.Offset = o
			b.Events = []archive.Event{event}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// TestHugeOffsets keeps every digit beyond 2^63 from the journal to the reader.
func TestHugeOffsets(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 14)
		h.live(1)
		// The window's first offset is 24 hours of seconds before the end.
		a := &ages{end: math.MaxUint64 - 7, now: h.now, h: h}
		p, err := feed.NewPublisher(feed.PublisherConfig{
			Journal: a, Store: archive.StoreInfo{Network: network, Epoch: math.MaxUint64}, Stream: s.stream(), Now: h.clock,
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := p.PublishOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		entries := s.window(t)
		first := a.end - archive.Offset(feed.Window/time.Second)
		if len(entries) != 300 { // what a step reads, three times
			t.Fatalf("%d entries", len(entries))
		}
		for i, e := range entries {
			if want := first + archive.Offset(i); e.From != want || e.ID.Offset != want || e.Event.Offset != want || e.Epoch != math.MaxUint64 {
				t.Fatalf("entry %d is %s from %d of epoch %d, not of offset %d", i, e.ID, e.From, e.Epoch, want)
			}
		}
		next := take(t, s.reader(t, math.MaxUint64, nil), feed.After(first+250), 1)
		if next[0].ID.Offset != first+251 {
			t.Errorf("read on with offset %d, not %d", next[0].ID.Offset, first+251)
		}
	})
}

func TestWallTimeGoingBack(t *testing.T) {
	h := newHistory(t, 15)
	h.live(1)
	a := &ages{end: 5, now: h.now, h: h}
	m := &model{}
	p, err := feed.NewPublisher(feed.PublisherConfig{Journal: a, Store: archive.StoreInfo{Network: network, Epoch: 1}, Stream: m, Now: h.clock})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p)
	a.end, a.now = 9, h.now.Add(-time.Minute)
	if _, err := p.PublishOnce(t.Context()); err == nil {
		t.Fatal("published with a wall time before its predecessor's")
	}
	if len(m.snapshot()) != 5 {
		t.Errorf("%d entries", len(m.snapshot()))
	}
}

func TestNewPublisherRefuses(t *testing.T) {
	h := newHistory(t, 16)
	good := feed.PublisherConfig{Journal: h, Store: archive.StoreInfo{Network: network, Epoch: 1}, Stream: &model{}, Registerer: prometheus.NewRegistry()}
	if _, err := feed.NewPublisher(good); err != nil {
		t.Fatal(err)
	}
	if _, err := feed.NewPublisher(good); err == nil {
		t.Error("metrics were registered twice")
	}
	for name, spoil := range map[string]func(*feed.PublisherConfig){
		"journal": func(c *feed.PublisherConfig) { c.Journal = nil },
		"stream":  func(c *feed.PublisherConfig) { c.Stream = nil },
		"epoch":   func(c *feed.PublisherConfig) { c.Store.Epoch = 0 },
		"network": func(c *feed.PublisherConfig) { c.Store.Network = 0 },
	} {
		cfg := good
		cfg.Registerer = nil
		spoil(&cfg)
		if _, err := feed.NewPublisher(cfg); err == nil {
			t.Errorf("made without a %s", name)
		}
	}
}

func published(t testing.TB, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "attestry_feed_published_total" {
			for _, m := range f.GetMetric() {
				kinds[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return kinds
}

func counter(t testing.TB, g prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
