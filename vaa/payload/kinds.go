package payload

import (
	"bytes"
	"errors"
	"strings"

	"github.com/attestry/attestry/vaa"
)

// Kinds of payloads that are told but not yet decoded.
const (
	kindNFTTransfer    = "nft-bridge:Transfer"
	kindDelivery       = "relayer:DeliveryInstruction"
	kindRedelivery     = "relayer:RedeliveryInstruction"
	kindCircleDeposit  = "cctp:CircleIntegrationDeposit"
	kindPythBatch      = "pyth:batch-price-attestation"
	kindPythRoot       = "pyth:accumulator-merkle-root"
	kindPythGovernance = "pyth:governance"
	kindNTTTransceiver = "ntt:wormhole-transceiver-message"
	shapedNFTTransfer  = "nft-bridge-shaped:Transfer"
)

// kindOf tells the kind of a payload of a known emitter whose payloads are not decoded.
func kindOf(sender contract, payload []byte) (string, error) {
	switch sender {
	case nftBridge:
		if isNFTTransfer(payload) {
			return kindNFTTransfer, nil
		}
		return "", errors.New("nft bridge: not a transfer")
	case relayer:
		switch {
		case len(payload) > 0 && payload[0] == 1:
			return kindDelivery, nil
		case len(payload) > 0 && payload[0] == 2:
			return kindRedelivery, nil
		}
		return "", errors.New("relayer: not an instruction")
	case circleIntegration:
		if isCircleDeposit(payload) {
			return kindCircleDeposit, nil
		}
		return "", errors.New("circle integration: not a deposit")
	}
	if kind := pythKind(payload); kind != "" {
		return kind, nil
	}
	return "", errors.New("pyth: no known magic bytes")
}

// decodeUnknown tells the kind of a payload whose emitter is not known, by its full layout; empty if none fits.
func decodeUnknown(network vaa.Network, body *vaa.Body) (string, any) {
	if isNTTMessage(body.Payload) {
		return kindNTTTransceiver, nil
	}
	if kind, decoded := shapedTokenBridge(body); kind != "" {
		return kind, decoded
	}
	if isNFTTransfer(body.Payload) {
		return shapedNFTTransfer, nil
	}
	if network != vaa.Devnet {
		return "", nil
	}
	if chain, _ := vaa.GovernanceEmitter(); body.EmitterChain == chain {
		if kind, decoded, _ := decodeGovernance(body.Payload); kind != "" {
			return kind, decoded
		}
	}
	if isCircleDeposit(body.Payload) {
		return kindCircleDeposit, nil
	}
	return pythKind(body.Payload), nil
}

// shapedTokenBridge reads a payload as if its emitter were a token bridge; empty if the layout does not fit. Two layouts have a
// fixed length, which is evidence enough; the third takes any tail, so that both its chains must have names as well.
func shapedTokenBridge(body *vaa.Body) (string, any) {
	kind, decoded, err := decodeTokenBridge(body)
	if err != nil {
		return "", nil
	}
	if d, ok := decoded.(*TransferWithPayload); ok && !(d.Token.Chain.Known() && d.To.Chain.Known()) {
		return "", nil
	}
	return strings.Replace(kind, "token-bridge:", "token-bridge-shaped:", 1), decoded
}

// isNFTTransfer checks the layout of an NFT bridge's only payload: id 1, token, chain, symbol, name, token id, URI with its
// length, recipient, chain.
func isNFTTransfer(payload []byte) bool {
	r := &reader{rest: payload}
	id := r.u8()
	r.skip(32)
	token := r.chain()
	r.skip(32 + 32 + 32)
	r.skip(int(r.u8()))
	r.skip(32)
	to := r.chain()
	return id == 1 && r.done() && token.Known() && to.Known()
}

// isCircleDeposit checks the layout of the Circle Integration's payload 1: token, amount, two domains, nonce, caller,
// recipient, and a payload with its length.
func isCircleDeposit(payload []byte) bool {
	r := &reader{rest: payload}
	id := r.u8()
	r.skip(32 + 32 + 4 + 4 + 8 + 32 + 32)
	r.skip(int(r.u16()))
	return id == 1 && r.done()
}

// isNTTMessage checks the magic bytes and layout of a native token transfer's transceiver message: two managers, and two payloads
// with their lengths.
func isNTTMessage(payload []byte) bool {
	r := &reader{rest: payload}
	magic := r.take(4)
	r.skip(32 + 32)
	r.skip(int(r.u16()))
	r.skip(int(r.u16()))
	return bytes.Equal(magic, []byte{0x99, 0x45, 0xff, 0x10}) && r.done()
}

func pythKind(payload []byte) string {
	switch {
	case bytes.HasPrefix(payload, []byte("P2WH")):
		return kindPythBatch
	case bytes.HasPrefix(payload, []byte("AUWV")):
		return kindPythRoot
	case bytes.HasPrefix(payload, []byte("PTGM")):
		return kindPythGovernance
	}
	return ""
}
