package clienttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/ingest/source/file"
	"github.com/attestry/attestry/internal/run"
	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/query/publicrpc"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/vaa"
)

const (
	collected = "../../testdata/vaas/vaas-mainnet.ndjson"
	// clientTimeout bounds the run of one client: the slowest loads for ten seconds on a
	// quiet machine.
	clientTimeout = 3 * time.Minute
)

// collectedVAA is a line of the collected VAAs.
type collectedVAA struct {
	VAA   []byte `json:"vaa"`
	Kind  string `json:"payload_kind"`
	Chain uint16 `json:"emitter_chain"`
	id    vaa.MessageID
}

func readCollected(t *testing.T) []collectedVAA {
	t.Helper()
	text, err := os.ReadFile(collected)
	if err != nil {
		t.Fatal(err)
	}
	var all []collectedVAA
	for line := range bytes.Lines(text) {
		var c collectedVAA
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		v, err := vaa.Parse(c.VAA)
		if err != nil {
			t.Fatal(err)
		}
		c.id = v.MessageID()
		all = append(all, c)
	}
	return all
}

// world is a running archive of the collected VAAs of mainnet but for the last.
type world struct {
	t      *testing.T
	server *run.Server
	all    []collectedVAA
	late   collectedVAA
}

// txOf is the transaction that the test claims for a VAA: of the form of its chain.
func txOf(c collectedVAA, n int) string {
	if c.Chain == 1 {
		return strings.Repeat("5", 85) + fmt.Sprintf("%03d", n+111) // the base58 of a signature has no 0
	}
	return fmt.Sprintf("0x%064x", n+1)
}

func newWorld(t *testing.T) *world { return newWorldWith(t, 0) }

