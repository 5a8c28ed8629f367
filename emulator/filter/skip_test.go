package filter

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// longRow is a row of many versions in each of its columns a:0, a:1 ..., and
// counts the cells that it delivers. It knows how to skip a column.
type longRow struct {
	columns, versions int

	column, version int
	delivered       int
	skips           []Skip
	cell            Cell
}

func (s *longRow) Rewind() error {
	s.column, s.version = 0, 0
	return nil
}

func (s *longRow) Next(skip Skip) (*Cell, error) {
	if len(s.skips) < 16 {
		s.skips = append(s.skips, skip)
	}
	switch skip {
	case SkipNone:
	case SkipColumn:
		if s.version > 0 {
			s.column, s.version = s.column+1, 0
		}
	default:
		s.column = s.columns
	}
	if s.version == s.versions {
		s.column, s.version = s.column+1, 0
	}
	if s.column >= s.columns {
		return nil, nil
	}
	if s.version == 0 {
		s.cell = Cell{Family: "a", Qualifier: []byte(strconv.Itoa(s.column)), Value: []byte("v")}
	}
	s.version++
	s.cell.Timestamp = int64(s.versions-s.version) * 1000
	s.delivered++
	return &s.cell, nil
}

// TestDeliveredCells counts what filters take of a row of two columns with a
// million versions each.
func TestDeliveredCells(t *testing.T) {
	const million = 1_000_000
	exists := `chain { filters { cells_per_row_limit_filter: 1 } filters { strip_value_transformer: true } }`
	for _, c := range []struct {
		name, filter string
		out          int // cells
		delivered    int
		skips        []Skip
	}{
		{"existence check", exists, 1, 1, []Skip{SkipNone}},
		{
			"newest of each column", `cells_per_column_limit_filter: 1`,
			2, 2,
			[]Skip{SkipNone, SkipColumn, SkipColumn},
		},
		{
			"two newest of each column", `cells_per_column_limit_filter: 2`,
			4, 4,
			[]Skip{SkipNone, SkipNone, SkipColumn, SkipNone, SkipColumn},
		},
		{
			"one column", `chain { filters { column_qualifier_regex_filter: "1" } filters { cells_per_column_limit_filter: 1 } }`,
			1, 2,
			[]Skip{SkipNone, SkipColumn, SkipColumn},
		},
		{"another family", `family_name_regex_filter: "b"`, 0, 1, []Skip{SkipNone, SkipFamily}},
		{
			"not older than", `timestamp_range_filter { start_timestamp_micros: 999998000 }`,
			4, 6,
			[]Skip{SkipNone, SkipNone, SkipNone, SkipColumn, SkipNone, SkipNone, SkipColumn},
		},
		{
			"past a column range", `column_range_filter { family_name: "a" end_qualifier_open: "0" }`,
			0, 1,
			[]Skip{SkipNone, SkipFamily},
		},
		{"blocked", `block_all_filter: true`, 0, 0, nil},
		{"blocked at the end", `chain { filters { cells_per_row_limit_filter: 9 } filters { block_all_filter: true } }`, 0, 0, nil},
		{"key of another row", `row_key_regex_filter: "other"`, 0, 0, nil},
		{
			"interleave of newest", `interleave { filters { cells_per_column_limit_filter: 1 } filters { chain { filters { column_qualifier_regex_filter: "1" } filters { cells_per_column_limit_filter: 2 } } } }`,
			4, 3,
			[]Skip{SkipNone, SkipColumn, SkipNone, SkipColumn},
		},
		{
			"interleave before an existence check", `chain { filters { interleave { filters { value_regex_filter: "v" } filters { value_regex_filter: "w" } } } filters { cells_per_row_limit_filter: 1 } }`,
			1, 1,
			[]Skip{SkipNone},
		},
		{
			"condition on existence", `condition { predicate_filter { cells_per_row_limit_filter: 1 } true_filter { cells_per_column_limit_filter: 1 } }`,
			2, 3,
			[]Skip{SkipNone, SkipNone, SkipColumn, SkipColumn},
		},
		{
			"condition that a newest cell fails", `condition { predicate_filter { chain { filters { cells_per_column_limit_filter: 1 } filters { value_regex_filter: "w" } } } true_filter { pass_all_filter: true } false_filter ` + "{ " + exists + " } }",
			1, 3,
			[]Skip{SkipNone, SkipColumn, SkipColumn, SkipNone},
		},
		{
			"a limit that counts what is dropped behind it", `chain { filters { cells_per_row_limit_filter: 5 } filters { column_qualifier_regex_filter: "1" } }`,
			0, 5,
			[]Skip{SkipNone, SkipNone, SkipNone, SkipNone, SkipNone},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &longRow{columns: 2, versions: million}
			got := evaluate(t, mustCompile(t, c.filter).NewEvaluator(nil), []byte("key"), in)
			if len(got) != c.out || in.delivered != c.delivered {
				t.Errorf("%d cells of %d delivered, want %d of %d", len(got), in.delivered, c.out, c.delivered)
			}
			if diff := gocmp.Diff(c.skips, in.skips); diff != "" {
				t.Errorf("skips (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOneCellIsEnough: who asks whether there is a cell calls Next once.
func TestOneCellIsEnough(t *testing.T) {
	in := &longRow{columns: 2, versions: 1_000_000}
	e := mustCompile(t, `column_qualifier_regex_filter: "1"`).NewEvaluator(nil)
	e.Reset(nil, in)
	c, err := e.Next()
	if err != nil || c == nil || !bytes.Equal(c.Qualifier, []byte("1")) {
		t.Fatalf("cell %v, error %v", c, err)
	}
	if in.delivered != 2 {
		t.Errorf("%d cells delivered, want 2", in.delivered)
	}
}

// failingSource fails at its first call of Next, or of Rewind.
type failingSource struct{ next, rewind error }

func (s failingSource) Next(Skip) (*Cell, error) { return nil, s.next }
func (s failingSource) Rewind() error            { return s.rewind }

func TestSourceErrorEndsTheRow(t *testing.T) {
	broken := errors.New("broken")
	e := mustCompile(t, `condition { true_filter { pass_all_filter: true } }`).NewEvaluator(nil)
	for name, in := range map[string]Source{"next": failingSource{next: broken}, "rewind": failingSource{rewind: broken}} {
		e.Reset(nil, in)
		if c, err := e.Next(); c != nil || !errors.Is(err, broken) {
			t.Errorf("%s: cell %v, error %v, want the source's", name, c, err)
		}
		if c, err := e.Next(); c != nil || err != nil {
			t.Errorf("%s: after the error: cell %v, error %v, want the end", name, c, err)
		}
	}
	if c, err := mustCompile(t, `pass_all_filter: true`).NewEvaluator(nil).Next(); c != nil || err != nil {
		t.Errorf("without a row: cell %v, error %v, want the end", c, err)
	}
}

// commonFilters are those that reads of every day use.
var commonFilters = []struct{ name, filter string }{
	{"pass_all", `pass_all_filter: true`},
	{"family_literal", `family_name_regex_filter: "b"`},
	{"column_literal", `column_qualifier_regex_filter: "column-3"`},
	{"column_regex", `column_qualifier_regex_filter: "column-[0-9]+"`},
	{"column_range", `column_range_filter { family_name: "b" start_qualifier_closed: "column-2" }`},
	{"latest_1", `cells_per_column_limit_filter: 1`},
	{"family_column_latest_1", `chain { filters { family_name_regex_filter: "b" } filters { column_qualifier_regex_filter: "column-3" } filters { cells_per_column_limit_filter: 1 } }`},
	{"family_column_regex_latest_1", `chain { filters { family_name_regex_filter: "b" } filters { column_qualifier_regex_filter: "column-[1-3]+" } filters { cells_per_column_limit_filter: 1 } }`},
	{"interleave_of_2", `interleave { filters { family_name_regex_filter: "a" } filters { chain { filters { family_name_regex_filter: "b" } filters { strip_value_transformer: true } } } }`},
	{"condition", `condition { predicate_filter { column_qualifier_regex_filter: "column-3" } true_filter { family_name_regex_filter: "b" } }`},
	{"exists", `chain { filters { cells_per_row_limit_filter: 1 } filters { strip_value_transformer: true } }`},
}

// tenCells is a row of two families with five columns each.
func tenCells() []Cell {
	var cells []Cell
	for _, family := range []string{"a", "b"} {
		for i := range 5 {
			cells = append(cells, Cell{
				Family: family, Qualifier: fmt.Appendf(nil, "column-%d", i), Timestamp: 1000, Value: bytes.Repeat([]byte("v"), 100),
			})
		}
	}
	return cells
}

// plainSource yields cells at the least cost, and ignores skips.
type plainSource struct {
	cells []Cell
	at    int
}

func (s *plainSource) Rewind() error {
	s.at = 0
	return nil
}

func (s *plainSource) Next(Skip) (*Cell, error) {
	if s.at == len(s.cells) {
		return nil, nil
	}
	s.at++
	return &s.cells[s.at-1], nil
}

func drain(tb testing.TB, e *Evaluator) int {
	n := 0
	for {
		c, err := e.Next()
		if err != nil {
			tb.Fatal(err)
		}
		if c == nil {
			return n
		}
		n++
	}
}

func TestNoAllocationPerRow(t *testing.T) {
	for _, c := range commonFilters {
		if strings.Contains(c.name, "regex") {
			continue // the engine's pools are lossy under the race detector
		}
		e := mustCompile(t, c.filter).NewEvaluator(nil)
		in, key := &plainSource{cells: tenCells()}, []byte("key")
		cells := 0
		if n := testing.AllocsPerRun(100, func() {
			in.at = 0
			e.Reset(key, in)
			cells += drain(t, e)
		}); n != 0 {
			t.Errorf("%s: %v allocations a row", c.name, n)
		}
		if cells == 0 {
			t.Errorf("%s: no cells", c.name)
		}
	}
}

// BenchmarkRow measures a row of ten cells.
func BenchmarkRow(b *testing.B) {
	for _, c := range commonFilters {
		b.Run(c.name, func(b *testing.B) {
			e := mustCompile(b, c.filter).NewEvaluator(nil)
			in, key := &plainSource{cells: tenCells()}, []byte("key")
			b.ReportAllocs()
			for b.Loop() {
				in.at = 0
				e.Reset(key, in)
				drain(b, e)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(in.cells)), "ns/cell")
		})
	}
}

// BenchmarkCompile measures what a request pays once.
func BenchmarkCompile(b *testing.B) {
	for _, c := range commonFilters {
		b.Run(c.name, func(b *testing.B) {
			pb := mustParse(b, c.filter)
			b.ReportAllocs()
			for b.Loop() {
				f, err := Compile(pb, nil)
				if err != nil {
					b.Fatal(err)
				}
				f.NewEvaluator(nil)
			}
		})
	}
}
