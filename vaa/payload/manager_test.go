package payload_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

var unlockJSON = `{"destinationChain":65,"managerSetIndex":1,"inputs":[{"originalRecipient":` + wide(11) + `,"transactionId":` + wide(22) +
	`,"outputIndex":4}],"outputs":[{"amount":"9223372036854775808","addressType":0,"address":"` + fmt.Sprintf("%040d", 0) +
	`"},{"amount":"50","addressType":1,"address":"` + fmt.Sprintf("%040d", 33) + `"}]}`

// genesis is the first account of the XRP ledger, whose address everybody knows.
var (
	genesis     = []byte{0xb5, 0xf7, 0x62, 0x79, 0x8a, 0x53, 0xd5, 0x43, 0xa0, 0x14, 0xca, 0xf8, 0xb2, 0x97, 0xcf, 0xf8, 0xf2, 0xf9, 0x37, 0xe8}
	genesisJSON = `{"chain":66,"address":"000000000000000000000000b5f762798a53d543a014caf8b297cff8f2f937e8","native":"rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh"}`
)

// releaseBytes pays 250 from the genesis account to 0x22, with a token and what follows it.
func releaseBytes(token []byte, tail ...[]byte) []byte {
	return join([]byte("XREL"), u64(42), genesis, word(0x22)[12:], u64(1<<63), []byte{6}, u16(1), word(0x33), u64(100), token, join(tail...))
}

func releaseJSON(token, memos string) string {
	return `{"ticketId":"42","custodyAccount":` + genesisJSON + `,"recipient":` + onChain(66, 22) + `,"amount":"9223372036854775808","tokenDecimals":6,` +
		`"source":"1/` + fmt.Sprintf("%064d", 33) + `/100","token":` + token + `,"memos":` + memos + `}`
}

func refillBytes() []byte { return join([]byte("XRFL"), genesis, u64(42), u64(1<<63)) }
func burnBytes() []byte   { return join([]byte("XBRN"), genesis, u64(1<<63)) }

func managerLayouts() []layout {
	currency := join(make([]byte, 12), []byte("USD"), make([]byte, 5))
	memos := join(u16(2), sized([]byte("hello")), sized(nil), sized([]byte{1}), sized(nil), sized([]byte{2, 3}), sized(nil))
	xrp := releaseJSON(`{"type":0,"currency":null,"issuer":null,"mptIssuanceId":null}`, `[]`)
	refill := `{"account":` + genesisJSON + `,"useTicket":"42","requestCount":"9223372036854775808"}`
	burn := `{"account":` + genesisJSON + `,"ticketId":"9223372036854775808"}`
	return []layout{
		{"unlock", vaa.Testnet, 1, managerHex, unlockBytes(), "manager:UTXOUnlock", unlockJSON, 0},
		{"unlock by a stranger", vaa.Mainnet, 2, strangerHex, unlockBytes(), "manager-shaped:UTXOUnlock", unlockJSON, 0},
		{"release of XRP", vaa.Testnet, 1, managerHex, releaseBytes([]byte{0}, u16(0)), "manager:XRPLRelease", xrp, 0},
		{"release by a stranger", vaa.Mainnet, 1, strangerHex, releaseBytes([]byte{0}, u16(0)), "manager-shaped:XRPLRelease", xrp, 0},
		{
			"release of a currency", vaa.Testnet, 1, managerHex, releaseBytes(join([]byte{1}, currency, word(0x44)[12:]), memos), "manager:XRPLRelease",
			releaseJSON(`{"type":1,"currency":"0000000000000000000000005553440000000000","issuer":`+onChain(66, 44)+`,"mptIssuanceId":null}`,
				`[{"data":"68656c6c6f","format":"","type":"01"},{"data":"","format":"0203","type":""}]`), 0,
		},
		{
			"release of a multi-purpose token", vaa.Testnet, 1, managerHex, releaseBytes(join([]byte{2}, word(0x55)[8:]), u16(0)), "manager:XRPLRelease",
			releaseJSON(`{"type":2,"currency":null,"issuer":null,"mptIssuanceId":"`+fmt.Sprintf("%048d", 55)+`"}`, `[]`), 0,
		},
		{"refill", vaa.Testnet, 1, managerHex, refillBytes(), "manager:XRPLTicketRefill", refill, 0},
		{"refill by a stranger", vaa.Mainnet, 1, strangerHex, refillBytes(), "manager-shaped:XRPLTicketRefill", refill, 0},
		{"burn", vaa.Testnet, 1, managerHex, burnBytes(), "manager:XRPLBurnTicket", burn, 0},
		{"burn by a stranger", vaa.Mainnet, 1, strangerHex, burnBytes(), "manager-shaped:XRPLBurnTicket", burn, 0},
	}
}

