package native

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// writePage answers a page. Its form, and that of an attestation, is encoding/json's,
// which takes longer: BenchmarkJSON.
func (a api) writePage(w http.ResponseWriter, r *http.Request, p *query.Page) error {
	return a.encode(w, r, func(e *encoder) {
		second := a.encoders.Get().(*encoder)
		defer a.keep(second)
		e.raw(`{"items":[`)
		query.Halves(len(p.Items), func(from, to int) {
			e := e
			if from > 0 {
				e = second
			}
			e.b = slices.Grow(e.b, 6144*(to-from))
			for i := from; i < to; i++ {
				if i > 0 {
					e.raw(",")
				}
				e.attestation(&p.Items[i])
			}
		})
		e.b, e.err = append(e.b, second.b...), cmp.Or(e.err, second.err)
		e.raw(`],"pagination":`)
		e.any(p.Pagination)
		e.raw("}\n")
	})
}

func (a api) writeAttestation(w http.ResponseWriter, r *http.Request, at *query.Attestation) error {
	return a.encode(w, r, func(e *encoder) {
		e.attestation(at)
		e.raw("\n")
	})
}

// encoder appends JSON. Its first error stays.
type encoder struct {
	b   []byte
	err error
}

// maxKept is how much memory an encoder may have to be used again.
const maxKept = 8 << 20

// encode answers what f writes.
func (a api) encode(w http.ResponseWriter, r *http.Request, f func(*encoder)) error {
	e := a.encoders.Get().(*encoder)
	defer a.keep(e)
	f(e)
	if e.err != nil {
		return fmt.Errorf("encode answer: %w", e.err)
	}
	web.WriteBytes(w, r, "application/json", e.b)
	return nil
}

// keep keeps an encoder for its next use, empty.
func (a api) keep(e *encoder) {
	if cap(e.b) <= maxKept {
		e.b, e.err = e.b[:0], nil
		a.encoders.Put(e)
	}
}

func (e *encoder) attestation(a *query.Attestation) {
	e.raw(`{"id":`).str(a.ID).raw(`,"rowKey":`).str(a.RowKey).raw(`,"network":`).str(a.Network)
	e.raw(`,"emitterChain":`).uint(uint64(a.EmitterChain)).raw(`,"emitterChainName":`)
	nullable(e, a.EmitterChainName, e.str)
	e.raw(`,"emitterAddress":`).hex(a.EmitterAddress[:]).raw(`,"emitterNative":`)
	nullable(e, a.EmitterNative, e.str)
	e.raw(`,"sequence":"`).uint(a.Sequence).raw(`","state":`)
	nullable(e, a.State, e.str)
	e.raw(`,"lifecycle":`)
	list(e, a.Lifecycle, e.step)
	e.raw(`,"digest":`)
	nullable(e, a.Digest, e.digest)
	e.raw(`,"digestSingle":`)
	nullable(e, a.DigestSingle, e.digest)
	e.publication(a)
	e.raw(`,"payloadKind":`)
	nullable(e, a.PayloadKind, e.str)
	e.raw(`,"decoded":`).decoded(a.Decoded).raw(`,"decodeError":`)
	nullable(e, a.DecodeError, e.str)
	e.raw(`,"guardianSetExpiresAt":`)
	nullable(e, a.GuardianSetExpiresAt, e.time)
	e.raw(`,"signedVaa":`).bytes(a.SignedVAA).raw(`,"versions":`)
	list(e, a.Versions, e.version)
	e.raw(`,"links":`)
	list(e, a.Links, func(l query.Link) *encoder {
		return e.raw(`{"digest":`).digest(l.Digest).raw(`,"txId":`).str(l.TxID).raw(`,"trust":`).any(l.Trust).raw(`,"source":`).str(l.Source).raw("}")
	})
	e.raw(`,"conflicts":`)
	list(e, a.Conflicts, e.digest)
	e.raw(`,"vanished":`)
	list(e, a.Vanished, e.digest)
	e.raw(`,"evidence":`)
	list(e, a.Evidence, func(v query.Evidence) *encoder {
		e.raw(`{"guardianSetIndex":`).uint(uint64(v.GuardianSetIndex)).raw(`,"digest":`).digest(v.Digest)
		return e.raw(`,"guardian":`).guardian(v.Guardian).raw(`,"signature":`).bytes(v.Signature).raw("}")
	})
	e.raw(`,"repair":`)
	nullable(e, a.Repair, func(r query.Repair) *encoder {
		return e.raw(`{"guardianSetIndex":`).uint(uint64(r.GuardianSetIndex)).raw(`,"signatures":`).int(r.Signatures).
			raw(`,"quorum":`).int(r.Quorum).raw(`,"repairable":`).bool(r.Repairable).raw("}")
	})
	e.raw(`,"matches":`)
	list(e, a.Matches, func(m query.Match) *encoder {
		return e.raw(`{"digest":`).digest(m.Digest).raw(`,"standing":`).str(m.Standing).raw("}")
	})
	e.raw("}")
}

