package feed_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
)

const patience = 30 * time.Second

var errEnough = errors.New("enough")

// following is a Tail that runs beside a test.
type following struct {
	t       testing.TB
	entries chan feed.Entry
	done    chan error
	stop    context.CancelFunc
}

func follow(t testing.TB, r *feed.Reader, from feed.Position) *following {
	ctx, cancel := context.WithCancel(t.Context())
	f := &following{t: t, entries: make(chan feed.Entry), done: make(chan error, 1), stop: cancel}
	go func() {
		f.done <- r.Tail(ctx, from, func(e feed.Entry) error {
			select {
			case f.entries <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		close(f.done)
	}()
	t.Cleanup(func() {
		cancel()
		for range f.done {
		}
	})
	return f
}

// next returns the next n entries.
func (f *following) next(n int) []feed.Entry {
	f.t.Helper()
	deadline := time.After(patience)
	var entries []feed.Entry
	for len(entries) < n {
		select {
		case e := <-f.entries:
			entries = append(entries, e)
		case err := <-f.done:
			f.t.Fatalf("tail ended after %d of %d entries: %v", len(entries), n, err)
		case <-deadline:
			f.t.Fatalf("%d of %d entries after %s", len(entries), n, patience)
		}
	}
	return entries
}

// end returns the error that the Tail ends with.
func (f *following) end() error {
	f.t.Helper()
	select {
	case err := <-f.done:
		return err
	case e := <-f.entries:
		f.t.Fatalf("got entry %s instead of the end", e.ID)
	case <-time.After(patience):
		f.t.Fatalf("no end after %s", patience)
	}
	return nil
}

// take returns the first n entries from a position on.
func take(t testing.TB, r *feed.Reader, from feed.Position, n int) []feed.Entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var entries []feed.Entry
	err := r.Tail(ctx, from, func(e feed.Entry) error {
		if entries = append(entries, e); len(entries) == n {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Fatalf("tail ended after %d of %d entries: %v", len(entries), n, err)
	}
	return entries
}

// latest follows the stream from its end, which is found when this returns.
func latest(t testing.TB, s *server, epoch uint64) *following {
	t.Helper()
	found := &answered{done: make(chan struct{})}
	f := follow(t, s.watchedReader(t, epoch, nil, found), feed.Latest())
	select {
	case <-found.done:
	case <-time.After(patience):
		t.Fatal("redis does not answer")
	}
	return f
}

// answered tells when the first command has its answer. The commands by which its
// connection is set up lie within it.
type answered struct {
	mu    sync.Mutex
	depth int
	once  sync.Once
	done  chan struct{}
}

func (a *answered) Allow() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.depth++
	return nil
}

func (a *answered) ReportResult(error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.depth--; a.depth == 0 {
		a.once.Do(func() { close(a.done) })
	}
}

func TestTailPositions(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 30)
		p := h.publisher(s.stream(), 4)
		r := s.reader(t, 4, nil)
		early := latest(t, s, 4) // on an empty stream
		for range 5 {
			h.live(3)
			h.now = h.now.Add(time.Duration(h.end) * time.Millisecond)
		}
		h.old(4)
		h.live(2)
		publish(t, p)
		h.check(4, 1, 21, early.next(18))
		h.check(4, 1, 21, take(t, r, feed.Earliest(), 18))
		for after := range archive.Offset(21) {
			n := 18 - int(after)
			if after > 15 {
				n = max(3-max(int(after)-18, 0), 0)
			}
			// A reader that begins inside a run of history gets the rest of it.
			h.check(4, after+1, 21, take(t, r, feed.After(after), n))
		}
		beyond := follow(t, r, feed.After(23))
		late := latest(t, s, 4)
		h.live(3)
		publish(t, p)
		h.check(4, 22, 24, late.next(3))
		h.check(4, 24, 24, beyond.next(1))
	})
}

