package payload_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// collected is one line of the collected VAAs under testdata/vaas, as far as payloads go.
type collected struct {
	VAA         []byte `json:"vaa"`
	Digest      string `json:"digest"`
	PayloadKind string `json:"payload_kind"`
	Decoded     fields `json:"decoded"`
}

// fields are what was recorded of a payload when it was collected, by other code than ours.
type fields struct {
	Amount         string       `json:"amount"`
	Fee            string       `json:"fee"`
	TokenAddress   string       `json:"token_address"`
	TokenChain     vaa.ChainID  `json:"token_chain"`
	ToAddress      string       `json:"to_address"`
	ToChain        vaa.ChainID  `json:"to_chain"`
	FromAddress    string       `json:"from_address"`
	PayloadLen     int          `json:"payload_len"`
	Decimals       uint8        `json:"decimals"`
	Symbol         string       `json:"symbol"`
	Name           string       `json:"name"`
	Module         any          `json:"module"` // a name in governance, a number of Pyth's
	Action         uint8        `json:"action"`
	TargetChain    *vaa.ChainID `json:"target_chain"`
	NewIndex       uint32       `json:"new_index"`
	Keys           []string     `json:"keys"`
	NewContract    string       `json:"new_contract"`
	ForeignChain   vaa.ChainID  `json:"foreign_chain"`
	ForeignEmitter string       `json:"foreign_emitter"`
}

func readCollected(t testing.TB, name string) []collected {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vaas", name))
	if err != nil {
		t.Fatal(err)
	}
	var all []collected
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c collected
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, c)
	}
	return all
}

func TestCollectedPayloads(t *testing.T) {
	t.Parallel()
	var count, compared int
	for _, network := range vaa.Networks() {
		for _, c := range readCollected(t, "vaas-"+network.String()+".ndjson") {
			count++
			v, err := vaa.Parse(c.VAA)
			if err != nil {
				t.Fatal(err)
			}
			kind, decoded, err := payload.Decode(network, &v.Body)
			if kind != c.PayloadKind {
				t.Errorf("%s %s from %s: kind %s (%v), want %s", network, c.Digest, v.MessageID(), kind, err, c.PayloadKind)
			}
			got, ok := recorded(decoded)
			if !ok {
				continue
			}
			compared++
			// Some SDK tests sign an upgrade to no guardians, which may be recorded as an empty list.
			if diff := cmp.Diff(c.Decoded, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s %s: %s", network, c.Digest, diff)
			}
			if _, _, ok := payload.Recipient(kind, decoded); ok != (kind == payload.KindTransfer || kind == payload.KindTransferWithPayload) {
				t.Errorf("%s %s: recipient %t of %s", network, c.Digest, ok, kind)
			}
		}
	}
	if count != 578 || compared < 300 {
		t.Errorf("%d VAAs, want 578; fields of %d compared", count, compared)
	}
}

// recorded brings a decoded payload into the form of the record; false if there is nothing to compare.
func recorded(decoded any) (fields, bool) {
	str := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	switch d := decoded.(type) {
	case *payload.Transfer:
		return fields{
			Amount: d.Amount.String(), Fee: d.Fee.String(), TokenAddress: d.Token.Address.String(), TokenChain: d.Token.Chain,
			ToAddress: d.To.Address.String(), ToChain: d.To.Chain,
		}, true
	case *payload.TransferWithPayload:
		return fields{
			Amount: d.Amount.String(), TokenAddress: d.Token.Address.String(), TokenChain: d.Token.Chain,
			ToAddress: d.To.Address.String(), ToChain: d.To.Chain, FromAddress: d.From.Address.String(), PayloadLen: len(d.Payload),
		}, true
	case *payload.AttestMeta:
		return fields{
			TokenAddress: d.Token.Address.String(), TokenChain: d.Token.Chain, Decimals: d.Decimals, Symbol: str(d.Symbol), Name: str(d.Name),
		}, true
	case *payload.Governance:
		f := fields{Module: d.Module, Action: d.Action, TargetChain: d.TargetChain}
		switch details := d.Details.(type) {
		case *payload.GuardianSetUpgrade:
			f.NewIndex = details.NewIndex
			for _, key := range details.Keys {
				f.Keys = append(f.Keys, strings.ToLower(key.String()))
			}
		case *payload.ContractUpgrade:
			f.NewContract = details.NewContract.Address.String()
		case *payload.ChainRegistration:
			f.ForeignChain, f.ForeignEmitter = details.Emitter.Chain, details.Emitter.Address.String()
		}
		return f, true
	}
	return fields{}, false
}

// recordedEmitters are those of testdata/vaas/chains.json.
type recordedEmitters struct {
	TokenBridge string   `json:"token_bridge_emitter"`
	NFTBridge   string   `json:"nft_bridge_emitter"`
	Relayers    []string `json:"wormhole_relayer_emitters"`
	Circle      string   `json:"cctp_emitter"`
}

// TestRecordedEmitters sends from every emitter that the SDKs know a payload that only that kind of contract sends.
func TestRecordedEmitters(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vaas", "chains.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Chains []struct {
			ID       vaa.ChainID                 `json:"id"`
			Emitters map[string]recordedEmitters `json:"emitters"`
		} `json:"chains"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	var count int
	check := func(network vaa.Network, chain vaa.ChainID, emitter, kind string, bytes []byte) {
		if emitter == "" {
			return
		}
		count++
		address, err := vaa.ParseAddress(chain, emitter)
		if err != nil {
			t.Fatal(err)
		}
		body := &vaa.Body{EmitterChain: chain, EmitterAddress: address, Payload: bytes}
		if got, _, err := payload.Decode(network, body); got != kind {
			t.Errorf("%s %s %s: %s (%v), want %s", network, chain, emitter, got, err, kind)
		}
	}
	for _, chain := range file.Chains {
		for name, emitters := range chain.Emitters {
			network, err := vaa.ParseNetwork(name)
			if err != nil {
				t.Fatal(err)
			}
			check(network, chain.ID, emitters.TokenBridge, payload.KindTransfer, transferBytes())
			check(network, chain.ID, emitters.NFTBridge, "nft-bridge:Transfer", nftBytes())
			for _, relayer := range emitters.Relayers {
				check(network, chain.ID, relayer, "relayer:DeliveryInstruction", []byte{1})
			}
			check(network, chain.ID, emitters.Circle, "cctp:CircleIntegrationDeposit", circleBytes())
		}
	}
	if count < 190 {
		t.Errorf("only %d emitters", count)
	}
}
