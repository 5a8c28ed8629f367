package emulator_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/attestry/attestry/emulator"
)

func maskOf(paths ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: paths} }

// creating asks for a table, as text.
func creating(text string) func(*testing.T, *world) error {
	return func(t *testing.T, w *world) error {
		req := textOf(t, &adminpb.CreateTableRequest{}, text)
		req.Parent = parent
		_, err := w.tables.CreateTable(t.Context(), req)
		return err
	}
}

func modifying(m ...*adminpb.ModifyColumnFamiliesRequest_Modification) func(*testing.T, *world) error {
	return func(t *testing.T, w *world) error { return w.families(t.Context(), m...) }
}

func updating(text string, paths ...string) func(*testing.T, *world) error {
	return func(t *testing.T, w *world) error {
		in := textOf(t, &adminpb.Table{}, text)
		in.Name = table
		_, err := w.tables.UpdateTable(t.Context(), &adminpb.UpdateTableRequest{Table: in, UpdateMask: maskOf(paths...)})
		return err
	}
}

// inOrder does one after the other until one is refused.
func inOrder(all ...func(*testing.T, *world) error) func(*testing.T, *world) error {
	return func(t *testing.T, w *world) error {
		for _, do := range all {
			if err := do(t, w); err != nil {
				return err
			}
		}
		return nil
	}
}

func deletingTable(t *testing.T, w *world) error {
	_, err := w.tables.DeleteTable(t.Context(), &adminpb.DeleteTableRequest{Name: table})
	return err
}

