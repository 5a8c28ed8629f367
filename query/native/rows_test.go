package native_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/emulator"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/vaa"
)

// rows counts the rows that a Bigtable server sent, by table.
type rows struct {
	mu    sync.Mutex // guards all below
	count map[string]int
}

// take returns the counts since the last take.
func (r *rows) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := r.count
	r.count = map[string]int{}
	return count
}

func (r *rows) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := next(ctx, desc, cc, method, opts...)
	return &countedStream{ClientStream: s, rows: r}, err
}

type countedStream struct {
	grpc.ClientStream
	rows  *rows
	table string
}

func (s *countedStream) SendMsg(m any) error {
	if r, ok := m.(*bigtablepb.ReadRowsRequest); ok {
		s.table = r.GetTableName()[strings.LastIndexByte(r.GetTableName(), '.')+1:]
	}
	return s.ClientStream.SendMsg(m)
}

func (s *countedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if r, ok := m.(*bigtablepb.ReadRowsResponse); ok && err == nil {
		s.rows.mu.Lock()
		defer s.rows.mu.Unlock()
		for _, c := range r.GetChunks() {
			if c.GetCommitRow() {
				s.rows.count[s.table]++
			}
		}
	}
	return err
}

// serveBigtable is serve over the adapter and a server on disk that hold what an
// archive holds.
func serveBigtable(t testing.TB, a *querytest.Archive) (*harness, *rows) {
	t.Helper()
	server, err := emulator.Create(t.TempDir(), emulator.Options{})
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		must(t, server.Close())
		must(t, <-ended)
	})
	counted := &rows{count: map[string]int{}}
	clients, err := bigtable.DialLocal(context.Background(), l.Addr().String(), bigtable.LocalInstance, grpc.WithChainStreamInterceptor(counted.stream))
	must(t, err)
	t.Cleanup(func() { must(t, clients.Close()) })
	ctx, network := context.Background(), a.Store.Info().Network
	_, err = bigtable.Create(ctx, clients.Admin, clients.Data, network)
	must(t, err)
	store, err := bigtable.Open(ctx, clients.Data, network)
	must(t, err)
	for b, err := range a.Store.Batches(ctx, 1) {
		must(t, err)
		must(t, store.Append(ctx, b))
		must(t, store.Apply(ctx, b))
		must(t, store.MarkApplied(ctx, b.Offset))
		must(t, store.RaiseWatermark(ctx, b.End()))
	}
	known, err := knownSets()
	must(t, err)
	sets := known[network]
	h := &harness{archive: a, store: store}
	parts := query.Parts{Upgrades: store, Rejects: store, Journal: store}
	h.use(t, query.New(store, network, func() vaa.GuardianSets { return sets }).With(parts))
	counted.take()
	return h, counted
}

