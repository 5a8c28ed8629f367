package ingest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/attestry/attestry/archive"
)

// rejectsAnHour bounds the rejects that are kept of one source in an hour; those
// beyond are counted.
const rejectsAnHour = 10_000

// writeAll settles chunk after chunk.
func (p *pipe) writeAll(ctx context.Context, in <-chan *chunk) error {
	for c := range in {
		if err := p.settle(ctx, c); err != nil {
			return err
		}
		for i := range c.deliveries {
			p.budget.Release(weight(&c.deliveries[i]))
		}
		p.c.OnProgress(p.summary.clone())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// The source has ended and no set was learnt that these wait for.
	for range p.held {
		p.count(Result{Outcome: archive.OutcomeError, Reason: reasonFutureSet})
	}
	p.held = nil
	return p.flush(ctx)
}

// settle brings a chunk into the archive: what is new into the journal, what is
// refused among the rejects, the source's position behind both.
func (p *pipe) settle(ctx context.Context, c *chunk) error {
	if p.c.Now().Sub(p.clockChecked) > clockPeriod {
		if err := p.checkClock(ctx); err != nil {
			return err
		}
		p.clockChecked = p.c.Now()
	}
	var items []Item
	var refused []rejected
	learnt := false
	for i := range c.verdicts {
		v, d := &c.verdicts[i], &c.deliveries[i]
		switch {
		case v.item != nil:
			// CRASH HERE: a set is learnt before the VAA that introduces it is journalled.
			// Its source delivers it again; the set is proved by itself.
			ok, err := p.c.Verifier.learn(ctx, v.item)
			if err != nil {
				return fmt.Errorf("keep a guardian set: %w", err)
			}
			learnt = learnt || ok
			items = append(items, *v.item)
		case v.held && p.hold(d):
		default:
			refused = append(refused, rejected{d, v.fault})
		}
	}
	if learnt {
		more, bad := p.retryHeld()
		items, refused = append(items, more...), append(refused, bad...)
	}
	if err := p.write(ctx, items); err != nil {
		return err
	}
	if err := p.putRejects(ctx, refused); err != nil {
		return err
	}
	// CRASH HERE: everything of the chunk is settled but the source's position does
	// not say so. It is delivered again and is duplicate.
	return p.commit(ctx, c)
}

// hold keeps a delivery until its guardian set is learnt; false when no more can
// be kept.
func (p *pipe) hold(d *Delivery) bool {
	if len(p.held) >= heldItems || p.heldBytes+len(d.Raw) > heldBytes {
		return false
	}
	p.held = append(p.held, d)
	p.heldBytes += len(d.Raw)
	p.metrics.held.Set(float64(len(p.held)))
	return true
}

func (p *pipe) retryHeld() ([]Item, []rejected) {
	var items []Item
	var refused []rejected
	waiting := p.held
	p.held, p.heldBytes = nil, 0
	for _, d := range waiting {
		switch v := p.c.Verifier.verify(d, p.src.Name()); {
		case v.item != nil:
			items = append(items, *v.item)
		case v.held && p.hold(d):
		default:
			refused = append(refused, rejected{d, v.fault})
		}
	}
	p.metrics.held.Set(float64(len(p.held)))
	return items, refused
}

// write settles items, trying again for a while when the store fails: what is
// durable already is a duplicate then.
func (p *pipe) write(ctx context.Context, items []Item) error {
	for try := 1; len(items) > 0; try++ {
		start := p.c.Now()
		results, err := p.c.Writer.Write(ctx, p.c.Class, items)
		p.metrics.writeSeconds.Observe(p.c.Now().Sub(start).Seconds())
		n := 0
		for n < len(results) && results[n].Outcome != archive.OutcomeError {
			n++
		}
		if err := p.countAll(ctx, items[:n], results[:n]); err != nil {
			return err
		}
		items, results = items[n:], results[n:]
		if n > 0 {
			p.c.Wake()
		}
		if err == nil {
			continue
		}
		if try >= writeTries || errors.Is(err, archive.ErrSealed) || ctx.Err() != nil {
			for i := range items {
				p.count(results[i])
			}
			return fmt.Errorf("store %d items of %s: %w; run it again, what is stored will be duplicate", len(items), p.src.Name(), err)
		}
		p.c.Logger.Warn("the store fails, trying again", zap.Int("try", try), zap.Error(err))
		if err := sleep(ctx, writePause<<(try-1)); err != nil {
			return err
		}
	}
	return nil
}

// countAll counts results; items that classification refused become rejects.
func (p *pipe) countAll(ctx context.Context, items []Item, results []Result) error {
	var refused []rejected
	for i, r := range results {
		if r.Outcome == archive.OutcomeInvalid {
			refused = append(refused, rejected{&Delivery{Raw: items[i].bytes()}, &Fault{r.Reason, r.Detail}})
			continue
		}
		p.count(r)
	}
	return p.putRejects(ctx, refused)
}

func (p *pipe) count(r Result) {
	p.summary.add(r)
	p.metrics.items.WithLabelValues(r.Outcome.String()).Inc()
	if r.Reason != "" {
		p.metrics.reasons.WithLabelValues(r.Reason).Inc()
	}
}

type rejected struct {
	delivery *Delivery
	fault    *Fault
}

// putRejects keeps what was refused. An item whose reject cannot be stored is not
// settled.
func (p *pipe) putRejects(ctx context.Context, refused []rejected) error {
	var g errgroup.Group
	g.SetLimit(8)
	for _, r := range refused {
		if !p.rejects.take(p.src.Name(), p.c.Now()) {
			p.summary.RejectsDropped++
			continue
		}
		detail := r.fault.Detail
		if r.delivery.Where != "" {
			detail = r.delivery.Where + ": " + detail
		}
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			return p.c.Store.PutReject(ctx, archive.Reject{
				Reason: r.fault.Reason, Detail: detail, Source: p.src.Name(),
				Bytes: r.delivery.Raw, SHA256: sha256.Sum256(r.delivery.Raw),
			})
		})
	}
	outcome := archive.OutcomeInvalid
	err := g.Wait()
	if err != nil {
		outcome = archive.OutcomeError
	}
	for _, r := range refused {
		p.count(Result{Outcome: outcome, Reason: r.fault.Reason})
		p.c.Logger.Debug("refused", zap.String("source", p.src.Name()), zap.String("where", r.delivery.Where),
			zap.String("reason", r.fault.Reason), zap.String("detail", r.fault.Detail))
	}
	return err
}

