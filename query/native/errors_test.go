package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
)

// answer is the JSON of an error, with its status.
type answer struct {
	Status    int        `json:"-"`
	Code      query.Code `json:"code"`
	Message   string     `json:"message"`
	Parameter string     `json:"parameter"`
}

// errorOf decodes an error: its JSON has at least these three keys.
func errorOf(t testing.TB, res *http.Response) answer {
	t.Helper()
	got := answer{Status: res.StatusCode}
	body := readAll(t, res)
	if ct := res.Header.Get("Content-Type"); ct != "application/json" && ct != "application/problem+json" {
		t.Errorf("content type %q of %s", ct, body)
	}
	if cc := res.Header.Get("Cache-Control"); cc != "no-store" {
		t.Errorf("cache control %q of an error", cc)
	}
	var keys map[string]any
	must(t, json.Unmarshal(body, &keys))
	must(t, json.Unmarshal(body, &got))
	if _, ok := keys["parameter"]; !ok || keys["code"] == nil || keys["message"] == nil {
		t.Errorf("shape of an error: %s", body)
	}
	return got
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	a, l := lifecycleArchive(t)
	h := serve(t, a)
	address := l.quorum.EmitterAddress.String()
	one := "/v1/attestations/" + l.quorum.String()
	for _, c := range []struct{ target, parameter, message string }{
		{"/v1/attestations/65536/" + address + "/7", "chain", "65535"},
		{"/v1/attestations/-1/" + address + "/7", "chain", "65535"},
		{"/v1/attestations/65537/" + address + "/7", "chain", "65535"},
		{"/v1/attestations/99999999/" + address + "/7", "chain", "65535"},
		{"/v1/attestations/etherium/" + address + "/7", "chain", "etherium"},
		{"/v1/attestations/2/" + address + "00/7", "emitter", "33 bytes"},
		{"/v1/attestations/2/0x12z/7", "emitter", "not hexadecimal"},
		{"/v1/attestations/2/" + address + "/18446744073709551616", "sequence", "18446744073709551615"},
		{"/v1/attestations/2/" + address + "/-1", "sequence", "digits only"},
		{"/v1/attestations/2/" + address + "/%00", "sequence", "digits only"},
		{"/v1/attestations/%ff%fe/" + address + "/1", "chain", "unknown"},
		{"/v1/attestations/", "id", "chain/emitter/sequence"},
		{"/v1/attestations/" + address, "id", "1 parts"},
		{"/v1/attestations/2:" + address + ":x", "id", "sequence"},
		{one + "/", "id", "4 parts"},
		{one + "?colum=Payload", "colum", "format, family, column"},
		{one + "?column=payload", "column", "Payload"},
		{one + "?family=Quorum", "family", "QuorumState"},
		{one + "?family=QuorumState&column=Payload", "column", "SignedVAA"},
		{one + "?format=xml", "format", "base64"},
		{one + "?format=raw&format=hex", "format", "once"},
		{one + "?format=raw&column=Payload", "column", "leave one"},
		{one + "?a=%zz", "", "%XX"},
		{one + "?a;b", "", "joined by &"},
		{"/v1/attestations?chain=65536", "chain", "65535"},
		{"/v1/attestations?chain=", "chain", "empty"},
		{"/v1/attestations?emitter=" + address, "chain", "add chain="},
		{"/v1/attestations?chain=2&emitter=12", "emitter", "1 bytes"},
		{"/v1/attestations?chain=2&firstSequence=1", "emitter", "add chain= and emitter="},
		{"/v1/attestations?chain=2&emitter=" + address + "&firstSequence=x", "firstSequence", "decimal"},
		{"/v1/attestations?chain=2&emitter=" + address + "&lastSequence=1e3", "lastSequence", "decimal"},
		{"/v1/attestations?chain=2&emitter=" + address + "&firstSequence=9&lastSequence=8", "lastSequence", "swap"},
		{"/v1/attestations?prefix=2", "prefix", "2:"},
		{"/v1/attestations?prefix=", "prefix", "colon"},
		{"/v1/attestations?prefix=2:abc", "prefix", "odd number"},
		{"/v1/attestations?prefix=2:" + address + ":7", "prefix", "leading zeros"},
		{"/v1/attestations?prefix=2:" + address + ":000000000000000000001", "prefix", "20"},
		{"/v1/attestations?prefix=2:" + address + ":0:1", "prefix", "decimal"},
		{"/v1/attestations?prefix=2:&chain=2", "prefix", "leave one"},
		{"/v1/attestations?order=up", "order", "asc or desc"},
		{"/v1/attestations?limit=0", "limit", "1 to 1000"},
		{"/v1/attestations?limit=1001", "limit", "1 to 1000"},
		{"/v1/attestations?limit=-5", "limit", "1 to 1000"},
		{"/v1/attestations?limit=ten", "limit", "1 to 1000"},
		{"/v1/attestations?limit=1&limit=2", "limit", "once"},
		{"/v1/attestations?cursor=", "cursor", "empty"},
		{"/v1/attestations?cursor=abc!", "cursor", "damaged"},
		{"/v1/attestations?cursor=Ag", "cursor", "damaged"},
		{"/v1/attestations?cursor=AQ", "cursor", "version 1"},
		{"/v1/attestations?offset=5", "offset", "limit"},
		{"/v1/attestations?from=yesterday", "from", "Unix seconds"},
		{"/v1/attestations?from=2024-13-01T00:00:00Z", "from", "no time"},
		{"/v1/attestations?from=4294967296", "from", "2106"},
		{"/v1/attestations?to=-1", "to", "1970"},
		{"/v1/attestations?from=9&to=8", "to", "swap"},
		{"/v1/attestations?payloadPrefix=abc", "payloadPrefix", "even number"},
		{"/v1/attestations?payloadPrefix=", "payloadPrefix", "hex"},
		{"/v1/attestations?payloadPrefix=" + strings.Repeat("00", 257), "payloadPrefix", "256"},
		{"/v1/attestations?guardianSetIndex=-1", "guardianSetIndex", "4294967295"},
		{"/v1/attestations?signed=1", "signed", "true or false"},
		{"/v1/attestations?linked=", "linked", "true or false"},
		{"/v1/attestations?versions=2", "versions", "latest"},
		{one + "?format=hex&versions=latest", "versions", "leave one"},
		{one + "/repaired?format=xml", "format", "base64"},
		{"/v1/attestations/65536/" + address + "/7/repaired", "chain", "65535"},
		{"/v1/attestations/2:12:7/repaired", "id", "1 bytes"},
		{"/v1/recent?limit=101", "limit", "1 to 100"},
		{"/v1/recent?offset=-1", "offset", "0 to 10000"},
		{"/v1/recent?offset=x", "offset", "0 to 10000"},
		{"/v1/recent?offset=1&cursor=AQ", "offset", "leave one"},
		{"/v1/recent?chain=99999999", "chain", "65535"},
		{"/v1/recipients/12", "address", "1 bytes"},
		{"/v1/recipients/%00", "address", "hexadecimal"},
		{"/v1/recipients/%ff%fe?chain=1", "address", "base58"},
		{"/v1/recipients/0x3ee18B2214AFF97000D974cf647E7C347E8fa585?chain=solana", "address", "20 bytes"},
		{"/v1/recipients/" + address + "?order=newest", "order", "asc or desc"},
		{"/v1/emitters", "chain", "add chain="},
		{"/v1/emitters?chain=-1", "chain", "65535"},
		{"/v1/emitters?chain=2&limit=101", "limit", "1 to 100"},
		{"/v1/conflicts?chain=65536", "chain", "65535"},
		{"/v1/conflicts?emitter=1", "emitter", "chain, limit, cursor"},
		{"/v1/guardian-sets?limit=1", "limit", "takes none"},
		{"/v1/rejects?cursor=x", "cursor", "damaged"},
		{"/v1/status?chain=%00", "chain", "unknown"},
		{"/v1/tx/", "txid", "empty"},
		{"/v1/tx/0xzz", "txid", "hexadecimal"},
		{"/v1/tx/a%00b", "txid", "character"},
		{"/v1/tx/" + strings.Repeat("a", 300) + "z", "txid", "256"},
		{"/v1/tx/ab?chain=nowhere", "chain", "unknown"},
		{"/v1/tx/ab?format=raw", "format", "chain, limit, cursor"},
		{"/v1/digests/abc", "digest", "64"},
		{"/v1/digests/" + strings.Repeat("g", 64), "digest", "hexadecimal"},
	} {
		got := errorOf(t, h.do(http.MethodGet, c.target))
		if got.Status != 400 || got.Code != query.InvalidArgument || got.Parameter != c.parameter || !strings.Contains(got.Message, c.message) {
			t.Errorf("GET %s: %+v, want parameter %q and a message with %q", c.target, got, c.parameter, c.message)
		}
		if calls := h.reader.Take(); calls != nil {
			t.Errorf("GET %s: asked the store: %v", c.target, calls)
		}
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	a, l := lifecycleArchive(t)
	h := serve(t, a)
	for _, target := range []string{"/v1/search", "/v1/attestations/x/repaired", "/v1/recent", "/v1/status", "/docs", "/openapi.yaml", "/v1/attestations", "/v1/attestations/" + l.quorum.String(), "/v1/attestations/x", "/v1/tx/ab", "/v1/digests/ab", "/"} {
		for _, method := range []string{http.MethodPost, http.MethodDelete, "BREW"} {
			res := h.do(method, target)
			if allow := res.Header.Get("Allow"); allow != "GET, HEAD" {
				t.Errorf("%s %s: Allow %q", method, target, allow)
			}
			if got := errorOf(t, res); got.Status != 405 || got.Code != query.MethodNotAllowed || !strings.Contains(got.Message, "use GET") {
				t.Errorf("%s %s: %+v", method, target, got)
			}
		}
	}
	if got := errorOf(t, h.do(http.MethodGet, "/v1/nothing")); got.Status != 404 || got.Code != query.NotFound {
		t.Errorf("unknown path: %+v", got)
	}
}

// TestStoreErrors gives each error of a store its status, on every path.
func TestStoreErrors(t *testing.T) {
	t.Parallel()
	a, l := lifecycleArchive(t)
	h := serve(t, a)
	for _, c := range []struct {
		err    error
		status int
		code   query.Code
	}{
		{archive.ErrNotFound, 404, query.NotFound},
		{archive.ErrInvalidRange, 400, query.InvalidArgument},
		{archive.ErrSealed, 503, query.Unavailable},
		{archive.ErrNoStore, 503, query.Unavailable},
		{archive.ErrNewerSchema, 503, query.Unavailable},
		{context.DeadlineExceeded, 504, query.DeadlineExceeded},
		{context.Canceled, 499, query.Canceled},
		{status.Error(codes.Unavailable, "secret host"), 503, query.Unavailable},
		{status.Error(codes.ResourceExhausted, "secret host"), 503, query.Unavailable},
		{status.Error(codes.DeadlineExceeded, "secret host"), 504, query.DeadlineExceeded},
		{status.Error(codes.Internal, "secret host"), 500, query.Internal},
		{errors.New("secret host"), 500, query.Internal},
	} {
		h.reader.Err = fmt.Errorf("read: %w", c.err)
		for _, target := range []string{
			"/v1/attestations/" + l.quorum.String(), "/v1/attestations/" + l.quorum.String() + "?format=hex",
			"/v1/attestations", "/v1/tx/ab", "/v1/digests/" + strings.Repeat("0", 64), "/v1/attestations?from=0", "/v1/recent", "/v1/recent?offset=10001",
			"/v1/recipients/" + strings.Repeat("0", 64), "/v1/emitters?chain=2", "/v1/conflicts", "/v1/status", "/v1/search?q=" + strings.Repeat("0", 64),
			"/v1/search?q=" + l.quorum.String(), "/v1/attestations/" + l.quorum.String() + "/repaired",
		} {
			if c.err == archive.ErrNotFound && strings.HasPrefix(target, "/v1/search") {
				continue // is an answer without items
			}
			got := errorOf(t, h.do(http.MethodGet, target))
			got.Message, got.Parameter = strings.ReplaceAll(got.Message, "secret", "LEAK"), ""
			if got.Status != c.status || got.Code != c.code || got.Message == "" || strings.Contains(got.Message, "LEAK") {
				t.Errorf("GET %s while the store says %v: %+v", target, c.err, got)
			}
		}
	}
}

// FuzzPaths asks for anything and never finds a fault of the server.
func FuzzPaths(f *testing.F) {
	a, l := lifecycleArchive(f)
	h := serve(f, a)
	known, err := knownSets()
	must(f, err)
	sets := known[vaa.Mainnet]
	parts := query.Parts{Upgrades: a.Store, Rejects: a.Store, Journal: a.Store, Rollups: rollups{}}
	h.use(f, query.New(h.reader, vaa.Mainnet, func() vaa.GuardianSets { return sets }).With(parts))
	for _, seed := range []string{
		"attestations/" + l.quorum.String(), "attestations?prefix=2:&limit=1", "attestations/%2F%2F", "tx/ab%2f?chain=2", "digests/00",
		"search?q=0x3ee18b2214aff97000d974cf647e7c347e8fa585", "recent?offset=9", "emitters?chain=2", "recipients/r9?chain=66", "guardian-sets/0",
		"attestations?from=0&to=9&signed=true&order=desc&cursor=AgAA", "totals?groupBy=chain", "series?period=1day&from=0&to=1", "attestations//../..", "attestations?cursor=AQAAAAAAAAAAAAAAAAAAAAAA", "attestations/2:" + strings.Repeat("f", 64) + ":1?format=raw",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		r, err := http.NewRequest(http.MethodGet, "http://localhost/v1/"+rest, nil)
		if err != nil {
			return // no client can send it
		}
		r.Body = http.NoBody
		res := h.send(r)
		if res.StatusCode >= 500 {
			t.Errorf("GET %q: %d %s", r.URL.RequestURI(), res.StatusCode, readAll(t, res))
		}
		if res.StatusCode < 300 || res.StatusCode >= 400 {
			var v any
			if body := readAll(t, res); strings.HasSuffix(res.Header.Get("Content-Type"), "json") && json.Unmarshal(body, &v) != nil {
				t.Errorf("GET %q: no JSON: %s", r.URL.RequestURI(), body)
			}
		}
	})
}

// TestOneCallALookup counts what each kind of question asks of the store.
func TestOneCallALookup(t *testing.T) {
	t.Parallel()
	a, l := lifecycleArchive(t)
	h := serve(t, a)
	digest := mustRecord(t, a, l.quorum).Digest().String()
	for _, c := range []struct {
		target string
		want   []string
	}{
		{"/v1/attestations/" + l.quorum.String(), []string{"Get"}},
		{"/v1/attestations/" + l.quorum.String() + "?column=Payload", []string{"Get"}},
		{"/v1/attestations/" + l.quorum.String() + "?format=raw", []string{"Get"}},
		{"/v1/attestations?chain=2", []string{"Scan"}},
		{"/v1/tx/" + strings.Repeat("ab", 32), []string{"Lookup", "GetAll"}},
		{"/v1/digests/" + digest, []string{"Lookup", "GetAll"}},
		{"/v1/digests/" + strings.Repeat("0", 64), []string{"Lookup"}},
	} {
		h.reader.Take()
		h.get(t, c.target, 200)
		if diff := cmp.Diff(c.want, h.reader.Take()); diff != "" {
			t.Errorf("GET %s (-want +got):\n%s", c.target, diff)
		}
	}
}
