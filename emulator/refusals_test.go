package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	read := func(req *btpb.ReadRowsRequest) error {
		stream, err := w.data.ReadRows(ctx, req)
		check(t, err)
		_, err = stream.Recv()
		return err
	}
	wantCode(t, "no such table", read(&btpb.ReadRowsRequest{TableName: parent + "/tables/none"}), codes.NotFound, "none")
	wantCode(t, "reversed without the feature", read(&btpb.ReadRowsRequest{TableName: table, Reversed: true}), codes.Unimplemented, "reverse scans")
	wantCode(t, "negative limit", read(&btpb.ReadRowsRequest{TableName: table, RowsLimit: -1}), codes.InvalidArgument, "rows_limit")
	inverted := &btpb.RowSet{RowRanges: []*btpb.RowRange{{StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte("b")}, EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte("a")}}}}
	wantCode(t, "inverted range", read(&btpb.ReadRowsRequest{TableName: table, Rows: inverted}), codes.InvalidArgument, "start_key must be less than end_key")
	bad := &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte("(")}}
	wantCode(t, "a bad filter on an empty table", read(&btpb.ReadRowsRequest{TableName: table, Filter: bad}), codes.InvalidArgument, "")

	mutate := func(row string, m ...*btpb.Mutation) error {
		_, err := w.data.MutateRow(ctx, &btpb.MutateRowRequest{TableName: table, RowKey: []byte(row), Mutations: m})
		return err
	}
	wantCode(t, "no mutations", mutate("r"), codes.InvalidArgument, "")
	wantCode(t, "empty key", mutate("", set("f", "q", 0, "")), codes.InvalidArgument, "non-empty")
	wantCode(t, "long key", mutate(strings.Repeat("k", 4097), set("f", "q", 0, "")), codes.InvalidArgument, "4096")
	wantCode(t, "time before -1", mutate("r", set("f", "q", -2, "")), codes.InvalidArgument, "Timestamp")
	many := make([]*btpb.Mutation, 100_001)
	for i := range many {
		many[i] = set("f", "q", 0, "")
	}
	wantCode(t, "too many", mutate("r", many...), codes.InvalidArgument, "Too many mutations: 100001 provided; limit 100000")
	_, err := w.data.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{TableName: table, RowKey: []byte("r")})
	wantCode(t, "neither list", err, codes.InvalidArgument, "")

	_, err = w.tables.CreateTable(ctx, &adminpb.CreateTableRequest{Parent: parent, TableId: "t"})
	wantCode(t, "the table again", err, codes.AlreadyExists, "t")
	_, err = w.tables.CreateTable(ctx, &adminpb.CreateTableRequest{Parent: parent, TableId: strings.Repeat("x", 51)})
	wantCode(t, "a long table id", err, codes.InvalidArgument, "50")
	_, err = w.tables.CreateSchemaBundle(ctx, &adminpb.CreateSchemaBundleRequest{})
	wantCode(t, "a call that is not offered", err, codes.Unimplemented, "CreateSchemaBundle")
	_, err = w.admin.ListHotTablets(ctx, &adminpb.ListHotTabletsRequest{})
	wantCode(t, "another", err, codes.Unimplemented, "ListHotTablets")
	diff(t, "nothing was written", w.cells(t, &btpb.ReadRowsRequest{}))
}

func TestUpdateMaskAndProtection(t *testing.T) {
	w := newWorld(t)
	update := func(in *adminpb.Table, paths ...string) error {
		in.Name = table
		_, err := w.tables.UpdateTable(t.Context(), &adminpb.UpdateTableRequest{Table: in, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
		return err
	}
	check(t, update(&adminpb.Table{DeletionProtection: true}, "deletion_protection"))
	check(t, update(&adminpb.Table{}, "change_stream_config"))
	_, err := w.tables.DeleteTable(t.Context(), &adminpb.DeleteTableRequest{Name: table})
	wantCode(t, "still protected", err, codes.FailedPrecondition, "protected")
	check(t, update(&adminpb.Table{}, "deletion_protection"))
	_, err = w.tables.DeleteTable(t.Context(), &adminpb.DeleteTableRequest{Name: table})
	check(t, err)
	_, err = w.tables.GetTable(t.Context(), &adminpb.GetTableRequest{Name: table})
	wantCode(t, "gone", err, codes.NotFound, table)
}

func TestAppProfileWithoutTransactions(t *testing.T) {
	w := newWorld(t)
	_, err := w.admin.CreateAppProfile(t.Context(), &adminpb.CreateAppProfileRequest{Parent: parent, AppProfileId: "any", AppProfile: &adminpb.AppProfile{
		RoutingPolicy: &adminpb.AppProfile_MultiClusterRoutingUseAny_{MultiClusterRoutingUseAny: &adminpb.AppProfile_MultiClusterRoutingUseAny{}},
	}})
	check(t, err)
	_, err = w.data.CheckAndMutateRow(t.Context(), &btpb.CheckAndMutateRowRequest{
		TableName: table, AppProfileId: "any", RowKey: []byte("r"), FalseMutations: []*btpb.Mutation{set("f", "q", 0, "x")},
	})
	wantCode(t, "a conditional write under a multi-cluster profile", err, codes.FailedPrecondition, "any")
}

// TestEveryCall sends an empty request to every method of the three services. None
// ends the process, and none answers with a code that tells clients of a fault in
// the server or makes them try again.
func TestEveryCall(t *testing.T) {
	w := newWorld(t)
	var methods int
	for _, file := range []protoreflect.FileDescriptor{
		btpb.File_google_bigtable_v2_bigtable_proto,
		adminpb.File_google_bigtable_admin_v2_bigtable_table_admin_proto,
		adminpb.File_google_bigtable_admin_v2_bigtable_instance_admin_proto,
	} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				methods++
				err := callEmpty(t.Context(), w.conn, m)
				switch code := status.Code(err); code {
				case codes.Unknown, codes.Internal, codes.Unavailable, codes.DataLoss, codes.Aborted, codes.DeadlineExceeded:
					t.Errorf("%s: %v", m.FullName(), err)
				default:
					if err != nil && status.Convert(err).Message() == "" {
						t.Errorf("%s: %s without a text", m.FullName(), code)
					}
				}
			}
		}
	}
	if methods < 80 {
		t.Errorf("only %d methods were called", methods)
	}
	w.mutate(t, "r", set("f", "q", 0, "alive"))
	diff(t, "the server lives", w.cells(t, &btpb.ReadRowsRequest{}), "r/f:q@0=alive")
}

// callEmpty sends an empty request and returns the error of the answer, if any.
func callEmpty(ctx context.Context, conn *grpc.ClientConn, m protoreflect.MethodDescriptor) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	name := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
	in, out := dynamicpb.NewMessage(m.Input()), dynamicpb.NewMessage(m.Output())
	if !m.IsStreamingClient() && !m.IsStreamingServer() {
		return conn.Invoke(ctx, name, in, out)
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: m.IsStreamingClient()}, name)
	if err != nil {
		return err
	}
	if err := errors.Join(stream.SendMsg(in), stream.CloseSend()); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for err = nil; err == nil; {
		err = stream.RecvMsg(out)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
