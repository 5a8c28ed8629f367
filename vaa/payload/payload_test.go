package payload_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// join concatenates fields of a payload.
func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

// word is a number below 256 as a 32-byte field.
func word(last byte) []byte { return append(make([]byte, 31), last) }

func transferBytes() []byte {
	return join([]byte{1}, word(100), word(0xaa), []byte{0, 2}, word(0xbb), []byte{0, 22}, word(5))
}

func nftBytes() []byte {
	return join([]byte{1}, word(1), []byte{0, 1}, word('S'), word('N'), word(9), []byte{3}, []byte("uri"), word(0xbb), []byte{0, 2})
}

func circleBytes() []byte {
	return join([]byte{1}, word(1), word(2), make([]byte, 16), word(3), word(4), []byte{0, 2, 7, 7})
}

// ethereum is mainnet's token bridge on Ethereum, stranger an emitter that is not known.
var (
	ethereum = vaa.Address{12: 0x3e, 0xe1, 0x8b, 0x22, 0x14, 0xaf, 0xf9, 0x70, 0x00, 0xd9, 0x74, 0xcf, 0x64, 0x7e, 0x7c, 0x34, 0x7e, 0x8f, 0xa5, 0x85}
	stranger = vaa.Address{31: 0x99}
	// injective is mainnet's token bridge on Injective, there written inj1ghd753shjuwexxywmgs4xz7x2q732vcnxxynfn.
	injective = vaa.Address{12: 0x45, 0xdb, 0xea, 0x46, 0x17, 0x97, 0x1d, 0x93, 0x18, 0x8e, 0xda, 0x21, 0x53, 0x0b, 0xc6, 0x50, 0x3d, 0x15, 0x33, 0x13}
	// ambiguous is the token bridge of Polygon and the NFT bridge of BSC.
	ambiguous = vaa.Address{12: 0x5a, 0x58, 0x50, 0x5a, 0x96, 0xd1, 0xdb, 0xf8, 0xdf, 0x91, 0xcb, 0x21, 0xb5, 0x44, 0x19, 0xfc, 0x36, 0xe9, 0x3f, 0xde}
)

func governanceBody(module string, rest ...[]byte) *vaa.Body {
	chain, address := vaa.GovernanceEmitter()
	bytes := append(make([]byte, 32-len(module)), module...)
	return &vaa.Body{EmitterChain: chain, EmitterAddress: address, Payload: append(bytes, join(rest...)...)}
}

func TestKindFollowsTheEmitter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		network vaa.Network
		chain   vaa.ChainID
		emitter vaa.Address
		payload []byte
		want    string
	}{
		{"token bridge", vaa.Mainnet, 2, ethereum, transferBytes(), "token-bridge:Transfer"},
		{"on devnet, a fork", vaa.Devnet, 2, ethereum, transferBytes(), "token-bridge:Transfer"},
		{"the same address on another chain", vaa.Mainnet, 4, ethereum, transferBytes(), "token-bridge-shaped:Transfer"},
		{"the same emitter on another network", vaa.Testnet, 2, ethereum, transferBytes(), "token-bridge-shaped:Transfer"},
		{"one address, on Polygon", vaa.Mainnet, 5, ambiguous, transferBytes(), "token-bridge:Transfer"},
		{"one address, on BSC", vaa.Mainnet, 4, ambiguous, nftBytes(), "nft-bridge:Transfer"},
		{"NFT bridge with a token transfer", vaa.Mainnet, 4, ambiguous, transferBytes(), "token-bridge-shaped:Transfer"},
		{"stranger with the first byte of a transfer", vaa.Mainnet, 2, stranger, []byte{1, 2, 3}, "generic"},
		{"token bridge with the first byte of a transfer", vaa.Mainnet, 2, ethereum, []byte{1, 2, 3}, "generic"},
		{"token bridge with an unknown id", vaa.Mainnet, 2, ethereum, join([]byte{9}, transferBytes()), "generic"},
		{"token bridge without payload", vaa.Mainnet, 2, ethereum, nil, "generic"},
		{"one byte too many", vaa.Mainnet, 2, ethereum, append(transferBytes(), 0), "generic"},
		{"stranger's NFT", vaa.Mainnet, 2, stranger, nftBytes(), "nft-bridge-shaped:Transfer"},
		{"stranger's deposit", vaa.Mainnet, 2, stranger, circleBytes(), "generic"},
		{"anyone's deposit on devnet", vaa.Devnet, 2, stranger, circleBytes(), "cctp:CircleIntegrationDeposit"},
		{"Pyth's magic from a stranger", vaa.Mainnet, 26, stranger, []byte("P2WH"), "generic"},
		{"governance from a stranger", vaa.Mainnet, 1, stranger, governanceBody("Core", []byte{1, 0, 2}, word(7)).Payload, "generic"},
		{"empty", vaa.Devnet, 42, stranger, nil, "generic"},
	} {
		body := &vaa.Body{EmitterChain: c.chain, EmitterAddress: c.emitter, Payload: c.payload}
		kind, decoded, err := payload.Decode(c.network, body)
		if kind != c.want {
			t.Errorf("%s: kind %s (%v), want %s", c.name, kind, err, c.want)
		}
		if known := c.emitter == ethereum && c.chain == 2 && c.network == vaa.Mainnet; known && kind == payload.KindGeneric && err == nil {
			t.Errorf("%s: no reason", c.name)
		}
		if _, _, ok := payload.Recipient(kind, decoded); ok != (c.want == "token-bridge:Transfer") {
			t.Errorf("%s: recipient %t", c.name, ok)
		}
	}
}

