package emulator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attestry/attestry/emulator"
	"github.com/attestry/attestry/internal/testenv"
)

// An op is a step of a random history: what it asks a server, and what the model
// says that the answer is. Both answers are text, a line an element.
type op struct {
	text  string
	do    func(ctx context.Context, w *world) ([]string, error)
	model func(m *model) []string
}

// subject is a server under a random history.
type subject struct {
	name   string
	w      *world
	every  int // operations between two restarts; 0: none
	reopen func() *world
}

// TestSameAnswers applies random histories to servers in memory, on disk, and
// restarted again and again, and compares their answers with the model's.
func TestSameAnswers(t *testing.T) {
	ops := 1500
	if testing.Short() {
		ops = 300
	}
	clock := &atomic.Int64{}
	clock.Store(1_700_000_000_000)
	o := emulator.Options{Now: func() time.Time { return time.UnixMilli(clock.Load()) }}
	restarted, dir := vfs.NewMem(), t.TempDir()
	subjects := []*subject{
		{name: "memory", w: start(t, vfs.NewMem(), "data", o)},
		{name: "disk", w: start(t, nil, dir, o), every: 200, reopen: func() *world { return start(t, nil, dir, o) }},
		{name: "restarted", w: start(t, restarted, "data", o), every: 20, reopen: func() *world { return start(t, restarted, "data", o) }},
	}
	seed := testenv.Seed(t)
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), model: newModel(func() int64 { return clock.Load() * 1000 }), clock: clock}
	g.run(t, ops, subjects)
}

// TestSameAsTestServer applies random histories of what the client library's test
// server does right, to it and to this server.
func TestSameAsTestServer(t *testing.T) {
	ops := 1000
	if testing.Short() {
		ops = 200
	}
	conn, err := grpc.NewClient(testenv.BTTest(t), grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(t, err)
	foreign := &world{conn: conn, data: btpb.NewBigtableClient(conn), tables: adminpb.NewBigtableTableAdminClient(conn)}
	seed := testenv.Seed(t)
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 2)), model: newModel(func() int64 { return 0 }), clock: &atomic.Int64{}, plain: true}
	g.run(t, ops, []*subject{
		{name: "this server", w: start(t, vfs.NewMem(), "data", emulator.Options{})},
		{name: "the test server", w: foreign},
	})
}

// run makes the table, applies ops random steps and stops the subjects.
func (g *generator) run(t *testing.T, ops int, subjects []*subject) {
	ctx := t.Context()
	for _, s := range subjects {
		defer func() {
			if s.w.Server == nil {
				check(t, s.w.conn.Close())
				return
			}
			s.w.stop(t)
		}()
		_, err := s.w.tables.CreateTable(ctx, &adminpb.CreateTableRequest{Parent: parent, TableId: "t", Table: &adminpb.Table{}})
		check(t, err)
	}
	history := []string{}
	apply := func(o op) {
		want := o.model(g.model)
		history = append(history, o.text)
		for _, s := range subjects {
			got, err := o.do(ctx, s.w)
			if err != nil {
				got = []string{status.Code(err).String()}
			}
			normalize(got)
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("%s answers otherwise than the model (-want +got):\n%s\nafter:\n%s", s.name, d, strings.Join(history[max(0, len(history)-30):], "\n"))
			}
		}
	}
	for _, family := range []string{"f", "g", "h"} {
		apply(g.addFamily(family, "", &adminpb.ColumnFamily{}))
	}
	if !g.plain {
		apply(g.addFamily("sum", "sum", sumFamily()))
		apply(g.addFamily("min", "min", minFamily()))
		apply(g.addFamily("max", "max", maxFamily()))
	}
	for i := range ops {
		g.clock.Add(g.Int64N(3))
		apply(g.op())
		apply(g.read())
		for _, s := range subjects {
			if s.every > 0 && i%s.every == s.every-1 {
				s.w.stop(t)
				s.w = s.reopen()
			}
		}
	}
}

// normalize orders cells of one row, column and time, whose order nothing fixes.
func normalize(lines []string) {
	place := func(line string) string { p, _, _ := strings.Cut(line, "="); return p }
	for i := 0; i < len(lines); {
		j := i + 1
		for j < len(lines) && place(lines[j]) == place(lines[i]) {
			j++
		}
		slices.Sort(lines[i:j])
		i = j
	}
}

// generator makes random steps.
type generator struct {
	*rand.Rand
	model *model
	clock *atomic.Int64
	plain bool // only what the client library's test server does right
}

