package wormholescan

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// propertiesOf returns what a message's payload has in common with others.
func propertiesOf(a *query.Attestation) payload.Properties {
	kind := ""
	if a.PayloadKind != nil {
		kind = *a.PayloadKind
	}
	return payload.PropertiesOf(a.EmitterChain, kind, a.Decoded)
}

// filter selects among the messages of a page by what their payloads say. The zero
// value selects all.
type filter struct {
	appIDs    []string
	exclusive bool // of no other application
	sources   []vaa.ChainID
	targets   []vaa.ChainID
	types     []string // first byte of the payload, in decimal
}

func (f filter) selects(s signed) bool {
	p := propertiesOf(s.Attestation)
	switch {
	case len(f.sources) > 0 && !slices.Contains(f.sources, s.EmitterChain),
		len(f.targets) > 0 && (p.ToChain == nil || !slices.Contains(f.targets, *p.ToChain)),
		len(f.types) > 0 && (len(s.vaa.Payload) == 0 || !slices.Contains(f.types, strconv.Itoa(int(s.vaa.Payload[0])))):
		return false
	case len(f.appIDs) == 0:
		return true
	}
	named := func(id string) bool { return slices.Contains(f.appIDs, id) }
	return slices.ContainsFunc(p.AppIDs, named) && (!f.exclusive || len(p.AppIDs) == 1)
}

// list splits a list of names, nil where there is none.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// number is an exact number in JSON, which theirs is too.
func number(n uint64) json.Number { return json.Number(decimal(n)) }
