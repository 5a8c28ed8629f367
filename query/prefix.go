package query

import (
	"math"
	"strconv"
	"strings"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// ParsePrefix returns the range of the messages whose row keys begin with a
// prefix: "2:" is a chain, "2:<address>:" an emitter, and digits after that are
// the first of a sequence's 20. Slashes do for colons, and chain and address may
// be written in any spelling. A prefix that ends within a chain or an address
// selects no contiguous set that means anything, and is refused. Errors are
// *Error about the parameter prefix.
func ParsePrefix(prefix string) (archive.Range, error) {
	var r archive.Range
	text := strings.ReplaceAll(strings.TrimSpace(prefix), "/", ":")
	chain, rest, ok := strings.Cut(text, ":")
	if !ok {
		return r, Invalid("prefix", "prefix %q has no colon after the chain: write 2: for a chain, 2:<address>: for an emitter", clip(prefix))
	}
	id, err := vaa.ParseChainID(chain)
	if err != nil {
		return r, Invalid("prefix", "prefix: %w", err)
	}
	r.Chain = &id
	if rest == "" {
		return r, nil
	}
	emitter, digits, _ := strings.Cut(rest, ":")
	address, err := vaa.ParseAddress(id, emitter)
	if err != nil {
		return r, Invalid("prefix", "prefix: emitter: %w", err)
	}
	r.Emitter = &address
	if digits == "" {
		return r, nil
	}
	first, last, err := sequencesFrom(digits)
	if err != nil {
		return r, err
	}
	r.FirstSequence, r.LastSequence = &first, &last
	return r, nil
}

// sequencesFrom returns the first and the last sequence whose 20 digits begin
// with the given ones.
func sequencesFrom(digits string) (first, last uint64, err error) {
	const size = 20
	if strings.Trim(digits, "0123456789") != "" || len(digits) > size {
		return 0, 0, Invalid("prefix", "prefix: %q does not begin a sequence: write at most %d decimal digits", clip(digits), size)
	}
	missing := size - len(digits)
	first, err = strconv.ParseUint(digits+strings.Repeat("0", missing), 10, 64)
	if err != nil {
		return 0, 0, Invalid("prefix", "prefix: no sequence begins with %s: row keys have %d digits, write the leading zeros", digits, size)
	}
	last, err = strconv.ParseUint(digits+strings.Repeat("9", missing), 10, 64)
	if err != nil {
		last = math.MaxUint64
	}
	return first, last, nil
}
