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

// indexPage is the number of index rows that one read of a shard asks for.
const indexPage = 128

// Lookup reads index rows. An index in several shards is merged page by page, so
// that no more than a page of each shard is read beyond what was asked for.
func (s *Store) Lookup(ctx context.Context, l archive.Lookup) iter.Seq2[archive.Ref, error] {
	return func(yield func(archive.Ref, error) bool) {
		prefixes, err := l.Prefixes()
		if err != nil {
			yield(archive.Ref{}, err)
			return
		}
		shards := make([]*shard, len(prefixes))
		for i, p := range prefixes {
			shards[i] = newShard(s.index, p, l)
		}
		for n := 0; l.Limit <= 0 || n < l.Limit; n++ {
			first, err := nextShard(ctx, shards)
			if err != nil {
				yield(archive.Ref{}, fmt.Errorf("look up %s: %w", prefixes[0], err))
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

// nextShard refills the shards that ran dry, at once, and returns the one whose
// first entry comes next; nil when all are at their end.
func nextShard(ctx context.Context, shards []*shard) (*shard, error) {
	g, ctx := errgroup.WithContext(ctx)
	for _, sh := range shards {
		if len(sh.page) == 0 && !sh.done {
			g.Go(func() error { return sh.fill(ctx) })
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

// A shard is a run of index rows with one prefix, read page by page.
type shard struct {
	table      *bigtable.Table
	prefix     string
	lookup     archive.Lookup
	start, end string // what is still to be read
	page       []indexEntry
	done       bool
	size       int
}

type indexEntry struct {
	order string
	ref   archive.Ref
}

func newShard(table *bigtable.Table, prefix string, l archive.Lookup) *shard {
	size := indexPage
	if l.Limit > 0 {
		size = min(size, l.Limit)
	}
	return &shard{table: table, prefix: prefix, lookup: l, start: prefix, end: rowkey.PrefixEnd(prefix), size: size}
}

func (sh *shard) pop() archive.Ref {
	ref := sh.page[0].ref
	sh.page = sh.page[1:]
	return ref
}

func (sh *shard) fill(ctx context.Context) error {
	opts := []bigtable.ReadOption{
		bigtable.LimitRows(int64(sh.size)),
		bigtable.RowFilter(bigtable.ChainFilters(bigtable.LatestNFilter(1), bigtable.StripValueFilter())),
	}
	if sh.lookup.NewestFirst() {
		opts = append(opts, bigtable.ReverseScan())
	}
	if sh.start >= sh.end {
		sh.done = true
		return nil
	}
	n := 0
	var bad error
	err := sh.table.ReadRows(ctx, bigtable.NewRange(sh.start, sh.end), func(row bigtable.Row) bool {
		var entry indexEntry
		if entry, bad = sh.decode(row); bad != nil {
			return false
		}
		sh.page = append(sh.page, entry)
		if sh.lookup.NewestFirst() {
			sh.end = row.Key()
		} else {
			sh.start = rowkey.Next(row.Key())
		}
		n++
		return true
	}, opts...)
	if bad != nil {
		return bad
	}
	sh.done = n < sh.size
	return err
}

func (sh *shard) decode(row bigtable.Row) (indexEntry, error) {
	id, err := rowkey.Indexed(row.Key())
	if err != nil {
		return indexEntry{}, err
	}
	digests, err := decodeDigests(row)
	if err != nil {
		return indexEntry{}, err
	}
	return indexEntry{order: sh.lookup.Order(row.Key(), sh.prefix), ref: archive.Ref{ID: id, Digests: digests}}, nil
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
