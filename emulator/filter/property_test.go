package filter

import (
	"bytes"
	"cmp"
	"slices"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// TestStreamingEqualsReference evaluates random filters on random rows, from a
// source that leaves out all that it may and from one that leaves out nothing.
func TestStreamingEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pb := drawFilter(t, 4, true)
		f, err := Compile(pb, nil)
		if err != nil { // labels in a chain; ranges
			t.Skip(err)
		}
		random := rapid.SampledFrom([]float64{0.1, 0.9}).Draw(t, "random")
		e := f.NewEvaluator(func() float64 { return random })
		bounds := f.Bounds()
		for range 3 { // one evaluator, several rows
			row := drawRow(t)
			key := []byte(rapid.SampledFrom([]string{"", "k1", "k2"}).Draw(t, "key"))
			want := (&reference{key: key, random: random}).run(pb, row)
			for _, obeys := range []bool{false, true} {
				in := &rowSource{cells: row, obeys: obeys, bounds: &bounds, noValues: !f.ReadsValues()}
				got := evaluate(t, e, key, in)
				compare(t, pb, f.traits.sink, want, got)
				if in.rewinds > f.passes {
					t.Fatalf("%d rewinds for %d passes", in.rewinds, f.passes)
				}
			}
		}
	})
}

// TestBound holds the quick bound of a filter's size against its size.
func TestBound(t *testing.T) {
	known := 0
	rapid.Check(t, func(t *rapid.T) {
		f := drawFilter(t, 4, true)
		if n, ok := bound(f); ok {
			if known++; n < proto.Size(f) {
				t.Errorf("%v: bound %d, size %d", f, n, proto.Size(f))
			}
		}
	})
	if known == 0 {
		t.Error("no filter had a bound")
	}
}

func compare(t *rapid.T, pb *btpb.RowFilter, sinks bool, want, got []Cell) {
	if !slices.IsSortedFunc(got, func(a, b Cell) int { return comparePosition(&a, &b) }) {
		t.Fatalf("filter %s: not in order:\n%s", prototext.Format(pb), formatCells(got))
	}
	if sinks { // in no particular order among equals
		want, got = slices.Clone(want), slices.Clone(got)
		slices.SortFunc(want, compareAll)
		slices.SortFunc(got, compareAll)
	}
	if diff := gocmp.Diff(formatCells(want), formatCells(got)); diff != "" {
		t.Fatalf("filter %s (-reference +streaming):\n%s", prototext.Format(pb), diff)
	}
}

func compareAll(a, b Cell) int {
	return cmp.Or(comparePosition(&a, &b), bytes.Compare(a.Value, b.Value), slices.Compare(a.Labels, b.Labels))
}

func drawRow(t *rapid.T) []Cell {
	var cells []Cell
	for _, family := range []string{"a", "b", "bb"} {
		for _, qualifier := range []string{"", "x", "xy", "z"} {
			for micros := int64(rapid.IntRange(0, 4).Draw(t, "versions")); micros > 0; micros-- {
				value := rapid.SampledFrom([]string{"", "0", "1", "v", "vv", "w"}).Draw(t, "value")
				cells = append(cells, Cell{Family: family, Qualifier: []byte(qualifier), Timestamp: micros * 1000, Value: []byte(value)})
			}
		}
	}
	return cells
}

// drawFilter draws a filter of at most depth levels below it.
func drawFilter(t *rapid.T, depth int, sinks bool) *btpb.RowFilter {
	kinds := 17
	if depth > 0 && rapid.IntRange(0, 2).Draw(t, "composed") > 0 {
		subs := func() []*btpb.RowFilter {
			filters := make([]*btpb.RowFilter, rapid.IntRange(2, 4).Draw(t, "length"))
			for i := range filters {
				filters[i] = drawFilter(t, depth-1, sinks)
			}
			return filters
		}
		maybe := func() *btpb.RowFilter {
			if rapid.IntRange(0, 3).Draw(t, "absent") == 0 {
				return nil
			}
			return drawFilter(t, depth-1, false)
		}
		switch rapid.IntRange(0, 2).Draw(t, "composition") {
		case 0:
			return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: subs()}}}
		case 1:
			return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: subs()}}}
		default:
			return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{
				PredicateFilter: maybe(), TrueFilter: maybe(), FalseFilter: maybe(),
			}}}
		}
	}
	if !sinks {
		kinds--
	}
	return drawLeaf(t, rapid.IntRange(0, kinds-1).Draw(t, "kind"))
}