func (e *encoder) publication(a *query.Attestation) {
	e.raw(`,"version":`)
	number(e, a.Version)
	e.raw(`,"guardianSetIndex":`)
	number(e, a.GuardianSetIndex)
	e.raw(`,"timestamp":`)
	nullable(e, a.Timestamp, e.time)
	e.raw(`,"nonce":`)
	number(e, a.Nonce)
	e.raw(`,"consistencyLevel":`)
	number(e, a.ConsistencyLevel)
	e.raw(`,"initiatingTxId":`)
	nullable(e, a.InitiatingTxID, e.str)
	e.raw(`,"payload":`).bytes(a.Payload).raw(`,"recordedAt":`)
	nullable(e, a.RecordedAt, e.time)
}

func (e *encoder) step(s query.Step) *encoder {
	e.raw(`{"state":`).str(s.State).raw(`,"digest":`).digest(s.Digest).raw(`,"guardianSetIndex":`)
	number(e, s.GuardianSetIndex)
	e.raw(`,"at":`)
	nullable(e, s.At, e.time)
	return e.raw("}")
}

func (e *encoder) version(v query.Version) *encoder {
	e.raw(`{"digest":`).digest(v.Digest).raw(`,"guardianSetIndex":`).uint(uint64(v.GuardianSetIndex)).raw(`,"guardianSetExpiresAt":`)
	nullable(e, v.GuardianSetExpiresAt, e.time)
	e.raw(`,"canonical":`).bool(v.Canonical).raw(`,"wasCanonical":`).bool(v.WasCanonical).raw(`,"recordedAt":`)
	nullable(e, v.RecordedAt, e.time)
	e.raw(`,"signatures":`)
	nullable(e, v.Signatures, e.int)
	e.raw(`,"guardians":`)
	list(e, v.Guardians, e.guardian)
	return e.raw(`,"vaa":`).bytes(v.VAA).raw("}")
}

func (e *encoder) guardian(g query.Guardian) *encoder {
	e.raw(`{"index":`).uint(uint64(g.Index)).raw(`,"address":`)
	nullable(e, g.Address, e.str)
	e.raw(`,"name":`)
	nullable(e, g.Name, e.str)
	return e.raw("}")
}

// decoded writes the fields of a payload: those of transfers, which most are, without
// encoding/json.
func (e *encoder) decoded(v any) *encoder {
	switch d := v.(type) {
	case *payload.Transfer:
		e.raw(`{"amount":`).uint256(d.Amount).raw(`,"token":`).on(d.Token).raw(`,"to":`).on(d.To)
		return e.raw(`,"fee":`).uint256(d.Fee).raw("}")
	case *payload.TransferWithPayload:
		e.raw(`{"amount":`).uint256(d.Amount).raw(`,"token":`).on(d.Token).raw(`,"to":`).on(d.To).raw(`,"from":`).on(d.From)
		return e.raw(`,"payload":`).any(d.Payload).raw(`,"nested":`).any(d.Nested).raw("}")
	}
	return e.any(v)
}

func (e *encoder) on(a payload.ChainAddress) *encoder {
	e.raw(`{"chain":`).uint(uint64(a.Chain)).raw(`,"address":`).hex(a.Address[:]).raw(`,"native":`)
	nullable(e, a.Native, e.str)
	return e.raw("}")
}

func (e *encoder) uint256(n payload.Uint256) *encoder {
	e.b = append(n.Int().Append(append(e.b, '"'), 10), '"')
	return e
}

func (e *encoder) raw(s string) *encoder {
	e.b = append(e.b, s...)
	return e
}

func (e *encoder) any(v any) *encoder {
	text, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.b = append(e.b, text...)
	return e
}

// str writes text; what has to be escaped is rare.
func (e *encoder) str(s string) *encoder {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return e.any(s)
		}
	}
	e.b = append(append(append(e.b, '"'), s...), '"')
	return e
}

func (e *encoder) hex(b []byte) *encoder {
	e.b = append(hex.AppendEncode(append(e.b, '"'), b), '"')
	return e
}

func (e *encoder) bytes(b []byte) *encoder {
	if b == nil {
		return e.raw("null")
	}
	e.b = append(base64.StdEncoding.AppendEncode(append(e.b, '"'), b), '"')
	return e
}

func (e *encoder) digest(d vaa.Digest) *encoder { return e.hex(d[:]) }

func (e *encoder) time(t time.Time) *encoder {
	e.b = append(t.AppendFormat(append(e.b, '"'), time.RFC3339Nano), '"')
	return e
}

func (e *encoder) uint(n uint64) *encoder {
	e.b = strconv.AppendUint(e.b, n, 10)
	return e
}

func (e *encoder) int(n int) *encoder {
	e.b = strconv.AppendInt(e.b, int64(n), 10)
	return e
}

func (e *encoder) bool(b bool) *encoder {
	e.b = strconv.AppendBool(e.b, b)
	return e
}

// nullable writes what p points at by write, or null.
func nullable[T any](e *encoder, p *T, write func(T) *encoder) {
	if p == nil {
		e.raw("null")
		return
	}
	write(*p)
}

func number[T ~uint8 | ~uint32](e *encoder, p *T) {
	if p == nil {
		e.raw("null")
		return
	}
	e.uint(uint64(*p))
}

// list writes an array by write for each of its items; nil is null.
func list[T any](e *encoder, items []T, write func(T) *encoder) {
	if items == nil {
		e.raw("null")
		return
	}
	e.raw("[")
	for i := range items {
		if i > 0 {
			e.raw(",")
		}
		write(items[i])
	}
	e.raw("]")
}
