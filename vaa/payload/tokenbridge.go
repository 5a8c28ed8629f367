package payload

import (
	"errors"
	"fmt"
	"strings"

	"github.com/attestry/attestry/vaa"
)

// Transfer moves tokens over the token bridge (payload id 1).
type Transfer struct {
	// Amount and Fee are in the token's smallest unit, but for tokens of more than 8 decimals in units of 10^-8 tokens.
	Amount Uint256      `json:"amount"`
	Token  ChainAddress `json:"token"` // where the token is at home
	To     ChainAddress `json:"to"`
	Fee    Uint256      `json:"fee"` // what a relayer may keep of the amount
}

// AttestMeta announces a token to other chains (payload id 2).
type AttestMeta struct {
	Token    ChainAddress `json:"token"`
	Decimals uint8        `json:"decimals"`
	Symbol   *string      `json:"symbol"` // nil if empty
	Name     *string      `json:"name"`   // nil if empty
}

// TransferWithPayload moves tokens to a contract, with a message for it (payload id 3).
type TransferWithPayload struct {
	Amount  Uint256      `json:"amount"` // as in [Transfer]
	Token   ChainAddress `json:"token"`
	To      ChainAddress `json:"to"`   // the contract that redeems
	From    ChainAddress `json:"from"` // who sent it, on the emitter's chain
	Payload Bytes        `json:"payload"`
	// Nested is the meaning of the payload, with one of *[TokenRelay], *[TokenRecipient], *[PorticoSwap], *[GatewayTransfer],
	// *[GatewayCall]; nil where neither the redeemer is known nor the payload tells by itself.
	Nested *Nested `json:"nested"`
}

// NFTTransfer moves a token of a collection over the NFT bridge (payload id 1).
type NFTTransfer struct {
	Token   ChainAddress `json:"token"`   // the collection, where it is at home
	Symbol  *string      `json:"symbol"`  // nil if empty
	Name    *string      `json:"name"`    // nil if empty
	TokenID Uint256      `json:"tokenId"` // within the collection
	URI     *string      `json:"uri"`     // of the metadata; nil if empty
	To      ChainAddress `json:"to"`
}

// decodeTokenBridge reads a payload of a token bridge (layouts: whitepaper 0003 of wormhole-foundation/wormhole).
func decodeTokenBridge(network vaa.Network, body *vaa.Body) (string, any, error) {
	r := &reader{rest: body.Payload}
	id := r.u8()
	if r.short {
		return "", nil, errors.New("token bridge: no payload id")
	}
	var kind string
	var decoded any
	switch id {
	case 1:
		kind, decoded = KindTransfer, readTransfer(r)
	case 2:
		kind, decoded = KindAttestMeta, readAttestMeta(r)
	case 3:
		kind, decoded = KindTransferWithPayload, readTransferWithPayload(r, network, body.EmitterChain)
	default:
		return "", nil, fmt.Errorf("token bridge: payload id %d is unknown", id)
	}
	if !r.done() {
		return "", nil, fmt.Errorf("%s: %w", kind, errLayout)
	}
	return kind, decoded, nil
}

// shapedTokenBridge reads a payload as if its emitter were a token bridge; empty if the layout does not fit.
func shapedTokenBridge(network vaa.Network, body *vaa.Body) (string, any) {
	kind, decoded, err := decodeTokenBridge(network, body)
	if err != nil {
		return "", nil
	}
	if d, ok := decoded.(*TransferWithPayload); ok && !(d.Token.Chain.Known() && d.To.Chain.Known()) {
		return "", nil
	}
	return strings.Replace(kind, "token-bridge:", "token-bridge-shaped:", 1), decoded
}

func readTransfer(r *reader) *Transfer {
	return &Transfer{Amount: r.u256(), Token: r.addressChain(), To: r.addressChain(), Fee: r.u256()}
}

func readAttestMeta(r *reader) *AttestMeta {
	return &AttestMeta{Token: r.addressChain(), Decimals: r.u8(), Symbol: text(r.take(32)), Name: text(r.take(32))}
}

func readTransferWithPayload(r *reader, network vaa.Network, emitterChain vaa.ChainID) *TransferWithPayload {
	t := &TransferWithPayload{
		Amount: r.u256(), Token: r.addressChain(), To: r.addressChain(), From: on(emitterChain, r.address()), Payload: r.remaining(),
	}
	t.Nested = nestedOf(network, t.To, t.Payload)
	return t
}

// decodeNFTBridge reads a payload of an NFT bridge (layout: whitepaper 0006 of wormhole-foundation/wormhole).
func decodeNFTBridge(body *vaa.Body) (string, any, error) {
	r := &reader{rest: body.Payload}
	if id := r.u8(); id != 1 {
		return "", nil, errors.New("nft bridge: not a transfer")
	}
	t := &NFTTransfer{
		Token: r.addressChain(), Symbol: text(r.take(32)), Name: text(r.take(32)), TokenID: r.u256(),
		URI: text(r.data(uint32(r.u8()))), To: r.addressChain(),
	}
	if !r.done() {
		return "", nil, fmt.Errorf("%s: %w", KindNFTTransfer, errLayout)
	}
	return KindNFTTransfer, t, nil
}
