package payload_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// layout is a payload that was laid out by hand, and what it says.
type layout struct {
	name    string
	network vaa.Network
	chain   vaa.ChainID
	emitter string // hex
	payload []byte
	kind    string
	want    string // decoded, in JSON
	open    int    // of the bytes, how many must be there if the rest may be cut; 0: all
}

const (
	executionJSON = `{"gasLimit":"500000","targetChainRefundPerGasUnused":"9"}`
	multiJSON     = `{"kind":"ntt:MultiTokenTransfer","fields":{"decimals":6,"amount":"25","token":%s,"name":"A Token","symbol":"TOK",` +
		`"tokenDecimals":18,"sender":%s,"to":%s,"additionalPayload":%s}}`
)

var (
	keysJSON = `[{"type":1,"vaa":"2/` + fmt.Sprintf("%064d", 44) + `/9223372036854775808","cctp":null,"data":null},` +
		`{"type":2,"vaa":null,"cctp":{"domain":6,"nonce":"77"},"data":null},{"type":9,"vaa":null,"cctp":null,"data":"0102"}]`
	nttTransferJSON = `{"kind":"ntt:NativeTokenTransfer","fields":{"decimals":8,"amount":"9223372036854775808","sourceToken":` + evm(2, 44) +
		`,"to":` + evm(5, 55) + `,"additionalPayload":%s}}`
)

// nttJSON is the JSON of a message of nttBytes with a payload of managerMessage.
func nttJSON(inner []byte, nested string) string {
	return fmt.Sprintf(`{"sourceNttManager":%s,"recipientNttManager":%s,"nttManagerPayload":"%x","nttManagerMessage":`+
		`{"id":%s,"sender":%s,"payload":"%x","nested":%s},"transceiverPayload":""}`,
		evm(2, 11), wide(22), managerMessage(inner), `"`+strings.Repeat("0", 63)+`7"`, evm(2, 33), inner, nested)
}

func deliveryJSON(inner []byte, execution, nested string) string {
	return fmt.Sprintf(`{"target":%s,"payload":"%x","nested":%s,"requestedReceiverValue":"3","extraReceiverValue":"4","executionInfo":%s,`+
		`"refund":%s,"refundDeliveryProvider":%s,"sourceDeliveryProvider":%s,"sender":%s,"messageKeys":%s}`,
		evm(5, 11), inner, nested, execution, evm(6, 22), evm(5, 33), evm(2, 44), evm(2, 55), keysJSON)
}

func layouts() []layout {
	return slices.Concat(bridgeLayouts(), applicationLayouts(), managerLayouts(), earlyPriceLayouts(), pythGovernanceLayouts())
}

