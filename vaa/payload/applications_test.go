package payload_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// Emitters of mainnet on Ethereum, and OmniSwap's diamond there.
const (
	routerHex    = "70287c79ee41c5d1df8259cd68ba0890cd389c47"
	allbridgeHex = "7f02294f065a605c8d21d9812b8d1de7e5e1da74"
	diamondHex   = "2967e7bb9daa5711ac332caf874bd47ef99b3820"
)

// depositBytes is a deposit as circleBytes is, with a payload.
func depositBytes(inner []byte) []byte { return join(circleBytes()[:145], sized(inner)) }

func depositJSON(inner []byte, nested string) string {
	return fmt.Sprintf(`{"token":%s,"amount":"250","sourceDomain":0,"targetDomain":7,"nonce":"9223372036854775808","caller":%s,"mintRecipient":%s,`+
		`"payload":"%x","nested":%s}`, evm(2, 11), evm(2, 22), wide(33), inner, nested)
}

func fillBytes() []byte { return join([]byte{1}, u16(5), word(0x44), word(0x55), sized([]byte{7, 7})) }

func orderBytes(deadline uint32) []byte {
	return join([]byte{11}, u64(1<<63), u64(99), u16(5), word(0x11), word(0x22), word(0x33), u64(7), u64(8), u32(deadline), sized([]byte{7, 7}))
}

func orderJSON(deadline string) string {
	return `{"amountIn":"9223372036854775808","minAmountOut":"99","redeemer":` + evm(5, 11) + `,"sender":` + evm(2, 22) + `,"refundAddress":` + evm(2, 33) +
		`,"maxFee":"7","initAuctionFee":"8","deadline":` + deadline + `,"redeemerMessage":"0707"}`
}

func applicationLayouts() []layout {
	fill := `{"kind":"liquidity-layer:Fill","fields":{"orderSender":` + evm(5, 44) + `,"redeemer":` + wide(55) + `,"redeemerMessage":"0707"}}`
	response := join([]byte{2}, u64(1<<63))
	return []layout{
		{"fast order", vaa.Mainnet, 2, routerHex, orderBytes(0), "liquidity-layer:FastMarketOrder", orderJSON("null"), 0},
		{"fast order until", vaa.Mainnet, 2, routerHex, orderBytes(1683208934), "liquidity-layer:FastMarketOrder", orderJSON(`"2023-05-04T14:02:14Z"`), 0},
		{
			"fast fill", vaa.Mainnet, 2, routerHex, join([]byte{12}, u64(1<<63), u16(5), word(0x11), word(0x22), sized([]byte{7, 7})), "liquidity-layer:FastFill",
			`{"fillAmount":"9223372036854775808","orderSender":` + evm(5, 11) + `,"redeemer":` + evm(2, 22) + `,"redeemerMessage":"0707"}`, 0,
		},
		{"fill", vaa.Mainnet, 2, routerHex, depositBytes(fillBytes()), "liquidity-layer:CctpDeposit", depositJSON(fillBytes(), fill), 0},
		{
			"slow order", vaa.Mainnet, 2, routerHex, depositBytes(response), "liquidity-layer:CctpDeposit",
			depositJSON(response, `{"kind":"liquidity-layer:SlowOrderResponse","fields":{"baseFee":"9223372036854775808"}}`), 0,
		},
		{"deposit of a Circle Integration with a fill", vaa.Mainnet, 2, circleHex, depositBytes(fillBytes()), "cctp:CircleIntegrationDeposit", depositJSON(fillBytes(), "null"), 0},
		{
			"message of Allbridge", vaa.Mainnet, 2, allbridgeHex, append([]byte{1, 4}, word(0x11)[2:]...), "allbridge:Message",
			`{"sourceChain":1,"destinationChain":4,"hash":"` + fmt.Sprintf("%060d", 11) + `"}`, 0,
		},
	}
}