func TestTailReturnsTheCallersError(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 31)
		h.live(3)
		publish(t, h.publisher(s.stream(), 4))
		n := 0
		err := s.reader(t, 4, nil).Tail(t.Context(), feed.Earliest(), func(feed.Entry) error {
			n++
			if n == 2 {
				return errEnough
			}
			return nil
		})
		if err != errEnough || n != 2 { // as it is, not wrapped
			t.Errorf("got %v after %d entries", err, n)
		}
	})
}

// TestTailHoles cuts entries out of the stream, and its beginning off.
func TestTailHoles(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 32)
		h.live(4)
		h.old(3)
		h.live(4)
		h.old(3)
		h.live(1)
		m := &model{}
		publish(t, h.publisher(m, 4))
		items := m.snapshot() // offsets 1 2 3 4 (5-7) 8 9 10 11 (12-14) 15
		for _, c := range []struct {
			name     string
			keep     []int
			after    archive.Offset
			from, to archive.Offset // of the gap
		}{
			{"one event", []int{0, 1, 3, 4, 5, 6, 7, 8, 9, 10}, 0, 3, 3},
			{"history", []int{0, 1, 2, 3, 5, 6, 7, 8, 9, 10}, 0, 5, 7},
			{"across classes", []int{0, 1, 7, 8, 9, 10}, 1, 3, 9},
			{"the beginning", []int{6, 7, 8, 9, 10}, 2, 3, 8},
			{"all but the last", []int{10}, 0, 1, 14},
			{"behind the position", []int{0, 5, 6, 7, 8, 9, 10}, 2, 3, 7},
		} {
			t.Run(c.name, func(t *testing.T) {
				var kept []feed.Item
				for _, i := range c.keep {
					kept = append(kept, items[i])
				}
				s.set(t, kept)
				n := 0
				err := s.reader(t, 4, nil).Tail(t.Context(), feed.After(c.after), func(feed.Entry) error { n++; return nil })
				gap, ok := errors.AsType[*feed.GapError](err)
				if !ok || gap.From != c.from || gap.To != c.to {
					t.Errorf("got %v, not a gap from %d to %d", err, c.from, c.to)
				}
				var got []feed.Entry
				err = s.reader(t, 4, h).Tail(t.Context(), feed.After(c.after), func(e feed.Entry) error {
					got = append(got, e)
					if e.ID.Offset == 15 {
						return errEnough
					}
					return nil
				})
				if !errors.Is(err, errEnough) {
					t.Fatal(err)
				}
				h.check(4, c.after+1, 15, got)
			})
		}
	})
}

// TestTailFromTheJournal asks for what is older than the window of a stream that
// has nothing yet, and goes over to the stream.
func TestTailFromTheJournal(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 33)
		h.live(5)
		h.old(2)
		h.now = h.now.Add(2 * feed.Window)
		p := h.publisher(s.stream(), 4)
		publish(t, p)
		f := follow(t, s.reader(t, 4, h), feed.After(2))
		h.check(4, 3, 7, f.next(4))
		h.add(archive.ClassLive, 2) // not applied: neither served nor published
		publish(t, p)
		h.apply(h.events()[8])
		publish(t, p)
		h.check(4, 8, 9, f.next(2))
	})
}

func TestTailMeetsAnotherEpoch(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h, restored := newHistory(t, 34), newHistory(t, 35)
		h.live(5)
		publish(t, h.publisher(s.stream(), 4))
		known := follow(t, s.reader(t, 4, nil), feed.After(0))
		learnt := follow(t, s.reader(t, 0, nil), feed.Earliest())
		h.check(4, 1, 5, known.next(5))
		h.check(4, 1, 5, learnt.next(5))
		// The restored history is shorter, and older than what was read.
		restored.now = restored.now.Add(-time.Hour)
		restored.live(2)
		restored.now = h.now
		publish(t, restored.publisher(s.stream(), 5))
		for _, f := range []*following{known, learnt} {
			e, ok := errors.AsType[*feed.NewerEpochError](f.end())
			if !ok || e.Stream != 5 || e.Store != 4 {
				t.Errorf("got %v", e)
			}
		}
	})
}

