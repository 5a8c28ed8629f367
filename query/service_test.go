package query_test

import (
	"context"
	"encoding/base64"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/vaa"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestHalves works on each item once, and a panic of either half comes out.
func TestHalves(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 63, 64, 101} {
		seen := make([]int32, n)
		query.Halves(n, func(from, to int) {
			for i := from; i < to; i++ {
				atomic.AddInt32(&seen[i], 1)
			}
		})
		if slices.ContainsFunc(seen, func(times int32) bool { return times != 1 }) {
			t.Errorf("%d items: %v", n, seen)
		}
		for _, at := range []int{0, n - 1} {
			func() {
				defer func() {
					if r := recover(); n > 0 && r != "x" {
						t.Errorf("%d items, panic at %d: got %v", n, at, r)
					}
				}()
				query.Halves(n, func(from, to int) {
					if from <= at && at < to {
						panic("x")
					}
				})
			}()
		}
	}
}

func newService(t testing.TB, a *querytest.Archive) (*query.Service, *querytest.Reader) {
	t.Helper()
	network := a.Store.Info().Network
	sets, err := vaa.KnownGuardianSets(network)
	must(t, err)
	r := &querytest.Reader{Reader: a.Store}
	return query.New(r, network, func() vaa.GuardianSets { return sets }), r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ids(items []query.Attestation) []string {
	out := []string{}
	for i := range items {
		out = append(out, items[i].ID)
	}
	return out
}

// TestResolve finds messages by everything that names them.
func TestResolve(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	first := vaa.Body{Timestamp: 1, EmitterChain: 2, EmitterAddress: vaa.Address{31: 1}, Sequence: 7, Payload: []byte("a")}
	second := vaa.Body{Timestamp: 1, EmitterChain: 10, EmitterAddress: vaa.Address{31: 1}, Sequence: math.MaxUint64}
	evm := strings.Repeat("c0de", 16)
	must(t, a.Observe(first, &archive.Link{TxID: evm, Trust: archive.TrustChain, Source: "test"}))
	must(t, a.Observe(second, &archive.Link{TxID: evm, Trust: archive.TrustChain, Source: "test"}))
	// A third message whose transaction is called as the first one's digest.
	third := vaa.Body{Timestamp: 1, EmitterChain: 1, EmitterAddress: vaa.Address{31: 1}, Sequence: 9}
	must(t, a.Observe(third, &archive.Link{TxID: first.Digest().String(), Trust: archive.TrustChain, Source: "test"}))
	solana := "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
	fourth := vaa.Body{Timestamp: 1, EmitterChain: 1, EmitterAddress: vaa.Address{31: 2}, Sequence: 9}
	must(t, a.Observe(fourth, &archive.Link{TxID: solana, Trust: archive.TrustChain, Source: "test"}))
	base64ID := "a/b+c/d="
	fifth := vaa.Body{Timestamp: 1, EmitterChain: 1, EmitterAddress: vaa.Address{31: 3}, Sequence: 9}
	must(t, a.Observe(fifth, &archive.Link{TxID: base64ID, Trust: archive.TrustChain, Source: "test"}))

	id1, id2, id3, id4, id5 := first.MessageID().String(), second.MessageID().String(), third.MessageID().String(), fourth.MessageID().String(), fifth.MessageID().String()
	s, r := newService(t, a)
	get, both, tx := []string{"Get"}, []string{"Lookup", "Lookup", "GetAll"}, []string{"Lookup", "GetAll"}
	for _, c := range []struct {
		text        string
		want, calls []string
	}{
		{id1, []string{id1}, get},
		{" ethereum/0x0000000000000000000000000000000000000001/7\n", []string{id1}, get},
		{"10:" + second.EmitterAddress.String() + ":18446744073709551615", []string{id2}, get},
		{evm, []string{id2, id1}, both}, // row keys sort as text: "10:" is before "2:"
		{"0x" + strings.ToUpper(evm), []string{id2, id1}, both},
		{first.Digest().String(), []string{id3, id1}, both},
		{"0X" + strings.ToUpper(second.SingleDigest().String()), []string{id2}, both},
		{solana, []string{id4}, tx},
		{base64ID, []string{id5}, tx},
	} {
		r.Take()
		got, err := s.Resolve(context.Background(), c.text)
		must(t, err)
		if diff := cmp.Diff(c.want, ids(got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
		if diff := cmp.Diff(c.calls, r.Take()); diff != "" {
			t.Errorf("%q calls (-want +got):\n%s", c.text, diff)
		}
	}
	for text, code := range map[string]query.Code{
		"2/" + first.EmitterAddress.String() + "/8": query.NotFound,
		strings.Repeat("0", 64):                     query.NotFound,
		"nothing":                                   query.NotFound,
		"":                                          query.InvalidArgument,
		"2:12:7":                                    query.InvalidArgument,
		"ethereum/12/7":                             query.InvalidArgument,
		"what is this?":                             query.InvalidArgument,
	} {
		_, err := s.Resolve(context.Background(), text)
		shown, ok := errors.AsType[*query.Error](err)
		if !ok || shown.Code != code || errors.Is(err, archive.ErrNotFound) != (code == query.NotFound) {
			t.Errorf("%q: %v, want %s", text, err, code)
		}
	}
}

func TestResolveTooMany(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	for i := range uint64(query.MaxLimit + 1) {
		must(t, a.Observe(vaa.Body{EmitterChain: 2, Sequence: i}, &archive.Link{TxID: "abc", Trust: archive.TrustChain, Source: "test"}))
		if i == query.MaxLimit-1 {
			s, r := newService(t, a)
			got, err := s.Resolve(context.Background(), "abc")
			if err != nil || len(got) != query.MaxLimit || len(r.Calls) != 1+query.MaxLimit/archive.MaxBatchItems {
				t.Errorf("%d messages: %d, %v, %d calls", query.MaxLimit, len(got), err, len(r.Calls))
			}
		}
	}
	s, _ := newService(t, a)
	if _, err := s.Resolve(context.Background(), "abc"); query.AsError(err).Code != query.InvalidArgument {
		t.Errorf("%d messages: %v", query.MaxLimit+1, err)
	}
}

// TestMatches says of each digest that was looked up what became of it.
func TestMatches(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Devnet)
	v := vaa.VAA{Version: 1, Body: vaa.Body{Timestamp: 5, EmitterChain: 2, Sequence: 1}}
	won := v.Digest()
	must(t, a.AddVAA(v.Append(nil), nil))
	v.Nonce = 1
	lost := v.Digest()
	must(t, a.AddVAA(v.Append(nil), nil))
	body := vaa.Body{Timestamp: 5, EmitterChain: 2, Sequence: 2}
	vanished := body.Digest()
	must(t, a.Observe(body, nil))
	must(t, a.Vanish(body.MessageID()))
	body.Nonce = 1
	must(t, a.Observe(body, nil))
	s, _ := newService(t, a)
	for digest, standing := range map[vaa.Digest]string{
		won: query.StandingCanonical, lost: query.StandingConflict, vanished: query.StandingVanished, body.Digest(): query.StandingCanonical,
	} {
		page, err := s.ByDigest(context.Background(), digest, query.Paging{})
		must(t, err)
		if len(page.Items) != 1 {
			t.Fatalf("digest %s: %v", digest, ids(page.Items))
		}
		if diff := cmp.Diff([]query.Match{{Digest: digest, Standing: standing}}, page.Items[0].Matches); diff != "" {
			t.Errorf("digest %s: %s", digest, diff)
		}
	}
	// A single hash finds the signing digest.
	page, err := s.ByDigest(context.Background(), v.SingleDigest(), query.Paging{})
	must(t, err)
	if diff := cmp.Diff([]query.Match{{Digest: lost, Standing: query.StandingConflict}}, page.Items[0].Matches); diff != "" {
		t.Error(diff)
	}
}

// large is a reader of n messages with payloads of a size.
type large struct {
	archive.Reader
	n    uint64
	size int
}

func (l large) Scan(_ context.Context, r archive.Range, _ archive.Columns) iter.Seq2[archive.Record, error] {
	return func(yield func(archive.Record, error) bool) {
		first := uint64(0)
		if r.After != nil {
			first = r.After.Sequence + 1
		}
		for i := first; i < l.n; i++ {
			record := archive.Record{ID: vaa.MessageID{EmitterChain: 2, Sequence: i}}
			record.Publication.Payload = make([]byte, l.size)
			if !yield(record, nil) {
				return
			}
		}
	}
}

// TestPageBytes holds that a page of large messages ends early, and the walk
// misses none.
func TestPageBytes(t *testing.T) {
	t.Parallel()
	const n = 14
	s := query.New(large{n: n, size: 3 << 20}, vaa.Mainnet, func() vaa.GuardianSets { return vaa.GuardianSets{} })
	var got []string
	var sizes []int
	paging := query.Paging{}
	for {
		page, err := s.Scan(context.Background(), archive.Range{}, archive.Columns{}, paging)
		must(t, err)
		got, sizes = append(got, ids(page.Items)...), append(sizes, len(page.Items))
		if !page.Pagination.HasMore {
			break
		}
		paging.Cursor = *page.Pagination.Next
	}
	if len(got) != n || len(slices.Compact(slices.Clone(got))) != n {
		t.Errorf("walk gave %d items, want %d", len(got), n)
	}
	// 16 MiB are reached by the sixth payload of 3 MiB.
	if diff := cmp.Diff([]int{6, 6, 2}, sizes); diff != "" {
		t.Errorf("sizes of pages: %s", diff)
	}
	if _, err := s.Scan(context.Background(), archive.Range{}, archive.Columns{}, query.Paging{Limit: query.MaxLimit + 1}); query.AsError(err).Code != query.InvalidArgument {
		t.Errorf("limit over the maximum: %v", err)
	}
}

func TestCursorOutsideItsRange(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	must(t, a.Observe(vaa.Body{EmitterChain: 2, Sequence: 1}, nil))
	must(t, a.Observe(vaa.Body{EmitterChain: 2, Sequence: 2}, nil))
	s, _ := newService(t, a)
	chain := vaa.ChainID(2)
	page, err := s.Scan(context.Background(), archive.Range{Chain: &chain}, archive.Columns{}, query.Paging{Limit: 1})
	must(t, err)
	b, err := base64.RawURLEncoding.DecodeString(*page.Pagination.Next)
	must(t, err)
	b[10]++ // the chain's low byte
	_, err = s.Scan(context.Background(), archive.Range{Chain: &chain}, archive.Columns{}, query.Paging{Cursor: base64.RawURLEncoding.EncodeToString(b)})
	if shown := query.AsError(err); shown.Code != query.InvalidArgument || !strings.Contains(shown.Message, "not in this listing") {
		t.Errorf("a cursor of chain 3 in a listing of chain 2: %v", err)
	}
}

// FuzzCursor decodes anything as a cursor: an error of the one who asked, or a
// page that goes on where the cursor says.
func FuzzCursor(f *testing.F) {
	a := querytest.New(vaa.Mainnet)
	for i := range uint64(4) {
		must(f, a.Observe(vaa.Body{EmitterChain: 2, Sequence: i << 62}, nil))
	}
	s, _ := newService(f, a)
	cursor := ""
	for {
		page, err := s.Scan(context.Background(), archive.Range{}, archive.Columns{}, query.Paging{Limit: 1, Cursor: cursor})
		must(f, err)
		if !page.Pagination.HasMore {
			break
		}
		cursor = *page.Pagination.Next
		f.Add(cursor)
	}
	f.Add("AQ==")
	f.Add("!")
	f.Fuzz(func(t *testing.T, cursor string) {
		page, err := s.Scan(context.Background(), archive.Range{}, archive.Columns{}, query.Paging{Limit: 1, Cursor: cursor})
		if err != nil {
			if query.AsError(err).Code != query.InvalidArgument {
				t.Errorf("cursor %q: %v", cursor, err)
			}
			return
		}
		if page.Pagination.Next != nil && *page.Pagination.Next == cursor {
			t.Errorf("cursor %q leads to itself", cursor)
		}
	})
}

func TestParsePrefix(t *testing.T) {
	t.Parallel()
	chain, address := vaa.ChainID(2), vaa.Address{12: 0x3e, 31: 0x85}
	number := func(n uint64) *uint64 { return &n }
	for prefix, want := range map[string]archive.Range{
		"2:":                                 {Chain: &chain},
		"ethereum/":                          {Chain: &chain},
		"2:" + address.String():              {Chain: &chain, Emitter: &address},
		"2:" + address.String() + ":":        {Chain: &chain, Emitter: &address},
		"2:0x" + address.String()[24:] + ":": {Chain: &chain, Emitter: &address},
		"2:" + address.String() + ":0": {
			Chain: &chain, Emitter: &address,
			FirstSequence: number(0), LastSequence: number(9999999999999999999),
		},
		"2:" + address.String() + ":18446744073709551615": {
			Chain: &chain, Emitter: &address,
			FirstSequence: number(math.MaxUint64), LastSequence: number(math.MaxUint64),
		},
		"2:" + address.String() + ":1844674407370955161": {
			Chain: &chain, Emitter: &address,
			FirstSequence: number(18446744073709551610), LastSequence: number(math.MaxUint64),
		},
		"2:" + address.String() + ":00000000000000000007": {
			Chain: &chain, Emitter: &address,
			FirstSequence: number(7), LastSequence: number(7),
		},
	} {
		got, err := query.ParsePrefix(prefix)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", prefix, err, diff)
		}
	}
}
