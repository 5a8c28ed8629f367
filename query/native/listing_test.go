package native_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// records returns all records of an archive in the order of row keys.
func records(t testing.TB, a *querytest.Archive) []archive.Record {
	t.Helper()
	var all []archive.Record
	for r, err := range a.Store.Scan(context.Background(), archive.Range{}, archive.Columns{}) {
		must(t, err)
		all = append(all, r)
	}
	return all
}

func keysOf(records []archive.Record, keep func(r *archive.Record) bool) []string {
	keys := []string{}
	for i := range records {
		if keep(&records[i]) {
			keys = append(keys, rowkey.Of(records[i].ID))
		}
	}
	return keys
}

// TestFilters compares each filter, over row keys and over times, with the same
// choice made by hand.
func TestFilters(t *testing.T) {
	t.Parallel()
	a, err := querytest.Load(vaa.Testnet, collectedDir)
	must(t, err)
	tx := &archive.Link{TxID: "abc", Trust: archive.TrustChain, Source: "test"}
	for i := range uint64(20) {
		body := vaa.Body{Timestamp: 1600000000 + uint32(i), EmitterChain: 2, Sequence: i, EmitterAddress: vaa.Address{1}, Payload: []byte{byte(i)}}
		must(t, a.Observe(body, map[bool]*archive.Link{true: tx}[i%2 == 0]))
	}
	all := records(t, a)
	h := serve(t, a)
	const middle = 1600000010
	at := time.Unix(middle, 0).UTC()
	for query, keep := range map[string]func(r *archive.Record) bool{
		"signed=true":                   func(r *archive.Record) bool { return r.Signed() != nil },
		"signed=false":                  func(r *archive.Record) bool { return r.Signed() == nil },
		"linked=true":                   func(r *archive.Record) bool { return len(r.Links) > 0 },
		"linked=false&signed=false":     func(r *archive.Record) bool { return len(r.Links) == 0 && r.Signed() == nil },
		"guardianSetIndex=0":            func(r *archive.Record) bool { return r.Signed() != nil },
		"guardianSetIndex=4294967295":   func(*archive.Record) bool { return false },
		"payloadPrefix=01":              func(r *archive.Record) bool { return hasPrefix(r, 1) },
		"payloadPrefix=0x01&chain=2":    func(r *archive.Record) bool { return hasPrefix(r, 1) && r.ID.EmitterChain == 2 },
		"from=1600000010":               func(r *archive.Record) bool { return !r.Publication.Timestamp.Before(at) },
		"to=2020-09-13T12:26:50Z":       func(r *archive.Record) bool { return !r.Publication.Timestamp.After(at) },
		"from=1600000010&to=1600000010": func(r *archive.Record) bool { return r.Publication.Timestamp.Equal(at) },
		"from=" + url.QueryEscape("2020-09-13T14:26:49.5+02:00") + "&to=2020-09-13T12:26:50.999Z": func(r *archive.Record) bool {
			return r.Publication.Timestamp.Equal(at)
		},
		"from=0&signed=false&linked=true":   func(r *archive.Record) bool { return len(r.Links) > 0 },
		"from=0&prefix=2:&payloadPrefix=05": func(r *archive.Record) bool { return r.ID.EmitterChain == 2 && hasPrefix(r, 5) },
		"chain=2&emitter=" + vaa.Address{1}.String() + "&from=1600000010&linked=true": func(r *archive.Record) bool {
			return r.ID.EmitterAddress == vaa.Address{1} && r.ID.Sequence >= 10 && len(r.Links) > 0
		},
	} {
		want := keysOf(all, keep)
		for _, order := range []string{"asc", "desc"} {
			for _, limit := range []int{31, 1000} {
				target := fmt.Sprintf("/v1/attestations?order=%s&limit=%d&%s", order, limit, query)
				got := h.walk(t, target, func() {})
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("GET %s: %d messages, want %d", target, len(got), len(want))
				}
			}
		}
	}
}

func hasPrefix(r *archive.Record, b byte) bool {
	return len(r.Publication.Payload) > 0 && r.Publication.Payload[0] == b
}

