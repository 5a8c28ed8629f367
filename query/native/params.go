package native

import (
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
)

// params are the query parameters of a request, of which only family and column
// are repeated.
type params url.Values

// parseParams refuses parameters that are not known here: a misspelt filter
// must not answer another question than the one that was meant.
func parseParams(r *http.Request, known []param) (params, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &query.Error{Code: query.InvalidArgument, Message: "query string: " + err.Error() + ": write name=value, joined by &, other characters as %XX"}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, param(name)) {
			return nil, query.Invalid(clip(name), "parameter %q is unknown here: %s", clip(name), names(known))
		}
		if len(values[name]) > 1 && param(name) != pFamily && param(name) != pColumn {
			return nil, query.Invalid(name, "parameter %s is given %d times: give it once", name, len(values[name]))
		}
	}
	return params(values), nil
}

func names(known []param) string {
	if len(known) == 0 {
		return "the path takes none"
	}
	list := make([]string, len(known))
	for i, p := range known {
		list[i] = string(p)
	}
	return "use " + strings.Join(list, ", ")
}

func (p params) has(name param) bool { return len(p[string(name)]) > 0 }

func (p params) get(name param) string { return url.Values(p).Get(string(name)) }

// The values of format.
const (
	formatJSON   = "json"
	formatRaw    = "raw"
	formatHex    = "hex"
	formatBase64 = "base64"
)

const octets = "application/octet-stream"

// format returns how a VAA is asked for: by the parameter, else by the header Accept
// where it names only one of the two types, else as usual.
func (p params) format(r *http.Request, usual string) (string, error) {
	if !p.has(pFormat) {
		accept := r.Header.Get("Accept")
		switch raw, json := strings.Contains(accept, octets), strings.Contains(accept, "json"); {
		case raw && !json && !p.has(pFamily) && !p.has(pColumn):
			return formatRaw, nil
		case json && !raw:
			return formatJSON, nil
		}
		return usual, nil
	}
	format := p.get(pFormat)
	switch format {
	case formatJSON:
		return format, nil
	case formatRaw, formatHex, formatBase64:
		for _, name := range []param{pFamily, pColumn, pVersions} {
			if p.has(name) {
				return "", query.Invalid(string(name), "%s does not go with format=%s, which answers the VAA alone: leave one of them out", name, format)
			}
		}
		return format, nil
	}
	return "", query.Invalid("format", "format %q is unknown: use json, raw, hex or base64", clip(format))
}

func (p params) columns() (archive.Columns, error) {
	columns, err := query.ParseColumns(p["family"], p["column"])
	if err != nil || !p.has(pVersions) {
		return columns, err
	}
	switch versions := p.get(pVersions); versions {
	case "all":
	case "latest":
		columns.Latest = true
	default:
		return columns, query.Invalid("versions", "versions %q is unknown: use all or latest", clip(versions))
	}
	return columns, nil
}

func (p params) chain() (*vaa.ChainID, error) {
	if !p.has(pChain) {
		return nil, nil
	}
	chain, err := vaa.ParseChainID(p.get(pChain))
	if err != nil {
		return nil, query.Invalid("chain", "%w", err)
	}
	return &chain, nil
}

func (p params) sequence(name param) (*uint64, error) {
	if !p.has(name) {
		return nil, nil
	}
	sequence, err := vaa.ParseSequence(p.get(name))
	if err != nil {
		return nil, query.Invalid(string(name), "%s: %w", name, err)
	}
	return &sequence, nil
}

// truth reads true or false.
func (p params) truth(name param) (*bool, error) {
	if !p.has(name) {
		return nil, nil
	}
	switch p.get(name) {
	case "true":
		return new(true), nil
	case "false":
		return new(false), nil
	}
	return nil, query.Invalid(string(name), "%s %q is unknown: use true or false", name, clip(p.get(name)))
}

// time reads RFC 3339 or Unix seconds. VAA times are whole seconds, to which a bound is
// rounded inwards.
func (p params) time(name param, up bool) (*time.Time, error) {
	if !p.has(name) {
		return nil, nil
	}
	text := p.get(name)
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t, err := time.Parse(time.RFC3339, strings.ToUpper(text))
		if err != nil {
			return nil, query.Invalid(string(name), "%s %q is no time: write it as 2024-05-01T00:00:00Z or in Unix seconds; a + in a query string is written %%2B", name, clip(text))
		}
		if seconds = t.Unix(); up && t.Nanosecond() > 0 {
			seconds++
		}
	}
	if seconds < 0 || seconds > math.MaxUint32 {
		return nil, query.Invalid(string(name), "%s %q is out of range: VAA times are from 1970 to 2106", name, clip(text))
	}
	t := time.Unix(seconds, 0).UTC()
	return &t, nil
}

// parseIndex reads the index of a guardian set.
func parseIndex(name, text string) (uint32, error) {
	index, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, query.Invalid(name, "%s %q is not a number from 0 to %d", name, clip(text), uint32(math.MaxUint32))
	}
	return uint32(index), nil
}

// selection returns the range that is asked for, in its order.
func (p params) selection() (archive.Range, error) {
	var r archive.Range
	var err error
	if p.has(pPrefix) {
		for _, name := range []param{pChain, pEmitter, pFirstSequence, pLastSequence} {
			if p.has(name) {
				return r, query.Invalid("prefix", "prefix does not go with %s: leave one of them out", name)
			}
		}
		r, err = query.ParsePrefix(p.get(pPrefix))
	} else {
		r, err = p.bounds()
	}
	if err != nil {
		return r, err
	}
	if r.Where, err = p.where(); err != nil {
		return r, err
	}
	r.Descending, err = p.descending(false)
	return r, err
}

// descending reads the order.
func (p params) descending(usual bool) (bool, error) {
	if !p.has(pOrder) {
		return usual, nil
	}
	switch order := p.get(pOrder); order {
	case "asc":
		return false, nil
	case "desc":
		return true, nil
	default:
		return false, query.Invalid("order", "order %q is unknown: use asc or desc", clip(order))
	}
}

func (p params) paging(most int) (query.Paging, error) {
	var paging query.Paging
	if p.has(pLimit) {
		n, err := strconv.Atoi(p.get(pLimit))
		if err != nil || n < 1 || n > most {
			return paging, query.Invalid("limit", "limit %q is not a number from 1 to %d", clip(p.get(pLimit)), most)
		}
		paging.Limit = n
	}
	if p.has(pCursor) {
		paging.Cursor = p.get(pCursor)
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
