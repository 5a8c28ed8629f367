package emulator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	cbt "cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/emulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	parent = "projects/p/instances/i"
	table  = parent + "/tables/t"
)

// world is a server and its connections.
type world struct {
	*emulator.Server
	conn   *grpc.ClientConn
	data   btpb.BigtableClient
	tables adminpb.BigtableTableAdminClient
	admin  adminpb.BigtableInstanceAdminClient
}

func start(t *testing.T, fs vfs.FS, dir string, o emulator.Options) *world {
	t.Helper()
	o.FS = fs
	s, err := emulator.Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	return &world{s, conn, btpb.NewBigtableClient(conn), adminpb.NewBigtableTableAdminClient(conn), adminpb.NewBigtableInstanceAdminClient(conn)}
}

func (w *world) stop(t *testing.T) {
	t.Helper()
	if err := errors.Join(w.conn.Close(), w.Close()); err != nil {
		t.Error(err)
	}
}

// newWorld is a server in memory with the table t of the families f, g (at most
// two versions) and sum.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := start(t, vfs.NewMem(), "data", emulator.Options{})
	t.Cleanup(func() { w.stop(t) })
	w.createTable(t)
	return w
}

func (w *world) createTable(t *testing.T) {
	t.Helper()
	_, err := w.tables.CreateTable(t.Context(), &adminpb.CreateTableRequest{
		Parent: parent, TableId: "t",
		Table: &adminpb.Table{ColumnFamilies: map[string]*adminpb.ColumnFamily{
			"f": {},
			"g": {GcRule: &adminpb.GcRule{Rule: &adminpb.GcRule_MaxNumVersions{MaxNumVersions: 2}}},
			"sum": {ValueType: &adminpb.Type{Kind: &adminpb.Type_AggregateType{AggregateType: &adminpb.Type_Aggregate{
				Aggregator: &adminpb.Type_Aggregate_Sum_{Sum: &adminpb.Type_Aggregate_Sum{}},
			}}}},
		}},
		InitialSplits: []*adminpb.CreateTableRequest_Split{{Key: []byte("m")}, {Key: []byte("c")}},
	})
	check(t, err)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, what string, err error, want codes.Code, text string) {
	t.Helper()
	if status.Code(err) != want || !strings.Contains(fmt.Sprint(err), text) {
		t.Errorf("%s: got %v, want %s with %q", what, err, want, text)
	}
}

func set(family, qualifier string, micros int64, value string) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
		FamilyName: family, ColumnQualifier: []byte(qualifier), TimestampMicros: micros, Value: []byte(value),
	}}}
}

func deleteRow() *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}
}

func (w *world) mutate(t *testing.T, row string, m ...*btpb.Mutation) {
	t.Helper()
	_, err := w.data.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: table, RowKey: []byte(row), Mutations: m})
	check(t, err)
}

// cells reads a table as text, a line a cell; long values by their length.
func (w *world) cells(t *testing.T, req *btpb.ReadRowsRequest) []string {
	t.Helper()
	req.TableName = table
	stream, err := w.data.ReadRows(t.Context(), req)
	check(t, err)
	var out []string
	var row, family, qualifier string
	var value []byte
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out
		}
		check(t, err)
		for _, c := range res.GetChunks() {
			if c.GetRowKey() != nil {
				row = string(c.GetRowKey())
			}
			if c.GetFamilyName() != nil {
				family = c.GetFamilyName().GetValue()
			}
			if c.GetQualifier() != nil {
				qualifier = string(c.GetQualifier().GetValue())
			}
			value = append(value, c.GetValue()...)
			if c.GetValueSize() > 0 {
				continue
			}
			text := string(value)
			if len(value) > 100 {
				text = fmt.Sprintf("%d bytes", len(value))
			}
			out = append(out, fmt.Sprintf("%s/%s:%s@%d=%s", row, family, qualifier, c.GetTimestampMicros(), text))
			value = nil
		}
	}
}

