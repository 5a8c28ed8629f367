package emulator_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/attestry/attestry/emulator"
)

// Requests and answers that several tests write and read as text.

func rawValue(b string) *btpb.Value {
	return &btpb.Value{Kind: &btpb.Value_RawValue{RawValue: []byte(b)}}
}

func microsValue(n int64) *btpb.Value {
	return &btpb.Value{Kind: &btpb.Value_RawTimestampMicros{RawTimestampMicros: n}}
}

func bigEndian(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

func addToCell(family, qualifier string, micros, n int64) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{
		FamilyName: family, ColumnQualifier: rawValue(qualifier), Timestamp: microsValue(micros),
		Input: &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: n}},
	}}}
}

func mergeToCell(family, qualifier string, micros int64, state string) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_MergeToCell_{MergeToCell: &btpb.Mutation_MergeToCell{
		FamilyName: family, ColumnQualifier: rawValue(qualifier), Timestamp: microsValue(micros), Input: rawValue(state),
	}}}
}

func deleteColumn(family, qualifier string, from, to int64) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{
		FamilyName: family, ColumnQualifier: []byte(qualifier),
		TimeRange: &btpb.TimestampRange{StartTimestampMicros: from, EndTimestampMicros: to},
	}}}
}

func deleteFamily(family string) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromFamily_{DeleteFromFamily: &btpb.Mutation_DeleteFromFamily{FamilyName: family}}}
}

func incrementRule(family, qualifier string, n int64) *btpb.ReadModifyWriteRule {
	return &btpb.ReadModifyWriteRule{FamilyName: family, ColumnQualifier: []byte(qualifier), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: n}}
}

func appendRule(family, qualifier, value string) *btpb.ReadModifyWriteRule {
	return &btpb.ReadModifyWriteRule{FamilyName: family, ColumnQualifier: []byte(qualifier), Rule: &btpb.ReadModifyWriteRule_AppendValue{AppendValue: []byte(value)}}
}

func aggregateFamily(a *adminpb.Type_Aggregate) *adminpb.ColumnFamily {
	a.InputType = &adminpb.Type{Kind: &adminpb.Type_Int64Type{Int64Type: &adminpb.Type_Int64{Encoding: &adminpb.Type_Int64_Encoding{
		Encoding: &adminpb.Type_Int64_Encoding_BigEndianBytes_{BigEndianBytes: &adminpb.Type_Int64_Encoding_BigEndianBytes{}},
	}}}}
	return &adminpb.ColumnFamily{ValueType: &adminpb.Type{Kind: &adminpb.Type_AggregateType{AggregateType: a}}}
}

func sumFamily() *adminpb.ColumnFamily {
	return aggregateFamily(&adminpb.Type_Aggregate{Aggregator: &adminpb.Type_Aggregate_Sum_{Sum: &adminpb.Type_Aggregate_Sum{}}})
}

func minFamily() *adminpb.ColumnFamily {
	return aggregateFamily(&adminpb.Type_Aggregate{Aggregator: &adminpb.Type_Aggregate_Min_{Min: &adminpb.Type_Aggregate_Min{}}})
}

func maxFamily() *adminpb.ColumnFamily {
	return aggregateFamily(&adminpb.Type_Aggregate{Aggregator: &adminpb.Type_Aggregate_Max_{Max: &adminpb.Type_Aggregate_Max{}}})
}

func createFamily(id string, f *adminpb.ColumnFamily) *adminpb.ModifyColumnFamiliesRequest_Modification {
	return &adminpb.ModifyColumnFamiliesRequest_Modification{Id: id, Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Create{Create: f}}
}

func dropFamily(id string) *adminpb.ModifyColumnFamiliesRequest_Modification {
	return &adminpb.ModifyColumnFamiliesRequest_Modification{Id: id, Mod: &adminpb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}}
}

func (w *world) families(ctx context.Context, m ...*adminpb.ModifyColumnFamiliesRequest_Modification) error {
	_, err := w.tables.ModifyColumnFamilies(ctx, &adminpb.ModifyColumnFamiliesRequest{Name: table, Modifications: m})
	return err
}

func (w *world) dropAll(ctx context.Context) error {
	_, err := w.tables.DropRowRange(ctx, &adminpb.DropRowRangeRequest{
		Name: table, Target: &adminpb.DropRowRangeRequest_DeleteAllDataFromTable{DeleteAllDataFromTable: true},
	})
	return err
}

func (w *world) dropPrefix(ctx context.Context, prefix string) error {
	_, err := w.tables.DropRowRange(ctx, &adminpb.DropRowRangeRequest{
		Name: table, Target: &adminpb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte(prefix)},
	})
	return err
}

