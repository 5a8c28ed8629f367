package native_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/vaa"
)

type page struct {
	Items []struct {
		ID     string `json:"id"`
		RowKey string `json:"rowKey"`
	} `json:"items"`
	Pagination struct {
		Limit   int     `json:"limit"`
		HasMore bool    `json:"hasMore"`
		Next    *string `json:"next"`
	} `json:"pagination"`
}

func (h *harness) page(t testing.TB, target string) page {
	t.Helper()
	var p page
	must(t, json.Unmarshal(h.get(t, target, 200), &p))
	if p.Items == nil || p.Pagination.HasMore != (p.Pagination.Next != nil) || len(p.Items) > p.Pagination.Limit {
		t.Fatalf("GET %s: page %+v", target, p.Pagination)
	}
	return p
}

// walk returns the row keys of all pages; between is called after each page.
func (h *harness) walk(t testing.TB, target string, between func()) []string {
	t.Helper()
	var keys []string
	p := h.page(t, target)
	for {
		for _, item := range p.Items {
			keys = append(keys, item.RowKey)
		}
		if !p.Pagination.HasMore {
			return keys
		}
		between()
		p = h.page(t, target+"&cursor="+*p.Pagination.Next)
	}
}

// filled returns an archive of messages with equal timestamps on chains whose
// order as text is not that of their numbers, with sequences from all of uint64.
func filled(t testing.TB, r *rand.Rand, n int) (*querytest.Archive, map[string]bool) {
	t.Helper()
	a := querytest.New(vaa.Mainnet)
	keys := map[string]bool{}
	for range n {
		keys[insert(t, a, r)] = true
	}
	return a, keys
}

func insert(t testing.TB, a *querytest.Archive, r *rand.Rand) string {
	t.Helper()
	for {
		body := vaa.Body{
			Timestamp: 1700000000, EmitterChain: []vaa.ChainID{2, 10, 10002, 3}[r.IntN(4)], EmitterAddress: vaa.Address{31: byte(r.IntN(3))},
			Sequence: r.Uint64() >> r.UintN(64),
		}
		if _, ok := a.Store.Record(body.MessageID()); ok {
			continue
		}
		must(t, a.Observe(body, nil))
		return rowkey.Of(body.MessageID())
	}
}

// TestWalks walks all pages, in both orders, at every page size, while rows come
// in: each row that was there during the whole walk is on exactly one page.
func TestWalks(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for limit := 1; limit <= 100; limit++ {
		a, keys := filled(t, r, 105)
		h := serve(t, a)
		for _, order := range []string{"asc", "desc", "asc&from=1", "desc&to=1700000000"} {
			inserted, pages := map[string]bool{}, 0
			got := h.walk(t, fmt.Sprintf("/v1/attestations?order=%s&limit=%d&column=Nonce", order, limit), func() {
				if pages++; pages%16 == 1 {
					inserted[insert(t, a, r)] = true
				}
			})
			sorted := slices.Sorted(slices.Values(got))
			if len(slices.Compact(slices.Clone(sorted))) != len(got) {
				t.Fatalf("limit %d %s: a row is there twice", limit, order)
			}
			if strings.HasPrefix(order, "desc") {
				slices.Reverse(sorted)
			}
			if !slices.Equal(got, sorted) {
				t.Fatalf("limit %d %s: not in order", limit, order)
			}
			for _, key := range got {
				if !keys[key] && !inserted[key] {
					t.Fatalf("limit %d %s: row %s is nowhere", limit, order, key)
				}
			}
			for key := range keys {
				if !slices.Contains(got, key) {
					t.Fatalf("limit %d %s: row %s is on no page", limit, order, key)
				}
			}
			for key := range inserted {
				keys[key] = true
			}
		}
	}
}

// TestSelections compares each way to select with the same selection made by
// hand.
func TestSelections(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	a, keys := filled(t, r, 200)
	h := serve(t, a)
	emitter := vaa.Address{31: 1}
	const first, last = 1 << 20, 1 << 62
	for _, c := range []struct {
		query string
		keep  func(id vaa.MessageID) bool
	}{
		{"chain=10", func(id vaa.MessageID) bool { return id.EmitterChain == 10 }},
		{"prefix=10:", func(id vaa.MessageID) bool { return id.EmitterChain == 10 }},
		{"chain=sepolia&emitter=0x" + emitter.String()[24:], func(id vaa.MessageID) bool { return id.EmitterChain == 10002 && id.EmitterAddress == emitter }},
		{"prefix=10002:" + emitter.String(), func(id vaa.MessageID) bool { return id.EmitterChain == 10002 && id.EmitterAddress == emitter }},
		{"prefix=2:" + emitter.String() + ":", func(id vaa.MessageID) bool { return id.EmitterChain == 2 && id.EmitterAddress == emitter }},
		{"prefix=2:" + emitter.String() + ":0000", func(id vaa.MessageID) bool {
			return id.EmitterChain == 2 && id.EmitterAddress == emitter && id.Sequence <= 9999999999999999
		}},
		{"prefix=2:" + emitter.String() + ":1", func(id vaa.MessageID) bool {
			return id.EmitterChain == 2 && id.EmitterAddress == emitter && id.Sequence >= 10000000000000000000
		}},
		{fmt.Sprintf("chain=2&emitter=%s&firstSequence=%d&lastSequence=%d", emitter, first, uint64(last)), func(id vaa.MessageID) bool {
			return id.EmitterChain == 2 && id.EmitterAddress == emitter && id.Sequence >= first && id.Sequence <= last
		}},
		{fmt.Sprintf("chain=2&emitter=%s&lastSequence=%d", emitter, uint64(last)), func(id vaa.MessageID) bool {
			return id.EmitterChain == 2 && id.EmitterAddress == emitter && id.Sequence <= last
		}},
	} {
		var want []string
		for _, key := range slices.Sorted(mapsKeys(keys)) {
			id, err := rowkey.Parse(key)
			must(t, err)
			if c.keep(id) {
				want = append(want, key)
			}
		}
		for _, order := range []string{"asc", "desc"} {
			if got := h.walk(t, "/v1/attestations?limit=3&order="+order+"&"+c.query, func() {}); !slices.Equal(got, want) {
				t.Errorf("%s %s: %d rows %v, want %d", c.query, order, len(got), got, len(want))
			}
			slices.Reverse(want)
		}
	}
}

