package payload_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// TestProperties names of each payload the properties that it has; all others are null.
func TestProperties(t *testing.T) {
	t.Parallel()
	const (
		x11 = "0x0000000000000000000000000000000000000011"
		x22 = "0x0000000000000000000000000000000000000022"
		x33 = "0x0000000000000000000000000000000000000033"
		x44 = "0x0000000000000000000000000000000000000044"
		x55 = "0x0000000000000000000000000000000000000055"
	)
	rippleAddress, _ := vaa.NativeAddress(66, vaa.Address(word(0x22)))
	type properties = map[string]any
	apps := func(ids ...any) []any { return append([]any{}, ids...) }
	contract := func(digits string) []byte { a := address(t, digits); return a[:] }
	plain := join([]byte{1}, word(100), word(0x11), u16(2), word(0x22), u16(5), word(5))
	for _, c := range []struct {
		name    string
		network vaa.Network
		chain   vaa.ChainID
		emitter string
		payload []byte
		want    properties
	}{
		{"transfer", vaa.Mainnet, 2, ethereumHex, plain, properties{
			"appIds": apps("PORTAL_TOKEN_BRIDGE"), "fromChain": 2., "toChain": 5., "toAddress": x22,
			"tokenChain": 2., "tokenAddress": x11, "amount": "100", "feeChain": 5., "fee": "5",
		}},
		{"what looks like a transfer", vaa.Mainnet, 2, strangerHex, plain, properties{
			"appIds": apps(), "fromChain": 2., "toChain": 5., "toAddress": x22,
			"tokenChain": 2., "tokenAddress": x11, "amount": "100", "feeChain": 5., "fee": "5",
		}},
		{"transfer with payload", vaa.Mainnet, 2, ethereumHex, transferWithPayloadBytes(5, word(0x22), nil), properties{
			"appIds": apps("PORTAL_TOKEN_BRIDGE"), "fromChain": 2., "fromAddress": x33, "toChain": 5., "toAddress": x22,
			"tokenChain": 2., "tokenAddress": x11, "amount": "100",
		}},
		{"transfer to a relayer", vaa.Mainnet, 2, ethereumHex, transferWithPayloadBytes(5, contract(relayContract), relayBytes()), properties{
			"appIds": apps("PORTAL_TOKEN_BRIDGE"), "fromChain": 2., "fromAddress": x33, "toChain": 5., "toAddress": x11,
			"tokenChain": 2., "tokenAddress": x11, "amount": "100", "feeChain": 5., "fee": "1",
		}},
		{"transfer to what looks like a relayer", vaa.Mainnet, 2, ethereumHex, transferWithPayloadBytes(5, word(0x22), relayBytes()), properties{
			"appIds": apps("PORTAL_TOKEN_BRIDGE"), "fromChain": 2., "fromAddress": x33, "toChain": 5., "toAddress": x22,
			"tokenChain": 2., "tokenAddress": x11, "amount": "100",
		}},
		{"what looks like a transfer to tBTC's gateway", vaa.Mainnet, 2, strangerHex, transferWithPayloadBytes(5, contract(tbtcContract), word(0x44)), properties{
			"appIds": apps(), "fromChain": 2., "fromAddress": x33, "toChain": 5., "toAddress": "0x09959798B95d00a3183d20FaC298E4594E599eab",
			"tokenChain": 2., "tokenAddress": x11, "amount": "100",
		}},
		{"transfer to tBTC's gateway", vaa.Mainnet, 2, ethereumHex, transferWithPayloadBytes(5, contract(tbtcContract), word(0x44)), properties{
			"appIds": apps("PORTAL_TOKEN_BRIDGE", "tbtc"), "fromChain": 2., "fromAddress": x33, "toChain": 5., "toAddress": x44,
			"tokenChain": 2., "tokenAddress": x11, "amount": "100",
		}},
		{"transfer by Gateway", vaa.Mainnet, 2, ethereumHex, transferWithPayloadBytes(3104, contract(gatewayContract), gatewayBytes()), properties{
			"appIds": apps("PORTAL_TOKEN_BRIDGE"), "fromChain": 2., "fromAddress": x33, "toChain": 20., "toAddress": osmosis(),
			"tokenChain": 2., "tokenAddress": x11, "amount": "100", "fee": "12",
		}},
		{"announcement", vaa.Mainnet, 2, ethereumHex, join([]byte{2}, word(0x11), u16(15), []byte{8}, field("S"), field("N")), properties{
			"appIds": apps("PORTAL_TOKEN_BRIDGE"), "fromChain": 2., "tokenChain": 15.,
			"tokenAddress": "0000000000000000000000000000000000000000000000000000000000000011",
		}},
		{"NFT", vaa.Mainnet, 2, nftHex, nftBytes(), properties{
			"appIds": apps(), "fromChain": 2., "toChain": 2., "toAddress": x22, "tokenChain": 4., "tokenAddress": x11,
		}},
		{"delivery", vaa.Mainnet, 2, relayerHex, deliveryBytes(nil, 0), properties{
			"appIds": apps("GENERIC_RELAYER"), "fromChain": 2., "fromAddress": x55, "toChain": 5., "toAddress": x11,
		}},
		{"redelivery", vaa.Mainnet, 2, relayerHex, redeliveryBytes(), properties{
			"appIds": apps("GENERIC_RELAYER"), "fromChain": 2., "fromAddress": x44, "toChain": 5.,
		}},
		{"delivery of a native token transfer", vaa.Mainnet, 2, relayerHex, deliveryBytes(nttBytes(managerMessage(nttTransferBytes())), 0), properties{
			"appIds": apps("GENERIC_RELAYER", "NATIVE_TOKEN_TRANSFER"), "fromChain": 2., "fromAddress": x33, "toChain": 5., "toAddress": x55,
			"tokenChain": 2., "tokenAddress": x44, "amount": "9223372036854775808",
		}},
		{"native token transfer", vaa.Mainnet, 2, strangerHex, nttBytes(managerMessage(nttTransferBytes())), properties{
			"appIds": apps("NATIVE_TOKEN_TRANSFER"), "fromChain": 2., "fromAddress": x33, "toChain": 5., "toAddress": x55,
			"tokenChain": 2., "tokenAddress": x44, "amount": "9223372036854775808",
		}},
		{"multi-token transfer", vaa.Mainnet, 2, strangerHex, nttBytes(managerMessage(nttGenericBytes(multiTokenBytes()))), properties{
			"appIds": apps("NATIVE_TOKEN_TRANSFER"), "fromChain": 2., "fromAddress": x33, "toChain": 5., "toAddress": x55,
			"tokenChain": 4., "tokenAddress": "0x0000000000000000000000000000000000000077", "amount": "25",
		}},
		{"generic message", vaa.Mainnet, 2, strangerHex, nttBytes(managerMessage(nttGenericBytes(nil))), properties{
			"appIds": apps("NATIVE_TOKEN_TRANSFER"), "fromChain": 2., "fromAddress": x44, "toChain": 5.,
			"toAddress": "0x0000000000000000000000000000000000000066",
		}},
		{"unknown manager message", vaa.Mainnet, 2, strangerHex, nttBytes(nil), properties{"appIds": apps("NATIVE_TOKEN_TRANSFER"), "fromChain": 2.}},
		{"Circle deposit", vaa.Mainnet, 2, circleHex, circleBytes(), properties{
			"appIds": apps("CCTP_WORMHOLE_INTEGRATION"), "fromChain": 2., "fromAddress": x22, "tokenChain": 2., "tokenAddress": x11, "amount": "250",
		}},
		{"Mayan", vaa.Mainnet, 5, "f18f923480dc144326e6c65d4f3d47aa459bb41c", []byte{3}, properties{"appIds": apps("MAYAN"), "fromChain": 5.}},
		{"unlock", vaa.Testnet, 1, managerHex, unlockBytes(), properties{"appIds": apps(), "fromChain": 1., "toChain": 65.}},
		{"fast order", vaa.Mainnet, 2, routerHex, orderBytes(0), properties{
			"appIds": apps(), "fromChain": 2., "fromAddress": x22, "toChain": 5., "toAddress": x11,
		}},
		{"fill", vaa.Mainnet, 2, routerHex, depositBytes(fillBytes()), properties{
			"appIds": apps(), "fromChain": 2., "fromAddress": x22, "tokenChain": 2., "tokenAddress": x11, "amount": "250",
		}},
		{"message of Allbridge", vaa.Mainnet, 2, allbridgeHex, make([]byte, 32), properties{"appIds": apps("ALLBRIDGE"), "fromChain": 2.}},
		{"transfer to OmniSwap", vaa.Mainnet, 2, ethereumHex, transferWithPayloadBytes(5, contract(diamondHex), soSwapBytes(word(0x44)[12:])), properties{
			"appIds": apps("PORTAL_TOKEN_BRIDGE"), "fromChain": 2., "fromAddress": x33, "toChain": 5., "toAddress": x44,
			"tokenChain": 2., "tokenAddress": x11, "amount": "100",
		}},
		{"release", vaa.Testnet, 1, managerHex, releaseBytes([]byte{0}, u16(0)), properties{
			"appIds": apps(), "fromChain": 1., "toChain": 66., "toAddress": rippleAddress, "tokenChain": 66., "amount": "9223372036854775808",
		}},
		{"release of a currency", vaa.Testnet, 1, managerHex, releaseBytes(join([]byte{1}, make([]byte, 20), genesis), u16(0)), properties{
			"appIds": apps(), "fromChain": 1., "toChain": 66., "toAddress": rippleAddress, "tokenChain": 66., "amount": "9223372036854775808",
		}},
		{"refill", vaa.Testnet, 1, managerHex, refillBytes(), properties{"appIds": apps(), "fromChain": 1., "toChain": 66.}},
		{"burn", vaa.Testnet, 1, managerHex, burnBytes(), properties{"appIds": apps(), "fromChain": 1., "toChain": 66.}},
		{"prices", vaa.Mainnet, 26, pythnetHex, batchBytes(3, 0), properties{"appIds": apps(), "fromChain": 26.}},
		{"anything else", vaa.Mainnet, 2, strangerHex, nil, properties{"appIds": apps(), "fromChain": 2.}},
	} {
		body := &vaa.Body{EmitterChain: c.chain, EmitterAddress: address(t, c.emitter), Payload: c.payload}
		kind, decoded, _ := payload.Decode(c.network, body)
		b, err := json.Marshal(payload.PropertiesOf(c.chain, kind, decoded))
		var got properties
		if err != nil || json.Unmarshal(b, &got) != nil {
			t.Fatal(err)
		}
		want := properties{
			"appIds": nil, "fromChain": nil, "fromAddress": nil, "toChain": nil, "toAddress": nil, "tokenChain": nil, "tokenAddress": nil,
			"amount": nil, "feeAddress": nil, "feeChain": nil, "fee": nil,
		}
		for name, value := range c.want {
			want[name] = value
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
