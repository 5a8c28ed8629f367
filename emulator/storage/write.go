package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// Tx is a write to some rows of a table. It belongs to the function that Update
// calls with it.
type Tx struct {
	engine *Engine
	table  *Table
	batch  *pebble.Batch
	name   string // of the row that is written to
	row    []byte // its prefix
	dirty  bool   // something was set in it that may make garbage
	key    []byte
}

// Access says what the function of an Update does beside setting cells.
type Access bool

// The kinds of access.
const (
	SetOnly      Access = false // it calls nothing but Row and Set
	ReadAndWrite Access = true
)

// Update writes to rows of a table, all of it or nothing. It excludes other
// updates of the same rows from the call of f until the write can be read; f may
// read them with Tx.View and must write to no others. When Update returns nil the
// write is durable.
func (e *Engine) Update(t *Table, rows []string, access Access, f func(*Tx) error) error {
	locks := e.locksOf(t, rows)
	for _, i := range locks {
		e.rows[i].Lock()
	}
	unlock := sync.OnceFunc(func() {
		for _, i := range locks {
			e.rows[i].Unlock()
		}
	})
	defer unlock() // also when f panics: the server lives on
	var b *pebble.Batch
	if access == ReadAndWrite {
		b = e.db.NewIndexedBatch()
	} else {
		b = e.db.NewBatch()
	}
	defer b.Close() //nolint:errcheck // committed or given up
	if err := f(&Tx{engine: e, table: t, batch: b}); err != nil || b.Empty() {
		return err
	}
	return e.commit(b, unlock)
}

// commit makes a batch readable, unlocks, and waits until it is durable: writers
// that wait for one row share the wait for the disk.
func (e *Engine) commit(b *pebble.Batch, unlock func()) error {
	if !e.write.Sync {
		err := e.db.Apply(b, e.write)
		unlock()
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		return nil
	}
	err := e.db.ApplyNoSyncWait(b, e.write)
	unlock()
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := b.SyncWait(); err != nil {
		return fmt.Errorf("make a write durable: %w", err)
	}
	return nil
}

// locksOf returns the locks of rows, ascending and each once.
func (e *Engine) locksOf(t *Table, rows []string) []int {
	locks := make([]int, len(rows))
	for i, row := range rows {
		var h maphash.Hash
		h.SetSeed(e.seed)
		h.WriteString(row)                                               //nolint:errcheck // documented never to fail
		h.Write(binary.BigEndian.AppendUint32(make([]byte, 0, 4), t.id)) //nolint:errcheck // documented never to fail
		locks[i] = int(h.Sum64() % rowLocks)
	}
	slices.Sort(locks)
	return slices.Compact(locks)
}

// View returns a view of the table with what this write has done so far. It must
// be closed before the next write.
func (tx *Tx) View() (*View, error) { return newView(tx.batch, tx.table) }

// Row makes row the one that is written to.
func (tx *Tx) Row(row string) {
	tx.name, tx.dirty = row, false
	tx.row = appendRowPrefix(tx.row[:0], tx.table.id, row)
}

// Set sets a cell.
func (tx *Tx) Set(f *Family, qualifier []byte, micros int64, value []byte) error {
	if !tx.dirty && f.Def.GetGcRule().GetRule() != nil {
		tx.dirty = true
		tx.engine.dirty.add(tx.table, tx.name)
	}
	tx.column(f, qualifier)
	tx.key = appendTimestamp(tx.key, micros)
	return tx.batch.Set(tx.key, value, nil)
}

// Get returns a copy of the value of a cell, nil when there is none.
func (tx *Tx) Get(f *Family, qualifier []byte, micros int64) ([]byte, error) {
	tx.column(f, qualifier)
	tx.key = appendTimestamp(tx.key, micros)
	value, closer, err := tx.batch.Get(tx.key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a cell: %w", err)
	}
	return slices.Clone(value), closer.Close()
}

