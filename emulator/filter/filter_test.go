package filter

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/datadriven"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
)

// TestData runs the cases of testdata/filters:
//
//	row key=K                      the row of the filters that follow; cells as lines
//	                               family:qualifier timestamp value
//	filter [random=(R,...)] [families=(F,...)] [hints]
//	                               a filter in text form; puts out cells or an error
//
// random are the numbers that row samples draw, families those of the table,
// and hints asks for Bounds and ReadsValues too. The answers are production's,
// written from its contract; a comment says where the test server of the Go
// client library (bttest) differs.
func TestData(t *testing.T) {
	kinds := map[string]bool{}
	datadriven.Walk(t, "testdata/filters", func(t *testing.T, path string) {
		var key []byte
		var row []Cell
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "row":
				key = nil
				if d.HasArg("key") {
					var quoted string
					d.ScanArgs(t, "key", &quoted)
					key = []byte(quoted)
					if unquoted, err := strconv.Unquote(quoted); err == nil {
						key = []byte(unquoted)
					}
				}
				row = parseCells(t, d.Input)
				return ""
			case "filter":
				f := &btpb.RowFilter{}
				if err := prototext.Unmarshal([]byte(d.Input), f); err != nil {
					d.Fatalf(t, "%v", err)
				}
				noteKinds(kinds, f)
				return runFilter(t, d, f, key, row)
			default:
				d.Fatalf(t, "unknown command")
				return ""
			}
		})
	})
	fields := (&btpb.RowFilter{}).ProtoReflect().Descriptor().Oneofs().ByName("filter").Fields()
	for i := range fields.Len() {
		if name := string(fields.Get(i).Name()); !kinds[name] {
			t.Errorf("no case has a %s", name)
		}
	}
}

// noteKinds notes the kinds of f and of all filters in it.
func noteKinds(kinds map[string]bool, f *btpb.RowFilter) {
	if f == nil {
		return
	}
	m := f.ProtoReflect()
	if field := m.WhichOneof(m.Descriptor().Oneofs().ByName("filter")); field != nil {
		kinds[string(field.Name())] = true
	}
	for _, sub := range slices.Concat(f.GetChain().GetFilters(), f.GetInterleave().GetFilters()) {
		noteKinds(kinds, sub)
	}
	noteKinds(kinds, f.GetCondition().GetPredicateFilter())
	noteKinds(kinds, f.GetCondition().GetTrueFilter())
	noteKinds(kinds, f.GetCondition().GetFalseFilter())
}

func runFilter(t *testing.T, d *datadriven.TestData, pb *btpb.RowFilter, key []byte, row []Cell) string {
	var families func(string) bool
	if arg, ok := d.Arg("families"); ok {
		families = func(name string) bool { return slices.Contains(arg.Vals, name) }
	}
	f, err := Compile(pb, families)
	if err != nil {
		s := status.Convert(err)
		return fmt.Sprintf("%s: %s\n", codeName(s.Code()), s.Message())
	}
	var draws []float64
	if arg, ok := d.Arg("random"); ok {
		for _, v := range arg.Vals {
			draw, err := strconv.ParseFloat(v, 64)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			draws = append(draws, draw)
		}
	}
	e := f.NewEvaluator(func() float64 {
		if len(draws) == 0 {
			d.Fatalf(t, "the filter draws more numbers than the case gives")
		}
		draw := draws[0]
		draws = draws[1:]
		return draw
	})
	out := formatCells(evaluate(t, e, key, &rowSource{cells: row, obeys: true}))
	if out == "" {
		out = "no cells\n"
	}
	if d.HasArg("hints") {
		b := f.Bounds()
		out += fmt.Sprintf("families %s, qualifiers from %q to %s, values %t\n",
			orAll(b.Families == nil, "%q", b.Families), b.Start, orAll(b.End == nil, "%q", b.End), f.ReadsValues())
	}
	return out
}

func orAll(all bool, format string, v any) string {
	if all {
		return "all"
	}
	return fmt.Sprintf(format, v)
}

func codeName(c codes.Code) string {
	return map[codes.Code]string{codes.InvalidArgument: "INVALID_ARGUMENT", codes.NotFound: "NOT_FOUND"}[c]
}

func mustParse(t testing.TB, text string) *btpb.RowFilter {
	t.Helper()
	pb := &btpb.RowFilter{}
	if err := prototext.Unmarshal([]byte(text), pb); err != nil {
		t.Fatal(err)
	}
	return pb
}

