package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/emulator"
)

// embedded is a durable Bigtable server in this process, on a loopback address of
// its own choice.
type embedded struct {
	server *emulator.Server
	addr   string
	ended  chan struct{} // closed when nothing is served any more
	err    error         // why; set before ended is closed
}

// storeDir is the folder of the embedded store in a data directory.
func storeDir(dataDir string) string { return filepath.Join(dataDir, "bigtable") }

// startEmbedded opens the store of a data directory, and makes it where create is
// set and there is none. Errors: ErrNoArchive when there is none, ErrServed when
// another process has it open.
func startEmbedded(dataDir string, create bool) (*embedded, error) {
	open := emulator.Open
	if create {
		open = emulator.Create
	}
	server, err := open(storeDir(dataDir), emulator.Options{})
	switch {
	case errors.Is(err, emulator.ErrNoStore):
		return nil, fmt.Errorf("open the embedded store: %w: %w", ErrNoArchive, err)
	case errors.Is(err, emulator.ErrLocked):
		return nil, fmt.Errorf("open the embedded store: %w: another command works on it; wait for its end, "+
			"or start `attestry serve --data-dir %s` to have several at once", ErrServed, dataDir)
	case err != nil:
		return nil, fmt.Errorf("open the embedded store: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the embedded store: %w", err), server.Close())
	}
	e := &embedded{server: server, addr: l.Addr().String(), ended: make(chan struct{})}
	go func() {
		defer close(e.ended)
		e.err = server.Serve(l)
	}()
	return e, nil
}

// connect connects within the process, which costs less than through the loopback
// address that others use.
func (e *embedded) connect(ctx context.Context) (*Connection, error) {
	conn, err := e.server.Dial()
	if err != nil {
		return nil, fmt.Errorf("connect to the embedded store: %w", err)
	}
	clients, err := bigtable.NewLocal(ctx, conn, bigtable.LocalInstance)
	if err != nil {
		return nil, err
	}
	return &Connection{Clients: clients, Bigtable: e.addr, Local: true}, nil
}

// close stops the server and waits for it.
func (e *embedded) close() error {
	err := e.server.Close()
	<-e.ended
	return errors.Join(err, e.err)
}

// watch returns when the server ends or ctx does: nil with ctx, else why.
func (e *embedded) watch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-e.ended:
		return fmt.Errorf("the embedded store has ended: %w", e.err)
	}
}
