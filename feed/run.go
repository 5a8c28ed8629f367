package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
)

const (
	tailInterval    = 250 * time.Millisecond // between looks at the journal's tail
	standbyInterval = 500 * time.Millisecond // between attempts at the lock
	renewInterval   = 3 * time.Second        // less than a third of the lock's ten
	trimInterval    = time.Minute
	turnTimeout     = 30 * time.Second
	releaseTimeout  = 2 * time.Second
	minBackoff      = 50 * time.Millisecond
	maxBackoff      = 5 * time.Second
)

// Run publishes until ctx ends, and then returns nil. Without the lock it stands
// by. While Redis or the store is down it tries again, more and more rarely.
// Errors: NewerEpochError when this store is not the newest any more.
func (p *Publisher) Run(ctx context.Context) error {
	defer p.release(ctx)
	var retry backoff
	for ctx.Err() == nil {
		pause, err := p.turn(ctx)
		if ctx.Err() != nil {
			break
		}
		if newer, ok := errors.AsType[*NewerEpochError](err); ok {
			return newer
		}
		p.logState(err)
		if err != nil {
			sleep(ctx, retry.next(), nil)
			continue
		}
		retry = backoff{}
		wake := p.wake
		if p.cfg.Lock != nil && !p.held {
			wake = nil // whoever is active looks for itself
		}
		sleep(ctx, pause, wake)
	}
	return nil
}

// turn is one turn of the loop. It returns how long to wait if nobody wakes the
// publisher.
func (p *Publisher) turn(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	if active, err := p.hold(ctx); err != nil {
		return 0, err
	} else if !active {
		return standbyInterval, p.follow(ctx)
	}
	progress, err := p.PublishOnce(ctx)
	if err != nil {
		return 0, err
	}
	if now := p.cfg.Now(); !now.Before(p.trimAt) {
		removed, err := p.Trim(ctx)
		if err != nil {
			return 0, err
		}
		if removed == 0 {
			p.trimAt = now.Add(trimInterval)
		}
	}
	if progress {
		return 0, nil
	}
	return tailInterval, nil
}

// hold reports whether this publisher is the active one, and keeps it so.
func (p *Publisher) hold(ctx context.Context) (bool, error) {
	if p.cfg.Lock == nil {
		return true, nil
	}
	now := p.cfg.Now()
	if p.held && now.Sub(p.heldAt) < renewInterval {
		return true, nil
	}
	held, err := p.cfg.Lock.Hold(ctx)
	if err != nil {
		p.held = false
		return false, err
	}
	if held != p.held {
		p.log.Info("publisher changed its role", zap.Bool("active", held))
	}
	p.held, p.heldAt = held, now
	return held, nil
}

func (p *Publisher) release(ctx context.Context) {
	if !p.held {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_ = p.cfg.Lock.Release(ctx) // else it expires
	p.held = false
}

// follow observes what the active publisher has published.
func (p *Publisher) follow(ctx context.Context) error {
	last, err := p.cfg.Stream.Last(ctx)
	if err != nil {
		return err
	}
	switch epoch := epochOf(last); {
	case epoch > p.cfg.Store.Epoch:
		return &NewerEpochError{Stream: epoch, Store: p.cfg.Store.Epoch}
	case epoch == p.cfg.Store.Epoch:
		p.observe(last.ID.Offset)
	}
	return nil
}

// logState says once that publishing fails and once that it works again.
func (p *Publisher) logState(err error) {
	switch failing := err != nil; {
	case failing && !p.failing:
		p.log.Warn("publishing stopped, retrying", zap.Error(err))
	case !failing && p.failing:
		p.log.Info("publishing works again")
	}
	p.failing = err != nil
}

// Wake tells the publisher that the journal has grown. It never blocks.
func (p *Publisher) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// WaitCaughtUp returns when the stream, as far as this publisher has seen, holds
// all up to an offset. That is so too when the offset is older than the window.
// Errors: that of ctx.
func (p *Publisher) WaitCaughtUp(ctx context.Context, upTo archive.Offset) error {
	for {
		p.mu.Lock()
		published, changed := p.published, p.changed
		p.mu.Unlock()
		if published >= upTo {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait until offset %d is published, %d is: %w", upTo, published, ctx.Err())
		}
	}
}

// observe notes that the stream holds all up to an offset.
func (p *Publisher) observe(published archive.Offset) {
	p.metrics.publishedOffset.Set(float64(published))
	p.mu.Lock()
	defer p.mu.Unlock()
	if published != p.published {
		p.published = published
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

// backoff is a growing delay; the zero value is its beginning.
type backoff struct{ delay time.Duration }

// next returns a random delay of at most the bound, which doubles.
func (b *backoff) next() time.Duration {
	b.delay = min(max(2*b.delay, minBackoff), maxBackoff)
	return b.delay/2 + rand.N(b.delay/2)
}

// sleep waits for d, for wake (which may be nil) or for the end of ctx.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// publisherMetrics are the publisher's. Gauges lose digits beyond 2^53; they are
// to be looked at.
type publisherMetrics struct {
	published                              *prometheus.CounterVec
	head, publishedOffset                  prometheus.Gauge
	errors, compareLost, replaced, trimmed prometheus.Counter
}

func newPublisherMetrics(registerer prometheus.Registerer) (*publisherMetrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "attestry_feed_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "attestry_feed_" + name, Help: help})
	}
	m := &publisherMetrics{
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attestry_feed_published_total", Help: "Entries appended to the stream by kind.",
		}, []string{"kind"}),
		head:            gauge("head_offset", "Last offset of the journal that the publisher has seen."),
		publishedOffset: gauge("published_offset", "Last offset that the stream holds."),
		errors:          counter("publish_errors_total", "Steps of the publisher that failed."),
		compareLost:     counter("compare_lost_total", "Appends and deletions that found another last entry and did nothing."),
		replaced:        counter("replaced_total", "Foreign streams deleted to be written anew."),
		trimmed:         counter("trimmed_total", "Entries trimmed from the stream."),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.published, m.head, m.publishedOffset, m.errors, m.compareLost, m.replaced, m.trimmed} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func kindOf(e *Entry) string {
	if e.Event == nil {
		return kindSkipped
	}
	return e.Event.Kind.String()
}
