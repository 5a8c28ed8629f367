package emulator_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/emulator"
	"github.com/attestry/attestry/internal/testenv"
)

// logWrites is a file system on which some writes and syncs of the log fail: the
// n-th for every n that fails reports, counted from when it was armed.
func logWrites(fs vfs.FS, armed *atomic.Bool, n *atomic.Int64, fails func(int64) bool) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if armed.Load() && strings.HasSuffix(op.Path, ".log") && fails(n.Add(1)) {
				return errorfs.ErrInjected
			}
		}
		return nil
	}))
}

// TestLogFails lets each write to the log fail, alone and with a later one. The
// caller hears of it, nothing hangs, and on a disk that is well again all that
// was acknowledged is there.
func TestLogFails(t *testing.T) {
	ops := 12
	if testing.Short() {
		ops = 5
	}
	o := emulator.Options{Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }}
	seed := testenv.Seed(t)
	for first := int64(1); ; first++ {
		seen := int64(0)
		for _, second := range []int64{0, 1, 3} {
			h := newHistory(t, rand.New(rand.NewPCG(seed, 3)), ops, 1_700_000_000_000)
			var armed atomic.Bool
			var n atomic.Int64
			mem := vfs.NewMem()
			w := start(t, logWrites(mem, &armed, &n, func(i int64) bool { return i == first || second > 0 && i == first+second }), "data", o)
			armed.Store(true)
			acked := 0
			for acked < len(h.ops) && h.apply(t, w, acked) {
				acked++
			}
			if n.Load() >= first && acked == len(h.ops) {
				t.Errorf("write %d to the log failed, and every request was acknowledged", first)
			}
			// What was refused is not made good by a later acknowledgement.
			later := w.tryMutate(t.Context(), "later", set("f", "q", 0, "x"))
			seen = n.Load()
			armed.Store(false)
			closeWithin(t, w, fmt.Sprintf("after write %d to the log failed", first))
			w = start(t, mem, "data", o)
			got := w.contents(t)
			if later == nil && got["later"] == "" {
				t.Errorf("a write after the failed one was acknowledged and lost")
			}
			delete(got, "later")
			h.check(t, fmt.Sprintf("write %d to the log failed", first), got, acked, acked+1)
			w.stop(t)
		}
		if t.Failed() || seen < first {
			t.Logf("%d writes failed", first-1)
			return
		}
	}
}

// closeWithin stops a server whose disk has failed, which may say so.
func closeWithin(t *testing.T, w *world, what string) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = errors.Join(w.conn.Close(), w.Close()) // the disk's error is no news
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: Close hangs", what)
	}
}

// TestRefusedIsNotSeen: a write that was refused because the log could not be
// written is seen by nobody, for nobody sees it when the server starts again.
func TestRefusedIsNotSeen(t *testing.T) {
	var armed atomic.Bool
	var n atomic.Int64
	mem := vfs.NewMem()
	w := start(t, logWrites(mem, &armed, &n, func(int64) bool { return true }), "data", emulator.Options{})
	w.createTable(t)
	armed.Store(true)
	if err := w.tryMutate(t.Context(), "r", set("f", "q", 0, "x")); err == nil {
		t.Fatal("acknowledged, with a log that cannot be written")
	} else if c := status.Code(err); c == codes.Unavailable || c == codes.Internal || c == codes.Unknown {
		t.Errorf("%v: clients try such a code again for ever", err)
	}
	if r, err := readRows(t.Context(), w.data, &btpb.ReadRowsRequest{}); err == nil && len(r.cells) > 0 {
		t.Errorf("a refused write is read: %q", r.cells)
	}
	res, err := w.data.CheckAndMutateRow(t.Context(), &btpb.CheckAndMutateRowRequest{TableName: table, RowKey: []byte("r"), TrueMutations: []*btpb.Mutation{deleteRow()}})
	if err == nil && res.GetPredicateMatched() {
		t.Error("a condition was decided by a refused write, and acknowledged")
	}
	armed.Store(false)
	closeWithin(t, w, "after the log failed")
}

// TestNoSyncRefuses: without syncs too a log that cannot be written is heard of.
func TestNoSyncRefuses(t *testing.T) {
	var armed atomic.Bool
	var n atomic.Int64
	w := start(t, logWrites(vfs.NewMem(), &armed, &n, func(int64) bool { return true }), "data", emulator.Options{NoSync: true})
	w.createTable(t)
	armed.Store(true)
	refused := false
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for i := range int64(100) {
		if err := w.tryMutate(ctx, "r", set("f", "q", i*1000, strings.Repeat("x", 4<<10))); err != nil {
			refused = true
			break
		}
	}
	if n.Load() > 0 && !refused {
		t.Error("100 writes of 4 KiB were acknowledged after the log could not be written")
	}
	armed.Store(false)
	closeWithin(t, w, "after the log failed")
}

