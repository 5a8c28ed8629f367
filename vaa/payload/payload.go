// Package payload says what the payload of a VAA means. What a payload is follows from who sent it, (network, chain, emitter), and
// never from its first byte alone: the same bytes are a token transfer from a token bridge and anything at all from anyone else.
//
// Decoders never panic, keep no reference to the bytes that they are given, and are safe for concurrent use. In JSON, amounts and
// 64-bit numbers are decimal strings, bytes lower-case hex, times RFC 3339 in UTC, and what a payload does not say is null.
package payload

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/attestry/attestry/vaa"
)

// KindGeneric is the kind of a payload of which nothing is known.
const KindGeneric = "generic"

// Kinds of transfers and announcements by the bridges. Kinds of governance are "governance:<module>:<action>".
const (
	KindTransfer            = "token-bridge:Transfer"
	KindAttestMeta          = "token-bridge:AttestMeta"
	KindTransferWithPayload = "token-bridge:TransferWithPayload"
	KindNFTTransfer         = "nft-bridge:Transfer"
)

const (
	kindDelivery         = "relayer:DeliveryInstruction"
	kindRedelivery       = "relayer:RedeliveryInstruction"
	kindCircleDeposit    = "cctp:CircleIntegrationDeposit"
	kindFastMarketOrder  = "liquidity-layer:FastMarketOrder"
	kindLiquidityDeposit = "liquidity-layer:CctpDeposit"
	kindFastFill         = "liquidity-layer:FastFill"
	kindAllbridge        = "allbridge:Message"
	kindPythPrice        = "pyth:price-attestation"
	kindPythBatch        = "pyth:batch-price-attestation"
	kindPythRoot         = "pyth:accumulator-merkle-root"
	kindPythGovernance   = "pyth:governance"
	kindNTTMessage       = "ntt:wormhole-transceiver-message"
	kindNTTInfo          = "ntt:wormhole-transceiver-info"
	kindNTTRegistration  = "ntt:wormhole-transceiver-registration"
	kindUTXOUnlock       = "manager:UTXOUnlock"
	kindXRPLRelease      = "manager:XRPLRelease"
	kindXRPLRefill       = "manager:XRPLTicketRefill"
	kindXRPLBurn         = "manager:XRPLBurnTicket"
	kindMayan            = "mayan:opaque"
	shapedNFTTransfer    = "nft-bridge-shaped:Transfer"
	nestedNTTTransfer    = "ntt:NativeTokenTransfer"
	nestedNTTGeneric     = "ntt:GenericMessage"
	nestedNTTMultiToken  = "ntt:MultiTokenTransfer"
	nestedTokenRelay     = "token-bridge-relayer:TransferWithRelay"
	nestedExecutor       = "token-bridge-executor:TransferWithExecutorRelay"
	nestedTBTC           = "tbtc:GatewayTransfer"
	nestedGateway        = "gateway:GatewayTransfer"
	nestedGatewayPayload = "gateway:GatewayTransferWithPayload"
	nestedGatewayBasic   = "gateway:BasicRecipient"
	nestedOmniSwap       = "omniswap:SoSwap"
	nestedFill           = "liquidity-layer:Fill"
	nestedSlowOrder      = "liquidity-layer:SlowOrderResponse"
	shapedTokenRelay     = "token-bridge-relayer-shaped:TransferWithRelay"
	shapedPortico        = "portico-shaped:Transfer"
)

// errLayout is the reason of a payload that is not laid out as its kind is.
var errLayout = errors.New("bytes are missing or left over")

// Decode tells what kind of payload a body has and what it says.
//
// The kind is never empty. Decoded is nil or one of
//   - *[Transfer], *[AttestMeta], *[TransferWithPayload] of token bridges, *[NFTTransfer] of NFT bridges
//   - *[DeliveryInstruction], *[RedeliveryInstruction] of Wormhole relayers
//   - *[NTTMessage], *[NTTInfo], *[NTTRegistration] of native token transfers
//   - *[CircleDeposit] of Circle Integrations and of the liquidity layer, and of the latter *[FastMarketOrder], *[FastFill]
//   - *[PriceBatch], *[EarlyPriceBatch], *[MerkleRoot], *[PythGovernance] of Pyth
//   - *[AllbridgeMessage] of Allbridge
//   - *[UTXOUnlock], *[XRPLRelease], *[XRPLTicketRefill], *[XRPLBurnTicket] of those who ask delegated managers to sign
//   - *[Governance].
//
// An error says why decoded is nil or incomplete: the payload is not what its emitter's payloads should be, or no decoder is known
// for what it is. The kind is then what can still be told, [KindGeneric] at worst. A generic payload of an emitter that is not known
// is no error.
//
// A payload of an emitter that is not known gets the kind of its layout with the mark "-shaped", as
// "token-bridge-shaped:Transfer": it looks like one, and nobody vouches for it. Two sorts of payload are told by their own magic
// bytes together with their full layout: messages of native token transfers, whose emitters are many (one for each
// token), and, on the development network only, those of Pyth, Circle and governance, whose emitters there are arbitrary.
func Decode(network vaa.Network, body *vaa.Body) (kind string, decoded any, err error) {
	kind, decoded, err = decodeKnown(network, body)
	if kind == "" {
		reason := err
		kind, decoded, err = decodeUnknown(network, body)
		err = cmp.Or(reason, err)
	}
	if err != nil {
		err = fmt.Errorf("payload of %d bytes from %s: %w", len(body.Payload), body.MessageID(), err)
	}
	return kind, decoded, err
}

