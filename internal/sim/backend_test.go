package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/bigtable"
)

// backend makes the empty store of a generation.
type backend func(w *world, g *generation) error

// inMemory is the reference model, which refuses illegal histories.
func inMemory(w *world, g *generation) error {
	m := memarchive.New(network, func() time.Time { return w.now })
	g.store, g.seal = m, m.Seal
	g.open = func() (archive.Store, error) { return m, nil }
	g.close = func() error { return nil }
	return nil
}

// onServer are stores on a Bigtable server, each in an instance of its own.
func onServer(t *testing.T, addr string) backend {
	n := 0
	return func(_ *world, g *generation) error {
		ctx := t.Context()
		n++
		c, err := bigtable.DialLocal(ctx, addr, fmt.Sprintf("sim-%d", n))
		if err != nil {
			return err
		}
		g.close = c.Close
		if _, err := bigtable.Create(ctx, c.Admin, c.Data, network); err != nil {
			return err
		}
		// Handles remember where batches end; each process has its own.
		g.open = func() (archive.Store, error) { return bigtable.Open(ctx, c.Data, network) }
		g.store, err = g.open()
		return err
	}
}

// open makes an empty generation, open to processes once w.moving is false.
func (w *world) open(n uint64) error {
	g, err := w.newGeneration(n)
	if err != nil {
		return err
	}
	w.generations = append(w.generations, g)
	return nil
}

func (w *world) newGeneration(n uint64) (*generation, error) {
	g := &generation{
		w: w, landed: map[archive.Offset]int{},
		info: archive.StoreInfo{Network: network, Generation: n, Epoch: n},
	}
	g.model.reset()
	return g, w.backend(w, g)
}

// mover moves the archive to a new generation: sealed first, then copied table by
// table while processes that do not know yet go on writing.
func (w *world) mover(a *actor) {
	for range 5 + w.r.IntN(40) {
		a.park()
	}
	w.moving = true
	old := w.generations[len(w.generations)-1]
	old.seal()
	a.note("seal", none)
	if err := w.move(a, old); err != nil {
		w.problem("move: %w", err)
	}
	w.moving = false
}

func (w *world) move(a *actor, old *generation) error {
	ctx := context.Background()
	wait := func() {
		for range 1 + w.r.IntN(6) {
			a.park()
		}
	}
	applied := func() (archive.Offset, error) {
		o := archive.Offset(1)
		for b, err := range old.store.Batches(ctx, o) {
			if err != nil || !b.Applied {
				return o, err
			}
			o = b.End()
		}
		return o, nil
	}
	n, err := applied()
	if err != nil {
		return err
	}
	wait()
	cursors := map[string]uint64{}
	for _, s := range w.sources {
		if cursors[s.name], err = old.store.Cursor(ctx, s.name); err != nil {
			return err
		}
	}
	wait()
	var evidence []archive.Evidence
	for r, err := range old.store.Scan(ctx, archive.Range{}, archive.Columns{}) {
		if err != nil {
			return err
		}
		evidence = append(evidence, r.Evidence...)
	}
	wait()
	var journal []archive.Batch
	for b, err := range old.store.Batches(ctx, 1) {
		if err != nil {
			return err
		}
		journal = append(journal, b)
	}
	trusted := n
	if w.off == appliedCopied {
		if trusted, err = applied(); err != nil {
			return err
		}
	}
	g, err := w.newGeneration(old.info.Generation + 1)
	if err != nil {
		return err
	}
	a.note("open the next generation", none)
	// Rows of batches before N are in the copy; what else is, does not count.
	if err := g.fill(ctx, journal, n, trusted); err != nil {
		return err
	}
	if err := g.store.PutEvidence(ctx, evidence); err != nil {
		return err
	}
	for name, o := range cursors {
		if o > 0 {
			if err := g.store.CommitCursor(ctx, name, 0, o); err != nil {
				return err
			}
		}
	}
	w.generations = append(w.generations, g)
	return nil
}

// fill writes a copied journal, of which the rows of all before n were copied,
// and applies the rest as from the first batch that is not trusted on.
func (g *generation) fill(ctx context.Context, journal []archive.Batch, n, trusted archive.Offset) error {
	for _, b := range journal {
		if err := g.store.Append(ctx, b); err != nil {
			return err
		}
		if b.Offset < n || b.Offset >= trusted {
			g.model.apply(g.w, b.Events)
			if err := g.store.Apply(ctx, b); err != nil {
				return err
			}
		}
		if err := g.store.MarkApplied(ctx, b.Offset); err != nil {
			return err
		}
	}
	return nil
}