func oneOf[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

func (g *generator) row() string {
	return oneOf(g, "a", "a\x00", "a\x00\x01", "a\x00\xff", "a\xff", "ab", "b", "\x00", "\x00\x00", "\xff", "\xff\xff", "c", strings.Repeat("long", 100))
}

func (g *generator) qualifier() string { return oneOf(g, "", "q", "q\x00", "q\x00q", "r", "\xff") }

func (g *generator) value() string { return oneOf(g, "", "x", "y", "xy", "z\nz", bigEndian(7), "\xff") }

// micros returns a time, one of which is after the server's.
func (g *generator) micros() int64 {
	return oneOf[int64](g, 0, 1000, 2000, 3000, 5000, 9000, 1_900_000_000_000_000)
}

// families returns names of the families there are: those of cells, or of
// aggregates.
func (g *generator) families(aggregates bool) []string {
	var out []string
	for name, kind := range g.model.families {
		if aggregates == (kind != "") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (g *generator) addFamily(name, kind string, f *adminpb.ColumnFamily) op {
	return op{"family " + name, func(ctx context.Context, w *world) ([]string, error) {
		return nil, w.families(ctx, createFamily(name, f))
	}, func(m *model) []string { m.families[name] = kind; return nil }}
}

func (g *generator) op() op {
	n := g.IntN(100)
	if g.plain {
		n %= 70
	}
	switch {
	case n < 40:
		return g.mutateOp(g.row(), g.mutations())
	case n < 45:
		return g.burst()
	case n < 58:
		return g.checkOp()
	case n < 60:
		return g.dropOp()
	case n < 70:
		return g.bulkOp()
	case n < 90:
		return g.modifyOp()
	default:
		return g.familyOp()
	}
}

func (g *generator) mutations() []*btpb.Mutation {
	var out []*btpb.Mutation
	plain := g.families(false)
	for range 1 + g.IntN(4) {
		family := oneOf(g, plain...)
		switch n := g.IntN(20); {
		case n < 11 || g.plain && n > 15:
			at := g.micros()
			if !g.plain && g.IntN(4) == 0 {
				at = -1
			}
			out = append(out, set(family, g.qualifier(), at, g.value()))
		case n == 11:
			out = append(out, deleteRow())
		case n == 12:
			out = append(out, deleteFamily(family))
		case n < 16:
			from, to := g.micros(), g.micros()
			if from >= to {
				to = 0
			}
			out = append(out, deleteColumn(family, g.qualifier(), from, to))
		case n < 19:
			out = append(out, addToCell(oneOf(g, g.families(true)...), g.qualifier(), g.micros(), g.Int64N(100)-50))
		default:
			out = append(out, mergeToCell(oneOf(g, g.families(true)...), g.qualifier(), g.micros(), bigEndian(g.Int64N(100)-50)))
		}
	}
	return out
}

func (g *generator) mutateOp(row string, mutations []*btpb.Mutation) op {
	return op{fmt.Sprintf("mutate %q %v", row, mutations), func(ctx context.Context, w *world) ([]string, error) {
		return nil, w.tryMutate(ctx, row, mutations...)
	}, func(m *model) []string { m.mutate(row, mutations); return nil }}
}

// burst writes more versions of a column than are deleted one by one.
func (g *generator) burst() op {
	var mutations []*btpb.Mutation
	family, qualifier := oneOf(g, g.families(false)...), g.qualifier()
	for i := range int64(20 + g.IntN(60)) {
		mutations = append(mutations, set(family, qualifier, i*1000, g.value()))
	}
	if g.IntN(2) == 0 {
		mutations = append(mutations, deleteColumn(family, qualifier, 3000, 70_000), set(family, qualifier, 5000, "after"))
	}
	return g.mutateOp(g.row(), mutations)
}

func (g *generator) checkOp() op {
	req := &btpb.CheckAndMutateRowRequest{TableName: table, RowKey: []byte(g.row()), TrueMutations: g.mutations()}
	if g.IntN(3) > 0 {
		req.PredicateFilter = g.filter(2)
	}
	if g.IntN(2) > 0 {
		req.FalseMutations = g.mutations()
	}
	return op{fmt.Sprintf("check %v", req), func(ctx context.Context, w *world) ([]string, error) {
		res, err := w.data.CheckAndMutateRow(ctx, req)
		return []string{fmt.Sprint(res.GetPredicateMatched())}, err
	}, func(m *model) []string { return []string{fmt.Sprint(m.check(req))} }}
}

func (g *generator) dropOp() op {
	prefix := oneOf(g, "", "a", "a\x00", "\xff", "\x00")
	return op{fmt.Sprintf("drop %q", prefix), func(ctx context.Context, w *world) ([]string, error) {
		if prefix == "" {
			return nil, w.dropAll(ctx)
		}
		return nil, w.dropPrefix(ctx, prefix)
	}, func(m *model) []string { m.dropRows(prefix); return nil }}
}

func (g *generator) bulkOp() op {
	var entries []*btpb.MutateRowsRequest_Entry
	for range 1 + g.IntN(6) {
		entries = append(entries, bulkEntry(g.row(), g.mutations()...))
	}
	return op{fmt.Sprintf("bulk %v", entries), func(ctx context.Context, w *world) ([]string, error) {
		got, err := bulk(ctx, w.data, entries...)
		for _, e := range got {
			if err == nil {
				err = entryError(e)
			}
		}
		return nil, err
	}, func(m *model) []string {
		for _, e := range entries {
			m.mutate(string(e.GetRowKey()), e.GetMutations())
		}
		return nil
	}}
}

func (g *generator) modifyOp() op {
	req := &btpb.ReadModifyWriteRowRequest{TableName: table, RowKey: []byte(g.row())}
	for range 1 + g.IntN(3) {
		family := oneOf(g, g.families(false)...)
		if g.IntN(2) == 0 {
			req.Rules = append(req.Rules, appendRule(family, g.qualifier(), g.value()))
		} else {
			req.Rules = append(req.Rules, incrementRule(family, g.qualifier(), g.Int64N(10)-5))
		}
	}
	return op{fmt.Sprintf("modify %v", req), func(ctx context.Context, w *world) ([]string, error) {
		res, err := w.data.ReadModifyWriteRow(ctx, req)
		return cellsOf(res.GetRow()), err
	}, func(m *model) []string {
		written, ok := m.modify(string(req.GetRowKey()), req.GetRules())
		if !ok {
			return []string{codes.FailedPrecondition.String()}
		}
		return written
	}}
}

// familyOp drops the families g or h, or makes them anew.
func (g *generator) familyOp() op {
	name := oneOf(g, "g", "h")
	_, there := g.model.families[name]
	if !there {
		return g.addFamily(name, "", &adminpb.ColumnFamily{})
	}
	changes := []*adminpb.ModifyColumnFamiliesRequest_Modification{dropFamily(name)}
	again := g.IntN(2) == 0 // at once
	if again {
		changes = append(changes, createFamily(name, &adminpb.ColumnFamily{}))
	}
	return op{fmt.Sprintf("drop family %s, made anew: %t", name, again), func(ctx context.Context, w *world) ([]string, error) {
		return nil, w.families(ctx, changes...)
	}, func(m *model) []string {
		m.dropFamily(name)
		if again {
			m.families[name] = ""
		}
		return nil
	}}
}

func (g *generator) read() op {
	req := &btpb.ReadRowsRequest{TableName: table, Rows: g.rows(), Reversed: g.IntN(4) == 0}
	if g.IntN(3) > 0 {
		req.Filter = g.filter(3)
	}
	if !g.plain { // the test server counts rows without cells too
		req.RowsLimit = oneOf[int64](g, 0, 0, 1, 2, 5)
	}
	return op{fmt.Sprintf("read %v", req), func(ctx context.Context, w *world) ([]string, error) {
		r, err := readRows(withReverse(ctx), w.data, proto.CloneOf(req))
		return r.cells, err
	}, func(m *model) []string {
		lines := m.read(req)
		normalize(lines)
		return lines
	}}
}

func (g *generator) rows() *btpb.RowSet {
	set := &btpb.RowSet{}
	for range g.IntN(3) {
		set.RowKeys = append(set.RowKeys, []byte(g.row()))
	}
	for range g.IntN(3) {
		start, end := g.row(), g.row()
		if start > end {
			start, end = end, start
		}
		r := &btpb.RowRange{StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte(start)}}
		if g.IntN(2) == 0 && end > start+"\x00" {
			r.StartKey = &btpb.RowRange_StartKeyOpen{StartKeyOpen: []byte(start)}
		}
		switch {
		case g.IntN(5) == 0: // no end
		case g.IntN(2) == 0 && end > start+"\x00":
			r.EndKey = &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte(end)}
		case end > start:
			r.EndKey = &btpb.RowRange_EndKeyClosed{EndKeyClosed: []byte(end)}
		}
		set.RowRanges = append(set.RowRanges, r)
	}
	return set
}

// filter returns a random filter, at most so deep. What changes cells comes last:
// nothing fixes the order of unlike cells of one place and time, which counting
// would show.
func (g *generator) filter(depth int) *btpb.RowFilter {
	f := g.selection(depth)
	if g.IntN(4) > 0 {
		return f
	}
	change := &btpb.RowFilter{Filter: &btpb.RowFilter_StripValueTransformer{StripValueTransformer: true}}
	if !g.plain && g.IntN(2) == 0 {
		change = &btpb.RowFilter{Filter: &btpb.RowFilter_ApplyLabelTransformer{ApplyLabelTransformer: "l-1"}}
	}
	if !g.plain && g.IntN(4) == 0 {
		some := chainOf(g.leaf(), &btpb.RowFilter{Filter: &btpb.RowFilter_Sink{Sink: true}})
		f = &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: []*btpb.RowFilter{f, some}}}}
	}
	return chainOf(f, change)
}

func chainOf(filters ...*btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: filters}}}
}