func TestRecipient(t *testing.T) {
	t.Parallel()
	kind, decoded, err := payload.Decode(vaa.Mainnet, &vaa.Body{EmitterChain: 2, EmitterAddress: ethereum, Payload: transferBytes()})
	if err != nil {
		t.Fatal(err)
	}
	address, chain, ok := payload.Recipient(kind, decoded)
	if !ok || address != (vaa.Address{31: 0xbb}) || chain != 22 {
		t.Errorf("recipient %s on %s, %t", address, chain, ok)
	}
}

func TestGovernance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		body *vaa.Body
		kind string
		want string // details in JSON; empty: an error
	}{
		{
			"contract upgrade", governanceBody("Core", []byte{1, 0, 2}, word(7)), "governance:Core:ContractUpgrade",
			`{"newContract":{"chain":2,"address":"` + strings.Repeat("0", 63) + `7","native":"0x0000000000000000000000000000000000000007"}}`,
		},
		{"message fee", governanceBody("Core", []byte{3, 0, 0}, word(255)), "governance:Core:SetMessageFee", `{"fee":"255"}`},
		{
			"fee transfer", governanceBody("Core", []byte{4, 0, 15}, word(9), word(7)), "governance:Core:TransferFees",
			`{"amount":"9","to":{"chain":15,"address":"` + strings.Repeat("0", 63) + `7","native":null}}`,
		},
		{
			"fee transfer, other order", governanceBody("Core", []byte{4, 0, 19}, injective[:], word(9)), "governance:Core:TransferFees",
			`{"amount":"9","to":{"chain":19,"address":"` + injective.String() + `","native":"inj1ghd753shjuwexxywmgs4xz7x2q732vcnxxynfn"}}`,
		},
		{
			"recover chain id", governanceBody("Core", []byte{5}, word(10), []byte{0, 4}), "governance:Core:RecoverChainId",
			`{"evmChainId":"10","newChain":4}`,
		},
		{
			"pausers", governanceBody("TokenBridge", []byte{4, 0, 2, 2, 1, 2, 0, 1, 9}), "governance:TokenBridge:SetPauserAddresses",
			`{"pauser":"0102","freezer":"","unpauser":"09"}`,
		},
		{"upgrade to nobody", governanceBody("Core", []byte{2, 0, 0, 0, 0, 0, 5, 0}), "governance:Core:GuardianSetUpgrade", `{"newIndex":5,"keys":[]}`},
		{"unknown action", governanceBody("Core", []byte{69, 0, 0, 1}), "governance:Core:action69", `null`},
		{"action 0", governanceBody("Core", []byte{0, 0, 0, 1}), "governance:Core:action0", `null`},
		{"unknown module", governanceBody("Weather", []byte{1, 0, 0}), "governance:Weather:action1", `null`},
		{"later module", governanceBody("WasmdModule", []byte{1, 0, 0}), "governance:WasmdModule:StoreCode", `null`},
		{"missing byte", governanceBody("Core", []byte{1, 0, 2}, word(7)[1:]), "governance:Core:ContractUpgrade", ""},
		{"byte left over", governanceBody("NFTBridge", []byte{1, 0, 0, 0, 2}, word(7), []byte{0}), "governance:NFTBridge:RegisterChain", ""},
		{"255 keys announced", governanceBody("Core", []byte{2, 0, 0, 0, 0, 0, 5, 255}), "governance:Core:GuardianSetUpgrade", ""},
		{"no module", governanceBody("", []byte{1, 0, 2}, word(7)), "generic", ""},
		{"control character", governanceBody("Core\n", []byte{1, 0, 2}, word(7)), "generic", ""},
		{"no target chain", governanceBody("Core", []byte{1, 0}), "generic", ""},
	} {
		kind, decoded, err := payload.Decode(vaa.Mainnet, c.body)
		if kind != c.kind || (err != nil) != (c.want == "") {
			t.Errorf("%s: %s, %v; want %s", c.name, kind, err, c.kind)
		}
		g, ok := decoded.(*payload.Governance)
		if !ok || c.want == "" {
			continue
		}
		got, err := json.Marshal(g.Details)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestAttestMetaText(t *testing.T) {
	t.Parallel()
	field := func(s string) []byte { return append([]byte(s), make([]byte, 32-len(s))...) }
	left := func(s string) []byte { return append(make([]byte, 32-len(s)), s...) }
	str := func(s string) *string { return &s }
	for _, c := range []struct {
		symbol, name         []byte
		wantSymbol, wantName *string
	}{
		{field("WETH"), left("Wrapped Ether"), str("WETH"), str("Wrapped Ether")},
		{field(""), field("   "), nil, nil},
		{field("a\xffb"), field("ends \xe2\x82"), str("a\uFFFDb"), str("ends \uFFFD")},
		{field("Ünï"), field("\x00 mid\x00dle \x00"), str("Ünï"), str("mid\x00dle")},
	} {
		bytes := join([]byte{2}, word(1), []byte{0, 2, 18}, c.symbol, c.name)
		_, decoded, err := payload.Decode(vaa.Mainnet, &vaa.Body{EmitterChain: 2, EmitterAddress: ethereum, Payload: bytes})
		meta, ok := decoded.(*payload.AttestMeta)
		if err != nil || !ok {
			t.Fatalf("%T, %v", decoded, err)
		}
		if diff := cmp.Diff([]*string{c.wantSymbol, c.wantName}, []*string{meta.Symbol, meta.Name}); diff != "" {
			t.Errorf("%q, %q: %s", c.symbol, c.name, diff)
		}
	}
}

// TestDecodedKeepsNothing: what is decoded must not change with the bytes that it came from.
func TestDecodedKeepsNothing(t *testing.T) {
	t.Parallel()
	bytes := join([]byte{3}, transferBytes()[1:], []byte("message"))
	body := &vaa.Body{EmitterChain: 2, EmitterAddress: ethereum, Payload: bytes}
	_, decoded, err := payload.Decode(vaa.Mainnet, body)
	if err != nil {
		t.Fatal(err)
	}
	clear(bytes)
	if got := string(decoded.(*payload.TransferWithPayload).Payload); got != "message" {
		t.Errorf("payload is now %q", got)
	}
}

func FuzzDecode(f *testing.F) {
	for _, network := range vaa.Networks() {
		for _, c := range readCollected(f, "vaas-"+network.String()+".ndjson") {
			v, err := vaa.Parse(c.VAA)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(network), uint16(v.EmitterChain), v.EmitterAddress[:], v.Payload)
		}
	}
	f.Fuzz(func(t *testing.T, network uint8, chain uint16, emitter, bytes []byte) {
		body := &vaa.Body{EmitterChain: vaa.ChainID(chain), Payload: bytes}
		copy(body.EmitterAddress[:], emitter)
		governor, governance := vaa.GovernanceEmitter()
		for _, sender := range []*vaa.Body{
			body,
			{EmitterChain: 2, EmitterAddress: ethereum, Payload: bytes},
			{EmitterChain: governor, EmitterAddress: governance, Payload: bytes},
		} {
			kind, decoded, err := payload.Decode(vaa.Network(network), sender)
			if kind == "" || !utf8.ValidString(kind) || strings.ContainsFunc(kind, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Errorf("kind %q", kind)
			}
			if err != nil && err.Error() == "" {
				t.Error("an error without words")
			}
			b, err := json.Marshal(decoded)
			if err != nil || !utf8.Valid(b) {
				t.Errorf("%T: %s, %v", decoded, b, err)
			}
			payload.Recipient(kind, decoded)
		}
	})
}

func ExampleDecode() {
	body := &vaa.Body{EmitterChain: 2, EmitterAddress: ethereum, Payload: transferBytes()}
	kind, decoded, err := payload.Decode(vaa.Mainnet, body)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := json.MarshalIndent(decoded, "", "  ")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(kind)
	fmt.Println(string(text))
	// Output:
	// token-bridge:Transfer
	// {
	//   "amount": "100",
	//   "token": {
	//     "chain": 2,
	//     "address": "00000000000000000000000000000000000000000000000000000000000000aa",
	//     "native": "0x00000000000000000000000000000000000000AA"
	//   },
	//   "to": {
	//     "chain": 22,
	//     "address": "00000000000000000000000000000000000000000000000000000000000000bb",
	//     "native": "0x00000000000000000000000000000000000000000000000000000000000000bb"
	//   },
	//   "fee": "5"
	// }
}
