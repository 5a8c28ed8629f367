package native_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

type searched struct {
	Kinds []struct {
		Kind    string
		Found   int
		HasMore bool
		Path    *string
	}
	Items []struct{ ID string }
	VAA   *struct {
		ID           string
		Verification *struct {
			Valid  bool
			Reason *string
		}
	}
	Pagination struct{ HasMore bool }
}

func (h *harness) search(t testing.TB, q string) searched {
	t.Helper()
	var got searched
	must(t, json.Unmarshal(h.get(t, "/v1/search?q="+url.QueryEscape(q), 200), &got))
	return got
}

func (s searched) has(id string) bool {
	return slices.ContainsFunc(s.Items, func(i struct{ ID string }) bool { return i.ID == id })
}

// TestSearchCollected finds every collected VAA by everything that names it, and each
// path that an answer names leads to what was found.
func TestSearchCollected(t *testing.T) {
	t.Parallel()
	for _, network := range vaa.Networks() {
		h := load(t, network)
		all, err := querytest.Collected(filepath.Join(collectedDir, "vaas-"+network.String()+".ndjson"))
		must(t, err)
		for i, c := range all {
			if i%61 != 0 { // every text asks each chain's emitters
				continue
			}
			v, err := vaa.Parse(c.VAA)
			must(t, err)
			id := v.MessageID()
			texts := []string{
				id.String(), strings.ReplaceAll(id.String(), "/", ":"), c.Digest, "0x" + v.SingleDigest().String(),
				hex.EncodeToString(c.VAA), "0x" + hex.EncodeToString(c.VAA), base64.StdEncoding.EncodeToString(c.VAA),
				base64.RawURLEncoding.EncodeToString(c.VAA),
				"https://wormholescan.io/#/tx/" + id.String() + "?network=Mainnet&view=overview",
				"https://api.wormholescan.io/api/v1/vaas/" + id.String() + "?parsedPayload=true",
				"https://wormholescan.io/#/tx/" + c.Digest, "http://etherscan.io/tx/0x" + c.Digest + "/logs#eventlog",
			}
			for _, text := range texts {
				got := h.search(t, text)
				if !got.has(id.String()) {
					t.Errorf("%s %.100q: %+v", network, text, got.Kinds)
				}
				for _, k := range got.Kinds {
					if k.Path != nil {
						h.get(t, *k.Path, 200)
					}
				}
				if got.VAA != nil && !got.VAA.Verification.Valid {
					t.Errorf("%s %s: %v", network, id, got.VAA.Verification)
				}
			}
		}
	}
}

// TestSearchAddresses finds emitters and recipients by their addresses, in the
// universal form, in that of their chain, and with the chain before it.
func TestSearchAddresses(t *testing.T) {
	t.Parallel()
	h := load(t, vaa.Mainnet)
	seen := map[string]bool{}
	for _, r := range records(t, h.archive) {
		id := r.ID
		emitter := fmt.Sprint(uint16(id.EmitterChain), "/", id.EmitterAddress)
		if seen[emitter] || len(seen) == 6 {
			continue
		}
		seen[emitter] = true
		texts := []string{emitter, strings.Replace(emitter, "/", ":", 1), id.EmitterAddress.String()}
		if native, ok := vaa.NativeAddress(id.EmitterChain, id.EmitterAddress); ok && len(native) > 20 {
			texts = append(texts, native)
		}
		for _, text := range texts {
			got := h.search(t, text)
			found := false
			for _, k := range got.Kinds {
				found = found || k.Kind == query.KindEmitter && k.Path != nil && strings.Contains(*k.Path, fmt.Sprintf("chain=%d&emitter=%s", id.EmitterChain, id.EmitterAddress))
			}
			if !found {
				t.Errorf("emitter %q: %+v", text, got.Kinds)
			}
		}
	}
}