// TestScanned holds that a filter that selects nothing is told how much was looked at,
// and goes on.
func TestScanned(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	for i := range uint64(25) {
		must(t, a.Observe(vaa.Body{Timestamp: uint32(i), EmitterChain: 2, Sequence: i}, nil))
	}
	h := serve(t, a)
	for _, listing := range []string{"signed=true", "signed=true&order=desc", "signed=true&from=0", "signed=true&from=0&order=desc"} {
		target, scanned := "/v1/attestations?limit=10&"+listing, []int{}
		for cursor := ""; ; {
			var got struct {
				Items      []any
				Pagination struct {
					Scanned int
					Next    *string
				}
			}
			must(t, json.Unmarshal(h.get(t, target+cursor, 200), &got))
			if len(got.Items) != 0 {
				t.Errorf("%s: items %v", listing, got.Items)
			}
			scanned = append(scanned, got.Pagination.Scanned)
			if got.Pagination.Next == nil {
				break
			}
			cursor = "&cursor=" + *got.Pagination.Next
		}
		if diff := cmp.Diff([]int{10, 10, 5}, scanned); diff != "" {
			t.Errorf("%s: scanned (-want +got): %s", listing, diff)
		}
	}
}

// TestDisplacedTime lists a message whose canonical VAA got another time under that
// time only.
func TestDisplacedTime(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	v := vaa.VAA{Version: 1, Body: vaa.Body{Timestamp: 100, EmitterChain: 2, Sequence: 1}}
	must(t, a.AddVAA(v.Append(nil), nil))
	v.Timestamp, v.GuardianSetIndex = 200, 1
	must(t, a.AddVAA(v.Append(nil), nil))
	h := serve(t, a)
	for target, want := range map[string]int{"to=150": 0, "from=150": 1, "from=0": 1} {
		if got := h.walk(t, "/v1/attestations?"+target, func() {}); len(got) != want {
			t.Errorf("%s: %v", target, got)
		}
	}
	if got := h.walk(t, "/v1/recent?limit=1", func() {}); len(got) != 1 {
		t.Errorf("recent: %v", got)
	}
}

// TestRecent walks the newest messages by offset and by cursor.
func TestRecent(t *testing.T) {
	t.Parallel()
	a, err := querytest.Load(vaa.Mainnet, collectedDir)
	must(t, err)
	h := serve(t, a)
	all := records(t, a)
	slices.SortFunc(all, func(a, b archive.Record) int {
		if c := b.Publication.Timestamp.Compare(*a.Publication.Timestamp); c != 0 {
			return c
		}
		return strings.Compare(rowkey.Of(b.ID), rowkey.Of(a.ID))
	})
	want := keysOf(all, func(*archive.Record) bool { return true })
	if got := h.walk(t, "/v1/recent?limit=33", func() {}); !slices.Equal(got, want) {
		t.Errorf("by cursor: %d messages, want %d in order", len(got), len(want))
	}
	for _, offset := range []int{0, 1, 50, len(want) - 1, len(want), 10000} {
		p := h.page(t, fmt.Sprintf("/v1/recent?limit=20&offset=%d", offset))
		var got []string
		for _, item := range p.Items {
			got = append(got, item.RowKey)
		}
		if from := min(offset, len(want)); !slices.Equal(got, want[from:min(from+20, len(want))]) {
			t.Errorf("offset %d: %v", offset, got)
		}
	}
	if p := h.page(t, "/v1/recent?chain=solana&limit=100"); len(p.Items) == 0 || !strings.HasPrefix(p.Items[0].RowKey, "1:") {
		t.Errorf("recent of Solana: %+v", p.Items)
	}
	shown := errorOf(t, h.do(http.MethodGet, "/v1/recent?offset=10001"))
	if shown.Status != 400 || shown.Parameter != "offset" || !strings.Contains(shown.Message, "fewer") {
		t.Errorf("offset beyond the end: %+v", shown)
	}
}

// TestBeyondOffset follows the cursor that an offset too large is answered with.
func TestBeyondOffset(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	const n = 10_003
	for i := range uint64(n) {
		must(t, a.Observe(vaa.Body{Timestamp: uint32(n - i), EmitterChain: 2, Sequence: i}, nil))
	}
	h := serve(t, a)
	shown := errorOf(t, h.do(http.MethodGet, "/v1/recent?offset=20000"))
	_, cursor, ok := strings.Cut(shown.Message, "cursor=")
	if shown.Status != 400 || shown.Parameter != "offset" || !ok {
		t.Fatalf("offset beyond the bound: %+v", shown)
	}
	p := h.page(t, "/v1/recent?column=Nonce&cursor="+cursor)
	if len(p.Items) != 3 || !strings.HasSuffix(p.Items[0].RowKey, ":00000000000000010000") {
		t.Errorf("from offset 10000 on: %+v", p.Items)
	}
	last := h.page(t, "/v1/recent?column=Nonce&limit=2&offset=10000")
	if len(last.Items) != 2 || last.Items[0] != p.Items[0] {
		t.Errorf("at offset 10000: %+v", last.Items)
	}
}

