package emulator_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// readAll returns the chunks of a ReadRows as text, and its error.
func readAll(ctx context.Context, c btpb.BigtableClient, req *btpb.ReadRowsRequest) (string, error) {
	stream, err := c.ReadRows(ctx, req)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return text.String(), nil
		}
		if err != nil {
			return text.String(), err
		}
		for _, c := range res.Chunks {
			fmt.Fprintf(&text, "%q %q %q %d %x %v\n", c.RowKey, c.GetFamilyName().GetValue(), c.GetQualifier().GetValue(), c.TimestampMicros, c.Value, c.GetCommitRow())
		}
	}
}

// TestLocalReads holds reads within the process against reads by TCP.
func TestLocalReads(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	go w.Serve(l) //nolint:errcheck // ends with the server
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	check(t, err)
	defer conn.Close() //nolint:errcheck // nothing is written
	wire := btpb.NewBigtableClient(conn)
	for i := range 700 {
		w.mutate(t, fmt.Sprintf("row%03d", i), set("f", "q", 1000, strings.Repeat("v", i%50)))
	}
	w.mutate(t, "wide", set("f", "q", 1000, strings.Repeat("w", 5<<20)))
	features, err := proto.Marshal(&btpb.FeatureFlags{ReverseScans: true})
	check(t, err)
	reversed := metadata.Pairs("bigtable-features", base64.URLEncoding.EncodeToString(features))
	for name, c := range map[string]struct {
		req *btpb.ReadRowsRequest
		md  metadata.MD
	}{
		"all":       {req: &btpb.ReadRowsRequest{TableName: table}},
		"one":       {req: &btpb.ReadRowsRequest{TableName: table, Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("row007")}}}},
		"none":      {req: &btpb.ReadRowsRequest{TableName: table, Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("no")}}}},
		"limit":     {req: &btpb.ReadRowsRequest{TableName: table, RowsLimit: 600}},
		"no table":  {req: &btpb.ReadRowsRequest{TableName: parent + "/tables/no"}},
		"bad limit": {req: &btpb.ReadRowsRequest{TableName: table, RowsLimit: -1}},
		"reversed":  {req: &btpb.ReadRowsRequest{TableName: table, Reversed: true, RowsLimit: 9}, md: reversed},
		"refused":   {req: &btpb.ReadRowsRequest{TableName: table, Reversed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := metadata.NewOutgoingContext(t.Context(), c.md)
			sent := proto.Clone(c.req)
			local, localErr := readAll(ctx, w.data, c.req)
			if !proto.Equal(sent, c.req) {
				t.Error("the request was written to")
			}
			far, farErr := readAll(ctx, wire, c.req)
			if local != far || status.Code(localErr) != status.Code(farErr) || status.Convert(localErr).Message() != status.Convert(farErr).Message() {
				t.Errorf("within the process: %d bytes, %v\nby TCP: %d bytes, %v", len(local), localErr, len(far), farErr)
			}
			if farErr == nil && far == "" && name != "none" {
				t.Error("nothing was read")
			}
		})
	}
}

// TestLocalReadEnds ends reads from either side before their end.
func TestLocalReadEnds(t *testing.T) {
	w := newWorld(t)
	for i := range 40 {
		w.mutate(t, fmt.Sprintf("row%02d", i), set("f", "q", 1000, strings.Repeat("v", 600<<10))) // a response each, more than may wait
	}
	read := func(ctx context.Context) btpb.Bigtable_ReadRowsClient {
		stream, err := w.data.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: table})
		check(t, err)
		_, err = stream.Recv()
		check(t, err)
		return stream
	}
	drain := func(stream btpb.Bigtable_ReadRowsClient) codes.Code {
		for {
			if _, err := stream.Recv(); err != nil {
				return status.Code(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	stream := read(ctx)
	cancel()
	if code := drain(stream); code != codes.Canceled {
		t.Errorf("canceled: %s", code)
	}
	left := read(t.Context()) // whose reader waits, until the server does no more
	check(t, w.Close())
	if code := drain(left); code != codes.Unavailable {
		t.Errorf("closed under a reader: %s", code)
	}
	if _, err := w.data.ReadRows(t.Context(), &btpb.ReadRowsRequest{TableName: table}); status.Code(err) != codes.Unavailable {
		t.Errorf("closed before: %v", err)
	}
}
