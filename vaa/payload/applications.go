package payload

import (
	"errors"
	"fmt"
	"time"

	"github.com/attestry/attestry/vaa"
)

// CircleDeposit accompanies USDC that Circle moves, with a message for whoever may redeem it (payload id 1 of the Circle
// Integration). Domains are numbers of Circle's, not Wormhole chain ids.
type CircleDeposit struct {
	Token         ChainAddress `json:"token"` // on the emitter's chain, as Caller
	Amount        Uint256      `json:"amount"`
	SourceDomain  uint32       `json:"sourceDomain"`
	TargetDomain  uint32       `json:"targetDomain"`
	Nonce         uint64       `json:"nonce,string"` // of Circle's message
	Caller        ChainAddress `json:"caller"`
	MintRecipient vaa.Address  `json:"mintRecipient"` // in the target domain
	Payload       Bytes        `json:"payload"`
	// Nested is the meaning of the payload, with *[Fill] or *[SlowOrderResponse]; nil if it is not known, as it is only of the
	// liquidity layer.
	Nested *Nested `json:"nested"`
}

// FastMarketOrder asks the liquidity layer to deliver USDC before Circle does, for a fee that is found by auction (payload id 11).
// Amounts are in USDC's smallest unit.
type FastMarketOrder struct {
	AmountIn        uint64       `json:"amountIn,string"`
	MinAmountOut    uint64       `json:"minAmountOut,string"`
	Redeemer        ChainAddress `json:"redeemer"` // the contract that redeems
	Sender          ChainAddress `json:"sender"`   // on the emitter's chain, as RefundAddress
	RefundAddress   ChainAddress `json:"refundAddress"`
	MaxFee          uint64       `json:"maxFee,string"`
	InitAuctionFee  uint64       `json:"initAuctionFee,string"`
	Deadline        *time.Time   `json:"deadline"` // of the auction; nil for none
	RedeemerMessage Bytes        `json:"redeemerMessage"`
}

// Fill delivers an order with a deposit ("liquidity-layer:Fill").
type Fill struct {
	OrderSender     ChainAddress `json:"orderSender"` // on the order's chain
	Redeemer        vaa.Address  `json:"redeemer"`    // in the target domain of the deposit
	RedeemerMessage Bytes        `json:"redeemerMessage"`
}

// SlowOrderResponse pays back who delivered an order early ("liquidity-layer:SlowOrderResponse").
type SlowOrderResponse struct {
	BaseFee uint64 `json:"baseFee,string"` // in USDC's smallest unit
}

// FastFill delivers an order within the chain of the liquidity layer's matching engine, the emitter's (payload id 12).
type FastFill struct {
	FillAmount      uint64       `json:"fillAmount,string"` // in USDC's smallest unit
	OrderSender     ChainAddress `json:"orderSender"`       // on the order's chain
	Redeemer        ChainAddress `json:"redeemer"`
	RedeemerMessage Bytes        `json:"redeemerMessage"`
}

// AllbridgeMessage tells Allbridge on another chain that a transfer was made, by a hash of what was said on its own contracts. Chains are
// numbers of Allbridge's, not Wormhole chain ids.
type AllbridgeMessage struct {
	SourceChain      uint8 `json:"sourceChain"`
	DestinationChain uint8 `json:"destinationChain"`
	Hash             Bytes `json:"hash"` // 30 bytes
}

// decodeCircle reads a payload of a Circle Integration (layout: circleBridgeLayout.ts of wormhole-foundation/wormhole-sdk-ts).
func decodeCircle(body *vaa.Body) (string, any, error) {
	r := &reader{rest: body.Payload}
	if id := r.u8(); id != 1 {
		return "", nil, errors.New("circle integration: not a deposit")
	}
	d := readCircleDeposit(r, body.EmitterChain)
	if !r.done() {
		return "", nil, fmt.Errorf("%s: %w", kindCircleDeposit, errLayout)
	}
	return kindCircleDeposit, d, nil
}

func readCircleDeposit(r *reader, emitterChain vaa.ChainID) *CircleDeposit {
	return &CircleDeposit{
		Token: on(emitterChain, r.address()), Amount: r.u256(), SourceDomain: r.u32(), TargetDomain: r.u32(), Nonce: r.u64(),
		Caller: on(emitterChain, r.address()), MintRecipient: r.address(), Payload: r.data(uint32(r.u16())),
	}
}

// decodeLiquidityLayer reads a payload of a token router or the matching engine (layouts: universal/ts/src of
// wormhole-foundation/example-liquidity-layer, which refuse trailing bytes).
func decodeLiquidityLayer(body *vaa.Body) (string, any, error) {
	r := &reader{rest: body.Payload}
	var kind string
	var decoded any
	switch id := r.u8(); id {
	case 1:
		d := readCircleDeposit(r, body.EmitterChain)
		d.Nested = depositPayloadOf(d.Payload)
		kind, decoded = kindLiquidityDeposit, d
	case 11:
		kind, decoded = kindFastMarketOrder, readFastMarketOrder(r, body.EmitterChain)
	case 12:
		kind, decoded = kindFastFill, &FastFill{
			FillAmount: r.u64(), OrderSender: r.chainAddress(), Redeemer: on(body.EmitterChain, r.address()),
			RedeemerMessage: r.data(uint32(r.u16())),
		}
	default:
		return "", nil, errors.New("liquidity layer: not a deposit, an order or a fill")
	}
	if !r.done() {
		return "", nil, fmt.Errorf("%s: %w", kind, errLayout)
	}
	return kind, decoded, nil
}

func readFastMarketOrder(r *reader, emitterChain vaa.ChainID) *FastMarketOrder {
	return &FastMarketOrder{
		AmountIn: r.u64(), MinAmountOut: r.u64(), Redeemer: r.chainAddress(),
		Sender: on(emitterChain, r.address()), RefundAddress: on(emitterChain, r.address()),
		MaxFee: r.u64(), InitAuctionFee: r.u64(), Deadline: unixTime(int64(r.u32())), RedeemerMessage: r.data(uint32(r.u16())),
	}
}

// depositPayloadOf tells what a deposit of the liquidity layer says; nil if that is not known.
func depositPayloadOf(payload []byte) *Nested {
	r := &reader{rest: payload}
	nested := &Nested{}
	switch r.u8() {
	case 1:
		nested.Kind = nestedFill
		nested.Fields = &Fill{OrderSender: r.chainAddress(), Redeemer: r.address(), RedeemerMessage: r.data(uint32(r.u16()))}
	case 2:
		nested.Kind, nested.Fields = nestedSlowOrder, &SlowOrderResponse{BaseFee: r.u64()}
	}
	if nested.Kind == "" || !r.done() {
		return nil
	}
	return nested
}

// decodeAllbridge reads a payload of Allbridge's messenger: a hash whose first two bytes are the chains (contracts/WormholeMessenger.sol
// of allbridge-io/allbridge-core-evm-contracts, which takes 32 bytes only).
func decodeAllbridge(payload []byte) (string, any, error) {
	r := &reader{rest: payload}
	m := &AllbridgeMessage{SourceChain: r.u8(), DestinationChain: r.u8(), Hash: r.bytes(30)}
	if !r.done() {
		return "", nil, fmt.Errorf("%s: %w", kindAllbridge, errLayout)
	}
	return kindAllbridge, m, nil
}