// Newest returns time and value of a column's newest cell; ok is false when it
// has none.
func (tx *Tx) Newest(f *Family, qualifier []byte) (micros int64, value []byte, ok bool, err error) {
	tx.column(f, qualifier)
	n := len(tx.key)
	it, err := tx.batch.NewIter(&pebble.IterOptions{LowerBound: tx.key, UpperBound: successor(tx.key)})
	if err != nil {
		return 0, nil, false, fmt.Errorf("read a column: %w", err)
	}
	if ok = it.First(); ok {
		k := cellKey{columnEnd: n}
		micros, value = k.timestamp(it.Key()), slices.Clone(it.Value())
	}
	return micros, value, ok, it.Close()
}

// DeleteColumn deletes the cells of a column with from ≤ timestamp < to; a to of
// 0 is the end of time.
func (tx *Tx) DeleteColumn(f *Family, qualifier []byte, from, to int64) error {
	tx.column(f, qualifier)
	column := slices.Clone(tx.key)
	first := column // the newest cell comes first
	if to > 0 {
		first = appendTimestamp(slices.Clone(column), to-1)
	}
	end := successor(column)
	if from > 0 {
		end = appendTimestamp(slices.Clone(column), from-1)
	}
	return tx.drop(first, end)
}

// DeleteFamily deletes the row's cells of a family.
func (tx *Tx) DeleteFamily(f *Family) error {
	prefix := appendFamily(slices.Clone(tx.row), f)
	return tx.drop(prefix, successor(prefix))
}

// DeleteRow deletes the row.
func (tx *Tx) DeleteRow() error { return tx.drop(slices.Clone(tx.row), successor(tx.row)) }

// singleDeletes is how many cells are deleted one by one: a few deletions of keys
// cost every later read less than the deletion of a range.
const singleDeletes = 32

// drop deletes the keys from first to before end.
func (tx *Tx) drop(first, end []byte) error {
	it, err := tx.batch.NewIter(&pebble.IterOptions{LowerBound: first, UpperBound: end})
	if err != nil {
		return fmt.Errorf("read what is to be deleted: %w", err)
	}
	var keys [][]byte
	ok := it.First()
	for ; ok && len(keys) < singleDeletes; ok = it.Next() {
		keys = append(keys, slices.Clone(it.Key()))
	}
	if err := it.Close(); err != nil {
		return fmt.Errorf("read what is to be deleted: %w", err)
	}
	if ok {
		return tx.batch.DeleteRange(first, end, nil)
	}
	for _, key := range keys {
		if err := tx.batch.Delete(key, nil); err != nil {
			return err
		}
	}
	return nil
}

// column makes tx.key the prefix of a column's cells.
func (tx *Tx) column(f *Family, qualifier []byte) {
	tx.key = append(tx.key[:0], tx.row...)
	tx.key = appendFamily(tx.key, f)
	tx.key = appendEscaped(tx.key, string(qualifier))
}

// DropRows deletes the rows whose keys begin with prefix; all rows when it is
// empty.
func (e *Engine) DropRows(t *Table, prefix string) error {
	first := tablePrefix(t.id)
	end := successor(first)
	if prefix != "" {
		first = appendRowPrefix(nil, t.id, prefix)
		if next := successor([]byte(prefix)); next != nil {
			end = appendRowPrefix(nil, t.id, string(next))
		}
	}
	if err := e.db.DeleteRange(first, end, pebble.Sync); err != nil {
		return fmt.Errorf("drop rows: %w", err)
	}
	return nil
}

// Size returns about how many bytes a range of rows takes on disk.
func (e *Engine) Size(t *Table, r Range) (uint64, error) {
	first := appendRowPrefix(nil, t.id, r.Start)
	end := successor(tablePrefix(t.id))
	if r.End != "" {
		end = appendRowPrefix(nil, t.id, r.End)
	}
	n, err := e.db.EstimateDiskUsage(first, end)
	return min(n, math.MaxInt64), err
}