// TestDepositPayloads: what is not laid out as a fill or a response is a deposit all the same.
func TestDepositPayloads(t *testing.T) {
	t.Parallel()
	l := layout{network: vaa.Mainnet, chain: 2, emitter: routerHex}
	for name, inner := range map[string][]byte{
		"empty": nil, "unknown id": {3}, "short fill": fillBytes()[:60], "long fill": append(fillBytes(), 0), "short response": {2, 0}, "long response": make([]byte, 10),
	} {
		kind, decoded, err := l.decode(t, depositBytes(inner))
		d, ok := decoded.(*payload.CircleDeposit)
		if kind != "liquidity-layer:CctpDeposit" || err != nil || !ok || d.Nested != nil || len(d.Payload) != len(inner) {
			t.Errorf("%s: %s, %+v, %v", name, kind, decoded, err)
		}
	}
}

// sized8 is data with its length in 8 bits.
func sized8(b []byte) []byte { return append([]byte{byte(len(b))}, b...) }

// soSwapBytes is a payload for OmniSwap: gas price 257, gas 0, to an address and an asset, and what follows.
func soSwapBytes(recipient []byte, tail ...[]byte) []byte {
	return join([]byte{2, 1, 1, 1, 0}, sized8([]byte{0xab, 0xcd}), sized8(recipient), sized8(word(0x33)[12:]), join(tail...))
}

// soSwapStep is a swap by the contract 0x44.
func soSwapStep() []byte {
	return join(sized8(word(0x44)[12:]), sized8([]byte{1}), sized8([]byte{2}), sized([]byte{8, 9}))
}

// TestOmniSwap sends tokens to a diamond, with payloads that it understands or does not.
func TestOmniSwap(t *testing.T) {
	t.Parallel()
	step := `{"callTo":"` + fmt.Sprintf("%040d", 44) + `","sendingAsset":"01","receivingAsset":"02","callData":"0809"}`
	want := func(swaps string) string {
		return `{"kind":"omniswap:SoSwap","fields":{"maxGasPrice":"257","maxGas":"0","transactionId":"abcd","recipient":` + evm(2, 22) +
			`,"receivingAsset":"` + fmt.Sprintf("%040d", 33) + `","swaps":[` + swaps + `]}}`
	}
	diamond := address(t, diamondHex)
	plain, two := soSwapBytes(word(0x22)[12:]), soSwapBytes(word(0x22)[12:], []byte{1, 2}, soSwapStep(), soSwapStep())
	for _, c := range []struct {
		name string
		to   vaa.Address
		tail []byte
		want string
	}{
		{"no swap", diamond, plain, want("")},
		{"no swap, told so", diamond, soSwapBytes(word(0x22)[12:], []byte{1, 0}), want("")},
		{"long address", diamond, soSwapBytes(word(0x22)), want("")},
		{"two swaps", diamond, two, want(step + "," + step)},
		{"one byte too many", diamond, append(two[:len(two):len(two)], 0), "null"},
		{"three swaps announced", diamond, soSwapBytes(word(0x22)[12:], []byte{1, 3}, soSwapStep(), soSwapStep()), "null"},
		{"2^64 swaps announced", diamond, soSwapBytes(word(0x22)[12:], []byte{9, 1, 0, 0, 0, 0, 0, 0, 0, 0}, soSwapStep()), "null"},
		{"number of 33 bytes", diamond, join(sized8(make([]byte, 33)), plain[3:]), "null"},
		{"address of 19 bytes", diamond, soSwapBytes(make([]byte, 19)), "null"},
		{"no payload", diamond, nil, "null"},
		{"to a stranger", stranger, plain, "null"},
	} {
		got, err := json.Marshal(decodeTransfer(t, vaa.Mainnet, 2, c.to, c.tail).Nested)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s (%v), want %s", c.name, got, err, c.want)
		}
	}
	for i := range two {
		if i == len(plain) { // what came before the swaps is a whole payload
			continue
		}
		if n := decodeTransfer(t, vaa.Mainnet, 2, diamond, two[:i]).Nested; n != nil {
			t.Errorf("cut after %d bytes: %+v", i, n)
		}
	}
}
