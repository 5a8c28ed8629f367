package payload

import (
	"errors"
	"fmt"

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
}

// decodeCircle reads a payload of a Circle Integration (layout: circleBridgeLayout.ts of wormhole-foundation/wormhole-sdk-ts).
func decodeCircle(body *vaa.Body) (string, any, error) {
	r := &reader{rest: body.Payload}
	if id := r.u8(); id != 1 {
		return "", nil, errors.New("circle integration: not a deposit")
	}
	d := &CircleDeposit{
		Token: on(body.EmitterChain, r.address()), Amount: r.u256(), SourceDomain: r.u32(), TargetDomain: r.u32(), Nonce: r.u64(),
		Caller: on(body.EmitterChain, r.address()), MintRecipient: r.address(), Payload: r.data(uint32(r.u16())),
	}
	if !r.done() {
		return "", nil, fmt.Errorf("%s: %w", kindCircleDeposit, errLayout)
	}
	return kindCircleDeposit, d, nil
}
