package emulator_test

import (
	"strings"
	"testing"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
)

// A probe is one behaviour in which test servers are known to differ from
// production: a request, production's answer, and what the table holds then.
type probe struct {
	name  string
	setup []*btpb.Mutation // of the row r
	do    func(t *testing.T, w *world) error
	code  codes.Code
	text  string
	after []string // nil: as setup left it
}

// probeSetup is the row that most probes work on, and what it reads as.
var (
	probeSetup = []*btpb.Mutation{set("f", "a", 1000, "old")}
	probeCells = []string{"r/f:a@1000=old"}
)

func (p probe) run(t *testing.T) {
	w := newWorld(t)
	check(t, w.families(t.Context(), createFamily("min", minFamily()), createFamily("max", maxFamily())))
	if p.setup == nil {
		p.setup = probeSetup
	}
	w.mutate(t, "r", p.setup...)
	before, err := readRows(t.Context(), w.data, &btpb.ReadRowsRequest{})
	check(t, err)
	err = p.do(t, w)
	if p.code == codes.OK {
		check(t, err)
	} else {
		wantCode(t, "answer", err, p.code, p.text)
	}
	if p.after == nil {
		p.after = before.cells
	}
	after, err := readRows(t.Context(), w.data, &btpb.ReadRowsRequest{})
	check(t, err)
	diff(t, "the table then", append([]string{}, after.cells...), append([]string{}, p.after...)...)
}

func runProbes(t *testing.T, probes []probe) {
	t.Helper()
	for _, p := range probes {
		t.Run(p.name, p.run)
	}
}

func mutating(row string, m ...*btpb.Mutation) func(*testing.T, *world) error {
	return func(t *testing.T, w *world) error { return w.tryMutate(t.Context(), row, m...) }
}

// bulkAnswer is the answer of the n-th of some entries.
func bulkAnswer(n int, entries ...*btpb.MutateRowsRequest_Entry) func(*testing.T, *world) error {
	return func(t *testing.T, w *world) error {
		got, err := bulk(t.Context(), w.data, entries...)
		if err != nil {
			t.Errorf("the request: %v; want a status for each entry", err)
			return err
		}
		return entryError(got[n])
	}
}

func checkAndMutate(text string) func(*testing.T, *world) error {
	return func(t *testing.T, w *world) error {
		req := textOf(t, &btpb.CheckAndMutateRowRequest{}, text)
		req.TableName = table
		_, err := w.data.CheckAndMutateRow(t.Context(), req)
		return err
	}
}

func readModifyWrite(row string, rules ...*btpb.ReadModifyWriteRule) func(*testing.T, *world) error {
	return func(t *testing.T, w *world) error {
		_, err := w.data.ReadModifyWriteRow(t.Context(), &btpb.ReadModifyWriteRowRequest{TableName: table, RowKey: []byte(row), Rules: rules})
		return err
	}
}

func repeated(n int, m *btpb.Mutation) []*btpb.Mutation {
	out := make([]*btpb.Mutation, n)
	for i := range out {
		out[i] = m
	}
	return out
}

const noFamily = "Requested column family not found"

