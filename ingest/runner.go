// Package ingest takes what sources deliver into the archive: it verifies,
// classifies, appends to the journal, applies and commits. It knows the port of
// the archive and nothing of what is behind it.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/attestry/attestry/archive"
)

// Bounds of a run.
const (
	chunkItems  = archive.MaxBatchItems
	chunkBytes  = archive.MaxBatchBytes
	chunkAge    = 50 * time.Millisecond // an item waits no longer than this for others
	queueItems  = 2 * chunkItems        // deliveries that wait to be verified
	queueBytes  = 64 << 20              // bytes of all items on their way
	heldItems   = 10_000                // items that wait for a guardian set
	heldBytes   = 64 << 20              // their bytes
	writeTries  = 5
	writePause  = time.Second // before a second try, doubled each time
	clockOff    = 10 * time.Second
	clockPeriod = time.Minute
)

// RunnerConfig is what a runner is made of. All but Logger, Registerer,
// OnProgress and Wake is required.
type RunnerConfig struct {
	Store interface {
		archive.CursorStore
		archive.RejectStore
		Clock(ctx context.Context) (time.Time, error)
	}
	Writer     *Writer
	Verifier   *Verifier
	Class      archive.Class
	Logger     *zap.Logger
	Registerer prometheus.Registerer
	// OnProgress is called after each chunk, from one goroutine; it must not block.
	OnProgress func(Summary)
	// Wake is called when events were appended and applied; it must not block.
	Wake func()
	Now  func() time.Time
}

// Runner runs sources into the archive.
type Runner struct {
	c       RunnerConfig
	metrics *metrics
	rejects rejectCap
}

// NewRunner returns a runner.
func NewRunner(c RunnerConfig) *Runner {
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.OnProgress == nil {
		c.OnProgress = func(Summary) {}
	}
	if c.Wake == nil {
		c.Wake = func() {}
	}
	return &Runner{c: c, metrics: newMetrics(c.Registerer)}
}

// chunk is a run of deliveries in order, and what verification found of each.
type chunk struct {
	deliveries []Delivery
	verdicts   []verdict
	bytes      int64
}

// Run takes everything that a source delivers into the archive, and returns what
// became of it. An error means that the source or the store ended the run; what
// the summary counts is settled all the same, but for its errors. Several runs
// may go on at once, of different sources.
func (r *Runner) Run(ctx context.Context, src Source) (Summary, error) {
	if err := r.checkClock(ctx); err != nil {
		return Summary{}, err
	}
	from, err := r.c.Store.Cursor(ctx, src.Name())
	if err != nil {
		return Summary{}, fmt.Errorf("resume %s: %w", src.Name(), err)
	}
	p := &pipe{Runner: r, src: src, cursor: from, budget: semaphore.NewWeighted(queueBytes), clockChecked: r.c.Now()}
	deliveries := make(chan Delivery, queueItems)
	chunks := make(chan *chunk, 1)
	// A source that ends early with an error must not take with it what it has
	// delivered: that still passes through.
	var sourceErr error
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(deliveries)
		sourceErr = p.read(ctx, deliveries)
		return ctx.Err()
	})
	g.Go(func() error {
		defer close(chunks)
		return p.verifyAll(ctx, deliveries, chunks)
	})
	g.Go(func() error { return p.writeAll(ctx, chunks) })
	err = g.Wait()
	if sourceErr != nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = fmt.Errorf("read %s: %w", src.Name(), sourceErr)
	}
	if err != nil {
		p.giveUp(err)
	}
	return p.summary, err
}

// pipe is one run.
type pipe struct {
	*Runner
	src    Source
	budget *semaphore.Weighted // of bytes on their way

	// The rest belongs to the goroutine that writes.
	summary      Summary
	held         []*Delivery
	cursor       uint64 // committed position
	heldBytes    int
	clockChecked time.Time
}

func (p *pipe) read(ctx context.Context, out chan<- Delivery) error {
	return p.src.Deliver(ctx, p.cursor, func(d Delivery) error {
		if err := p.budget.Acquire(ctx, weight(&d)); err != nil {
			return err
		}
		select {
		case out <- d:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

func weight(d *Delivery) int64 { return min(int64(len(d.Raw))+256, queueBytes) }

// verifyAll collects deliveries into chunks by size or age and verifies each
// chunk in parallel, keeping the order.
func (p *pipe) verifyAll(ctx context.Context, in <-chan Delivery, out chan<- *chunk) error {
	for {
		c, more := collect(ctx, in)
		if len(c.deliveries) > 0 {
			c.verdicts = make([]verdict, len(c.deliveries))
			var g errgroup.Group
			g.SetLimit(runtime.GOMAXPROCS(0))
			for i := range c.deliveries {
				g.Go(func() error {
					c.verdicts[i] = p.c.Verifier.verify(&c.deliveries[i], p.src.Name())
					return nil
				})
			}
			g.Wait() //nolint:errcheck // verification has verdicts, not errors
			select {
			case out <- c:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if !more {
			return ctx.Err()
		}
	}
}

// collect returns the next chunk, and false when the source has ended.
func collect(ctx context.Context, in <-chan Delivery) (*chunk, bool) {
	c := &chunk{}
	var age <-chan time.Time
	for len(c.deliveries) < chunkItems && c.bytes < chunkBytes {
		select {
		case d, ok := <-in:
			if !ok {
				return c, false
			}
			if age == nil {
				t := time.NewTimer(chunkAge)
				defer t.Stop()
				age = t.C
			}
			c.deliveries = append(c.deliveries, d)
			c.bytes += int64(len(d.Raw))
		case <-age:
			return c, true
		case <-ctx.Done():
			return c, false
		}
	}
	return c, true
}

// checkClock refuses to write with a clock that is far from the store's: wall
// times order the stream.
func (r *Runner) checkClock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	store, err := r.c.Store.Clock(ctx)
	if err != nil {
		return fmt.Errorf("compare clocks: %w", err)
	}
	if off := r.c.Now().Sub(store); off.Abs() > clockOff {
		return fmt.Errorf("this machine's clock is %s off the store's, at most %s are tolerated; set the clock", off.Round(time.Millisecond), clockOff)
	}
	return nil
}