// TestSearchKinds says what each text was looked up as.
func TestSearchKinds(t *testing.T) {
	t.Parallel()
	a, l := lifecycleArchive(t)
	h := serve(t, a)
	solana := strings.Repeat("5VERYLong", 9)
	must(t, a.Observe(vaa.Body{EmitterChain: 1, Sequence: 99}, &archive.Link{TxID: solana, Trust: archive.TrustChain, Source: "test"}))
	for text, want := range map[string]string{
		l.quorum.String():                              "id 1",
		" " + l.quorum.String() + "\n":                 "id 1",
		"2/" + l.quorum.EmitterAddress.String() + "/1": "id 0",
		strings.Repeat("ab", 32):                       "tx 4, digest 0, emitter 0, recipient 0",
		"0x" + strings.Repeat("AB", 32):                "tx 4, digest 0, emitter 0, recipient 0",
		solana:                                         "tx 1",
		"0x3ee18B2214AFF97000D974cf647E7C347E8fa585":   "tx 0, emitter 1, recipient 0",
	} {
		var kinds []string
		for _, k := range h.search(t, text).Kinds {
			kinds = append(kinds, fmt.Sprint(k.Kind, " ", k.Found))
		}
		if got := strings.Join(kinds, ", "); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for _, q := range []string{"?q=", "", "?q=%00", "?q=%ff%fe", "?q=2:12:7", "?q=65536/" + l.quorum.EmitterAddress.String() + "/1", "?q=what+is+it", "?q=-1/12/1"} {
		if got := errorOf(t, h.do(http.MethodGet, "/v1/search"+q)); got.Status != 400 || got.Parameter != "q" {
			t.Errorf("%s: %+v", q, got)
		}
	}
}

// TestSearchVAA looks a VAA up that the archive does not have, and refuses one with
// bytes behind its end.
func TestSearchVAA(t *testing.T) {
	t.Parallel()
	h := serve(t, querytest.New(vaa.Mainnet))
	all, err := querytest.Collected(filepath.Join(collectedDir, "vaas-mainnet.ndjson"))
	must(t, err)
	raw := all[5].VAA
	got := h.search(t, base64.StdEncoding.EncodeToString(raw))
	if len(got.Items) != 0 || got.VAA == nil || got.VAA.ID != all[5].ID() || !got.VAA.Verification.Valid {
		t.Errorf("a VAA that is not here: %+v", got)
	}
	forged := bytes.Clone(raw)
	forged[10] ^= 1
	if got := h.search(t, hex.EncodeToString(forged)); got.VAA == nil || got.VAA.Verification.Valid || got.VAA.Verification.Reason == nil {
		t.Errorf("a forged VAA: %+v", got.VAA)
	}
	shown := errorOf(t, h.do(http.MethodGet, "/v1/search?q="+hex.EncodeToString(append(bytes.Clone(raw), '\n'))))
	if shown.Status != 400 || shown.Parameter != "q" || !strings.Contains(shown.Message, "1 behind its end") {
		t.Errorf("a trailing byte: %+v", shown)
	}
}

// kindOf returns what the decoders, which have tests of their own, make of a VAA's payload.
func kindOf(t *testing.T, network vaa.Network, raw []byte) string {
	t.Helper()
	v, err := vaa.Parse(raw)
	must(t, err)
	kind, _, _ := payload.Decode(network, &v.Body)
	return kind
}

// TestCheck decodes and verifies every collected VAA, as JSON and as bytes.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, network := range vaa.Networks() {
		h := serve(t, querytest.New(network))
		all, err := querytest.Collected(filepath.Join(collectedDir, "vaas-"+network.String()+".ndjson"))
		must(t, err)
		for _, c := range all {
			body, err := json.Marshal(map[string]string{"vaa": hex.EncodeToString(c.VAA)})
			must(t, err)
			asJSON := readAll(t, h.post("/v1/verify", "application/json; charset=utf-8", body))
			asBytes := readAll(t, h.post("/v1/verify", "application/octet-stream", c.VAA))
			if !bytes.Equal(asJSON, asBytes) {
				t.Errorf("%s: as JSON and as bytes %s", c.ID(), cmp.Diff(string(asJSON), string(asBytes)))
			}
			var got struct {
				ID, Digest, PayloadKind string
				Guardians               []struct{ Index int }
				Verification            struct{ Valid bool }
			}
			must(t, json.Unmarshal(asJSON, &got))
			var signers []int
			for _, g := range got.Guardians {
				signers = append(signers, g.Index)
			}
			if got.ID != c.ID() || got.Digest != c.Digest || got.PayloadKind != kindOf(t, network, c.VAA) || !got.Verification.Valid || !slices.Equal(signers, c.SignerIndices) {
				t.Errorf("%s: %s", c.ID(), asJSON)
			}
			var decoded map[string]any
			must(t, json.Unmarshal(readAll(t, h.post("/v1/decode", "application/octet-stream", c.VAA)), &decoded))
			if v, ok := decoded["verification"]; !ok || v != nil || decoded["id"] != c.ID() {
				t.Errorf("decode %s: %v", c.ID(), decoded)
			}
		}
	}
}

