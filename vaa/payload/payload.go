// Package payload says what the payload of a VAA means. What a payload is follows from who sent it, (network, chain, emitter), and
// never from its first byte alone: the same bytes are a token transfer from a token bridge and anything at all from anyone else.
//
// Decoders never panic, keep no reference to the bytes that they are given, and are safe for concurrent use.
package payload

import (
	"errors"
	"fmt"

	"github.com/attestry/attestry/vaa"
)

// KindGeneric is the kind of a payload of which nothing is known.
const KindGeneric = "generic"

// Kinds of token bridge payloads. Kinds of governance are "governance:<module>:<action>"; the other kinds are named in kinds.go.
const (
	KindTransfer            = "token-bridge:Transfer"
	KindAttestMeta          = "token-bridge:AttestMeta"
	KindTransferWithPayload = "token-bridge:TransferWithPayload"
)

// errLayout is the reason of a payload that is not laid out as its kind is.
var errLayout = errors.New("bytes are missing or left over")

// Decode tells what kind of payload a body has and what it says.
//
// The kind is never empty. Decoded is one of *[Transfer], *[AttestMeta], *[TransferWithPayload] and *[Governance], or nil for a
// kind that has no decoder. An error says why a payload is not what its emitter's payloads should be; the kind is then what can
// still be told, [KindGeneric] at worst, and decoded holds what could be read before that, or nil.
//
// A payload of an emitter that is not known gets the kind of its layout with the mark "-shaped", as
// "token-bridge-shaped:Transfer": it looks like one, and nobody vouches for it. Two sorts of payload are told by their own magic
// bytes together with their full layout: messages of native token transfers, whose emitters are many (one for each
// token), and, on the development network only, those of Pyth, Circle and governance, whose emitters there are arbitrary.
func Decode(network vaa.Network, body *vaa.Body) (kind string, decoded any, err error) {
	switch sender := contractOf(network, body); sender {
	case governance:
		kind, decoded, err = decodeGovernance(body.Payload)
	case tokenBridge:
		kind, decoded, err = decodeTokenBridge(body)
	case nftBridge, relayer, circleIntegration, pyth:
		kind, err = kindOf(sender, body.Payload)
	}
	if err != nil {
		err = fmt.Errorf("payload of %d bytes from %s: %w", len(body.Payload), body.MessageID(), err)
	}
	if kind != "" {
		return kind, decoded, err
	}
	if kind, decoded = decodeUnknown(network, body); kind != "" {
		return kind, decoded, err
	}
	return KindGeneric, nil, err
}

// Recipient returns who a transfer pays: the address and its chain. It is false for all but transfers of a known token bridge
// (a "-shaped" transfer pays nobody). A [TransferWithPayload] pays the contract that redeems it.
func Recipient(kind string, decoded any) (vaa.Address, vaa.ChainID, bool) {
	switch d := decoded.(type) {
	case *Transfer:
		return d.To.Address, d.To.Chain, kind == KindTransfer
	case *TransferWithPayload:
		return d.To.Address, d.To.Chain, kind == KindTransferWithPayload
	}
	return vaa.Address{}, 0, false
}
