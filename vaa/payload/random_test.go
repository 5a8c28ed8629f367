package payload_test

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

func drawBytes(t *rapid.T, n int, label string) []byte {
	return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, label)
}

func drawData(t *rapid.T, label string) []byte {
	return rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, label)
}

// decodeAs decodes a payload that must be of type T.
func decodeAs[T any](t *rapid.T, network vaa.Network, body *vaa.Body) T {
	_, decoded, err := payload.Decode(network, body)
	d, ok := decoded.(T)
	if err != nil || !ok {
		t.Fatalf("%T, %v", decoded, err)
	}
	return d
}

// TestRandomDeliveries lays out random deliveries and reads every field back.
func TestRandomDeliveries(t *testing.T) {
	t.Parallel()
	relayer := address(t, relayerHex)
	rapid.Check(t, func(t *rapid.T) {
		chains := rapid.SliceOfN(rapid.Uint16(), 3, 3).Draw(t, "chains")
		var words [10][]byte
		for i := range words {
			words[i] = drawBytes(t, 32, "word")
		}
		inner := drawData(t, "payload")
		want := &payload.DeliveryInstruction{
			Target: on(chains[0], words[0]), Payload: inner,
			RequestedReceiverValue: payload.Uint256(words[1]), ExtraReceiverValue: payload.Uint256(words[2]),
			ExecutionInfo: &payload.ExecutionInfo{GasLimit: payload.Uint256(words[3]), TargetChainRefundPerGasUnused: payload.Uint256(words[4])},
			Refund:        on(chains[1], words[5]), RefundDeliveryProvider: on(chains[0], words[6]),
			SourceDeliveryProvider: on(2, words[7]), Sender: on(2, words[8]), MessageKeys: []payload.MessageKey{},
		}
		bytes := join([]byte{1}, u16(chains[0]), words[0], sized32(inner), words[1], words[2], sized32(join(word(0), words[3], words[4])),
			u16(chains[1]), words[5], words[6], words[7], words[8])
		var keys []byte
		for range rapid.IntRange(0, 5).Draw(t, "keys") {
			switch kind := rapid.ByteRange(0, 4).Draw(t, "type"); kind {
			case 1:
				id := vaa.MessageID{EmitterChain: vaa.ChainID(chains[2]), EmitterAddress: vaa.Address(words[9]), Sequence: rapid.Uint64().Draw(t, "sequence")}
				want.MessageKeys = append(want.MessageKeys, payload.MessageKey{Type: 1, VAA: &id})
				keys = append(keys, join([]byte{1}, u16(chains[2]), words[9], u64(id.Sequence))...)
			case 2:
				cctp := payload.CCTPKey{Domain: rapid.Uint32().Draw(t, "domain"), Nonce: rapid.Uint64().Draw(t, "nonce")}
				want.MessageKeys = append(want.MessageKeys, payload.MessageKey{Type: 2, CCTP: &cctp})
				keys = append(keys, join([]byte{2}, sized32(join(u32(cctp.Domain), u64(cctp.Nonce))))...)
			default:
				data := payload.Bytes(drawData(t, "data"))
				want.MessageKeys = append(want.MessageKeys, payload.MessageKey{Type: kind, Data: &data})
				keys = append(keys, join([]byte{kind}, sized32(data))...)
			}
		}
		bytes = join(bytes, []byte{byte(len(want.MessageKeys))}, keys)
		got := decodeAs[*payload.DeliveryInstruction](t, vaa.Mainnet, &vaa.Body{EmitterChain: 2, EmitterAddress: relayer, Payload: bytes})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// on is an address as the package has it.
func on(chain uint16, address []byte) payload.ChainAddress {
	a := payload.ChainAddress{Chain: vaa.ChainID(chain), Address: vaa.Address(address)}
	if native, ok := vaa.NativeAddress(a.Chain, a.Address); ok {
		a.Native = &native
	}
	return a
}

// TestRandomUnlocks lays out random requests to managers and reads every field back.
func TestRandomUnlocks(t *testing.T) {
	t.Parallel()
	manager := address(t, managerHex)
	rapid.Check(t, func(t *rapid.T) {
		want := &payload.UTXOUnlock{
			DestinationChain: vaa.ChainID(rapid.Uint16().Draw(t, "chain")), ManagerSetIndex: rapid.Uint32().Draw(t, "index"),
			Inputs: []payload.UTXOInput{}, Outputs: []payload.UTXOOutput{},
		}
		var inputs, outputs []byte
		for range rapid.IntRange(0, 5).Draw(t, "inputs") {
			in := payload.UTXOInput{
				OriginalRecipient: vaa.Address(drawBytes(t, 32, "recipient")), TransactionID: drawBytes(t, 32, "id"), OutputIndex: rapid.Uint32().Draw(t, "at"),
			}
			want.Inputs = append(want.Inputs, in)
			inputs = join(inputs, in.OriginalRecipient[:], in.TransactionID, u32(in.OutputIndex))
		}
		for range rapid.IntRange(0, 5).Draw(t, "outputs") {
			out := payload.UTXOOutput{
				Amount: rapid.Uint64().Draw(t, "amount"), AddressType: rapid.Uint32Range(0, 1).Draw(t, "type"), Address: drawBytes(t, 20, "address"),
			}
			want.Outputs = append(want.Outputs, out)
			outputs = join(outputs, u64(out.Amount), u32(out.AddressType), out.Address)
		}
		bytes := join([]byte("UTX0"), u16(uint16(want.DestinationChain)), u32(want.ManagerSetIndex),
			u32(uint32(len(want.Inputs))), inputs, u32(uint32(len(want.Outputs))), outputs)
		got := decodeAs[*payload.UTXOUnlock](t, vaa.Testnet, &vaa.Body{EmitterChain: 1, EmitterAddress: manager, Payload: bytes})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestRandomCuts cuts and lengthens what was laid out by hand, wherever it is sent from: whatever comes of it, it has a kind, and
// decoding again gives the same.
func TestRandomCuts(t *testing.T) {
	t.Parallel()
	all, senders := layouts(), map[string]vaa.Address{}
	for _, l := range all {
		senders[l.emitter] = address(t, l.emitter)
	}
	rapid.Check(t, func(t *rapid.T) {
		l, from := rapid.SampledFrom(all).Draw(t, "layout"), rapid.SampledFrom(all).Draw(t, "from")
		at := rapid.IntRange(0, len(l.payload)).Draw(t, "at")
		bytes := join(l.payload[:at], drawData(t, "middle"), l.payload[rapid.IntRange(at, len(l.payload)).Draw(t, "on"):])
		body := &vaa.Body{EmitterChain: from.chain, EmitterAddress: senders[from.emitter], Payload: bytes}
		kind, decoded, err := payload.Decode(from.network, body)
		again, same, _ := payload.Decode(from.network, body)
		if kind == "" || kind != again || !cmp.Equal(decoded, same) {
			t.Fatalf("%s, then %s: %s", kind, again, cmp.Diff(decoded, same))
		}
		if decoded == nil && err == nil && kind != payload.KindGeneric {
			t.Fatalf("%s is not decoded, without a reason", kind)
		}
	})
}

// TestClaimedLengths: a payload that claims to hold gigabytes costs no memory. It does not run beside other tests, whose memory would
// be counted.
func TestClaimedLengths(t *testing.T) {
	const most = 0xffffffff
	for _, l := range []layout{
		{name: "delivery's payload", network: vaa.Mainnet, chain: 2, emitter: relayerHex, payload: join([]byte{1}, u16(5), word(0x11), u32(most))},
		{name: "execution information", network: vaa.Mainnet, chain: 2, emitter: relayerHex, payload: join([]byte{2}, vaaKeyBytes(), u16(5), word(3), u32(most))},
		{name: "message key", network: vaa.Mainnet, chain: 2, emitter: relayerHex, payload: join([]byte{2, 9}, u32(most))},
		{name: "inputs", network: vaa.Testnet, chain: 1, emitter: managerHex, payload: join([]byte("UTX0"), u16(65), u32(1), u32(most))},
		{name: "outputs", network: vaa.Testnet, chain: 1, emitter: managerHex, payload: join([]byte("UTX0"), u16(65), u32(1), u32(0), u32(most))},
		{name: "memos", network: vaa.Testnet, chain: 1, emitter: managerHex, payload: releaseBytes([]byte{0}, u16(0xffff))},
		{name: "early prices", network: vaa.Mainnet, chain: 26, emitter: pythnetHex, payload: join([]byte("P2WH"), u16(2), []byte{2}, u16(0xffff), u16(0xffff))},
		{name: "order's message", network: vaa.Mainnet, chain: 2, emitter: routerHex, payload: append(orderBytes(0)[:len(orderBytes(0))-4], 0xff, 0xff)},
		{name: "prices", network: vaa.Mainnet, chain: 26, emitter: pythnetHex, payload: join([]byte("P2WH"), u16(3), u16(0), u16(1), []byte{2}, u16(0xffff), u16(0xffff))},
		{name: "header of prices", network: vaa.Mainnet, chain: 26, emitter: pythnetHex, payload: join([]byte("P2WH"), u16(3), u16(0), u16(0xffff))},
		{name: "deposit's payload", network: vaa.Mainnet, chain: 2, emitter: circleHex, payload: append(circleBytes()[:len(circleBytes())-4], 0xff, 0xff)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, decoded, err := l.decode(t, l.payload)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<10 {
			t.Errorf("%s: %d bytes allocated", l.name, used)
		}
		if decoded != nil || err == nil {
			t.Errorf("%s: %+v, %v", l.name, decoded, err)
		}
	}
}
