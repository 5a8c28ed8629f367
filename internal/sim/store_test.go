package sim

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// generation is one generation of the store.
type generation struct {
	w    *world
	info archive.StoreInfo
	// store is a handle of its own for what no process does.
	store  archive.Store
	open   func() (archive.Store, error)
	seal   func()
	close  func() error
	landed map[archive.Offset]int // step in which the batch at an offset was appended
	model  overlay                // of rules that are switched off
}

// process is the store as one process sees it: every call is a step of the
// schedule. Rules are switched off here, under the code that keeps them.
type process struct {
	archive.Store
	a         *actor
	g         *generation
	publisher bool

	sent     map[archive.Offset]archive.Batch // as this process sent them last
	assumed  *archive.Batch                   // sent, and the outcome is unknown
	readBack bool                             // the next scan is for an unknown outcome
	before   map[vaa.MessageID]archive.Record // rows as of the last scan's begin
}

// open returns the newest generation's store, and waits while it is moved.
func (a *actor) open() *process {
	for a.w.moving {
		a.park()
	}
	g := a.w.generations[len(a.w.generations)-1]
	store, err := g.open()
	if err != nil {
		a.w.problem("open generation %d: %w", g.info.Generation, err)
		panic(died{})
	}
	return &process{Store: store, a: a, g: g, sent: map[archive.Offset]archive.Batch{}}
}

func (p *process) off(r rule) bool { return p.a.w.options.off == r }

// holding reads the batch that holds an offset.
func holding(ctx context.Context, s archive.Store, o archive.Offset) (archive.Batch, bool, error) {
	for b, err := range s.Batches(ctx, o) {
		return b, err == nil, err
	}
	return archive.Batch{}, false, nil
}

// end returns the journal's end.
func end(ctx context.Context, s archive.Store) (archive.Offset, error) {
	o := archive.Offset(1)
	for b, err := range s.Batches(ctx, o) {
		if err != nil {
			return 0, err
		}
		o = b.End()
	}
	return o, nil
}

// Batches is a scan row by row. A row that was appended after the scan began may
// be missed although the one behind it is seen; so the scan must look for holes.
func (p *process) Batches(ctx context.Context, from archive.Offset) iter.Seq2[archive.Batch, error] {
	return func(yield func(archive.Batch, error) bool) {
		began, next := p.a.w.step, max(from, 1)
		readBack := p.readBack
		p.readBack = false
		if p.off(staleRows) {
			p.before = p.everyRow(ctx)
		}
		for {
			if err := p.a.look("read a row of the journal"); err != nil {
				yield(archive.Batch{}, err)
				return
			}
			b, ok, err := holding(ctx, p.Store, next)
			if err != nil {
				yield(archive.Batch{}, err)
				return
			}
			if a := p.assumed; !ok && !readBack && p.off(assumedEnd) && a != nil && a.Offset == next {
				b, ok = *a, true
			}
			if !ok {
				return
			}
			next = b.End()
			if p.g.landed[b.Offset] > began && p.a.w.chance(0.3) {
				if p.off(holes) {
					continue
				}
				return
			}
			if !yield(p.seen(b), nil) {
				return
			}
		}
	}
}

// seen changes what is read of the journal by the rules that are off.
func (p *process) seen(b archive.Batch) archive.Batch {
	if sent, ok := p.sent[b.Offset]; ok && p.off(foreignBatch) {
		b.ID = sent.ID
	}
	if p.publisher && p.off(unapplied) {
		b.Applied = true
	}
	return b
}

func (p *process) Append(ctx context.Context, b archive.Batch) error {
	if p.off(ownWallTime) {
		b.WallTime = p.a.now().UTC().Truncate(time.Millisecond)
	}
	if p.off(expiredLive) {
		b.Class = archive.ClassLive
	}
	p.sent[b.Offset] = b
	err := p.a.call("append", func() error { return p.g.append(context.WithoutCancel(ctx), p.Store, b) })
	switch taken := errors.Is(err, archive.ErrOffsetTaken); {
	case err == nil || taken:
		p.assumed = nil
	case p.off(unknownIsSuccess):
		return nil
	default:
		p.assumed = &b
	}
	p.readBack = err != nil
	return err
}

func (g *generation) append(ctx context.Context, s archive.Store, b archive.Batch) error {
	err := s.Append(ctx, b)
	if errors.Is(err, archive.ErrOffsetTaken) && g.w.options.off == raceUnseen {
		if b.Offset, err = end(ctx, s); err != nil {
			return err
		}
		b.Events = slices.Clone(b.Events)
		for i := range b.Events {
			b.Events[i].Offset = b.Offset + archive.Offset(i)
		}
		err = s.Append(ctx, b)
	}
	if err == nil {
		g.landed[b.Offset] = g.w.step
	}
	return err
}

