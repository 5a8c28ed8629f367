package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"cloud.google.com/go/bigtable"
)

const (
	tableName  = "bench"
	bulkName   = "bulk write"
	emitters   = 16
	cells      = 10 // of a row
	valueBytes = 120
	batchRows  = 100
	cellTime   = bigtable.Timestamp(1_700_000_000_000_000)
)

func familyNames() []string { return []string{"MessagePublication", "QuorumState"} }

// rowKey returns the key of the n-th row; rows of an emitter are neighbours.
func rowKey(n, rows int) string {
	perEmitter := (rows + emitters - 1) / emitters
	return fmt.Sprintf("%05d:%064x:%020d", 1+n/perEmitter, 0xabcd00+n/perEmitter, n%perEmitter)
}

// mutation sets the ten cells of the n-th row to random bytes, as a signature or a
// hash is.
func mutation(n int) *bigtable.Mutation {
	m := bigtable.NewMutation()
	random := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	for i := range cells {
		value := make([]byte, valueBytes)
		random.Read(value) //nolint:errcheck // documented never to fail
		m.Set(familyNames()[i*2/cells], fmt.Sprintf("column-%d", i), cellTime, value)
	}
	return m
}

// workload is something that clients do.
type workload struct {
	name     string
	inFlight int
	// total is the number of operations; 0: as many as the time allows.
	total int
	unit  string
	// op does the n-th operation and returns how many units that was.
	op func(ctx context.Context, t *bigtable.Table, n int) (int, error)
	// atLeast is the ratio to cbtemulator that is asked for; 0: none.
	atLeast float64
}

func workloads(rows int) []workload {
	at := func(small, large float64) float64 {
		if rows >= 1_000_000 {
			return large
		}
		return small
	}
	list := []workload{{name: bulkName, inFlight: 4, total: (rows + batchRows - 1) / batchRows, unit: "rows", op: bulk(rows), atLeast: 1}}
	for _, n := range []int{1, 16, 64} {
		list = append(list, workload{name: fmt.Sprintf("point read, %d in flight", n), inFlight: n, unit: "rows", op: point(rows), atLeast: 1})
	}
	family := bigtable.FamilyFilter("QuorumState")
	list = append(list,
		workload{name: "miss, 16 in flight", inFlight: 16, unit: "reads", op: miss(rows), atLeast: 1},
		workload{name: "multi-get of 100, 4 in flight", inFlight: 4, unit: "rows", op: multi(rows), atLeast: 1},
		workload{name: "scan", inFlight: 1, total: 1, unit: "rows", op: scan(rows, nil), atLeast: 1.5},
		workload{name: "scan, family filter", inFlight: 1, total: 1, unit: "rows", op: scan(rows, family), atLeast: 2.5},
		workload{
			name: "scan, family and column filter", inFlight: 1, total: 1, unit: "rows",
			op: scan(rows, bigtable.ChainFilters(family, bigtable.ColumnFilter("column-7"))), atLeast: 2.5,
		},
		workload{name: "page of 100", inFlight: 4, unit: "pages", op: page(rows), atLeast: at(2, 15)},
		workload{name: "newest of an emitter", inFlight: 1, unit: "reads", op: newest(rows), atLeast: at(50, 300)},
		workload{name: "first of the table", inFlight: 1, unit: "reads", op: first, atLeast: 4000},
	)
	// Writes come last: what they leave to be merged would burden the reads.
	for _, n := range []int{1, 16, 64} {
		list = append(list,
			workload{name: fmt.Sprintf("write a new row, %d in flight", n), inFlight: n, unit: "rows", op: single(rows, n), atLeast: 1},
			workload{name: fmt.Sprintf("write a row anew, %d in flight", n), inFlight: n, unit: "rows", op: rewrite(rows), atLeast: 1},
			workload{name: fmt.Sprintf("conditional write, %d in flight", n), inFlight: n, unit: "rows", op: conditional(rows), atLeast: 1},
		)
	}
	return list
}

func bulk(rows int) func(context.Context, *bigtable.Table, int) (int, error) {
	return func(ctx context.Context, t *bigtable.Table, n int) (int, error) {
		var keys []string
		var mutations []*bigtable.Mutation
		for i := n * batchRows; i < min((n+1)*batchRows, rows); i++ {
			keys, mutations = append(keys, rowKey(i, rows)), append(mutations, mutation(i))
		}
		errs, err := t.ApplyBulk(ctx, keys, mutations)
		if err == nil && errs != nil {
			err = fmt.Errorf("an entry of the bulk: %w", errs[0])
		}
		return len(keys), err
	}
}