func TestAdminProbes(t *testing.T) {
	longRule := `table_id: "t2" table { column_families { key: "f" value { gc_rule { union { ` + strings.Repeat("rules { max_num_versions: 1 } ", 126) + `} } } } }`
	protect := updating(`deletion_protection: true`, "deletion_protection")
	runProbes(t, []probe{
		{name: "create: a table that exists", do: creating(`table_id: "t"`), code: codes.AlreadyExists},
		{name: "create: an id of 51", do: creating(`table_id: "` + strings.Repeat("x", 51) + `"`), code: codes.InvalidArgument},
		{name: "create: an id of 50", do: creating(`table_id: "` + strings.Repeat("x", 50) + `"`)},
		{name: "create: an id with a slash", do: creating(`table_id: "a/b"`), code: codes.InvalidArgument},
		{name: "create: an id that begins with a dash", do: creating(`table_id: "-a"`), code: codes.InvalidArgument},
		{name: "create: no id", do: creating(``), code: codes.InvalidArgument},
		{name: "create: a family with a colon", do: creating(`table_id: "t2" table { column_families { key: "a:b" } }`), code: codes.InvalidArgument},
		{name: "create: a family without a name", do: creating(`table_id: "t2" table { column_families { key: "" } }`), code: codes.InvalidArgument},
		{name: "create: a family of 65", do: creating(`table_id: "t2" table { column_families { key: "` + strings.Repeat("f", 65) + `" } }`), code: codes.InvalidArgument},
		{name: "create: a rule of more than 500 bytes", do: creating(longRule), code: codes.InvalidArgument},
		{name: "create: a rule of no version", do: creating(`table_id: "t2" table { column_families { key: "f" value { gc_rule { max_num_versions: -1 } } } }`), code: codes.InvalidArgument},
		{name: "create: a rule of less than a millisecond", do: creating(`table_id: "t2" table { column_families { key: "f" value { gc_rule { max_age { nanos: 1 } } } } }`), code: codes.InvalidArgument},
		{name: "create: a rule of more years than a duration holds", do: creating(`table_id: "t2" table { column_families { key: "f" value { gc_rule { max_age { seconds: 400000000000 } } } } }`), code: codes.InvalidArgument},
		{name: "create: an age whose parts disagree in sign", do: creating(`table_id: "t2" table { column_families { key: "f" value { gc_rule { max_age { seconds: 5 nanos: -1 } } } } }`), code: codes.InvalidArgument},
		{name: "create: change stream of an hour", do: creating(`table_id: "t2" table { change_stream_config { retention_period { seconds: 3600 } } }`), code: codes.InvalidArgument},
		{name: "create: automated backups of a day", do: creating(`table_id: "t2" table { automated_backup_policy { retention_period { seconds: 86400 } } }`), code: codes.InvalidArgument},

		{name: "families: an unknown one is dropped", do: modifying(dropFamily("none")), code: codes.NotFound},
		{name: "families: an unknown one is updated", do: modifying(&adminpb.ModifyColumnFamiliesRequest_Modification{Id: "none", Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Update{Update: &adminpb.ColumnFamily{}}}), code: codes.NotFound},
		{name: "families: one that exists is created", do: modifying(createFamily("f", &adminpb.ColumnFamily{})), code: codes.AlreadyExists},
		{name: "families: all or nothing", do: modifying(dropFamily("f"), createFamily("new", &adminpb.ColumnFamily{}), dropFamily("none")), code: codes.NotFound},
		{name: "families: protected", do: inOrder(protect, modifying(dropFamily("f"))), code: codes.FailedPrecondition},
		{name: "families: nothing to change", do: modifying(), code: codes.InvalidArgument},
		{name: "families: a dropped one is unknown to writes", do: inOrder(modifying(dropFamily("f")), mutating("r", set("f", "a", 0, "x"))), code: codes.NotFound, text: noFamily, after: []string{}},
		{name: "families: dropped and made anew at once is empty", do: modifying(dropFamily("f"), createFamily("f", &adminpb.ColumnFamily{})), after: []string{}},
		{name: "families: made anew is empty", do: inOrder(modifying(dropFamily("f")), modifying(createFamily("f", &adminpb.ColumnFamily{})), mutating("r", set("f", "b", 0, "x"))), after: []string{"r/f:b@0=x"}},

		{name: "drop: an empty prefix", do: func(t *testing.T, w *world) error { return w.dropPrefix(t.Context(), "") }, code: codes.InvalidArgument},
		{name: "drop: no target", do: func(t *testing.T, w *world) error {
			_, err := w.tables.DropRowRange(t.Context(), &adminpb.DropRowRangeRequest{Name: table})
			return err
		}, code: codes.InvalidArgument},
		{name: "drop: an unknown table", do: func(t *testing.T, w *world) error {
			_, err := w.tables.DropRowRange(t.Context(), &adminpb.DropRowRangeRequest{Name: table + "x", Target: &adminpb.DropRowRangeRequest_DeleteAllDataFromTable{DeleteAllDataFromTable: true}})
			return err
		}, code: codes.NotFound, text: table + "x"},
		{name: "drop: a prefix of 0xff", do: inOrder(mutating("\xff\xff", set("f", "a", 0, "x")), mutating("\xff\xffz", set("f", "a", 0, "x")), func(t *testing.T, w *world) error { return w.dropPrefix(t.Context(), "\xff\xff") })},

		{name: "update: protected tables stay", do: inOrder(protect, updating(``, "change_stream_config"), deletingTable), code: codes.FailedPrecondition},
		{name: "update: an unknown field", do: updating(``, "nonsense"), code: codes.InvalidArgument},
		{name: "update: no mask", do: updating(`deletion_protection: true`), code: codes.InvalidArgument},
		{name: "update: an unknown table", do: func(t *testing.T, w *world) error {
			_, err := w.tables.UpdateTable(t.Context(), &adminpb.UpdateTableRequest{Table: &adminpb.Table{Name: table + "x"}, UpdateMask: maskOf("deletion_protection")})
			return err
		}, code: codes.NotFound},
		{name: "update: the operation can be asked for", do: func(t *testing.T, w *world) error {
			op, err := w.tables.UpdateTable(t.Context(), &adminpb.UpdateTableRequest{Table: &adminpb.Table{Name: table, DeletionProtection: true}, UpdateMask: maskOf("deletion_protection")})
			if err != nil {
				return err
			}
			again, err := longrunningpb.NewOperationsClient(w.conn).GetOperation(t.Context(), &longrunningpb.GetOperationRequest{Name: op.GetName()})
			if err == nil && (!again.GetDone() || again.GetResponse() == nil || again.GetMetadata() == nil) {
				t.Errorf("the operation is %v", again)
			}
			return err
		}},
		{name: "get: an unknown table", do: func(t *testing.T, w *world) error {
			_, err := w.tables.GetTable(t.Context(), &adminpb.GetTableRequest{Name: table + "x"})
			return err
		}, code: codes.NotFound, text: table + "x"},
		{name: "consistency: a token of another table", do: func(t *testing.T, w *world) error {
			_, err := w.tables.CheckConsistency(t.Context(), &adminpb.CheckConsistencyRequest{Name: table, ConsistencyToken: "none"})
			return err
		}, code: codes.InvalidArgument},
	})
}