func mapsKeys(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestForeignCursors holds that a cursor continues its own listing only; page
// size and columns may change on the way.
func TestForeignCursors(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	a, _ := filled(t, r, 60)
	tx := &archive.Link{TxID: "abc", Trust: archive.TrustChain, Source: "test"}
	for i := range uint64(3) {
		must(t, a.Observe(vaa.Body{EmitterChain: 30, Sequence: i}, tx))
	}
	h := serve(t, a)
	emitter := vaa.Address{31: 1}.String()
	listings := []string{
		"/v1/attestations?limit=1",
		"/v1/attestations?limit=1&order=desc",
		"/v1/attestations?limit=1&chain=2",
		"/v1/attestations?limit=1&chain=10",
		"/v1/attestations?limit=1&chain=2&order=desc",
		"/v1/attestations?limit=1&chain=2&emitter=" + emitter,
		"/v1/attestations?limit=1&chain=2&emitter=" + emitter + "&firstSequence=0",
		"/v1/attestations?limit=1&chain=2&emitter=" + emitter + "&lastSequence=18446744073709551615",
		"/v1/attestations?limit=1&from=0",
		"/v1/attestations?limit=1&from=1",
		"/v1/attestations?limit=1&to=4294967295",
		"/v1/attestations?limit=1&from=0&order=desc",
		"/v1/attestations?limit=1&from=0&chain=2",
		"/v1/attestations?limit=1&from=0&signed=false",
		"/v1/attestations?limit=1&signed=false",
		"/v1/attestations?limit=1&signed=true",
		"/v1/attestations?limit=1&linked=true",
		"/v1/attestations?limit=1&payloadPrefix=00",
		"/v1/attestations?limit=1&payloadPrefix=0000",
		"/v1/attestations?limit=1&guardianSetIndex=0",
		"/v1/recent?limit=1",
		"/v1/recent?limit=1&chain=2",
		"/v1/emitters?limit=1&chain=2",
		"/v1/tx/abc?limit=1",
		"/v1/tx/abc?limit=1&chain=30",
	}
	for i, from := range listings {
		p := h.page(t, from)
		if p.Pagination.Next == nil {
			t.Fatalf("%s has one page only", from)
		}
		for j, to := range listings {
			want := 400
			if i == j {
				want = 200
			}
			if res := h.do(http.MethodGet, to+"&cursor="+*p.Pagination.Next); res.StatusCode != want {
				t.Errorf("cursor of %s for %s: status %d, want %d", from, to, res.StatusCode, want)
			}
		}
	}
	next := h.page(t, listings[0]).Pagination.Next
	h.page(t, "/v1/attestations?limit=7&column=Payload&family=MessagePublication&cursor="+*next)
}

// TestTxPages walks the messages of one transaction.
func TestTxPages(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	tx := &archive.Link{TxID: "5FfQ", Trust: archive.TrustChain, Source: "test"}
	var want []string
	for i := range uint64(25) {
		body := vaa.Body{EmitterChain: vaa.ChainID(1 + i%3), Sequence: i}
		must(t, a.Observe(body, tx))
		want = append(want, rowkey.Of(body.MessageID()))
	}
	slices.Sort(want)
	h := serve(t, a)
	for _, limit := range []int{1, 4, 24, 25, 26, 1000} {
		if got := h.walk(t, fmt.Sprintf("/v1/tx/5FfQ?limit=%d", limit), func() {}); !slices.Equal(got, want) {
			t.Errorf("limit %d: %v, want %v", limit, got, want)
		}
	}
	if got := h.walk(t, "/v1/tx/5FfQ?chain=2", func() {}); len(got) != 8 {
		t.Errorf("on chain 2: %v", got)
	}
	if got := h.page(t, "/v1/tx/5Ffq"); len(got.Items) != 0 {
		t.Errorf("base58 in another case: %v", got.Items)
	}
}
