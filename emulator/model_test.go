package emulator_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// model is a table as Bigtable's contract has it, in maps, with no code of the
// server. It takes only requests that are right. It is the judge of the random
// histories.
type model struct {
	families map[string]string // to "", "2" (versions kept, never collected here), "sum", "min", "max"
	rows     map[string]map[modelColumn]map[int64]string
	now      func() int64 // the server's time in microseconds
}

type modelColumn struct{ family, qualifier string }

type modelCell struct {
	modelColumn
	micros int64
	value  string
	label  string
}

func newModel(now func() int64) *model {
	return &model{families: map[string]string{}, rows: map[string]map[modelColumn]map[int64]string{}, now: now}
}

func (m *model) column(row string, c modelColumn) map[int64]string {
	if m.rows[row] == nil {
		m.rows[row] = map[modelColumn]map[int64]string{}
	}
	if m.rows[row][c] == nil {
		m.rows[row][c] = map[int64]string{}
	}
	return m.rows[row][c]
}

// mutate applies mutations of one row in their order.
func (m *model) mutate(row string, mutations []*btpb.Mutation) {
	for _, mutation := range mutations {
		switch x := mutation.GetMutation().(type) {
		case *btpb.Mutation_SetCell_:
			c, at := x.SetCell, x.SetCell.GetTimestampMicros()
			if at == -1 {
				at = m.now()
			}
			m.column(row, modelColumn{c.GetFamilyName(), string(c.GetColumnQualifier())})[at] = string(c.GetValue())
		case *btpb.Mutation_AddToCell_:
			c := x.AddToCell
			m.aggregate(row, c.GetFamilyName(), c.GetColumnQualifier(), c.GetTimestamp(), c.GetInput().GetIntValue())
		case *btpb.Mutation_MergeToCell_:
			c := x.MergeToCell
			m.aggregate(row, c.GetFamilyName(), c.GetColumnQualifier(), c.GetTimestamp(), numberOf(string(c.GetInput().GetRawValue())))
		case *btpb.Mutation_DeleteFromColumn_:
			d := x.DeleteFromColumn
			from, to := d.GetTimeRange().GetStartTimestampMicros(), d.GetTimeRange().GetEndTimestampMicros()
			maps.DeleteFunc(m.column(row, modelColumn{d.GetFamilyName(), string(d.GetColumnQualifier())}), func(at int64, _ string) bool {
				return at >= from && (to == 0 || at < to)
			})
		case *btpb.Mutation_DeleteFromFamily_:
			maps.DeleteFunc(m.rows[row], func(c modelColumn, _ map[int64]string) bool { return c.family == x.DeleteFromFamily.GetFamilyName() })
		case *btpb.Mutation_DeleteFromRow_:
			delete(m.rows, row)
		}
	}
}

func (m *model) aggregate(row, family string, qualifier, at *btpb.Value, n int64) {
	cells := m.column(row, modelColumn{family, string(qualifier.GetRawValue())})
	old, ok := cells[at.GetRawTimestampMicros()]
	switch kind := m.families[family]; {
	case !ok:
	case kind == "sum":
		n += numberOf(old)
	case kind == "min":
		n = min(n, numberOf(old))
	case kind == "max":
		n = max(n, numberOf(old))
	}
	cells[at.GetRawTimestampMicros()] = bigEndian(n)
}

func numberOf(state string) int64 {
	n := uint64(0)
	for i := range len(state) {
		n = n<<8 | uint64(state[i])
	}
	return int64(n)
}

// modify applies the rules of a ReadModifyWriteRow, or none of them, and returns
// the cells that are new.
func (m *model) modify(row string, rules []*btpb.ReadModifyWriteRule) (written []string, ok bool) {
	saved := map[modelColumn]map[int64]string{}
	for c, cells := range m.rows[row] {
		saved[c] = maps.Clone(cells)
	}
	last := map[modelColumn]modelCell{}
	for _, rule := range rules {
		c := modelColumn{rule.GetFamilyName(), string(rule.GetColumnQualifier())}
		cells := m.column(row, c)
		at, value, found := m.now(), "", false
		for micros := range cells {
			if !found || micros > at {
				at, value, found = micros, cells[micros], true
			}
		}
		switch x := rule.GetRule().(type) {
		case *btpb.ReadModifyWriteRule_AppendValue:
			value += string(x.AppendValue)
		case *btpb.ReadModifyWriteRule_IncrementAmount:
			if found && len(value) != 8 {
				m.rows[row] = saved
				return nil, false
			}
			value = bigEndian(numberOf(value) + x.IncrementAmount)
		}
		at = max(at, m.now())
		cells[at] = value
		last[c] = modelCell{c, at, value, ""}
	}
	for _, c := range slices.SortedFunc(maps.Values(last), compareCells) {
		written = append(written, c.String())
	}
	return written, true
}

