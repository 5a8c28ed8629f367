package query

import (
	"slices"
	"strings"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
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

// toRead returns what to read for an answer of the asked columns: them, and
// always the digest. It makes a row that has none of the asked cells a row
// nevertheless, so that a lookup finds it and a scan's limit counts every row
// that is read; and the marks of other digests mean nothing without it.
func toRead(asked archive.Columns) archive.Columns {
	if asked.Wants(schema.MessagePublication, schema.ColDigest) {
		return asked
	}
	read := archive.Columns{Qualifiers: slices.Clone(asked.Qualifiers), Latest: asked.Latest}
	if len(read.Qualifiers) == 0 {
		for _, f := range asked.Families {
			read.Qualifiers = append(read.Qualifiers, schema.Columns(f)...)
		}
	}
	read.Qualifiers = append(read.Qualifiers, schema.ColDigest)
	return read
}

// clip bounds text from outside that is quoted in an error.
func clip(s string) string {
	const limit = 100
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}
