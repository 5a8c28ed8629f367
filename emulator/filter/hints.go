package filter

import (
	"bytes"
	"slices"
)

// Bounds tell a storage where to look in a row: cells outside of them have no
// part in what a filter puts out, whatever else is in the row, so that a source
// may leave them out. The zero value is all of a row.
type Bounds struct {
	// Families are the only families, ascending; nil is all of them, and an
	// empty list is none.
	Families []string
	// Start and End bound the qualifiers in each family: Start <= qualifier <
	// End. A nil End is no bound. Start >= End is no qualifier.
	Start, End []byte
}

// Bounds returns the bounds of f. The caller does not change them.
func (f *Filter) Bounds() Bounds { return f.traits.bounds }

// ReadsValues reports whether values matter. If not, a source may leave Value
// out of its cells: nothing looks at it, and what comes out has none.
func (f *Filter) ReadsValues() bool { return f.traits.readsValue || !f.traits.strips }

// intersect returns the bounds of what is in both.
func (b Bounds) intersect(other Bounds) Bounds {
	switch {
	case b.Families == nil:
		b.Families = other.Families
	case other.Families != nil:
		both := []string{}
		for _, name := range b.Families {
			if _, ok := slices.BinarySearch(other.Families, name); ok {
				both = append(both, name)
			}
		}
		b.Families = both
	}
	if bytes.Compare(b.Start, other.Start) < 0 {
		b.Start = other.Start
	}
	if b.End == nil || other.End != nil && bytes.Compare(other.End, b.End) < 0 {
		b.End = other.End
	}
	return b
}

// union returns the least bounds that hold both.
func (b Bounds) union(other Bounds) Bounds {
	if b.Families == nil || other.Families == nil {
		b.Families = nil
	} else {
		either := append(slices.Clone(b.Families), other.Families...)
		slices.Sort(either)
		b.Families = slices.Compact(either)
	}
	if bytes.Compare(b.Start, other.Start) > 0 {
		b.Start = other.Start
	}
	if other.End == nil || b.End != nil && bytes.Compare(other.End, b.End) > 0 {
		b.End = other.End
	}
	return b
}

// successor returns the least string greater than b.
func successor(b []byte) []byte { return append(slices.Clone(b), 0) }

// prefixEnd returns the least string greater than all that begin with prefix,
// nil if there is none.
func prefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := slices.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}
