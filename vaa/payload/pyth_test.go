package payload_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// earlyPrice is one price as versions 1 and 2 have it, with their header, and what larger ones have in addition.
func earlyPrice(version byte, extra ...[]byte) []byte {
	return join([]byte("P2WH"), []byte{0, version, 1}, word(0x11), word(0x22), []byte{1}, u64(0xffffffffffffffff), u32(0xfffffff8), u64(2), u64(3), u64(4),
		u64(5), u64(6), u64(0xfffffffffffffff9), u64(12), []byte{1, 0}, u64(1683208934), join(extra...))
}

// earlyBatch is a batch of version 2 of equal prices.
func earlyBatch(count uint16, price []byte) []byte {
	return join([]byte("P2WH"), u16(2), []byte{2}, u16(count), u16(uint16(len(price))), slices.Repeat(price, int(count)))
}

func earlyPriceLayouts() []layout {
	price := func(publishers, most string) string {
		return `{"productId":` + wide(11) + `,"priceId":` + wide(22) + `,"priceType":1,"price":"-1","exponent":-8,` +
			`"emaPrice":{"value":"2","numerator":"3","denominator":"4"},"emaConfidence":{"value":"5","numerator":"6","denominator":"-7"},` +
			`"confidence":"12","status":1,"corporateAction":0,"attestationTime":"2023-05-04T14:02:14Z",` +
			`"publisherCount":` + publishers + `,"maxPublisherCount":` + most + `}`
	}
	batch := func(version int, prices ...string) string {
		return fmt.Sprintf(`{"version":%d,"attestations":[%s]}`, version, strings.Join(prices, ","))
	}
	old, later := price("null", "null"), price("4", "5")
	const kind = "pyth:batch-price-attestation"
	return []layout{
		{"price of version 1", vaa.Mainnet, 26, pythnetHex, earlyPrice(1), "pyth:price-attestation", batch(1, old), 0},
		{"prices of version 2", vaa.Mainnet, 26, pythnetHex, earlyBatch(2, earlyPrice(2)), kind, batch(2, old, old), 0},
		{"no prices of version 2", vaa.Mainnet, 26, pythnetHex, join([]byte("P2WH"), u16(2), []byte{2}, u16(0), u16(150)), kind, batch(2), 0},
		{"prices of version 2 with publishers", vaa.Mainnet, 26, pythnetHex, earlyBatch(1, earlyPrice(2, u32(4), u32(5))), kind, batch(2, later), 0},
		{"prices of version 2 with more", vaa.Mainnet, 26, pythnetHex, earlyBatch(1, earlyPrice(2, u32(4), u32(5), []byte{9})), kind, batch(2, later), 0},
	}
}

// TestMisfitEarlyPrices: a batch with another id, a smaller size, or a price with another header is named and not decoded.
func TestMisfitEarlyPrices(t *testing.T) {
	t.Parallel()
	l := layout{network: vaa.Mainnet, chain: 26, emitter: pythnetHex}
	for name, spoilt := range map[string][]byte{
		"price with the id of a batch": join(earlyPrice(1)[:6], []byte{2}, earlyPrice(1)[7:]),
		"batch with the id of a price": join(earlyBatch(1, earlyPrice(2))[:6], []byte{1}, earlyBatch(1, earlyPrice(2))[7:]),
		"price of another version":     earlyBatch(2, earlyPrice(1)),
		"price that is too small":      earlyBatch(1, earlyPrice(2)[:149]),
	} {
		if kind, decoded, err := l.decode(t, spoilt); !strings.HasPrefix(kind, "pyth:") || decoded != nil || err == nil {
			t.Errorf("%s: %s, %+v, %v", name, kind, decoded, err)
		}
	}
}

// pythDecision is a decision of Pyth's governance that was laid out by hand.
type pythDecision struct {
	name   string
	module byte
	action byte
	chain  uint16
	body   []byte
	title  string // name of the action; "" for none
	want   string // details, in JSON
	open   int    // of the body, how many bytes must be there if what follows may be cut; 0: all
	also   []int  // sizes at which the body is another layout
}