// decodeKnown decodes a payload by its emitter. The kind is empty if the emitter is not known, or if the payload is nothing that
// it sends; an error then says why.
func decodeKnown(network vaa.Network, body *vaa.Body) (string, any, error) {
	switch contractOf(network, body.EmitterChain, body.EmitterAddress) {
	case governance:
		return decodeGovernance(body.Payload)
	case tokenBridge:
		return decodeTokenBridge(network, body)
	case nftBridge:
		return decodeNFTBridge(body)
	case relayer:
		return decodeRelayer(body)
	case relayerOrManager:
		if isManagerRequest(body.Payload) {
			return decodeManagerRequest(body.Payload)
		}
		return decodeRelayer(body)
	case circleIntegration:
		return decodeCircle(body)
	case liquidityLayer:
		return decodeLiquidityLayer(body)
	case allbridge:
		return decodeAllbridge(body.Payload)
	case pyth:
		return decodePyth(body.Payload)
	case mayan:
		return kindMayan, nil, errors.New("mayan: no layout is known")
	}
	return "", nil, nil
}

// decodeUnknown tells the kind of a payload whose emitter is not known, by its full layout; generic if none fits. A layout of fixed
// length is evidence enough; where it takes any tail, its chains must have names as well. On the development network the head of a
// decision of governance and the magic bytes of Pyth tell the kind, and an error says what is wrong with the rest.
func decodeUnknown(network vaa.Network, body *vaa.Body) (string, any, error) {
	if kind, decoded := decodeNTT(body); kind != "" {
		return kind, decoded, nil
	}
	if kind, decoded := shapedTokenBridge(network, body); kind != "" {
		return kind, decoded, nil
	}
	if _, decoded, err := decodeNFTBridge(body); err == nil {
		if d := decoded.(*NFTTransfer); d.Token.Chain.Known() && d.To.Chain.Known() {
			return shapedNFTTransfer, d, nil
		}
	}
	if kind, decoded, err := decodeManagerRequest(body.Payload); kind != "" && err == nil {
		return strings.Replace(kind, "manager:", "manager-shaped:", 1), decoded, nil
	}
	if network != vaa.Devnet {
		return KindGeneric, nil, nil
	}
	if chain, _ := vaa.GovernanceEmitter(); body.EmitterChain == chain {
		if kind, decoded, err := decodeGovernance(body.Payload); kind != "" {
			return kind, decoded, err
		}
	}
	if kind, decoded, err := decodeCircle(body); err == nil {
		return kind, decoded, nil
	}
	if kind, decoded, err := decodePyth(body.Payload); kind != "" {
		return kind, decoded, err
	}
	return KindGeneric, nil, nil
}

// Recipient returns who a transfer pays: the address and its chain. It is false for all but transfers of a known token bridge or NFT
// bridge and releases on the XRP ledger (a "-shaped" transfer pays nobody). A [TransferWithPayload] pays the contract that redeems
// it. What pays several, as a [UTXOUnlock], or whom an auction or another message decides about, has no one recipient.
func Recipient(kind string, decoded any) (vaa.Address, vaa.ChainID, bool) {
	switch d := decoded.(type) {
	case *Transfer:
		return d.To.Address, d.To.Chain, kind == KindTransfer
	case *TransferWithPayload:
		return d.To.Address, d.To.Chain, kind == KindTransferWithPayload
	case *NFTTransfer:
		return d.To.Address, d.To.Chain, kind == KindNFTTransfer
	case *XRPLRelease:
		return d.Recipient.Address, d.Recipient.Chain, kind == kindXRPLRelease
	}
	return vaa.Address{}, 0, false
}
