package feed_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/internal/testenv"
)

var errLost = errors.New("reply lost")

// faulty is a Stream whose requests are lost before they have an effect, or after,
// or arrive much later; and which lets others act just before a request.
type faulty struct {
	feed.Stream
	rand   *rand.Rand
	others func()   // acts of others between a look and the request
	late   []func() // requests that are still under way
}

func (f *faulty) request(ctx context.Context, do func(context.Context) (feed.Item, error)) (feed.Item, error) {
	if f.others != nil && f.rand.IntN(3) == 0 {
		f.others()
	}
	switch f.rand.IntN(8) {
	case 0:
		return feed.Item{}, errLost
	case 1:
		_, _ = do(ctx)
		return feed.Item{}, errLost
	case 2:
		f.late = append(f.late, func() { _, _ = do(ctx) })
		return feed.Item{}, errLost
	case 3:
		_, _ = do(ctx) // the client sends it again
	}
	return do(ctx)
}

func (f *faulty) Append(ctx context.Context, last feed.Item, items []feed.Item) (feed.Item, error) {
	return f.request(ctx, func(ctx context.Context) (feed.Item, error) { return f.Stream.Append(ctx, last, items) })
}

func (f *faulty) Delete(ctx context.Context, last feed.Item) (feed.Item, error) {
	return f.request(ctx, func(ctx context.Context) (feed.Item, error) { return f.Stream.Delete(ctx, last) })
}

// backing is a stream as a schedule needs it: read and set from outside.
type backing interface {
	feed.Stream
	snapshot() []feed.Item
	set([]feed.Item)
}

// schedule lets two publishers of one store and one of its predecessor act in
// random order while the journal grows and Redis loses data, and then expects the
// journal's window.
func schedule(t *testing.T, stream backing, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	h, before := newHistory(t, r.Uint64()), newHistory(t, r.Uint64())
	before.live(3)
	f := &faulty{Stream: stream, rand: r}
	few := func(cfg *feed.PublisherConfig) { cfg.MaxEntries = 3 }
	publishers := []*feed.Publisher{h.publisher(f, 2, few), h.publisher(f, 2, few), before.publisher(f, 1, few)}
	step := func(p *feed.Publisher) {
		_, err := p.PublishOnce(t.Context())
		if _, newer := errors.AsType[*feed.NewerEpochError](err); err != nil && !newer && !errors.Is(err, errLost) {
			t.Fatal(err)
		}
	}
	var unapplied []archive.Batch
	var saved []feed.Item
	f.others = func() {
		others := f.others
		f.others = nil // one level is enough
		step(publishers[r.IntN(3)])
		f.others = others
	}
	for range 60 {
		h.now = h.now.Add(time.Duration(r.IntN(3)) * time.Millisecond)
		switch r.IntN(12) {
		case 0, 1:
			unapplied = append(unapplied, h.add(archive.ClassLive, 1+r.IntN(3)))
		case 2:
			unapplied = append(unapplied, h.add(archive.ClassHistory, 1+r.IntN(3)))
		case 3, 4:
			if n := len(unapplied); n > 0 {
				i := r.IntN(n)
				h.apply(unapplied[i])
				unapplied = append(unapplied[:i], unapplied[i+1:]...)
			}
		case 5:
			saved = stream.snapshot()
		case 6:
			stream.set(saved)
		case 7:
			stream.set(nil)
		case 8:
			if n := len(f.late); n > 0 {
				i := r.IntN(n)
				f.late[i]()
				f.late = append(f.late[:i], f.late[i+1:]...)
			}
		default:
			step(publishers[r.IntN(3)])
		}
		verify(t, h, stream)
	}
	for _, b := range unapplied {
		h.apply(b)
	}
	for _, land := range f.late {
		land()
		verify(t, h, stream)
	}
	publish(t, h.publisher(stream, 2))
	h.check(2, 1, h.end-1, decode(t, stream.snapshot()))
}

