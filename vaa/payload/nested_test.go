package payload_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/attestry/attestry/vaa"
)

// Contracts that redeem on mainnet, and one that nobody knows.
const (
	relayContract    = "cafd2f0a35a4459fa40c0517e17e6fa2939441ca"                         // on Polygon
	executorContract = "1d98ca4221516b9ac4869f5cea7e6bb9c41609d6"                         // on Polygon
	tbtcContract     = "09959798b95d00a3183d20fac298e4594e599eab"                         // on Polygon
	gatewayContract  = "ae64091007e6ea18992097aa4fb68ee83f249ce912a8434f7d7e268804d98ff3" // on Wormchain
)

// TestNested sends tokens to contracts, with payloads that they understand or do not.
func TestNested(t *testing.T) {
	t.Parallel()
	const polygon, sui, wormchain, osmosisChain = 5, 21, 3104, 20
	relay := `"fields":{"targetRelayerFee":"1","toNativeTokenAmount":"2","recipient":` + evm(polygon, 11) + `}}`
	portico := `{"kind":"portico-shaped:Transfer","fields":{"recipientChain":5,"bridgeNonce":513,"feeTierStart":100,"feeTierFinish":3000,` +
		`"shouldWrapNative":false,"shouldUnwrapNative":true,"finalToken":` + evm(5, 11) + `,"recipient":` + evm(5, 22) +
		`,"canonAssetAmount":"3","minAmountFinish":"4","relayerFee":"5"}}`
	onOsmosis := fmt.Sprintf(`{"chain":%d,"address":%s,"native":%q}`, osmosisChain, wide(11), osmosis())
	call := fmt.Sprintf(`{"gateway_transfer_with_payload":{"chain":20,"contract":%q,"payload":"AQI=","nonce":3}}`, base64Of(osmosis()))
	ether := fmt.Sprintf(`{"gateway_transfer":{"chain":5,"recipient":%q,"fee":"0","nonce":0}}`, base64Of(string(word(0x11))))
	basic := fmt.Sprintf(`{"basic_recipient":{"recipient":%q}}`, base64Of("wormhole1466nf3zuxpya8q9emxukd7vftaf6h4psr0a07srl5zw74zh84yjq4lyjmh"))
	for _, c := range []struct {
		name  string
		chain vaa.ChainID
		to    string
		tail  []byte
		want  string // nested, in JSON
	}{
		{"relay", polygon, relayContract, relayBytes(), `{"kind":"token-bridge-relayer:TransferWithRelay",` + relay},
		{"executor", polygon, executorContract, word(0x11), `{"kind":"token-bridge-executor:TransferWithExecutorRelay","fields":{"recipient":` + evm(polygon, 11) + `}}`},
		{"tBTC", polygon, tbtcContract, word(0x11), `{"kind":"tbtc:GatewayTransfer","fields":{"recipient":` + evm(polygon, 11) + `}}`},
		{"gateway", wormchain, gatewayContract, gatewayBytes(), `{"kind":"gateway:GatewayTransfer","fields":{"recipient":` + onOsmosis + `,"fee":"12","nonce":3}}`},
		{"gateway to an EVM chain", wormchain, gatewayContract, []byte(ether), `{"kind":"gateway:GatewayTransfer","fields":{"recipient":` + evm(5, 11) + `,"fee":"0","nonce":0}}`},
		{"gateway to a contract", wormchain, gatewayContract, []byte(call), `{"kind":"gateway:GatewayTransferWithPayload","fields":{"contract":` + onOsmosis + `,"payload":"0102","nonce":3}}`},
		{"gateway itself", wormchain, gatewayContract, []byte(basic), `{"kind":"gateway:BasicRecipient","fields":{"recipient":{"chain":3104,` +
			`"address":"aeb534c45c3049d380b9d9b966f9895f53abd4301bfaff407fa09dea8ae7a924",` +
			`"native":"wormhole1466nf3zuxpya8q9emxukd7vftaf6h4psr0a07srl5zw74zh84yjq4lyjmh"}}}`},
		{"relay by a stranger", polygon, strangerHex, relayBytes(), `{"kind":"token-bridge-relayer-shaped:TransferWithRelay",` + relay},
		{"Portico", polygon, strangerHex, porticoBytes(2), portico},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			to := address(t, c.to)
			got, err := json.Marshal(decodeTransfer(t, vaa.Mainnet, c.chain, to, c.tail).Nested)
			if err != nil || string(got) != c.want {
				t.Errorf("%s (%v), want %s", got, err, c.want)
			}
			for i := range c.tail {
				if n := decodeTransfer(t, vaa.Mainnet, c.chain, to, c.tail[:i]).Nested; n != nil {
					t.Errorf("cut after %d bytes: %+v", i, n)
				}
			}
			for _, more := range []string{"\x00", "}", "{}"} {
				if n := decodeTransfer(t, vaa.Mainnet, c.chain, to, append(c.tail[:len(c.tail):len(c.tail)], more...)).Nested; n != nil {
					t.Errorf("with %q too many: %+v", more, n)
				}
			}
		})
	}
	recipient := fmt.Sprintf(`"recipient":%q`, base64Of(osmosis()))
	for _, c := range []struct {
		name  string
		chain vaa.ChainID
		to    string
		tail  []byte
	}{
		{"an address alone", polygon, strangerHex, word(0x11)},
		{"relay to the executor", polygon, executorContract, relayBytes()},
		{"relay with another id", polygon, relayContract, append([]byte{2}, relayBytes()[1:]...)},
		{"relay by a stranger, of an implausible fee", polygon, strangerHex, append([]byte{1, 1}, relayBytes()[2:]...)},
		{"relay by a stranger, to nobody", polygon, strangerHex, append(relayBytes()[:96:96], 0)},
		{"relay by a stranger, to a long address", polygon, strangerHex, join(relayBytes()[:65], []byte{1}, relayBytes()[66:])},
		{"Portico with unknown flags", polygon, strangerHex, porticoBytes(4)},
		{"Portico for another chain", sui, strangerHex, porticoBytes(0)},
		{"Portico with padding", polygon, strangerHex, join(porticoBytes(0)[:20], []byte{1}, porticoBytes(0)[21:])},
		{"gateway's JSON to a stranger", wormchain, strangerHex, gatewayBytes()},
		{"gateway without chain", wormchain, gatewayContract, []byte(`{"gateway_transfer":{` + recipient + `,"fee":"1","nonce":1}}`)},
		{"gateway with a fee that is no number", wormchain, gatewayContract, []byte(`{"gateway_transfer":{"chain":20,` + recipient + `,"fee":"x","nonce":1}}`)},
		{"gateway with a negative fee", wormchain, gatewayContract, []byte(`{"gateway_transfer":{"chain":20,` + recipient + `,"fee":"-1","nonce":1}}`)},
		{"gateway with an address of another chain", wormchain, gatewayContract, []byte(`{"gateway_transfer":{"chain":4000,` + recipient + `,"fee":"1","nonce":1}}`)},
		{"gateway with a further member", wormchain, gatewayContract, []byte(`{"gateway_transfer":{"chain":20,` + recipient + `,"fee":"1","nonce":1,"tip":1}}`)},
		{"gateway with two messages", wormchain, gatewayContract, []byte(`{"basic_recipient":{` + recipient + `},"gateway_transfer":{"chain":20,` + recipient + `,"fee":"1"}}`)},
		{"null", wormchain, gatewayContract, []byte("null")},
	} {
		if n := decodeTransfer(t, vaa.Mainnet, c.chain, address(t, c.to), c.tail).Nested; n != nil {
			t.Errorf("%s: %+v", c.name, n)
		}
	}
}