// TestCheckInvalid answers bad input with 400 and the parameter.
func TestCheckInvalid(t *testing.T) {
	t.Parallel()
	h := serve(t, querytest.New(vaa.Mainnet))
	all, err := querytest.Collected(filepath.Join(collectedDir, "vaas-mainnet.ndjson"))
	must(t, err)
	at := slices.IndexFunc(all, func(c querytest.VAA) bool { return len(c.SignerIndices) >= 13 })
	raw := all[at].VAA
	text := func(b []byte) string { return fmt.Sprintf(`{"vaa":%q}`, base64.StdEncoding.EncodeToString(b)) }
	for _, c := range []struct{ contentType, body, message string }{
		{"application/json", "", "JSON"},
		{"", "{", "JSON"},
		{"application/json", "{}", "no member vaa"},
		{"application/json", `{"vaa":null}`, "no member vaa"},
		{"application/json", `{"vaa":7}`, "JSON"},
		{"application/json", `[]`, "JSON"},
		{"application/json", `{"vaa":""}`, "empty"},
		{"application/json", `{"vaa":"  "}`, "empty"},
		{"application/json", `{"vaa":"%%%"}`, "neither base64 nor hex"},
		{"application/json", `{"vaa":"\u0000"}`, "neither"},
		{"application/json", text(raw[:10]), "10 bytes are too short"},
		{"application/json", text(append([]byte{2}, raw[1:]...)), "version 2"},
		{"application/json", text(append(bytes.Clone(raw), 0)), "1 behind its end"},
		{"application/octet-stream", string(raw) + "\r\n", "2 behind its end"},
		{"application/octet-stream", "", "no bytes"},
		{"text/plain", string(raw), "content type"},
		{"application/json;;", text(raw), "content type"},
	} {
		for _, path := range []string{"/v1/decode", "/v1/verify"} {
			got := errorOf(t, h.post(path, c.contentType, []byte(c.body)))
			if got.Status != 400 || got.Code != query.InvalidArgument || got.Parameter != "vaa" || !strings.Contains(got.Message, c.message) {
				t.Errorf("POST %s %s %.60q: %+v, want a message with %q", path, c.contentType, c.body, got, c.message)
			}
		}
	}
	if res := h.post("/v1/verify", "application/octet-stream", make([]byte, 2<<20)); res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 2 MiB: status %d", res.StatusCode)
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete} {
		if res := h.do(method, "/v1/verify"); res.StatusCode != 405 || !strings.Contains(res.Header.Get("Allow"), "POST") {
			t.Errorf("%s: status %d, Allow %q", method, res.StatusCode, res.Header.Get("Allow"))
		}
	}
}

// FuzzCheck posts anything and never finds a fault of the server.
func FuzzCheck(f *testing.F) {
	h := serve(f, querytest.New(vaa.Mainnet))
	all, err := querytest.Collected(filepath.Join(collectedDir, "vaas-mainnet.ndjson"))
	must(f, err)
	for i := 0; i < len(all); i += 50 {
		f.Add(true, all[i].VAA)
		f.Add(false, []byte(`{"vaa":"`+hex.EncodeToString(all[i].VAA)+`"}`))
	}
	f.Fuzz(func(t *testing.T, octets bool, body []byte) {
		contentType := "application/json"
		if octets {
			contentType = "application/octet-stream"
		}
		for _, path := range []string{"/v1/decode", "/v1/verify"} {
			if res := h.post(path, contentType, body); res.StatusCode >= 500 {
				t.Errorf("POST %s %q: %d %s", path, body, res.StatusCode, readAll(t, res))
			}
		}
	})
}

