package emulator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/attestry/attestry/emulator"
)

// together runs f in n goroutines, a number for each.
func together(ctx context.Context, g *errgroup.Group, n int, f func(ctx context.Context, i int) error) {
	for i := range n {
		g.Go(func() error { return f(ctx, i) })
	}
}

// TestEverythingAtOnce runs eight goroutines each of what is known to race in test
// servers. No answer is wrong, and nothing is left running.
func TestEverythingAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	w := start(t, vfs.NewMem(), "data", emulator.Options{})
	defer w.stop(t)
	w.createTable(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const workers = 8
	g, ctx := errgroup.WithContext(ctx)
	each := func(f func(ctx context.Context, i, round int) error) {
		together(ctx, g, workers, func(ctx context.Context, i int) error {
			for round := range rounds {
				if err := f(ctx, i, round); err != nil {
					return err
				}
			}
			return nil
		})
	}
	each(func(ctx context.Context, _, _ int) error { return samplesEnd(ctx, w) })
	each(func(ctx context.Context, i, round int) error {
		if i == 0 && round%10 == 9 {
			return w.dropPrefix(ctx, "d")
		}
		return w.dropPrefix(ctx, fmt.Sprintf("d%d", i))
	})
	// A row is written whole: both of its families, with the same value.
	each(func(ctx context.Context, i, round int) error {
		value := fmt.Sprintf("%d-%d", i, round)
		return w.tryMutate(ctx, fmt.Sprintf("d%d-%d", round%workers, i), deleteRow(), set("f", "a", 0, value), set("g", "b", 0, value))
	})
	each(func(ctx context.Context, _, round int) error { return wholeRows(ctx, w, round%2 == 1) })
	// Four goroutines each want one of two locks.
	each(func(ctx context.Context, i, _ int) error { return takeAndGive(ctx, w, fmt.Sprintf("lock%d", i%2)) })
	check(t, g.Wait())
	r, err := readRows(t.Context(), w.data, textOf(t, &btpb.ReadRowsRequest{}, `rows { row_ranges { start_key_closed: "lock" end_key_open: "locl" } }`))
	check(t, err)
	diff(t, "locks that are left", r.cells)
}

func samplesEnd(ctx context.Context, w *world) error {
	stream, err := w.data.SampleRowKeys(ctx, &btpb.SampleRowKeysRequest{TableName: table})
	if err != nil {
		return err
	}
	var keys []string
	offset := int64(0)
	for {
		res, err := stream.Recv()
		if err != nil {
			break
		}
		if res.GetOffsetBytes() < offset {
			return fmt.Errorf("offsets of samples go from %d to %d", offset, res.GetOffsetBytes())
		}
		keys, offset = append(keys, string(res.GetRowKey())), res.GetOffsetBytes()
	}
	if ctx.Err() == nil && (len(keys) == 0 || keys[len(keys)-1] != "" || !slices.IsSorted(keys[:len(keys)-1])) {
		return fmt.Errorf("samples are %q", keys)
	}
	return ctx.Err()
}

// wholeRows reads the rows d and looks at each.
func wholeRows(ctx context.Context, w *world, reversed bool) error {
	r, err := readRows(withReverse(ctx), w.data, &btpb.ReadRowsRequest{Reversed: reversed, Rows: &btpb.RowSet{RowRanges: []*btpb.RowRange{{
		StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte("d")}, EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte("e")},
	}}}})
	if err != nil {
		return err
	}
	var rows []string
	for row, cells := range contentsOf(r.cells) {
		rows = append(rows, row)
		a, b, _ := strings.Cut(strings.TrimSpace(cells), "\n")
		_, left, _ := strings.Cut(a, "=")
		_, right, _ := strings.Cut(b, "=")
		if left != right || left == "" {
			return fmt.Errorf("row %s was read in part: %q", row, cells)
		}
	}
	if len(rows) != r.rows {
		return fmt.Errorf("%d rows were read, %d of them different", r.rows, len(rows))
	}
	return nil
}

// takeAndGive makes a row if there is none, and takes away what it made, which
// nobody else may have done.
func takeAndGive(ctx context.Context, w *world, row string) error {
	mine := fmt.Sprintf("%p", &row)
	res, err := w.data.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{
		TableName: table, RowKey: []byte(row), FalseMutations: []*btpb.Mutation{set("f", "owner", 0, mine)},
	})
	if err != nil || res.GetPredicateMatched() {
		return err
	}
	res, err = w.data.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{
		TableName: table, RowKey: []byte(row), TrueMutations: []*btpb.Mutation{deleteRow()},
		PredicateFilter: &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(mine)}},
	})
	if err == nil && !res.GetPredicateMatched() {
		err = fmt.Errorf("row %s was taken from its owner", row)
	}
	return err
}