// check applies one of two lists by whether a filter puts out a cell of the row.
func (m *model) check(req *btpb.CheckAndMutateRowRequest) bool {
	row := string(req.GetRowKey())
	matched := len(m.filtered(row, req.GetPredicateFilter())) > 0
	if matched {
		m.mutate(row, req.GetTrueMutations())
	} else {
		m.mutate(row, req.GetFalseMutations())
	}
	return matched
}

func (m *model) dropRows(prefix string) {
	maps.DeleteFunc(m.rows, func(row string, _ map[modelColumn]map[int64]string) bool { return strings.HasPrefix(row, prefix) })
}

func (m *model) dropFamily(name string) {
	delete(m.families, name)
	for _, columns := range m.rows {
		maps.DeleteFunc(columns, func(c modelColumn, _ map[int64]string) bool { return c.family == name })
	}
}

// read answers a ReadRows as readRows writes it.
func (m *model) read(req *btpb.ReadRowsRequest) (lines []string) {
	rows := slices.Sorted(maps.Keys(m.rows))
	if req.GetReversed() {
		slices.Reverse(rows)
	}
	n := int64(0)
	for _, row := range rows {
		if !asked(req.GetRows(), row) {
			continue
		}
		cells := m.filtered(row, req.GetFilter())
		for _, c := range cells {
			lines = append(lines, row+"/"+c.String())
		}
		if len(cells) > 0 {
			n++
		}
		if n > 0 && n == req.GetRowsLimit() {
			break
		}
	}
	return lines
}

func asked(set *btpb.RowSet, row string) bool {
	if len(set.GetRowKeys())+len(set.GetRowRanges()) == 0 {
		return true
	}
	for _, k := range set.GetRowKeys() {
		if string(k) == row {
			return true
		}
	}
	for _, r := range set.GetRowRanges() {
		start, end := true, true
		switch k := r.GetStartKey().(type) {
		case *btpb.RowRange_StartKeyClosed:
			start = row >= string(k.StartKeyClosed)
		case *btpb.RowRange_StartKeyOpen:
			start = row > string(k.StartKeyOpen)
		}
		switch k := r.GetEndKey().(type) {
		case *btpb.RowRange_EndKeyClosed:
			end = len(k.EndKeyClosed) == 0 || row <= string(k.EndKeyClosed)
		case *btpb.RowRange_EndKeyOpen:
			end = len(k.EndKeyOpen) == 0 || row < string(k.EndKeyOpen)
		}
		if start && end {
			return true
		}
	}
	return false
}

// filtered returns the cells of a row that a filter puts out.
func (m *model) filtered(row string, f *btpb.RowFilter) []modelCell {
	var cells []modelCell
	for c, versions := range m.rows[row] {
		for at, value := range versions {
			cells = append(cells, modelCell{c, at, value, ""})
		}
	}
	slices.SortFunc(cells, compareCells)
	out, sunk := passed(row, f, cells)
	out = append(out, sunk...)
	slices.SortStableFunc(out, compareCells)
	return out
}

func compareCells(a, b modelCell) int {
	return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.qualifier, b.qualifier), cmp.Compare(b.micros, a.micros))
}

func (c modelCell) String() string {
	if c.label != "" {
		c.label = " {" + c.label + "}"
	}
	return fmt.Sprintf("%s:%s@%d=%s%s", c.family, c.qualifier, c.micros, c.value, c.label)
}

