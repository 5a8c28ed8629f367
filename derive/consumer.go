// Package derive holds the consumers of the journal that write what follows from it.
//
// Rollups count messages by period and scope (docs/decisions/0012-rollups.md). Each
// event of the journal says what stood of its message before it, so the buckets that
// it changes, and by how much, follow from the event alone. A bucket says through
// which offset it is counted: events up to there are never added again, and whoever
// counts it through more events writes what shadows it.
package derive

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
)

// Names of the cursors in the table state.
const (
	cursorGeneration = "rollup:generation" // the current generation of buckets
	cursorReserved   = "rollup:reserved"   // the newest that a rebuild has begun
)

// cursorOf names the cursor of a generation: through which offset it is counted.
func cursorOf(generation uint64) string { return "rollup:" + strconv.FormatUint(generation, 10) }

const (
	maxTurnEvents = 2000 // events that one turn counts, or one batch more
	tailInterval  = time.Second
	turnTimeout   = time.Minute
	minBackoff    = 100 * time.Millisecond
	maxBackoff    = 10 * time.Second
)

// Store is the part of the archive that rollups need.
type Store interface {
	archive.Journal
	archive.CursorStore
	archive.RollupStore
}

// Consumer counts the journal's applied events into buckets. Run and Turn are for one
// goroutine at a time; any number of consumers, in any number of processes, do no
// harm to each other.
type Consumer struct {
	store   Store
	log     *zap.Logger
	metrics *metrics
	failing bool
}

// NewConsumer returns a consumer. log and r may be nil. Errors: metrics that the
// registerer refuses.
func NewConsumer(store Store, log *zap.Logger, r prometheus.Registerer) (*Consumer, error) {
	m, err := newMetrics(r)
	if err != nil {
		return nil, fmt.Errorf("new consumer of rollups: %w", err)
	}
	if log == nil {
		log = zap.NewNop()
	}
	return &Consumer{store: store, log: log, metrics: m}, nil
}

// Run counts until ctx ends. While the store fails it tries again, more and more
// rarely.
func (c *Consumer) Run(ctx context.Context) {
	backoff := minBackoff
	for ctx.Err() == nil {
		turn, cancel := context.WithTimeout(ctx, turnTimeout)
		more, err := c.Turn(turn)
		cancel()
		if ctx.Err() != nil {
			return
		}
		c.logState(err)
		switch {
		case err != nil:
			c.metrics.errors.Inc()
			pause(ctx, backoff)
			backoff = min(2*backoff, maxBackoff)
		case more:
			backoff = minBackoff
		default:
			backoff = minBackoff
			pause(ctx, tailInterval)
		}
	}
}

// logState says once that counting fails and once that it works again.
func (c *Consumer) logState(err error) {
	switch failing := err != nil; {
	case failing && !c.failing:
		c.log.Warn("rollups cannot be counted, retrying", zap.Error(err))
	case !failing && c.failing:
		c.log.Info("rollups are counted again")
	}
	c.failing = err != nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Turn counts the next events, at most about 2,000, into the current generation. It
// reports whether there may be more.
func (c *Consumer) Turn(ctx context.Context) (more bool, err error) {
	generation, err := c.store.Cursor(ctx, cursorGeneration)
	if err != nil {
		return false, err
	}
	return c.turn(ctx, generation)
}

func (c *Consumer) turn(ctx context.Context, generation uint64) (bool, error) {
	from, err := c.store.Cursor(ctx, cursorOf(generation))
	if err != nil {
		return false, err
	}
	changes := changes{}
	through := archive.Offset(from)
	for b, err := range applied(ctx, c.store, through+1) {
		if err != nil {
			return false, err
		}
		for i := range b.Events {
			if e := &b.Events[i]; uint64(e.Offset) > from {
				if err := changes.add(e); err != nil {
					return false, fmt.Errorf("count the journal: %w; `attestry rollup rebuild` counts the rows instead", err)
				}
			}
		}
		if through = b.End() - 1; uint64(through)-from >= maxTurnEvents {
			break
		}
	}
	if uint64(through) == from {
		return false, nil
	}
	if err := c.put(ctx, generation, changes); err != nil {
		return false, err
	}
	// CRASH HERE: the buckets say that these events are counted, the cursor does not.
	// The next turn finds nothing to add to them.
	err = c.store.CommitCursor(ctx, cursorOf(generation), from, uint64(through))
	if errors.Is(err, archive.ErrCursorMoved) {
		return true, nil // another consumer has counted them as well, or the reply to an earlier call was lost
	}
	if err == nil {
		c.metrics.events.Add(float64(uint64(through) - from))
		c.metrics.offset.Set(float64(through))
	}
	return true, err
}

// put brings changes into the buckets that do not have them.
func (c *Consumer) put(ctx context.Context, generation uint64, changes changes) error {
	keys := make([]archive.BucketKey, 0, len(changes))
	for k := range changes {
		keys = append(keys, k)
	}
	stored, err := c.store.Buckets(ctx, generation, keys)
	if err != nil {
		return err
	}
	var put []archive.Bucket
	for _, k := range keys {
		b, ok := stored[k]
		if !ok {
			b.BucketKey = k
		}
		if changes.bring(&b) {
			put = append(put, b)
		}
	}
	// CRASH HERE, or in the middle: some buckets have the changes and say so, others do
	// not. The next turn adds them to the others.
	return c.store.PutBuckets(ctx, generation, put)
}