func drawLeaf(t *rapid.T, kind int) *btpb.RowFilter {
	word := func(words ...string) string { return rapid.SampledFrom(words).Draw(t, "word") }
	number := func(least int) int32 { return int32(rapid.IntRange(least, 5).Draw(t, "number")) }
	switch kind {
	case 0:
		return &btpb.RowFilter{}
	case 1:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
	case 2:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: true}}
	case 3:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_RowKeyRegexFilter{RowKeyRegexFilter: []byte(word("k1", "k.*", "[^k].*"))}}
	case 4:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_RowSampleFilter{RowSampleFilter: 0.5}}
	case 5:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: word("a", "b", "b.*", "b+", "a|b", "c", ".*", "")}}
	case 6:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnQualifierRegexFilter{ColumnQualifierRegexFilter: []byte(word("x", "x.*", "x|z", "x.?", "", ".*y", "q", "[^x]"))}}
	case 7:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: drawColumnRange(word)}}
	case 8:
		start := 1000 * int64(number(0))
		return &btpb.RowFilter{Filter: &btpb.RowFilter_TimestampRangeFilter{TimestampRangeFilter: &btpb.TimestampRange{
			StartTimestampMicros: start, EndTimestampMicros: rapid.SampledFrom([]int64{0, start, start + 1000, start + 2000}).Draw(t, "end"),
		}}}
	case 9:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(word("v", "v+", "", "v|w", ".*"))}}
	case 10:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRangeFilter{ValueRangeFilter: drawValueRange(word)}}
	case 11:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueBitmaskFilter{ValueBitmaskFilter: &btpb.ValueBitmask{Mask: []byte(word("", "0", "1", "\x70\x70"))}}}
	case 12:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowOffsetFilter{CellsPerRowOffsetFilter: number(0)}}
	case 13:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowLimitFilter{CellsPerRowLimitFilter: number(1)}}
	case 14:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: number(1)}}
	case 15:
		if word("strip", "label") == "strip" {
			return &btpb.RowFilter{Filter: &btpb.RowFilter_StripValueTransformer{StripValueTransformer: true}}
		}
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ApplyLabelTransformer{ApplyLabelTransformer: word("l1", "l2")}}
	default:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Sink{Sink: true}}
	}
}

func drawColumnRange(word func(...string) string) *btpb.ColumnRange {
	r := &btpb.ColumnRange{FamilyName: word("a", "b", "bb")}
	switch word("none", "closed", "open") {
	case "closed":
		r.StartQualifier = &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: []byte(word("", "x", "xy"))}
	case "open":
		r.StartQualifier = &btpb.ColumnRange_StartQualifierOpen{StartQualifierOpen: []byte(word("", "x", "xy"))}
	}
	switch word("none", "closed", "open") {
	case "closed":
		r.EndQualifier = &btpb.ColumnRange_EndQualifierClosed{EndQualifierClosed: []byte(word("", "xy", "z"))}
	case "open":
		r.EndQualifier = &btpb.ColumnRange_EndQualifierOpen{EndQualifierOpen: []byte(word("", "xy", "z"))}
	}
	return r
}

func drawValueRange(word func(...string) string) *btpb.ValueRange {
	r := &btpb.ValueRange{}
	switch word("none", "closed", "open") {
	case "closed":
		r.StartValue = &btpb.ValueRange_StartValueClosed{StartValueClosed: []byte(word("", "0", "v"))}
	case "open":
		r.StartValue = &btpb.ValueRange_StartValueOpen{StartValueOpen: []byte(word("", "0", "v"))}
	}
	switch word("none", "closed", "open") {
	case "closed":
		r.EndValue = &btpb.ValueRange_EndValueClosed{EndValueClosed: []byte(word("", "v", "w"))}
	case "open":
		r.EndValue = &btpb.ValueRange_EndValueOpen{EndValueOpen: []byte(word("", "v", "w"))}
	}
	return r
}

// FuzzFilter: nothing that can be decoded makes Compile panic, and nothing that
// compiles panics on a row or puts it out of order.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{
		`chain { filters { family_name_regex_filter: "a" } filters { cells_per_column_limit_filter: 1 } }`,
		`interleave { filters { sink: true } filters { apply_label_transformer: "l" } }`,
		`condition { predicate_filter { value_regex_filter: "\\C*" } true_filter { strip_value_transformer: true } }`,
		`column_range_filter { family_name: "a" start_qualifier_open: "x" end_qualifier_closed: "z" }`,
		`value_bitmask_filter { mask: "\001" }`,
		`row_sample_filter: 0.5`,
	} {
		pb := &btpb.RowFilter{}
		if err := prototext.Unmarshal([]byte(text), pb); err != nil {
			f.Fatal(err)
		}
		encoded, err := proto.Marshal(pb)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded, []byte("key"), "x")
	}
	f.Fuzz(func(t *testing.T, encoded, key []byte, qualifier string) {
		pb := &btpb.RowFilter{}
		if proto.Unmarshal(encoded, pb) != nil {
			return
		}
		filter, err := Compile(pb, nil)
		if err != nil {
			return
		}
		row := []Cell{
			{Family: "a", Qualifier: []byte(qualifier), Timestamp: 2000, Value: key},
			{Family: "a", Qualifier: []byte(qualifier), Timestamp: 1000, Value: []byte(qualifier)},
			{Family: "b", Qualifier: key, Timestamp: 1000},
		}
		got := evaluate(t, filter.NewEvaluator(nil), key, &rowSource{cells: row, obeys: true})
		if !slices.IsSortedFunc(got, func(a, b Cell) int { return comparePosition(&a, &b) }) {
			t.Fatalf("not in order:\n%s", formatCells(got))
		}
	})
}