// tryMutate is mutate for writes that may be refused.
func (w *world) tryMutate(ctx context.Context, row string, m ...*btpb.Mutation) error {
	_, err := w.data.MutateRow(ctx, &btpb.MutateRowRequest{TableName: table, RowKey: []byte(row), Mutations: m})
	return err
}

// bulk writes a row for each entry and returns the codes of the entries.
func bulk(ctx context.Context, data btpb.BigtableClient, entries ...*btpb.MutateRowsRequest_Entry) ([]*btpb.MutateRowsResponse_Entry, error) {
	stream, err := data.MutateRows(ctx, &btpb.MutateRowsRequest{TableName: table, Entries: entries})
	if err != nil {
		return nil, err
	}
	out := make([]*btpb.MutateRowsResponse_Entry, len(entries))
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			for i, e := range out {
				if e == nil {
					return out, fmt.Errorf("no answer for entry %d", i)
				}
			}
			return out, nil
		}
		if err != nil {
			return out, err
		}
		for _, e := range res.GetEntries() {
			out[e.GetIndex()] = e
		}
	}
}

func bulkEntry(row string, m ...*btpb.Mutation) *btpb.MutateRowsRequest_Entry {
	return &btpb.MutateRowsRequest_Entry{RowKey: []byte(row), Mutations: m}
}

// reading is what a ReadRows answered.
type reading struct {
	cells   []string // row/family:qualifier@micros=value {label}
	rows    int
	scanned []string // last_scanned_row_keys
	stats   *btpb.RequestStats
	largest int // bytes of the largest response
}

// readRows reads a table as text, a line a cell, until the stream ends.
func readRows(ctx context.Context, data btpb.BigtableClient, req *btpb.ReadRowsRequest) (r reading, err error) {
	req = proto.CloneOf(req)
	if req.GetTableName() == "" && req.GetAuthorizedViewName() == "" && req.GetMaterializedViewName() == "" {
		req.TableName = table
	}
	stream, err := data.ReadRows(ctx, req)
	if err != nil {
		return r, err
	}
	var row, family, qualifier string
	var at int64
	var labels, value []byte
	open := false
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if open {
				return r, errors.New("the stream ended within a row")
			}
			return r, nil
		}
		if err != nil {
			return r, err
		}
		r.largest = max(r.largest, proto.Size(res))
		if k := res.GetLastScannedRowKey(); k != nil {
			r.scanned = append(r.scanned, string(k))
		}
		if res.GetRequestStats() != nil {
			r.stats = res.GetRequestStats()
		}
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
			if value == nil {
				at, labels = c.GetTimestampMicros(), nil
				if l := c.GetLabels(); len(l) > 0 {
					labels = fmt.Appendf(nil, " {%s}", strings.Join(l, ","))
				}
			}
			value, open = append(value, c.GetValue()...), true
			if c.GetValueSize() > 0 {
				continue
			}
			text := string(value)
			if len(value) > 100 {
				text = fmt.Sprintf("%d bytes", len(value))
			}
			r.cells = append(r.cells, fmt.Sprintf("%s/%s:%s@%d=%s%s", row, family, qualifier, at, text, labels))
			value = nil
			if c.GetCommitRow() {
				r.rows++
				open = false
			}
		}
	}
}

// withFeatures adds the header by which a client says what it can do.
func withFeatures(ctx context.Context, flags *btpb.FeatureFlags) context.Context {
	raw, err := proto.Marshal(flags)
	if err != nil {
		return ctx // a message without required fields marshals
	}
	return metadata.AppendToOutgoingContext(ctx, "bigtable-features", base64.URLEncoding.EncodeToString(raw))
}

func withReverse(ctx context.Context) context.Context {
	return withFeatures(ctx, &btpb.FeatureFlags{ReverseScans: true, LastScannedRowResponses: true})
}

func textOf[M proto.Message](t testing.TB, m M, text string) M {
	t.Helper()
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return m
}

// serverFault reports whether a code says that the server itself is at fault.
// None may be the answer to a request, whatever is in it.
func serverFault(c codes.Code) bool {
	switch c {
	case codes.Unknown, codes.Internal, codes.Unavailable, codes.DataLoss:
		return true
	}
	return false
}

// tryStart is start for a directory that may not open.
func tryStart(fs vfs.FS, dir string, o emulator.Options) (*world, error) {
	o.FS = fs
	s, err := emulator.Create(dir, o)
	if err != nil {
		return nil, err
	}
	conn, err := s.Dial()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &world{s, conn, btpb.NewBigtableClient(conn), adminpb.NewBigtableTableAdminClient(conn), adminpb.NewBigtableInstanceAdminClient(conn)}, nil
}