func diff(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestRowsAndOrder(t *testing.T) {
	w := newWorld(t)
	for _, row := range []string{"b", "a\x00b", "a", "a\xff", "\x00"} {
		w.mutate(t, row, set("g", "q", 1000, "1"), set("f", "b", 2000, "2"), set("f", "b", 3000, "3"), set("f", "", 0, "0"))
	}
	var want []string
	for _, row := range []string{"\x00", "a", "a\x00b", "a\xff", "b"} {
		want = append(want, row+"/f:@0=0", row+"/f:b@3000=3", row+"/f:b@2000=2", row+"/g:q@1000=1")
	}
	diff(t, "all", w.cells(t, &btpb.ReadRowsRequest{}), want...)
	diff(t, "limit", w.cells(t, &btpb.ReadRowsRequest{RowsLimit: 1}), want[:4]...)
	keys := func(keys ...string) *btpb.RowSet {
		s := &btpb.RowSet{}
		for _, k := range keys {
			s.RowKeys = append(s.RowKeys, []byte(k))
		}
		return s
	}
	diff(t, "keys, sorted and once", w.cells(t, &btpb.ReadRowsRequest{Rows: keys("b", "a", "none", "a")}), append(append([]string{}, want[4:8]...), want[16:]...)...)
	open := &btpb.RowSet{RowRanges: []*btpb.RowRange{{StartKey: &btpb.RowRange_StartKeyOpen{StartKeyOpen: []byte("a")}, EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte("b")}}}}
	diff(t, "open range", w.cells(t, &btpb.ReadRowsRequest{Rows: open}), want[8:16]...)
}

func TestAtomicRows(t *testing.T) {
	w := newWorld(t)
	_, err := w.data.MutateRow(t.Context(), &btpb.MutateRowRequest{
		TableName: table, RowKey: []byte("r"), Mutations: []*btpb.Mutation{set("f", "a", 0, "x"), set("none", "a", 0, "x")},
	})
	wantCode(t, "an unknown family", err, codes.NotFound, "Requested column family not found")
	_, err = w.data.CheckAndMutateRow(t.Context(), &btpb.CheckAndMutateRowRequest{
		TableName: table, RowKey: []byte("r"), FalseMutations: []*btpb.Mutation{set("f", "a", 0, "x"), set("f", "a", 1, "x")},
	})
	wantCode(t, "a bad time in the second", err, codes.InvalidArgument, "granularity")
	stream, err := w.data.MutateRows(t.Context(), &btpb.MutateRowsRequest{TableName: table, Entries: []*btpb.MutateRowsRequest_Entry{
		{RowKey: []byte("good"), Mutations: []*btpb.Mutation{set("f", "a", 0, "x")}},
		{RowKey: []byte("bad"), Mutations: []*btpb.Mutation{set("f", "a", 0, "x"), set("none", "a", 0, "x")}},
		{RowKey: []byte(""), Mutations: []*btpb.Mutation{set("f", "a", 0, "x")}},
	}})
	check(t, err)
	res, err := stream.Recv()
	check(t, err)
	var got []codes.Code
	for _, e := range res.GetEntries() {
		got = append(got, codes.Code(e.GetStatus().GetCode()))
	}
	if d := cmp.Diff([]codes.Code{codes.OK, codes.NotFound, codes.InvalidArgument}, got); d != "" {
		t.Error(d)
	}
	diff(t, "only the good row", w.cells(t, &btpb.ReadRowsRequest{}), "good/f:a@0=x")
}

