package bigtable

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// indexPage is how many index rows are merged at once where all are asked for.
const indexPage = 1000

// Lookup reads index rows. Those of an index in several shards are merged.
func (s *Store) Lookup(ctx context.Context, l archive.Lookup) iter.Seq2[archive.Ref, error] {
	return func(yield func(archive.Ref, error) bool) {
		spans, err := l.Spans()
		if err != nil {
			yield(archive.Ref{}, err)
			return
		}
		shards := make(merge, len(spans))
		for i, sp := range spans {
			shards[i] = &shard{table: s.index, span: sp, lookup: l}
		}
		size := indexPage
		if l.Limit > 0 {
			size = l.Limit
		}
		for more := true; more; {
			page, err := shards.next(ctx, size)
			if err != nil {
				yield(archive.Ref{}, fmt.Errorf("look up %s: %w", spans[0].Prefix, err))
				return
			}
			for _, e := range page {
				if !yield(e.ref, nil) {
					return
				}
			}
			more = l.Limit <= 0 && len(page) == size
		}
	}
}

// IndexRows yields every row of the index in the order of keys; a row that cannot
// be read is yielded as an error, with its key, and the next follows. An error of
// the store is the last thing yielded and has no key.
func (s *Store) IndexRows(ctx context.Context) iter.Seq2[archive.IndexRow, error] {
	return func(yield func(archive.IndexRow, error) bool) {
		filter := bigtable.ChainFilters(bigtable.LatestNFilter(1), bigtable.StripValueFilter())
		stopped := false
		err := s.index.ReadRows(ctx, bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
			digests, err := decodeDigests(row)
			stopped = !yield(archive.IndexRow{Key: row.Key(), Digests: digests}, err)
			return !stopped
		}, bigtable.RowFilter(filter))
		if err != nil && !stopped {
			yield(archive.IndexRow{}, fmt.Errorf("scan the index: %w", err))
		}
	}
}

// merge brings the entries of shards into one order.
type merge []*shard

// next returns the next entries, fewer than size only when these are the last. What
// it reads beyond them is hardly more than the one entry of each shard that tells
// that no other of it belongs to them: each round reads of those shards alone whose
// last known entry comes early, and of each as many entries as nearly surely belong
// (of a number that falls on shards by chance, the mean less two standard deviations).
func (m merge) next(ctx context.Context, size int) ([]indexEntry, error) {
	for {
		known := m.known(size)
		open := m.open(known, size)
		if len(open) == 0 {
			page := known[:min(size, len(known))]
			for _, sh := range m {
				sh.drop(page)
			}
			return page, nil
		}
		missing, some := size-len(known), 1
		if len(known) > 0 {
			open = open[:(len(open)+1)/2]
		}
		if missing > 0 {
			open = open[:min(missing, len(open))]
			mean := float64(missing) / float64(len(m))
			some = max(some, int(mean-2*math.Sqrt(mean)))
		}
		if len(m) == 1 {
			some = max(some, missing)
		}
		if err := fill(ctx, open, some); err != nil {
			return nil, err
		}
	}
}

// open returns the shards of which an entry that is not known may still be one of the
// next ones, the one with the earliest last known entry first.
func (m merge) open(known []indexEntry, size int) []*shard {
	var open []*shard
	for _, sh := range m {
		if !sh.done && (len(sh.page) == 0 || len(known) < size || compareEntries(sh.last(), known[size-1]) < 0) {
			open = append(open, sh)
		}
	}
	slices.SortStableFunc(open, func(a, b *shard) int {
		if len(a.page) == 0 || len(b.page) == 0 {
			return cmp.Compare(len(a.page), len(b.page))
		}
		return compareEntries(a.last(), b.last())
	})
	return open
}

// fill reads up to size further entries of each shard, at once.
func fill(ctx context.Context, shards []*shard, size int) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, sh := range shards {
		g.Go(func() error { return sh.fill(ctx, size) })
	}
	return g.Wait()
}

// known returns the entries that were read and not answered yet: in order, if these
// are all that there are or as many as are asked for.
func (m merge) known(size int) []indexEntry {
	var all []indexEntry
	done := true
	for _, sh := range m {
		all = append(all, sh.page...)
		done = done && sh.done
	}
	if done || len(all) >= size {
		slices.SortFunc(all, compareEntries)
	}
	return all
}

// A shard is a run of index rows, read page by page.
type shard struct {
	table  *bigtable.Table
	span   archive.Span // what is still to be read
	lookup archive.Lookup
	page   []indexEntry
	done   bool
}

// indexEntry is an index row and its place among those of all shards.
type indexEntry struct {
	order       string
	newestFirst bool
	ref         archive.Ref
}

// compareEntries is the order in which entries are answered.
func compareEntries(a, b indexEntry) int {
	if a.newestFirst {
		a, b = b, a
	}
	return strings.Compare(a.order, b.order)
}

func (sh *shard) last() indexEntry { return sh.page[len(sh.page)-1] }

// drop leaves out what is answered.
func (sh *shard) drop(answered []indexEntry) {
	if len(answered) == 0 {
		return
	}
	last := answered[len(answered)-1]
	sh.page = slices.DeleteFunc(sh.page, func(e indexEntry) bool { return compareEntries(e, last) <= 0 })
}

func (sh *shard) fill(ctx context.Context, size int) error {
	opts := []bigtable.ReadOption{
		bigtable.LimitRows(int64(size)),
		bigtable.RowFilter(bigtable.ChainFilters(bigtable.LatestNFilter(1), bigtable.StripValueFilter())),
	}
	if sh.lookup.NewestFirst() {
		opts = append(opts, bigtable.ReverseScan())
	}
	if sh.span.Start >= sh.span.End {
		sh.done = true
		return nil
	}
	n := 0
	var bad error
	err := sh.table.ReadRows(ctx, bigtable.NewRange(sh.span.Start, sh.span.End), func(row bigtable.Row) bool {
		var entry indexEntry
		if entry, bad = sh.decode(row); bad != nil {
			return false
		}
		sh.page = append(sh.page, entry)
		if sh.lookup.NewestFirst() {
			sh.span.End = row.Key()
		} else {
			sh.span.Start = rowkey.Next(row.Key())
		}
		n++
		return true
	}, opts...)
	if bad != nil {
		return bad
	}
	sh.done = n < size
	return err
}

func (sh *shard) decode(row bigtable.Row) (indexEntry, error) {
	digests, err := decodeDigests(row)
	if err != nil {
		return indexEntry{}, err
	}
	ref, err := sh.lookup.Ref(archive.IndexRow{Key: row.Key(), Digests: digests})
	return indexEntry{order: row.Key()[len(sh.span.Prefix):], newestFirst: sh.lookup.NewestFirst(), ref: ref}, err
}

func decodeDigests(row bigtable.Row) ([]vaa.Digest, error) {
	digests := make([]vaa.Digest, 0, len(row[schema.Digests]))
	for _, item := range row[schema.Digests] {
		d, err := vaa.ParseDigest(qualifier(item))
		if err != nil {
			return nil, fmt.Errorf("index row %s: %w", row.Key(), err)
		}
		digests = append(digests, d)
	}
	return digests, nil
}
