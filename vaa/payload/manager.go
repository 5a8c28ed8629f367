package payload

import (
	"fmt"

	"github.com/attestry/attestry/vaa"
)

// ManagerSetUpdate names the next set of delegated managers of a chain without contracts (DelegatedManager 1).
type ManagerSetUpdate struct {
	ManagerChain vaa.ChainID `json:"managerChain"`
	NewIndex     uint32      `json:"newIndex"`
	Set          Bytes       `json:"set"`
	Multisig     *Multisig   `json:"multisig"` // what Set says if it is of type 1, else nil
}

// Multisig is a set of managers of whom any threshold many can sign.
type Multisig struct {
	Threshold uint8   `json:"threshold"`
	Keys      []Bytes `json:"keys"` // compressed secp256k1 keys, 33 bytes each
}

// UTXOUnlock asks the delegated managers to spend outputs on a chain of unspent transaction outputs.
type UTXOUnlock struct {
	DestinationChain vaa.ChainID  `json:"destinationChain"`
	ManagerSetIndex  uint32       `json:"managerSetIndex"`
	Inputs           []UTXOInput  `json:"inputs"`  // never nil
	Outputs          []UTXOOutput `json:"outputs"` // never nil
}

// UTXOInput is an output to spend.
type UTXOInput struct {
	OriginalRecipient vaa.Address `json:"originalRecipient"`
	TransactionID     Bytes       `json:"transactionId"` // 32 bytes, as explorers write them
	OutputIndex       uint32      `json:"outputIndex"`
}

// UTXOOutput is who gets what.
type UTXOOutput struct {
	Amount      uint64 `json:"amount,string"` // in the chain's smallest unit
	AddressType uint32 `json:"addressType"`   // 0 for a public key's hash, 1 for a script's
	Address     Bytes  `json:"address"`       // 20 bytes
}

// managerRequest returns the kind of a request to delegated managers by its magic bytes (whitepaper 0016 of
// wormhole-foundation/wormhole); empty if it is none.
func managerRequest(payload []byte) string {
	switch r := (&reader{rest: payload}); string(r.take(4)) {
	case "UTX0":
		return kindUTXOUnlock
	case "XREL":
		return kindXRPLRelease
	case "XRFL":
		return kindXRPLRefill
	case "XBRN":
		return kindXRPLBurn
	}
	return ""
}

func isManagerRequest(payload []byte) bool { return managerRequest(payload) != "" }

// decodeManagerRequest reads a request to delegated managers (layout: sdk/vaa/payloads.go of wormhole-foundation/wormhole). The kind is
// empty if it is none.
func decodeManagerRequest(payload []byte) (string, any, error) {
	kind := managerRequest(payload)
	switch kind {
	case "":
		return "", nil, nil
	case kindUTXOUnlock:
	default:
		return kind, nil, fmt.Errorf("%s: no layout is known", kind)
	}
	r := &reader{rest: payload[4:]}
	u := &UTXOUnlock{DestinationChain: r.chain(), ManagerSetIndex: r.u32(), Inputs: []UTXOInput{}, Outputs: []UTXOOutput{}}
	for count := r.u32(); count > 0 && !r.short; count-- {
		u.Inputs = append(u.Inputs, UTXOInput{OriginalRecipient: r.address(), TransactionID: r.bytes(32), OutputIndex: r.u32()})
	}
	for count := r.u32(); count > 0 && !r.short; count-- {
		output := UTXOOutput{Amount: r.u64(), AddressType: r.u32(), Address: r.bytes(20)}
		if output.AddressType > 1 {
			return kind, nil, fmt.Errorf("%s: address type %d is unknown, and so its length", kind, output.AddressType)
		}
		u.Outputs = append(u.Outputs, output)
	}
	if !r.done() {
		return kind, nil, fmt.Errorf("%s: %w", kind, errLayout)
	}
	return kind, u, nil
}

func readManagerSetUpdate(r *reader, _ vaa.ChainID) any {
	u := &ManagerSetUpdate{ManagerChain: r.chain(), NewIndex: r.u32(), Set: r.remaining()}
	set := &reader{rest: u.Set}
	setType := set.u8()
	multisig := &Multisig{Threshold: set.u8(), Keys: []Bytes{}}
	for range set.u8() {
		multisig.Keys = append(multisig.Keys, set.bytes(33))
	}
	if setType == 1 && set.done() {
		u.Multisig = multisig
	}
	return u
}
