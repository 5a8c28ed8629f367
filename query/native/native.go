// Package native is the archive's own HTTP interface, under /v1.
//
// Answers are the JSON of package query; see query.Attestation for what null
// means. Every path takes GET and HEAD, or POST, answers with an ETag, and refuses
// query parameters that it does not know. docs/api.md and the page at /docs describe
// it for its users, openapi.yaml for their programs.
package native

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/web"
)

// Register adds the paths of the interface to a mux: those of the routes, and
// /openapi.yaml and /docs, which describe them.
func Register(mux *http.ServeMux, s *query.Service) {
	a := newAPI(s)
	for _, rt := range a.routes() {
		mux.Handle(rt.path, rt.handler())
	}
	registerDocs(mux, a.routes())
}

type api struct {
	service  *query.Service
	encoders *sync.Pool // of *encoder
}

func newAPI(s *query.Service) api {
	return api{s, &sync.Pool{New: func() any { return &encoder{} }}}
}

// route is a path with what it takes. Everything that knows the paths is made of the
// list of routes.
type route struct {
	path    string // as a pattern of http.ServeMux, without method
	summary string
	params  []param
	post    bool // takes a body by POST instead of answering GET
	serve   func(w http.ResponseWriter, r *http.Request, p params) error
}

func (rt route) method() string {
	if rt.post {
		return http.MethodPost
	}
	return http.MethodGet
}

// plainPath returns the path without the marks of the mux.
func (rt route) plainPath() string { return strings.ReplaceAll(rt.path, "...}", "}") }

func (rt route) handler() http.Handler {
	serve := func(w http.ResponseWriter, r *http.Request) error {
		p, err := parseParams(r, rt.params)
		if err != nil {
			return err
		}
		return rt.serve(w, r, p)
	}
	if rt.post {
		return web.Post(serve)
	}
	return web.Get(serve)
}

// A param is a query parameter. Its name says the same on every path.
type param string

// The parameters.
const (
	pPrefix           param = "prefix"
	pChain            param = "chain"
	pEmitter          param = "emitter"
	pFirstSequence    param = "firstSequence"
	pLastSequence     param = "lastSequence"
	pFrom             param = "from"
	pTo               param = "to"
	pOrder            param = "order"
	pFamily           param = "family"
	pColumn           param = "column"
	pVersions         param = "versions"
	pPayloadPrefix    param = "payloadPrefix"
	pGuardianSetIndex param = "guardianSetIndex"
	pSigned           param = "signed"
	pLinked           param = "linked"
	pLimit            param = "limit"
	pCursor           param = "cursor"
	pOffset           param = "offset"
	pFormat           param = "format"
	pQ                param = "q"
	pGroupBy          param = "groupBy"
	pPeriod           param = "period"
)

// meaning tells what each parameter is.
func (p param) meaning() string {
	switch p {
	case pPrefix:
		return "row keys that begin so: 2: for a chain, 2:<address>: for an emitter, 2:<address>:0000 for the first digits of a sequence"
	case pChain:
		return "a chain, by number or name"
	case pEmitter:
		return "one emitter of the chain, in 64 hex digits or in the chain's own form"
	case pFirstSequence:
		return "first sequence of the emitter, inclusive"
	case pLastSequence:
		return "last sequence of the emitter, inclusive"
	case pFrom:
		return "earliest VAA time, inclusive: RFC 3339 or Unix seconds"
	case pTo:
		return "latest VAA time, inclusive: RFC 3339 or Unix seconds"
	case pOrder:
		return "asc or desc"
	case pFamily:
		return "cells of this family only: MessagePublication or QuorumState; may be repeated"
	case pColumn:
		return "this column only; may be repeated"
	case pVersions:
		return "all versions of the signed VAA, or the latest"
	case pPayloadPrefix:
		return "messages whose payload begins with these bytes, in hex"
	case pGuardianSetIndex:
		return "messages whose canonical VAA this set signed"
	case pSigned:
		return "true for messages with a signed VAA, false for those without"
	case pLinked:
		return "true for messages with a known transaction, false for those without"
	case pLimit:
		return "size of a page"
	case pCursor:
		return "pagination.next of the page before"
	case pOffset:
		return "items to skip, at most " + fmt.Sprint(query.MaxOffset)
	case pFormat:
		return "json, or the bytes of the VAA alone: raw, hex or base64"
	case pGroupBy:
		return "network (default), chain or emitter"
	case pPeriod:
		return "length of a bucket: 1min, 5min, 60min, 1day, or what is made of them, as 15min, 6h, 1week"
	case pQ:
		return "what to search: a message id in any spelling, a row key, a transaction, a digest, an address, a whole VAA in base64 or hex, or the URL of a page about one of these"
	}
	return ""
}

