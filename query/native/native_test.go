package native_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/query/native"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/vaa"
)

var update = flag.Bool("update", false, "write the golden files anew")

const collectedDir = "../../testdata/vaas"

// knownSets returns the guardian sets of each network. Proving those of mainnet
// takes its time, so it is done once.
var knownSets = sync.OnceValues(func() (map[vaa.Network]vaa.GuardianSets, error) {
	known := map[vaa.Network]vaa.GuardianSets{}
	for _, network := range vaa.Networks() {
		sets, err := vaa.KnownGuardianSets(network)
		if err != nil {
			return nil, err
		}
		known[network] = sets
	}
	return known, nil
})

// harness is the interface over an archive.
type harness struct {
	http.Handler
	archive *querytest.Archive
	reader  *querytest.Reader // nil over a Bigtable server
	store   archive.Store
}

func serve(t testing.TB, a *querytest.Archive) *harness {
	t.Helper()
	network := a.Store.Info().Network
	known, err := knownSets()
	must(t, err)
	sets := known[network]
	h := &harness{archive: a, reader: &querytest.Reader{Reader: a.Store}, store: a.Store}
	parts := query.Parts{Upgrades: a.Store, Rejects: a.Store, Journal: a.Store}
	h.use(t, query.New(h.reader, network, func() vaa.GuardianSets { return sets }).With(parts))
	return h
}

// use serves a service.
func (h *harness) use(t testing.TB, s *query.Service) {
	t.Helper()
	mux := http.NewServeMux()
	native.Register(mux, s)
	web.Register(mux, web.Ops{})
	var err error
	h.Handler, err = web.NewServer(web.Config{Routes: mux, Logger: zap.NewNop()})
	must(t, err)
}

func load(t testing.TB, network vaa.Network) *harness {
	t.Helper()
	a, err := querytest.Load(network, collectedDir)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, a)
}

func (h *harness) do(method, target string, header ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return h.send(r)
}

