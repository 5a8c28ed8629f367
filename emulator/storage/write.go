package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2"

	"github.com/attestry/attestry/emulator/filter"
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

	log     *ChangeLog // of the table; nil when it has no change stream
	origin  btpb.ReadChangeStreamResponse_DataChange_Type
	change  *Change // of the row, nil while there is none
	changes []*Change
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
// read them with Tx.View and must write to no others, and not ask for tables. When
// Update returns nil the write is durable.
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
	if err := e.disk.err(); err != nil {
		return err
	}
	var b *pebble.Batch
	if access == ReadAndWrite {
		b = e.db.NewIndexedBatch()
	} else {
		b = e.db.NewBatch()
	}
	defer e.release(b)
	tx := &Tx{engine: e, table: t, batch: b, log: e.streams.of(t), origin: btpb.ReadChangeStreamResponse_DataChange_USER}
	if err := f(tx); err != nil {
		return err
	}
	if len(tx.changes) > 0 {
		return e.commitChanges(tx, unlock)
	}
	if b.Empty() {
		unlock()
		return e.settle()
	}
	return e.commit(b, unlock)
}

// commitChanges is commit with the changes that the table's change stream is told
// of.
func (e *Engine) commitChanges(tx *Tx, unlock func()) error {
	e.unsynced.Add(1)
	defer e.unsynced.Add(-1)
	commit, err := tx.log.apply(tx.batch, tx.changes)
	unlock()
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := tx.batch.SyncWait(); err != nil {
		return fmt.Errorf("make a write durable: %w", err)
	}
	tx.log.acknowledge(commit)
	return nil
}

// commit makes a batch readable, unlocks, and waits until it is durable: writers
// that wait for one row share the wait for the disk.
func (e *Engine) commit(b *pebble.Batch, unlock func()) error {
	e.unsynced.Add(1)
	defer e.unsynced.Add(-1)
	err := e.durable(e.db.ApplyNoSyncWait(b, pebble.Sync))
	unlock()
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := b.SyncWait(); err != nil {
		return fmt.Errorf("make a write durable: %w", err)
	}
	return nil
}

// settle waits until everything that can be read is durable: what was answered
// must not vanish with the power, even if it was written by another who was not
// answered yet.
func (e *Engine) settle() error {
	if e.unsynced.Load() == 0 {
		return nil
	}
	if err := e.durable(e.db.LogData(nil, pebble.Sync)); err != nil {
		return fmt.Errorf("make durable what was read: %w", err)
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
	tx.name, tx.dirty, tx.change = row, false, nil
	tx.row = appendRowPrefix(tx.row[:0], tx.table.id, row)
}

// Set sets a cell.
func (tx *Tx) Set(f *Family, qualifier []byte, micros int64, value []byte) error {
	if !tx.dirty && f.Def.GetGcRule().GetRule() != nil {
		tx.dirty = true
		tx.engine.dirty.add(tx.table, tx.name)
	}
	if tx.log != nil {
		tx.recordSet(f, qualifier, micros, value)
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
	if tx.log != nil {
		tx.recordDeleteColumn(f, qualifier, from, to)
	}
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
	if tx.log != nil {
		tx.recordDeleteFamily(f)
	}
	prefix := appendFamily(slices.Clone(tx.row), f)
	return tx.drop(prefix, successor(prefix))
}

// DeleteRow deletes the row.
func (tx *Tx) DeleteRow() error {
	if tx.log != nil {
		if err := tx.recordDeleteRow(); err != nil {
			return err
		}
	}
	return tx.drop(slices.Clone(tx.row), successor(tx.row))
}

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

// Record notes a mutation of the row for the table's change stream, if it has one.
// Set and the deletions do it themselves; for cells of aggregate families the
// caller of Set does.
func (tx *Tx) Record(m *btpb.Mutation) {
	if tx.log == nil {
		return
	}
	if tx.change == nil {
		tx.change = &Change{Row: []byte(tx.name), Type: tx.origin}
		tx.changes = append(tx.changes, tx.change)
	}
	tx.change.Chunks = append(tx.change.Chunks, &btpb.ReadChangeStreamResponse_MutationChunk{Mutation: m})
}

func (tx *Tx) recordSet(f *Family, qualifier []byte, micros int64, value []byte) {
	if f.Def.GetValueType().GetAggregateType() != nil {
		return
	}
	tx.Record(&btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
		FamilyName: f.Name, ColumnQualifier: qualifier, TimestampMicros: micros, Value: value,
	}}})
}