// Apply may end in the middle of a batch.
func (p *process) Apply(ctx context.Context, b archive.Batch) error {
	if sent, ok := p.sent[b.Offset]; ok && p.off(remembered) {
		b.Events = sent.Events
	}
	parts := [][]archive.Event{b.Events}
	if n := len(b.Events); n > 1 && p.a.w.chance(0.5) {
		events := slices.Clone(b.Events)
		p.a.w.r.Shuffle(n, func(i, j int) { events[i], events[j] = events[j], events[i] })
		k := 1 + p.a.w.r.IntN(n-1)
		parts = [][]archive.Event{events[:k], events[k:]}
	}
	for _, events := range parts {
		part := b
		part.Events = events
		err := p.a.call("apply", func() error {
			p.g.model.apply(p.a.w, events)
			return p.Store.Apply(context.WithoutCancel(ctx), part)
		})
		if err != nil && !p.off(appliedUnsure) {
			return err
		}
	}
	return nil
}

func (p *process) MarkApplied(ctx context.Context, o archive.Offset) error {
	return p.a.call("mark applied", func() error { return p.Store.MarkApplied(context.WithoutCancel(ctx), o) })
}

func (p *process) PutEvidence(ctx context.Context, evidence []archive.Evidence) error {
	err := p.a.call("put evidence", func() error { return p.Store.PutEvidence(context.WithoutCancel(ctx), evidence) })
	if p.off(evidenceUnsure) {
		return nil
	}
	return err
}

// GetAll reads rows, each atomically, but not all at once.
func (p *process) GetAll(ctx context.Context, ids []vaa.MessageID, columns archive.Columns) (map[vaa.MessageID]archive.Record, error) {
	rows := map[vaa.MessageID]archive.Record{}
	for i, id := range ids {
		if i == 0 || p.a.w.chance(0.3) {
			if err := p.a.look("read rows"); err != nil {
				return nil, err
			}
		}
		part, err := p.Store.GetAll(ctx, []vaa.MessageID{id}, columns)
		if err != nil {
			return nil, err
		}
		maps.Copy(rows, part)
	}
	switch {
	case p.off(staleRows):
		rows = p.before
	case p.off(lastApplied):
		rows = p.g.model.all()
	}
	for id, r := range rows {
		rows[id] = p.weaken(r)
	}
	return rows, nil
}

// weaken drops from a record what the rules that are off let be forgotten.
func (p *process) weaken(r archive.Record) archive.Record {
	switch {
	case p.off(oldVersions):
		r.Versions = slices.DeleteFunc(slices.Clone(r.Versions), func(v archive.Version) bool { return !v.Canonical })
	case p.off(links):
		r.Links = nil
	case p.off(vanished):
		r.VanishedMarks = nil
	}
	return r
}

func (p *process) everyRow(ctx context.Context) map[vaa.MessageID]archive.Record {
	rows := map[vaa.MessageID]archive.Record{}
	for r, err := range p.Store.Scan(ctx, archive.Range{}, archive.Columns{}) {
		if err == nil {
			rows[r.ID] = r
		}
	}
	return rows
}

func (p *process) Watermark(ctx context.Context) (archive.Offset, error) {
	if err := p.a.look("read the watermark"); err != nil {
		return 0, err
	}
	if p.off(watermarkEnd) {
		return end(ctx, p.Store)
	}
	return p.Store.Watermark(ctx)
}

func (p *process) RaiseWatermark(ctx context.Context, w archive.Offset) error {
	return p.a.call("raise the watermark", func() error { return p.Store.RaiseWatermark(context.WithoutCancel(ctx), w) })
}

func (p *process) CheckOpen(ctx context.Context) error {
	if p.off(sealUnseen) {
		return nil
	}
	if err := p.a.look("check the generation"); err != nil {
		return err
	}
	return p.Store.CheckOpen(ctx)
}

func (p *process) Cursor(ctx context.Context, source string) (uint64, error) {
	if err := p.a.look("read the cursor"); err != nil {
		return 0, err
	}
	return p.Store.Cursor(ctx, source)
}

func (p *process) CommitCursor(ctx context.Context, source string, from, to uint64) error {
	return p.a.call("commit the cursor", func() error { return p.Store.CommitCursor(context.WithoutCancel(ctx), source, from, to) })
}