// TestCounters: increments and appends of many at once are all there, and each
// answer is another.
func TestCounters(t *testing.T) {
	w := newWorld(t)
	const workers, rounds = 8, 40
	seen := make([][]string, workers)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	together(ctx, g, workers, func(ctx context.Context, i int) error {
		for range rounds {
			res, err := w.data.ReadModifyWriteRow(ctx, &btpb.ReadModifyWriteRowRequest{TableName: table, RowKey: []byte("n"), Rules: []*btpb.ReadModifyWriteRule{
				incrementRule("f", "n", 1), appendRule("f", "text", "x"),
			}})
			if err != nil {
				return err
			}
			seen[i] = append(seen[i], string(res.GetRow().GetFamilies()[0].GetColumns()[0].GetCells()[0].GetValue()))
			if err := w.tryMutate(ctx, "n", addToCell("sum", "q", 0, 1)); err != nil {
				return err
			}
		}
		return nil
	})
	check(t, g.Wait())
	all := slices.Concat(seen...)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != workers*rounds {
		t.Errorf("%d different answers to %d increments", n, workers*rounds)
	}
	r, err := readRows(t.Context(), w.data, textOf(t, &btpb.ReadRowsRequest{}, `filter { cells_per_column_limit_filter: 1 }`))
	check(t, err)
	var values []string
	for _, c := range r.cells {
		_, value, _ := strings.Cut(c, "=")
		values = append(values, value)
	}
	diff(t, "counter, text and sum", values, bigEndian(workers*rounds), fmt.Sprintf("%d bytes", workers*rounds), bigEndian(workers*rounds))
}

// TestClaims: of many who claim each of many rows, one wins it.
func TestClaims(t *testing.T) {
	w := newWorld(t)
	const workers, rows = 16, 25
	won := make([][rows]bool, workers)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	together(ctx, g, workers, func(ctx context.Context, i int) error {
		for row := range rows {
			res, err := w.data.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{
				TableName: table, RowKey: fmt.Appendf(nil, "r%d", row), FalseMutations: []*btpb.Mutation{set("f", "\x80", 0, "\x80\xff")},
				// java-bigtable#63: a predicate on a binary value.
				PredicateFilter: &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte("\x80\xff")}},
			})
			if err != nil {
				return err
			}
			won[i][row] = !res.GetPredicateMatched()
		}
		return nil
	})
	check(t, g.Wait())
	for row := range rows {
		n := 0
		for i := range workers {
			if won[i][row] {
				n++
			}
		}
		if n != 1 {
			t.Errorf("row %d has %d winners", row, n)
		}
	}
}

// TestDropAndMore: 100 rows at timestamp 0, all dropped, the same 100, then 200
// (google-cloud-go#489), by one bulk request each, and after a restart.
func TestDropAndMore(t *testing.T) {
	fs := vfs.NewMem()
	w := start(t, fs, "data", emulator.Options{})
	w.createTable(t)
	write := func(n int, value string) []string {
		var entries []*btpb.MutateRowsRequest_Entry
		var want []string
		for i := range n {
			row := fmt.Sprintf("r%03d", i)
			entries = append(entries, bulkEntry(row, set("f", "a", 0, value)))
			want = append(want, row+"/f:a@0="+value)
		}
		got, err := bulk(t.Context(), w.data, entries...)
		check(t, err)
		for _, e := range got {
			check(t, entryError(e))
		}
		return want
	}
	read := func(what string, want ...string) {
		t.Helper()
		r, err := readRows(t.Context(), w.data, &btpb.ReadRowsRequest{})
		check(t, err)
		diff(t, what, r.cells, want...)
	}
	read("100", write(100, "1")...)
	check(t, w.dropAll(t.Context()))
	read("dropped")
	read("the same 100", write(100, "2")...)
	want := write(200, "3")
	read("200", want...)
	w.stop(t)
	w = start(t, fs, "data", emulator.Options{})
	defer func() { w.stop(t) }()
	read("200 after a restart", want...)
	check(t, w.dropAll(t.Context()))
	w.stop(t)
	w = start(t, fs, "data", emulator.Options{})
	read("dropped, after a restart")
	read("100 again", write(100, "4")...)
}
