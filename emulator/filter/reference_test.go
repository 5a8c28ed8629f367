package filter

import (
	"bytes"
	"regexp"
	"slices"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// reference evaluates filters on whole rows, in the plainest way.
type reference struct {
	key    []byte
	random float64 // what every sample draws
	sunk   []Cell
}

// derived is a cell and the index of the input cell that it comes from.
type derived struct {
	Cell
	from int
}

func (r *reference) run(f *btpb.RowFilter, in []Cell) []Cell {
	out := r.eval(f, in)
	cells := []Cell{}
	for _, d := range out {
		cells = append(cells, d.Cell)
	}
	cells = append(cells, r.sunk...)
	slices.SortStableFunc(cells, func(a, b Cell) int { return comparePosition(&a, &b) })
	return cells
}

func (r *reference) eval(f *btpb.RowFilter, in []Cell) []derived {
	var out []derived
	keep := func(test func(i int, c Cell) bool) []derived {
		for i, c := range in {
			if test(i, c) {
				out = append(out, derived{c, i})
			}
		}
		return out
	}
	switch k := f.GetFilter().(type) {
	case nil, *btpb.RowFilter_PassAllFilter:
		return keep(func(int, Cell) bool { return true })
	case *btpb.RowFilter_BlockAllFilter:
		return nil
	case *btpb.RowFilter_Chain_:
		out = keep(func(int, Cell) bool { return true })
		for _, sub := range k.Chain.Filters {
			cells := make([]Cell, len(out))
			for i, d := range out {
				cells[i] = d.Cell
			}
			next := r.eval(sub, cells)
			for i := range next {
				next[i].from = out[next[i].from].from
			}
			out = next
		}
		return out
	case *btpb.RowFilter_Interleave_:
		for _, sub := range k.Interleave.Filters {
			out = append(out, r.eval(sub, in)...)
		}
		// Cells come from cells of the same position, so this is their order too.
		slices.SortStableFunc(out, func(a, b derived) int { return a.from - b.from })
		return out
	case *btpb.RowFilter_Condition_:
		branch := k.Condition.FalseFilter
		if len(r.eval(k.Condition.PredicateFilter, in)) > 0 {
			branch = k.Condition.TrueFilter
		}
		if branch == nil {
			return nil
		}
		return r.eval(branch, in)
	case *btpb.RowFilter_Sink:
		r.sunk = append(r.sunk, in...)
		return nil
	case *btpb.RowFilter_RowKeyRegexFilter:
		return keep(func(int, Cell) bool { return referenceMatch(k.RowKeyRegexFilter, r.key) })
	case *btpb.RowFilter_RowSampleFilter:
		return keep(func(int, Cell) bool { return r.random < k.RowSampleFilter })
	case *btpb.RowFilter_FamilyNameRegexFilter:
		return keep(func(_ int, c Cell) bool {
			return referenceMatch([]byte(k.FamilyNameRegexFilter), []byte(c.Family))
		})
	case *btpb.RowFilter_ColumnQualifierRegexFilter:
		return keep(func(_ int, c Cell) bool { return referenceMatch(k.ColumnQualifierRegexFilter, c.Qualifier) })
	case *btpb.RowFilter_ValueRegexFilter:
		return keep(func(_ int, c Cell) bool { return referenceMatch(k.ValueRegexFilter, c.Value) })
	case *btpb.RowFilter_ColumnRangeFilter:
		return keep(func(_ int, c Cell) bool { return referenceColumnRange(k.ColumnRangeFilter, c) })
	case *btpb.RowFilter_TimestampRangeFilter:
		start, end := k.TimestampRangeFilter.StartTimestampMicros, k.TimestampRangeFilter.EndTimestampMicros
		return keep(func(_ int, c Cell) bool { return start <= c.Timestamp && (end == 0 || c.Timestamp < end) })
	case *btpb.RowFilter_ValueRangeFilter:
		return keep(func(_ int, c Cell) bool { return referenceValueRange(k.ValueRangeFilter, c.Value) })
	case *btpb.RowFilter_ValueBitmaskFilter:
		return keep(func(_ int, c Cell) bool { return referenceBitmask(k.ValueBitmaskFilter.GetMask(), c.Value) })
	case *btpb.RowFilter_CellsPerRowOffsetFilter:
		return keep(func(i int, _ Cell) bool { return i >= int(k.CellsPerRowOffsetFilter) })
	case *btpb.RowFilter_CellsPerRowLimitFilter:
		return keep(func(i int, _ Cell) bool { return i < int(k.CellsPerRowLimitFilter) })
	case *btpb.RowFilter_CellsPerColumnLimitFilter:
		return keep(func(i int, c Cell) bool {
			rank := 0
			for _, before := range in[:i] {
				if before.Family == c.Family && bytes.Equal(before.Qualifier, c.Qualifier) {
					rank++
				}
			}
			return rank < int(k.CellsPerColumnLimitFilter)
		})
	case *btpb.RowFilter_StripValueTransformer:
		for i, c := range in {
			c.Value = []byte{}
			out = append(out, derived{c, i})
		}
		return out
	case *btpb.RowFilter_ApplyLabelTransformer:
		for i, c := range in {
			c.Labels = []string{k.ApplyLabelTransformer}
			out = append(out, derived{c, i})
		}
		return out
	default:
		panic("a kind that the reference does not know")
	}
}

// referenceMatch is for patterns and inputs of ASCII without \C.
func referenceMatch(pattern, input []byte) bool {
	return regexp.MustCompile(`\A(?:` + string(pattern) + `)\z`).Match(input)
}

func referenceColumnRange(f *btpb.ColumnRange, c Cell) bool {
	q := string(c.Qualifier)
	if c.Family != f.FamilyName {
		return false
	}
	switch k := f.StartQualifier.(type) {
	case *btpb.ColumnRange_StartQualifierClosed:
		if q < string(k.StartQualifierClosed) {
			return false
		}
	case *btpb.ColumnRange_StartQualifierOpen:
		if q <= string(k.StartQualifierOpen) {
			return false
		}
	}
	switch k := f.EndQualifier.(type) {
	case *btpb.ColumnRange_EndQualifierClosed:
		return len(k.EndQualifierClosed) == 0 || q <= string(k.EndQualifierClosed)
	case *btpb.ColumnRange_EndQualifierOpen:
		return len(k.EndQualifierOpen) == 0 || q < string(k.EndQualifierOpen)
	default:
		return true
	}
}

func referenceValueRange(f *btpb.ValueRange, value []byte) bool {
	v := string(value)
	switch k := f.StartValue.(type) {
	case *btpb.ValueRange_StartValueClosed:
		if v < string(k.StartValueClosed) {
			return false
		}
	case *btpb.ValueRange_StartValueOpen:
		if v <= string(k.StartValueOpen) {
			return false
		}
	}
	switch k := f.EndValue.(type) {
	case *btpb.ValueRange_EndValueClosed:
		return v <= string(k.EndValueClosed)
	case *btpb.ValueRange_EndValueOpen:
		return len(k.EndValueOpen) == 0 || v < string(k.EndValueOpen)
	default:
		return true
	}
}

func referenceBitmask(mask, value []byte) bool {
	if len(mask) != len(value) {
		return false
	}
	masked := make([]byte, len(value))
	for i := range value {
		masked[i] = value[i] & mask[i]
	}
	return bytes.Equal(masked, mask)
}

// TestReferenceIsUsable keeps the reference honest on one case by hand.
func TestReferenceIsUsable(t *testing.T) {
	row := parseCells(t, "a:x 2000 v\na:x 1000 w\nb:y 1000 v")
	latest := &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1}}
	if got, want := formatCells((&reference{}).run(latest, row)), "a:x 2000 v\nb:y 1000 v\n"; got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
