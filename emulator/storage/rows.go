package storage

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/attestry/attestry/emulator/filter"
)

// View reads a table as it was when the view was made. It is for one goroutine
// and must be closed. A long-lived view keeps dropped data on disk.
type View struct {
	table    *Table
	hide     func(f *Family, n int, micros int64) bool // hides garbage; nil shows it
	it       *pebble.Iterator
	want     filter.Bounds
	first    []byte // the escaped qualifier that want begins with
	keysOnly bool   // cells are given without their values
	cells    cells
	lower    []byte
	upper    []byte
	key      []byte
}

// View opens a view of a table. All that it shows is durable.
func (e *Engine) View(t *Table) (*View, error) {
	v, err := newView(e.db, t)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(e.disk.err(), e.settle()); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	if e.onRead && t.hasRules() {
		now := e.now()
		v.hide = func(f *Family, n int, micros int64) bool { return collected(f.Def.GetGcRule(), n, micros, now) }
	}
	return v, nil
}

func newView(r pebble.Reader, t *Table) (*View, error) {
	prefix := tablePrefix(t.id)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: successor(prefix), UseL6Filters: true})
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", t.Name(), err)
	}
	v := &View{table: t, it: it}
	v.cells.view = v
	return v, nil
}

// Within leaves out, from now on, cells that are not within bounds, which it keeps,
// and values unless they are asked for.
func (v *View) Within(b filter.Bounds, values bool) {
	v.want, v.first, v.keysOnly = b, appendEscaped(nil, string(b.Start)), !values
}

// Close ends the view and returns the first error that reading met.
func (v *View) Close() error { return v.it.Close() }

// A Range of rows. Its ends are row keys; Start is inclusive and End exclusive,
// and an empty End is the end of the table.
type Range struct {
	Start, End string
}

// Row returns the cells of one row, nil when it has none. They are valid until the
// next call.
func (v *View) Row(row string) (filter.Source, error) {
	v.key = appendRowPrefix(v.key[:0], v.table.id, row)
	if !v.it.SeekPrefixGE(v.key) {
		return nil, v.it.Error()
	}
	return v.source(len(v.key))
}

// Rows calls f with the rows of a range in ascending order, or in descending
// order when reverse is set; their cells ascend either way. The key and the cells
// are valid until f returns. It ends early, without an error, when f returns
// false.
func (v *View) Rows(r Range, reverse bool, f func(row []byte, cells filter.Source) (bool, error)) error {
	v.lower = appendRowPrefix(v.lower[:0], v.table.id, r.Start)
	if r.End == "" {
		v.upper = successor(tablePrefix(v.table.id))
	} else {
		v.upper = appendRowPrefix(v.upper[:0], v.table.id, r.End)
	}
	if bytes.Compare(v.lower, v.upper) >= 0 {
		return nil
	}
	if reverse {
		return v.descend(f)
	}
	return v.ascend(f)
}

func (v *View) ascend(f func([]byte, filter.Source) (bool, error)) error {
	for ok := v.it.SeekGE(v.lower); ok && bytes.Compare(v.it.Key(), v.upper) < 0; {
		more, err := v.visit(f)
		if err != nil || !more {
			return err
		}
		ok = v.leaveRow()
	}
	return v.it.Error()
}

func (v *View) descend(f func([]byte, filter.Source) (bool, error)) error {
	for ok := v.it.SeekLT(v.upper); ok && bytes.Compare(v.it.Key(), v.lower) >= 0; {
		n := split(v.it.Key())
		v.key = append(v.key[:0], v.it.Key()[:n]...)
		if !v.it.SeekGE(v.key) {
			return errors.Join(errors.New("a row vanished while it was read"), v.it.Error())
		}
		more, err := v.visit(f)
		if err != nil || !more {
			return err
		}
		ok = v.it.SeekLT(v.cells.row)
	}
	return v.it.Error()
}

// visit calls f with the row at whose first key the iterator stands.
func (v *View) visit(f func([]byte, filter.Source) (bool, error)) (bool, error) {
	source, err := v.source(split(v.it.Key()))
	if err != nil {
		return false, err
	}
	if source == nil {
		return true, nil
	}
	return f(unescape(v.cells.row[tablePart:]), source)
}

// source readies the cells of the row at whose first key the iterator stands. It
// is nil when all of them are of families that were dropped, and has none when all
// are out of bounds: who scans is told of such a row.
func (v *View) source(rowEnd int) (filter.Source, error) {
	c := &v.cells
	*c = cells{view: v, row: append(c.row[:0], v.it.Key()[:rowEnd]...), family: c.family[:0], column: c.column[:0], seek: c.seek, to: c.to}
	if err := c.settle(); err != nil {
		return nil, err
	}
	if c.done && !v.bounded() {
		return nil, nil
	}
	c.first = !c.done
	return c, nil
}

// leaveRow moves behind the row, however much of it was read.
func (v *View) leaveRow() bool {
	if v.cells.done {
		return v.it.Valid()
	}
	v.cells.pass(v.cells.row)
	return v.it.Valid()
}

