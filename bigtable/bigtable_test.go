package bigtable_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cbt "cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/archivetest"
	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/vaa"
)

// TestConformance runs the suite on the client library's own test server.
func TestConformance(t *testing.T) {
	addr := testenv.BTTest(t)
	conformance(t, addr)
}

// TestConformanceCBTEmulator runs it on Google's emulator binary.
func TestConformanceCBTEmulator(t *testing.T) { conformance(t, testenv.CBTEmulator(t)) }

// TestConformanceHost runs it on the server that the environment names.
func TestConformanceHost(t *testing.T) {
	addr := os.Getenv("BIGTABLE_EMULATOR_HOST")
	if addr == "" {
		t.Skip("BIGTABLE_EMULATOR_HOST names no server")
	}
	conformance(t, addr)
}

// conformance gives each store an instance of its own on the server.
func conformance(t *testing.T, addr string) {
	h := newHarness(addr)
	archivetest.Run(t, archivetest.Options{New: h.new, Reopen: h.reopen, Seal: h.seal, CheckCalls: h.countCalls})
}

func newHarness(addr string) *harness {
	return &harness{addr: addr, run: fmt.Sprint(time.Now().UnixNano())}
}

func (h *harness) countCalls(_ *testing.T, _ archive.Store, f func()) int {
	before := h.calls.Load()
	f()
	return int(h.calls.Load() - before)
}

type harness struct {
	addr  string
	run   string
	calls atomic.Int64

	mu     sync.Mutex
	n      int
	stores map[archive.Store]*bigtable.Clients
}

func (h *harness) clients(t *testing.T, instance string) *bigtable.Clients {
	t.Helper()
	count := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		h.calls.Add(1)
		return next(ctx, desc, cc, method, opts...)
	}
	countUnary := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		h.calls.Add(1)
		return next(ctx, method, req, reply, cc, opts...)
	}
	c, err := bigtable.DialLocal(t.Context(), h.addr, instance,
		grpc.WithChainStreamInterceptor(count), grpc.WithChainUnaryInterceptor(countUnary))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (h *harness) new(t *testing.T) archive.Store {
	t.Helper()
	h.mu.Lock()
	h.n++
	instance := fmt.Sprintf("i%s-%d", h.run, h.n)
	h.mu.Unlock()
	c := h.clients(t, instance)
	created, err := bigtable.Create(t.Context(), c.Admin, c.Data, vaa.Devnet)
	if err != nil || !created {
		t.Fatalf("create: %t, %v", created, err)
	}
	return h.open(t, c)
}

func (h *harness) open(t *testing.T, c *bigtable.Clients) archive.Store {
	t.Helper()
	s, err := bigtable.Open(t.Context(), c.Data, vaa.Devnet)
	if err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stores == nil {
		h.stores = map[archive.Store]*bigtable.Clients{}
	}
	h.stores[s] = c
	return s
}

// reopen opens the store anew: nothing that the first remembered is kept.
func (h *harness) reopen(t *testing.T, s archive.Store) archive.Store {
	t.Helper()
	return h.open(t, h.clientsOf(s))
}

func (h *harness) clientsOf(s archive.Store) *bigtable.Clients {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stores[s]
}

func (h *harness) seal(t *testing.T, s archive.Store) {
	t.Helper()
	setStore(t, h.clientsOf(s), schema.ColState, "sealing")
}

func setStore(t *testing.T, c *bigtable.Clients, column, value string) {
	t.Helper()
	m := cbt.NewMutation()
	m.Set(schema.Store, column, 0, []byte(value))
	if err := c.Data.Open(schema.StoreTableID("devnet")).Apply(t.Context(), schema.RowCurrent, m); err != nil {
		t.Fatal(err)
	}
}
