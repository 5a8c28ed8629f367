package payload

import (
	"strconv"
	"strings"

	"github.com/attestry/attestry/vaa"
)

// Properties are what payloads of many applications have in common, as Wormholescan's API has them. Addresses are written as their chain
// writes them, else as 64 hex digits; amounts are decimal. What a payload does not say is nil.
type Properties struct {
	AppIDs       []string     `json:"appIds"` // names that Wormholescan gives applications; never nil, and empty for "-shaped" payloads
	FromChain    *vaa.ChainID `json:"fromChain"`
	FromAddress  *string      `json:"fromAddress"`
	ToChain      *vaa.ChainID `json:"toChain"`
	ToAddress    *string      `json:"toAddress"`
	TokenChain   *vaa.ChainID `json:"tokenChain"`
	TokenAddress *string      `json:"tokenAddress"`
	Amount       *string      `json:"amount"`
	FeeAddress   *string      `json:"feeAddress"` // no payload says who keeps the fee
	FeeChain     *vaa.ChainID `json:"feeChain"`
	Fee          *string      `json:"fee"`
}

// PropertiesOf returns the properties of a payload that [Decode] decoded, from an emitter's chain. A transfer whose payload names a
// recipient to a contract that is known goes to that recipient; any other goes to the contract.
func PropertiesOf(emitterChain vaa.ChainID, kind string, decoded any) Properties {
	p := Properties{AppIDs: appIDsOf(kind), FromChain: &emitterChain}
	switch d := decoded.(type) {
	case *Transfer:
		p.to(d.To)
		p.token(d.Token, d.Amount)
		p.fee(d.To.Chain, d.Fee)
	case *TransferWithPayload:
		p.from(d.From)
		p.to(d.To)
		p.token(d.Token, d.Amount)
		if kind == KindTransferWithPayload {
			p.nested(d.Nested)
		}
	case *AttestMeta:
		p.TokenChain, p.TokenAddress = &d.Token.Chain, d.Token.written()
	case *NFTTransfer:
		p.to(d.To)
		p.TokenChain, p.TokenAddress = &d.Token.Chain, d.Token.written()
	case *DeliveryInstruction:
		p.from(d.Sender)
		p.to(d.Target)
		p.nested(d.Nested)
	case *RedeliveryInstruction:
		p.from(d.NewSender)
		p.ToChain = &d.TargetChain
	case *NTTMessage:
		p.ntt(d)
	case *CircleDeposit:
		p.from(d.Caller)
		p.token(d.Token, d.Amount)
		p.nested(d.Nested)
	case *FastMarketOrder:
		p.from(d.Sender)
		p.to(d.Redeemer)
	case *UTXOUnlock:
		p.ToChain = &d.DestinationChain
	case *XRPLRelease:
		amount := strconv.FormatUint(d.Amount, 10)
		p.to(d.Recipient)
		p.TokenChain, p.Amount = &d.Recipient.Chain, &amount
	case *XRPLTicketRefill:
		p.ToChain = &d.Account.Chain
	case *XRPLBurnTicket:
		p.ToChain = &d.Account.Chain
	}
	return p
}

// appIDsOf names the applications of a kind.
func appIDsOf(kind string) []string {
	application, _, _ := strings.Cut(kind, ":")
	switch application {
	case "token-bridge":
		return []string{"PORTAL_TOKEN_BRIDGE"}
	case "relayer":
		return []string{"GENERIC_RELAYER"}
	case "ntt":
		return []string{"NATIVE_TOKEN_TRANSFER"}
	case "cctp":
		return []string{"CCTP_WORMHOLE_INTEGRATION"}
	case "mayan":
		return []string{"MAYAN"}
	case "allbridge":
		return []string{"ALLBRIDGE"}
	case "tbtc":
		return []string{"tbtc"}
	}
	return []string{}
}

func (p *Properties) from(a ChainAddress) { p.FromChain, p.FromAddress = &a.Chain, a.written() }

func (p *Properties) to(a ChainAddress) { p.ToChain, p.ToAddress = &a.Chain, a.written() }

func (p *Properties) token(a ChainAddress, amount Uint256) {
	text := amount.String()
	p.TokenChain, p.TokenAddress, p.Amount = &a.Chain, a.written(), &text
}

func (p *Properties) fee(chain vaa.ChainID, fee Uint256) {
	text := fee.String()
	p.FeeChain, p.Fee = &chain, &text
}

// nested adds what a nested payload says. One that merely looks like its kind says nothing.
func (p *Properties) nested(n *Nested) {
	if n == nil || strings.Contains(n.Kind, "-shaped:") {
		return
	}
	p.AppIDs = append(p.AppIDs, appIDsOf(n.Kind)...)
	switch d := n.Fields.(type) {
	case *TokenRelay:
		p.to(d.Recipient)
		p.fee(d.Recipient.Chain, d.TargetRelayerFee)
	case *TokenRecipient:
		p.to(d.Recipient)
	case *SoSwap:
		p.to(d.Recipient)
	case *GatewayTransfer:
		fee := d.Fee.String()
		p.Fee = &fee
		p.to(d.Recipient)
	case *GatewayCall:
		p.to(d.Contract)
	case *NTTMessage:
		p.ntt(d)
	}
}

// ntt adds what a native token transfer says.
func (p *Properties) ntt(m *NTTMessage) {
	if m.ManagerMessage == nil {
		return
	}
	p.from(m.ManagerMessage.Sender)
	if m.ManagerMessage.Nested == nil {
		return
	}
	switch d := m.ManagerMessage.Nested.Fields.(type) {
	case *NativeTokenTransfer:
		p.to(d.To)
		p.nttToken(d.SourceToken, d.Amount)
	case *NTTGenericMessage:
		p.from(d.Sender)
		p.to(d.Callee)
		if d.Nested == nil {
			return
		}
		if transfer, ok := d.Nested.Fields.(*MultiTokenTransfer); ok {
			p.from(transfer.Sender)
			p.to(transfer.To)
			p.nttToken(transfer.Token, transfer.Amount)
		}
	}
}

func (p *Properties) nttToken(a ChainAddress, amount uint64) {
	text := strconv.FormatUint(amount, 10)
	p.TokenChain, p.TokenAddress, p.Amount = &a.Chain, a.written(), &text
}

// written returns the address as its chain writes it, else in hex.
func (a ChainAddress) written() *string {
	if a.Native != nil {
		return a.Native
	}
	text := a.Address.String()
	return &text
}
