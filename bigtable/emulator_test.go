package bigtable_test

import (
	"net"
	"sync"
	"testing"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/archivetest"
	"github.com/attestry/attestry/emulator"
)

// durable is the project's own server on disk, at one address over restarts.
type durable struct {
	dir, addr string

	mu     sync.Mutex
	server *emulator.Server
	ended  chan error
}

func (d *durable) start(t *testing.T) {
	t.Helper()
	s, err := emulator.Create(d.dir, emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d.addr == "" {
		d.addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	d.addr, d.server, d.ended = l.Addr().String(), s, make(chan error, 1)
	go func() { d.ended <- s.Serve(l) }()
}

func (d *durable) stop(t *testing.T) {
	t.Helper()
	if err := d.server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-d.ended; err != nil {
		t.Error(err)
	}
}

// TestConformanceEmulator runs the suite on the durable server, which is closed
// and opened again where a store is.
func TestConformanceEmulator(t *testing.T) {
	d := &durable{dir: t.TempDir()}
	d.start(t)
	t.Cleanup(func() { d.stop(t) })
	h := newHarness(d.addr)
	archivetest.Run(t, archivetest.Options{
		New:  h.new,
		Seal: h.seal,
		Reopen: func(t *testing.T, s archive.Store) archive.Store {
			t.Helper()
			d.mu.Lock()
			defer d.mu.Unlock()
			d.stop(t)
			d.start(t)
			return h.reopen(t, s)
		},
		CheckCalls: h.countCalls,
	})
}
