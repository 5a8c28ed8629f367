package payload

import (
	"errors"
	"fmt"

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
}

// decodeTokenBridge reads a payload of a token bridge (layouts: whitepaper 0003 of wormhole-foundation/wormhole).
func decodeTokenBridge(body *vaa.Body) (string, any, error) {
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
		kind, decoded = KindTransferWithPayload, readTransferWithPayload(r, body.EmitterChain)
	default:
		return "", nil, fmt.Errorf("token bridge: payload id %d is unknown", id)
	}
	if !r.done() {
		return "", nil, fmt.Errorf("%s: %w", kind, errLayout)
	}
	return kind, decoded, nil
}

func readTransfer(r *reader) *Transfer {
	t := &Transfer{Amount: r.u256()}
	t.Token = readTokenAndChain(r)
	t.To = readTokenAndChain(r)
	t.Fee = r.u256()
	return t
}

func readAttestMeta(r *reader) *AttestMeta {
	m := &AttestMeta{Token: readTokenAndChain(r), Decimals: r.u8()}
	m.Symbol = text(r.take(32))
	m.Name = text(r.take(32))
	return m
}

func readTransferWithPayload(r *reader, emitterChain vaa.ChainID) *TransferWithPayload {
	t := &TransferWithPayload{Amount: r.u256()}
	t.Token = readTokenAndChain(r)
	t.To = readTokenAndChain(r)
	t.From = on(emitterChain, r.address())
	t.Payload = r.remaining()
	return t
}

// readTokenAndChain reads an address and the chain that follows it.
func readTokenAndChain(r *reader) ChainAddress {
	address := r.address()
	return on(r.chain(), address)
}