// TestReleaseRecipient: a release by a manager pays its recipient, one by a stranger nobody, and requests about tickets neither.
func TestReleaseRecipient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		emitter string
		payload []byte
		pays    bool
	}{
		{managerHex, releaseBytes([]byte{0}, u16(0)), true},
		{strangerHex, releaseBytes([]byte{0}, u16(0)), false},
		{managerHex, refillBytes(), false},
		{managerHex, burnBytes(), false},
		{managerHex, unlockBytes(), false},
	} {
		l := layout{network: vaa.Testnet, chain: 1, emitter: c.emitter}
		kind, decoded, err := l.decode(t, c.payload)
		to, chain, ok := payload.Recipient(kind, decoded)
		if err != nil || ok != c.pays || (ok && (to != vaa.Address(word(0x22)) || chain != 66)) {
			t.Errorf("%s: %s on %s, %t (%v), want %t", kind, to, chain, ok, err, c.pays)
		}
	}
}

// TestRandomReleases lays out random releases and reads every field back.
func TestRandomReleases(t *testing.T) {
	t.Parallel()
	manager := address(t, managerHex)
	rapid.Check(t, func(t *rapid.T) {
		account := func(label string) ([]byte, payload.ChainAddress) {
			b := drawBytes(t, 20, label)
			return b, on(66, join(make([]byte, 12), b))
		}
		from, custody := account("custody")
		to, recipient := account("recipient")
		want := &payload.XRPLRelease{
			TicketID: rapid.Uint64().Draw(t, "ticket"), CustodyAccount: custody, Recipient: recipient,
			Amount: rapid.Uint64().Draw(t, "amount"), TokenDecimals: rapid.Byte().Draw(t, "decimals"),
			Source: vaa.MessageID{
				EmitterChain: vaa.ChainID(rapid.Uint16().Draw(t, "chain")), EmitterAddress: vaa.Address(drawBytes(t, 32, "emitter")),
				Sequence: rapid.Uint64().Draw(t, "sequence"),
			},
			Token: payload.XRPLToken{Type: rapid.ByteRange(0, 2).Draw(t, "type")}, Memos: []payload.XRPLMemo{},
		}
		token := []byte{want.Token.Type}
		switch want.Token.Type {
		case 1:
			currency := payload.Bytes(drawBytes(t, 20, "currency"))
			id, issuer := account("issuer")
			want.Token.Currency, want.Token.Issuer = &currency, &issuer
			token = join(token, currency, id)
		case 2:
			id := payload.Bytes(drawBytes(t, 24, "issuance"))
			want.Token.MPTIssuanceID = &id
			token = join(token, id)
		}
		var memos []byte
		for range rapid.IntRange(0, 4).Draw(t, "memos") {
			memo := payload.XRPLMemo{Data: drawData(t, "data"), Format: drawData(t, "format"), Type: drawData(t, "type")}
			want.Memos = append(want.Memos, memo)
			memos = join(memos, sized(memo.Data), sized(memo.Format), sized(memo.Type))
		}
		bytes := join([]byte("XREL"), u64(want.TicketID), from, to, u64(want.Amount), []byte{want.TokenDecimals}, u16(uint16(want.Source.EmitterChain)),
			want.Source.EmitterAddress[:], u64(want.Source.Sequence), token, u16(uint16(len(want.Memos))), memos)
		got := decodeAs[*payload.XRPLRelease](t, vaa.Testnet, &vaa.Body{EmitterChain: 1, EmitterAddress: manager, Payload: bytes})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
