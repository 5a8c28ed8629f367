package bigtable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
)

// Append stores a batch on the condition that its row does not exist.
func (s *Store) Append(ctx context.Context, b archive.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	m, err := batchMutation(&b)
	if err != nil {
		return err
	}
	write := bigtable.NewCondMutation(bigtable.PassAllFilter(), nil, m)
	if blindAppend() {
		write = m
	}
	var taken bool
	if err := s.journal.Apply(ctx, rowkey.Offset(uint64(b.Offset)), write, bigtable.GetCondMutationResult(&taken)); err != nil {
		return fmt.Errorf("append at offset %d: %w", b.Offset, err)
	}
	if taken {
		return fmt.Errorf("append at offset %d: %w", b.Offset, archive.ErrOffsetTaken)
	}
	s.boundary.Store(uint64(b.End()))
	return nil
}

// batchMutation puts each fact in a cell at timestamp 0: a row of the journal is
// written once.
func batchMutation(b *archive.Batch) (*bigtable.Mutation, error) {
	m := bigtable.NewMutation()
	set := func(column, value string) { m.Set(schema.Batch, column, 0, []byte(value)) }
	set(schema.ColID, b.ID)
	set(schema.ColWriter, b.Writer)
	set(schema.ColWallTime, formatTime(b.WallTime))
	set(schema.ColCount, strconv.Itoa(len(b.Events)))
	set(schema.ColClass, b.Class.String())
	for i := range b.Events {
		e := &b.Events[i]
		text, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encode the event at offset %d: %w", e.Offset, err)
		}
		column := rowkey.Offset(uint64(e.Offset))
		m.Set(schema.Event, column, 0, text)
		if e.Bytes != nil {
			m.Set(schema.Bytes, column, 0, e.Bytes)
		}
	}
	return m, nil
}

// Batches yields the journal from the batch that holds from. It reads on beyond
// what was there when it began, as far as the server's scan sees it.
func (s *Store) Batches(ctx context.Context, from archive.Offset) iter.Seq2[archive.Batch, error] {
	return func(yield func(archive.Batch, error) bool) {
		next, err := s.startOf(ctx, max(from, 1))
		if err != nil {
			yield(archive.Batch{}, err)
			return
		}
		var bad error
		stopped := false
		rows := bigtable.InfiniteRange(rowkey.Offset(uint64(next)))
		err = s.journal.ReadRows(ctx, rows, func(row bigtable.Row) bool {
			var b archive.Batch
			if b, bad = decodeBatch(row); bad != nil {
				return false
			}
			if b.Offset != next {
				return false // a hole: what lies behind it does not count (rule 3)
			}
			next = b.End()
			s.boundary.Store(uint64(next))
			stopped = !yield(b, nil)
			return !stopped
		}, bigtable.RowFilter(bigtable.LatestNFilter(1)))
		if err = errors.Join(bad, err); err != nil && !stopped {
			yield(archive.Batch{}, fmt.Errorf("read the journal from offset %d: %w", next, err))
		}
	}
}

// BatchOffsets yields the offsets of the journal's rows from one on, ascending,
// whether or not each begins where the last ended. It is for checks; readers of
// the journal use Batches.
func (s *Store) BatchOffsets(ctx context.Context, from archive.Offset) iter.Seq2[archive.Offset, error] {
	return func(yield func(archive.Offset, error) bool) {
		var bad error
		stopped := false
		rows := bigtable.InfiniteRange(rowkey.Offset(uint64(from)))
		filter := bigtable.ChainFilters(bigtable.CellsPerRowLimitFilter(1), bigtable.StripValueFilter())
		err := s.journal.ReadRows(ctx, rows, func(row bigtable.Row) bool {
			var o uint64
			if o, bad = rowkey.ParseOffset(row.Key()); bad != nil {
				return false
			}
			stopped = !yield(archive.Offset(o), nil)
			return !stopped
		}, bigtable.RowFilter(filter))
		if err = errors.Join(bad, err); err != nil && !stopped {
			yield(0, fmt.Errorf("list the journal's rows from offset %d: %w", from, err))
		}
	}
}