// verify fails if a stream of the newest epoch is not the journal's at any moment.
func verify(t *testing.T, h *history, stream backing) {
	t.Helper()
	entries := decode(t, stream.snapshot())
	if n := len(entries); n > 0 && entries[n-1].Epoch == 2 {
		h.check(2, 1, entries[n-1].ID.Offset, entries)
	}
}

// TestStreamComparesTheWholeEntry holds a stream to its contract when two histories
// have an entry of the same id, as a restored journal has.
func TestStreamComparesTheWholeEntry(t *testing.T) {
	check := func(t *testing.T, stream backing) {
		items := make([]feed.Item, 4)
		for i := range items {
			items[i] = feed.Item{ID: feed.ID{Millis: 5, Offset: archive.Offset(i + 1)}, Data: "of epoch 2"}
		}
		old := feed.Item{ID: items[1].ID, Data: "of epoch 1"}
		request := func(what string, want feed.Item, do func() (feed.Item, error)) {
			t.Helper()
			for range 2 { // the second is a repetition
				if got, err := do(); err != nil || got != want {
					t.Fatalf("%s: found %v, not %v: %v", what, got, want, err)
				}
			}
		}
		appends := func(last feed.Item, items ...feed.Item) func() (feed.Item, error) {
			return func() (feed.Item, error) { return stream.Append(t.Context(), last, items) }
		}
		deletes := func(last feed.Item) func() (feed.Item, error) {
			return func() (feed.Item, error) { return stream.Delete(t.Context(), last) }
		}
		request("append to what is not there", feed.Item{}, appends(items[0], items[1]))
		request("append to nothing", items[1], appends(feed.Item{}, items[:2]...))
		request("append behind another history's entry", items[1], appends(old, items[2]))
		request("delete another history", items[1], deletes(old))
		request("delete nothing", items[1], deletes(feed.Item{}))
		request("append", items[3], appends(items[1], items[2:]...))
		request("append late", items[3], appends(items[1], items[2]))
		request("delete", feed.Item{}, deletes(items[3]))
		if got := stream.snapshot(); len(got) != 0 {
			t.Errorf("left: %v", got)
		}
	}
	t.Run("model", func(t *testing.T) { check(t, &model{}) })
	onEach(t, func(t *testing.T, s *server) { check(t, &redisBacking{s.stream(), t, s}) })
}

// redisBacking gives a RedisStream what a schedule needs.
type redisBacking struct {
	*feed.RedisStream
	t *testing.T
	s *server
}

func (b *redisBacking) set(items []feed.Item) { b.s.set(b.t, items) }

func (b *redisBacking) snapshot() []feed.Item {
	b.t.Helper()
	var items []feed.Item
	for _, e := range b.s.window(b.t) {
		item, err := e.Item()
		if err != nil {
			b.t.Fatal(err)
		}
		items = append(items, item)
	}
	return items
}

func TestSchedulesOnModel(t *testing.T) {
	seed := testenv.Seed(t)
	for i := range uint64(60) {
		schedule(t, &model{}, seed+i)
		if t.Failed() {
			t.Fatalf("schedule of seed %d", seed+i)
		}
	}
}

func TestSchedulesOnRedis(t *testing.T) {
	seed := testenv.Seed(t)
	onEach(t, func(t *testing.T, s *server) {
		for i := range uint64(8) {
			s.set(t, nil)
			schedule(t, &redisBacking{s.stream(), t, s}, seed+i)
		}
	})
}

// TestPublishersAtOnce lets real goroutines race.
func TestPublishersAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 20)
		for range 30 {
			h.live(7)
			h.old(2)
		}
		var group sync.WaitGroup
		for range 4 {
			p := h.publisher(s.stream(), 1, func(cfg *feed.PublisherConfig) { cfg.MaxEntries = 5 })
			group.Go(func() {
				for {
					progress, err := p.PublishOnce(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if !progress {
						return
					}
				}
			})
		}
		group.Wait()
		h.check(1, 1, h.end-1, s.window(t))
	})
}