func (h *harness) post(target, contentType string, body []byte) *http.Response {
	r := httptest.NewRequest(http.MethodPost, target, bytes.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return h.send(r)
}

func (h *harness) send(r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func (h *harness) get(t testing.TB, target string, status int) []byte {
	t.Helper()
	res := h.do(http.MethodGet, target)
	body := readAll(t, res)
	if res.StatusCode != status {
		t.Fatalf("GET %s: status %d, want %d: %s", target, res.StatusCode, status, body)
	}
	return body
}

func readAll(t testing.TB, res *http.Response) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lifecycle fills an archive with a message of each state.
type lifecycle struct {
	quorum, resigned, conflict, observed, vanished vaa.MessageID
}

func lifecycleArchive(t testing.TB) (*querytest.Archive, lifecycle) {
	t.Helper()
	a := querytest.New(vaa.Mainnet)
	mainnet, err := querytest.Collected(filepath.Join(collectedDir, "vaas-mainnet.ndjson"))
	must(t, err)
	variants, err := querytest.Collected(filepath.Join(collectedDir, "vaa-variants.ndjson"))
	must(t, err)
	var l lifecycle
	add := func(raw []byte, link *archive.Link) vaa.MessageID {
		t.Helper()
		must(t, a.AddVAA(raw, link))
		v, err := vaa.Parse(raw)
		must(t, err)
		return v.MessageID()
	}
	tx := &archive.Link{TxID: strings.Repeat("ab", 32), Trust: archive.TrustClaimed, Source: "file"}
	for _, c := range mainnet {
		if c.PayloadKind == "token-bridge:Transfer" && c.EmitterChain == 2 && l.quorum == (vaa.MessageID{}) {
			l.quorum = add(c.VAA, tx)
		}
		for _, other := range variants {
			if other.Verified && other.Digest == c.Digest && other.Network == c.Network && l.resigned == (vaa.MessageID{}) {
				old, err := vaa.Parse(other.VAA)
				must(t, err)
				if old.GuardianSetIndex < c.GuardianSetIndex {
					add(other.VAA, nil)
					l.resigned = add(c.VAA, tx)
				}
			}
		}
	}
	first, err := vaa.Parse(mainnet[0].VAA)
	must(t, err)
	// The archive does not verify what it is given, so that a conflict can be made of any body.
	other := *first
	other.Nonce++
	l.conflict = add(mainnet[0].VAA, nil)
	add(other.Append(nil), tx)

	body := vaa.Body{Timestamp: 1700000000, Nonce: 7, EmitterChain: 4242, EmitterAddress: vaa.Address{31: 9}, Sequence: 1<<64 - 1, ConsistencyLevel: 200}
	must(t, a.Observe(body, nil))
	l.observed = body.MessageID()
	body.EmitterChain, body.Payload = 15, []byte("<hello>")
	must(t, a.Observe(body, tx))
	l.vanished = body.MessageID()
	must(t, a.Vanish(l.vanished))
	body.Nonce++
	must(t, a.Observe(body, nil))
	if l.quorum == (vaa.MessageID{}) || l.resigned == (vaa.MessageID{}) {
		t.Fatal("the collected VAAs no longer have a transfer of Ethereum and a VAA signed by two sets")
	}
	return a, l
}

// TestGolden holds the JSON of each state, of listings and of errors against files.
func TestGolden(t *testing.T) {
	t.Parallel()
	a, l := lifecycleArchive(t)
	h := serve(t, a)
	for _, c := range []struct {
		name, target string
		status       int
	}{
		{"quorum", "/v1/attestations/" + l.quorum.String(), 200},
		{"resigned", "/v1/attestations/" + l.resigned.String(), 200},
		{"conflict", "/v1/attestations/" + l.conflict.String(), 200},
		{"observed", "/v1/attestations/" + l.observed.String(), 200},
		{"vanished", "/v1/attestations/" + l.vanished.String(), 200},
		{"columns", "/v1/attestations/" + l.quorum.String() + "?column=Payload&column=TxID.", 200},
		{"tx", "/v1/tx/0x" + strings.Repeat("AB", 32), 200},
		{"tx-chain", "/v1/tx/" + strings.Repeat("ab", 32) + "?chain=near", 200},
		{"listing", "/v1/attestations?limit=2&column=SignedVAA", 200},
		{"empty", "/v1/attestations?chain=23", 200},
		{"not-found", "/v1/attestations/ethereum/0x01/7", 400},
		{"unknown-message", "/v1/attestations/2/0x3ee18B2214AFF97000D974cf647E7C347E8fa585/7", 404},
		{"unknown-path", "/v2/attestations", 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := h.do(http.MethodGet, c.target, "X-Request-Id", "golden")
			if res.StatusCode != c.status {
				t.Errorf("status %d, want %d", res.StatusCode, c.status)
			}
			golden(t, c.name, readAll(t, res))
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var indented bytes.Buffer
	must(t, json.Indent(&indented, got, "", "  "))
	file := filepath.Join("testdata", name+".json")
	if *update {
		must(t, os.WriteFile(file, indented.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if diff := cmp.Diff(string(want), indented.String()); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", file, diff)
	}
}

// TestCollectedVAAs looks every collected VAA up and compares the answer with
// what is known of it from elsewhere.
func TestCollectedVAAs(t *testing.T) {
	t.Parallel()
	for _, network := range vaa.Networks() {
		h := load(t, network)
		all, err := querytest.Collected(filepath.Join(collectedDir, "vaas-"+network.String()+".ndjson"))
		must(t, err)
		big := 0
		for _, c := range all {
			body := h.get(t, "/v1/attestations/"+c.ID(), 200)
			if !bytes.Contains(body, []byte(`"sequence":"`+c.Sequence+`"`)) || !bytes.Contains(body, []byte(`"id":"`+c.ID()+`"`)) {
				t.Errorf("%s: digits lost in %s", c.ID(), body)
			}
			if len(c.Sequence) == 20 {
				big++
			}
			if calls := h.reader.Take(); !cmp.Equal(calls, []string{"Get"}) {
				t.Errorf("%s: calls %v, want one Get", c.ID(), calls)
			}
			type version struct {
				Digest           string `json:"digest"`
				GuardianSetIndex uint32 `json:"guardianSetIndex"`
				Signatures       int    `json:"signatures"`
				Guardians        []struct{ Index int }
				VAA              []byte `json:"vaa"`
			}
			type facts struct {
				State, Digest, PayloadKind string
				Timestamp                  time.Time
				Nonce                      uint32
				ConsistencyLevel           uint8
				Payload                    []byte
				Versions                   []version
			}
			var got facts
			must(t, json.Unmarshal(body, &got))
			versions := got.Versions
			got.Versions = nil
			found := false
			for _, v := range versions {
				want := version{c.Digest, c.GuardianSetIndex, len(c.SignerIndices), nil, c.VAA}
				for _, index := range c.SignerIndices {
					want.Guardians = append(want.Guardians, struct{ Index int }{index})
				}
				found = found || cmp.Equal(v, want)
			}
			if !found {
				t.Errorf("%s: no version is the collected VAA: %v", c.ID(), versions)
			}
			if got.Digest != c.Digest {
				continue // the message has another digest besides
			}
			state := query.StateQuorum
			for _, v := range versions {
				switch {
				case v.Digest != c.Digest:
					state = query.StateConflict
				case v.GuardianSetIndex != versions[0].GuardianSetIndex && state == query.StateQuorum:
					state = query.StateResigned
				}
			}
			want := facts{
				state, c.Digest, kindOf(t, network, c.VAA), time.Unix(c.Timestamp, 0).UTC(), c.Nonce, c.ConsistencyLevel,
				c.VAA[len(c.VAA)-c.PayloadLen:], nil,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", c.ID(), diff)
			}
		}
		if network != vaa.Devnet && big == 0 {
			t.Errorf("no sequence of 20 digits among the VAAs of %s", network)
		}
	}
}

// TestSpellings finds one message in every spelling of its id.
func TestSpellings(t *testing.T) {
	t.Parallel()
	a, l := lifecycleArchive(t)
	h := serve(t, a)
	want := h.get(t, "/v1/attestations/"+l.quorum.String(), 200)
	address := l.quorum.EmitterAddress.String()
	sequence := strings.Split(l.quorum.String(), "/")[2]
	padded := strings.Repeat("0", 20-len(sequence)) + sequence
	for _, spelling := range []string{
		"2/" + address + "/" + padded,
		"2:" + address + ":" + sequence,
		"2:" + address + ":" + padded,
		"2:" + address + ":" + padded[4:],
		"ethereum/0x" + strings.ToUpper(address[24:]) + "/" + sequence,
		"ETHEREUM/" + address[24:] + "/" + sequence,
		"CHAIN_ID_ETHEREUM/" + address + "/" + sequence,
		"ethereum:0x" + address[24:] + ":" + sequence,
		"2%2F" + address + "%2F" + sequence,
		"%202:" + address + ":" + sequence + "%0A",
	} {
		if got := h.get(t, "/v1/attestations/"+spelling, 200); !bytes.Equal(got, want) {
			t.Errorf("%s: another answer", spelling)
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	a, l := lifecycleArchive(t)
	h := serve(t, a)
	record, _ := a.Store.Record(l.resigned)
	raw := record.Signed().Bytes
	target := "/v1/attestations/" + l.resigned.String() + "?format="
	for format, want := range map[string]string{
		"raw": string(raw), "hex": hex.EncodeToString(raw), "base64": base64.StdEncoding.EncodeToString(raw),
	} {
		h.reader.Take()
		if got := h.get(t, target+format, 200); string(got) != want {
			t.Errorf("format %s: %q, want %q", format, got, want)
		}
		if calls := h.reader.Take(); !cmp.Equal(calls, []string{"Get"}) || !h.reader.Columns.Latest || h.reader.Columns.Wants("MessagePublication", "Payload") {
			t.Errorf("format %s: calls %v for %+v", format, calls, h.reader.Columns)
		}
	}
	for accept, octets := range map[string]bool{
		"application/octet-stream": true, "application/octet-stream;q=0.9, */*;q=0.1": true, "*/*": false, "application/json, application/octet-stream": false,
	} {
		res := h.do(http.MethodGet, "/v1/attestations/"+l.resigned.String(), "Accept", accept)
		if got := bytes.Equal(readAll(t, res), raw); got != octets || !slices.Contains(res.Header.Values("Vary"), "Accept") {
			t.Errorf("Accept %q: the bytes: %t, Vary %q", accept, got, res.Header.Values("Vary"))
		}
	}
	body := h.get(t, "/v1/attestations/"+l.observed.String()+"?format=raw", 404)
	if !bytes.Contains(body, []byte("no signed VAA")) {
		t.Errorf("a message without quorum: %s", body)
	}
}

// TestColumns holds that only the asked cells, and the digest, are read.
func TestColumns(t *testing.T) {
	t.Parallel()
	a, l := lifecycleArchive(t)
	h := serve(t, a)
	for _, c := range []struct {
		query string
		want  archive.Columns
		keys  []string // of the answer's columns, those that are not null
	}{
		{"?column=Nonce", archive.Columns{Qualifiers: []string{"Nonce", "Digest"}}, []string{"nonce"}},
		{"?family=MessagePublication&column=RecordedAt", archive.Columns{Qualifiers: []string{"RecordedAt", "Digest"}}, []string{"recordedAt"}},
		{"?family=QuorumState&column=Conflict.", archive.Columns{Qualifiers: []string{"Conflict.", "Digest"}}, []string{"conflicts"}},
		{"?family=MessagePublication", archive.Columns{Qualifiers: append(schema.Columns(schema.MessagePublication), "Conflict.")}, []string{
			"consistencyLevel", "decoded", "digestSingle", "guardianSetExpiresAt", "guardianSetIndex", "initiatingTxId", "links", "nonce", "payload",
			"payloadKind", "recordedAt", "state", "timestamp", "vanished", "version",
		}},
		{"?family=QuorumState", archive.Columns{Qualifiers: []string{"SignedVAA", "RecordedAt", "Conflict.", "Other.", "Signature.", "Digest", "Vanished."}}, []string{
			"conflicts", "decoded", "digestSingle", "evidence", "guardianSetExpiresAt", "payloadKind", "repair", "signedVaa", "state", "versions",
		}},
	} {
		var got map[string]any
		must(t, json.Unmarshal(h.get(t, "/v1/attestations/"+l.quorum.String()+c.query, 200), &got))
		if diff := cmp.Diff(c.want, h.reader.Columns); diff != "" {
			t.Errorf("%s reads (-want +got):\n%s", c.query, diff)
		}
		want := map[string]bool{
			"id": true, "rowKey": true, "network": true, "emitterChain": true, "emitterChainName": true, "emitterAddress": true,
			"emitterNative": true, "sequence": true, "digest": true,
		}
		for _, k := range c.keys {
			want[k] = true
		}
		for k, v := range got {
			if (v != nil) != want[k] {
				t.Errorf("%s: %s is %v", c.query, k, v)
			}
		}
		if len(got) < 30 {
			t.Errorf("%s: the shape has only %d keys", c.query, len(got))
		}
	}
}

func TestETag(t *testing.T) {
	t.Parallel()
	a, l := lifecycleArchive(t)
	h := serve(t, a)
	target := "/v1/attestations/" + l.quorum.String()
	first := h.do(http.MethodGet, target)
	body := readAll(t, first)
	tag := first.Header.Get("ETag")
	if tag == "" {
		t.Fatal("no ETag")
	}
	if res := h.do(http.MethodGet, target, "If-None-Match", tag); res.StatusCode != http.StatusNotModified || len(readAll(t, res)) != 0 {
		t.Errorf("If-None-Match of the same: status %d", res.StatusCode)
	}
	head := h.do(http.MethodHead, target)
	if head.StatusCode != 200 || head.ContentLength != int64(len(body)) || head.Header.Get("ETag") != tag || len(readAll(t, head)) != 0 {
		t.Errorf("HEAD: status %d, length %d, want %d, ETag %s", head.StatusCode, head.ContentLength, len(body), head.Header.Get("ETag"))
	}
	evidence := archive.Evidence{ID: l.quorum, Digest: *mustRecord(t, a, l.quorum).Digest(), Signature: vaa.Signature{GuardianIndex: 3}}
	must(t, a.Store.PutEvidence(context.Background(), []archive.Evidence{evidence}))
	if res := h.do(http.MethodGet, target, "If-None-Match", tag); res.StatusCode != 200 || res.Header.Get("ETag") == tag {
		t.Errorf("a changed message: status %d, ETag %s", res.StatusCode, res.Header.Get("ETag"))
	}
}

func mustRecord(t testing.TB, a *querytest.Archive, id vaa.MessageID) *archive.Record {
	t.Helper()
	r, ok := a.Store.Record(id)
	if !ok {
		t.Fatalf("%s is not in the archive", id)
	}
	return &r
}
