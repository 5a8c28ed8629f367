package run

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Files of a data directory.
const (
	lockFile  = "LOCK"
	serveFile = "serve.json"
)

// A lock that is only being looked at is free again at once, so that taking it
// is tried for a moment.
const (
	lockAttempts = 20
	lockPause    = 25 * time.Millisecond
)

// Endpoints is what a running serve leaves in its data directory, so that other
// commands and tools find it.
type Endpoints struct {
	ID  string `json:"id"` // random for each start
	PID int    `json:"pid"`
	// Bigtable is the address of the Bigtable server, as for
	// BIGTABLE_EMULATOR_HOST, or projects/<project>/instances/<instance>.
	Bigtable string `json:"bigtable"`
	// Redis is the address of the embedded Redis; nil when another is used.
	Redis *string `json:"redis"`
	HTTP  string  `json:"http"` // host:port on the loopback interface
}

// ErrServed says that another serve holds a data directory.
var ErrServed = errors.New("data directory is in use")

// errNotServed says that no serve holds a data directory.
var errNotServed = errors.New("data directory is not in use")

// dataDir is a data directory that this process holds.
type dataDir struct {
	path string
	lock *os.File
}

// holdDir makes a data directory if there is none and takes its lock. Errors:
// ErrServed.
func holdDir(ctx context.Context, path string) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w; name another by --data-dir", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w; name another by --data-dir", err)
	}
	for attempt := range lockAttempts {
		if attempt > 0 {
			pause(ctx, lockPause)
		}
		if err = flock(lock, syscall.LOCK_EX); !errors.Is(err, syscall.EWOULDBLOCK) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		lock.Close() //nolint:errcheck // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, servedError(path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	d := &dataDir{path: path, lock: lock}
	// What a killed predecessor left must not be taken for this process's word.
	if err := d.remove(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

func servedError(path string) error {
	who := "another attestry serve"
	if e, err := readEndpoints(path); err == nil {
		who = fmt.Sprintf("%s (process %d, http://%s)", who, e.PID, e.HTTP)
	}
	return fmt.Errorf("%s is held by %s: %w; stop that one, or give this one its own by --data-dir", path, who, ErrServed)
}

// publish writes the endpoints for others to read, with a new id and this
// process's pid.
func (d *dataDir) publish(e Endpoints) error {
	e.ID, e.PID = rand.Text(), os.Getpid()
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", serveFile, err)
	}
	name := filepath.Join(d.path, serveFile)
	if err := os.WriteFile(name+".new", append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", serveFile, err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("write %s: %w", serveFile, err)
	}
	return nil
}

func (d *dataDir) remove() error {
	if err := os.Remove(filepath.Join(d.path, serveFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", serveFile, err)
	}
	return nil
}

// close gives the directory up.
func (d *dataDir) close() error { return errors.Join(d.remove(), d.lock.Close()) }

// findServe returns what the serve that holds a data directory has left there.
// Errors: errNotServed when the directory's lock is free, whatever lies there.
func findServe(path string) (Endpoints, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Endpoints{}, errNotServed
	}
	if err != nil {
		return Endpoints{}, fmt.Errorf("look at the lock of %s: %w", path, err)
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	switch err := flock(lock, syscall.LOCK_SH); {
	case err == nil:
		return Endpoints{}, errNotServed
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return Endpoints{}, fmt.Errorf("look at the lock of %s: %w", path, err)
	}
	e, err := readEndpoints(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Endpoints{}, fmt.Errorf("attestry serve on %s is just starting or stopping; try again in a moment", path)
	}
	return e, err
}

func readEndpoints(path string) (Endpoints, error) {
	var e Endpoints
	data, err := os.ReadFile(filepath.Join(path, serveFile))
	if err != nil {
		return e, fmt.Errorf("read where attestry serve is: %w", err)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("read %s: %w; restart attestry serve", filepath.Join(path, serveFile), err)
	}
	return e, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