// TestRecipients finds the transfers to an address in every spelling, and walks them.
func TestRecipients(t *testing.T) {
	t.Parallel()
	a, err := querytest.Load(vaa.Mainnet, collectedDir)
	must(t, err)
	h := serve(t, a)
	type recipient struct {
		chain vaa.ChainID
		to    vaa.Address
	}
	want := map[recipient][]string{}
	for _, r := range records(t, a) {
		v, err := vaa.Parse(r.Signed().Bytes)
		must(t, err)
		kind, decoded, err := payload.Decode(vaa.Mainnet, &v.Body)
		if to, chain, ok := payload.Recipient(kind, decoded); ok && err == nil {
			want[recipient{chain, to}] = append(want[recipient{chain, to}], rowkey.Of(r.ID))
		}
	}
	if len(want) < 10 {
		t.Fatalf("%d recipients among the collected VAAs", len(want))
	}
	for to, keys := range want {
		spellings := []string{to.to.String(), "0x" + strings.ToUpper(to.to.String())}
		if native, ok := vaa.NativeAddress(to.chain, to.to); ok {
			spellings = append(spellings, native)
		}
		for _, spelling := range spellings {
			got := h.walk(t, fmt.Sprintf("/v1/recipients/%s?limit=1&chain=%d", spelling, to.chain), func() {})
			slices.Sort(got)
			if !slices.Equal(got, keys) {
				t.Errorf("transfers to %s on chain %d: %v, want %v", spelling, to.chain, got, keys)
			}
			if all := h.walk(t, "/v1/recipients/"+spelling+"?limit=1&order=asc", func() {}); len(all) < len(keys) {
				t.Errorf("transfers to %s: %v, want %v", spelling, all, keys)
			}
		}
	}
}

// TestEmitters walks the emitters of a chain by pages of every size.
func TestEmitters(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	want := []string{}
	for i := range 9 {
		address := vaa.Address{byte(i)}
		for _, sequence := range []uint64{0, 5, 1<<64 - 1 - uint64(i)} {
			must(t, a.Observe(vaa.Body{Timestamp: 7, EmitterChain: 2, EmitterAddress: address, Sequence: sequence}, nil))
			must(t, a.Observe(vaa.Body{Timestamp: 7, EmitterChain: 21, EmitterAddress: address, Sequence: sequence}, nil))
		}
		want = append(want, fmt.Sprint(address, " ", 1<<64-1-uint64(i)))
	}
	slices.Reverse(want)
	h := serve(t, a)
	for limit := range 10 {
		target, got := fmt.Sprintf("/v1/emitters?chain=ethereum&limit=%d", limit+1), []string{}
		for cursor := ""; ; {
			var page struct {
				Items []struct {
					EmitterAddress, NewestSequence, NewestTimestamp string
					Messages                                        *string
				}
				Pagination struct{ Next *string }
			}
			must(t, json.Unmarshal(h.get(t, target+cursor, 200), &page))
			for _, e := range page.Items {
				got = append(got, e.EmitterAddress+" "+e.NewestSequence)
				if e.NewestTimestamp != "1970-01-01T00:00:07Z" || e.Messages != nil {
					t.Errorf("emitter %+v", e)
				}
			}
			if page.Pagination.Next == nil {
				break
			}
			cursor = "&cursor=" + *page.Pagination.Next
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d: %s", limit+1, diff)
		}
	}
}

// TestRejects walks what was refused.
func TestRejects(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	want := []string{}
	for _, reason := range []string{"no_quorum", "wrong_key"} {
		for i := range 5 {
			r := archive.Reject{Reason: reason, Detail: "test", Source: "file", SHA256: [32]byte{byte(i)}, Bytes: []byte{1, 2}}
			must(t, a.Store.PutReject(context.Background(), r))
			want = append(want, reason+" "+hex.EncodeToString(r.SHA256[:]))
		}
	}
	h := serve(t, a)
	for limit := 1; limit <= 11; limit++ {
		target, got := fmt.Sprintf("/v1/rejects?limit=%d", limit), []string{}
		for cursor := ""; ; {
			var page struct {
				Items []struct {
					Reason, SHA256, Count string
					Bytes                 []byte
				}
				Pagination struct{ Next *string }
			}
			must(t, json.Unmarshal(h.get(t, target+cursor, 200), &page))
			for _, r := range page.Items {
				got = append(got, r.Reason+" "+r.SHA256)
				if r.Count != "1" || len(r.Bytes) != 2 {
					t.Errorf("reject %+v", r)
				}
			}
			if page.Pagination.Next == nil {
				break
			}
			cursor = "&cursor=" + *page.Pagination.Next
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
	}
}