// startOf returns the offset at which the batch that holds from begins, or from
// itself when no such batch is known.
func (s *Store) startOf(ctx context.Context, from archive.Offset) (archive.Offset, error) {
	if from == 1 || uint64(from) == s.boundary.Load() {
		return from, nil
	}
	first := archive.Offset(1)
	if from > archive.MaxBatchEvents {
		first = from - archive.MaxBatchEvents + 1
	}
	start := from
	var bad error
	rows := bigtable.NewRange(rowkey.Offset(uint64(first)), rowkey.Next(rowkey.Offset(uint64(from))))
	filter := bigtable.ChainFilters(bigtable.FamilyFilter(schema.Batch), bigtable.ColumnFilter(schema.ColCount), bigtable.LatestNFilter(1))
	err := s.journal.ReadRows(ctx, rows, func(row bigtable.Row) bool {
		o, err := rowkey.ParseOffset(row.Key())
		if err == nil {
			var n uint64
			n, err = strconv.ParseUint(string(row[schema.Batch][0].Value), 10, 16)
			if o+n > uint64(from) {
				start = archive.Offset(o)
			}
		}
		bad = err
		return err == nil
	}, bigtable.RowFilter(filter))
	if err := errors.Join(bad, err); err != nil {
		return 0, fmt.Errorf("find the batch that holds offset %d: %w", from, err)
	}
	return start, nil
}

func decodeBatch(row bigtable.Row) (archive.Batch, error) {
	var b archive.Batch
	o, err := rowkey.ParseOffset(row.Key())
	if err != nil {
		return b, err
	}
	b.Offset = archive.Offset(o)
	count := 0
	var errs []error
	for _, item := range row[schema.Batch] {
		value := string(item.Value)
		var err error
		switch qualifier(item) {
		case schema.ColID:
			b.ID = value
		case schema.ColWriter:
			b.Writer = value
		case schema.ColWallTime:
			b.WallTime, err = time.Parse(time.RFC3339, value)
		case schema.ColCount:
			count, err = strconv.Atoi(value)
		case schema.ColClass:
			b.Class, err = archive.ParseClass(value)
		case schema.ColApplied:
			b.Applied = true
		}
		errs = append(errs, err)
	}
	bytes := map[string][]byte{}
	for _, item := range row[schema.Bytes] {
		bytes[qualifier(item)] = item.Value
	}
	for _, item := range row[schema.Event] { // columns come in the order of offsets
		e := archive.Event{RecordedAt: b.WallTime, Bytes: bytes[qualifier(item)]}
		errs = append(errs, json.Unmarshal(item.Value, &e))
		b.Events = append(b.Events, e)
	}
	if err := errors.Join(errs...); err != nil {
		return b, fmt.Errorf("journal row %s: %w", row.Key(), err)
	}
	if len(b.Events) != count {
		return b, fmt.Errorf("journal row %s: %d events, but its count is %d", row.Key(), len(b.Events), count)
	}
	if err := b.Check(); err != nil {
		return b, fmt.Errorf("journal row %s: %w", row.Key(), err)
	}
	return b, nil
}

// MarkApplied sets Batch:Applied on the condition that the batch is there: after
// a restore a plain put would make a row of its own that blocks the journal.
func (s *Store) MarkApplied(ctx context.Context, o archive.Offset) error {
	m := bigtable.NewMutation()
	m.Set(schema.Batch, schema.ColApplied, 0, []byte("true"))
	there := bigtable.ChainFilters(bigtable.FamilyFilter(schema.Batch), bigtable.ColumnFilter(schema.ColCount))
	var found bool
	err := s.journal.Apply(ctx, rowkey.Offset(uint64(o)), bigtable.NewCondMutation(there, m, nil), bigtable.GetCondMutationResult(&found))
	if err != nil {
		return fmt.Errorf("mark the batch at offset %d applied: %w", o, err)
	}
	if !found {
		return fmt.Errorf("mark the batch at offset %d applied: %w", o, archive.ErrNotFound)
	}
	return nil
}
