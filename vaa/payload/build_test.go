package payload_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// The builders of this file lay payloads out as their specifications say, field by field.

// join concatenates fields of a payload.
func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

// word is a number below 256 as a 32-byte field.
func word(last byte) []byte { return append(make([]byte, 31), last) }

func u16(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }
func u32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
func u64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// field is text, right-padded with NUL to 32 bytes.
func field(s string) []byte { return append([]byte(s), make([]byte, 32-len(s))...) }

// left is text, left-padded with NUL to n bytes.
func left(s string, n int) []byte { return append(make([]byte, n-len(s)), s...) }

// sized is data with its length in 16 bits, sized32 in 32 bits.
func sized(b []byte) []byte   { return append(u16(uint16(len(b))), b...) }
func sized32(b []byte) []byte { return append(u32(uint32(len(b))), b...) }

// evm is the JSON of the address word(0x<digits>) on an EVM chain; digits are decimal so that no checksum shows.
func evm(chain vaa.ChainID, digits int) string {
	return fmt.Sprintf(`{"chain":%d,"address":"%064d","native":"0x%040d"}`, chain, digits, digits)
}

// universal is the same on a chain without a native form.
func universal(chain vaa.ChainID, digits int) string {
	return fmt.Sprintf(`{"chain":%d,"address":"%064d","native":null}`, chain, digits)
}

// wide is the JSON of the 32-byte hex field word(0x<digits>).
func wide(digits int) string { return fmt.Sprintf(`"%064d"`, digits) }