// commit moves the source's position over the contiguous work that is settled:
// not over an item that is held.
func (p *pipe) commit(ctx context.Context, c *chunk) error {
	to := c.deliveries[len(c.deliveries)-1].Position
	if len(p.held) > 0 && p.held[0].Position > 0 {
		to = min(to, p.held[0].Position-1)
	}
	if to <= p.cursor {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := p.c.Store.CommitCursor(ctx, p.src.Name(), p.cursor, to)
	if err != nil {
		// The reply may be lost, or another reader of the source is further.
		at, readErr := p.c.Store.Cursor(ctx, p.src.Name())
		if readErr != nil || at < to {
			return fmt.Errorf("commit the position %d of %s: %w", to, p.src.Name(), errors.Join(err, readErr))
		}
		to = at
	}
	p.cursor = to
	return nil
}

// flush leaves nothing unapplied behind: the publisher stops at it.
func (p *pipe) flush(ctx context.Context) error {
	if err := p.c.Writer.ApplyPending(ctx); err != nil {
		return fmt.Errorf("apply the journal's end: %w", err)
	}
	p.c.Wake()
	return nil
}

// giveUp says of a run that ended early what it leaves.
func (p *pipe) giveUp(err error) {
	for range p.held {
		p.count(Result{Outcome: archive.OutcomeError, Reason: reasonFutureSet})
	}
	p.held = nil
	p.c.Logger.Debug("run ended early", zap.String("source", p.src.Name()), zap.Error(err))
}

// rejectCap counts the rejects kept of each source in the current hour.
type rejectCap struct {
	mu   sync.Mutex
	hour time.Time
	kept map[string]int
}

func (c *rejectCap) take(source string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if hour := now.Truncate(time.Hour); !hour.Equal(c.hour) {
		c.hour, c.kept = hour, map[string]int{}
	}
	c.kept[source]++
	return c.kept[source] <= rejectsAnHour
}
