package emulator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attestry/attestry/emulator"
)

// fuzzWorld is a server in memory with a table of every kind of family and a few
// rows.
func fuzzWorld(f *testing.F) *world {
	f.Helper()
	w, err := tryStart(vfs.NewMem(), "data", emulator.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := errors.Join(w.conn.Close(), w.Close()); err != nil {
			f.Error(err)
		}
	})
	if err := makeFuzzTable(context.Background(), w); err != nil {
		f.Fatal(err)
	}
	return w
}

func makeFuzzTable(ctx context.Context, w *world) error {
	_, err := w.tables.CreateTable(ctx, &adminpb.CreateTableRequest{Parent: parent, TableId: "t", Table: &adminpb.Table{
		ColumnFamilies: map[string]*adminpb.ColumnFamily{
			"f": {}, "g": {GcRule: &adminpb.GcRule{Rule: &adminpb.GcRule_MaxNumVersions{MaxNumVersions: 2}}},
			"sum": sumFamily(), "min": minFamily(), "max": maxFamily(),
		},
	}})
	for _, row := range []string{"a", "a\x00", "b", "\xff"} {
		err = errors.Join(err, w.tryMutate(ctx, row, set("f", "q", 1000, "x"), set("f", "q", 2000, "y"), set("g", "", 0, bigEndian(7)), addToCell("sum", "q", 0, 1)))
	}
	return err
}

