package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/emulator"
	"github.com/attestry/attestry/internal/testenv"
)

// TestCases runs the cases of testdata/cases, each a request in text form without
// the table's name, on a table of their file:
//
//	table                   the table anew, with families, a line each: name [sum|min|max]
//	mutate, bulk, check, modify, read [reversed], sample, families, drop
//	                        a request of the data or the admin API
//
// The answers are production's, written from its contract. Each case is sent to the
// client library's test server (bttest) too; where that answers with another code
// or other cells, a line "bttest:" says what. The argument bttest=(why) keeps a
// case from it, and is noted so. Times of this day are written as now.
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		w := start(t, vfs.NewMem(), "data", emulator.Options{Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }})
		defer w.stop(t)
		conn, err := grpc.NewClient(testenv.BTTest(t), grpc.WithTransportCredentials(insecure.NewCredentials()))
		check(t, err)
		defer func() { check(t, conn.Close()) }()
		foreign := &world{conn: conn, data: btpb.NewBigtableClient(conn), tables: adminpb.NewBigtableTableAdminClient(conn)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ours, code := runCase(ctx, t, d, w)
			if serverFault(code) {
				t.Errorf("%s: the server is at fault: %s", d.Pos, ours)
			}
			if arg, ok := d.Arg("bttest"); ok {
				return ours + "bttest: " + strings.Join(arg.Vals, ", ") + "\n"
			}
			theirs, theirCode := runCase(ctx, t, d, foreign)
			if code == theirCode && (code != codes.OK || ours == theirs) {
				return ours
			}
			return ours + regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSuffix(theirs, "\n"), "bttest: ") + "\n"
		})
	})
}

// runCase sends a case's request to a server and returns its answer as text.
func runCase(ctx context.Context, t *testing.T, d *datadriven.TestData, w *world) (string, codes.Code) {
	t.Helper()
	lines, err := sendCase(ctx, t, d, w)
	if err != nil {
		lines = append(lines, fmt.Sprintf("%s: %s", status.Code(err), status.Convert(err).Message()))
	}
	text := strings.Join(lines, "\n") + "\n"
	if len(lines) == 0 {
		text = "nothing\n"
	}
	return regexp.MustCompile(`@1\d{15}=`).ReplaceAllString(text, "@now="), status.Code(err)
}

func sendCase(ctx context.Context, t *testing.T, d *datadriven.TestData, w *world) ([]string, error) {
	t.Helper()
	switch d.Cmd {
	case "table":
		return nil, makeCaseTable(ctx, w, strings.Split(strings.TrimSpace(d.Input), "\n"))
	case "mutate":
		req := textOf(t, &btpb.MutateRowRequest{TableName: table}, d.Input)
		return nil, w.tryMutate(ctx, string(req.GetRowKey()), req.GetMutations()...)
	case "bulk":
		got, err := bulk(ctx, w.data, textOf(t, &btpb.MutateRowsRequest{}, d.Input).GetEntries()...)
		var lines []string
		for i, e := range got {
			lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%d %s: %s", i, codes.Code(e.GetStatus().GetCode()), e.GetStatus().GetMessage()), ": "))
		}
		if err != nil {
			lines = nil
		}
		return lines, err
	case "check":
		req := textOf(t, &btpb.CheckAndMutateRowRequest{}, d.Input)
		req.TableName = table
		res, err := w.data.CheckAndMutateRow(ctx, req)
		if err != nil {
			return nil, err
		}
		return []string{fmt.Sprintf("matched: %t", res.GetPredicateMatched())}, nil
	case "modify":
		req := textOf(t, &btpb.ReadModifyWriteRowRequest{}, d.Input)
		req.TableName = table
		res, err := w.data.ReadModifyWriteRow(ctx, req)
		return quotedCells(cellsOf(res.GetRow())), err
	case "read":
		req := textOf(t, &btpb.ReadRowsRequest{}, d.Input)
		if req.Reversed = d.HasArg("reversed"); req.Reversed {
			ctx = withReverse(ctx)
		}
		r, err := readRows(ctx, w.data, req)
		return quotedCells(r.cells), err
	case "sample":
		stream, err := w.data.SampleRowKeys(ctx, &btpb.SampleRowKeysRequest{TableName: table})
		var lines []string
		for err == nil {
			var res *btpb.SampleRowKeysResponse
			if res, err = stream.Recv(); err == nil {
				lines = append(lines, fmt.Sprintf("%q", res.GetRowKey()))
			}
		}
		if status.Code(err) == codes.Unknown {
			err = nil // the stream's end
		}
		return lines, err
	case "families":
		req := textOf(t, &adminpb.ModifyColumnFamiliesRequest{}, d.Input)
		return nil, w.families(ctx, req.GetModifications()...)
	case "drop":
		req := textOf(t, &adminpb.DropRowRangeRequest{}, d.Input)
		req.Name = table
		_, err := w.tables.DropRowRange(ctx, req)
		return nil, err
	}
	d.Fatalf(t, "unknown command")
	return nil, nil
}

// makeCaseTable makes the table anew. Families are made one after the other, for
// bttest answers in that order.
func makeCaseTable(ctx context.Context, w *world, families []string) error {
	_, err := w.tables.DeleteTable(ctx, &adminpb.DeleteTableRequest{Name: table})
	if status.Code(err) == codes.NotFound {
		err = nil
	}
	if err == nil {
		_, err = w.tables.CreateTable(ctx, &adminpb.CreateTableRequest{Parent: parent, TableId: "t", Table: &adminpb.Table{}})
	}
	for _, line := range families {
		name, kind, _ := strings.Cut(line, " ")
		f := map[string]*adminpb.ColumnFamily{"": {}, "sum": sumFamily(), "min": minFamily(), "max": maxFamily()}[kind]
		err = errors.Join(err, w.families(ctx, createFamily(name, f)))
	}
	return err
}

// cellsOf is a row as readRows has it.
func cellsOf(row *btpb.Row) []string {
	var cells []modelCell
	for _, f := range row.GetFamilies() {
		for _, c := range f.GetColumns() {
			for _, cell := range c.GetCells() {
				cells = append(cells, modelCell{modelColumn{f.GetName(), string(c.GetQualifier())}, cell.GetTimestampMicros(), string(cell.GetValue()), ""})
			}
		}
	}
	slices.SortFunc(cells, compareCells)
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = c.String()
	}
	return out
}

// quotedCells makes what is no text readable.
func quotedCells(cells []string) []string {
	for i, c := range cells {
		q := fmt.Sprintf("%q", c)
		cells[i] = q[1 : len(q)-1]
	}
	return cells
}