func TestListTablesInPages(t *testing.T) {
	w := newWorld(t)
	var want []string
	for i := range 7 {
		check(t, creating(fmt.Sprintf(`table_id: "p%d"`, i))(t, w))
		want = append(want, fmt.Sprintf("%s/tables/p%d", parent, i))
	}
	want = append(want, table)
	var got []string
	req := &adminpb.ListTablesRequest{Parent: parent, PageSize: 3}
	for {
		res, err := w.tables.ListTables(t.Context(), req)
		check(t, err)
		if len(res.GetTables()) > 3 {
			t.Errorf("a page of %d", len(res.GetTables()))
		}
		for _, table := range res.GetTables() {
			got = append(got, table.GetName())
		}
		if req.PageToken = res.GetNextPageToken(); req.PageToken == "" {
			break
		}
	}
	diff(t, "tables", got, want...)
}

// TestCollectedFromTheStart: rules given to CreateTable collect, intersections
// collect what all their rules do, and a column that was collected is written
// once.
func TestCollectedFromTheStart(t *testing.T) {
	w := start(t, vfs.NewMem(), "data", emulator.Options{})
	defer w.stop(t)
	check(t, creating(`table_id: "t" table {
		column_families { key: "age" value { gc_rule { max_age { seconds: 3600 } } } }
		column_families { key: "both" value { gc_rule { intersection { rules { max_num_versions: 1 } rules { max_age { seconds: 3600 } } } } } }
		column_families { key: "either" value { gc_rule { union { rules { max_num_versions: 2 } rules { max_age { seconds: 3600 } } } } } }
		column_families { key: "n" value { gc_rule { max_num_versions: 1 } } }
	}`)(t, w))
	now := time.Now().UnixMilli() * 1000
	old := now - 7200*1e6
	for i := range int64(3) {
		for _, family := range []string{"age", "both", "either", "n"} {
			w.mutate(t, "r", set(family, "q", now+i*1000, "new"), set(family, "q", old/1000*1000+i*1000, "old"))
		}
	}
	cell := func(family string, i int64) string { return fmt.Sprintf("r/%s:q@%d=new", family, now+i*1000) }
	want := []string{
		cell("age", 2), cell("age", 1), cell("age", 0), cell("both", 2), cell("both", 1), cell("both", 0),
		cell("either", 2), cell("either", 1), cell("n", 2),
	}
	eventually(t, func() (string, bool) {
		got, err := readRows(t.Context(), w.data, &btpb.ReadRowsRequest{})
		check(t, err)
		d := cmp.Diff(want, got.cells)
		return d, d == ""
	})
	w.mutate(t, "r", set("n", "q", now+9000, "again"))
	got, err := readRows(t.Context(), w.data, textOf(t, &btpb.ReadRowsRequest{}, `filter { chain { filters { family_name_regex_filter: "n" } filters { value_regex_filter: "again" } } }`))
	check(t, err)
	diff(t, "written again, once", got.cells, fmt.Sprintf("r/n:q@%d=again", now+9000))
}

