package wormholescan

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
)

// Bounds of pages.
const (
	defaultPageSize = 50
	maxPageSize     = 1000
	maxOperations   = 100
)

// paging is the part of a list that is asked for.
type paging struct {
	offset, size int
	ascending    bool
	cursor       string
}

func (p paging) query() query.Paging {
	return query.Paging{Limit: p.size, Offset: p.offset, Cursor: p.cursor}
}

// readPaging reads page, pageSize, sortOrder and cursor; most bounds pageSize.
func readPaging(q url.Values, most int) (paging, error) {
	p := paging{size: min(defaultPageSize, most), cursor: q.Get("cursor")}
	page := 0
	var err error
	if text := q.Get("page"); text != "" {
		if page, err = strconv.Atoi(text); err != nil || page < 0 {
			return p, invalid("parameter 'page' must be a non-negative integer")
		}
	}
	if text := q.Get("pageSize"); text != "" {
		if p.size, err = strconv.Atoi(text); err != nil || p.size < 1 {
			return p, invalid("parameter 'pageSize' must be a positive integer")
		}
	}
	if p.size > most {
		return p, invalid(fmt.Sprintf("pageSize cannot be greater than %d", most))
	}
	if page > query.MaxOffset {
		return p, tooFar(page)
	}
	p.offset = page * p.size
	if p.offset > query.MaxOffset {
		return p, tooFar(page)
	}
	switch strings.ToUpper(q.Get("sortOrder")) {
	case "", "DESC":
	case "ASC":
		p.ascending = true
	default:
		return p, invalid("parameter 'sortOrder' must either be 'ASC' or 'DESC'")
	}
	return p, nil
}

func tooFar(page int) error {
	return invalid(fmt.Sprintf("parameter 'page' of %d reaches beyond %d items: go on with parameter 'cursor', which is pagination.next", page, query.MaxOffset))
}

func parseChain(text, message string) (vaa.ChainID, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, invalid(message)
	}
	return vaa.ChainID(n), nil
}

// parseChains reads a list of chains, nil where there is none.
func parseChains(text, message string) ([]vaa.ChainID, error) {
	if text == "" {
		return nil, nil
	}
	var chains []vaa.ChainID
	for part := range strings.SplitSeq(text, ",") {
		chain, err := parseChain(strings.TrimSpace(part), message)
		if err != nil {
			return nil, err
		}
		chains = append(chains, chain)
	}
	return chains, nil
}

// pathRange reads chain and emitter of a path, as far as it has them.
func pathRange(r *http.Request) (out archive.Range, err error) {
	if text := r.PathValue("chain"); text != "" {
		chain, err := parseChain(text, "WRONG CHAIN ID")
		if err != nil {
			return out, err
		}
		out.Chain = &chain
	}
	if text := r.PathValue("emitter"); text != "" {
		emitter, err := vaa.ParseAddress(*out.Chain, text)
		if err != nil {
			return out, invalid("MALFORMED EMITTER_ADDR")
		}
		out.Emitter = &emitter
	}
	return out, nil
}

// pathID reads a whole message id of a path.
func pathID(r *http.Request) (vaa.MessageID, error) {
	in, err := pathRange(r)
	if err != nil {
		return vaa.MessageID{}, err
	}
	sequence, err := strconv.ParseUint(r.PathValue("sequence"), 10, 64)
	if err != nil {
		return vaa.MessageID{}, invalid("MALFORMED SEQUENCE NUMBER")
	}
	return vaa.MessageID{EmitterChain: *in.Chain, EmitterAddress: *in.Emitter, Sequence: sequence}, nil
}

// parseTxHash accepts the lengths of the chains' hashes: 87 or 88 of base58 (Solana),
// 52 of base32 (Algorand), 43 or 44 of base58 (Sui), 64 of hex with or without 0x.
func parseTxHash(text string) (string, error) {
	txID, err := archive.ParseTxID(text)
	switch len(txID) {
	case 43, 44, 52, 64, 87, 88:
	default:
		return "", invalid("MALFORMED TX HASH")
	}
	if err != nil || strings.ContainsAny(txID, "-_+/=.") {
		return "", invalid("MALFORMED TX HASH")
	}
	return txID, nil
}

func parseBool(q url.Values, name string) (bool, error) {
	text := q.Get(name)
	if text == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, invalid("INVALID <" + name + "> QUERY PARAMETER")
	}
	return b, nil
}

func parseTime(q url.Values, name string) (*time.Time, error) {
	text := q.Get(name)
	if text == "" {
		return nil, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, invalid("INVALID <" + name + "> QUERY PARAMETER")
	}
	return &t, nil
}
