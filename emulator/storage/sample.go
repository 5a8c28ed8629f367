package storage

import (
	"slices"

	"github.com/attestry/attestry/emulator/filter"
)

// Sample is a row key at which a table may be cut.
type Sample struct {
	Row    string // empty for the end of the table
	Offset int64  // about the bytes before it
}

// Samples returns the row keys that the table was split at when it was made, and
// last the end of the table.
func (e *Engine) Samples(t *Table) ([]Sample, error) {
	var out []Sample
	for _, row := range append(slices.Clone(t.Splits), "") {
		n, err := e.Size(t, Range{End: row})
		if err != nil {
			return nil, err
		}
		out = append(out, Sample{Row: row, Offset: int64(n)})
	}
	return out, nil
}

var _ filter.Source = (*cells)(nil)
