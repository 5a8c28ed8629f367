package run

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Its dials outlive the client by their own timeout.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDataDir follows a directory from nothing to held, found and free again.
func TestDataDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "data")
	if _, err := findServe(path); !errors.Is(err, errNotServed) {
		t.Fatalf("before anything: %v", err)
	}
	dir, err := holdDir(t.Context(), path)
	must(t, err)
	if _, err := findServe(path); err == nil || errors.Is(err, errNotServed) {
		t.Fatalf("held and not ready: %v", err)
	}
	redis := "127.0.0.1:2"
	must(t, dir.publish(Endpoints{Bigtable: "127.0.0.1:1", Redis: &redis, HTTP: "127.0.0.1:3"}))
	got, err := findServe(path)
	must(t, err)
	if got.Bigtable != "127.0.0.1:1" || *got.Redis != redis || got.HTTP != "127.0.0.1:3" || got.PID != os.Getpid() || got.ID == "" {
		t.Errorf("found %+v", got)
	}
	info, err := os.Stat(filepath.Join(path, serveFile))
	must(t, err)
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("%s has mode %o", serveFile, mode)
	}
	if _, err := holdDir(t.Context(), path); !errors.Is(err, ErrServed) {
		t.Errorf("held twice: %v", err)
	}
	must(t, dir.close())
	if _, err := findServe(path); !errors.Is(err, errNotServed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestDataDirStale takes no notice of what a killed serve has left.
func TestDataDirStale(t *testing.T) {
	path := t.TempDir()
	dir, err := holdDir(t.Context(), path)
	must(t, err)
	must(t, dir.publish(Endpoints{Bigtable: "127.0.0.1:1", HTTP: "127.0.0.1:3"}))
	must(t, dir.lock.Close()) // as the end of a process does
	if _, err := findServe(path); !errors.Is(err, errNotServed) {
		t.Errorf("lock free: %v", err)
	}
	again, err := holdDir(t.Context(), path)
	must(t, err)
	if _, err := findServe(path); err == nil {
		t.Error("the predecessor's endpoints are taken for those of the next serve")
	}
	must(t, again.close())
}

// TestDataDirRace lets many take the directory while others look at it: one gets
// it, whoever looks.
func TestDataDirRace(t *testing.T) {
	path := t.TempDir()
	must(t, os.WriteFile(filepath.Join(path, lockFile), nil, 0o600))
	var wg sync.WaitGroup
	held := make(chan *dataDir, 4)
	for range 4 {
		wg.Go(func() {
			for range 200 {
				findServe(path) //nolint:errcheck // either answer is right meanwhile
			}
		})
		wg.Go(func() {
			dir, err := holdDir(t.Context(), path)
			switch {
			case err == nil:
				held <- dir
			case !errors.Is(err, ErrServed):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(held); n != 1 {
		t.Fatalf("%d hold the directory", n)
	}
	must(t, (<-held).close())
}
