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

// ethereum is mainnet's token bridge on Ethereum, stranger an emitter that is not known.
var (
	ethereum = vaa.Address{12: 0x3e, 0xe1, 0x8b, 0x22, 0x14, 0xaf, 0xf9, 0x70, 0x00, 0xd9, 0x74, 0xcf, 0x64, 0x7e, 0x7c, 0x34, 0x7e, 0x8f, 0xa5, 0x85}
	stranger = vaa.Address{31: 0x99}
	// ambiguous is the token bridge of Polygon and the NFT bridge of BSC.
	ambiguous = vaa.Address{12: 0x5a, 0x58, 0x50, 0x5a, 0x96, 0xd1, 0xdb, 0xf8, 0xdf, 0x91, 0xcb, 0x21, 0xb5, 0x44, 0x19, 0xfc, 0x36, 0xe9, 0x3f, 0xde}
)

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
		{"relayer with the first byte of a delivery", vaa.Mainnet, 4, address(t, relayerHex), []byte{1, 2, 3}, "generic"},
		{"relayer with an unknown id", vaa.Mainnet, 4, address(t, relayerHex), []byte{3}, "generic"},
		{"delivery of a stranger", vaa.Mainnet, 4, stranger, deliveryBytes(nil, 0), "generic"},
		{"manager that acts as a relayer", vaa.Testnet, 1, address(t, managerHex), deliveryBytes(nil, 0), "relayer:DeliveryInstruction"},
		{"relayer that acts as a manager", vaa.Mainnet, 4, address(t, relayerHex), unlockBytes(), "manager-shaped:UTXOUnlock"},
		{"Mayan on a chain where it was not seen", vaa.Mainnet, 2, address(t, "f18f923480dc144326e6c65d4f3d47aa459bb41c"), []byte{3, 1}, "generic"},
		{"a contract that redeems", vaa.Mainnet, 5, address(t, relayContract), transferBytes(), "token-bridge-shaped:Transfer"},
		{"NFT of a chain without name", vaa.Mainnet, 2, stranger, append(nftBytes()[:len(nftBytes())-2], 0xea, 0x60), "generic"},
	} {
		body := &vaa.Body{EmitterChain: c.chain, EmitterAddress: c.emitter, Payload: c.payload}
		kind, decoded, err := payload.Decode(c.network, body)
		if kind != c.want {
			t.Errorf("%s: kind %s (%v), want %s", c.name, kind, err, c.want)
		}
		if known := c.emitter == ethereum && c.chain == 2 && c.network == vaa.Mainnet; known && kind == payload.KindGeneric && err == nil {
			t.Errorf("%s: no reason", c.name)
		}
		if _, _, ok := payload.Recipient(kind, decoded); ok != slices.Contains(paying, c.want) {
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

func TestAttestMetaText(t *testing.T) {
	t.Parallel()
	str := func(s string) *string { return &s }
	for _, c := range []struct {
		symbol, name         []byte
		wantSymbol, wantName *string
	}{
		{field("WETH"), left("Wrapped Ether", 32), str("WETH"), str("Wrapped Ether")},
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
	for _, l := range layouts() {
		a := address(f, l.emitter)
		f.Add(uint8(l.network), uint16(l.chain), a[:], l.payload)
	}
	f.Add(uint8(vaa.Mainnet), uint16(2), stranger[:], soSwapBytes(word(0x22)[12:], []byte{1, 1}, soSwapStep()))
	for _, d := range decisions(f) {
		body := governanceBody(d.module, d.rest)
		f.Add(uint8(vaa.Mainnet), uint16(body.EmitterChain), body.EmitterAddress[:], body.Payload)
	}
	f.Fuzz(func(t *testing.T, network uint8, chain uint16, emitter, bytes []byte) {
		body := &vaa.Body{EmitterChain: vaa.ChainID(chain), Payload: bytes}
		copy(body.EmitterAddress[:], emitter)
		governor, governance := vaa.GovernanceEmitter()
		diamond := address(t, diamondHex)
		for _, sender := range []*vaa.Body{
			body,
			{EmitterChain: 2, EmitterAddress: ethereum, Payload: bytes},
			{EmitterChain: 2, EmitterAddress: address(t, nftHex), Payload: bytes},
			{EmitterChain: 2, EmitterAddress: address(t, relayerHex), Payload: bytes},
			{EmitterChain: 2, EmitterAddress: address(t, circleHex), Payload: bytes},
			{EmitterChain: 2, EmitterAddress: address(t, routerHex), Payload: bytes},
			{EmitterChain: 2, EmitterAddress: address(t, allbridgeHex), Payload: bytes},
			{EmitterChain: 2, EmitterAddress: ethereum, Payload: transferWithPayloadBytes(2, diamond[:], bytes)},
			{EmitterChain: 26, EmitterAddress: address(t, pythnetHex), Payload: bytes},
			{EmitterChain: 1, EmitterAddress: address(t, managerHex), Payload: bytes},
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
			if b, err := json.Marshal(payload.PropertiesOf(sender.EmitterChain, kind, decoded)); err != nil || !utf8.Valid(b) {
				t.Errorf("properties of %T: %s, %v", decoded, b, err)
			}
		}
	})
}

// TestReasonOnDevnet: on the development network, too, what is told by its head alone and not laid out as it should be has a reason.
func TestReasonOnDevnet(t *testing.T) {
	t.Parallel()
	for name, bytes := range map[string][]byte{
		"governance:Core:ContractUpgrade": governanceBody("Core", act(1, 2)).Payload, "pyth:governance": join([]byte("PTGM"), []byte{1, 4}, u16(22)),
		"pyth:batch-price-attestation": []byte("P2WH\x00\x03"), "pyth:accumulator-merkle-root": []byte("AUWV\x00"),
	} {
		kind, _, err := payload.Decode(vaa.Devnet, &vaa.Body{EmitterChain: 1, EmitterAddress: stranger, Payload: bytes})
		if kind != name || err == nil {
			t.Errorf("%s: %s, %v", name, kind, err)
		}
	}
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