func TestDeletes(t *testing.T) {
	w := newWorld(t)
	for i := range int64(100) {
		w.mutate(t, "r", set("f", "a", i*1000, "x"), set("f", "b", i*1000, "y"))
	}
	column := func(q string, from, to int64) *btpb.Mutation {
		return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{
			FamilyName: "f", ColumnQualifier: []byte(q), TimeRange: &btpb.TimestampRange{StartTimestampMicros: from, EndTimestampMicros: to},
		}}}
	}
	w.mutate(t, "r", column("a", 2000, 98000), column("b", 3000, 0), set("f", "b", 50000, "after"))
	diff(t, "ranges of columns", w.cells(t, &btpb.ReadRowsRequest{}),
		"r/f:a@99000=x", "r/f:a@98000=x", "r/f:a@1000=x", "r/f:a@0=x", "r/f:b@50000=after", "r/f:b@2000=y", "r/f:b@1000=y", "r/f:b@0=y")
	w.mutate(t, "r", set("f", "z", 0, "before"), deleteRow(), set("f", "a", 0, "new"))
	diff(t, "later masks earlier", w.cells(t, &btpb.ReadRowsRequest{}), "r/f:a@0=new")
}

// TestDropAndAgain: the same rows with timestamp 0 after everything was dropped.
func TestDropAndAgain(t *testing.T) {
	w := newWorld(t)
	for round := range 3 {
		var want []string
		for i := range 100 {
			row := fmt.Sprintf("r%03d", i)
			w.mutate(t, row, set("f", "a", 0, fmt.Sprint(round)))
			want = append(want, fmt.Sprintf("%s/f:a@0=%d", row, round))
		}
		diff(t, "written", w.cells(t, &btpb.ReadRowsRequest{}), want...)
		_, err := w.tables.DropRowRange(t.Context(), &adminpb.DropRowRangeRequest{
			Name: table, Target: &adminpb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte("r05")},
		})
		check(t, err)
		diff(t, "a prefix dropped", w.cells(t, &btpb.ReadRowsRequest{}), append(append([]string{}, want[:50]...), want[60:]...)...)
		_, err = w.tables.DropRowRange(t.Context(), &adminpb.DropRowRangeRequest{
			Name: table, Target: &adminpb.DropRowRangeRequest_DeleteAllDataFromTable{DeleteAllDataFromTable: true},
		})
		check(t, err)
		diff(t, "all dropped", w.cells(t, &btpb.ReadRowsRequest{}))
	}
}

func TestFamilyMadeAnewIsEmpty(t *testing.T) {
	w := newWorld(t)
	w.mutate(t, "r", set("f", "a", 0, "old"), set("g", "a", 0, "kept"))
	change := func(m ...*adminpb.ModifyColumnFamiliesRequest_Modification) error {
		_, err := w.tables.ModifyColumnFamilies(t.Context(), &adminpb.ModifyColumnFamiliesRequest{Name: table, Modifications: m})
		return err
	}
	drop := &adminpb.ModifyColumnFamiliesRequest_Modification{Id: "f", Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}}
	create := &adminpb.ModifyColumnFamiliesRequest_Modification{Id: "f", Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Create{Create: &adminpb.ColumnFamily{}}}
	wantCode(t, "drop twice, all or nothing", change(drop, drop), codes.NotFound, "f")
	diff(t, "nothing changed", w.cells(t, &btpb.ReadRowsRequest{}), "r/f:a@0=old", "r/g:a@0=kept")
	check(t, change(drop))
	diff(t, "dropped", w.cells(t, &btpb.ReadRowsRequest{}), "r/g:a@0=kept")
	check(t, change(create))
	diff(t, "made anew", w.cells(t, &btpb.ReadRowsRequest{}), "r/g:a@0=kept")
}