func bridgeLayouts() []layout {
	transfer := nttTransferBytes()
	withTail := nttTransferBytes(sized([]byte{1, 2}))
	multi := nttGenericBytes(multiTokenBytes(sized(nil)))
	price := `{"versionMajor":3,"versionMinor":%d,"attestations":[{"productId":` + wide(11) + `,"priceId":` + wide(22) + `,"price":"-1",` +
		`"confidence":"12","exponent":-8,"emaPrice":"100","emaConfidence":"13","status":1,"publisherCount":4,"maxPublisherCount":5,` +
		`"attestationTime":"2023-05-04T14:02:14Z","publishTime":"2023-05-04T14:02:13Z","prevPublishTime":null,"prevPrice":"98",` +
		`"prevConfidence":"14","lastAttestedPublishTime":%s}]}`
	return []layout{
		{
			"token transfer with payload", vaa.Mainnet, 2, ethereumHex, transferWithPayloadBytes(5, word(0x22), []byte{1, 2}),
			"token-bridge:TransferWithPayload", `{"amount":"100","token":` + evm(2, 11) + `,"to":` + evm(5, 22) + `,"from":` + evm(2, 33) +
				`,"payload":"0102","nested":null}`, 133,
		},
		{"NFT", vaa.Mainnet, 2, nftHex, nftBytes(), "nft-bridge:Transfer", `{"token":` + evm(4, 11) +
			`,"symbol":"SYM","name":"A Name","tokenId":"9","uri":"uri","to":` + evm(2, 22) + `}`, 0},
		{"NFT of a stranger", vaa.Mainnet, 2, strangerHex, nftBytes(), "nft-bridge-shaped:Transfer", `{"token":` + evm(4, 11) +
			`,"symbol":"SYM","name":"A Name","tokenId":"9","uri":"uri","to":` + evm(2, 22) + `}`, 0},
		{
			"delivery", vaa.Mainnet, 2, relayerHex, deliveryBytes([]byte{8}, 0), "relayer:DeliveryInstruction",
			deliveryJSON([]byte{8}, executionJSON, "null"), 0,
		},
		{
			"delivery with other execution information", vaa.Mainnet, 2, relayerHex, deliveryBytes(nil, 1), "relayer:DeliveryInstruction",
			deliveryJSON(nil, "null", "null"), 0,
		},
		{
			"delivery of a native token transfer", vaa.Mainnet, 2, relayerHex, deliveryBytes(nttBytes(managerMessage(transfer)), 0),
			"relayer:DeliveryInstruction", deliveryJSON(nttBytes(managerMessage(transfer)), executionJSON,
				`{"kind":"ntt:wormhole-transceiver-message","fields":`+nttJSON(transfer, fmt.Sprintf(nttTransferJSON, "null"))+`}`), 0,
		},
		{
			"redelivery", vaa.Mainnet, 2, relayerHex, redeliveryBytes(), "relayer:RedeliveryInstruction",
			`{"deliveryKey":{"type":1,"vaa":"2/` + fmt.Sprintf("%064d", 44) + `/9223372036854775808","cctp":null,"data":null},"targetChain":5,` +
				`"newRequestedReceiverValue":"3","newExecutionInfo":` + executionJSON + `,"newSourceDeliveryProvider":` + evm(2, 33) +
				`,"newSender":` + evm(2, 44) + `}`, 0,
		},
		{
			"native token transfer", vaa.Mainnet, 2, strangerHex, nttBytes(managerMessage(transfer)), "ntt:wormhole-transceiver-message",
			nttJSON(transfer, fmt.Sprintf(nttTransferJSON, "null")), 0,
		},
		{
			"native token transfer with payload", vaa.Mainnet, 2, strangerHex, nttBytes(managerMessage(withTail)),
			"ntt:wormhole-transceiver-message", nttJSON(withTail, fmt.Sprintf(nttTransferJSON, `"0102"`)), 0,
		},
		{
			"generic message", vaa.Mainnet, 2, strangerHex, nttBytes(managerMessage(nttGenericBytes([]byte{9}))),
			"ntt:wormhole-transceiver-message", nttJSON(nttGenericBytes([]byte{9}), `{"kind":"ntt:GenericMessage","fields":{"callee":`+
				evm(5, 66)+`,"sender":`+evm(2, 44)+`,"data":"09","nested":null}}`), 0,
		},
		{
			"multi-token transfer", vaa.Mainnet, 2, strangerHex, nttBytes(managerMessage(multi)), "ntt:wormhole-transceiver-message",
			nttJSON(multi, fmt.Sprintf(`{"kind":"ntt:GenericMessage","fields":{"callee":%s,"sender":%s,"data":"%x","nested":%s}}`,
				evm(5, 66), evm(2, 44), multiTokenBytes(sized(nil)), fmt.Sprintf(multiJSON, evm(4, 77), evm(2, 33), evm(5, 55), `""`))), 0,
		},
		{
			"unknown manager message", vaa.Mainnet, 2, strangerHex, nttBytes([]byte{5}), "ntt:wormhole-transceiver-message",
			`{"sourceNttManager":` + evm(2, 11) + `,"recipientNttManager":` + wide(22) +
				`,"nttManagerPayload":"05","nttManagerMessage":null,"transceiverPayload":""}`, 0,
		},
		{
			"transceiver's info", vaa.Mainnet, 2, strangerHex, join(u32(0x9c23bd3b), word(0x11), []byte{1}, word(0x22), []byte{18}),
			"ntt:wormhole-transceiver-info", `{"manager":` + evm(2, 11) + `,"mode":1,"token":` + evm(2, 22) + `,"decimals":18}`, 0,
		},
		{
			"transceiver's registration", vaa.Mainnet, 2, strangerHex, join(u32(0x18fc67c2), u16(5), word(0x11)),
			"ntt:wormhole-transceiver-registration", `{"transceiver":` + evm(5, 11) + `}`, 0,
		},
		{"Circle deposit", vaa.Mainnet, 2, circleHex, circleBytes(), "cctp:CircleIntegrationDeposit", `{"token":` + evm(2, 11) +
			`,"amount":"250","sourceDomain":0,"targetDomain":7,"nonce":"9223372036854775808","caller":` + evm(2, 22) + `,"mintRecipient":` +
			wide(33) + `,"payload":"0707","nested":null}`, 0},
		{"prices", vaa.Mainnet, 26, pythnetHex, batchBytes(3, 0), "pyth:batch-price-attestation", fmt.Sprintf(price, 0, "null"), 0},
		{
			"prices of version 3.1", vaa.Mainnet, 26, pythnetHex, batchBytes(3, 1, u64(1683208932)), "pyth:batch-price-attestation",
			fmt.Sprintf(price, 1, `"2023-05-04T14:02:12Z"`), 0,
		},
		{
			"prices of a later version", vaa.Mainnet, 26, pythnetHex, batchBytes(3, 2, u64(1<<63), []byte{1, 2, 3}),
			"pyth:batch-price-attestation", fmt.Sprintf(price, 2, "null"), 0,
		},
		{
			"Merkle root", vaa.Mainnet, 26, pythnetHex, rootBytes(), "pyth:accumulator-merkle-root",
			`{"slot":"85480034","ringSize":10000,"root":"` + fmt.Sprintf("%040d", 11) + `"}`, 0,
		},
	}
}

