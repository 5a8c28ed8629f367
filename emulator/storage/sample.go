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

// Samples returns those row keys within a range that the table was split at when it
// was made, and last the range's end.
func (e *Engine) Samples(t *Table, r Range) ([]Sample, error) {
	splits := slices.DeleteFunc(slices.Clone(t.Splits), func(row string) bool {
		return row <= r.Start || r.End != "" && row >= r.End
	})
	var out []Sample
	for _, row := range append(splits, r.End) {
		n, err := e.Size(t, Range{Start: r.Start, End: row})
		if err != nil {
			return nil, err
		}
		out = append(out, Sample{Row: row, Offset: int64(n)})
	}
	return out, nil
}

var _ filter.Source = (*cells)(nil)