func mustCompile(t testing.TB, text string) *Filter {
	t.Helper()
	f, err := Compile(mustParse(t, text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestNilFilterPassesAll(t *testing.T) {
	row := parseCells(t, "a:x 1000 v\nb:y 2000 w")
	f, err := Compile(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := formatCells(evaluate(t, f.NewEvaluator(nil), nil, &rowSource{cells: row})), formatCells(row); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestSizeLimit(t *testing.T) {
	// A value regex of n bytes is n+4 bytes long: tag of 1, length of 3.
	sized := func(size int) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(strings.Repeat("v", size-4))}}
	}
	if _, err := Compile(sized(20480), nil); err != nil {
		t.Errorf("20480 bytes: %v", err)
	}
	_, err := Compile(sized(20481), nil)
	if got, want := fmt.Sprint(err), "rpc error: code = InvalidArgument desc = Row filter exceeds maximum size of 20480 bytes"; got != want {
		t.Errorf("20481 bytes: %s, want %s", got, want)
	}
}

func TestDepthLimit(t *testing.T) {
	pass := &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
	wraps := map[string]func(*btpb.RowFilter) *btpb.RowFilter{
		"chain": func(f *btpb.RowFilter) *btpb.RowFilter {
			return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: []*btpb.RowFilter{pass, f}}}}
		},
		"interleave": func(f *btpb.RowFilter) *btpb.RowFilter {
			return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: []*btpb.RowFilter{pass, f}}}}
		},
		"condition": func(f *btpb.RowFilter) *btpb.RowFilter {
			return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{PredicateFilter: f}}}
		},
	}
	for name, wrap := range wraps {
		f := pass
		for range 20 {
			f = wrap(f)
		}
		if _, err := Compile(f, nil); err != nil {
			t.Errorf("%s: depth 20: %v", name, err)
		}
		if _, err := Compile(wrap(f), nil); status.Code(err) != codes.InvalidArgument ||
			!strings.HasSuffix(err.Error(), "Row filter is nested deeper than 20") {
			t.Errorf("%s: depth 21: %v", name, err)
		}
	}
}

func TestCopiesLimit(t *testing.T) {
	pass := &btpb.RowFilter{}
	interleave := func(n int) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: slices.Repeat([]*btpb.RowFilter{pass}, n)}}}
	}
	chain := func(filters ...*btpb.RowFilter) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: filters}}}
	}
	block := &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: true}}
	sink := &btpb.RowFilter{Filter: &btpb.RowFilter_Sink{Sink: true}}
	condition := func(f *btpb.RowFilter) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{PredicateFilter: f, TrueFilter: pass}}}
	}
	for name, c := range map[string]struct {
		filter *btpb.RowFilter
		ok     bool
	}{
		"one interleave of all that fits": {interleave(10000), true},
		"a chain of two":                  {chain(interleave(100), interleave(100)), true},
		"a chain of two, one more":        {chain(interleave(100), interleave(101)), false},
		"a chain of many":                 {chain(slices.Repeat([]*btpb.RowFilter{interleave(2)}, 2000)...), false},
		"blocked at last":                 {chain(interleave(101), interleave(100), block), false},
		"into sinks":                      {chain(interleave(101), interleave(99), sink), true},
		"into sinks, one more":            {chain(interleave(101), interleave(100), sink), false},
		"in a predicate":                  {condition(chain(interleave(101), interleave(100))), false},
	} {
		_, err := Compile(c.filter, nil)
		const text = "rpc error: code = InvalidArgument desc = Row filter may put out one cell more than 10000 times"
		if got := err == nil; got != c.ok || !c.ok && err.Error() != text {
			t.Errorf("%s: error %v, want none: %t", name, err, c.ok)
		}
	}
}

func TestUnknownKind(t *testing.T) {
	f := &btpb.RowFilter{}
	f.ProtoReflect().SetUnknown([]byte{0xf8, 0x07, 0x01}) // field 127
	_, err := Compile(&btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: []*btpb.RowFilter{{}, f}}}}, nil)
	want := "rpc error: code = InvalidArgument desc = Error in field 'chain' : Error in element #1 : Row filter is of a kind unknown to this server"
	if got := fmt.Sprint(err); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
