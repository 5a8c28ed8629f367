package bigtable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// Get is one read of one row with the asked cells.
func (s *Store) Get(ctx context.Context, id vaa.MessageID, columns archive.Columns) (archive.Record, error) {
	row, err := s.attestations.ReadRow(ctx, rowkey.Of(id), bigtable.RowFilter(columnFilter(columns)))
	if err != nil {
		return archive.Record{}, fmt.Errorf("read message %s: %w", id, err)
	}
	if row == nil {
		return archive.Record{}, fmt.Errorf("message %s: %w", id, archive.ErrNotFound)
	}
	return decodeRow(row)
}

// GetAll is one read of many rows.
func (s *Store) GetAll(ctx context.Context, ids []vaa.MessageID, columns archive.Columns) (map[vaa.MessageID]archive.Record, error) {
	if len(ids) > archive.MaxBatchItems {
		return nil, fmt.Errorf("get %d messages: at most %d at once: %w", len(ids), archive.MaxBatchItems, archive.ErrInvalidRange)
	}
	out := make(map[vaa.MessageID]archive.Record, len(ids))
	if len(ids) == 0 {
		return out, nil // an empty row set would mean the whole table
	}
	keys := make(bigtable.RowList, len(ids))
	for i, id := range ids {
		keys[i] = rowkey.Of(id)
	}
	slices.Sort(keys)
	err := s.readRows(ctx, s.attestations, slices.Compact(keys), func(row bigtable.Row) (bool, error) {
		r, err := decodeRow(row)
		out[r.ID] = r
		return true, err
	}, bigtable.RowFilter(columnFilter(columns)))
	if err != nil {
		return nil, fmt.Errorf("read %d messages: %w", len(ids), err)
	}
	return out, nil
}

// Scan reads consecutive rows; the limit is the server's.
func (s *Store) Scan(ctx context.Context, r archive.Range, columns archive.Columns) iter.Seq2[archive.Record, error] {
	return func(yield func(archive.Record, error) bool) {
		rows, ok, err := rowRange(r)
		if err != nil {
			yield(archive.Record{}, err)
			return
		}
		if !ok {
			return
		}
		opts := []bigtable.ReadOption{bigtable.RowFilter(whereFilter(r.Where, columnFilter(columns)))}
		if r.Limit > 0 {
			opts = append(opts, bigtable.LimitRows(int64(r.Limit)))
		}
		if r.Descending {
			opts = append(opts, bigtable.ReverseScan())
		}
		stopped := false
		err = s.readRows(ctx, s.attestations, rows, func(row bigtable.Row) (bool, error) {
			record, err := decodeSelected(row)
			if err != nil {
				return false, err
			}
			stopped = !yield(record, nil)
			return !stopped, nil
		}, opts...)
		if err != nil && !stopped {
			yield(archive.Record{}, fmt.Errorf("scan messages: %w", err))
		}
	}
}

// rowRange returns the keys of a range, and false when no key can be in it.
func rowRange(r archive.Range) (bigtable.RowRange, bool, error) {
	if err := r.Check(); err != nil {
		return bigtable.RowRange{}, false, err
	}
	prefix := ""
	switch {
	case r.Emitter != nil:
		prefix = rowkey.Emitter(*r.Chain, *r.Emitter)
	case r.Chain != nil:
		prefix = rowkey.Chain(*r.Chain)
	}
	start, end := prefix, rowkey.PrefixEnd(prefix)
	id := func(sequence uint64) vaa.MessageID {
		return vaa.MessageID{EmitterChain: *r.Chain, EmitterAddress: *r.Emitter, Sequence: sequence}
	}
	if r.FirstSequence != nil {
		start = rowkey.Of(id(*r.FirstSequence))
	}
	if r.LastSequence != nil {
		end = rowkey.Next(rowkey.Of(id(*r.LastSequence)))
	}
	if r.After != nil {
		key := rowkey.Of(*r.After)
		if r.Descending {
			if end == "" || key < end {
				end = key
			}
		} else {
			start = max(start, rowkey.Next(key))
		}
	}
	if end == "" {
		return bigtable.InfiniteRange(start), true, nil
	}
	return bigtable.NewRange(start, end), start < end, nil
}