func address(t testing.TB, digits string) vaa.Address {
	t.Helper()
	a, err := vaa.ParseAddress(0, strings.Repeat("0", 64-len(digits))+digits)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Emitters of mainnet on Ethereum, but for pythnet on Pythnet and manager on testnet's Solana; stranger is not known.
const (
	ethereumHex = "3ee18b2214aff97000d974cf647e7c347e8fa585"
	nftHex      = "6ffd7ede62328b3af38fcd61461bbfc52f5651fe"
	relayerHex  = "27428dd2d3dd32a4d7f7c497eaaa23130d894911"
	circleHex   = "aada05bd399372f0b0463744c09113c137636f6a"
	pythnetHex  = "e101faedac5851e32b9b23b5f9411a8c2bac4aae3ed4dd7b811dd1a72ea4aa71"
	managerHex  = "af528793be84ee2c922e2b27b7cae282a4d098f4fe528f35ded8c8c06d0b1090"
	strangerHex = "99"
)

func transferBytes() []byte {
	return join([]byte{1}, word(100), word(0xaa), u16(2), word(0xbb), u16(22), word(5))
}

// transferWithPayloadBytes moves 100 of the token 0x11 on Ethereum to a contract, from 0x33.
func transferWithPayloadBytes(chain vaa.ChainID, to, tail []byte) []byte {
	return join([]byte{3}, word(100), word(0x11), u16(2), to, u16(uint16(chain)), word(0x33), tail)
}

func nftBytes() []byte {
	return join([]byte{1}, word(0x11), u16(4), field("SYM"), left("A Name", 32), word(9), []byte{3}, []byte("uri"), word(0x22), u16(2))
}

func circleBytes() []byte {
	return join([]byte{1}, word(0x11), word(250), u32(0), u32(7), u64(1<<63), word(0x22), word(0x33), sized([]byte{7, 7}))
}

// executionBytes is execution information of a version: gas limit 500 000, refund 9.
func executionBytes(version byte) []byte {
	return sized32(join(word(version), make([]byte, 28), u32(500_000), word(9)))
}

func vaaKeyBytes() []byte  { return join([]byte{1}, u16(2), word(0x44), u64(1<<63)) }
func cctpKeyBytes() []byte { return join([]byte{2}, sized32(join(u32(6), u64(77)))) }

// deliveryBytes calls 0x11 on Polygon with a payload, and has a key of each type.
func deliveryBytes(inner []byte, version byte) []byte {
	return join([]byte{1}, u16(5), word(0x11), sized32(inner), word(3), word(4), executionBytes(version),
		u16(6), word(0x22), word(0x33), word(0x44), word(0x55), []byte{3}, vaaKeyBytes(), cctpKeyBytes(), []byte{9}, sized32([]byte{1, 2}))
}

func redeliveryBytes() []byte {
	return join([]byte{2}, vaaKeyBytes(), u16(5), word(3), executionBytes(0), word(0x33), word(0x44))
}

// nttBytes is a transceiver message between the managers 0x11 and 0x22.
func nttBytes(managerPayload []byte) []byte {
	return join(u32(0x9945ff10), word(0x11), word(0x22), sized(managerPayload), sized(nil))
}

// managerMessage is a message number 7 from 0x33.
func managerMessage(inner []byte) []byte { return join(word(7), word(0x33), sized(inner)) }

func nttTransferBytes(tail ...[]byte) []byte {
	return join(u32(0x994e5454), []byte{8}, u64(1<<63), word(0x44), word(0x55), u16(5), join(tail...))
}

func nttGenericBytes(data []byte) []byte {
	return join(u32(0x99474d50), u16(5), word(0x66), word(0x44), sized(data))
}

func multiTokenBytes(tail ...[]byte) []byte {
	return join(u32(0x994d5454), []byte{6}, u64(25), field("A Token"), field("TOK"), []byte{18}, u16(4), word(0x77), word(0x33), word(0x55),
		join(tail...))
}

func relayBytes() []byte { return join([]byte{1}, word(1), word(2), word(0x11)) }

// porticoBytes has its flags little-endian: chain 5, nonce 513, fee tiers 100 and 3000.
func porticoBytes(flags byte) []byte {
	set := join([]byte{5, 0}, []byte{1, 2, 0, 0}, []byte{100, 0, 0}, []byte{0xb8, 0x0b, 0}, make([]byte, 19), []byte{flags})
	return join(set, word(0x11), word(0x22), word(3), word(4), word(5))
}

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// osmosis is the bech32 of word(0x11)'s last 20 bytes.
func osmosis() string {
	native, _ := vaa.NativeAddress(20, vaa.Address(word(0x11)))
	return native
}

func gatewayBytes() []byte {
	return fmt.Appendf(nil, `{"gateway_transfer":{"chain":20,"nonce":3,"recipient":%q,"fee":"12"}}`, base64Of(osmosis()))
}

func unlockBytes() []byte {
	return join([]byte("UTX0"), u16(65), u32(1), u32(1), word(0x11), word(0x22), u32(4),
		u32(2), u64(1<<63), u32(0), make([]byte, 20), u64(50), u32(1), word(0x33)[12:])
}

// batchBytes is a batch of one price, with what a later minor version may have added.
func batchBytes(major, minor uint16, extra ...[]byte) []byte {
	price := join(word(0x11), word(0x22), u64(0xffffffffffffffff), u64(12), u32(0xfffffff8), u64(100), u64(13), []byte{1}, u32(4), u32(5),
		u64(1683208934), u64(1683208933), u64(0), u64(98), u64(14), join(extra...))
	return join([]byte("P2WH"), u16(major), u16(minor), u16(1), []byte{2}, u16(1), u16(uint16(len(price))), price)
}

func rootBytes() []byte {
	return join([]byte("AUWV"), []byte{0}, u64(85480034), u32(10000), word(0x11)[12:])
}

func governanceBody(module string, rest ...[]byte) *vaa.Body {
	chain, address := vaa.GovernanceEmitter()
	return &vaa.Body{EmitterChain: chain, EmitterAddress: address, Payload: append(left(module, 32), join(rest...)...)}
}

// decodeTransfer decodes a transfer with payload that a known token bridge sends to a contract.
func decodeTransfer(t testing.TB, network vaa.Network, chain vaa.ChainID, to vaa.Address, tail []byte) *payload.TransferWithPayload {
	t.Helper()
	emitter := address(t, ethereumHex)
	if network == vaa.Testnet {
		emitter = address(t, "f890982f9310df57d00f659cf4fd87e65aded8d7")
	}
	body := &vaa.Body{EmitterChain: 2, EmitterAddress: emitter, Payload: transferWithPayloadBytes(chain, to[:], tail)}
	kind, decoded, err := payload.Decode(network, body)
	d, ok := decoded.(*payload.TransferWithPayload)
	if kind != payload.KindTransferWithPayload || err != nil || !ok {
		t.Fatalf("%s, %T, %v", kind, decoded, err)
	}
	return d
}
