package emulator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/emulator"
	"github.com/attestry/attestry/internal/testenv"
)

// contents is what a table holds: the cells of its rows by their keys.
type contents map[string]string

func contentsOf(lines []string) contents {
	c := contents{}
	for _, line := range lines {
		row, _, _ := strings.Cut(line, "/")
		c[row] += line + "\n"
	}
	return c
}

// contents reads a table; one that is not there holds nothing.
func (w *world) contents(t *testing.T) contents {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := readRows(ctx, w.data, &btpb.ReadRowsRequest{})
	if err != nil && status.Code(err) != codes.NotFound {
		t.Fatal(err)
	}
	return contentsOf(r.cells)
}

// A loss is the disk as it is after a loss of power.
type loss struct {
	fs *vfs.MemFS
	// Requests that were acknowledged before and after the power was lost, which
	// happened between.
	from, to int
	during   string
}

// losses is a file system that notes what would be left of it before each write.
type losses struct {
	fs      *vfs.MemFS
	acked   atomic.Int64
	mu      sync.Mutex // guards all below
	rand    *rand.Rand
	all     []loss
	percent int // of what was not synced that survives
}

func (l *losses) wrapped() vfs.FS {
	return errorfs.Wrap(l.fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose {
			l.note(fmt.Sprintf("operation %d on %s", op.Kind, op.Path))
		}
		return nil
	}))
}

func (l *losses) note(during string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := int(l.acked.Load())
	clone := l.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: l.percent, RNG: l.rand})
	l.all = append(l.all, loss{clone, from, int(l.acked.Load()), during})
}

// history is a run of requests of every kind, and what the table holds after each.
type history struct {
	ops    []op
	states []contents // one more than ops
}

// newHistory draws requests, the first of which makes the table.
func newHistory(t *testing.T, r *rand.Rand, n int, now int64) *history {
	g := &generator{Rand: r, model: newModel(func() int64 { return now * 1000 }), clock: &atomic.Int64{}}
	h := &history{states: []contents{{}}}
	add := func(o op) {
		h.ops = append(h.ops, o)
		o.model(g.model)
		h.states = append(h.states, contentsOf(g.model.read(&btpb.ReadRowsRequest{})))
	}
	add(op{text: "create", do: func(ctx context.Context, w *world) ([]string, error) {
		_, err := w.tables.CreateTable(ctx, &adminpb.CreateTableRequest{Parent: parent, TableId: "t", Table: &adminpb.Table{
			ColumnFamilies: map[string]*adminpb.ColumnFamily{"f": {}, "g": {}, "h": {}, "sum": sumFamily(), "min": minFamily(), "max": maxFamily()},
		}})
		return nil, err
	}, model: func(m *model) []string {
		m.families = map[string]string{"f": "", "g": "", "h": "", "sum": "sum", "min": "min", "max": "max"}
		return nil
	}})
	for range n {
		add(g.op())
	}
	return h
}

// apply sends the i-th request and reports whether it was acknowledged.
func (h *history) apply(t *testing.T, w *world, i int) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := h.ops[i].do(ctx, w)
	if c := status.Code(err); c == codes.DeadlineExceeded {
		t.Fatalf("no answer to %s", h.ops[i].text)
	}
	return err == nil || status.Code(err) == codes.FailedPrecondition // an increment of text
}

// check compares what a server holds with the states between from and to, row by
// row: what was acknowledged is there, and of each row all or nothing of the next.
func (h *history) check(t *testing.T, what string, got contents, from, to int) {
	t.Helper()
	to = min(to, len(h.states)-1)
	allowed := map[string][]string{}
	for _, state := range h.states[from : to+1] {
		for row := range state {
			allowed[row] = nil
		}
	}
	for row := range got {
		allowed[row] = nil
	}
	for row := range allowed {
		for _, state := range h.states[from : to+1] {
			allowed[row] = append(allowed[row], state[row])
		}
		if !slices.Contains(allowed[row], got[row]) {
			t.Errorf("%s, with requests %d to %d under way (%s): row %q holds\n%q\nwant one of\n%q",
				what, from, to, h.ops[min(from, len(h.ops)-1)].text, row, got[row], slices.Compact(allowed[row]))
		}
	}
}

// TestPowerLostAtEveryWrite runs requests of every kind in several sessions, and
// loses power before each write to the disk, also while a server starts or stops.
func TestPowerLostAtEveryWrite(t *testing.T) {
	ops, pairs := 60, 10
	if testing.Short() {
		ops, pairs = 20, 40
	}
	o := emulator.Options{Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }}
	seed := testenv.Seed(t)
	for _, percent := range []int{0, 50} {
		r := rand.New(rand.NewPCG(seed, uint64(percent)))
		h := newHistory(t, r, ops, 1_700_000_000_000)
		l := &losses{fs: vfs.NewCrashableMem(), rand: r, percent: percent}
		for i := 0; i < len(h.ops); {
			w := start(t, l.wrapped(), "data", o)
			for end := min(len(h.ops), i+ops/3); i < end; i++ {
				if !h.apply(t, w, i) {
					t.Fatalf("refused: %s", h.ops[i].text)
				}
				l.acked.Add(1)
			}
			w.stop(t)
		}
		second := 0
		for i, loss := range l.all {
			what := fmt.Sprintf("%d%% of what was not synced, loss %d before %s", percent, i, loss.during)
			again := &losses{fs: loss.fs, rand: r, percent: percent}
			w, err := tryStart(again.wrapped(), "data", o)
			if err != nil {
				t.Errorf("%s: with %d to %d requests acknowledged: %v", what, loss.from, loss.to, err)
				continue
			}
			h.check(t, what, w.contents(t), loss.from, loss.to+1)
			w.stop(t)
			if i%pairs != 0 {
				continue
			}
			for j, loss2 := range again.all {
				second++
				what := fmt.Sprintf("%s, and again before %s", what, again.all[j].during)
				w, err := tryStart(loss2.fs, "data", o)
				if err != nil {
					t.Errorf("%s: with %d to %d requests acknowledged: %v", what, loss.from, loss.to, err)
					continue
				}
				h.check(t, what, w.contents(t), loss.from, loss.to+1)
				w.stop(t)
			}
		}
		t.Logf("%d losses of power, %d second ones while starting", len(l.all), second)
		if len(l.all) < 2*ops {
			t.Errorf("only %d writes were seen over %d requests", len(l.all), ops)
		}
	}
}