// fuzzRequests decodes what the fuzzer makes as a request and sends it. Whatever is
// in it, the server answers, and is never itself at fault.
func fuzzRequests[M proto.Message](f *testing.F, request func() M, send func(context.Context, *world, M) error, seeds ...string) {
	for _, seed := range seeds {
		raw, err := proto.Marshal(textOf(f, request(), seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	w := fuzzWorld(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		req := request()
		if proto.Unmarshal(raw, req) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := send(ctx, w, req)
		if code := status.Code(err); serverFault(code) || code == codes.DeadlineExceeded {
			t.Errorf("%v\nto %v", err, req)
		}
		if err != nil && status.Convert(err).Message() == "" {
			t.Errorf("%s without a text to %v", status.Code(err), req)
		}
	})
}

func FuzzReadRows(f *testing.F) {
	fuzzRequests(f, func() *btpb.ReadRowsRequest { return &btpb.ReadRowsRequest{} }, func(ctx context.Context, w *world, req *btpb.ReadRowsRequest) error {
		req.TableName = table
		_, err := readRows(withReverse(ctx), w.data, req)
		return err
	},
		``,
		`rows { row_keys: "a" row_keys: "a" row_ranges { start_key_open: "a" end_key_closed: "b" } } rows_limit: 1`,
		`rows { row_ranges { start_key_closed: "" end_key_open: "" } } reversed: true`,
		`rows { row_ranges { start_key_closed: "b" end_key_open: "a" } }`,
		`rows { row_keys: "" } rows_limit: -1`,
		`filter { chain { filters { family_name_regex_filter: "f|g" } filters { column_range_filter { family_name: "f" start_qualifier_open: "" end_qualifier_closed: "q" } } filters { cells_per_column_limit_filter: 1 } } }`,
		`filter { interleave { filters { value_regex_filter: "\\C*" } filters { chain { filters { value_range_filter { start_value_closed: "x" } } filters { sink: true } } } } } request_stats_view: REQUEST_STATS_FULL`,
		`filter { condition { predicate_filter { timestamp_range_filter { start_timestamp_micros: 1000 end_timestamp_micros: 2000 } } true_filter { apply_label_transformer: "l" } false_filter { cells_per_row_offset_filter: 1 } } }`,
		`filter { row_key_regex_filter: "(a|\\x00)*?$" }`,
		`filter { value_bitmask_filter { mask: "\377" } } reversed: true`,
		`filter { row_sample_filter: 0.5 }`,
		`authorized_view_name: "v" materialized_view_name: "v"`,
	)
}

func FuzzMutateRows(f *testing.F) {
	fuzzRequests(f, func() *btpb.MutateRowsRequest { return &btpb.MutateRowsRequest{} }, func(ctx context.Context, w *world, req *btpb.MutateRowsRequest) error {
		got, err := bulk(ctx, w.data, req.GetEntries()...)
		for _, e := range got {
			if err == nil && serverFault(codes.Code(e.GetStatus().GetCode())) {
				err = entryError(e)
			}
		}
		return err
	},
		``,
		`entries { row_key: "a" mutations { set_cell { family_name: "f" column_qualifier: "q" timestamp_micros: -1 value: "x" } } mutations { delete_from_column { family_name: "f" column_qualifier: "q" time_range { start_timestamp_micros: 1000 end_timestamp_micros: 9223372036854775807 } } } }`,
		`entries { row_key: "\377\376" mutations { set_cell { family_name: "none" } } } entries { row_key: "" } entries {}`,
		`entries { row_key: "b" mutations { delete_from_family { family_name: "g" } } mutations { delete_from_row {} } mutations {} }`,
		`entries { row_key: "b" mutations { add_to_cell { family_name: "sum" column_qualifier { raw_value: "q" } timestamp { raw_timestamp_micros: 0 } input { int_value: 9223372036854775807 } } } }`,
		`entries { row_key: "b" mutations { merge_to_cell { family_name: "max" column_qualifier { raw_value: "q" } timestamp { raw_timestamp_micros: 9223372036854775000 } input { raw_value: "12345678" } } } }`,
		`entries { row_key: "b" mutations { set_cell { family_name: "f" timestamp_micros: 9223372036854775807 } } }`,
	)
}

func FuzzCheckAndMutateRow(f *testing.F) {
	fuzzRequests(f, func() *btpb.CheckAndMutateRowRequest { return &btpb.CheckAndMutateRowRequest{} }, func(ctx context.Context, w *world, req *btpb.CheckAndMutateRowRequest) error {
		req.TableName = table
		_, err := w.data.CheckAndMutateRow(ctx, req)
		return err
	},
		`row_key: "a" true_mutations { set_cell { family_name: "f" } } false_mutations { delete_from_row {} }`,
		`row_key: "none" predicate_filter { block_all_filter: true } false_mutations { set_cell { family_name: "g" column_qualifier: "\000" value: "\000" } }`,
		`row_key: "a" predicate_filter { chain { filters { sink: true } filters { cells_per_row_limit_filter: 1 } } } true_mutations { delete_from_family { family_name: "f" } }`,
		`row_key: "\377" app_profile_id: "none" true_mutations {}`,
		`predicate_filter { value_regex_filter: "(" }`,
	)
}

func FuzzReadModifyWriteRow(f *testing.F) {
	fuzzRequests(f, func() *btpb.ReadModifyWriteRowRequest { return &btpb.ReadModifyWriteRowRequest{} }, func(ctx context.Context, w *world, req *btpb.ReadModifyWriteRowRequest) error {
		req.TableName = table
		_, err := w.data.ReadModifyWriteRow(ctx, req)
		return err
	},
		`row_key: "n" rules { family_name: "f" column_qualifier: "n" increment_amount: -9223372036854775808 } rules { family_name: "f" column_qualifier: "n" increment_amount: -1 }`,
		`row_key: "a" rules { family_name: "f" column_qualifier: "q" append_value: "\000" } rules { family_name: "g" increment_amount: 1 }`,
		`row_key: "a" rules { family_name: "sum" increment_amount: 1 }`,
		`row_key: "a" rules {}`,
		`rules { family_name: "none" append_value: "" }`,
	)
}

func FuzzCreateTable(f *testing.F) {
	fuzzRequests(f, func() *adminpb.CreateTableRequest { return &adminpb.CreateTableRequest{} }, func(ctx context.Context, w *world, req *adminpb.CreateTableRequest) error {
		if req.GetParent() == "" {
			req.Parent = parent
		}
		made, err := w.tables.CreateTable(ctx, req)
		if err != nil {
			return err
		}
		got, err := w.tables.GetTable(ctx, &adminpb.GetTableRequest{Name: made.GetName(), View: adminpb.Table_FULL})
		if err != nil || got.GetDeletionProtection() {
			return err
		}
		_, err = w.tables.DeleteTable(ctx, &adminpb.DeleteTableRequest{Name: made.GetName()})
		return err
	},
		`table_id: "x"`,
		`table_id: "x" table { column_families { key: "f" value { gc_rule { intersection { rules { max_age { seconds: 315576000000 } } rules { union { rules { max_num_versions: 1 } rules { max_num_versions: 2147483647 } } } } } } } } initial_splits { key: "b" } initial_splits { key: "a" } initial_splits { key: "a" }`,
		`table_id: "x" table { column_families { key: "f" value { gc_rule { max_age { seconds: -5 nanos: 5 } } } } }`,
		`table_id: "x" table { column_families { key: "s" value { value_type { aggregate_type { input_type { int64_type {} } sum {} } } } } column_families { key: "h" value { value_type { aggregate_type { hllpp_unique_count {} } } } } }`,
		`table_id: "x" table { change_stream_config { retention_period { seconds: 86400 nanos: 999999999 } } automated_backup_policy { retention_period { seconds: 259200 } frequency { seconds: 86400 } } row_key_schema { fields { field_name: "k" type { string_type { encoding { utf8_bytes {} } } } } encoding { delimited_bytes { delimiter: "#" } } } }`,
		`table_id: "x" table { name: "other" granularity: MILLIS restore_info { backup_info { start_time { seconds: 253402300800 } } } }`,
		`parent: "projects/p" table_id: "x"`,
	)
}

func FuzzModifyColumnFamilies(f *testing.F) {
	fuzzRequests(f, func() *adminpb.ModifyColumnFamiliesRequest { return &adminpb.ModifyColumnFamiliesRequest{} }, func(ctx context.Context, w *world, req *adminpb.ModifyColumnFamiliesRequest) error {
		req.Name = parent + "/tables/m"
		_, err := w.tables.CreateTable(ctx, &adminpb.CreateTableRequest{Parent: parent, TableId: "m", Table: &adminpb.Table{
			ColumnFamilies: map[string]*adminpb.ColumnFamily{"f": {}, "sum": sumFamily()},
		}})
		if err != nil {
			return err
		}
		_, changed := w.tables.ModifyColumnFamilies(ctx, req)
		if _, err = w.tables.DeleteTable(ctx, &adminpb.DeleteTableRequest{Name: req.GetName()}); err != nil {
			return err
		}
		return changed
	},
		`modifications { id: "f" drop: true } modifications { id: "f" create {} }`,
		`modifications { id: "f" update { gc_rule { max_age { seconds: 1 nanos: -1 } } } update_mask { paths: "gc_rule" } }`,
		`modifications { id: "sum" update { value_type { aggregate_type { max {} } } } update_mask { paths: "value_type" } }`,
		`modifications { id: "g" create { gc_rule { union { rules {} } } } } modifications { id: "none" drop: false }`,
		`modifications { id: "" create {} }`,
		`modifications { id: "f" }`,
	)
}