func (tx *Tx) recordDeleteColumn(f *Family, qualifier []byte, from, to int64) {
	d := &btpb.Mutation_DeleteFromColumn{FamilyName: f.Name, ColumnQualifier: qualifier}
	if from != 0 || to != 0 {
		d.TimeRange = &btpb.TimestampRange{StartTimestampMicros: from, EndTimestampMicros: to}
	}
	tx.Record(&btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: d}})
}

func (tx *Tx) recordDeleteFamily(f *Family) {
	tx.Record(&btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromFamily_{DeleteFromFamily: &btpb.Mutation_DeleteFromFamily{FamilyName: f.Name}}})
}

// recordDeleteRow notes the deletion of the families that the row has cells of, as
// production does (its documentation of change streams).
func (tx *Tx) recordDeleteRow() (err error) {
	it, err := tx.batch.NewIter(&pebble.IterOptions{LowerBound: tx.row, UpperBound: successor(tx.row)})
	if err != nil {
		return fmt.Errorf("read what is to be deleted: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(tx.table.families)) {
		f := tx.table.families[name]
		prefix := appendFamily(slices.Clone(tx.row), f)
		if it.SeekGE(prefix) && bytes.HasPrefix(it.Key(), prefix) {
			tx.recordDeleteFamily(f)
		}
	}
	return it.Close()
}

// DropRows deletes the rows whose keys begin with prefix; all rows when it is
// empty. Where the table has a change stream it takes them one by one.
func (e *Engine) DropRows(t *Table, prefix string) error {
	if e.streams.of(t) != nil {
		return e.dropLogged(t, prefix)
	}
	first := tablePrefix(t.id)
	end := successor(first)
	if prefix != "" {
		first = appendRowPrefix(nil, t.id, prefix)
		if next := successor([]byte(prefix)); next != nil {
			end = appendRowPrefix(nil, t.id, string(next))
		}
	}
	// A write that depends on what it read must not go on from what is dropped.
	unlock := e.lockAllRows()
	defer unlock()
	b := e.db.NewBatch()
	defer e.release(b)
	if err := errors.Join(e.disk.err(), b.DeleteRange(first, end, nil)); err != nil {
		return fmt.Errorf("drop rows: %w", err)
	}
	return e.commit(b, unlock)
}

// lockAllRows excludes all writes of rows until the function that it returns is
// called; calling that again does nothing.
func (e *Engine) lockAllRows() (unlock func()) {
	for i := range e.rows {
		e.rows[i].Lock()
	}
	return sync.OnceFunc(func() {
		for i := range e.rows {
			e.rows[i].Unlock()
		}
	})
}

// release gives a batch back that was committed or given up.
func (e *Engine) release(b *pebble.Batch) {
	if e.disk.err() == nil { // else the log may still hold on to it
		b.Close() //nolint:errcheck // there is nothing left to do with it
	}
}

const droppedRows = 1000 // in one write

// dropLogged deletes rows so that the change stream is told of each.
func (e *Engine) dropLogged(t *Table, prefix string) error {
	v, err := newView(e.db, t) // which hides nothing
	if err != nil {
		return err
	}
	var rows []string
	drop := func() error {
		err := e.Update(t, rows, ReadAndWrite, func(tx *Tx) error {
			for _, row := range rows {
				tx.Row(row)
				if err := tx.DeleteRow(); err != nil {
					return err
				}
			}
			return nil
		})
		rows = rows[:0]
		return err
	}
	err = v.Rows(Range{Start: prefix, End: string(successor([]byte(prefix)))}, false, func(row []byte, _ filter.Source) (bool, error) {
		if rows = append(rows, string(row)); len(rows) < droppedRows {
			return true, nil
		}
		err := drop()
		return err == nil, err
	})
	if err == nil && len(rows) > 0 {
		err = drop()
	}
	if err = errors.Join(err, v.Close()); err != nil {
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
