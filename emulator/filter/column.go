package filter

import (
	"bytes"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/attestry/attestry/emulator/filter/byteregexp"
)

// familyNameRegex passes cells of families whose name matches.
type familyNameRegex struct{ re *byteregexp.Regexp }

func (c *compiler) familyNameRegex(pattern string) (node, traits, error) {
	const field = "family_name_regex_filter"
	if strings.Contains(pattern, ":") {
		return nil, traits{}, invalid(field, "pattern %q must not contain ':'", pattern)
	}
	re, err := compileRegexp(field, []byte(pattern))
	if err != nil {
		return nil, traits{}, err
	}
	t := cellwise()
	if literals, ok := re.Literals(); ok {
		if len(literals) == 1 {
			if err := c.checkFamily(literals[0]); err != nil {
				return nil, traits{}, err
			}
		}
		t.bounds.Families = append([]string{}, literals...)
	}
	return familyNameRegex{re}, t, nil
}

func (n familyNameRegex) step(_ *builder, next step) step {
	return &familyNameStep{next: next, re: n.re}
}

// familyNameStep remembers the last answer: families are few and cells many.
type familyNameStep struct {
	next   step
	re     *byteregexp.Regexp
	known  bool
	family string
	match  bool
	buf    []byte
}

func (s *familyNameStep) push(c *Cell) Skip {
	if !s.known || c.Family != s.family {
		s.buf = append(s.buf[:0], c.Family...)
		s.known, s.family, s.match = true, c.Family, s.re.Match(s.buf)
	}
	if !s.match {
		return SkipFamily
	}
	return s.next.push(c)
}

// columnQualifierRegex passes cells of columns whose qualifier matches.
type columnQualifierRegex struct{ re *byteregexp.Regexp }

func compileColumnQualifierRegex(pattern []byte) (node, traits, error) {
	re, err := compileRegexp("column_qualifier_regex_filter", pattern)
	if err != nil {
		return nil, traits{}, err
	}
	t := cellwise()
	if literals, ok := re.Literals(); ok && len(literals) > 0 {
		t.bounds.Start = []byte(literals[0])
		t.bounds.End = successor([]byte(literals[len(literals)-1]))
	} else if prefix := re.Prefix(); len(prefix) > 0 {
		t.bounds.Start = prefix
		t.bounds.End = prefixEnd(prefix)
	}
	return columnQualifierRegex{re}, t, nil
}

func (n columnQualifierRegex) step(b *builder, next step) step {
	if n.re.Direct() {
		return &columnQualifierStep{next: next, re: n.re}
	}
	b.e.tracksColumns = true
	return &columnQualifierEngineStep{next: next, re: n.re, e: b.e}
}

type columnQualifierStep struct {
	next step
	re   *byteregexp.Regexp
}

func (s *columnQualifierStep) push(c *Cell) Skip {
	if !s.re.Match(c.Qualifier) {
		return SkipColumn
	}
	return s.next.push(c)
}

// columnQualifierEngineStep asks the engine once for each column.
type columnQualifierEngineStep struct {
	next   step
	re     *byteregexp.Regexp
	e      *Evaluator
	column uint64
	match  bool
}

func (s *columnQualifierEngineStep) push(c *Cell) Skip {
	if s.column != s.e.column {
		s.column, s.match = s.e.column, s.re.Match(c.Qualifier)
	}
	if !s.match {
		return SkipColumn
	}
	return s.next.push(c)
}

// columnRange passes cells of a range of columns of one family.
type columnRange struct {
	family string
	byteRange
}

func (c *compiler) columnRange(f *btpb.ColumnRange) (node, traits, error) {
	const field = "column_range_filter"
	n := &columnRange{family: f.GetFamilyName()}
	if n.family == "" {
		return nil, traits{}, invalid(field, "family_name must not be empty")
	}
	switch k := f.GetStartQualifier().(type) {
	case *btpb.ColumnRange_StartQualifierClosed:
		n.start = k.StartQualifierClosed
	case *btpb.ColumnRange_StartQualifierOpen:
		n.start, n.startOpen = k.StartQualifierOpen, true
	}
	switch k := f.GetEndQualifier().(type) {
	case *btpb.ColumnRange_EndQualifierClosed:
		n.end = k.EndQualifierClosed
	case *btpb.ColumnRange_EndQualifierOpen:
		n.end, n.endOpen = k.EndQualifierOpen, true
	}
	n.bounded = len(n.end) > 0 // an empty end is infinity, open or closed (inferred)
	if n.inverted() {
		return nil, traits{}, invalid(field, "start_qualifier must not be greater than end_qualifier")
	}
	if err := c.checkFamily(n.family); err != nil {
		return nil, traits{}, err
	}
	t := cellwise()
	t.bounds.Families = []string{n.family}
	t.bounds.Start, t.bounds.End = n.halfOpen()
	return n, t, nil
}

func (n *columnRange) step(_ *builder, next step) step { return &columnRangeStep{next, n} }

type columnRangeStep struct {
	next step
	*columnRange
}

func (s *columnRangeStep) push(c *Cell) Skip {
	switch {
	case c.Family != s.family, s.isAfter(c.Qualifier):
		return SkipFamily
	case s.isBefore(c.Qualifier):
		return SkipColumn
	default:
		return s.next.push(c)
	}
}

// byteRange is a range of byte strings. Start > end is an error of the filters
// that have one (inferred); an empty range with start = end is none and matches
// nothing, unless both ends are closed.
type byteRange struct {
	start, end         []byte
	startOpen, endOpen bool
	bounded            bool // end counts
}

func (r *byteRange) inverted() bool { return r.bounded && bytes.Compare(r.start, r.end) > 0 }

func (r *byteRange) isBefore(b []byte) bool {
	c := bytes.Compare(b, r.start)
	return c < 0 || c == 0 && r.startOpen
}

func (r *byteRange) isAfter(b []byte) bool {
	if !r.bounded {
		return false
	}
	c := bytes.Compare(b, r.end)
	return c > 0 || c == 0 && r.endOpen
}

// halfOpen returns the range as [start, end); a nil end is none.
func (r *byteRange) halfOpen() (start, end []byte) {
	start, end = r.start, r.end
	if r.startOpen {
		start = successor(start)
	}
	switch {
	case !r.bounded:
		return start, nil
	case !r.endOpen:
		end = successor(end)
	}
	return start, end
}