// passed returns what a filter hands on of the cells, and what goes into sinks.
func passed(row string, f *btpb.RowFilter, cells []modelCell) (out, sunk []modelCell) {
	switch x := f.GetFilter().(type) {
	case *btpb.RowFilter_Sink:
		return nil, cells
	case *btpb.RowFilter_Chain_:
		out = cells
		for _, f := range x.Chain.GetFilters() {
			var s []modelCell
			out, s = passed(row, f, out)
			sunk = append(sunk, s...)
		}
		return out, sunk
	case *btpb.RowFilter_Interleave_:
		for _, f := range x.Interleave.GetFilters() {
			o, s := passed(row, f, cells)
			out, sunk = append(out, o...), append(sunk, s...)
		}
		slices.SortStableFunc(out, compareCells)
		return out, sunk
	case *btpb.RowFilter_Condition_:
		branch := x.Condition.GetFalseFilter()
		if o, _ := passed(row, x.Condition.GetPredicateFilter(), cells); len(o) > 0 {
			branch = x.Condition.GetTrueFilter()
		}
		if branch == nil {
			return nil, nil
		}
		return passed(row, branch, cells)
	}
	keep := keeper(row, f)
	for _, c := range cells {
		if c, ok := keep(c); ok {
			out = append(out, c)
		}
	}
	return out, nil
}

// latin makes a rune of each byte: patterns are of bytes, and Go's of runes.
func latin(s string) string {
	var out strings.Builder
	for i := range len(s) {
		out.WriteRune(rune(s[i]))
	}
	return out.String()
}

// keeper returns what a filter without others in it does to one cell after the
// other.
func keeper(row string, f *btpb.RowFilter) func(modelCell) (modelCell, bool) {
	only := func(ok func(c modelCell) bool) func(modelCell) (modelCell, bool) {
		return func(c modelCell) (modelCell, bool) { return c, ok(c) }
	}
	whole := func(pattern []byte) func(string) bool {
		re := regexp.MustCompile(`^(?:` + latin(string(pattern)) + `)$`)
		return func(s string) bool { return re.MatchString(latin(s)) }
	}
	n := int32(0)
	switch x := f.GetFilter().(type) {
	case nil, *btpb.RowFilter_PassAllFilter:
		return only(func(modelCell) bool { return true })
	case *btpb.RowFilter_RowKeyRegexFilter:
		ok := whole(x.RowKeyRegexFilter)(row)
		return only(func(modelCell) bool { return ok })
	case *btpb.RowFilter_FamilyNameRegexFilter:
		re := whole([]byte(x.FamilyNameRegexFilter))
		return only(func(c modelCell) bool { return re(c.family) })
	case *btpb.RowFilter_ColumnQualifierRegexFilter:
		re := whole(x.ColumnQualifierRegexFilter)
		return only(func(c modelCell) bool { return re(c.qualifier) })
	case *btpb.RowFilter_ValueRegexFilter:
		re := whole(x.ValueRegexFilter)
		return only(func(c modelCell) bool { return re(c.value) })
	case *btpb.RowFilter_ColumnRangeFilter:
		r := x.ColumnRangeFilter
		return only(func(c modelCell) bool {
			return c.family == r.GetFamilyName() && c.qualifier >= string(r.GetStartQualifierClosed()) && c.qualifier < string(r.GetEndQualifierOpen())
		})
	case *btpb.RowFilter_ValueRangeFilter:
		r := x.ValueRangeFilter
		return only(func(c modelCell) bool {
			return bytes.Compare([]byte(c.value), r.GetStartValueOpen()) > 0 && bytes.Compare([]byte(c.value), r.GetEndValueClosed()) <= 0
		})
	case *btpb.RowFilter_TimestampRangeFilter:
		r := x.TimestampRangeFilter
		return only(func(c modelCell) bool {
			return c.micros >= r.GetStartTimestampMicros() && (r.GetEndTimestampMicros() == 0 || c.micros < r.GetEndTimestampMicros())
		})
	case *btpb.RowFilter_CellsPerRowLimitFilter:
		return only(func(modelCell) bool { n++; return n <= x.CellsPerRowLimitFilter })
	case *btpb.RowFilter_CellsPerRowOffsetFilter:
		return only(func(modelCell) bool { n++; return n > x.CellsPerRowOffsetFilter })
	case *btpb.RowFilter_CellsPerColumnLimitFilter:
		seen := map[modelColumn]int32{}
		return only(func(c modelCell) bool {
			seen[c.modelColumn]++
			return seen[c.modelColumn] <= x.CellsPerColumnLimitFilter
		})
	case *btpb.RowFilter_StripValueTransformer:
		return func(c modelCell) (modelCell, bool) { c.value = ""; return c, true }
	case *btpb.RowFilter_ApplyLabelTransformer:
		return func(c modelCell) (modelCell, bool) { c.label = x.ApplyLabelTransformer; return c, true }
	}
	return only(func(modelCell) bool { return false }) // block_all_filter
}
