package payload

import (
	"errors"
	"fmt"

	"github.com/attestry/attestry/vaa"
)

// DeliveryInstruction asks a delivery provider to call a contract on another chain (payload id 1 of the Wormhole relayer).
type DeliveryInstruction struct {
	Target                 ChainAddress   `json:"target"`
	Payload                Bytes          `json:"payload"` // for the target
	Nested                 *Nested        `json:"nested"`  // the payload's meaning, with *[NTTMessage]; nil if it is not known
	RequestedReceiverValue Uint256        `json:"requestedReceiverValue"`
	ExtraReceiverValue     Uint256        `json:"extraReceiverValue"`
	ExecutionInfo          *ExecutionInfo `json:"executionInfo"` // nil if of another version than 0
	Refund                 ChainAddress   `json:"refund"`
	RefundDeliveryProvider ChainAddress   `json:"refundDeliveryProvider"` // on the target's chain
	SourceDeliveryProvider ChainAddress   `json:"sourceDeliveryProvider"` // on the emitter's chain, as is Sender
	Sender                 ChainAddress   `json:"sender"`
	MessageKeys            []MessageKey   `json:"messageKeys"` // of further messages to deliver; never nil
}

// RedeliveryInstruction asks for a delivery to be made once more, on other terms (payload id 2 of the Wormhole relayer).
type RedeliveryInstruction struct {
	DeliveryKey               MessageKey     `json:"deliveryKey"` // the delivery in question
	TargetChain               vaa.ChainID    `json:"targetChain"`
	NewRequestedReceiverValue Uint256        `json:"newRequestedReceiverValue"`
	NewExecutionInfo          *ExecutionInfo `json:"newExecutionInfo"`          // nil if of another version than 0
	NewSourceDeliveryProvider ChainAddress   `json:"newSourceDeliveryProvider"` // on the emitter's chain, as is NewSender
	NewSender                 ChainAddress   `json:"newSender"`
}

// ExecutionInfo says how much gas a delivery may use on an EVM chain, and what is refunded for unused gas, in the target chain's
// smallest unit (version 0).
type ExecutionInfo struct {
	GasLimit                      Uint256 `json:"gasLimit"`
	TargetChainRefundPerGasUnused Uint256 `json:"targetChainRefundPerGasUnused"`
}

// MessageKey names a message of Wormhole (type 1), of Circle (type 2) or of anything else; one of the three is not nil.
type MessageKey struct {
	Type uint8          `json:"type"`
	VAA  *vaa.MessageID `json:"vaa"`
	CCTP *CCTPKey       `json:"cctp"`
	Data *Bytes         `json:"data"`
}

// CCTPKey names a message of Circle's Cross-Chain Transfer Protocol. A domain is a number of Circle's, not a Wormhole chain id.
type CCTPKey struct {
	Domain uint32 `json:"domain"`
	Nonce  uint64 `json:"nonce,string"`
}

// decodeRelayer reads a payload of a Wormhole relayer (layouts: relayerLayout.ts of wormhole-foundation/wormhole-sdk-ts).
func decodeRelayer(body *vaa.Body) (string, any, error) {
	r := &reader{rest: body.Payload}
	var kind string
	var decoded any
	switch r.u8() {
	case 1:
		kind, decoded = kindDelivery, readDelivery(r, body)
	case 2:
		kind, decoded = kindRedelivery, readRedelivery(r, body.EmitterChain)
	default:
		return "", nil, errors.New("relayer: not an instruction")
	}
	if !r.done() {
		return "", nil, fmt.Errorf("%s: %w", kind, errLayout)
	}
	return kind, decoded, nil
}

func readDelivery(r *reader, body *vaa.Body) *DeliveryInstruction {
	d := &DeliveryInstruction{
		Target: r.chainAddress(), Payload: r.data(r.u32()),
		RequestedReceiverValue: r.u256(), ExtraReceiverValue: r.u256(), ExecutionInfo: readExecutionInfo(r),
		Refund: r.chainAddress(), MessageKeys: []MessageKey{},
	}
	d.RefundDeliveryProvider = on(d.Target.Chain, r.address())
	d.SourceDeliveryProvider, d.Sender = on(body.EmitterChain, r.address()), on(body.EmitterChain, r.address())
	for range r.u8() {
		d.MessageKeys = append(d.MessageKeys, readMessageKey(r))
	}
	inner := *body
	inner.Payload = d.Payload
	if kind, decoded := decodeNTT(&inner); kind == kindNTTMessage {
		d.Nested = &Nested{Kind: kind, Fields: decoded}
	}
	return d
}

func readRedelivery(r *reader, emitterChain vaa.ChainID) *RedeliveryInstruction {
	return &RedeliveryInstruction{
		DeliveryKey: readMessageKey(r), TargetChain: r.chain(),
		NewRequestedReceiverValue: r.u256(), NewExecutionInfo: readExecutionInfo(r),
		NewSourceDeliveryProvider: on(emitterChain, r.address()), NewSender: on(emitterChain, r.address()),
	}
}

// readExecutionInfo reads execution information with its length; nil if it is not of version 0.
func readExecutionInfo(r *reader) *ExecutionInfo {
	inner := &reader{rest: r.data(r.u32())}
	version := inner.u256()
	info := &ExecutionInfo{GasLimit: inner.u256(), TargetChainRefundPerGasUnused: inner.u256()}
	if version != (Uint256{}) || !inner.done() {
		return nil
	}
	return info
}

// readMessageKey reads the key of a message: that of a VAA as it is, all others with their length.
func readMessageKey(r *reader) MessageKey {
	key := MessageKey{Type: r.u8()}
	if key.Type == 1 {
		key.VAA = &vaa.MessageID{EmitterChain: r.chain(), EmitterAddress: r.address(), Sequence: r.u64()}
		return key
	}
	data := r.data(r.u32())
	if key.Type == 2 {
		inner := &reader{rest: data}
		cctp := &CCTPKey{Domain: inner.u32(), Nonce: inner.u64()}
		if inner.done() {
			key.CCTP = cctp
			return key
		}
	}
	key.Data = &data
	return key
}
