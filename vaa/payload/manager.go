package payload

import (
	"fmt"

	"github.com/attestry/attestry/vaa"
)

// xrpl is the XRP ledger, where requests to managers that name no chain belong.
const xrpl = vaa.ChainID(66)

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

// XRPLRelease asks the delegated managers to pay from an account on the XRP ledger. Accounts are on that ledger.
type XRPLRelease struct {
	TicketID       uint64        `json:"ticketId,string"` // takes the place of the account's sequence number
	CustodyAccount ChainAddress  `json:"custodyAccount"`  // who pays
	Recipient      ChainAddress  `json:"recipient"`
	Amount         uint64        `json:"amount,string"` // in drops of XRP, else in units of 10^-tokenDecimals tokens
	TokenDecimals  uint8         `json:"tokenDecimals"`
	Source         vaa.MessageID `json:"source"` // the message that the payment answers
	Token          XRPLToken     `json:"token"`
	Memos          []XRPLMemo    `json:"memos"` // never nil
}

// XRPLToken names a token on the XRP ledger: XRP itself (type 0), a currency of an issuer (type 1), or a multi-purpose token (type 2).
// What a type does not have is nil.
type XRPLToken struct {
	Type          uint8         `json:"type"`
	Currency      *Bytes        `json:"currency"` // 20 bytes
	Issuer        *ChainAddress `json:"issuer"`
	MPTIssuanceID *Bytes        `json:"mptIssuanceId"` // 24 bytes
}

// XRPLMemo is a memo that the payment carries.
type XRPLMemo struct {
	Data   Bytes `json:"data"`
	Format Bytes `json:"format"`
	Type   Bytes `json:"type"`
}

// XRPLTicketRefill asks the delegated managers to create tickets for an account on the XRP ledger.
type XRPLTicketRefill struct {
	Account      ChainAddress `json:"account"`
	UseTicket    uint64       `json:"useTicket,string"`    // the ticket that this takes
	RequestCount uint64       `json:"requestCount,string"` // how many to create
}

// XRPLBurnTicket asks the delegated managers to use a ticket of an account on the XRP ledger up, for nothing.
type XRPLBurnTicket struct {
	Account  ChainAddress `json:"account"`
	TicketID uint64       `json:"ticketId,string"`
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

// decodeManagerRequest reads a request to delegated managers (layouts: sdk/vaa/payloads.go of wormhole-foundation/wormhole, whose
// readers refuse trailing bytes). The kind is empty if it is none.
func decodeManagerRequest(payload []byte) (string, any, error) {
	kind := managerRequest(payload)
	if kind == "" {
		return "", nil, nil
	}
	r := &reader{rest: payload[4:]}
	var decoded any
	var err error
	switch kind {
	case kindUTXOUnlock:
		decoded, err = readUTXOUnlock(r)
	case kindXRPLRelease:
		decoded, err = readXRPLRelease(r)
	case kindXRPLRefill:
		decoded = &XRPLTicketRefill{Account: on(xrpl, r.address20()), UseTicket: r.u64(), RequestCount: r.u64()}
	case kindXRPLBurn:
		decoded = &XRPLBurnTicket{Account: on(xrpl, r.address20()), TicketID: r.u64()}
	}
	if err == nil && !r.done() {
		err = errLayout
	}
	if err != nil {
		return kind, nil, fmt.Errorf("%s: %w", kind, err)
	}
	return kind, decoded, nil
}

func readUTXOUnlock(r *reader) (*UTXOUnlock, error) {
	u := &UTXOUnlock{DestinationChain: r.chain(), ManagerSetIndex: r.u32(), Inputs: []UTXOInput{}, Outputs: []UTXOOutput{}}
	for count := r.u32(); count > 0 && !r.short; count-- {
		u.Inputs = append(u.Inputs, UTXOInput{OriginalRecipient: r.address(), TransactionID: r.bytes(32), OutputIndex: r.u32()})
	}
	for count := r.u32(); count > 0 && !r.short; count-- {
		output := UTXOOutput{Amount: r.u64(), AddressType: r.u32(), Address: r.bytes(20)}
		if output.AddressType > 1 {
			return nil, fmt.Errorf("address type %d is unknown, and so its length", output.AddressType)
		}
		u.Outputs = append(u.Outputs, output)
	}
	return u, nil
}

func readXRPLRelease(r *reader) (*XRPLRelease, error) {
	x := &XRPLRelease{
		TicketID: r.u64(), CustodyAccount: on(xrpl, r.address20()), Recipient: on(xrpl, r.address20()),
		Amount: r.u64(), TokenDecimals: r.u8(),
		Source: vaa.MessageID{EmitterChain: r.chain(), EmitterAddress: r.address(), Sequence: r.u64()},
		Token:  XRPLToken{Type: r.u8()}, Memos: []XRPLMemo{},
	}
	switch x.Token.Type {
	case 0:
	case 1:
		currency, issuer := r.bytes(20), on(xrpl, r.address20())
		x.Token.Currency, x.Token.Issuer = &currency, &issuer
	case 2:
		id := r.bytes(24)
		x.Token.MPTIssuanceID = &id
	default:
		return nil, fmt.Errorf("token type %d is unknown, and so its length", x.Token.Type)
	}
	for count := r.u16(); count > 0 && !r.short; count-- {
		x.Memos = append(x.Memos, XRPLMemo{
			Data: r.data(uint32(r.u16())), Format: r.data(uint32(r.u16())), Type: r.data(uint32(r.u16())),
		})
	}
	return x, nil
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
