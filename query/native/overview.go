package native

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/web"
)

func (a api) search(w http.ResponseWriter, r *http.Request, p params) error {
	paging, err := p.paging(query.MaxRecent)
	if err != nil {
		return err
	}
	found, err := a.service.Search(r.Context(), p.get(pQ), paging.Limit)
	return a.write(w, r, found, err)
}

func (a api) emitters(w http.ResponseWriter, r *http.Request, p params) error {
	chain, err := p.chain()
	if err != nil {
		return err
	}
	if chain == nil {
		return query.Invalid("chain", "emitters are listed by chain: add chain=")
	}
	paging, err := p.paging(query.MaxEmitters)
	if err != nil {
		return err
	}
	page, err := a.service.Emitters(r.Context(), *chain, paging)
	return a.write(w, r, page, err)
}

func (a api) guardianSets(w http.ResponseWriter, r *http.Request, _ params) error {
	sets, err := a.service.GuardianSets(r.Context())
	return a.write(w, r, struct {
		Items []query.GuardianSet `json:"items"`
	}{sets}, err)
}

func (a api) guardianSet(w http.ResponseWriter, r *http.Request, _ params) error {
	index, err := parseIndex("index", r.PathValue("index"))
	if err != nil {
		return err
	}
	set, err := a.service.GuardianSet(r.Context(), index)
	return a.write(w, r, set, err)
}

func (a api) rejects(w http.ResponseWriter, r *http.Request, p params) error {
	paging, err := p.paging(query.MaxLimit)
	if err != nil {
		return err
	}
	page, err := a.service.Rejects(r.Context(), paging)
	return a.write(w, r, page, err)
}

func (a api) status(w http.ResponseWriter, r *http.Request, p params) error {
	chain, err := p.chain()
	if err != nil {
		return err
	}
	status, err := a.service.Status(r.Context(), chain)
	return a.write(w, r, status, err)
}

// grouping reads groupBy, chain and emitter.
func (p params) grouping() (query.Grouping, error) {
	g := query.Grouping{By: query.GroupNetwork}
	if p.has(pGroupBy) {
		g.By = p.get(pGroupBy)
	}
	r, err := p.bounds()
	g.Chain, g.Emitter = r.Chain, r.Emitter
	return g, err
}

func (a api) totals(w http.ResponseWriter, r *http.Request, p params) error {
	g, err := p.grouping()
	if err != nil {
		return err
	}
	paging, err := p.paging(query.MaxTotals)
	if err != nil {
		return err
	}
	totals, err := a.service.Totals(r.Context(), g, paging)
	return a.write(w, r, totals, err)
}

// series answers the buckets that begin in [from, to).
func (a api) series(w http.ResponseWriter, r *http.Request, p params) error {
	g, err := p.grouping()
	if err != nil {
		return err
	}
	for _, name := range []param{pPeriod, pFrom, pTo} {
		if !p.has(name) {
			return query.Invalid(string(name), "%s is missing: a series has a period and goes from one time to another", name)
		}
	}
	from, err := p.time(pFrom, true)
	if err != nil {
		return err
	}
	to, err := p.time(pTo, true)
	if err != nil {
		return err
	}
	series, err := a.service.Series(r.Context(), g, p.get(pPeriod), *from, *to)
	return a.write(w, r, series, err)
}

func (a api) decode(w http.ResponseWriter, r *http.Request, _ params) error {
	return a.check(w, r, a.service.DecodeVAA)
}

func (a api) verify(w http.ResponseWriter, r *http.Request, _ params) error {
	return a.check(w, r, a.service.Verify)
}

func (a api) check(w http.ResponseWriter, r *http.Request, check func([]byte) (*query.ParsedVAA, error)) error {
	raw, err := postedVAA(r)
	if err != nil {
		return err
	}
	parsed, err := check(raw)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, r, parsed)
}

// postedVAA returns the VAA of a POST: the body itself as octets, or {"vaa": text} in
// JSON, where the text is base64 or hex.
func postedVAA(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err // of a body that is too large, the server says so
	}
	contentType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && contentType == octets:
		return b, nil
	case r.Header.Get("Content-Type") != "" && (err != nil || contentType != "application/json"):
		return nil, query.Invalid("vaa", "content type %q is not understood: send JSON {\"vaa\": \"<base64 or hex>\"} as application/json, or the bytes as %s",
			clip(r.Header.Get("Content-Type")), octets)
	}
	var in struct {
		VAA *string `json:"vaa"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, query.Invalid("vaa", "body is not JSON of the form {\"vaa\": \"<base64 or hex>\"}: %w", err)
	}
	if in.VAA == nil {
		return nil, query.Invalid("vaa", "body has no member vaa: send {\"vaa\": \"<base64 or hex>\"}")
	}
	return query.ParseVAAText(*in.VAA)
}
