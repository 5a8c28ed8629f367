package bigtable

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// indexPage is the most index rows that one read of a shard asks for.
const indexPage = 128

// Lookup reads index rows. An index in several shards is merged: a shard that ran
// dry is asked for its share of what is still to come, so that little is read
// beyond what was asked for.
func (s *Store) Lookup(ctx context.Context, l archive.Lookup) iter.Seq2[archive.Ref, error] {
	return func(yield func(archive.Ref, error) bool) {
		spans, err := l.Spans()
		if err != nil {
			yield(archive.Ref{}, err)
			return
		}
		shards := make([]*shard, len(spans))
		for i, sp := range spans {
			shards[i] = &shard{table: s.index, span: sp, lookup: l}
		}
		for n := 0; l.Limit <= 0 || n < l.Limit; n++ {
			size := indexPage
			if l.Limit > 0 {
				size = min(size, (l.Limit-n+len(shards)-1)/len(shards))
			}
			first, err := nextShard(ctx, shards, size)
			if err != nil {
				yield(archive.Ref{}, fmt.Errorf("look up %s: %w", spans[0].Prefix, err))
				return
			}
			if first == nil || !yield(first.pop(), nil) {
				return
			}
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

// nextShard refills the shards that ran dry, at once, by at most size rows each, and
// returns the one whose first entry comes next; nil when all are at their end.
func nextShard(ctx context.Context, shards []*shard, size int) (*shard, error) {
	g, ctx := errgroup.WithContext(ctx)
	for _, sh := range shards {
		if len(sh.page) == 0 && !sh.done {
			g.Go(func() error { return sh.fill(ctx, size) })
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var first *shard
	for _, sh := range shards {
		if len(sh.page) == 0 {
			continue
		}
		if first == nil {
			first = sh
		} else if c := strings.Compare(sh.page[0].order, first.page[0].order); c < 0 != sh.lookup.NewestFirst() && c != 0 {
			first = sh
		}
	}
	return first, nil
}

// A shard is a run of index rows, read page by page.
type shard struct {
	table  *bigtable.Table
	span   archive.Span // what is still to be read
	lookup archive.Lookup
	page   []indexEntry
	done   bool
}

type indexEntry struct {
	order string
	ref   archive.Ref
}

func (sh *shard) pop() archive.Ref {
	ref := sh.page[0].ref
	sh.page = sh.page[1:]
	return ref
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
	return indexEntry{order: row.Key()[len(sh.span.Prefix):], ref: ref}, err
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
