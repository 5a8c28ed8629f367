package payload_test

import (
	"bufio"
	"bytes"
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	Token          string       `json:"token"` // of Circle deposits, as the next three
	SourceDomain   uint32       `json:"source_domain"`
	TargetDomain   uint32       `json:"target_domain"`
	Nonce          uint64       `json:"nonce"`
	Magic          string       `json:"magic"` // of Pyth's payloads, as the next two
	Slot           uint64       `json:"slot"`
	Version        string       `json:"version"`
	Inner          string       `json:"inner"` // of native token transfers
}

// mapped are the kinds that the record names otherwise, by message.
var mapped = map[string]string{
	"5/000000000000000000000000f18f923480dc144326e6c65d4f3d47aa459bb41c/1353":   "mayan:opaque",
	"23/000000000000000000000000f18f923480dc144326e6c65d4f3d47aa459bb41c/15603": "mayan:opaque",
	// The record takes the matching engine's custodian for a Circle Integration, and has no names for the actions of CoreRelayer.
	"1/74e70ed52464f997369bbefd141d8a2d9dd3cd15e1f21b37bce18f45e0e923b2/5":                    "liquidity-layer:CctpDeposit",
	"1/0000000000000000000000000000000000000000000000000000000000000004/55763149":             "governance:CoreRelayer:RegisterChain",
	"1/0000000000000000000000000000000000000000000000000000000000000004/12551946319653316807": "governance:CoreRelayer:SetDefaultDeliveryProvider",
	"1/0000000000000000000000000000000000000000000000000000000000000004/14357519004752864699": "governance:CoreRelayer:SetDefaultDeliveryProvider",
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

// paying are the kinds that pay somebody.
var paying = []string{payload.KindTransfer, payload.KindTransferWithPayload, payload.KindNFTTransfer}

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
			if want := stdcmp.Or(mapped[v.MessageID().String()], c.PayloadKind); kind != want {
				t.Errorf("%s %s from %s: kind %s (%v), want %s", network, c.Digest, v.MessageID(), kind, err, want)
			}
			if decoded == nil && err == nil && kind != payload.KindGeneric {
				t.Errorf("%s %s: %s is not decoded, without a reason", network, c.Digest, kind)
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
			if _, _, ok := payload.Recipient(kind, decoded); ok != slices.Contains(paying, kind) {
				t.Errorf("%s %s: recipient %t of %s", network, c.Digest, ok, kind)
			}
		}
	}
	if count != 578 || compared < 500 {
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
			if d.Module == "CoreRelayer" {
				break // not recorded
			}
			f.ForeignChain, f.ForeignEmitter = details.Emitter.Chain, details.Emitter.Address.String()
		}
		return f, true
	case *payload.CircleDeposit:
		return fields{
			Token: d.Token.Address.String(), Amount: d.Amount.String(), SourceDomain: d.SourceDomain, TargetDomain: d.TargetDomain, Nonce: d.Nonce,
		}, true
	case *payload.MerkleRoot:
		return fields{Magic: "AUWV", Slot: d.Slot}, true
	case *payload.PriceBatch:
		return fields{Magic: "P2WH", Version: fmt.Sprintf("%d.%d", d.VersionMajor, d.VersionMinor)}, true
	case *payload.EarlyPriceBatch:
		return fields{Magic: "P2WH", Version: "2.512"}, true // the record reads the payload id as half of a minor version
	case *payload.PythGovernance:
		return fields{Magic: "PTGM", Module: float64(d.Module), Action: d.Action}, true
	case *payload.NTTMessage:
		f := fields{}
		if d.ManagerMessage != nil && d.ManagerMessage.Nested != nil && d.ManagerMessage.Nested.Kind == "ntt:NativeTokenTransfer" {
			f.Inner = "ntt-transfer"
		}
		return f, true
	}
	return fields{}, false
}