// TestTailWaitsForReplacement reads a stream that a publisher is about to replace.
func TestTailWaitsForReplacement(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h, before := newHistory(t, 36), newHistory(t, 37)
		h.live(5)
		before.now = before.now.Add(time.Minute) // its ids come after those of the newer history
		before.live(9)
		for name, spoil := range map[string]func(){
			"lower epoch": func() { publish(t, before.publisher(s.stream(), 3)) },
			"not ours":    func() { s.add(t, "9999999999999-1", "data", "hello") },
		} {
			t.Run(name, func(t *testing.T) {
				s.set(t, nil)
				spoil()
				var tails []*following
				for _, from := range []feed.Position{feed.Earliest(), feed.After(0)} {
					tails = append(tails, follow(t, s.reader(t, 4, nil), from))
				}
				publish(t, h.publisher(s.stream(), 4))
				for _, f := range tails {
					h.check(4, 1, 5, f.next(5))
				}
			})
		}
	})
}

// TestTailAcrossLoss rolls the stream back under a reader: what it has had does
// not come again, and nothing is missing.
func TestTailAcrossLoss(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 38)
		p := h.publisher(s.stream(), 4)
		f := follow(t, s.reader(t, 4, nil), feed.After(0))
		var got []feed.Entry
		for i := range 4 {
			h.live(5)
			publish(t, p)
			got = append(got, f.next(5)...)
			var keep []feed.Item
			for _, e := range s.window(t)[:i] {
				item, err := e.Item()
				if err != nil {
					t.Fatal(err)
				}
				keep = append(keep, item)
			}
			s.set(t, keep)
		}
		h.check(4, 1, 20, got)
	})
}

func TestWindowYieldsWhatCannotBeRead(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		h := newHistory(t, 39)
		for range 150 {
			h.live(2)
		}
		publish(t, h.publisher(s.stream(), 4))
		h.check(4, 1, 300, s.window(t)) // more than one page
		s.set(t, nil)
		s.add(t, "5-1", "data", "hello")
		s.add(t, "5-2", "other", "x")
		s.add(t, "5-3", "data", `{"kind":"skipped","from":"1","to":"3","epoch":"4"}`)
		var ids []string
		failed := 0
		for e, err := range s.reader(t, 4, nil).Window(t.Context()) {
			ids = append(ids, e.ID.String())
			if err != nil {
				failed++
			}
		}
		if len(ids) != 3 || ids[0] != "5-1" || ids[1] != "5-2" || ids[2] != "5-3" || failed != 2 {
			t.Errorf("ids %v, %d failed", ids, failed)
		}
	})
}

func TestNewReaderRefuses(t *testing.T) {
	options, err := feed.Options("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory(t, 40)
	for name, cfg := range map[string]feed.ReaderConfig{
		"redis":   {Store: archive.StoreInfo{Network: network}},
		"network": {Redis: options},
		"epoch":   {Redis: options, Store: archive.StoreInfo{Network: network}, Journal: h},
	} {
		if _, err := feed.NewReader(cfg); err == nil {
			t.Errorf("made without a %s", name)
		}
	}
}

func TestTailSaysThatThereIsNoRedis(t *testing.T) {
	s := connect(t, "127.0.0.1:1")
	r := s.reader(t, 4, nil)
	for _, from := range []feed.Position{feed.Latest(), feed.Earliest(), feed.After(3)} {
		if err := r.Tail(t.Context(), from, func(feed.Entry) error { return nil }); err == nil {
			t.Error("no error")
		}
	}
	if _, err := all(r.Window(t.Context())); err == nil {
		t.Error("no error")
	}
}
