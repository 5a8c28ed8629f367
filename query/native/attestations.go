package native

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/vaa"
)

func messageByParts(r *http.Request) (vaa.MessageID, error) {
	var id vaa.MessageID
	var err error
	if id.EmitterChain, err = vaa.ParseChainID(r.PathValue("chain")); err != nil {
		return id, query.Invalid("chain", "%w", err)
	}
	if id.EmitterAddress, err = vaa.ParseAddress(id.EmitterChain, r.PathValue("emitter")); err != nil {
		return id, query.Invalid("emitter", "%w", err)
	}
	if id.Sequence, err = vaa.ParseSequence(r.PathValue("sequence")); err != nil {
		return id, query.Invalid("sequence", "%w", err)
	}
	return id, nil
}

func messageByID(r *http.Request) (vaa.MessageID, error) {
	id, err := vaa.ParseMessageID(r.PathValue("id"))
	if err != nil {
		return id, query.Invalid("id", "%w", err)
	}
	return id, nil
}

func (a api) attestationByParts(w http.ResponseWriter, r *http.Request, p params) error {
	id, err := messageByParts(r)
	if err != nil {
		return err
	}
	return a.attestation(w, r, p, id)
}

func (a api) attestationByID(w http.ResponseWriter, r *http.Request, p params) error {
	id, err := messageByID(r)
	if err != nil {
		return err
	}
	return a.attestation(w, r, p, id)
}

// attestation answers about one message by one read of its row.
func (a api) attestation(w http.ResponseWriter, r *http.Request, p params, id vaa.MessageID) error {
	format, err := p.format(r, formatJSON)
	if err != nil {
		return err
	}
	columns, err := p.columns()
	if err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	if format != formatJSON {
		raw, err := a.service.SignedVAA(r.Context(), id)
		if err != nil {
			return err
		}
		return writeVAA(w, r, format, raw)
	}
	attestation, err := a.service.Get(r.Context(), id, columns)
	if err != nil {
		return err
	}
	return a.writeAttestation(w, r, attestation)
}

func (a api) repairedByParts(w http.ResponseWriter, r *http.Request, p params) error {
	id, err := messageByParts(r)
	if err != nil {
		return err
	}
	return a.repaired(w, r, p, id)
}

func (a api) repairedByID(w http.ResponseWriter, r *http.Request, p params) error {
	id, err := messageByID(r)
	if err != nil {
		return err
	}
	return a.repaired(w, r, p, id)
}

// repaired answers the bytes of a VAA for the current guardian set; as JSON, what they
// say.
func (a api) repaired(w http.ResponseWriter, r *http.Request, p params, id vaa.MessageID) error {
	format, err := p.format(r, formatRaw)
	if err != nil {
		return err
	}
	raw, err := a.service.Repaired(r.Context(), id)
	if err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	if format != formatJSON {
		return writeVAA(w, r, format, raw)
	}
	return a.writeParsed(w, r, raw)
}

// oneVAA answers the VAA of a guardian set and a digest, of which there is one for
// ever: it is kept by whoever gets it.
func (a api) oneVAA(w http.ResponseWriter, r *http.Request, p params) error {
	id, err := messageByParts(r)
	if err != nil {
		return err
	}
	set, err := strconv.ParseUint(r.PathValue("guardianSet"), 10, 32)
	if err != nil {
		return query.Invalid("guardianSet", "guardianSet %q is no index of a guardian set", clip(r.PathValue("guardianSet")))
	}
	digest, err := vaa.ParseDigest(r.PathValue("digest"))
	if err != nil {
		return query.Invalid("digest", "%w", err)
	}
	format, err := p.format(r, formatRaw)
	if err != nil {
		return err
	}
	raw, err := a.service.VAA(r.Context(), id, uint32(set), digest)
	if err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	if format == formatJSON { // the set's expiry may become known later
		return a.writeParsed(w, r, raw)
	}
	w.Header().Set("Cache-Control", web.Immutable)
	return writeVAA(w, r, format, raw)
}

// writeParsed answers what a VAA says, with its bytes.
func (a api) writeParsed(w http.ResponseWriter, r *http.Request, raw []byte) error {
	parsed, err := a.service.Verify(raw)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, r, struct {
		*query.ParsedVAA
		VAA []byte `json:"vaa"`
	}{parsed, raw})
}

func writeVAA(w http.ResponseWriter, r *http.Request, format string, raw []byte) error {
	switch format {
	case formatHex:
		web.WriteBytes(w, r, "text/plain; charset=utf-8", hex.AppendEncode(nil, raw))
	case formatBase64:
		web.WriteBytes(w, r, "text/plain; charset=utf-8", base64.StdEncoding.AppendEncode(nil, raw))
	default:
		web.WriteBytes(w, r, octets, raw)
	}
	return nil
}

// listAttestations answers a page of the messages of a range, in the order of their
// row keys or, for a range of times and no emitter, of their VAA times.
func (a api) listAttestations(w http.ResponseWriter, r *http.Request, p params) error {
	selected, err := p.selection()
	if err != nil {
		return err
	}
	columns, err := p.columns()
	if err != nil {
		return err
	}
	paging, err := p.paging(query.MaxLimit)
	if err != nil {
		return err
	}
	page, err := a.service.Scan(r.Context(), selected, columns, paging)
	return a.write(w, r, page, err)
}

