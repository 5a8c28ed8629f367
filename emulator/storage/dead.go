package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Cells of a family that was dropped are hidden from the moment at which it was. They
// are deleted afterwards: to find them takes a look at every row. A table says in its
// definition that it may have some, until a look found no more.

// sweepDead deletes the cells of dropped families.
func (e *Engine) sweepDead(ctx context.Context) error {
	var errs []error
	for _, t := range e.Tables("") {
		if t.dead && ctx.Err() == nil {
			errs = append(errs, e.buryDead(ctx, t))
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) buryDead(ctx context.Context, t *Table) error {
	if err := e.deleteDead(ctx, t); err != nil || ctx.Err() != nil {
		return err
	}
	e.meta.mu.Lock()
	defer e.meta.mu.Unlock()
	if e.meta.tables[t.Name()] != t {
		return nil // it has changed meanwhile; the next sweep looks again
	}
	b := e.db.NewBatch()
	defer b.Close() //nolint:errcheck // committed or given up
	clean := *t
	clean.dead = false
	return e.writeTable(b, &clean)
}

// deadBatch is how many runs of cells are deleted in one write.
const deadBatch = 1000

// deleteDead deletes the cells that are of no family of t. Nobody writes such cells
// but who began before the family was dropped; what such a write leaves stays hidden.
func (e *Engine) deleteDead(ctx context.Context, t *Table) (err error) {
	prefix := tablePrefix(t.id)
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: successor(prefix)})
	if err != nil {
		return fmt.Errorf("look for cells of dropped families: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	tx := &Tx{engine: e, table: t, batch: e.db.NewIndexedBatch()}
	defer func() { err = errors.Join(err, tx.batch.Close()) }()
	for ok := it.First(); ok && ctx.Err() == nil; {
		end := partEnd(it.Key(), split(it.Key()))
		if end < 0 || len(it.Key()) < end+4 {
			return fmt.Errorf("corrupt key %x: no family", it.Key())
		}
		family := bytes.Clone(it.Key()[:end+4])
		if f := t.families[string(unescape(family[split(family):end]))]; f == nil || f.Generation != binary.BigEndian.Uint32(family[end:]) {
			if err := tx.drop(family, successor(family)); err != nil {
				return err
			}
		}
		if tx.batch.Count() >= deadBatch {
			if err := e.durable(tx.batch.Commit(pebble.NoSync)); err != nil {
				return fmt.Errorf("delete cells of dropped families: %w", err)
			}
			tx.batch.Reset()
		}
		ok = it.SeekGE(successor(family))
	}
	if err := e.durable(tx.batch.Commit(pebble.NoSync)); err != nil {
		return fmt.Errorf("delete cells of dropped families: %w", err)
	}
	return it.Error()
}
