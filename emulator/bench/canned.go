package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is wrapped
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// missing ends the keys of rows that are not there.
const missing = "-missing"

// canned answers every read with the same cells under the keys that were asked
// for, and every write with success.
type canned struct {
	btpb.UnimplementedBigtableServer
	adminpb.UnimplementedBigtableTableAdminServer
	rows             int
	all, family, one template // of ten cells, of the five of a family, of one
}

const cannedRows = 64 // of a message

// template is an encoded response and where in it the row keys are.
type template struct {
	bytes   []byte
	rowEnds []int
	keyAt   []int
}

// keyBytes is the length of a row key.
const keyBytes = 5 + 1 + 64 + 1 + 20

// encoded is a message that is encoded already.
type encoded []byte

// rawCodec passes encoded messages on and leaves the others to protobuf.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(encoded); ok {
		return mem.BufferSlice{mem.SliceBuffer(m)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func serveCannedRows(ctx context.Context, rows int, out io.Writer) error {
	c := &canned{rows: rows}
	var err error
	for t, columns := range map[*template][2]int{&c.all: {0, cells}, &c.family: {cells / 2, cells}, &c.one: {7, 8}} {
		if *t, err = newTemplate(columns[0], columns[1]); err != nil {
			return err
		}
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{encoding.GetCodecV2("proto")}), grpc.MaxRecvMsgSize(256<<20))
	btpb.RegisterBigtableServer(s, c)
	adminpb.RegisterBigtableTableAdminServer(s, c)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "listening on", l.Addr())
	context.AfterFunc(ctx, s.Stop)
	return s.Serve(l)
}

// newTemplate encodes rows of the cells from first to before end.
func newTemplate(first, end int) (template, error) {
	var t template
	for i := range cannedRows {
		res := &btpb.ReadRowsResponse{}
		key := []byte(fmt.Sprintf("%0*d", keyBytes, i))
		for j := first; j < end; j++ {
			chunk := &btpb.ReadRowsResponse_CellChunk{
				Qualifier: wrapperspb.Bytes([]byte(fmt.Sprintf("column-%d", j))), TimestampMicros: int64(cellTime), Value: bytes.Repeat([]byte{byte(j)}, valueBytes),
			}
			if j == first {
				chunk.RowKey = key
			}
			if j == first || j == cells/2 {
				chunk.FamilyName = wrapperspb.String(familyNames()[j*2/cells])
			}
			if j == end-1 {
				chunk.RowStatus = &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
			}
			res.Chunks = append(res.Chunks, chunk)
		}
		row, err := proto.Marshal(res)
		if err != nil {
			return t, err
		}
		t.keyAt = append(t.keyAt, len(t.bytes)+bytes.Index(row, key))
		t.bytes = append(t.bytes, row...)
		t.rowEnds = append(t.rowEnds, len(t.bytes))
	}
	return t, nil
}

// message returns the message of rows under keys, at most cannedRows.
func (t template) message(keys []string) encoded {
	message := bytes.Clone(t.bytes[:t.rowEnds[len(keys)-1]])
	for i, key := range keys {
		copy(message[t.keyAt[i]:], key)
	}
	return message
}

func (c *canned) ReadRows(req *btpb.ReadRowsRequest, stream btpb.Bigtable_ReadRowsServer) error {
	t := c.all
	switch req.GetFilter().GetFilter().(type) {
	case *btpb.RowFilter_FamilyNameRegexFilter:
		t = c.family
	case *btpb.RowFilter_Chain_:
		t = c.one
	}
	if asked := req.GetRows().GetRowKeys(); len(asked) > 0 {
		var keys []string
		for _, key := range asked {
			if !strings.HasSuffix(string(key), missing) {
				keys = append(keys, string(key))
			}
		}
		slices.Sort(keys)
		for part := range slices.Chunk(keys, cannedRows) {
			if err := stream.SendMsg(t.message(part)); err != nil {
				return err
			}
		}
		return nil
	}
	n := int(req.GetRowsLimit())
	if n == 0 {
		n = c.rows
	}
	keys := make([]string, 0, cannedRows)
	for i := range n {
		keys = append(keys, fmt.Sprintf("%0*d", keyBytes, i))
		if len(keys) == cannedRows || i == n-1 {
			if err := stream.SendMsg(t.message(keys)); err != nil {
				return err
			}
			keys = keys[:0]
		}
	}
	return nil
}

func (c *canned) MutateRow(context.Context, *btpb.MutateRowRequest) (*btpb.MutateRowResponse, error) {
	return &btpb.MutateRowResponse{}, nil
}

func (c *canned) CheckAndMutateRow(context.Context, *btpb.CheckAndMutateRowRequest) (*btpb.CheckAndMutateRowResponse, error) {
	return &btpb.CheckAndMutateRowResponse{PredicateMatched: true}, nil
}

func (c *canned) MutateRows(req *btpb.MutateRowsRequest, stream btpb.Bigtable_MutateRowsServer) error {
	res := &btpb.MutateRowsResponse{}
	for i := range req.GetEntries() {
		res.Entries = append(res.Entries, &btpb.MutateRowsResponse_Entry{Index: int64(i), Status: &statuspb.Status{}})
	}
	return stream.Send(res)
}

func (c *canned) CreateTable(_ context.Context, req *adminpb.CreateTableRequest) (*adminpb.Table, error) {
	if req.GetTable() == nil {
		return nil, errors.New("no table")
	}
	return req.GetTable(), nil
}