func (a api) routes() []route {
	selection := []param{pPrefix, pChain, pEmitter, pFirstSequence, pLastSequence, pFrom, pTo}
	filters := []param{pPayloadPrefix, pGuardianSetIndex, pSigned, pLinked}
	cells := []param{pFamily, pColumn, pVersions}
	page := []param{pLimit, pCursor}
	one := join([]param{pFormat}, cells)
	return []route{
		{path: "/v1/search", summary: "What anything in a ticket names", params: []param{pQ, pLimit}, serve: a.search},
		{path: "/v1/attestations", summary: "A listing by row key or by VAA time", params: join(selection, filters, []param{pOrder}, cells, page), serve: a.listAttestations},
		{path: "/v1/attestations/{chain}/{emitter}/{sequence}", summary: "One attestation", params: one, serve: a.attestationByParts},
		{path: "/v1/attestations/{id...}", summary: "One attestation, by an id in any spelling or a row key", params: one, serve: a.attestationByID},
		{path: "/v1/attestations/{chain}/{emitter}/{sequence}/repaired", summary: "A VAA that the current guardian set accepts", params: []param{pFormat}, serve: a.repairedByParts},
		{path: "/v1/attestations/{id}/repaired", summary: "The same, by an id in any spelling or a row key", params: []param{pFormat}, serve: a.repairedByID},
		{path: "/v1/attestations/{chain}/{emitter}/{sequence}/vaas/{guardianSet}/{digest}", summary: "One signed VAA of the message, which never changes", params: []param{pFormat}, serve: a.oneVAA},
		{path: "/v1/recent", summary: "The messages of newest VAA time", params: join([]param{pChain, pOffset}, cells, page), serve: a.recent},
		{path: "/v1/tx/{txid...}", summary: "What a transaction published", params: join([]param{pChain}, page), serve: a.byTx},
		{path: "/v1/digests/{digest}", summary: "What has a digest, signing digest or single hash", params: page, serve: a.byDigest},
		{path: "/v1/recipients/{address}", summary: "The transfers to an address, newest first", params: join([]param{pChain, pOrder}, page), serve: a.byRecipient},
		{path: "/v1/emitters", summary: "The emitters of a chain", params: join([]param{pChain}, page), serve: a.emitters},
		{path: "/v1/conflicts", summary: "Messages of which more than one digest was seen", params: join([]param{pChain}, page), serve: a.conflicts},
		{path: "/v1/guardian-sets", summary: "The guardian sets, with the VAA that proves each", serve: a.guardianSets},
		{path: "/v1/guardian-sets/{index}", summary: "One guardian set", serve: a.guardianSet},
		{path: "/v1/rejects", summary: "What was refused, with the reason", params: page, serve: a.rejects},
		{path: "/v1/status", summary: "Where journal, messages and stream are", params: []param{pChain}, serve: a.status},
		{path: "/v1/totals", summary: "How many messages there are", params: join([]param{pGroupBy, pChain, pEmitter}, page), serve: a.totals},
		{path: "/v1/series", summary: "How many messages there are by VAA time", params: []param{pGroupBy, pChain, pEmitter, pPeriod, pFrom, pTo}, serve: a.series},
		{path: "/v1/decode", summary: "What the bytes of a VAA say", post: true, serve: a.decode},
		{path: "/v1/verify", summary: "What the bytes of a VAA say, and whether its signatures hold", post: true, serve: a.verify},
	}
}

func join(lists ...[]param) []param {
	var all []param
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
