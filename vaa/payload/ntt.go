package payload

import "github.com/attestry/attestry/vaa"

// NTTMessage is what one transceiver of a native token transfer sends to another.
type NTTMessage struct {
	SourceManager    ChainAddress `json:"sourceNttManager"` // on the emitter's chain
	RecipientManager vaa.Address  `json:"recipientNttManager"`
	// ManagerMessage is for the recipient manager; nil if ManagerPayload is not laid out as one.
	ManagerPayload     Bytes              `json:"nttManagerPayload"`
	ManagerMessage     *NTTManagerMessage `json:"nttManagerMessage"`
	TransceiverPayload Bytes              `json:"transceiverPayload"`
}

// NTTManagerMessage is what one manager sends to another.
type NTTManagerMessage struct {
	ID      Bytes        `json:"id"`     // 32 bytes
	Sender  ChainAddress `json:"sender"` // on the emitter's chain
	Payload Bytes        `json:"payload"`
	Nested  *Nested      `json:"nested"` // the payload's meaning, with *[NativeTokenTransfer] or *[NTTGenericMessage]; nil if not known
}

// NativeTokenTransfer moves a token without wrapping it ("ntt:NativeTokenTransfer").
type NativeTokenTransfer struct {
	Decimals          uint8        `json:"decimals"`      // of the amount
	Amount            uint64       `json:"amount,string"` // in units of 10^-decimals tokens
	SourceToken       ChainAddress `json:"sourceToken"`   // on the emitter's chain
	To                ChainAddress `json:"to"`
	AdditionalPayload *Bytes       `json:"additionalPayload"` // nil if there is none
}

// NTTGenericMessage calls a contract on another chain ("ntt:GenericMessage").
type NTTGenericMessage struct {
	Callee ChainAddress `json:"callee"`
	Sender ChainAddress `json:"sender"` // on the emitter's chain
	Data   Bytes        `json:"data"`
	Nested *Nested      `json:"nested"` // the data's meaning, with *[MultiTokenTransfer]; nil if it is not known
}

// MultiTokenTransfer moves one of many tokens ("ntt:MultiTokenTransfer").
type MultiTokenTransfer struct {
	Decimals          uint8        `json:"decimals"`      // of the amount
	Amount            uint64       `json:"amount,string"` // in units of 10^-decimals tokens
	Token             ChainAddress `json:"token"`         // where it is at home
	Name              *string      `json:"name"`          // nil if empty, as Symbol
	Symbol            *string      `json:"symbol"`
	TokenDecimals     uint8        `json:"tokenDecimals"`
	Sender            ChainAddress `json:"sender"` // on the emitter's chain
	To                ChainAddress `json:"to"`
	AdditionalPayload *Bytes       `json:"additionalPayload"` // nil if there is none
}

// NTTInfo announces a transceiver: which manager and token it serves, on the emitter's chain.
type NTTInfo struct {
	Manager  ChainAddress `json:"manager"`
	Mode     uint8        `json:"mode"`
	Token    ChainAddress `json:"token"`
	Decimals uint8        `json:"decimals"`
}

// NTTRegistration makes a transceiver on another chain known.
type NTTRegistration struct {
	Transceiver ChainAddress `json:"transceiver"`
}

// decodeNTT reads a message of a Wormhole transceiver by its magic bytes and full layout; empty if it is none (layouts:
// sdk/definitions of wormhole-foundation/native-token-transfers).
func decodeNTT(body *vaa.Body) (string, any) {
	r := &reader{rest: body.Payload}
	var kind string
	var decoded any
	switch r.u32() {
	case 0x9945ff10:
		kind, decoded = kindNTTMessage, readNTTMessage(r, body.EmitterChain)
	case 0x9c23bd3b:
		kind, decoded = kindNTTInfo, &NTTInfo{
			Manager: on(body.EmitterChain, r.address()), Mode: r.u8(), Token: on(body.EmitterChain, r.address()), Decimals: r.u8(),
		}
	case 0x18fc67c2:
		kind, decoded = kindNTTRegistration, &NTTRegistration{Transceiver: r.chainAddress()}
	}
	if kind == "" || !r.done() {
		return "", nil
	}
	return kind, decoded
}

func readNTTMessage(r *reader, emitterChain vaa.ChainID) *NTTMessage {
	m := &NTTMessage{
		SourceManager: on(emitterChain, r.address()), RecipientManager: r.address(),
		ManagerPayload: r.data(uint32(r.u16())), TransceiverPayload: r.data(uint32(r.u16())),
	}
	inner := &reader{rest: m.ManagerPayload}
	message := &NTTManagerMessage{ID: inner.bytes(32), Sender: on(emitterChain, inner.address()), Payload: inner.data(uint32(inner.u16()))}
	if !inner.done() {
		return m
	}
	m.ManagerMessage = message
	if transfer := readNativeTokenTransfer(emitterChain, message.Payload); transfer != nil {
		message.Nested = &Nested{Kind: nestedNTTTransfer, Fields: transfer}
	} else if generic := readGenericMessage(emitterChain, message.Payload); generic != nil {
		message.Nested = &Nested{Kind: nestedNTTGeneric, Fields: generic}
	}
	return m
}

func readNativeTokenTransfer(emitterChain vaa.ChainID, payload []byte) *NativeTokenTransfer {
	r := &reader{rest: payload}
	magic := r.u32()
	t := &NativeTokenTransfer{Decimals: r.u8(), Amount: r.u64(), SourceToken: on(emitterChain, r.address()), To: r.addressChain()}
	t.AdditionalPayload = readAdditional(r)
	if magic != 0x994e5454 || !r.done() {
		return nil
	}
	return t
}

func readGenericMessage(emitterChain vaa.ChainID, payload []byte) *NTTGenericMessage {
	r := &reader{rest: payload}
	magic := r.u32()
	m := &NTTGenericMessage{Callee: r.chainAddress(), Sender: on(emitterChain, r.address()), Data: r.data(uint32(r.u16()))}
	if magic != 0x99474d50 || !r.done() {
		return nil
	}
	if transfer := readMultiTokenTransfer(emitterChain, m.Callee.Chain, m.Data); transfer != nil {
		m.Nested = &Nested{Kind: nestedNTTMultiToken, Fields: transfer}
	}
	return m
}

func readMultiTokenTransfer(emitterChain, toChain vaa.ChainID, payload []byte) *MultiTokenTransfer {
	r := &reader{rest: payload}
	magic := r.u32()
	t := &MultiTokenTransfer{
		Decimals: r.u8(), Amount: r.u64(), Name: text(r.take(32)), Symbol: text(r.take(32)), TokenDecimals: r.u8(),
		Token: r.chainAddress(), Sender: on(emitterChain, r.address()), To: on(toChain, r.address()),
	}
	t.AdditionalPayload = readAdditional(r)
	if magic != 0x994d5454 || !r.done() {
		return nil
	}
	return t
}

// readAdditional reads the payload with its length that may follow a transfer; nil if nothing follows.
func readAdditional(r *reader) *Bytes {
	if len(r.rest) == 0 {
		return nil
	}
	data := r.data(uint32(r.u16()))
	return &data
}
