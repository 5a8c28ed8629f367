package native

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
)

// params are the query parameters of a request, of which only family and column
// are repeated.
type params url.Values

// parseParams refuses parameters that are not known here: a misspelt filter
// must not answer another question than the one that was meant.
func parseParams(r *http.Request, known ...string) (params, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &query.Error{Code: query.InvalidArgument, Message: "query string: " + err.Error() + ": write name=value, joined by &, other characters as %XX"}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			return nil, query.Invalid(clip(name), "parameter %q is unknown here: use %s", clip(name), strings.Join(known, ", "))
		}
		if len(values[name]) > 1 && name != "family" && name != "column" {
			return nil, query.Invalid(name, "parameter %s is given %d times: give it once", name, len(values[name]))
		}
	}
	return params(values), nil
}

func (p params) has(name string) bool { return len(p[name]) > 0 }

func (p params) get(name string) string { return url.Values(p).Get(name) }

// The values of format.
const (
	formatJSON   = "json"
	formatRaw    = "raw"
	formatHex    = "hex"
	formatBase64 = "base64"
)

func (p params) format() (string, error) {
	if !p.has("format") {
		return formatJSON, nil
	}
	format := p.get("format")
	switch format {
	case formatJSON:
		return format, nil
	case formatRaw, formatHex, formatBase64:
		for _, name := range []string{"family", "column"} {
			if p.has(name) {
				return "", query.Invalid(name, "%s does not go with format=%s, which answers the VAA alone: leave one of them out", name, format)
			}
		}
		return format, nil
	}
	return "", query.Invalid("format", "format %q is unknown: use json, raw, hex or base64", clip(format))
}

func (p params) columns() (archive.Columns, error) {
	return query.ParseColumns(p["family"], p["column"])
}

func (p params) chain() (*vaa.ChainID, error) {
	if !p.has("chain") {
		return nil, nil
	}
	chain, err := vaa.ParseChainID(p.get("chain"))
	if err != nil {
		return nil, query.Invalid("chain", "%w", err)
	}
	return &chain, nil
}

func (p params) sequence(name string) (*uint64, error) {
	if !p.has(name) {
		return nil, nil
	}
	sequence, err := vaa.ParseSequence(p.get(name))
	if err != nil {
		return nil, query.Invalid(name, "%s: %w", name, err)
	}
	return &sequence, nil
}

// selection returns the range that is asked for, in its order.
func (p params) selection() (archive.Range, error) {
	var r archive.Range
	var err error
	if p.has("prefix") {
		for _, name := range []string{"chain", "emitter", "firstSequence", "lastSequence"} {
			if p.has(name) {
				return r, query.Invalid("prefix", "prefix does not go with %s: leave one of them out", name)
			}
		}
		r, err = query.ParsePrefix(p.get("prefix"))
	} else {
		r, err = p.bounds()
	}
	if err != nil || !p.has("order") {
		return r, err
	}
	switch order := p.get("order"); order {
	case "asc":
	case "desc":
		r.Descending = true
	default:
		return r, query.Invalid("order", "order %q is unknown: use asc or desc", clip(order))
	}
	return r, nil
}

func (p params) bounds() (archive.Range, error) {
	var r archive.Range
	var err error
	if r.Chain, err = p.chain(); err != nil {
		return r, err
	}
	if p.has("emitter") {
		if r.Chain == nil {
			return r, query.Invalid("chain", "emitter needs its chain: add chain=")
		}
		emitter, err := vaa.ParseAddress(*r.Chain, p.get("emitter"))
		if err != nil {
			return r, query.Invalid("emitter", "%w", err)
		}
		r.Emitter = &emitter
	}
	if r.FirstSequence, err = p.sequence("firstSequence"); err != nil {
		return r, err
	}
	if r.LastSequence, err = p.sequence("lastSequence"); err != nil {
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

func (p params) paging() (query.Paging, error) {
	var paging query.Paging
	if p.has("limit") {
		n, err := strconv.Atoi(p.get("limit"))
		if err != nil || n < 1 || n > query.MaxLimit {
			return paging, query.Invalid("limit", "limit %q is not a number from 1 to %d", clip(p.get("limit")), query.MaxLimit)
		}
		paging.Limit = n
	}
	if p.has("cursor") {
		paging.Cursor = p.get("cursor")
		if paging.Cursor == "" {
			return paging, query.Invalid("cursor", "cursor is empty: leave it out to start over")
		}
	}
	return paging, nil
}

// clip bounds text from outside that is repeated in an error.
func clip(s string) string {
	const limit = 100
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}