func (l layout) decode(t testing.TB, bytes []byte) (string, any, error) {
	t.Helper()
	return payload.Decode(l.network, &vaa.Body{EmitterChain: l.chain, EmitterAddress: address(t, l.emitter), Payload: bytes})
}

// check decodes a layout, the same cut short after every byte, and the same with a byte too many.
func (l layout) check(t *testing.T) {
	t.Helper()
	kind, decoded, err := l.decode(t, l.payload)
	got, jsonErr := json.Marshal(decoded)
	if kind != l.kind || err != nil || jsonErr != nil {
		t.Fatalf("%s: %s (%v, %v), want %s", l.name, kind, err, jsonErr, l.kind)
	}
	if diff := cmp.Diff(l.want, string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", l.name, diff)
	}
	spoilt := func(what string, bytes []byte) {
		kind, decoded, err := l.decode(t, bytes)
		if kind == l.kind && err == nil {
			t.Errorf("%s %s: still a %s: %+v", l.name, what, kind, decoded)
		}
		if known := l.emitter != strangerHex; known && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf("payload of %d bytes", len(bytes)))) {
			t.Errorf("%s %s: error %v", l.name, what, err)
		}
	}
	for i := range l.payload {
		if l.open == 0 || i < l.open {
			spoilt(fmt.Sprintf("cut after %d bytes", i), l.payload[:i])
		}
	}
	if l.open == 0 {
		spoilt("with a byte too many", append(l.payload[:len(l.payload):len(l.payload)], 0))
	}
}

func TestLayouts(t *testing.T) {
	t.Parallel()
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			l.check(t)
		})
	}
}

// TestUndecoded: what has no decoder is named, and says why it is not decoded.
func TestUndecoded(t *testing.T) {
	t.Parallel()
	for _, l := range []layout{
		{name: "Mayan", network: vaa.Mainnet, chain: 5, emitter: "f18f923480dc144326e6c65d4f3d47aa459bb41c", payload: []byte{3, 1}, kind: "mayan:opaque"},
		{name: "unknown prices", network: vaa.Mainnet, chain: 26, emitter: pythnetHex, payload: batchBytes(4, 0), kind: "pyth:batch-price-attestation"},
		{name: "no price", network: vaa.Mainnet, chain: 26, emitter: pythnetHex, payload: []byte("P2WH\x00"), kind: "pyth:batch-price-attestation"},
		{name: "other batch", network: vaa.Mainnet, chain: 26, emitter: pythnetHex, kind: "pyth:batch-price-attestation", payload: join(batchBytes(3, 0)[:10], []byte{1}, batchBytes(3, 0)[11:])},
		{name: "other root", network: vaa.Mainnet, chain: 26, emitter: pythnetHex, payload: append([]byte("AUWV\x01"), rootBytes()[5:]...), kind: "pyth:accumulator-merkle-root"},
		{name: "release of an unknown type", network: vaa.Testnet, chain: 1, emitter: managerHex, payload: releaseBytes([]byte{3}), kind: "manager:XRPLRelease"},
		{name: "release with more memos than bytes", network: vaa.Testnet, chain: 1, emitter: managerHex, kind: "manager:XRPLRelease", payload: releaseBytes([]byte{0}, u16(0xffff), sized(nil))},
		{
			name: "unlock to an unknown type", network: vaa.Testnet, chain: 1, emitter: managerHex, kind: "manager:UTXOUnlock",
			payload: join([]byte("UTX0"), u16(65), u32(1), u32(0), u32(1), u64(5), u32(2), make([]byte, 20)),
		},
	} {
		kind, decoded, err := l.decode(t, l.payload)
		if kind != l.kind || decoded != nil || err == nil {
			t.Errorf("%s: %s, %+v, %v; want %s and a reason", l.name, kind, decoded, err, l.kind)
		}
	}
	// From a stranger, four letters tell nothing.
	for _, magic := range []string{"XREL\x01", "XRFL\x01", "XBRN\x01", "UTX0", "P2WH", "PTGM\x01\x01\x00\x00"} {
		l := layout{network: vaa.Mainnet, chain: 2, emitter: strangerHex}
		if kind, decoded, err := l.decode(t, []byte(magic)); kind != payload.KindGeneric || decoded != nil || err != nil {
			t.Errorf("%q from a stranger: %s, %+v, %v", magic, kind, decoded, err)
		}
	}
}