// newWorldWith is newWorld with a limit of requests a minute; 0 is none.
func newWorldWith(t *testing.T, perMinute int) *world {
	t.Helper()
	w := &world{t: t, all: readCollected(t)}
	w.late = w.all[len(w.all)-1]
	w.all = w.all[:len(w.all)-1]
	dir := t.TempDir() // it goes after the serve
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan *run.Server, 1), make(chan error, 1)
	go func() {
		ended <- run.Serve(ctx, run.ServeConfig{
			Config: run.Config{Network: vaa.Mainnet, DataDir: dir}, HTTP: "127.0.0.1:0", Logger: zap.NewNop(), Limits: web.Limits{PerMinute: perMinute},
			Ready: func(_ context.Context, s *run.Server) error {
				ready <- s
				return nil
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the serve ended with %v", err)
		}
	})
	select {
	case w.server = <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	w.ingest(w.all)
	return w
}

// ingest takes VAAs in, each with its transaction.
func (w *world) ingest(all []collectedVAA) {
	w.t.Helper()
	var text bytes.Buffer
	for i, c := range all {
		line, err := json.Marshal(map[string]any{"vaa": c.VAA, "txId": txOf(c, i)})
		if err != nil {
			w.t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	name := filepath.Join(w.t.TempDir(), "vaas.ndjson")
	if err := os.WriteFile(name, text.Bytes(), 0o600); err != nil {
		w.t.Fatal(err)
	}
	source, err := file.Open(name, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	summary, err := ingest.NewRunner(ingest.RunnerConfig{
		Store: w.server.Store, Verifier: w.server.Verifier, Class: archive.ClassHistory,
		Writer: ingest.NewWriter(ingest.WriterConfig{Store: w.server.Store}),
	}).Run(w.t.Context(), source)
	if err != nil || summary.Outcomes[archive.OutcomeAccepted] != uint64(len(all)) {
		w.t.Fatalf("ingest of %d: %v, %v", len(all), summary.Outcomes, err)
	}
}

// answer is a line that a client wrote.
type answer struct {
	Name  string
	Value json.RawMessage
}

// client runs the main program of a client and returns what it wrote. When it says
// that it is waiting, the late VAA is taken in. done ends a client that does not end by
// itself.
func (w *world) client(name, script string, asked any, done func(answers []answer) bool) map[string][]json.RawMessage {
	w.t.Helper()
	dir := testenv.NodeClient(w.t, name)
	text, err := os.ReadFile(filepath.Join("testdata", name, script))
	if err != nil {
		w.t.Fatal(err)
	}
	// Modules are found from where the script is.
	script = filepath.Join(dir, script)
	if err := os.WriteFile(script, text, 0o600); err != nil {
		w.t.Fatal(err)
	}
	arg, err := json.Marshal(asked)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", script, "http://"+w.server.HTTP, string(arg))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	var all []answer
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) != nil || a.Name == "" {
			continue // a library has its say too
		}
		all = append(all, a)
		if a.Name == "waiting" {
			w.ingest([]collectedVAA{w.late})
		}
		if done != nil && done(all) {
			cmd.Process.Kill() //nolint:errcheck // it may have ended
		}
	}
	if err := cmd.Wait(); err != nil && (done == nil || !done(all)) {
		w.t.Fatalf("%s: %v\n%s\n%v", name, err, &stderr, all)
	}
	answers := map[string][]json.RawMessage{}
	for _, a := range all {
		answers[a.Name] = append(answers[a.Name], a.Value)
	}
	return answers
}

// decode reads the only answer of a name.
func decode[T any](t *testing.T, answers map[string][]json.RawMessage, name string) (out T) {
	t.Helper()
	if len(answers[name]) != 1 {
		t.Fatalf("%d answers of %s", len(answers[name]), name)
	}
	if err := json.Unmarshal(answers[name][0], &out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

type summary struct {
	ID         string
	Set        uint32
	Signatures int
	Base64     string
}

// signedVAARequest asks a guardian for the VAA of a message.
func signedVAARequest(id vaa.MessageID) *publicrpc.GetSignedVAARequest {
	return &publicrpc.GetSignedVAARequest{MessageId: &publicrpc.MessageID{
		EmitterChain: publicrpc.ChainID(id.EmitterChain), EmitterAddress: id.EmitterAddress.String(), Sequence: id.Sequence,
	}}
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// bare is an id without what the clients write before an address.
func bare(id string) string { return strings.Replace(id, "/0x", "/", 1) }

// TestSDK asks with @wormhole-foundation/sdk: by id, by transaction, for the status of a
// transaction, and again and again until a VAA is there.
func TestSDK(t *testing.T) {
	w := newWorld(t)
	// Of the others the SDK has no layout, or one for chains that it knows only.
	kinds := map[uint64]string{110277: "TokenBridge:Transfer", 85075: "TokenBridge:AttestMeta"}
	type ask struct {
		ID   string `json:"id"`
		Kind string `json:"kind"`
	}
	var ids []ask
	var txs []string
	var wantTxs []collectedVAA
	for i, c := range w.all {
		kind, ok := kinds[c.id.Sequence]
		if !ok {
			kind = "Uint8Array"
		}
		ids = append(ids, ask{c.id.String(), kind})
		if len(txs) < 20 {
			txs, wantTxs = append(txs, txOf(c, i)), append(wantTxs, c)
		}
	}
	answers := w.client("sdk", "main.mjs", map[string]any{
		"ids": ids, "txs": txs, "status": w.all[0].id.String(), "absent": "2/" + strings.Repeat("0", 62) + "ff/1", "late": w.late.id.String(),
	}, nil)
	for i, value := range answers["id"] {
		var got summary
		if err := json.Unmarshal(value, &got); err != nil || !strings.Contains(strings.ToLower(bare(got.ID)), ids[i].ID[strings.Index(ids[i].ID, "/"):]) || got.Signatures == 0 {
			t.Errorf("%s: %s", ids[i].ID, value)
		}
	}
	for i, value := range answers["tx"] {
		var got summary
		id := wantTxs[i].id.String()
		if err := json.Unmarshal(value, &got); err != nil || !strings.Contains(bare(got.ID), id[strings.Index(id, "/"):]) {
			t.Errorf("%s: %s", txs[i], value)
		}
	}
	if len(answers["id"]) != len(ids) || len(answers["tx"]) != len(txs) || len(ids) < 100 {
		t.Errorf("%d of %d ids and %d of %d transactions answered", len(answers["id"]), len(ids), len(answers["tx"]), len(txs))
	}
	status := decode[struct{ ID, TxHash, Origin string }](t, answers, "status")
	if want := strings.TrimPrefix(txOf(w.all[0], 0), "0x"); status.ID != w.all[0].id.String() || status.TxHash != want || status.Origin != want {
		t.Errorf("status: %+v", status)
	}
	if got := string(answers["absent"][0]); got != "null" {
		t.Errorf("an absent VAA: %s", got)
	}
	if got := decode[struct{ Base64 string }](t, answers, "bytes"); got.Base64 != base64.StdEncoding.EncodeToString(w.late.VAA) {
		t.Error("the bytes of the late VAA are not as ingested")
	}
	t.Logf("%d by id, %d by transaction", len(ids), len(txs))
}

// TestLegacySDK asks with @certusone/wormhole-sdk by gRPC-Web.
func TestLegacySDK(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for _, c := range w.all {
		ids = append(ids, c.id.String())
	}
	absent := "2/" + strings.Repeat("0", 62) + "ff/1"
	answers := w.client("legacy", "main.cjs", map[string]any{
		"ids": ids, "absent": absent, "late": w.late.id.String(),
		"bad": [][3]string{{"2", strings.Repeat("0", 62) + "ff", "1"}, {"2", "0x12", "1"}, {"2", "12", "1"}},
	}, nil)
	for i, value := range answers["id"] {
		var got summary
		if err := json.Unmarshal(value, &got); err != nil || got.ID != ids[i] || got.Base64 != base64.StdEncoding.EncodeToString(w.all[i].VAA) {
			t.Errorf("%s: %s", ids[i], value)
		}
	}
	if len(answers["id"]) != len(ids) {
		t.Errorf("%d of %d ids answered", len(answers["id"]), len(ids))
	}
	var bad []struct {
		Code    int
		Message string
	}
	for _, value := range answers["bad"] {
		bad = append(bad, struct {
			Code    int
			Message string
		}{})
		if err := json.Unmarshal(value, &bad[len(bad)-1]); err != nil {
			t.Fatal(err)
		}
	}
	if len(bad) == 0 || bad[0].Code != 5 || bad[0].Message != "requested VAA not found in store" {
		t.Errorf("refused: %+v", bad)
	}
	if got := decode[struct{ Code int }](t, answers, "absent"); got.Code == 0 {
		t.Errorf("an absent VAA: %+v", got)
	}
	if got := decode[summary](t, answers, "late"); got.ID != w.late.id.String() {
		t.Errorf("the late VAA: %+v", got)
	}
	t.Logf("%d by id, refusals %+v", len(ids), bad)
}

// TestGRPCWeb asks with grpc-web, whose default is the form in text.
func TestGRPCWeb(t *testing.T) {
	w := newWorld(t)
	type ask struct {
		Format  string `json:"format"`
		Method  string `json:"method"`
		Request []byte `json:"request"`
	}
	type reply struct {
		Code     int
		Message  string
		Response []byte
	}
	var asked []ask
	var want []reply
	for _, format := range []string{"text", "binary"} {
		add := func(method string, request proto.Message, r reply) {
			asked, want = append(asked, ask{format, method, marshal(t, request)}), append(want, r)
		}
		for _, c := range w.all {
			add("GetSignedVAA", signedVAARequest(c.id), reply{Response: marshal(t, &publicrpc.GetSignedVAAResponse{VaaBytes: c.VAA})})
		}
		add("GetSignedVAA", signedVAARequest(vaa.MessageID{EmitterChain: 2}), reply{Code: 5, Message: "requested VAA not found in store"})
		add("GetSignedVAA", &publicrpc.GetSignedVAARequest{}, reply{Code: 3, Message: "no message ID specified"})
		add("GetSignedBatchVAA", &publicrpc.GetSignedVAARequest{}, reply{Code: 12, Message: "unknown method GetSignedBatchVAA for service publicrpc.v1.PublicRPCService"})
	}
	answers := w.client("grpcweb", "main.cjs", asked, nil)["answer"]
	if len(answers) != len(asked) {
		t.Fatalf("%d of %d calls answered", len(answers), len(asked))
	}
	for i, value := range answers {
		var got reply
		if err := json.Unmarshal(value, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", asked[i].Format, asked[i].Method, diff)
		}
	}
}

// TestRelayerEngine has the worker of @wormhole-foundation/relayer-engine find the VAAs
// between two that it has seen.
func TestRelayerEngine(t *testing.T) {
	w := newWorld(t)
	server := testenv.StartRedis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	chosen := w.all[0]
	for _, c := range w.all {
		if c.id.EmitterChain == 2 && c.id.Sequence > 1 && c.id.Sequence < 1<<50 {
			chosen = c
		}
	}
	emitter := chosen.id.EmitterAddress.String()
	native, _ := vaa.NativeAddress(chosen.id.EmitterChain, chosen.id.EmitterAddress)
	key := fmt.Sprintf("MissedVaaWorkerV3:missedVaasV3:seenVaas:%d:%s", chosen.id.EmitterChain, emitter)
	for _, sequence := range []uint64{chosen.id.Sequence - 1, chosen.id.Sequence + 1} {
		if err := client.ZAdd(t.Context(), key, redis.Z{Score: float64(sequence), Member: fmt.Sprint(sequence)}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	host, port, _ := strings.Cut(server.Addr, ":")
	answers := w.client("relayer", "main.mjs", map[string]any{
		"chain": chosen.id.EmitterChain, "emitter": native, "redis": map[string]string{"host": host, "port": port},
	}, func(answers []answer) bool { return len(answers) > 0 })
	if len(answers["missed"]) == 0 {
		t.Fatal("nothing that was missed came")
	}
	var got summary
	if err := json.Unmarshal(answers["missed"][0], &got); err != nil || got.ID != chosen.id.String() || got.Base64 != base64.StdEncoding.EncodeToString(chosen.VAA) {
		t.Errorf("missed: %s, want %s", answers["missed"][0], chosen.id)
	}
}
