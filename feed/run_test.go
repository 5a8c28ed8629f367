package feed_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
)

// memoryLock is a lock of several publishers that expires by the clock.
type memoryLock struct {
	mu      sync.Mutex
	holder  *handle
	expires time.Time
}

// handle is one publisher's view of a lock.
type handle struct {
	lock *memoryLock
	down bool // as if Redis were out of reach, for this one
}

func (h *handle) Hold(context.Context) (bool, error) {
	l := h.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.down {
		return false, errLost
	}
	if now := time.Now(); l.holder == h || l.holder == nil || !now.Before(l.expires) {
		l.holder, l.expires = h, now.Add(10*time.Second)
	}
	return l.holder == h, nil
}

func (h *handle) Release(context.Context) error {
	h.lock.mu.Lock()
	defer h.lock.mu.Unlock()
	if h.lock.holder == h {
		h.lock.holder = nil
	}
	return nil
}

func (h *handle) setDown(down bool) {
	h.lock.mu.Lock()
	defer h.lock.mu.Unlock()
	h.down = down
}

// start runs a publisher and returns what stops it and gives its error.
func start(t testing.TB, p *feed.Publisher) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

// bubble is a history and a stream under synctest's clock.
func bubble(t *testing.T, seed uint64) (*history, *model) {
	h := newHistory(t, seed)
	h.now = time.Now()
	return h, &model{}
}

func realClock(cfg *feed.PublisherConfig) { cfg.Now = time.Now }

// within fails unless the stream holds the journal up to an offset after d at most.
func within(t testing.TB, p *feed.Publisher, d time.Duration, upTo archive.Offset) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := p.WaitCaughtUp(ctx, upTo); err != nil {
		t.Fatal(err)
	}
}

func TestRunWakesAndLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, m := bubble(t, 50)
		p := h.publisher(m, 1, realClock)
		stop := start(t, p)
		synctest.Wait()
		h.live(2)
		p.Wake()
		within(t, p, time.Nanosecond, 2)
		h.live(2)
		within(t, p, 251*time.Millisecond, 4)
		p.Wake() // more often than anyone listens
		p.Wake()
		p.Wake()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.WaitCaughtUp(ctx, 5); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("caught up beyond the journal's end: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		h.check(1, 1, 4, decode(t, m.snapshot()))
	})
}

func TestRunSurvivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, m := bubble(t, 51)
		core, logs := observer.New(zapcore.InfoLevel)
		p := h.publisher(m, 1, realClock, func(cfg *feed.PublisherConfig) { cfg.Logger = zap.New(core) })
		stop := start(t, p)
		for range 2 {
			m.setDown(errors.New("connection refused"))
			h.live(3)
			time.Sleep(time.Hour)
			synctest.Wait()
			m.setDown(nil)
			within(t, p, 5*time.Second, h.end-1)
			synctest.Wait() // it is said after it is done
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		var messages []string
		for _, e := range logs.All() {
			messages = append(messages, e.Message)
		}
		if len(messages) != 4 {
			t.Errorf("an outage is to be said at its beginning and end only: %q", messages)
		}
	})
}

func TestRunLockElectsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, m := bubble(t, 52)
		lock := &memoryLock{}
		handles := []*handle{{lock: lock}, {lock: lock}}
		var publishers []*feed.Publisher
		var stops []func() error
		for _, l := range handles {
			p := h.publisher(m, 1, realClock, func(cfg *feed.PublisherConfig) { cfg.Lock = l })
			publishers, stops = append(publishers, p), append(stops, start(t, p))
			synctest.Wait() // the first one is active
		}
		active := func() int {
			lock.mu.Lock()
			defer lock.mu.Unlock()
			for i, l := range handles {
				if lock.holder == l {
					return i
				}
			}
			return -1
		}
		time.Sleep(time.Minute) // renewed all the time
		h.live(1)
		within(t, publishers[1], time.Second, 1) // the standby sees what the other publishes
		if active() != 0 {
			t.Fatalf("publisher %d is active", active())
		}

		// The active one loses touch: the other takes over when the lock expires.
		handles[0].setDown(true)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if active() != 1 {
			t.Fatalf("publisher %d is active", active())
		}
		h.live(1)
		within(t, publishers[1], time.Second, 2)
		handles[0].setDown(false)
		within(t, publishers[0], 6*time.Second, 2)

		// The active one ends and gives the lock up.
		if err := stops[1](); err != nil {
			t.Error(err)
		}
		h.live(1)
		within(t, publishers[0], time.Second, 3)
		if err := stops[0](); err != nil || active() != -1 {
			t.Errorf("the lock is still held by %d: %v", active(), err)
		}
		h.check(1, 1, 3, decode(t, m.snapshot()))
	})
}

func TestRunWithoutTheLockPublishesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, m := bubble(t, 53)
		lock := &memoryLock{}
		lock.holder, lock.expires = &handle{lock: lock}, time.Now().Add(10*time.Minute)
		p := h.publisher(m, 1, realClock, func(cfg *feed.PublisherConfig) { cfg.Lock = &handle{lock: lock} })
		stop := start(t, p)
		h.live(3)
		p.Wake()
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		if n := len(m.snapshot()); n != 0 {
			t.Errorf("published %d entries", n)
		}
		within(t, p, 2*time.Minute, 3) // the lock has expired
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestRunEndsWhenTheStoreIsNotTheNewest(t *testing.T) {
	for name, locked := range map[string]bool{"active": false, "standing by": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, m := bubble(t, 54)
				h.live(3)
				old := h.publisher(m, 1, realClock, func(cfg *feed.PublisherConfig) {
					if locked {
						lock := &memoryLock{}
						lock.holder, lock.expires = &handle{lock: lock}, time.Now().Add(time.Hour)
						cfg.Lock = &handle{lock: lock}
					}
				})
				done := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { done <- old.Run(ctx) }()
				time.Sleep(time.Second)
				synctest.Wait()
				publish(t, h.publisher(m, 2))
				select {
				case err := <-done:
					if _, ok := errors.AsType[*feed.NewerEpochError](err); !ok {
						t.Errorf("ended with %v", err)
					}
				case <-time.After(time.Minute):
					t.Fatal("runs on")
				}
				h.check(2, 1, 3, decode(t, m.snapshot()))
			})
		})
	}
}

func TestRunTrims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, m := bubble(t, 55)
		p := h.publisher(m, 1, realClock)
		h.now = time.Now().Add(90*time.Second - feed.Window)
		h.live(3)
		h.now = time.Now()
		h.live(3)
		stop := start(t, p)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		h.check(1, 1, 6, decode(t, m.snapshot()))
		time.Sleep(time.Minute)
		synctest.Wait()
		h.check(1, 4, 6, decode(t, m.snapshot()))
		m.mu.Lock()
		trims := m.trims
		m.mu.Unlock()
		if trims != 4 { // at the start, and each minute until nothing goes
			t.Errorf("trimmed %d times", trims)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