func (a api) recent(w http.ResponseWriter, r *http.Request, p params) error {
	chain, err := p.chain()
	if err != nil {
		return err
	}
	columns, err := p.columns()
	if err != nil {
		return err
	}
	paging, err := p.paging(query.MaxRecent)
	if err != nil {
		return err
	}
	if p.has(pOffset) {
		if paging.Offset, err = strconv.Atoi(p.get(pOffset)); err != nil || paging.Offset < 0 {
			return query.Invalid("offset", "offset %q is not a number from 0 to %d", clip(p.get(pOffset)), query.MaxOffset)
		}
		if p.has(pCursor) {
			return query.Invalid("offset", "offset does not go with cursor: leave one of them out")
		}
	}
	page, err := a.service.Recent(r.Context(), chain, columns, paging)
	return a.write(w, r, page, err)
}

func (a api) byTx(w http.ResponseWriter, r *http.Request, p params) error {
	return a.listing(w, r, p, func(chain *vaa.ChainID, paging query.Paging) (any, error) {
		return a.service.ByTx(r.Context(), r.PathValue("txid"), chain, paging)
	})
}

func (a api) byDigest(w http.ResponseWriter, r *http.Request, p params) error {
	digest, err := vaa.ParseDigest(r.PathValue("digest"))
	if err != nil {
		return query.Invalid("digest", "%w", err)
	}
	return a.listing(w, r, p, func(_ *vaa.ChainID, paging query.Paging) (any, error) {
		return a.service.ByDigest(r.Context(), digest, paging)
	})
}

func (a api) byRecipient(w http.ResponseWriter, r *http.Request, p params) error {
	descending, err := p.descending(true)
	if err != nil {
		return err
	}
	return a.listing(w, r, p, func(chain *vaa.ChainID, paging query.Paging) (any, error) {
		to, err := query.ParseRecipient(chain, r.PathValue("address"))
		if err != nil {
			return nil, err
		}
		return a.service.ByRecipient(r.Context(), to, chain, !descending, paging)
	})
}

func (a api) conflicts(w http.ResponseWriter, r *http.Request, p params) error {
	return a.listing(w, r, p, func(chain *vaa.ChainID, paging query.Paging) (any, error) {
		return a.service.Conflicts(r.Context(), chain, paging)
	})
}

// listing answers what takes a chain and the parameters of a page.
func (a api) listing(w http.ResponseWriter, r *http.Request, p params, list func(*vaa.ChainID, query.Paging) (any, error)) error {
	chain, err := p.chain()
	if err != nil {
		return err
	}
	paging, err := p.paging(query.MaxLimit)
	if err != nil {
		return err
	}
	page, err := list(chain, paging)
	return a.write(w, r, page, err)
}

// write answers v, or returns err.
func (a api) write(w http.ResponseWriter, r *http.Request, v any, err error) error {
	if err != nil {
		return err
	}
	if p, ok := v.(*query.Page); ok {
		return a.writePage(w, r, p)
	}
	return web.WriteJSON(w, r, v)
}

// bounds returns the range that chain, emitter and sequences ask for.
func (p params) bounds() (archive.Range, error) {
	var r archive.Range
	var err error
	if r.Chain, err = p.chain(); err != nil {
		return r, err
	}
	if p.has(pEmitter) {
		if r.Chain == nil {
			return r, query.Invalid("chain", "emitter needs its chain: add chain=")
		}
		emitter, err := vaa.ParseAddress(*r.Chain, p.get(pEmitter))
		if err != nil {
			return r, query.Invalid("emitter", "%w", err)
		}
		r.Emitter = &emitter
	}
	if r.FirstSequence, err = p.sequence(pFirstSequence); err != nil {
		return r, err
	}
	if r.LastSequence, err = p.sequence(pLastSequence); err != nil {
		return r, err
	}
	switch {
	case r.Emitter == nil && (r.FirstSequence != nil || r.LastSequence != nil):
		return r, query.Invalid("emitter", "a range of sequences needs an emitter: add chain= and emitter=")
	case r.FirstSequence != nil && r.LastSequence != nil && *r.FirstSequence > *r.LastSequence:
		return r, query.Invalid("lastSequence", "lastSequence %d is before firstSequence %d: swap them, and use order=desc to read backwards",
			*r.LastSequence, *r.FirstSequence)
	}
	return r, nil
}

// where returns the conditions on what messages hold.
func (p params) where() (archive.Where, error) {
	var w archive.Where
	var err error
	if p.has(pPayloadPrefix) {
		text := strings.TrimPrefix(p.get(pPayloadPrefix), "0x")
		if w.PayloadPrefix, err = hex.DecodeString(text); err != nil || text == "" {
			return w, query.Invalid("payloadPrefix", "payloadPrefix %q is not bytes in hex: write an even number of hex digits", clip(p.get(pPayloadPrefix)))
		}
		if len(w.PayloadPrefix) > maxPayloadPrefix {
			return w, query.Invalid("payloadPrefix", "payloadPrefix has %d bytes: write at most %d", len(w.PayloadPrefix), maxPayloadPrefix)
		}
	}
	if p.has(pGuardianSetIndex) {
		index, err := parseIndex("guardianSetIndex", p.get(pGuardianSetIndex))
		if err != nil {
			return w, err
		}
		w.GuardianSetIndex = &index
	}
	if w.Signed, err = p.truth(pSigned); err != nil {
		return w, err
	}
	if w.Linked, err = p.truth(pLinked); err != nil {
		return w, err
	}
	if w.FirstTime, err = p.time(pFrom, true); err != nil {
		return w, err
	}
	if w.LastTime, err = p.time(pTo, false); err != nil {
		return w, err
	}
	if w.FirstTime != nil && w.LastTime != nil && w.FirstTime.After(*w.LastTime) {
		return w, query.Invalid("to", "to is before from: swap them, and use order=desc to read backwards")
	}
	return w, nil
}

// maxPayloadPrefix bounds a filter that the store is sent.
const maxPayloadPrefix = 256