// TestGuardianSets proves each set by the VAA that is answered with it.
func TestGuardianSets(t *testing.T) {
	t.Parallel()
	h := serve(t, querytest.New(vaa.Mainnet))
	known, err := vaa.KnownGuardianSets(vaa.Mainnet)
	must(t, err)
	var got struct {
		Items []struct {
			Index     uint32
			Current   bool
			Quorum    int
			Guardians []struct{ Address, Name string }
			Upgrade   *struct{ VAA []byte }
		}
	}
	must(t, json.Unmarshal(h.get(t, "/v1/guardian-sets", 200), &got))
	proved, err := vaa.NewGuardianSets(vaa.Mainnet, known.All()[0])
	must(t, err)
	for i, item := range got.Items {
		set := known.All()[i]
		if item.Index != set.Index || item.Quorum != set.Quorum() || item.Current != (i+1 == len(got.Items)) {
			t.Errorf("set %d: %+v", i, item)
		}
		for j, g := range item.Guardians {
			if g.Address != set.Keys[j].String() || g.Name == "" {
				t.Errorf("guardian %d of set %d: %+v", j, i, g)
			}
		}
		if (item.Upgrade == nil) != (i == 0) {
			t.Fatalf("set %d: upgrade %v", i, item.Upgrade)
		}
		if i > 0 {
			v, err := vaa.Parse(item.Upgrade.VAA)
			must(t, err)
			proved, err = proved.Extend(v)
			must(t, err)
		}
	}
	if proved.Newest().Index != known.Newest().Index {
		t.Errorf("sets are proved up to %d", proved.Newest().Index)
	}
	h.get(t, "/v1/guardian-sets/4", 200)
	h.get(t, "/v1/guardian-sets/99", 404)
	for _, index := range []string{"x", "-1", "4294967296", "%00"} {
		if shown := errorOf(t, h.do(http.MethodGet, "/v1/guardian-sets/"+index)); shown.Status != 400 || shown.Parameter != "index" {
			t.Errorf("index %s: %+v", index, shown)
		}
	}
}

// TestRepaired asks for the VAA for the current set of every collected one: what is
// answered verifies under it and has the same digest, and what is refused is so
// because too few of its signatures count.
func TestRepaired(t *testing.T) {
	t.Parallel()
	h := load(t, vaa.Mainnet)
	known, err := knownSets()
	must(t, err)
	sets := known[vaa.Mainnet]
	answered := 0
	for _, r := range records(t, h.archive) {
		target := "/v1/attestations/" + r.ID.String()
		var got struct{ Repair *query.Repair }
		must(t, json.Unmarshal(h.get(t, target+"?family=QuorumState", 200), &got))
		res := h.do(http.MethodGet, target+"/repaired")
		body := readAll(t, res)
		if !got.Repair.Repairable {
			if res.StatusCode != http.StatusConflict || got.Repair.Signatures >= got.Repair.Quorum {
				t.Errorf("%s: status %d, repair %+v", r.ID, res.StatusCode, got.Repair)
			}
			continue
		}
		answered++
		v, err := vaa.Parse(body)
		must(t, err)
		if err := sets.Verify(v); err != nil || v.GuardianSetIndex != sets.Newest().Index || v.Digest() != *r.Digest() {
			t.Errorf("%s: repaired for set %d: %v", r.ID, v.GuardianSetIndex, err)
		}
	}
	if answered == 0 {
		t.Error("none of the collected VAAs can be repaired")
	}
}

// TestOneVAA gets each VAA that an attestation lists by its set and digest, for ever.
func TestOneVAA(t *testing.T) {
	t.Parallel()
	a, err := querytest.Load(vaa.Devnet, collectedDir)
	must(t, err)
	h := serve(t, a)
	n := 0
	for _, r := range records(t, a) {
		for _, v := range r.Versions {
			target := fmt.Sprintf("/v1/attestations/%s/vaas/%d/%s", r.ID, v.GuardianSetIndex, v.Digest)
			res := h.do(http.MethodGet, target)
			if res.StatusCode != http.StatusOK || string(readAll(t, res)) != string(v.Bytes) || res.Header.Get("Cache-Control") != web.Immutable {
				t.Errorf("%s: %d %v", target, res.StatusCode, res.Header)
			}
			n++
		}
		other := fmt.Sprintf("/v1/attestations/%s/vaas/%d/%s", r.ID, 99, r.Versions[0].Digest)
		if res := h.do(http.MethodGet, other); res.StatusCode != http.StatusNotFound || res.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", other, res.StatusCode, res.Header)
		}
	}
	if n < 142 {
		t.Errorf("%d VAAs", n)
	}
}
