package payload

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/big"

	"github.com/attestry/attestry/vaa"
)

// TokenRelay asks a token bridge relayer to deliver a transfer ("token-bridge-relayer:TransferWithRelay").
type TokenRelay struct {
	TargetRelayerFee    Uint256      `json:"targetRelayerFee"`    // what the relayer keeps of the amount
	ToNativeTokenAmount Uint256      `json:"toNativeTokenAmount"` // what it swaps to the target chain's own token
	Recipient           ChainAddress `json:"recipient"`
}

// TokenRecipient says whom the contract that redeems passes the tokens to ("token-bridge-executor:TransferWithExecutorRelay",
// "tbtc:GatewayTransfer", "gateway:BasicRecipient").
type TokenRecipient struct {
	Recipient ChainAddress `json:"recipient"`
}

// PorticoSwap asks a Portico contract to swap what arrives and to pay it out ("portico-shaped:Transfer").
type PorticoSwap struct {
	RecipientChain     vaa.ChainID  `json:"recipientChain"`
	BridgeNonce        uint32       `json:"bridgeNonce"`
	FeeTierStart       uint32       `json:"feeTierStart"` // 24 bits, as FeeTierFinish
	FeeTierFinish      uint32       `json:"feeTierFinish"`
	ShouldWrapNative   bool         `json:"shouldWrapNative"`
	ShouldUnwrapNative bool         `json:"shouldUnwrapNative"`
	FinalToken         ChainAddress `json:"finalToken"`
	Recipient          ChainAddress `json:"recipient"`
	CanonAssetAmount   Uint256      `json:"canonAssetAmount"`
	MinAmountFinish    Uint256      `json:"minAmountFinish"`
	RelayerFee         Uint256      `json:"relayerFee"`
}

// GatewayTransfer asks Wormhole Gateway to pass tokens on to a chain ("gateway:GatewayTransfer").
type GatewayTransfer struct {
	Recipient ChainAddress `json:"recipient"`
	Fee       Uint256      `json:"fee"`
	Nonce     uint32       `json:"nonce"`
}

// GatewayCall asks Wormhole Gateway to pass tokens on to a contract, with a message for it ("gateway:GatewayTransferWithPayload").
type GatewayCall struct {
	Contract ChainAddress `json:"contract"`
	Payload  Bytes        `json:"payload"`
	Nonce    uint32       `json:"nonce"`
}

// nestedOf tells what a transfer's payload says to the contract that redeems it; nil if that is not known. Where the
// contract is not known, two layouts tell by themselves and get the mark "-shaped"; an address alone tells nothing.
func nestedOf(network vaa.Network, to ChainAddress, payload []byte) *Nested {
	switch contractOf(network, to.Chain, to.Address) {
	case tokenBridgeRelayer:
		if relay := readTokenRelay(to.Chain, payload); relay != nil {
			return &Nested{Kind: nestedTokenRelay, Fields: relay}
		}
	case tokenBridgeExecutor:
		if recipient := readRecipient(to.Chain, payload); recipient != nil {
			return &Nested{Kind: nestedExecutor, Fields: recipient}
		}
	case tbtcGateway:
		if recipient := readRecipient(to.Chain, payload); recipient != nil {
			return &Nested{Kind: nestedTBTC, Fields: recipient}
		}
	case gateway:
		return gatewayMessageOf(to.Chain, payload)
	case unknownContract:
		if relay := readTokenRelay(to.Chain, payload); relay != nil && relay.plausible() {
			return &Nested{Kind: shapedTokenRelay, Fields: relay}
		}
		if swap := readPorticoSwap(to.Chain, payload); swap != nil && swap.plausible(to.Chain) {
			return &Nested{Kind: shapedPortico, Fields: swap}
		}
	}
	return nil
}

// readTokenRelay reads payload id 1 of the token bridge relayer; nil if the layout does not fit.
func readTokenRelay(chain vaa.ChainID, payload []byte) *TokenRelay {
	r := &reader{rest: payload}
	id := r.u8()
	relay := &TokenRelay{TargetRelayerFee: r.u256(), ToNativeTokenAmount: r.u256(), Recipient: on(chain, r.address())}
	if id != 1 || !r.done() {
		return nil
	}
	return relay
}

func (t *TokenRelay) plausible() bool {
	return t.TargetRelayerFee.plausible() && t.ToNativeTokenAmount.plausible() && t.Recipient.plausible()
}

// readRecipient reads a payload that is an address and nothing else; nil if it is not.
func readRecipient(chain vaa.ChainID, payload []byte) *TokenRecipient {
	if len(payload) != 32 {
		return nil
	}
	return &TokenRecipient{Recipient: on(chain, vaa.Address(payload))}
}

