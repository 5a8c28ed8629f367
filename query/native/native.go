// Package native is the archive's own HTTP interface, under /v1.
//
// Answers are the JSON of package query; see query.Attestation for what null
// means. Every path takes GET and HEAD, answers with an ETag, and refuses query
// parameters that it does not know.
package native

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/vaa"
)

// Register adds the paths of the interface to a mux:
//
//	/v1/attestations                               a listing; see listAttestations
//	/v1/attestations/{chain}/{emitter}/{sequence}  one attestation
//	/v1/attestations/{id}                          the same, by an id in any spelling or a row key
//	/v1/tx/{txid}                                  what a transaction published; chain= keeps one emitter chain
//	/v1/digests/{digest}                           what has a digest, signing digest or single hash
//
// One attestation takes family= and column= as listings do, or format= raw, hex
// or base64, which answers the bytes of the canonical VAA alone. Listings take
// limit= and cursor=.
func Register(mux *http.ServeMux, s *query.Service) {
	a := api{s}
	mux.Handle("/v1/attestations", web.Get(a.listAttestations))
	mux.Handle("/v1/attestations/{chain}/{emitter}/{sequence}", web.Get(a.attestationByParts))
	mux.Handle("/v1/attestations/{id...}", web.Get(a.attestationByID))
	mux.Handle("/v1/tx/{txid...}", web.Get(a.byTx))
	mux.Handle("/v1/digests/{digest}", web.Get(a.byDigest))
}

type api struct{ service *query.Service }

func (a api) attestationByParts(w http.ResponseWriter, r *http.Request) error {
	var id vaa.MessageID
	var err error
	if id.EmitterChain, err = vaa.ParseChainID(r.PathValue("chain")); err != nil {
		return query.Invalid("chain", "%w", err)
	}
	if id.EmitterAddress, err = vaa.ParseAddress(id.EmitterChain, r.PathValue("emitter")); err != nil {
		return query.Invalid("emitter", "%w", err)
	}
	if id.Sequence, err = vaa.ParseSequence(r.PathValue("sequence")); err != nil {
		return query.Invalid("sequence", "%w", err)
	}
	return a.attestation(w, r, id)
}

func (a api) attestationByID(w http.ResponseWriter, r *http.Request) error {
	id, err := vaa.ParseMessageID(r.PathValue("id"))
	if err != nil {
		return query.Invalid("id", "%w", err)
	}
	return a.attestation(w, r, id)
}

// attestation answers about one message by one read of its row.
func (a api) attestation(w http.ResponseWriter, r *http.Request, id vaa.MessageID) error {
	p, err := parseParams(r, "format", "family", "column")
	if err != nil {
		return err
	}
	format, err := p.format()
	if err != nil {
		return err
	}
	columns, err := p.columns()
	if err != nil {
		return err
	}
	if format != formatJSON {
		return a.signedVAA(w, r, id, format)
	}
	attestation, err := a.service.Get(r.Context(), id, columns)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, r, attestation)
}

func (a api) signedVAA(w http.ResponseWriter, r *http.Request, id vaa.MessageID, format string) error {
	raw, err := a.service.SignedVAA(r.Context(), id)
	if err != nil {
		return err
	}
	switch format {
	case formatHex:
		web.WriteBytes(w, r, "text/plain; charset=utf-8", hex.AppendEncode(nil, raw))
	case formatBase64:
		web.WriteBytes(w, r, "text/plain; charset=utf-8", base64.StdEncoding.AppendEncode(nil, raw))
	default:
		web.WriteBytes(w, r, "application/octet-stream", raw)
	}
	return nil
}

// listAttestations answers a page of the messages in the order of their row keys:
//
//	prefix=                       row keys that begin so: "2:", "2:<address>:", "2:<address>:0000"
//	chain=, emitter=              a chain, or one emitter of it
//	firstSequence=, lastSequence= bounds within the emitter, inclusive
//	order=                        asc (default) or desc
//	family=, column=              repeated: the cells that travel, named as in the schema
//	limit=                        1 to 1000, default 100
//	cursor=                       pagination.next of the page before
func (a api) listAttestations(w http.ResponseWriter, r *http.Request) error {
	p, err := parseParams(r, "prefix", "chain", "emitter", "firstSequence", "lastSequence",
		"order", "limit", "cursor", "family", "column")
	if err != nil {
		return err
	}
	selected, err := p.selection()
	if err != nil {
		return err
	}
	columns, err := p.columns()
	if err != nil {
		return err
	}
	paging, err := p.paging()
	if err != nil {
		return err
	}
	page, err := a.service.Scan(r.Context(), selected, columns, paging)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, r, page)
}

func (a api) byTx(w http.ResponseWriter, r *http.Request) error {
	p, err := parseParams(r, "chain", "limit", "cursor")
	if err != nil {
		return err
	}
	chain, err := p.chain()
	if err != nil {
		return err
	}
	paging, err := p.paging()
	if err != nil {
		return err
	}
	page, err := a.service.ByTx(r.Context(), r.PathValue("txid"), chain, paging)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, r, page)
}

func (a api) byDigest(w http.ResponseWriter, r *http.Request) error {
	p, err := parseParams(r, "limit", "cursor")
	if err != nil {
		return err
	}
	paging, err := p.paging()
	if err != nil {
		return err
	}
	digest, err := vaa.ParseDigest(r.PathValue("digest"))
	if err != nil {
		return query.Invalid("digest", "%w", err)
	}
	page, err := a.service.ByDigest(r.Context(), digest, paging)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, r, page)
}