// TestNoSyncSurvivesDeath: without syncs, what was acknowledged survives the death
// of the process, however sudden.
func TestNoSyncSurvivesDeath(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestDyingProcess$", "-test.count=1")
	cmd.Env = append(os.Environ(), dyingDir+"="+dir)
	if out, err := cmd.CombinedOutput(); err == nil || ctx.Err() != nil {
		t.Fatalf("the process was to be killed: %v\n%s", err, out)
	}
	w := start(t, nil, dir, emulator.Options{})
	defer w.stop(t)
	if got := w.contents(t); len(got) != 10 {
		t.Errorf("%d of 10 rows acknowledged are there", len(got))
	}
}

// dyingDir names the directory of the process that TestNoSyncSurvivesDeath starts.
const dyingDir = "EMULATOR_DYING_DIR"

// TestDyingProcess is that process, and nothing elsewhere.
func TestDyingProcess(t *testing.T) {
	dir := os.Getenv(dyingDir)
	if dir == "" {
		return
	}
	w := start(t, nil, dir, emulator.Options{NoSync: true})
	w.createTable(t)
	for i := range 10 {
		w.mutate(t, fmt.Sprint("r", i), set("f", "q", 0, "x"))
	}
	self, err := os.FindProcess(os.Getpid())
	check(t, err)
	check(t, self.Kill())
	select {} // until it is dead
}

// faultDir names the directory of the process that TestDiskFails starts.
const faultDir = "EMULATOR_FAULT_DIR"

// diskFaults are kinds of files that cannot be written from some moment on.
var diskFaults = map[string]func(errorfs.Op) bool{
	"log":          func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") && op.Kind != errorfs.OpCreate },
	"new log":      func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") && op.Kind == errorfs.OpCreate },
	"table files":  func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".sst") },
	"manifest":     func(op errorfs.Op) bool { return strings.Contains(op.Path, "MANIFEST") },
	"all the disk": func(errorfs.Op) bool { return true },
}

// TestDiskFails lets the disk fail for good under a stream of writes, in a process
// of its own: whatever the fault, every request is answered, the process ends
// neither in a panic nor in a hang, and what it acknowledged is there.
func TestDiskFails(t *testing.T) {
	for name := range diskFaults {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestFailingDisk$", "-test.count=1")
			cmd.Env = append(os.Environ(), faultDir+"="+dir, "EMULATOR_FAULT="+name)
			out, err := cmd.CombinedOutput()
			if ctx.Err() != nil {
				t.Errorf("the process hangs; its last words: %s", lastLine(out))
			}
			for _, sign := range []string{"panic: ", "fatal error: ", "hangs"} {
				if i := bytes.Index(out, []byte(sign)); i >= 0 {
					text, _, _ := bytes.Cut(out[i:], []byte("\n"))
					t.Errorf("the process ended with %v: %s", err, text)
					break
				}
			}
			w := start(t, nil, dir, emulator.Options{})
			got := w.contents(t)
			acked := 0
			for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
				if row, ok := strings.CutPrefix(lines.Text(), "acknowledged "); ok {
					if acked++; got[row] == "" {
						t.Errorf("row %s was acknowledged and is lost", row)
					}
				}
			}
			if acked == 0 {
				t.Errorf("nothing was acknowledged before the fault:\n%s", out)
			}
			w.stop(t)
		})
	}
}

func lastLine(out []byte) []byte {
	out = bytes.TrimSpace(out)
	return out[bytes.LastIndexByte(out, '\n')+1:]
}

// TestFailingDisk is the process of TestDiskFails, and nothing elsewhere.
func TestFailingDisk(t *testing.T) {
	dir := os.Getenv(faultDir)
	if dir == "" {
		return
	}
	fails := diskFaults[os.Getenv("EMULATOR_FAULT")]
	var armed atomic.Bool
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if armed.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose && fails(op) {
			return errorfs.ErrInjected
		}
		return nil
	}))
	w := start(t, fs, dir, emulator.Options{})
	w.createTable(t)
	refused, long := 0, 0
	for i := 0; i < 200 && refused < 20 && long < 2; i++ {
		if i == 5 {
			armed.Store(true)
		}
		row := fmt.Sprintf("r%04d", i)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		err := w.tryMutate(ctx, row, set("f", "q", 0, strings.Repeat("x", 1<<20)))
		cancel()
		switch {
		case err == nil:
			fmt.Fprintln(os.Stdout, "acknowledged "+row)
		case status.Code(err) == codes.DeadlineExceeded:
			fmt.Fprintln(os.Stdout, "the write of "+row+" hangs")
			long++
		default:
			refused++
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = errors.Join(w.conn.Close(), w.Close())
	}()
	select {
	case <-ended:
	case <-time.After(15 * time.Second):
		fmt.Fprintln(os.Stdout, "Close hangs")
		os.Exit(1)
	}
}