// readPorticoSwap reads the payload of a Portico transfer, whose first 32 bytes are little-endian: chain (2), nonce (4), two fee
// tiers (3 each), padding (19), flags (1). Nil if the layout does not fit.
func readPorticoSwap(chain vaa.ChainID, payload []byte) *PorticoSwap {
	r := &reader{rest: payload}
	set := r.take(32)
	uint24 := func(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }
	padding, flags := set[12:31], set[31]
	swap := &PorticoSwap{
		RecipientChain: vaa.ChainID(binary.LittleEndian.Uint16(set)), BridgeNonce: binary.LittleEndian.Uint32(set[2:]),
		FeeTierStart: uint24(set[6:]), FeeTierFinish: uint24(set[9:]),
		ShouldWrapNative: flags&1 != 0, ShouldUnwrapNative: flags&2 != 0,
		FinalToken: on(chain, r.address()), Recipient: on(chain, r.address()),
		CanonAssetAmount: r.u256(), MinAmountFinish: r.u256(), RelayerFee: r.u256(),
	}
	if !r.done() || flags > 3 || len(bytes.Trim(padding, "\x00")) > 0 {
		return nil
	}
	return swap
}

func (s *PorticoSwap) plausible(chain vaa.ChainID) bool {
	return s.RecipientChain == chain && s.FinalToken.plausible() && s.Recipient.plausible() &&
		s.CanonAssetAmount.plausible() && s.MinAmountFinish.plausible() && s.RelayerFee.plausible()
}

// gatewayMessage is a payload of a transfer to one of Wormhole's contracts on Cosmos chains: a JSON object with one of these members.
// Bytes are base64; an address in them is written as its chain writes it, or is 32 bytes.
type gatewayMessage struct {
	Transfer *struct {
		Chain     *vaa.ChainID `json:"chain"`
		Recipient []byte       `json:"recipient"`
		Fee       string       `json:"fee"`
		Nonce     uint32       `json:"nonce"`
	} `json:"gateway_transfer"`
	Call *struct {
		Chain    *vaa.ChainID `json:"chain"`
		Contract []byte       `json:"contract"`
		Payload  []byte       `json:"payload"`
		Nonce    uint32       `json:"nonce"`
	} `json:"gateway_transfer_with_payload"`
	Basic *struct {
		Recipient []byte `json:"recipient"`
	} `json:"basic_recipient"`
}

// gatewayMessageOf reads a gateway message; nil if the payload is none.
func gatewayMessageOf(chain vaa.ChainID, payload []byte) *Nested {
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.DisallowUnknownFields()
	var m gatewayMessage
	if decoder.Decode(&m) != nil {
		return nil
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	switch {
	case m.Transfer != nil && m.Call == nil && m.Basic == nil && m.Transfer.Chain != nil:
		recipient, ok := writtenAddress(*m.Transfer.Chain, m.Transfer.Recipient)
		fee, isNumber := parseUint256(m.Transfer.Fee)
		if ok && isNumber {
			return &Nested{Kind: nestedGateway, Fields: &GatewayTransfer{Recipient: recipient, Fee: fee, Nonce: m.Transfer.Nonce}}
		}
	case m.Call != nil && m.Transfer == nil && m.Basic == nil && m.Call.Chain != nil:
		if contract, ok := writtenAddress(*m.Call.Chain, m.Call.Contract); ok {
			return &Nested{
				Kind: nestedGatewayPayload, Fields: &GatewayCall{Contract: contract, Payload: Bytes(m.Call.Payload), Nonce: m.Call.Nonce},
			}
		}
	case m.Basic != nil && m.Transfer == nil && m.Call == nil:
		if recipient, ok := writtenAddress(chain, m.Basic.Recipient); ok {
			return &Nested{Kind: nestedGatewayBasic, Fields: &TokenRecipient{Recipient: recipient}}
		}
	}
	return nil
}

// writtenAddress reads an address of 32 bytes, or one in text as its chain writes it.
func writtenAddress(chain vaa.ChainID, b []byte) (ChainAddress, bool) {
	if len(b) == 32 {
		return on(chain, vaa.Address(b)), true
	}
	const longest = 128 // more than any chain's addresses
	if len(b) > longest {
		return ChainAddress{}, false
	}
	address, err := vaa.ParseAddress(chain, string(b))
	return on(chain, address), err == nil
}

func parseUint256(s string) (Uint256, bool) {
	const longest = 78 // digits of 2^256
	if len(s) > longest {
		return Uint256{}, false
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok || n.Sign() < 0 || n.BitLen() > 256 {
		return Uint256{}, false
	}
	var u Uint256
	n.FillBytes(u[:])
	return u, true
}