func TestTransactions(t *testing.T) {
	w := newWorld(t)
	claim := func(value string) bool {
		res, err := w.data.CheckAndMutateRow(t.Context(), &btpb.CheckAndMutateRowRequest{
			TableName: table, RowKey: []byte("r"), FalseMutations: []*btpb.Mutation{set("f", "owner", 0, value)},
		})
		if err != nil {
			t.Error(err)
		}
		return !res.GetPredicateMatched()
	}
	won := make(chan int, 64)
	for i := range 64 {
		go func() {
			if claim(fmt.Sprint(i)) {
				won <- i
			} else {
				won <- -1
			}
		}()
	}
	var winners []int
	for range 64 {
		if i := <-won; i >= 0 {
			winners = append(winners, i)
		}
	}
	if len(winners) != 1 {
		t.Fatalf("%d of 64 won the row", len(winners))
	}
	diff(t, "the winner's", w.cells(t, &btpb.ReadRowsRequest{}), fmt.Sprintf("r/f:owner@0=%d", winners[0]))

	rules := func(rules ...*btpb.ReadModifyWriteRule) (*btpb.ReadModifyWriteRowResponse, error) {
		return w.data.ReadModifyWriteRow(t.Context(), &btpb.ReadModifyWriteRowRequest{TableName: table, RowKey: []byte("n"), Rules: rules})
	}
	add := func(q string, n int64) *btpb.ReadModifyWriteRule {
		return &btpb.ReadModifyWriteRule{FamilyName: "f", ColumnQualifier: []byte(q), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: n}}
	}
	text := &btpb.ReadModifyWriteRule{FamilyName: "f", ColumnQualifier: []byte("t"), Rule: &btpb.ReadModifyWriteRule_AppendValue{AppendValue: []byte("ab")}}
	_, err := rules(add("c", 5), text)
	check(t, err)
	res, err := rules(add("c", -7), text)
	check(t, err)
	columns := res.GetRow().GetFamilies()[0].GetColumns()
	if got := columns[0].GetCells()[0].GetValue(); !bytes.Equal(got, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}) {
		t.Errorf("5 - 7 is %x", got)
	}
	if got := columns[1].GetCells()[0].GetValue(); string(got) != "abab" {
		t.Errorf("appended: %q", got)
	}
	_, err = rules(text, add("t", 1))
	wantCode(t, "incrementing text", err, codes.FailedPrecondition, "64-bit")
	_, err = rules()
	wantCode(t, "no rules", err, codes.InvalidArgument, "rules")
}

func TestAggregates(t *testing.T) {
	w := newWorld(t)
	add := func(n int64) *btpb.Mutation {
		return &btpb.Mutation{Mutation: &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{
			FamilyName: "sum", ColumnQualifier: &btpb.Value{Kind: &btpb.Value_RawValue{RawValue: []byte("q")}},
			Timestamp: &btpb.Value{Kind: &btpb.Value_RawTimestampMicros{RawTimestampMicros: 1000}},
			Input:     &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: n}},
		}}}
	}
	w.mutate(t, "r", add(5), add(9))
	w.mutate(t, "r", add(-3))
	diff(t, "sum", w.cells(t, &btpb.ReadRowsRequest{}), "r/sum:q@1000=\x00\x00\x00\x00\x00\x00\x00\x0b")
	_, err := w.data.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: table, RowKey: []byte("r"), Mutations: []*btpb.Mutation{set("sum", "q", 0, "x")}})
	wantCode(t, "SetCell on an aggregate", err, codes.InvalidArgument, "aggregate")
}

func TestSplitsAreSamples(t *testing.T) {
	w := newWorld(t)
	stream, err := w.data.SampleRowKeys(t.Context(), &btpb.SampleRowKeysRequest{TableName: table})
	check(t, err)
	var got []string
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		check(t, err)
		got = append(got, string(res.GetRowKey()))
	}
	diff(t, "splits and the end", got, "c", "m", "")
}