// single writes the next row of each emitter in turn; the rows of a series have
// numbers of their own.
func single(rows, series int) func(context.Context, *bigtable.Table, int) (int, error) {
	m := mutation(1)
	return func(ctx context.Context, t *bigtable.Table, n int) (int, error) {
		last := rowKey(n%emitters*(rows/emitters), rows)
		return 1, t.Apply(ctx, fmt.Sprintf("%s%020d", last[:len(last)-20], series*100_000_000+n/emitters), m)
	}
}

func rewrite(rows int) func(context.Context, *bigtable.Table, int) (int, error) {
	m := mutation(1)
	return func(ctx context.Context, t *bigtable.Table, n int) (int, error) {
		return 1, t.Apply(ctx, rowKey(rand.IntN(rows), rows), m)
	}
}

func conditional(rows int) func(context.Context, *bigtable.Table, int) (int, error) {
	predicate := bigtable.ChainFilters(bigtable.FamilyFilter("MessagePublication"), bigtable.ColumnFilter("column-0"), bigtable.CellsPerRowLimitFilter(1))
	m := bigtable.NewCondMutation(predicate, mutation(2), nil)
	return func(ctx context.Context, t *bigtable.Table, n int) (int, error) {
		return 1, t.Apply(ctx, rowKey(rand.IntN(rows), rows), m)
	}
}

func point(rows int) func(context.Context, *bigtable.Table, int) (int, error) {
	return func(ctx context.Context, t *bigtable.Table, n int) (int, error) {
		row, err := t.ReadRow(ctx, rowKey(rand.IntN(rows), rows))
		return 1, wanted(1, len(row)/2, err)
	}
}

func miss(rows int) func(context.Context, *bigtable.Table, int) (int, error) {
	return func(ctx context.Context, t *bigtable.Table, n int) (int, error) {
		row, err := t.ReadRow(ctx, rowKey(rand.IntN(rows), rows)+missing)
		return 1, wanted(0, len(row), err)
	}
}

func multi(rows int) func(context.Context, *bigtable.Table, int) (int, error) {
	return func(ctx context.Context, t *bigtable.Table, n int) (int, error) {
		var keys bigtable.RowList
		seen := map[int]bool{}
		for len(keys) < 100 {
			if i := rand.IntN(rows); !seen[i] {
				seen[i] = true
				keys = append(keys, rowKey(i, rows))
			}
		}
		got, err := count(ctx, t, keys)
		return got, wanted(100, got, err)
	}
}

func scan(rows int, filter bigtable.Filter) func(context.Context, *bigtable.Table, int) (int, error) {
	return func(ctx context.Context, t *bigtable.Table, n int) (int, error) {
		var options []bigtable.ReadOption
		if filter != nil {
			options = append(options, bigtable.RowFilter(filter))
		}
		got, err := count(ctx, t, bigtable.InfiniteRange(""), options...)
		return got, wanted(rows, got, err)
	}
}

func page(rows int) func(context.Context, *bigtable.Table, int) (int, error) {
	return func(ctx context.Context, t *bigtable.Table, n int) (int, error) {
		got, err := count(ctx, t, bigtable.InfiniteRange(rowKey(rand.IntN(rows-100), rows)), bigtable.LimitRows(100))
		return 1, wanted(100, got, err)
	}
}

func newest(rows int) func(context.Context, *bigtable.Table, int) (int, error) {
	return func(ctx context.Context, t *bigtable.Table, n int) (int, error) {
		key := rowKey(rand.IntN(rows), rows)
		got, err := count(ctx, t, bigtable.PrefixRange(key[:len(key)-20]), bigtable.LimitRows(1), bigtable.ReverseScan())
		return 1, wanted(1, got, err)
	}
}

func first(ctx context.Context, t *bigtable.Table, _ int) (int, error) {
	got, err := count(ctx, t, bigtable.InfiniteRange(""), bigtable.LimitRows(1))
	return 1, wanted(1, got, err)
}

func count(ctx context.Context, t *bigtable.Table, set bigtable.RowSet, options ...bigtable.ReadOption) (int, error) {
	n := 0
	err := t.ReadRows(ctx, set, func(bigtable.Row) bool { n++; return true }, options...)
	return n, err
}

func wanted(want, got int, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("got %d, want %d", got, want)
	}
	return err
}

// inParallel calls op with 0, 1, … in as many goroutines as asked for, until it
// returns false or an error, and returns the first error.
func inParallel(goroutines int, op func(n int) (bool, error)) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	next := 0
	take := func(err error) (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		failed = cmp.Or(failed, err)
		next++
		return next - 1, failed == nil
	}
	for range goroutines {
		wg.Go(func() {
			n, more := take(nil)
			for more {
				ok, err := op(n)
				if n, more = take(err); !ok {
					return
				}
			}
		})
	}
	wg.Wait()
	return failed
}