// cells are the cells of one row.
type cells struct {
	view   *View
	row    []byte // the row's prefix
	key    cellKey
	first  bool // the iterator stands at a cell that was not given out
	done   bool // it stands behind the row
	cell   filter.Cell
	of     *Family
	nth    int    // of its column is the present cell
	family []byte // encoded, of the present cell
	column []byte // key up to the timestamp of the present cell
	seek   []byte
	to     []byte
}

// stepsBeforeSeek is how many keys are stepped over before a seek is cheaper.
const stepsBeforeSeek = 8

// Next implements filter.Source.
func (c *cells) Next(skip filter.Skip) (*filter.Cell, error) {
	for !c.done {
		switch {
		case c.first && skip != filter.SkipRow:
			c.first = false // nothing was given that could be skipped
		case skip == filter.SkipNone:
			c.view.it.Next()
		case skip == filter.SkipColumn:
			c.pass(c.column)
		case skip == filter.SkipFamily:
			c.pass(c.column[:c.key.familyEnd])
		default:
			c.pass(c.row)
		}
		if err := c.settle(); err != nil || c.done {
			return nil, err
		}
		if !c.hidden() {
			return c.give()
		}
		skip = filter.SkipColumn
	}
	return nil, nil
}

// Rewind implements filter.Source.
func (c *cells) Rewind() error {
	c.view.it.SeekGE(c.row)
	c.done, c.column = false, c.column[:0]
	if err := c.settle(); err != nil {
		return err
	}
	c.first = !c.done
	return nil
}

// hidden reports whether the cell is garbage that is not to be seen. What is
// garbage of a column is its end.
func (c *cells) hidden() bool {
	if c.view.hide == nil {
		return false
	}
	key := c.view.it.Key()
	if column := key[:c.key.columnEnd]; bytes.Equal(column, c.column) {
		c.nth++
	} else {
		c.nth = 0
		c.column = append(c.column[:0], column...)
	}
	return c.view.hide(c.of, c.nth, c.key.timestamp(key))
}

// pass moves behind all keys that begin with prefix, which the present one does.
func (c *cells) pass(prefix []byte) {
	it := c.view.it
	for range stepsBeforeSeek {
		if !it.Next() || !bytes.HasPrefix(it.Key(), prefix) {
			return
		}
	}
	// Prefixes end with a terminator or a generation; the first key behind them.
	c.seek = append(c.seek[:0], prefix...)
	end := successor(c.seek)
	it.SeekGE(end)
}

// settle moves on to the next cell of the row that is of a living family.
func (c *cells) settle() error {
	it := c.view.it
	for it.Valid() && bytes.HasPrefix(it.Key(), c.row) {
		k, err := decodeCellKey(it.Key(), len(c.row))
		if err != nil {
			return err
		}
		key := it.Key()
		if same := c.cell.Family != "" && bytes.Equal(c.family, key[k.rowEnd:k.familyEnd+4]); !same {
			f := c.view.table.families[string(k.family(key))]
			if f == nil || f.Generation != k.generation || !c.view.wants(f.Name) {
				c.passFamily(key, &k)
				continue
			}
			c.cell.Family, c.of = f.Name, f
			c.family = append(c.family[:0], key[k.rowEnd:k.familyEnd+4]...)
		}
		if c.outside(key, &k) {
			continue
		}
		c.key = k
		return nil
	}
	c.done = true
	return it.Error()
}

func (v *View) bounded() bool {
	return v.want.Families != nil || len(v.want.Start) > 0 || v.want.End != nil
}

func (v *View) wants(family string) bool {
	if v.want.Families == nil {
		return true
	}
	_, ok := slices.BinarySearch(v.want.Families, family)
	return ok
}

// outside reports whether the qualifier of the present key, in a family that is
// wanted, is outside of what is, and moves on if so.
func (c *cells) outside(key []byte, k *cellKey) bool {
	want := &c.view.want
	if len(want.Start) == 0 && want.End == nil {
		return false
	}
	qualifier := k.qualifier(key)
	switch {
	case bytes.Compare(qualifier, want.Start) < 0:
		c.to = append(append(c.to[:0], key[:k.familyEnd+4]...), c.view.first...)
		c.reach(c.to)
	case want.End != nil && bytes.Compare(qualifier, want.End) >= 0:
		c.passFamily(key, k)
	default:
		return false
	}
	return true
}

// passFamily moves behind the family of the present key.
func (c *cells) passFamily(key []byte, k *cellKey) {
	c.to = append(c.to[:0], key[:k.familyEnd+4]...)
	c.pass(c.to)
}

// reach moves to the first key that is not before to, which is behind the present one.
func (c *cells) reach(to []byte) {
	it := c.view.it
	for range stepsBeforeSeek {
		if !it.Next() || bytes.Compare(it.Key(), to) >= 0 {
			return
		}
	}
	it.SeekGE(to)
}

func (c *cells) give() (*filter.Cell, error) {
	it := c.view.it
	key := it.Key()
	var value []byte
	if !c.view.keysOnly {
		var err error
		if value, err = it.ValueAndErr(); err != nil {
			return nil, fmt.Errorf("read a cell: %w", err)
		}
	}
	c.column = append(c.column[:0], key[:c.key.columnEnd]...)
	c.cell.Qualifier, c.cell.Timestamp, c.cell.Value, c.cell.Labels = c.key.qualifier(c.column), c.key.timestamp(key), value, nil
	return &c.cell, nil
}
