package query

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// ParseColumns reads families and qualifiers of the table attestations, as in
// bigtable/schema; a qualifier that ends in a dot stands for all that begin with
// it. None at all asks for everything. Its errors are *Error and name the
// parameter, family or column, and the valid values.
func ParseColumns(families, columns []string) (archive.Columns, error) {
	all := []string{schema.MessagePublication, schema.QuorumState}
	for _, f := range families {
		if !slices.Contains(all, f) {
			return archive.Columns{}, Invalid("family", "family %q is unknown: use %s", clip(f), strings.Join(all, " or "))
		}
	}
	of := families
	if len(of) == 0 {
		of = all
	}
	var valid []string
	for _, f := range of {
		valid = append(valid, schema.Columns(f)...)
	}
	for _, c := range columns {
		if !slices.Contains(valid, c) {
			return archive.Columns{}, Invalid("column", "column %q is not one of %s: use one of %s",
				clip(c), strings.Join(of, " and "), strings.Join(slices.Compact(slices.Sorted(slices.Values(valid))), ", "))
		}
	}
	return archive.Columns{Families: families, Qualifiers: columns}, nil
}

// toRead returns what to read for an answer of the asked columns: them, always the
// digest, what else is named, and where the state is told, the marks of other digests,
// which have no value. The digest makes a row that has none of the asked cells a row
// nevertheless, so that a lookup finds it and a scan's limit counts every row that is
// read; and the marks mean nothing without it.
func toRead(asked archive.Columns, more ...string) archive.Columns {
	if len(asked.Families) == 0 && len(asked.Qualifiers) == 0 {
		return asked
	}
	read := archive.Columns{Qualifiers: slices.Clone(asked.Qualifiers), Latest: asked.Latest}
	families := asked.Families
	if len(families) == 0 {
		families = []string{schema.MessagePublication, schema.QuorumState}
	}
	if len(read.Qualifiers) == 0 {
		for _, f := range families {
			read.Qualifiers = append(read.Qualifiers, schema.Columns(f)...)
		}
	}
	more = append(more, schema.ColDigest)
	if tellsState(asked) {
		more = append(more, schema.PrefixConflict, schema.PrefixVanished)
	}
	for _, q := range more {
		if !slices.Contains(read.Qualifiers, q) {
			read.Qualifiers = append(read.Qualifiers, q)
		}
	}
	return read
}

// tellsState reports whether a column is asked for that only a signed VAA writes.
func tellsState(c archive.Columns) bool {
	return c.Wants(schema.QuorumState, schema.ColSignedVAA) ||
		c.Wants(schema.MessagePublication, schema.ColVersion) || c.Wants(schema.MessagePublication, schema.ColGuardianSetIndex)
}

// wantsAll reports whether both families are asked for whole, with all versions.
func wantsAll(c archive.Columns) bool {
	return wantsFamily(c, schema.MessagePublication) && wantsFamily(c, schema.QuorumState)
}

// wantsFamily reports whether all columns of a family are asked for.
func wantsFamily(c archive.Columns, family string) bool {
	if c.Latest && family == schema.QuorumState {
		return false
	}
	for _, q := range schema.Columns(family) {
		if !c.Wants(family, q) {
			return false
		}
	}
	return true
}

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

// clip bounds text from outside that is quoted in an error.
func clip(s string) string {
	const limit = 100
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}