// TestLargeRows: a cell and a row beyond what one message may hold, for a client
// that takes a row in several responses and for Google's for Go.
func TestLargeRows(t *testing.T) {
	w := newWorld(t)
	w.mutate(t, "cell", set("f", "q", 0, strings.Repeat("x", 5<<20)))
	for i := range 10 {
		w.mutate(t, "row", set("f", fmt.Sprint(i), 0, strings.Repeat("x", 1<<20)))
	}
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("row/f:%d@0=%d bytes", i, 1<<20))
	}
	diff(t, "both", w.cells(t, &btpb.ReadRowsRequest{}), append([]string{fmt.Sprintf("cell/f:q@0=%d bytes", 5<<20)}, want...)...)
	client, err := cbt.NewClientWithConfig(t.Context(), "p", "i", cbt.ClientConfig{MetricsProvider: cbt.NoopMetricsProvider{}}, option.WithGRPCConn(w.conn))
	check(t, err)
	for row, cells := range map[string]int{"cell": 1, "row": 10} {
		r, err := client.Open("t").ReadRow(t.Context(), row)
		check(t, err)
		if len(r["f"]) != cells {
			t.Errorf("row %s has %d cells, want %d", row, len(r["f"]), cells)
		}
	}
}

func TestOneProcess(t *testing.T) {
	dir := t.TempDir()
	if _, err := emulator.Open(dir, emulator.Options{}); !errors.Is(err, emulator.ErrNoStore) {
		t.Errorf("open before create: got %v, want %v", err, emulator.ErrNoStore)
	}
	w := start(t, nil, dir, emulator.Options{})
	if _, err := emulator.Open(dir, emulator.Options{}); !errors.Is(err, emulator.ErrLocked) {
		t.Errorf("a second: got %v, want %v", err, emulator.ErrLocked)
	}
	w.stop(t)
	s, err := emulator.Open(dir, emulator.Options{})
	check(t, err)
	check(t, s.Close())
}

// TestCrash loses power after each of many writes: what was acknowledged is there,
// and of a row all or nothing.
func TestCrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	w := start(t, fs, "data", emulator.Options{})
	w.createTable(t)
	var clones []*vfs.MemFS
	for i := range 25 {
		w.mutate(t, fmt.Sprintf("r%02d", i), set("f", "a", 0, "1"), set("g", "b", 0, "2"))
		clones = append(clones, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0}))
	}
	w.stop(t)
	for i, clone := range clones {
		var want []string
		for j := range i + 1 {
			want = append(want, fmt.Sprintf("r%02d/f:a@0=1", j), fmt.Sprintf("r%02d/g:b@0=2", j))
		}
		w := start(t, clone, "data", emulator.Options{})
		diff(t, fmt.Sprintf("after write %d", i), w.cells(t, &btpb.ReadRowsRequest{}), want...)
		w.stop(t)
	}
}

// TestGarbage: a row that is written again and again keeps two versions.
func TestGarbage(t *testing.T) {
	w := newWorld(t)
	for i := range int64(5000) {
		w.mutate(t, "r", set("g", "q", i*1000, fmt.Sprint(i)), set("f", "q", 0, "kept"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	want := []string{"r/f:q@0=kept", "r/g:q@4999000=4999", "r/g:q@4998000=4998"}
	for {
		got := w.cells(t, &btpb.ReadRowsRequest{})
		if cmp.Equal(got, want) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%d cells are left", len(got))
		}
	}
}

// TestGarbageHidden: with the option, what the rule collects is never seen.
func TestGarbageHidden(t *testing.T) {
	w := start(t, vfs.NewMem(), "data", emulator.Options{GCOnRead: true})
	defer w.stop(t)
	w.createTable(t)
	for i := range int64(4) {
		w.mutate(t, "r", set("f", "q", i*1000, "f"), set("g", "p", i*1000, "p"), set("g", "q", i*1000, "q"))
	}
	diff(t, "two versions of g, all of f", w.cells(t, &btpb.ReadRowsRequest{}),
		"r/f:q@3000=f", "r/f:q@2000=f", "r/f:q@1000=f", "r/f:q@0=f",
		"r/g:p@3000=p", "r/g:p@2000=p", "r/g:q@3000=q", "r/g:q@2000=q")
}
