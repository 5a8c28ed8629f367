package wormholescan_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/query/wormholescan"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

const collectedDir = "../../testdata/vaas"

func serve(t testing.TB, a *querytest.Archive, ready error) (http.Handler, *querytest.Reader) {
	t.Helper()
	network := a.Store.Info().Network
	known, err := vaa.KnownGuardianSets(network)
	if err != nil {
		t.Fatal(err)
	}
	r := &querytest.Reader{Reader: a.Store}
	mux := http.NewServeMux()
	wormholescan.Register(mux, wormholescan.Config{
		Service: query.New(r, network, func() vaa.GuardianSets { return known }), Version: "1.2.3",
		Ready: func(context.Context) error { return ready },
	})
	s, err := web.NewServer(web.Config{Routes: mux, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

func do(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w
}

// get decodes the answer to a GET.
func get[T any](t testing.TB, h http.Handler, target string) (out T) {
	t.Helper()
	w := do(h, http.MethodGet, target, "")
	decoder := json.NewDecoder(w.Body)
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d, %v", target, w.Code, err)
	}
	return out
}

type doc struct {
	ID          string
	Sequence    json.Number
	EmitterAddr string
	VAA         []byte
	Timestamp   string
	TxHash      *string
	Digest      string
	Duplicated  bool `json:"isDuplicated"`
	Payload     map[string]any
}

type docs struct {
	Data       []doc
	Pagination struct{ Next string }
}

func (d docs) ids() []string {
	ids := []string{}
	for _, one := range d.Data {
		ids = append(ids, one.ID)
	}
	return ids
}

// TestCollected finds every collected message by its id, with a VAA as it was
// collected, and its signatures.
func TestCollected(t *testing.T) {
	t.Parallel()
	for _, network := range vaa.Networks() {
		a, err := querytest.Load(network, collectedDir)
		if err != nil {
			t.Fatal(err)
		}
		h, reader := serve(t, a, nil)
		all, err := querytest.Collected(filepath.Join(collectedDir, "vaas-"+network.String()+".ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		collected := map[string][]querytest.VAA{}
		for _, c := range all {
			collected[c.ID()] = append(collected[c.ID()], c)
		}
		for id, versions := range collected {
			reader.Take()
			got := get[struct{ Data doc }](t, h, "/api/v1/vaas/"+id).Data
			if calls := reader.Take(); !slices.Equal(calls, []string{"Get"}) {
				t.Errorf("%s: calls %v", id, calls)
			}
			at := slices.IndexFunc(versions, func(c querytest.VAA) bool { return string(c.VAA) == string(got.VAA) })
			if at < 0 {
				t.Errorf("%s: the VAA is not as collected", id)
				continue
			}
			c := versions[at]
			if got.ID != id || got.Sequence.String() != c.Sequence || got.EmitterAddr != c.EmitterAddress || got.Digest != c.Digest {
				t.Errorf("%s: %+v", id, got)
			}
			var signers int
			for _, o := range get[[]struct {
				ID, GuardianAddr string
				Signature, Hash  []byte
			}](t, h, "/api/v1/observations/"+id) {
				if fmt.Sprintf("%x", o.Hash) == c.Digest {
					signers++
				}
				one := get[struct{ GuardianAddr string }](t, h, "/api/v1/observations/"+id+"/"+o.GuardianAddr+"/"+fmt.Sprintf("%x", o.Hash))
				if one.GuardianAddr != o.GuardianAddr || len(o.Signature) != 65 {
					t.Errorf("%s: %+v", o.ID, one)
				}
			}
			if network != vaa.Devnet && signers < len(c.SignerIndices) {
				t.Errorf("%s: %d observations of %d signatures", id, signers, len(c.SignerIndices))
			}
		}
	}
}

// TestOrder walks every list by page numbers and by cursors, in both orders: all of it,
// each message once.
func TestOrder(t *testing.T) {
	t.Parallel()
	a, err := querytest.Load(vaa.Mainnet, collectedDir)
	if err != nil {
		t.Fatal(err)
	}
	h, _ := serve(t, a, nil)
	var all []archive.Record
	for r, err := range a.Store.Scan(t.Context(), archive.Range{}, archive.Columns{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	byTime := func(a, b archive.Record) int {
		return cmp.Or(a.Publication.Timestamp.Compare(*b.Publication.Timestamp), cmp.Compare(rowkey.Of(a.ID), rowkey.Of(b.ID)))
	}
	bySequence := func(a, b archive.Record) int { return cmp.Compare(a.ID.Sequence, b.ID.Sequence) }
	emitter := all[len(all)/2].ID
	for path, list := range map[string]struct {
		keep  func(id vaa.MessageID) bool
		order func(a, b archive.Record) int
	}{
		"/api/v1/vaas":   {func(vaa.MessageID) bool { return true }, byTime},
		"/api/v1/vaas/":  {func(vaa.MessageID) bool { return true }, byTime},
		"/api/v1/vaas/1": {func(id vaa.MessageID) bool { return id.EmitterChain == 1 }, byTime},
		"/api/v1/vaas/2": {func(id vaa.MessageID) bool { return id.EmitterChain == 2 }, byTime},
		fmt.Sprintf("/api/v1/vaas/%d/%s", emitter.EmitterChain, emitter.EmitterAddress): {func(id vaa.MessageID) bool {
			return id.EmitterChain == emitter.EmitterChain && id.EmitterAddress == emitter.EmitterAddress
		}, bySequence},
	} {
		var want []string
		sorted := slices.SortedFunc(slices.Values(all), list.order)
		for _, r := range sorted {
			if list.keep(r.ID) {
				want = append(want, r.ID.String())
			}
		}
		for _, size := range []int{1, 7, 50, 1000} {
			for _, order := range []string{"ASC", "desc", ""} {
				if order != "ASC" {
					slices.Reverse(want)
				}
				q := url.Values{"pageSize": {strconv.Itoa(size)}}
				if order != "" {
					q.Set("sortOrder", order)
				}
				var byPage, byCursor []string
				for number := 0; ; number++ {
					q.Set("page", strconv.Itoa(number))
					page := get[docs](t, h, path+"?"+q.Encode())
					byPage = append(byPage, page.ids()...)
					if len(page.Data) < size {
						break
					}
				}
				for cursor := (url.Values{"pageSize": q["pageSize"], "sortOrder": q["sortOrder"]}); ; {
					page := get[docs](t, h, path+"?"+cursor.Encode())
					byCursor = append(byCursor, page.ids()...)
					if page.Pagination.Next == "" {
						break
					}
					cursor.Set("cursor", page.Pagination.Next)
				}
				for how, got := range map[string][]string{"pages": byPage, "cursors": byCursor} {
					if diff := gocmp.Diff(want, got); diff != "" {
						t.Fatalf("%s by %s of %d, order %q (-want +got):\n%s", path, how, size, order, diff)
					}
				}
				if order != "ASC" {
					slices.Reverse(want)
				}
			}
		}
	}
}

// TestTransactions finds all messages of a transaction, and the transaction of each.
func TestTransactions(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Devnet)
	hash := strings.Repeat("ab", 32)
	by := vaatest.DevnetGuardian(0)
	random := rand.New(rand.NewPCG(7, 0))
	var want []string
	for range 3 {
		v := vaatest.NewVAA(random, by)
		v.EmitterChain = 2
		by.Sign(v)
		if err := a.AddVAA(v.Append(nil), &archive.Link{TxID: hash, Trust: archive.TrustChain, Source: "test"}); err != nil {
			t.Fatal(err)
		}
		want = append(want, v.MessageID().String())
	}
	slices.SortFunc(want, func(a, b string) int {
		x, _ := vaa.ParseMessageID(a)
		y, _ := vaa.ParseMessageID(b)
		return cmp.Compare(rowkey.Of(x), rowkey.Of(y))
	})
	h, _ := serve(t, a, nil)
	for _, spelt := range []string{hash, "0x" + hash, "0X" + strings.ToUpper(hash)} {
		if diff := gocmp.Diff(want, get[docs](t, h, "/api/v1/vaas?txHash="+spelt).ids()); diff != "" {
			t.Error(diff)
		}
	}
	got := get[struct {
		Operations []struct {
			ID  string
			VAA struct{ Raw []byte }
		}
	}](t, h, "/api/v1/operations?txHash="+hash)
	if len(got.Operations) != 3 || got.Operations[0].ID != want[0] || len(got.Operations[0].VAA.Raw) == 0 {
		t.Errorf("operations of a transaction: %+v", got)
	}
	id := strings.Replace(want[0], "/", "/0x", 1)
	detail := get[struct {
		ID, TxHash   string
		EmitterChain int
		GlobalTx     struct{ OriginTx struct{ TxHash string } }
	}](t, h, "/api/v1/transactions/"+id)
	if detail.ID != want[0] || detail.TxHash != hash || detail.GlobalTx.OriginTx.TxHash != hash || detail.EmitterChain != 2 {
		t.Errorf("transaction: %+v", detail)
	}
	if none := get[docs](t, h, "/api/v1/vaas?txHash="+strings.Repeat("0", 64)); none.Data == nil || len(none.Data) != 0 {
		t.Errorf("an unknown transaction: %+v", none)
	}
}

// TestErrors compares with their codes and texts, and where theirs are wrong with what
// is right.
func TestErrors(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, querytest.New(vaa.Mainnet), fmt.Errorf("no"))
	address := strings.Repeat("0", 63) + "4"
	for _, c := range []struct {
		target  string
		status  int
		code    int
		message string
	}{
		{"/api/v1/vaas/1/" + address + "/1", 404, 5, "NOT FOUND"},
		{"/api/v1/vaas/1/" + address + "/1/duplicated", 404, 5, "NOT FOUND"},
		{"/api/v1/operations/1/" + address + "/1", 404, 5, "NOT FOUND"},
		{"/api/v1/transactions/1/0x" + address + "/1", 404, 5, "NOT FOUND"},
		{"/api/v1/observations/1/" + address + "/1", 404, 5, "NOT FOUND"},
		{"/api/v1/nothing", 404, 5, "NOT FOUND"},
		{"/api/v1/vaas/65536", 400, 3, "WRONG CHAIN ID"},
		{"/api/v1/vaas/65537/" + address, 400, 3, "WRONG CHAIN ID"},
		{"/api/v1/vaas/-1", 400, 3, "WRONG CHAIN ID"},
		{"/api/v1/vaas/99999999/" + address + "/1", 400, 3, "WRONG CHAIN ID"},
		{"/api/v1/vaas/1/xyz", 400, 3, "MALFORMED EMITTER_ADDR"},
		{"/api/v1/vaas/1/" + address + "/18446744073709551616", 400, 3, "MALFORMED SEQUENCE NUMBER"},
		{"/api/v1/vaas/1/" + address + "/-1", 400, 3, "MALFORMED SEQUENCE NUMBER"},
		{"/api/v1/vaas?txHash=abc", 400, 3, "MALFORMED TX HASH"},
		{"/api/v1/vaas?page=-1", 400, 3, "parameter 'page' must be a non-negative integer"},
		{"/api/v1/vaas?pageSize=0", 400, 3, "parameter 'pageSize' must be a positive integer"},
		{"/api/v1/vaas?pageSize=1001", 400, 3, "pageSize cannot be greater than 1000"},
		{"/api/v1/operations?pageSize=101", 400, 3, "pageSize cannot be greater than 100"},
		{"/api/v1/vaas?sortOrder=up", 400, 3, "parameter 'sortOrder' must either be 'ASC' or 'DESC'"},
		{"/api/v1/vaas?parsedPayload=maybe", 400, 3, "INVALID <parsedPayload> QUERY PARAMETER"},
		{"/api/v1/operations?sourceChain=65536", 400, 3, "INVALID SOURCE_CHAIN VALUE"},
		{"/api/v1/operations?targetChain=x", 400, 3, "INVALID TARGET_CHAIN VALUE"},
		{"/api/v1/operations?address=0x" + address + "&txHash=" + address, 400, 3, "address and txHash cannot be used at the same time"},
	} {
		w := do(h, http.MethodGet, c.target, "")
		var got struct {
			Code    int
			Message string
			Details []struct {
				RequestID string `json:"request_id"`
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != c.status || got.Code != c.code || got.Message != c.message || len(got.Details) != 1 || got.Details[0].RequestID == "" {
			t.Errorf("%s: %d %s", c.target, w.Code, w.Body)
		}
		if w.Code == http.StatusNotFound && w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: an absent message may be kept: %v", c.target, w.Header())
		}
	}
	if w := do(h, http.MethodGet, "/api/v1/ready", ""); w.Code != 500 || strings.TrimSpace(w.Body.String()) != `{"ready":"NO"}` {
		t.Errorf("ready: %d %s", w.Code, w.Body)
	}
	if w := do(h, http.MethodGet, "/api/v1/health", ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"status":"OK"}` {
		t.Errorf("health: %d %s", w.Code, w.Body)
	}
}

// TestParse reads what it can and refuses what is no VAA.
func TestParse(t *testing.T) {
	t.Parallel()
	a, err := querytest.Load(vaa.Mainnet, collectedDir)
	if err != nil {
		t.Fatal(err)
	}
	h, _ := serve(t, a, nil)
	all, err := querytest.Collected(filepath.Join(collectedDir, "vaas-mainnet.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	parsed := 0
	for _, c := range all {
		body := fmt.Sprintf(`{"vaa":%q}`, base64.StdEncoding.EncodeToString(c.VAA))
		w := do(h, http.MethodPost, "/api/v1/vaas/parse", body)
		var got struct {
			ParsedPayload          map[string]any
			StandardizedProperties struct {
				AppIDs    []string `json:"appIds"`
				FromChain int
				Amount    *string
			}
		}
		switch err := json.Unmarshal(w.Body.Bytes(), &got); {
		case w.Code == http.StatusNotFound:
		case err != nil || w.Code != http.StatusOK || got.StandardizedProperties.FromChain != c.EmitterChain || got.StandardizedProperties.AppIDs == nil:
			t.Errorf("%s: %d %s", c.ID(), w.Code, w.Body)
		default:
			parsed++
		}
	}
	if parsed == 0 {
		t.Error("no payload was parsed")
	}
	withTail := base64.StdEncoding.EncodeToString(append(slices.Clone(all[0].VAA), 0))
	for _, body := range []string{
		"", "{}", "nonsense", `{"vaa":""}`, `{"vaa":"!"}`, `{"vaa":"AAAAAAAAAAAAAA=="}`, `{"vaa":7}`, fmt.Sprintf(`{"vaa":%q}`, withTail),
	} {
		if w := do(h, http.MethodPost, "/api/v1/vaas/parse", body); w.Code != http.StatusBadRequest {
			t.Errorf("%.40s: %d %s", body, w.Code, w.Body)
		}
	}
	if w := do(h, http.MethodPost, "/api/v1/vaas/parse", `{"vaa":"`+strings.Repeat("A", 2<<20)+`"}`); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("2 MiB: %d %s", w.Code, w.Body)
	}
}
