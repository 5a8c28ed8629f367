//go:build faults

package feed_test

import (
	"context"
	"testing"

	"github.com/attestry/attestry/feed"
)

// rolledBack is a stream that loses all its entries between a look and an append.
type rolledBack struct {
	*feed.RedisStream
	lose func()
}

func (r *rolledBack) Append(ctx context.Context, last feed.Item, items []feed.Item) (feed.Item, error) {
	r.lose()
	return r.RedisStream.Append(ctx, last, items)
}

// TestBlindPublisher shows what the comparison is for: with it the stream is the
// journal's again, without it what was lost is missing for good.
func TestBlindPublisher(t *testing.T) {
	for fault, right := range map[string]bool{"": true, "publisher-blind": false} {
		t.Run(fault, func(t *testing.T) {
			t.Setenv("ATTESTRY_FAULT", fault)
			onEach(t, func(t *testing.T, s *server) {
				h := newHistory(t, 70)
				h.live(5)
				publish(t, h.publisher(s.stream(), 1))
				h.live(5)
				once := true
				publish(t, h.publisher(&rolledBack{s.stream(), func() {
					if once {
						s.set(t, nil)
					}
					once = false
				}}, 1))
				if problem := h.differs(1, 1, 10, s.window(t)); (problem == "") != right {
					t.Errorf("fault %q: the stream differs by %q", fault, problem)
				}
			})
		})
	}
}
