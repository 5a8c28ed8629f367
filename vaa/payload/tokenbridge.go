package payload

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
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
	// *[GatewayCall], *[SoSwap]; nil where neither the redeemer is known nor the payload tells by itself.
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

// SoSwap asks OmniSwap's diamond contract to pass tokens on, after swaps on the way ("omniswap:SoSwap"). Assets and contracts are in the
// native bytes of the redeemer's chain.
type SoSwap struct {
	MaxGasPrice    Uint256      `json:"maxGasPrice"` // that the relayer may pay on the redeemer's chain
	MaxGas         Uint256      `json:"maxGas"`
	TransactionID  Bytes        `json:"transactionId"` // OmniSwap's own
	Recipient      ChainAddress `json:"recipient"`
	ReceivingAsset Bytes        `json:"receivingAsset"`
	Swaps          []SoSwapStep `json:"swaps"` // never nil
}

// SoSwapStep is one swap.
type SoSwapStep struct {
	CallTo         Bytes `json:"callTo"`
	SendingAsset   Bytes `json:"sendingAsset"`
	ReceivingAsset Bytes `json:"receivingAsset"`
	CallData       Bytes `json:"callData"`
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
	case omniSwap:
		if swap := readSoSwap(to.Chain, payload); swap != nil {
			return &Nested{Kind: nestedOmniSwap, Fields: swap}
		}
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

// readSoSwap reads a payload of OmniSwap (layout: ethereum/contracts/Facets/WormholeFacet.sol of OmniBTC/OmniSwap), each field with its
// length in a byte, but call data in two; numbers are without leading zeros, and the number of swaps is left out if there are none.
// Nil if the layout does not fit.
func readSoSwap(chain vaa.ChainID, payload []byte) *SoSwap {
	r := &reader{rest: payload}
	swap := &SoSwap{
		MaxGasPrice: r.sizedUint(), MaxGas: r.sizedUint(), TransactionID: r.sized(), Recipient: on(chain, r.sizedAddress()),
		ReceivingAsset: r.sized(), Swaps: []SoSwapStep{},
	}
	if len(r.rest) > 0 {
		count := r.sizedUint().Int()
		if left := big.NewInt(int64(len(r.rest))); count.Cmp(left) > 0 { // a swap takes bytes
			return nil
		}
		for range count.Int64() {
			swap.Swaps = append(swap.Swaps, SoSwapStep{
				CallTo: r.sized(), SendingAsset: r.sized(), ReceivingAsset: r.sized(), CallData: r.data(uint32(r.u16())),
			})
		}
	}
	if !r.done() {
		return nil
	}
	return swap
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
