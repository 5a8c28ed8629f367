package guardian_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/guardian"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/vaa"
)

const collectedDir = "../../testdata/vaas"

func serve(t testing.TB, a *querytest.Archive) (http.Handler, *querytest.Reader) {
	t.Helper()
	return serveAs(t, a, false)
}

func serveAs(t testing.TB, a *querytest.Archive, strict bool) (http.Handler, *querytest.Reader) {
	t.Helper()
	network := a.Store.Info().Network
	known, err := vaa.KnownGuardianSets(network)
	if err != nil {
		t.Fatal(err)
	}
	sets := func() vaa.GuardianSets { return known }
	r := &querytest.Reader{Reader: a.Store}
	mux := http.NewServeMux()
	guardian.Register(mux, guardian.Config{Service: query.New(r, network, sets), Sets: sets, Strict: strict})
	s, err := web.NewServer(web.Config{Routes: mux, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

func do(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// TestCollectedVAAs gets the bytes of every message as they were collected.
func TestCollectedVAAs(t *testing.T) {
	t.Parallel()
	for _, network := range vaa.Networks() {
		a, err := querytest.Load(network, collectedDir)
		if err != nil {
			t.Fatal(err)
		}
		h, reader := serve(t, a)
		all, err := querytest.Collected(filepath.Join(collectedDir, "vaas-"+network.String()+".ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		collected := map[string][]string{} // id to VAAs in base64, without padding lost
		for _, c := range all {
			collected[c.ID()] = append(collected[c.ID()], base64.StdEncoding.EncodeToString(c.VAA))
		}
		for id, vaas := range collected {
			w := do(h, http.MethodGet, "/v1/signed_vaa/"+id)
			var got map[string]string
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || len(got) != 1 {
				t.Errorf("%s: %d %s", id, w.Code, w.Body)
				continue
			}
			if !strings.Contains(strings.Join(vaas, " "), got["vaaBytes"]) || got["vaaBytes"] == "" {
				t.Errorf("%s: %s is not as collected", id, got["vaaBytes"])
			}
			if ct := w.Header().Get("Content-Type"); ct != "application/json" {
				t.Errorf("%s: content type %q", id, ct)
			}
			if calls := reader.Take(); !cmp.Equal(calls, []string{"Get"}) {
				t.Errorf("%s: calls %v", id, calls)
			}
		}
	}
}

// problem is an error in grpc-gateway's JSON.
type problem struct {
	Status  int        `json:"-"`
	Code    codes.Code `json:"code"`
	Message string     `json:"message"`
	Details []any      `json:"details"`
}

func problemOf(t testing.TB, w *httptest.ResponseRecorder) problem {
	t.Helper()
	got := problem{Status: w.Code}
	var keys map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &keys); err != nil || len(keys) != 3 {
		t.Fatalf("shape of an error: %s", w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestErrors compares with what grpc-gateway v2.16.2 and the guardian's server
// say; the texts about fields were taken from a run of its
// runtime.PopulateFieldFromPath.
func TestErrors(t *testing.T) {
	t.Parallel()
	h, reader := serveAs(t, querytest.New(vaa.Mainnet), true)
	address := strings.Repeat("0", 63) + "4"
	mismatch := func(field, text string) string {
		return fmt.Sprintf("type mismatch, parameter: message_id.%s, error: parsing field %q: %s", field, field, text)
	}
	for _, c := range []struct {
		path    string
		status  int
		code    codes.Code
		message string
	}{
		{"2/" + address + "/7", 404, codes.NotFound, "requested VAA not found in store"},
		{"CHAIN_ID_SOLANA/" + address + "/7", 404, codes.NotFound, "requested VAA not found in store"},
		{"3/" + address + "/7", 400, codes.InvalidArgument, mismatch("emitter_chain", `"3" is not a valid value`)},
		{"26/" + address + "/7", 400, codes.InvalidArgument, "not supported for PythNet"},
		{"02/" + address + "/007", 404, codes.NotFound, "requested VAA not found in store"},
		{"2/" + strings.ToUpper(strings.Repeat("a", 64)) + "/18446744073709551615", 404, codes.NotFound, "requested VAA not found in store"},
		{"4242/" + address + "/7", 400, codes.InvalidArgument, mismatch("emitter_chain", `"4242" is not a valid value`)},
		{"65536/" + address + "/7", 400, codes.InvalidArgument, mismatch("emitter_chain", `"65536" is not a valid value`)},
		{"65538/" + address + "/7", 400, codes.InvalidArgument, mismatch("emitter_chain", `"65538" is not a valid value`)},
		{"-1/" + address + "/7", 400, codes.InvalidArgument, mismatch("emitter_chain", `"-1" is not a valid value`)},
		{"ethereum/" + address + "/7", 400, codes.InvalidArgument, mismatch("emitter_chain", `"ethereum" is not a valid value`)},
		{"CHAIN_ID_ETH/" + address + "/7", 400, codes.InvalidArgument, mismatch("emitter_chain", `"CHAIN_ID_ETH" is not a valid value`)},
		{"CHAIN_ID_TERRA/" + address + "/7", 400, codes.InvalidArgument, mismatch("emitter_chain", `"CHAIN_ID_TERRA" is not a valid value`)},
		{"CHAIN_ID_UNSPECIFIED/" + address + "/7", 404, codes.NotFound, "requested VAA not found in store"},
		{"CHAIN_ID_ethereum/" + address + "/7", 400, codes.InvalidArgument, mismatch("emitter_chain", `"CHAIN_ID_ethereum" is not a valid value`)},
		{"2/" + address + "/-1", 400, codes.InvalidArgument, mismatch("sequence", `strconv.ParseUint: parsing "-1": invalid syntax`)},
		{"2/" + address + "/18446744073709551616", 400, codes.InvalidArgument, mismatch("sequence", `strconv.ParseUint: parsing "18446744073709551616": value out of range`)},
		{"2/0x" + address + "/7", 400, codes.InvalidArgument, "failed to decode address: encoding/hex: invalid byte: U+0078 'x'"},
		{"2/abc/7", 400, codes.InvalidArgument, "failed to decode address: encoding/hex: odd length hex string"},
		{"2/" + address[24:] + "/7", 400, codes.InvalidArgument, "address must be 32 bytes"},
		{"2/" + address + "/7/", 404, codes.NotFound, "Not Found"},
		{"2/" + address, 404, codes.NotFound, "Not Found"},
	} {
		got := problemOf(t, do(h, http.MethodGet, "/v1/signed_vaa/"+c.path))
		if diff := cmp.Diff(problem{c.status, c.code, c.message, []any{}}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.path, diff)
		}
	}
	for _, method := range []string{http.MethodDelete, http.MethodPost, http.MethodPut} {
		for path, want := range map[string]problem{
			"signed_vaa/2/" + address + "/7": {501, codes.Unimplemented, "Method Not Allowed", []any{}},
			"heartbeats":                     {501, codes.Unimplemented, "Method Not Allowed", []any{}},
			"signed_vaa/2/" + address:        {404, codes.NotFound, "Not Found", []any{}},
			"heartbeats/":                    {404, codes.NotFound, "Not Found", []any{}},
		} {
			if diff := cmp.Diff(want, problemOf(t, do(h, method, "/v1/"+path))); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", method, path, diff)
			}
		}
	}
	for _, c := range []struct {
		err    error
		status int
		code   codes.Code
	}{
		{errors.New("secret"), 500, codes.Internal},
		{status.Error(codes.Unavailable, "secret"), 503, codes.Unavailable},
		{archive.ErrSealed, 503, codes.Unavailable},
		{status.Error(codes.DeadlineExceeded, "secret"), 504, codes.DeadlineExceeded},
		{status.Error(codes.Canceled, "secret"), 499, codes.Canceled},
	} {
		reader.Err = c.err
		w := do(h, http.MethodGet, "/v1/signed_vaa/2/"+address+"/7")
		got := problemOf(t, w)
		if got.Status != c.status || got.Code != c.code || strings.Contains(got.Message, "secret") {
			t.Errorf("%v: %+v", c.err, got)
		}
		if w.Header().Get("Cache-Control") != "no-store" || (w.Header().Get("Retry-After") != "") != (got.Status == 503) {
			t.Errorf("%v: %v", c.err, w.Header())
		}
	}
	reader.Err = nil
	// A guardian's governor reads addresses as people write them.
	if w := do(h, http.MethodGet, "/v1/governor/is_vaa_enqueued/2/0x"+address[24:]+"/7"); w.Code != 200 {
		t.Errorf("is_vaa_enqueued: %d %s", w.Code, w.Body)
	}
}

// TestLenient finds messages of any chain by any spelling of their emitter.
func TestLenient(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	address := strings.Repeat("0", 62) + "ab"
	for _, chain := range []vaa.ChainID{1, 2, 3, 26, 4242, 65535} {
		emitter, err := vaa.ParseAddress(chain, address)
		if err != nil {
			t.Fatal(err)
		}
		v := vaa.VAA{Version: 1, Body: vaa.Body{EmitterChain: chain, EmitterAddress: emitter, Sequence: 1<<64 - 1}}
		if err := a.AddVAA(v.Append(nil), nil); err != nil {
			t.Fatal(err)
		}
	}
	h, _ := serve(t, a)
	const last = "/18446744073709551615"
	for _, path := range []string{
		"1/" + address, "2/0x" + address, "2/" + address[24:], "2/0x" + address[24:], "CHAIN_ID_ETHEREUM/" + strings.ToUpper(address), "ethereum/" + address,
		"3/" + address, "26/" + address, "4242/" + address, "65535/" + address,
	} {
		if w := do(h, http.MethodGet, "/v1/signed_vaa/"+path+last); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"65536/" + address, "-1/" + address, "99999999/" + address, "nowhere/" + address, "2/xyz", "2/" + address + "00"} {
		if w := do(h, http.MethodGet, "/v1/signed_vaa/"+path+last); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	// A client joins its base, which ends in a slash, and the path.
	if w := do(h, http.MethodGet, "//v1/signed_vaa/2/"+address+last); w.Code != http.StatusOK {
		t.Errorf("two slashes: %d %s", w.Code, w.Body)
	}
}

// TestOther answers the other paths of a guardian.
func TestOther(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, querytest.New(vaa.Mainnet))
	address := strings.Repeat("0", 63) + "4"
	for path, want := range map[string]string{
		"heartbeats":                                     `{"entries":[]}`,
		"governor/available_notional_by_chain":           `{"entries":[]}`,
		"governor/enqueued_vaas":                         `{"entries":[]}`,
		"governor/token_list":                            `{"entries":[]}`,
		"governor/is_vaa_enqueued/2/0x" + address + "/7": `{"isEnqueued":false}`,
	} {
		if w := do(h, http.MethodGet, "/v1/"+path); w.Code != 200 || strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for path, want := range map[string]problem{
		"signed_batch_vaa/1/2/3":                       {501, codes.Unimplemented, "not yet implemented", []any{}},
		"manager/signed_vaa/2/" + address + "/7":       {503, codes.Unavailable, "manager service not enabled", []any{}},
		"manager/signed_vaa/" + address:                {503, codes.Unavailable, "manager service not enabled", []any{}},
		"governor/nothing":                             {404, codes.NotFound, "Not Found", []any{}},
		"heartbeats/":                                  {404, codes.NotFound, "Not Found", []any{}},
		"guardianset/next":                             {404, codes.NotFound, "Not Found", []any{}},
		"governor/is_vaa_enqueued/2/" + address + "/x": {400, codes.InvalidArgument, `type mismatch, parameter: message_id.sequence, error: parsing field "sequence": strconv.ParseUint: parsing "x": invalid syntax`, []any{}},
	} {
		if diff := cmp.Diff(want, problemOf(t, do(h, http.MethodGet, "/v1/"+path))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	var set struct {
		GuardianSet struct {
			Index     uint32
			Addresses []string
		}
	}
	w := do(h, http.MethodGet, "/v1/guardianset/current")
	if err := json.Unmarshal(w.Body.Bytes(), &set); err != nil || len(set.GuardianSet.Addresses) != 19 || set.GuardianSet.Addresses[0] != "0x5893B5A76c3f739645648885bDCcC06cd70a3Cd3" {
		t.Errorf("guardian set: %s", w.Body)
	}
}

// TestObservedOnly holds that a message without quorum is not there yet, as
// clients that poll expect.
func TestObservedOnly(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	body := vaa.Body{EmitterChain: 2, Sequence: 1}
	if err := a.Observe(body, nil); err != nil {
		t.Fatal(err)
	}
	h, _ := serve(t, a)
	if got := problemOf(t, do(h, http.MethodGet, "/v1/signed_vaa/"+body.MessageID().String())); got.Status != 404 {
		t.Errorf("%+v", got)
	}
	v := vaa.VAA{Version: 1, Body: body}
	if err := a.AddVAA(v.Append(nil), nil); err != nil {
		t.Fatal(err)
	}
	w := do(h, http.MethodHead, "/v1/signed_vaa/"+body.MessageID().String())
	if w.Code != 200 || w.Header().Get("ETag") == "" {
		t.Errorf("HEAD: %d %v", w.Code, w.Header())
	}
}

// FuzzPath asks for anything; nothing is a fault of the server.
func FuzzPath(f *testing.F) {
	h, _ := serve(f, querytest.New(vaa.Mainnet))
	f.Add("2/" + strings.Repeat("0", 64) + "/7")
	f.Add("CHAIN_ID_/%00/18446744073709551616")
	f.Fuzz(func(t *testing.T, rest string) {
		r, err := http.NewRequest(http.MethodGet, "http://localhost/v1/signed_vaa/"+rest, nil)
		if err != nil {
			return // no client can send it
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code >= 500 {
			t.Errorf("GET %q: %d %s", r.URL.RequestURI(), w.Code, w.Body)
		}
	})
}
