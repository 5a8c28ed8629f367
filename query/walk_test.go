package query_test

import (
	"context"
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
)

const second = 1700000000

// simultaneous is a reader of messages that all have one VAA time, so that the order
// of times is that of row keys.
type simultaneous struct {
	archive.Reader
	keys []string // sorted
}

func (s *simultaneous) insert(id vaa.MessageID) bool {
	key := rowkey.Of(id)
	at, ok := slices.BinarySearch(s.keys, key)
	if !ok {
		s.keys = slices.Insert(s.keys, at, key)
	}
	return !ok
}

// behind yields the keys behind one in an order.
func (s *simultaneous) behind(after *vaa.MessageID, descending bool, limit int) iter.Seq[string] {
	return func(yield func(string) bool) {
		at, step := 0, 1
		if descending {
			at, step = len(s.keys)-1, -1
		}
		if after != nil {
			var ok bool
			at, ok = slices.BinarySearch(s.keys, rowkey.Of(*after))
			switch {
			case descending:
				at--
			case ok:
				at++
			}
		}
		for n := 0; at >= 0 && at < len(s.keys) && n < limit; n++ {
			if !yield(s.keys[at]) {
				return
			}
			at += step
		}
	}
}

func digestOf(id vaa.MessageID) (d vaa.Digest) {
	binary.BigEndian.PutUint64(d[:], id.Sequence)
	return d
}

func recordOf(id vaa.MessageID) archive.Record {
	digest, at := digestOf(id), time.Unix(second, 0)
	return archive.Record{ID: id, Publication: archive.Publication{Digest: &digest, Timestamp: &at, Offset: 1}}
}

func (s *simultaneous) Scan(_ context.Context, r archive.Range, _ archive.Columns) iter.Seq2[archive.Record, error] {
	return func(yield func(archive.Record, error) bool) {
		for key := range s.behind(r.After, r.Descending, r.Limit) {
			id, err := rowkey.Parse(key)
			if !yield(recordOf(id), err) {
				return
			}
		}
	}
}

func (s *simultaneous) Lookup(_ context.Context, l archive.Lookup) iter.Seq2[archive.Ref, error] {
	return func(yield func(archive.Ref, error) bool) {
		var after *vaa.MessageID
		if l.After != nil {
			after = &l.After.ID
		}
		for key := range s.behind(after, l.NewestFirst(), l.Limit) {
			id, err := rowkey.Parse(key)
			if !yield(archive.Ref{ID: id, UnixSeconds: second, Digests: []vaa.Digest{digestOf(id)}}, err) {
				return
			}
		}
	}
}

func (s *simultaneous) GetAll(_ context.Context, ids []vaa.MessageID, _ archive.Columns) (map[vaa.MessageID]archive.Record, error) {
	out := make(map[vaa.MessageID]archive.Record, len(ids))
	for _, id := range ids {
		out[id] = recordOf(id)
	}
	return out, nil
}

// TestWalkOfEqualTimes walks all pages of 10,000 messages of one second, in both
// orders, at every page size from 1 to 100, while others come in: each message that
// was there during the whole walk is on exactly one page, in its place.
func TestWalkOfEqualTimes(t *testing.T) {
	t.Parallel()
	const n = 10_000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	next := func() vaa.MessageID {
		return vaa.MessageID{
			EmitterChain:   []vaa.ChainID{4242, 42420, 7000, 9}[random.IntN(4)],
			EmitterAddress: vaa.Address{31: byte(random.IntN(3))}, Sequence: random.Uint64() >> random.UintN(64),
		}
	}
	reader := &simultaneous{}
	for len(reader.keys) < n {
		reader.insert(next())
	}
	initial := slices.Clone(reader.keys)
	s := query.New(reader, vaa.Mainnet, func() vaa.GuardianSets { return vaa.GuardianSets{} })
	from := time.Unix(second-1, 0)
	columns := archive.Columns{Qualifiers: []string{"Nonce"}}
	step := 1
	if testing.Short() {
		step = 11
	}
	for limit := 1; limit <= 100; limit += step {
		listings := []archive.Range{
			{Where: archive.Where{FirstTime: &from}},
			{Where: archive.Where{FirstTime: &from}, Descending: true},
		}
		if limit%33 == 1 {
			listings = append(listings, archive.Range{}, archive.Range{Descending: true})
		}
		for _, r := range listings {
			reader.keys = slices.Clone(initial)
			got := walk(t, reader, next, limit, func(p query.Paging) (*query.Page, error) {
				return s.Scan(context.Background(), r, columns, p)
			})
			if r.Descending {
				slices.Reverse(got)
			}
			checkWalk(t, reader, initial, got, limit)
		}
	}
	reader.keys = slices.Clone(initial)
	got := walk(t, reader, next, 100, func(p query.Paging) (*query.Page, error) {
		return s.Recent(context.Background(), nil, columns, p)
	})
	slices.Reverse(got)
	checkWalk(t, reader, initial, got, 100)
}

// walk returns the row keys of all pages; a message comes in every few pages.
func walk(t *testing.T, reader *simultaneous, next func() vaa.MessageID, limit int, page func(query.Paging) (*query.Page, error)) []string {
	t.Helper()
	var got []string
	p := query.Paging{Limit: limit}
	for pages := 0; ; pages++ {
		page, err := page(p)
		must(t, err)
		if len(page.Items) > limit {
			t.Fatalf("limit %d: %d items", limit, len(page.Items))
		}
		for i := range page.Items {
			got = append(got, page.Items[i].RowKey)
		}
		if !page.Pagination.HasMore {
			return got
		}
		if p.Cursor = *page.Pagination.Next; pages%64 == 0 || limit > 50 {
			reader.insert(next())
		}
	}
}

// checkWalk takes what a walk found, ascending.
func checkWalk(t *testing.T, reader *simultaneous, initial, got []string, limit int) {
	t.Helper()
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Fatalf("limit %d: not in order, or a message is there twice", limit)
	}
	at := 0
	for _, key := range got {
		if at < len(initial) && key == initial[at] {
			at++
		} else if _, ok := slices.BinarySearch(reader.keys, key); !ok {
			t.Fatalf("limit %d: message %s is nowhere", limit, key)
		}
	}
	if at != len(initial) {
		t.Fatalf("limit %d: message %s is on no page", limit, initial[at])
	}
}
