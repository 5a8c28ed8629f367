package emulator_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func entryError(e *btpb.MutateRowsResponse_Entry) error { return status.ErrorProto(e.GetStatus()) }

func samplesOf(t *testing.T, w *world, req *btpb.SampleRowKeysRequest) []string {
	t.Helper()
	req.TableName = table
	stream, err := w.data.SampleRowKeys(t.Context(), req)
	check(t, err)
	var got []string
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got
		}
		check(t, err)
		got = append(got, string(res.GetRowKey()))
	}
}

// probeRow is the row on which filters are probed, a cell of it a line.
var probeRow = []*btpb.Mutation{
	set("f", "a", 2000, "x"), set("f", "a", 1000, "y"), set("f", "b", 1000, "n\nl"), set("g", "a", 1000, "\x80"),
}

var (
	rowFA2 = "r/f:a@2000=x"
	rowFA1 = "r/f:a@1000=y"
	rowFB  = "r/f:b@1000=n\nl"
	rowGA  = "r/g:a@1000=\x80"
)

// TestReadProbes reads; what is read is wanted, or an error with code and text.
func TestReadProbes(t *testing.T) {
	nested := "pass_all_filter: true"
	for range 21 {
		nested = "chain { filters { pass_all_filter: true } filters { " + nested + " } }"
	}
	all := []string{rowFA2, rowFA1, rowFB, rowGA}
	for _, p := range []struct {
		name, req string
		code      codes.Code
		text      string // or of the error
		want      []string
	}{
		{name: "no row set", want: all},
		{name: "keys and ranges, once and in order", req: `rows { row_keys: "r" row_keys: "none" row_ranges { start_key_closed: "a" } row_keys: "r" }`, want: all},
		{name: "a closed range of one key", req: `rows { row_ranges { start_key_closed: "r" end_key_closed: "r" } }`, want: all},
		{name: "start behind end", req: `rows { row_ranges { start_key_closed: "3" end_key_open: "1" } }`, code: codes.InvalidArgument, text: "Error in field 'row_ranges' : Error in element #0 : start_key must be less than end_key"},
		{name: "start behind end, in the second range", req: `rows { row_ranges { start_key_closed: "1" } row_ranges { start_key_open: "b" end_key_closed: "a" } }`, code: codes.InvalidArgument, text: "Error in field 'row_ranges' : Error in element #1 : start_key must be less than end_key"},
		// java-bigtable-hbase#928 and beam#39842: what is empty is refused too.
		{name: "start at end, closed and open", req: `rows { row_ranges { start_key_closed: "r" end_key_open: "r" } }`, code: codes.InvalidArgument, text: "start_key must be less than end_key"},
		{name: "start at end, both open", req: `rows { row_ranges { start_key_open: "r" end_key_open: "r" } }`, code: codes.InvalidArgument, text: "start_key must be less than end_key"},
		{name: "start at end, open and closed", req: `rows { row_ranges { start_key_open: "r" end_key_closed: "r" } }`, code: codes.InvalidArgument, text: "start_key must be less than end_key"},
		{name: "nothing between two open ends", req: `rows { row_ranges { start_key_open: "r" end_key_open: "r\000" } }`, code: codes.InvalidArgument, text: "start_key must be less than end_key"},
		{name: "an empty end is the end of the table", req: `rows { row_ranges { start_key_closed: "a" end_key_open: "" } }`, want: all},
		{name: "an empty key", req: `rows { row_keys: "" }`, code: codes.InvalidArgument},
		{name: "a negative limit", req: `rows_limit: -1`, code: codes.InvalidArgument},
		{name: "reversed without the feature", req: `reversed: true`, code: codes.Unimplemented, text: "Client doesn't support reverse scans yet"},
		{name: "an unknown table", req: `table_name: "projects/p/instances/i/tables/none"`, code: codes.NotFound, text: "projects/p/instances/i/tables/none"},
		{name: "a materialized view", req: `materialized_view_name: "projects/p/instances/i/materializedViews/v"`, code: codes.Unimplemented},
		{name: "an authorized view", req: `authorized_view_name: "projects/p/instances/i/tables/t/authorizedViews/v"`, code: codes.Unimplemented},

		{name: "filter: unset", req: `filter {}`, want: all},
		{name: "filter: pass_all false", req: `filter { pass_all_filter: false }`, code: codes.InvalidArgument},
		{name: "filter: block_all false", req: `filter { block_all_filter: false }`, code: codes.InvalidArgument},
		{name: "filter: a chain of one", req: `filter { chain { filters { pass_all_filter: true } } }`, code: codes.InvalidArgument},
		{name: "filter: an interleave of one", req: `filter { interleave { filters { pass_all_filter: true } } }`, code: codes.InvalidArgument},
		{name: "filter: a condition without a predicate", req: `filter { condition { true_filter { value_regex_filter: "x" } } }`, want: []string{rowFA2}},
		{name: "filter: 21 deep", req: `filter { ` + nested + ` }`, code: codes.InvalidArgument, text: "20"},
		{name: "filter: 20481 bytes", req: `filter { value_regex_filter: "` + strings.Repeat("v", 20477) + `" }`, code: codes.InvalidArgument, text: "20480"},
		{name: "filter: bad where no cell comes", req: `filter { chain { filters { block_all_filter: true } filters { value_regex_filter: "(" } } }`, code: codes.InvalidArgument},
		{name: "filter: bad for a key that is not there", req: `rows { row_keys: "none" } filter { row_key_regex_filter: "[" }`, code: codes.InvalidArgument},
		{name: "filter: an empty row key pattern", req: `filter { row_key_regex_filter: "" }`, code: codes.InvalidArgument},
		{name: "filter: interleave keeps duplicates", req: `filter { interleave { filters { value_regex_filter: "x" } filters { value_regex_filter: "x|y" } } }`, want: []string{rowFA2, rowFA2, rowFA1}},
		{name: "filter: sink", req: `filter { chain { filters { interleave { filters { value_regex_filter: "y" } filters { chain { filters { value_regex_filter: "x" } filters { sink: true } } } } } filters { strip_value_transformer: true } } }`, want: []string{rowFA2, "r/f:a@1000="}},
		{name: "filter: block behind a sink", req: `filter { chain { filters { sink: true } filters { block_all_filter: true } } }`, want: all},
		{name: "filter: sink in a condition", req: `filter { condition { predicate_filter { pass_all_filter: true } true_filter { sink: true } } }`, code: codes.InvalidArgument},
		{name: "filter: sample of none", req: `filter { row_sample_filter: 0 }`, code: codes.InvalidArgument},
		{name: "filter: sample of all", req: `filter { row_sample_filter: 1 }`, code: codes.InvalidArgument},
		{name: "filter: a family pattern with a colon", req: `filter { family_name_regex_filter: "f:a" }`, code: codes.InvalidArgument},
		{name: "filter: an unknown family", req: `filter { family_name_regex_filter: "none" }`, code: codes.NotFound, text: noFamily},
		{name: "filter: a column range of an unknown family", req: `filter { column_range_filter { family_name: "none" } }`, code: codes.NotFound, text: noFamily},
		{name: "filter: a family pattern that matches none", req: `filter { family_name_regex_filter: "none.*" }`},
		{name: "filter: an inverted column range", req: `filter { column_range_filter { family_name: "f" start_qualifier_closed: "b" end_qualifier_closed: "a" } }`, code: codes.InvalidArgument},
		{name: "filter: an unaligned time range", req: `filter { timestamp_range_filter { start_timestamp_micros: 1 } }`, code: codes.InvalidArgument},
		{name: "filter: an inverted time range", req: `filter { timestamp_range_filter { start_timestamp_micros: 2000 end_timestamp_micros: 1000 } }`, code: codes.InvalidArgument},
		{name: "filter: an inverted value range", req: `filter { value_range_filter { start_value_closed: "b" end_value_closed: "a" } }`, code: codes.InvalidArgument},
		{name: "filter: a point is no newline", req: `filter { value_regex_filter: "n.l" }`},
		{name: "filter: \\C is any byte", req: `filter { value_regex_filter: "n\\Cl" }`, want: []string{rowFB}},
		{name: "filter: a byte above ASCII", req: `filter { value_regex_filter: "\\x80" }`, want: []string{rowGA}},
		{name: "filter: a raw byte above ASCII", req: `filter { value_regex_filter: "\200" }`, want: []string{rowGA}},
		{name: "filter: a pattern matches in full", req: `filter { column_qualifier_regex_filter: "" }`},
		{name: "filter: bitmask", req: `filter { value_bitmask_filter { mask: "\200" } }`, want: []string{rowGA}},
		{name: "filter: row limit over families", req: `filter { cells_per_row_limit_filter: 3 }`, want: all[:3]},
		{name: "filter: row offset over families", req: `filter { cells_per_row_offset_filter: 2 }`, want: all[2:]},
		{name: "filter: negative row offset", req: `filter { cells_per_row_offset_filter: -1 }`, code: codes.InvalidArgument},
		{name: "filter: row limit of 0", req: `filter { cells_per_row_limit_filter: 0 }`, code: codes.InvalidArgument},
		{name: "filter: column limit", req: `filter { cells_per_column_limit_filter: 1 }`, want: []string{rowFA2, rowFB, rowGA}},
		{name: "filter: a label in upper case", req: `filter { apply_label_transformer: "ABC" }`, code: codes.InvalidArgument},
		{name: "filter: a label of 16", req: `filter { apply_label_transformer: "abcdefghijklmnop" }`, code: codes.InvalidArgument},
		{name: "filter: two labels", req: `filter { chain { filters { apply_label_transformer: "a" } filters { apply_label_transformer: "b" } } }`, code: codes.InvalidArgument},
		{name: "filter: stripping keeps the label", req: `filter { chain { filters { value_regex_filter: "x" } filters { apply_label_transformer: "l" } filters { strip_value_transformer: true } } }`, want: []string{"r/f:a@2000= {l}"}},
		{name: "filter: condition with a missing branch", req: `filter { condition { predicate_filter { value_regex_filter: "no" } true_filter { pass_all_filter: true } } }`},
		{name: "filter: condition on an empty chain's outcome", req: `filter { condition { predicate_filter { chain { filters { pass_all_filter: true } filters { block_all_filter: true } } } true_filter { pass_all_filter: true } false_filter { value_regex_filter: "x" } } }`, want: []string{rowFA2}},
	} {
		t.Run(p.name, func(t *testing.T) {
			w := newWorld(t)
			w.mutate(t, "r", probeRow...)
			got, err := readRows(t.Context(), w.data, textOf(t, &btpb.ReadRowsRequest{}, p.req))
			if p.code != codes.OK {
				wantCode(t, "answer", err, p.code, p.text)
				return
			}
			check(t, err)
			diff(t, "cells", got.cells, p.want...)
		})
	}
}

