package emulator_test

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// selection returns a random filter that only lets cells pass or not.
func (g *generator) selection(depth int) *btpb.RowFilter {
	if depth == 0 {
		return g.leaf()
	}
	switch g.IntN(6) {
	case 0:
		return chainOf(g.selection(depth-1), g.selection(depth-1))
	case 1:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{
			Filters: []*btpb.RowFilter{g.selection(depth - 1), g.selection(depth - 1)},
		}}}
	case 2:
		c := &btpb.RowFilter_Condition{PredicateFilter: g.selection(depth - 1), TrueFilter: g.selection(depth - 1), FalseFilter: g.selection(depth - 1)}
		switch g.IntN(4) {
		case 0:
			c.TrueFilter = nil
		case 1:
			c.FalseFilter = nil
		}
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: c}}
	}
	return g.leaf()
}

// leaf returns a random filter that holds no other.
func (g *generator) leaf() *btpb.RowFilter {
	n := 11
	if g.plain {
		n = 9
	}
	pattern := func() []byte { return []byte(oneOf(g, "a", "a.*", "x|y", "q", ".*", "x.*|.*y", "\xff?[a-q]+", "x?y?")) }
	switch g.IntN(n) {
	case 0:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
	case 1:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_RowKeyRegexFilter{RowKeyRegexFilter: pattern()}}
	case 2:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: oneOf(g, "f", "[fg]", "g|sum", "s.*", "f.*|m.*")}}
	case 3:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnQualifierRegexFilter{ColumnQualifierRegexFilter: pattern()}}
	case 4:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: pattern()}}
	case 5:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: &btpb.ColumnRange{
			FamilyName:     "f",
			StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: []byte(oneOf(g, "", "p", "q"))},
			EndQualifier:   &btpb.ColumnRange_EndQualifierOpen{EndQualifierOpen: []byte(oneOf(g, "q\x00", "r", "z"))},
		}}}
	case 6:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRangeFilter{ValueRangeFilter: &btpb.ValueRange{
			StartValue: &btpb.ValueRange_StartValueOpen{StartValueOpen: []byte(oneOf(g, "a", "w", "x"))},
			EndValue:   &btpb.ValueRange_EndValueClosed{EndValueClosed: []byte(oneOf(g, "x", "y", "\xff"))},
		}}}
	case 7:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_TimestampRangeFilter{TimestampRangeFilter: &btpb.TimestampRange{
			StartTimestampMicros: oneOf[int64](g, 0, 1000, 2000), EndTimestampMicros: oneOf[int64](g, 0, 3000, 9000),
		}}}
	case 8:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1 + g.Int32N(3)}}
	case 9:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowLimitFilter{CellsPerRowLimitFilter: 1 + g.Int32N(4)}}
	default:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowOffsetFilter{CellsPerRowOffsetFilter: g.Int32N(4)}}
	}
}