// eventually waits until ok; text says what is not yet as it must be.
func eventually(t *testing.T, ok func() (text string, done bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text, done := ok()
		if done {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(text)
		case <-tick.C:
		}
	}
}

// TestNothingKills sends what is known to end the processes of test servers, and
// asks whether the server is still there.
func TestNothingKills(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, do := range map[string]func() error{
		"GenerateInitialChangeStreamPartitions": func() error {
			stream, err := w.data.GenerateInitialChangeStreamPartitions(ctx, &btpb.GenerateInitialChangeStreamPartitionsRequest{TableName: table})
			return lastError(stream, err)
		},
		"ReadChangeStream": func() error {
			stream, err := w.data.ReadChangeStream(ctx, &btpb.ReadChangeStreamRequest{TableName: table})
			return lastError(stream, err)
		},
		"ExecuteQuery": func() error {
			stream, err := w.data.ExecuteQuery(ctx, &btpb.ExecuteQueryRequest{})
			return lastError(stream, err)
		},
		"CreateBackup":         call(ctx, w.tables.CreateBackup, &adminpb.CreateBackupRequest{Parent: parent + "/clusters/local", BackupId: "b"}),
		"UndeleteTable":        call(ctx, w.tables.UndeleteTable, &adminpb.UndeleteTableRequest{Name: table + "x"}),
		"SnapshotTable":        call(ctx, w.tables.SnapshotTable, &adminpb.SnapshotTableRequest{Name: table}),
		"CreateSchemaBundle":   call(ctx, w.tables.CreateSchemaBundle, &adminpb.CreateSchemaBundleRequest{Parent: table}),
		"CreateAuthorizedView": call(ctx, w.tables.CreateAuthorizedView, &adminpb.CreateAuthorizedViewRequest{Parent: table}),
		"ListHotTablets":       call(ctx, w.admin.ListHotTablets, &adminpb.ListHotTabletsRequest{Parent: parent + "/clusters/local"}),
		"CreateLogicalView":    call(ctx, w.admin.CreateLogicalView, &adminpb.CreateLogicalViewRequest{Parent: parent}),
		"PartialUpdateCluster": call(ctx, w.admin.PartialUpdateCluster, &adminpb.PartialUpdateClusterRequest{}),
		"AddToCell of nothing": call(ctx, w.data.MutateRow, &btpb.MutateRowRequest{TableName: table, RowKey: []byte("r"), Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_AddToCell_{}}}}),
		"MergeToCell of a byte": call(ctx, w.data.MutateRow, &btpb.MutateRowRequest{TableName: table, RowKey: []byte("r"), Mutations: []*btpb.Mutation{
			mergeToCell("sum", "q", 0, "1"),
		}}),
	} {
		err := do()
		if code := status.Code(err); serverFault(code) || code == codes.OK {
			t.Errorf("%s: %v; want a refusal", name, err)
		} else if status.Convert(err).Message() == "" {
			t.Errorf("%s: %s without a text", name, code)
		}
		res, err := healthpb.NewHealthClient(w.conn).Check(ctx, &healthpb.HealthCheckRequest{})
		if err != nil || res.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Fatalf("after %s the server is not well: %v, %v", name, res, err)
		}
	}
}

// call makes a call without its answer.
func call[Q, R any, O any](ctx context.Context, f func(context.Context, Q, ...O) (R, error), req Q) func() error {
	return func() error {
		_, err := f(ctx, req)
		return err
	}
}

// lastError reads a stream to its end.
func lastError[R any](stream interface{ Recv() (R, error) }, err error) error {
	for err == nil {
		_, err = stream.Recv()
	}
	if err == io.EOF { //nolint:errorlint // a stream's own end is never wrapped
		return nil
	}
	return err
}