func TestStreamProbes(t *testing.T) {
	w := newWorld(t)
	for i := range 1200 {
		w.mutate(t, fmt.Sprintf("r%04d", i), set("f", "a", 0, "x"), set("g", "a", 0, fmt.Sprint(i%600)))
	}
	read := func(req string) reading {
		t.Helper()
		got, err := readRows(withReverse(t.Context()), w.data, textOf(t, &btpb.ReadRowsRequest{}, req))
		check(t, err)
		return got
	}
	// The limit counts rows with cells, not rows that were looked at.
	r := read(`rows_limit: 2 filter { value_regex_filter: "599" }`)
	diff(t, "limit", r.cells, "r0599/g:a@0=599", "r1199/g:a@0=599")
	r = read(`rows_limit: 1 reversed: true filter { value_regex_filter: "599" }`)
	diff(t, "reversed", r.cells, "r1199/g:a@0=599")
	r = read(`rows_limit: 2 reversed: true rows { row_keys: "r0001" row_ranges { end_key_open: "r0001" } row_keys: "r0007" }`)
	diff(t, "reversed row set, cells ascending", r.cells, "r0007/f:a@0=x", "r0007/g:a@0=7", "r0001/f:a@0=x", "r0001/g:a@0=1")
	r = read(`filter { value_regex_filter: "none" }`)
	if len(r.scanned) == 0 {
		t.Error("no last_scanned_row_key over 1200 rows that match nothing")
	}
	for _, req := range []string{`rows_limit: 7`, `rows { row_keys: "none" }`, `rows_limit: 1 filter { value_regex_filter: "9" }`} {
		r := read(req + ` request_stats_view: REQUEST_STATS_FULL`)
		got := r.stats.GetFullReadStatsView().GetReadIterationStats()
		if r.stats == nil || got.GetRowsReturnedCount() != int64(r.rows) || got.GetCellsReturnedCount() != int64(len(r.cells)) ||
			got.GetRowsSeenCount() < got.GetRowsReturnedCount() || got.GetCellsSeenCount() < got.GetCellsReturnedCount() ||
			r.stats.GetFullReadStatsView().GetRequestLatencyStats() == nil {
			t.Errorf("%s: statistics %v for %d rows of %d cells", req, r.stats, r.rows, len(r.cells))
		}
	}
	plain, err := readRows(t.Context(), w.data, &btpb.ReadRowsRequest{Filter: textOf(t, &btpb.RowFilter{}, `value_regex_filter: "none"`)})
	check(t, err)
	if len(plain.scanned) != 0 {
		t.Error("last_scanned_row_key without the feature")
	}
	diff(t, "samples of a range end with its end", samplesOf(t, w, &btpb.SampleRowKeysRequest{RowRange: &btpb.RowRange{
		StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte("d")}, EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte("r")},
	}}), "m", "r")
}
