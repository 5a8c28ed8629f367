// Package wormholescan imitates the read API of Wormholescan's explorer (paths under
// /api/v1) for what an archive of attestations holds, so that clients of it work by
// changing an address: paths, field names, number formats, codes and texts.
//
// It differs where theirs is wrong or cannot be answered:
//
//   - lists have a total order: VAA time and then row key, or within an emitter the
//     sequence, so that pages neither repeat nor leave out; pagination.next is a
//     cursor for the parameter cursor, which clients may ignore
//   - a transaction answers all of its VAAs; chain ids are 0 to 65535 and nothing
//     wraps; no answer depends on a cache of newest sequences
//   - unknown paths are 404 with their body, a malformed VAA given to parse is 400
//   - observations are the signatures of the stored VAAs and the evidence beside
//     them; single gossiped observations are not kept
//   - destination transactions, prices, amounts in dollars and senders are not known:
//     such fields are absent
package wormholescan

import (
	"context"
	"net/http"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/web"
)

// Config is what the interface is made of.
type Config struct {
	Service *query.Service
	// Ready reports why the archive cannot answer; nil is ready.
	Ready func(ctx context.Context) error
	// Version is that of the program.
	Version string
}

// Register adds the paths of the interface to a mux.
func Register(mux *http.ServeMux, c Config) {
	a := api{service: c.Service}
	handle := func(pattern, methods string, h handler) {
		mux.Handle(pattern, web.Endpoint{Handler: answer(h), Methods: methods, WriteError: writeError})
	}
	get := func(path string, h handler) {
		handle("/api/v1"+path, "GET, HEAD", h)
		handle("/api/v1"+path+"/{$}", "GET, HEAD", h)
	}
	get("/vaas", a.vaas)
	get("/vaas/vaa-counts", a.counts)
	get("/vaas/{chain}", a.vaas)
	get("/vaas/{chain}/{emitter}", a.vaas)
	get("/vaas/{chain}/{emitter}/{sequence}", a.vaa)
	get("/vaas/{chain}/{emitter}/{sequence}/duplicated", a.duplicated)
	handle("/api/v1/vaas/parse", "POST", a.parse)
	get("/observations", a.observations)
	get("/observations/{chain}", a.observations)
	get("/observations/{chain}/{emitter}", a.observations)
	get("/observations/{chain}/{emitter}/{sequence}", a.observations)
	get("/observations/{chain}/{emitter}/{sequence}/{signer}/{hash}", a.observation)
	get("/operations", a.operations)
	get("/operations/{chain}/{emitter}/{sequence}", a.operation)
	get("/transactions", a.transactions)
	get("/transactions/{chain}/{emitter}/{sequence}", a.transaction)
	get("/global-tx/{chain}/{emitter}/{sequence}", a.globalTx)
	get("/version", func(http.ResponseWriter, *http.Request) (any, error) {
		return map[string]string{"version": c.Version}, nil
	})
	state := func(path string, h http.HandlerFunc) {
		mux.Handle("/api/v1"+path, web.Endpoint{Handler: h, Methods: "GET, HEAD", WriteError: writeError, Exempt: true})
	}
	state("/health", func(w http.ResponseWriter, _ *http.Request) {
		web.WriteStatus(w, http.StatusOK, map[string]string{"status": "OK"})
	})
	state("/ready", func(w http.ResponseWriter, r *http.Request) {
		if err := c.Ready(r.Context()); err != nil {
			web.NoteError(r, err)
			web.WriteStatus(w, http.StatusInternalServerError, map[string]string{"ready": "NO"})
			return
		}
		web.WriteStatus(w, http.StatusOK, map[string]string{"ready": "OK"})
	})
	handle("/api/", "", func(http.ResponseWriter, *http.Request) (any, error) { return nil, errNotFound })
}

type api struct{ service *query.Service }

// handler returns what is answered as JSON.
type handler func(w http.ResponseWriter, r *http.Request) (any, error)

// answer writes what a handler returns.
func answer(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := h(w, r)
		if err == nil {
			err = web.WriteJSON(w, r, body)
		}
		if err != nil {
			writeError(w, r, err)
		}
	}
}
