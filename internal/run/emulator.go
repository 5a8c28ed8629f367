package run

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/attestry/attestry/emulator"
)

// EmulatorConfig is what the Bigtable server alone is started with.
type EmulatorConfig struct {
	DataDir string // made when it is missing; the same as an archive's
	Listen  string // host:port; port 0 is any free one
	// NoSync and GCOnRead are the server's options of the same names.
	NoSync, GCOnRead bool
	// Ready is called once with the address that is listened on.
	Ready func(addr string)
}

// Emulator runs the embedded store without an archive until ctx ends. Errors:
// ErrServed when another process has the data directory open.
func Emulator(ctx context.Context, c EmulatorConfig) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server, err := emulator.Create(storeDir(c.DataDir), emulator.Options{NoSync: c.NoSync, GCOnRead: c.GCOnRead})
	if err != nil {
		if errors.Is(err, emulator.ErrLocked) {
			err = fmt.Errorf("%w: another command works on it: %w", ErrServed, err)
		}
		return errors.Join(fmt.Errorf("open the store of %s: %w", c.DataDir, err), l.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	c.Ready(l.Addr().String())
	select {
	case <-ctx.Done():
		return errors.Join(server.Close(), <-ended)
	case err := <-ended:
		return errors.Join(err, server.Close())
	}
}