// TestRowsRead counts what each path makes the server send, with all messages on more
// than one page. No path reads more than it answers but for one row that tells
// whether there is more, and of the shards of the index of times what the merge is
// ahead.
func TestRowsRead(t *testing.T) {
	t.Parallel()
	a, err := querytest.Load(vaa.Mainnet, collectedDir)
	must(t, err)
	tx := &archive.Link{TxID: "abc", Trust: archive.TrustChain, Source: "test"}
	for i := range uint64(30) {
		must(t, a.Observe(vaa.Body{Timestamp: 1, EmitterChain: 30, Sequence: i, EmitterAddress: vaa.Address{0: byte(i % 3)}}, tx))
	}
	for i := range uint64(15) {
		v := vaa.VAA{Version: 1, Body: vaa.Body{Timestamp: 1, EmitterChain: 31, Sequence: i}}
		must(t, a.AddVAA(v.Append(nil), nil))
		v.Nonce = 1
		must(t, a.AddVAA(v.Append(nil), nil))
	}
	var signed vaa.MessageID
	for b, err := range a.Store.Batches(context.Background(), 1) {
		must(t, err)
		if b.Events[0].ID.EmitterChain == 2 {
			signed = b.Events[0].ID
			break
		}
	}
	record := mustRecord(t, a, signed)
	h, counted := serveBigtable(t, a)
	for i := range 20 {
		must(t, h.store.PutReject(context.Background(), archive.Reject{Reason: "wrong_key", SHA256: [32]byte{byte(i)}, Bytes: []byte{1}}))
	}
	counted.take()
	one := "/v1/attestations/" + signed.String()
	for _, c := range []struct {
		target       string
		items        int // -1: not a listing
		index, extra int // index rows beyond the items, and other rows, at most
	}{
		{one, -1, 0, 1},
		{one + "?format=raw", -1, 0, 1},
		{one + "?column=Payload", -1, 0, 1},
		{one + "/repaired?format=json", -1, 0, 1},
		{"/v1/attestations?limit=10", 10, 0, 1},
		{"/v1/attestations?limit=10&order=desc", 10, 0, 1},
		{"/v1/attestations?limit=10&chain=1", 10, 0, 1},
		{"/v1/attestations?limit=10&prefix=30:", 10, 0, 1},
		{"/v1/attestations?limit=10&payloadPrefix=ffffff", 0, 0, 11},
		{"/v1/attestations?limit=10&signed=false&order=desc", -1, 0, 11},
		{"/v1/attestations?limit=10&from=0&to=4294967295", 10, 17, 0},
		{"/v1/attestations?limit=10&from=0&order=desc", 10, 17, 0},
		{"/v1/attestations?limit=10&from=0&chain=2&linked=true", 0, 27, 10},
		{"/v1/attestations?limit=10&from=0&chain=30&emitter=" + strings.Repeat("0", 64), 10, 0, 1},
		{"/v1/recent?limit=10", 10, 17, 0},
		{"/v1/recent?limit=10&chain=solana", 10, 17, 0},
		{"/v1/tx/abc?limit=10", 10, 1, 0},
		{"/v1/digests/" + record.Digest().String(), 1, 1, 0},
		{"/v1/recipients/" + strings.Repeat("ab", 32), 0, 1, 0},
		{"/v1/conflicts?limit=10", 10, 1, 0},
		{"/v1/emitters?chain=30", 3, 0, 0},
		{"/v1/emitters?chain=1&limit=5", 5, 0, 1},
		{"/v1/guardian-sets", 8, 0, 0},
		{"/v1/guardian-sets/4", -1, 0, 0},
		{"/v1/rejects?limit=20", 20, 0, 1},
		{"/v1/status", -1, 17, 17},
		{"/v1/search?q=" + signed.String(), 1, 0, 0},
		{"/v1/search?q=abc", 20, 1, 0},
		{"/v1/search?q=" + record.Digest().String(), 1, 1, 0},
		{"/v1/search?q=" + signed.EmitterAddress.String(), -1, 1, 1},
		{"/v1/search?q=30/" + strings.Repeat("0", 64), 1, 0, 0},
	} {
		var got struct{ Items []json.RawMessage }
		status := http.StatusOK
		if strings.Contains(c.target, "repaired") {
			status = http.StatusConflict
		}
		if body := h.get(t, c.target, status); c.items >= 0 {
			must(t, json.Unmarshal(body, &got))
		}
		read := counted.take()
		items := max(c.items, 0)
		if c.items >= 0 && len(got.Items) != c.items {
			t.Errorf("GET %s: %d items, want %d", c.target, len(got.Items), c.items)
		}
		if n := read["index"]; n > items+c.index {
			t.Errorf("GET %s: %d index rows for %d items", c.target, n, items)
		}
		if n := read["attestations"] + read["state"] + read["journal"]; n > items+c.extra {
			t.Errorf("GET %s: rows %v for %d items", c.target, read, items)
		}
		t.Logf("GET %s: %d items, rows %v", c.target, len(got.Items), read)
	}
	body := fmt.Sprintf(`{"vaa":%q}`, base64.StdEncoding.EncodeToString(record.Signed().Bytes))
	for _, path := range []string{"/v1/decode", "/v1/verify"} {
		if res := h.post(path, "application/json", []byte(body)); res.StatusCode != 200 || len(counted.take()) != 0 {
			t.Errorf("POST %s: status %d", path, res.StatusCode)
		}
	}
}

// TestRowsOfRecent measures how far the merge of the shards is ahead.
func TestRowsOfRecent(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	for i := range uint64(400) {
		must(t, a.Observe(vaa.Body{Timestamp: uint32(1700000000 + i/7), EmitterChain: 2, Sequence: i}, nil))
	}
	h, counted := serveBigtable(t, a)
	for _, limit := range []int{1, 2, 10, 50, 99, 100} {
		h.get(t, fmt.Sprintf("/v1/recent?limit=%d&column=Timestamp", limit), 200)
		read := counted.take()
		t.Logf("recent of %d: rows %v", limit, read)
		if read["attestations"] != limit || read["index"] > limit+17 {
			t.Errorf("recent of %d: rows %v", limit, read)
		}
	}
	h.get(t, "/v1/recent?limit=100&offset=200&column=Timestamp", 200)
	t.Logf("recent at offset 200: rows %v", counted.take())
}