func (d pythDecision) bytes() []byte {
	return join([]byte("PTGM"), []byte{d.module, d.action}, u16(d.chain), d.body)
}

// source is a data source: a chain and 0x<last>.
func source(chain uint16, last byte) []byte { return join(u16(chain), word(last)) }

func little32(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

// principal is a contract on Stacks, or an account if it has no name, with its length.
func principal(name string) []byte {
	if name == "" {
		return sized8(join([]byte{5, 22}, word(0x11)[12:]))
	}
	return sized8(join([]byte{6, 22}, word(0x11)[12:], sized8([]byte(name))))
}

func pythDecisions() []pythDecision {
	claim := (&vaa.VAA{Version: 1, Body: vaa.Body{EmitterChain: 1, EmitterAddress: vaa.Address(word(0x11)), Sequence: 7, Payload: []byte{1}}}).Append(nil)
	sources := join([]byte{2}, source(1, 0x11), source(26, 0x22))
	sourcesJSON := `{"sources":[` + onChain(1, 11) + `,` + onChain(26, 22) + `]}`
	fee := join(u64(1<<63), u64(3))
	contract := `{"version":22,"hash":"` + fmt.Sprintf("%040d", 11) + `","contractName":"core-v2"}`
	account := `{"version":22,"hash":"` + fmt.Sprintf("%040d", 11) + `","contractName":null}`
	instruction := join(word(0x11), little32(2), word(0x22), []byte{1, 0}, word(0x33), []byte{0, 1}, little32(3), []byte{7, 8, 9})
	instructionJSON := `{"program":` + onChain(1, 11) + `,"accounts":[{"address":` + onChain(1, 22) + `,"signer":true,"writable":false},` +
		`{"address":` + onChain(1, 33) + `,"signer":false,"writable":true}],"data":"070809"}`
	const feeJSON, big = `{"value":"9223372036854775808","exponent":"3","token":%s}`, "9223372036854775808"
	noToken := fmt.Sprintf(feeJSON, "null")
	stacksSource := `{"source":` + onChain(1, 11) + `,"initialSequence":null}`
	return []pythDecision{
		{"instructions", 0, 0, 1, join(little32(2), instruction, instruction), "ExecutePostedVaa", `{"instructions":[` + instructionJSON + `,` + instructionJSON + `]}`, 0, nil},
		{"no instructions", 0, 0, 1, little32(0), "ExecutePostedVaa", `{"instructions":[]}`, 0, nil},
		{"code id", 1, 0, 20, u64(1 << 63), "UpgradeContract", `{"codeId":"` + big + `","newContract":null,"hash":null}`, 0, nil},
		{"contract", 1, 0, 2, word(0x11)[12:], "UpgradeContract", `{"codeId":null,"newContract":` + evm(2, 11) + `,"hash":null}`, 0, []int{8}},
		{"contract on a chain of Pyth's own", 1, 0, 60051, word(0x11)[12:], "UpgradeContract", `{"codeId":null,"newContract":` + universal(60051, 11) + `,"hash":null}`, 0, []int{8}},
		{"hash", 1, 0, 22, word(0x11), "UpgradeContract", `{"codeId":null,"newContract":null,"hash":` + wide(11) + `}`, 0, []int{8, 20}},
		{"authorization", 1, 1, 2, claim, "AuthorizeGovernanceDataSourceTransfer", fmt.Sprintf(`{"claimVaa":"%x","claim":"1/%064d/7"}`, claim, 11), 57, []int{42}},
		{"governance source", 1, 1, 22, join(source(1, 0x11), u64(1<<63)), "SetGovernanceDataSource", `{"source":` + onChain(1, 11) + `,"initialSequence":"` + big + `"}`, 0, nil},
		{"sources", 1, 2, 2, sources, "SetDataSources", sourcesJSON, 0, nil},
		{"no sources", 1, 2, 2, []byte{0}, "SetDataSources", `{"sources":[]}`, 0, nil},
		{"fee", 1, 3, 2, fee, "SetFee", noToken, 0, nil},
		{"valid period", 1, 4, 22, u64(900), "SetValidPeriod", `{"validPeriodSeconds":"900"}`, 0, nil},
		{"request", 1, 5, 2, u32(7), "RequestGovernanceDataSourceTransfer", `{"governanceDataSourceIndex":7}`, 0, nil},
		{"fee recipient", 1, 5, 21, word(0x11), "SetFeeRecipient", `{"address":` + onChain(21, 11) + `}`, 0, []int{4}},
		{"Wormhole", 1, 6, 2, word(0x11)[12:], "SetWormholeAddress", `{"address":` + evm(2, 11) + `}`, 0, nil},
		{"long Wormhole", 1, 6, 60051, word(0x11), "SetWormholeAddress", `{"address":` + universal(60051, 11) + `}`, 0, []int{20}},
		{"fee in a token", 1, 7, 2, join(fee, sized8(word(0x11)[12:])), "SetFeeInToken", fmt.Sprintf(feeJSON, `"`+fmt.Sprintf("%040d", 11)+`"`), 0, nil},
		{"transaction fee", 1, 8, 2, fee, "SetTransactionFee", noToken, 0, nil},
		{"withdrawal", 1, 9, 2, join(word(0x11)[12:], fee), "WithdrawFee", `{"to":` + evm(2, 11) + `,"value":"` + big + `","exponent":"3"}`, 0, nil},
		{
			"EVM call", 2, 0, 2, join(word(0x11)[12:], word(0x22)[12:], word(9), []byte{1, 2}), "Execute",
			`{"executor":` + evm(2, 11) + `,"target":` + evm(2, 22) + `,"value":"9","calldata":"0102"}`, 72, nil,
		},
		{"oracle on Stacks", 3, 0, 60038, principal("core-v2"), "UpgradePythOracle", contract, 0, nil},
		{"governance source on Stacks", 3, 1, 60038, source(1, 0x11), "SetGovernanceDataSource", stacksSource, 0, nil},
		{"sources on Stacks", 3, 2, 50039, sources, "SetDataSources", sourcesJSON, 0, nil},
		{"fee on Stacks", 3, 3, 50039, fee, "SetFee", noToken, 0, nil},
		{"valid period on Stacks", 3, 4, 50039, u64(900), "SetValidPeriod", `{"validPeriodSeconds":"900"}`, 0, nil},
		{"Wormhole on Stacks", 3, 6, 60038, principal("core-v2"), "SetWormholeAddress", contract, 0, nil},
		{"fee recipient on Stacks", 3, 0xa0, 60038, principal(""), "SetFeeRecipient", account, 0, nil},
		{"storage on Stacks", 3, 0xa1, 60038, principal("core-v2"), "UpgradePythStorage", contract, 0, nil},
		{"decoder on Stacks", 3, 0xa2, 60038, principal("core-v2"), "UpgradePythDecoder", contract, 0, nil},
		{"Pro on Sui", 3, 0, 21, join(u64(2), word(0x11)), "UpgradeSuiLazerContract", `{"version":"2","hash":` + wide(11) + `,"previousExpiresAt":null}`, 0, []int{32}},
		{"Pro on Sui without version", 3, 0, 21, word(0x11), "UpgradeSuiLazerContract", `{"version":null,"hash":` + wide(11) + `,"previousExpiresAt":null}`, 0, nil},
		{"signer", 3, 1, 21, join([]byte{3}, word(0x11), u64(1<<63)), "UpdateTrustedSigner", `{"publicKey":"03` + fmt.Sprintf("%064d", 11) + `","expiresAt":"` + big + `"}`, 0, []int{40}},
		{"signer on Cardano", 3, 1, 60100, join(word(0x11), u64(0)), "UpdateTrustedSigner", `{"publicKey":` + wide(11) + `,"expiresAt":"0"}`, 0, []int{41}},
		{"spend script", 3, 2, 60100, word(0x11)[4:], "UpgradeCardanoSpendScript", `{"version":null,"hash":"` + fmt.Sprintf("%056d", 11) + `","previousExpiresAt":null}`, 0, nil},
		{
			"withdraw script", 3, 3, 60100, join(word(0x11)[4:], u64(1<<63)), "UpgradeCardanoWithdrawScript",
			`{"version":null,"hash":"` + fmt.Sprintf("%056d", 11) + `","previousExpiresAt":"` + big + `"}`, 0, nil,
		},
		{
			"Stellar upgrade", 4, 0, 61, join(sized8([]byte("CA")), sized8([]byte("CA")), word(0x11)), "UpgradeExecutor",
			`{"executor":"CA","target":"CA","function":null,"arguments":null,"wasmHash":` + wide(11) + `}`, 0, nil,
		},
		{
			"Stellar call", 4, 1, 61, join(sized8([]byte("CA")), sized8([]byte("CB")), sized8([]byte("set_fee")), []byte{1, 2}), "Call",
			`{"executor":"CA","target":"CB","function":"set_fee","arguments":"0102","wasmHash":null}`, 14, nil,
		},
		{"unsettled action", 1, 10, 2, word(0x11), "", "null", 1, nil},
		{"unknown action on Stacks", 3, 5, 60038, u32(7), "", "null", 1, nil},
		{"unknown module", 5, 0, 2, u32(7), "", "null", 1, nil},
	}
}

func pythGovernanceLayouts() []layout {
	all := []layout{{
		"Pyth's governance", vaa.Mainnet, 26, pythnetHex, join([]byte("PTGM"), []byte{9, 9}, u16(22), u64(900)), "pyth:governance",
		`{"module":9,"action":9,"actionName":null,"targetChain":22,"payload":"0000000000000384","details":null}`, 8,
	}}
	for _, d := range pythDecisions() { // seeds; that they decode as they should, with what cuts make of them, is TestPythGovernance
		details := fmt.Sprintf(`{"module":%d,"action":%d,"actionName":%s,"targetChain":%d,"payload":"%x","details":%s}`,
			d.module, d.action, quoted(d.title), d.chain, d.body, d.want)
		all = append(all, layout{"Pyth: " + d.name, vaa.Mainnet, 26, pythnetHex, d.bytes(), "pyth:governance", details, 8})
	}
	return all
}

// quoted is a text in JSON, null for none.
func quoted(s string) string {
	if s == "" {
		return "null"
	}
	return `"` + s + `"`
}

// decodePythGovernance decodes a decision of Pyth's governance.
func decodePythGovernance(t *testing.T, decision []byte) (*payload.PythGovernance, error) {
	t.Helper()
	kind, decoded, err := layout{network: vaa.Mainnet, chain: 26, emitter: pythnetHex}.decode(t, decision)
	g, ok := decoded.(*payload.PythGovernance)
	if kind != "pyth:governance" || !ok {
		t.Fatalf("%x: %s, %T, %v", decision, kind, decoded, err)
	}
	return g, err
}

// TestPythGovernance decodes every decision cut short after every byte of its body, and with a byte too many: it keeps its name, and
// has no details but where the rest is another layout.
func TestPythGovernance(t *testing.T) {
	t.Parallel()
	for _, d := range pythDecisions() {
		if d.title == "" {
			continue
		}
		spoilt := func(what string, body []byte) {
			cut := d
			cut.body = body
			g, err := decodePythGovernance(t, cut.bytes())
			if err == nil || g.Details != nil || g.ActionName == nil || !bytes.Equal(g.Payload, body) {
				t.Errorf("%s %s: %+v, %v", d.name, what, g, err)
			}
		}
		for i := range d.body {
			if slices.Contains(d.also, i) {
				g, err := decodePythGovernance(t, pythDecision{module: d.module, action: d.action, chain: d.chain, body: d.body[:i]}.bytes())
				if err != nil || g.Details == nil {
					t.Errorf("%s cut after %d bytes: %+v, %v", d.name, i, g, err)
				}
			} else if d.open == 0 || i < d.open {
				spoilt(fmt.Sprintf("cut after %d bytes", i), d.body[:i])
			}
		}
		if d.open == 0 && !slices.Contains(d.also, len(d.body)+1) {
			spoilt("with a byte too many", append(d.body[:len(d.body):len(d.body)], 0))
		}
	}
}

// TestMisfitPythGovernance: bodies of the right size that say what their layout does not allow.
func TestMisfitPythGovernance(t *testing.T) {
	t.Parallel()
	for _, d := range []pythDecision{
		{name: "flag of 2", module: 0, chain: 1, body: join(little32(1), word(1), little32(1), word(2), []byte{2, 0}, little32(0))},
		{name: "claim of version 2", module: 1, action: 1, body: join([]byte{2}, make([]byte, 56))},
		{name: "principal of another type", module: 3, chain: 60038, body: sized8(join([]byte{7, 22}, word(0x11)[12:]))},
		{name: "account with a name", module: 3, chain: 60038, body: sized8(join([]byte{5, 22}, word(0x11)[12:], sized8([]byte("a"))))},
		{name: "contract without name", module: 3, chain: 60038, body: sized8(join([]byte{6, 22}, word(0x11)[12:], []byte{0}))},
		{name: "function with a control character", module: 4, action: 1, body: join(sized8([]byte("CA")), sized8([]byte("CB")), sized8([]byte("a\n")))},
		{name: "contract without characters", module: 4, action: 1, body: join([]byte{0}, sized8([]byte("CB")), sized8([]byte("a")))},
	} {
		if g, err := decodePythGovernance(t, d.bytes()); err == nil || g.Details != nil || g.ActionName == nil {
			t.Errorf("%s: %+v, %v", d.name, g, err)
		}
	}
}

// TestCollectedPythGovernance compares real decisions with what those who made them say of them: deployment plans of the contracts on
// Stacks and tests of the contracts on Sui, Aptos and EVM chains.
func TestCollectedPythGovernance(t *testing.T) {
	t.Parallel()
	wormhole, oracle := `"contractName":"wormhole-core-v2"`, `"contractName":"pyth-oracle-v2"`
	want := map[string]string{ // a part of the details, by emitter chain, sequence and action
		"1/109/3": `{"value":"2","exponent":"0","token":null}`, "1/112/6": wormhole, "1/113/6": wormhole, "1/124/0": oracle, "1/125/0": oracle,
		"1/1/3":  `{"value":"5","exponent":"5","token":null}`,
		"1/1/4":  `{"validPeriodSeconds":"999456"}`,
		"1/2/1":  `{"publicKey":"03a4380f01136eb2640f90c17e1e319e02bbafbeef2e6e67dc48af53f9827e155b","expiresAt":"1799422709"}`,
		"1/3/0":  `{"version":null,"hash":"961987edc4acca1cff08b71af8be2cdae8e7e49166fbd07e2653ecc4c862a2a6","previousExpiresAt":null}`,
		"9/15/4": `{"validPeriodSeconds":"900"}`, "50/27/1": `"initialSequence":"10"}`,
	}
	var seen, whole int
	for _, network := range vaa.Networks() {
		for _, c := range readCollected(t, "vaas-"+network.String()+".ndjson") {
			v, err := vaa.Parse(c.VAA)
			if err != nil {
				t.Fatal(err)
			}
			kind, decoded, err := payload.Decode(network, &v.Body)
			if kind != "pyth:governance" {
				continue
			}
			g := decoded.(*payload.PythGovernance)
			seen++
			if g.Details != nil && g.ActionName != nil && err == nil {
				whole++
			}
			details, _ := json.Marshal(g.Details)
			key := fmt.Sprintf("%d/%d/%d", v.EmitterChain, v.Sequence, g.Action)
			if part := want[key]; !strings.Contains(string(details), part) {
				t.Errorf("%s: %s, want %s", key, details, part)
			}
			delete(want, key)
		}
	}
	// One of module 2 has a body for module 1: a test of the contract on Aptos.
	if seen != 16 || whole != 15 || len(want) > 0 {
		t.Errorf("%d decisions, %d whole; not seen: %v", seen, whole, want)
	}
}