// columnFilter asks for the newest cell of each column of MessagePublication,
// whose older versions only wait to be collected, and for all versions of
// QuorumState unless the newest suffice.
func columnFilter(c archive.Columns) bigtable.Filter {
	var parts []bigtable.Filter
	for _, family := range []string{schema.MessagePublication, schema.QuorumState} {
		if len(c.Families) > 0 && !slices.Contains(c.Families, family) {
			continue
		}
		chain := []bigtable.Filter{bigtable.FamilyFilter(family)}
		if len(c.Qualifiers) > 0 {
			chain = append(chain, bigtable.ColumnFilter(qualifierPattern(c.Qualifiers)))
		}
		if c.Latest || family == schema.MessagePublication {
			chain = append(chain, bigtable.LatestNFilter(1))
		}
		parts = append(parts, chained(chain))
	}
	switch len(parts) {
	case 0:
		return bigtable.BlockAllFilter()
	case 1:
		return parts[0]
	}
	return bigtable.InterleaveFilters(parts...)
}

// labelOther marks the one cell that stands for a row that was not selected.
const labelOther = "other"

// whereFilter answers what selected says for the rows that meet all conditions, and
// for each other row one cell without value.
func whereFilter(w archive.Where, selected bigtable.Filter) bigtable.Filter {
	other := bigtable.ChainFilters(bigtable.CellsPerRowLimitFilter(1), bigtable.StripValueFilter(), bigtable.LabelFilter(labelOther))
	value := func(column string, more ...bigtable.Filter) bigtable.Filter {
		chain := []bigtable.Filter{bigtable.FamilyFilter(schema.MessagePublication), bigtable.ColumnFilter(column), bigtable.LatestNFilter(1)}
		return chained(append(chain, more...))
	}
	result := selected
	must := func(want bool, condition bigtable.Filter) {
		if want {
			result = bigtable.ConditionFilter(condition, result, other)
		} else {
			result = bigtable.ConditionFilter(condition, other, result)
		}
	}
	if w.PayloadPrefix != nil {
		var end []byte
		if e := rowkey.PrefixEnd(string(w.PayloadPrefix)); e != "" {
			end = []byte(e)
		}
		must(true, value(schema.ColPayload, bigtable.ValueRangeFilter(w.PayloadPrefix, end)))
	}
	if w.FirstTime != nil || w.LastTime != nil {
		must(true, value(schema.ColTimestamp, timeFilter(w.FirstTime, w.LastTime)))
	}
	if w.Linked != nil { // an empty cell shadows the link of another digest
		must(*w.Linked, value(schema.ColInitiatingTxID, bigtable.ValueRangeFilter([]byte{0}, nil)))
	}
	if w.Signed != nil {
		must(*w.Signed, bigtable.ChainFilters(bigtable.FamilyFilter(schema.QuorumState), bigtable.ColumnFilter(schema.ColSignedVAA)))
	}
	if w.GuardianSetIndex != nil {
		must(true, value(schema.ColGuardianSetIndex, bigtable.ValueFilter(strconv.FormatUint(uint64(*w.GuardianSetIndex), 10))))
	}
	return result
}

// timeFilter passes times from first to last, which are kept as text of fixed width.
func timeFilter(first, last *time.Time) bigtable.Filter {
	var start, end []byte
	if first != nil {
		start = []byte(first.UTC().Format(time.RFC3339))
	}
	if last != nil {
		end = []byte(rowkey.Next(last.UTC().Format(time.RFC3339)))
	}
	return bigtable.ValueRangeFilter(start, end)
}

func decodeSelected(row bigtable.Row) (archive.Record, error) {
	for _, items := range row {
		for _, item := range items {
			if slices.Contains(item.Labels, labelOther) {
				id, err := rowkey.Parse(row.Key())
				return archive.Record{ID: id}, err
			}
		}
	}
	return decodeRow(row)
}

func chained(filters []bigtable.Filter) bigtable.Filter {
	if len(filters) == 1 {
		return filters[0]
	}
	return bigtable.ChainFilters(filters...)
}

// qualifierPattern matches the qualifiers, and for those that end in a dot all
// that begin with them.
func qualifierPattern(qualifiers []string) string {
	patterns := make([]string, len(qualifiers))
	for i, q := range qualifiers {
		patterns[i] = regexp.QuoteMeta(q)
		if strings.HasSuffix(q, ".") {
			patterns[i] += `\C*`
		}
	}
	return strings.Join(patterns, "|")
}

// readRows is ReadRows with a callback that may fail.
func (s *Store) readRows(ctx context.Context, table *bigtable.Table, rows bigtable.RowSet, f func(bigtable.Row) (bool, error), opts ...bigtable.ReadOption) error {
	var bad error
	err := table.ReadRows(ctx, rows, func(row bigtable.Row) bool {
		var more bool
		more, bad = f(row)
		return more && bad == nil
	}, opts...)
	return errors.Join(bad, err)
}
