package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/attestry/attestry/emulator/filter"
)

const (
	// sweepPeriod is the time between sweeps of the rows written since the last.
	sweepPeriod = time.Second
	// tableSweepPeriod is the time between sweeps of tables of which more rows were
	// written than are remembered, as in a bulk import.
	tableSweepPeriod = time.Minute
	// fullSweepPeriod is the time between sweeps of everything, for what only age
	// makes garbage.
	fullSweepPeriod = time.Hour
	// dirtyRows bounds the rows that are remembered; beyond it their tables are
	// swept whole.
	dirtyRows = 1 << 14
)

// collected reports whether a rule collects the cell that is the n-th newest of
// its column, from 0. What it collects is always the oldest part of a column: a
// cell older than a collected one is collected too.
func collected(r *adminpb.GcRule, n int, micros int64, now time.Time) bool {
	switch rule := r.GetRule().(type) {
	case *adminpb.GcRule_MaxNumVersions:
		return n >= int(rule.MaxNumVersions)
	case *adminpb.GcRule_MaxAge:
		return micros < now.Add(-rule.MaxAge.AsDuration()).UnixMicro()
	case *adminpb.GcRule_Union_:
		for _, part := range rule.Union.GetRules() {
			if collected(part, n, micros, now) {
				return true
			}
		}
	case *adminpb.GcRule_Intersection_:
		for _, part := range rule.Intersection.GetRules() {
			if !collected(part, n, micros, now) {
				return false
			}
		}
		return len(rule.Intersection.GetRules()) > 0
	}
	return false
}

// dirty remembers what was written to families with a rule since the last sweep.
type dirty struct {
	mu    sync.Mutex
	rows  map[dirtyRow]bool
	whole map[string]bool // tables with more such rows than are remembered
}

type dirtyRow struct{ table, row string }

func (d *dirty) add(t *Table, row string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rows == nil {
		d.rows = map[dirtyRow]bool{}
	}
	if d.whole == nil {
		d.whole = map[string]bool{}
	}
	if len(d.rows) >= dirtyRows {
		d.whole[t.Name()] = true
		return
	}
	d.rows[dirtyRow{t.Name(), row}] = true
}

func (d *dirty) take() map[dirtyRow]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	rows := d.rows
	d.rows = nil
	return rows
}

func (d *dirty) takeTables() map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	whole := d.whole
	d.whole = nil
	return whole
}

// collectGarbage sweeps until ctx ends.
func (e *Engine) collectGarbage(ctx context.Context) {
	defer close(e.swept)
	tick := time.NewTicker(sweepPeriod)
	defer tick.Stop()
	full, tables := e.now().Add(fullSweepPeriod), e.now().Add(tableSweepPeriod)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if e.disk.err() != nil {
			return
		}
		var err error
		switch now := e.now(); {
		case now.After(full):
			full = now.Add(fullSweepPeriod)
			err = e.SweepAll(ctx)
		case now.After(tables):
			tables = now.Add(tableSweepPeriod)
			err = errors.Join(e.sweepTables(ctx, e.dirty.takeTables()), e.DropExpired(), e.trimStreams())
		default:
			err = errors.Join(e.sweepRows(ctx, e.dirty.take()), e.sweepDead(ctx))
		}
		if err != nil && ctx.Err() == nil {
			e.logger.Errorf("collect garbage: %v", err)
		}
	}
}

func (e *Engine) sweepRows(ctx context.Context, rows map[dirtyRow]bool) error {
	var errs []error
	for r := range rows {
		if t := e.Table(r.table); t != nil && ctx.Err() == nil {
			errs = append(errs, e.sweepRow(t, r.row))
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) sweepTables(ctx context.Context, names map[string]bool) error {
	var errs []error
	for name := range names {
		if t := e.Table(name); t != nil && ctx.Err() == nil {
			errs = append(errs, e.sweepTable(ctx, t))
		}
	}
	return errors.Join(errs...)
}

// SweepAll deletes everything that the rules of all tables collect now, the cells of
// families that were dropped, and the changes that are no longer kept.
func (e *Engine) SweepAll(ctx context.Context) error {
	errs := []error{e.trimStreams(), e.sweepDead(ctx)}
	for _, t := range e.Tables("") {
		if ctx.Err() == nil && t.hasRules() {
			errs = append(errs, e.sweepTable(ctx, t))
		}
	}
	return errors.Join(errs...)
}

func (t *Table) hasRules() bool {
	for _, f := range t.families {
		if f.Def.GetGcRule().GetRule() != nil {
			return true
		}
	}
	return false
}

// sweepTable looks for rows with garbage in a view of the table, and sweeps each
// of them.
func (e *Engine) sweepTable(ctx context.Context, t *Table) (err error) {
	v, err := newView(e.db, t) // which does not hide what is looked for
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	return v.Rows(Range{}, false, func(row []byte, cells filter.Source) (bool, error) {
		garbage, err := e.garbage(t, cells, 1)
		if err != nil || ctx.Err() != nil {
			return false, err
		}
		if len(garbage) > 0 {
			err = e.sweepRow(t, string(row))
		}
		return err == nil, err
	})
}

// column is a column of a row and the time from which its cells are garbage.
type column struct {
	family    *Family
	qualifier []byte
	newest    int64 // time of the newest cell that is collected
}

// garbage returns the columns of a row, at most limit of them, that have cells to
// be collected.
func (e *Engine) garbage(t *Table, cells filter.Source, limit int) ([]column, error) {
	var out []column
	var family string
	var qualifier []byte
	now, skip, n := e.now(), filter.SkipNone, 0
	for len(out) < limit {
		c, err := cells.Next(skip)
		if err != nil || c == nil {
			return out, err
		}
		if c.Family != family || !bytes.Equal(c.Qualifier, qualifier) {
			family, qualifier, n = c.Family, bytes.Clone(c.Qualifier), 0
		}
		f := t.Family(family)
		switch rule := f.Def.GetGcRule(); {
		case rule.GetRule() == nil:
			skip = filter.SkipFamily
		case collected(rule, n, c.Timestamp, now):
			out = append(out, column{f, qualifier, c.Timestamp})
			skip = filter.SkipColumn
		default:
			skip = filter.SkipNone
		}
		n++
	}
	return out, nil
}

// after returns the time that follows one in the table's granularity; 0, which is
// the end of time, when there is none.
func (t *Table) after(micros int64) int64 {
	step := int64(1)
	switch t.Def.GetGranularity() {
	case adminpb.Table_MILLIS, adminpb.Table_TIMESTAMP_GRANULARITY_UNSPECIFIED:
		step = 1000
	}
	return max(0, micros+step) // negative when it overflows
}

const sweptColumns = 10_000 // of one row in one write

func (e *Engine) sweepRow(t *Table, row string) error {
	return e.Update(t, []string{row}, ReadAndWrite, func(tx *Tx) error {
		v, err := tx.View()
		if err != nil {
			return err
		}
		cells, err := v.Row(row)
		var garbage []column
		if err == nil && cells != nil {
			garbage, err = e.garbage(t, cells, sweptColumns)
		}
		if err := errors.Join(err, v.Close()); err != nil {
			return fmt.Errorf("sweep a row: %w", err)
		}
		tx.Row(row)
		tx.origin = btpb.ReadChangeStreamResponse_DataChange_GARBAGE_COLLECTION
		for _, c := range garbage {
			if err := tx.DeleteColumn(c.family, c.qualifier, 0, t.after(c.newest)); err != nil {
				return err
			}
		}
		return nil
	})
}