func TestWriteProbes(t *testing.T) {
	aggregated := []*btpb.Mutation{addToCell("sum", "q", 1000, 5)}
	runProbes(t, []probe{
		{name: "mutate: a bad mutation undoes the earlier", do: mutating("r", set("f", "a", 1000, "new"), deleteColumn("f", "b", 0, 0), set("none", "a", 0, "x")), code: codes.NotFound, text: noFamily},
		{name: "mutate: an empty list", do: mutating("r"), code: codes.InvalidArgument},
		{name: "mutate: a mutation of no kind", do: mutating("r", &btpb.Mutation{}), code: codes.InvalidArgument},
		{name: "mutate: 100001 mutations", do: mutating("r", repeated(100_001, set("f", "a", 1000, "new"))...), code: codes.InvalidArgument, text: "Too many mutations: 100001 provided; limit 100000"},
		{name: "mutate: 100000 mutations", do: mutating("r", repeated(100_000, set("f", "a", 1000, "new"))...), after: []string{"r/f:a@1000=new"}},
		{name: "mutate: an empty key", do: mutating("", set("f", "a", 0, "x")), code: codes.InvalidArgument},
		{name: "mutate: a key of 4097 bytes", do: mutating(strings.Repeat("k", 4097), set("f", "a", 0, "x")), code: codes.InvalidArgument},
		{name: "mutate: a key of 4096 bytes", do: mutating(strings.Repeat("k", 4096), set("f", "a", 0, "x")), after: []string{strings.Repeat("k", 4096) + "/f:a@0=x", probeCells[0]}},
		{name: "mutate: a qualifier of 16385 bytes", do: mutating("r", set("f", strings.Repeat("q", 16385), 0, "x")), code: codes.InvalidArgument},
		{name: "mutate: an empty qualifier", do: mutating("r", set("f", "", 0, "x")), after: []string{"r/f:@0=x", probeCells[0]}},
		{name: "mutate: an unaligned timestamp", do: mutating("r", set("f", "a", 1001, "x")), code: codes.InvalidArgument, text: "Timestamp granularity mismatch"},
		{name: "mutate: a timestamp before -1", do: mutating("r", set("f", "a", -2, "x")), code: codes.InvalidArgument},
		{name: "mutate: timestamp 0 is the epoch", do: mutating("r", set("f", "a", 0, "x")), after: []string{probeCells[0], "r/f:a@0=x"}},
		{name: "mutate: the same cell is replaced", do: mutating("r", set("f", "a", 1000, "x")), after: []string{"r/f:a@1000=x"}},
		{name: "mutate: an unknown family", do: mutating("r", set("none", "a", 0, "x")), code: codes.NotFound, text: noFamily},
		{name: "mutate: a deletion of an unknown family", do: mutating("r", deleteFamily("none")), code: codes.NotFound, text: noFamily},
		{name: "mutate: a deletion from a column of an unknown family", do: mutating("r", deleteColumn("none", "a", 0, 0)), code: codes.NotFound, text: noFamily},
		{name: "mutate: an inverted time range", do: mutating("r", deleteColumn("f", "a", 2000, 1000)), code: codes.InvalidArgument},
		{name: "mutate: an unaligned time range", do: mutating("r", deleteColumn("f", "a", 1, 2000)), code: codes.InvalidArgument},
		{name: "mutate: an unknown table is named", do: func(t *testing.T, w *world) error {
			_, err := w.data.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: parent + "/tables/none", RowKey: []byte("r"), Mutations: probeSetup})
			return err
		}, code: codes.NotFound, text: parent + "/tables/none"},

		{name: "bulk: an unknown family", do: bulkAnswer(1, bulkEntry("s", set("f", "a", 0, "x")), bulkEntry("r", set("none", "a", 0, "x"))), code: codes.NotFound, text: noFamily, after: []string{probeCells[0], "s/f:a@0=x"}},
		{name: "bulk: an unknown family in a row whose key is no text", do: bulkAnswer(0, bulkEntry("\xff\xfe", set("none", "a", 0, "x"))), code: codes.NotFound, text: noFamily},
		{name: "bulk: an unknown family in a row whose key is cut in a letter", do: bulkAnswer(0, bulkEntry(strings.Repeat("k", 99)+"é"+strings.Repeat("k", 99), set("none", "a", 0, "x"))), code: codes.NotFound, text: noFamily},
		{name: "bulk: an entry is all or nothing", do: bulkAnswer(0, bulkEntry("r", set("f", "a", 1000, "new"), set("f", "a", 1, "x"))), code: codes.InvalidArgument},
		{name: "bulk: an entry without mutations", do: bulkAnswer(0, bulkEntry("r"), bulkEntry("s", set("f", "a", 0, "x"))), code: codes.InvalidArgument, after: []string{probeCells[0], "s/f:a@0=x"}},
		{name: "bulk: an empty key", do: bulkAnswer(0, bulkEntry("", set("f", "a", 0, "x"))), code: codes.InvalidArgument},
		{name: "bulk: the limit counts mutations over all rows", do: func(t *testing.T, w *world) error {
			two := repeated(2, set("f", "a", 0, "x"))
			entries := make([]*btpb.MutateRowsRequest_Entry, 60_000)
			for i := range entries {
				entries[i] = bulkEntry("r", two...)
			}
			_, err := bulk(t.Context(), w.data, entries...)
			return err
		}, code: codes.InvalidArgument, text: "Too many mutations: 120000 provided; limit 100000"},
		{name: "bulk: the same row twice, in order", do: bulkAnswer(1, bulkEntry("r", set("f", "a", 1000, "1")), bulkEntry("r", deleteRow(), set("f", "b", 0, "2"))), after: []string{"r/f:b@0=2"}},

		{name: "check: neither list", do: checkAndMutate(`row_key: "r"`), code: codes.InvalidArgument},
		{name: "check: a bad branch is not applied in part", do: checkAndMutate(`row_key: "r" true_mutations { set_cell { family_name: "f" column_qualifier: "a" timestamp_micros: 1000 value: "new" } } true_mutations { set_cell { family_name: "none" } }`), code: codes.NotFound, text: noFamily},
		{name: "check: a bad mutation in the branch not taken", do: checkAndMutate(`row_key: "r" true_mutations { set_cell { family_name: "f" column_qualifier: "a" timestamp_micros: 1000 value: "new" } } false_mutations { set_cell { family_name: "none" } }`), code: codes.NotFound, text: noFamily},
		{name: "check: a bad predicate", do: checkAndMutate(`row_key: "r" predicate_filter { value_regex_filter: "(" } true_mutations { delete_from_row {} }`), code: codes.InvalidArgument},
		{name: "check: an empty key", do: checkAndMutate(`true_mutations { delete_from_row {} }`), code: codes.InvalidArgument},
		{name: "check: a predicate of an empty chain", do: checkAndMutate(`row_key: "r" predicate_filter { chain {} } true_mutations { delete_from_row {} }`), code: codes.InvalidArgument},
		{name: "check: a miss leaves no row", do: func(t *testing.T, w *world) error {
			if err := checkAndMutate(`row_key: "ghost" true_mutations { set_cell { family_name: "f" } }`)(t, w); err != nil {
				return err
			}
			diff(t, "samples", samplesOf(t, w, &btpb.SampleRowKeysRequest{}), "c", "m", "")
			return nil
		}},

		{name: "modify: an empty key", do: readModifyWrite("", appendRule("f", "a", "x")), code: codes.InvalidArgument},
		{name: "modify: no rules", do: readModifyWrite("r"), code: codes.InvalidArgument},
		{name: "modify: a rule of no kind", do: readModifyWrite("r", &btpb.ReadModifyWriteRule{FamilyName: "f"}), code: codes.InvalidArgument},
		{name: "modify: an unknown family", do: readModifyWrite("r", appendRule("f", "a", "x"), appendRule("none", "a", "x")), code: codes.NotFound, text: noFamily},
		{name: "modify: text is not incremented, and earlier rules undone", do: readModifyWrite("r", appendRule("f", "b", "x"), incrementRule("f", "a", 1)), code: codes.FailedPrecondition},
		{name: "modify: an aggregate family", do: readModifyWrite("r", incrementRule("sum", "q", 1)), code: codes.InvalidArgument},

		{name: "aggregate: min", setup: []*btpb.Mutation{addToCell("min", "q", 0, 5), addToCell("min", "q", 0, 9)}, do: mutating("r", addToCell("min", "q", 0, 3), addToCell("min", "q", 0, 7)), after: []string{"r/min:q@0=" + bigEndian(3)}},
		{name: "aggregate: max", setup: []*btpb.Mutation{addToCell("max", "q", 0, -5), addToCell("max", "q", 0, 9)}, do: mutating("r", addToCell("max", "q", 0, 3), mergeToCell("max", "q", 0, bigEndian(7))), after: []string{"r/max:q@0=" + bigEndian(9)}},
		{name: "aggregate: sum", setup: aggregated, do: mutating("r", mergeToCell("sum", "q", 1000, bigEndian(-7))), after: []string{"r/sum:q@1000=" + bigEndian(-2)}},
		{name: "aggregate: SetCell", setup: aggregated, do: mutating("r", set("sum", "q", 1000, "x")), code: codes.InvalidArgument},
		{name: "aggregate: AddToCell on a plain family", do: mutating("r", addToCell("f", "a", 1000, 1)), code: codes.InvalidArgument},
		{name: "aggregate: no input", setup: aggregated, do: mutating("r", textOf(t, &btpb.Mutation{}, `add_to_cell { family_name: "sum" column_qualifier { raw_value: "q" } timestamp { raw_timestamp_micros: 1000 } }`)), code: codes.InvalidArgument},
		{name: "aggregate: a short state", setup: aggregated, do: mutating("r", mergeToCell("sum", "q", 1000, "abc")), code: codes.InvalidArgument},
		{name: "aggregate: nothing but the name", setup: aggregated, do: mutating("r", textOf(t, &btpb.Mutation{}, `add_to_cell { family_name: "sum" }`)), code: codes.InvalidArgument},
		{name: "aggregate: an unknown family", do: mutating("r", addToCell("none", "q", 0, 1)), code: codes.NotFound, text: noFamily},
		{name: "aggregate: the type is not changed", do: func(t *testing.T, w *world) error {
			return w.families(t.Context(), &adminpb.ModifyColumnFamiliesRequest_Modification{
				Id: "sum", Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Update{Update: maxFamily()},
				UpdateMask: maskOf("value_type"),
			})
		}, code: codes.InvalidArgument},
	})
}
