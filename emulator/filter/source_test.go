package filter

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rowSource yields the cells of a slice. It is as strict as a source may be: it
// leaves out all that it was told to skip and all outside of bounds, and spoils
// the last cell at the next call.
type rowSource struct {
	cells    []Cell
	obeys    bool    // leaves out what may be left out
	bounds   *Bounds // of the filter
	noValues bool    // the filter does not read values

	at      int
	last    *Cell
	out     Cell
	calls   int
	rewinds int
	skips   []Skip
}

func (s *rowSource) Rewind() error {
	s.at, s.last = 0, nil
	s.rewinds++
	return nil
}

func (s *rowSource) Next(skip Skip) (*Cell, error) {
	s.calls++
	s.skips = append(s.skips, skip)
	for i := range s.out.Qualifier {
		s.out.Qualifier[i] = '#'
	}
	for i := range s.out.Value {
		s.out.Value[i] = '#'
	}
	last := s.last
	for ; s.at < len(s.cells); s.at++ {
		c := &s.cells[s.at]
		if s.obeys && (skipped(skip, last, c) || s.outside(c)) {
			continue
		}
		s.at++
		s.last = c
		s.out = Cell{Family: c.Family, Qualifier: slices.Clone(c.Qualifier), Timestamp: c.Timestamp}
		if !s.noValues {
			s.out.Value = slices.Clone(c.Value)
		}
		return &s.out, nil
	}
	return nil, nil
}

func skipped(skip Skip, last, c *Cell) bool {
	switch {
	case last == nil || skip == SkipNone:
		return false
	case skip == SkipColumn:
		return c.Family == last.Family && bytes.Equal(c.Qualifier, last.Qualifier)
	case skip == SkipFamily:
		return c.Family == last.Family
	default:
		return true
	}
}

func (s *rowSource) outside(c *Cell) bool {
	return s.bounds != nil && (s.bounds.Families != nil && !slices.Contains(s.bounds.Families, c.Family) ||
		bytes.Compare(c.Qualifier, s.bounds.Start) < 0 ||
		s.bounds.End != nil && bytes.Compare(c.Qualifier, s.bounds.End) >= 0)
}

// fataler is a testing.TB or a rapid.T.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// evaluate returns what e puts out for a row.
func evaluate(t fataler, e *Evaluator, key []byte, in Source) []Cell {
	t.Helper()
	e.Reset(key, in)
	cells := []Cell{}
	for {
		c, err := e.Next()
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			return cells
		}
		cells = append(cells, Cell{
			c.Family, append([]byte{}, c.Qualifier...), c.Timestamp, append([]byte{}, c.Value...), slices.Clone(c.Labels),
		})
	}
}

func comparePosition(a, b *Cell) int {
	if c := strings.Compare(a.Family, b.Family); c != 0 {
		return c
	}
	if c := bytes.Compare(a.Qualifier, b.Qualifier); c != 0 {
		return c
	}
	return int(min(1, max(-1, b.Timestamp-a.Timestamp)))
}

// parseCells reads lines "family:qualifier timestamp value"; qualifier and value
// are bare words or Go strings.
func parseCells(t testing.TB, text string) []Cell {
	t.Helper()
	var cells []Cell
	for line := range strings.Lines(text) {
		family, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		qualifier, rest := cutWord(t, rest)
		timestamp, rest := cutWord(t, rest)
		value, rest := cutWord(t, rest)
		micros, err := strconv.ParseInt(timestamp, 10, 64)
		if err != nil || !ok || rest != "" {
			t.Fatalf("cell %q: not \"family:qualifier timestamp value\"", line)
		}
		cells = append(cells, Cell{Family: family, Qualifier: []byte(qualifier), Timestamp: micros, Value: []byte(value)})
	}
	if !slices.IsSortedFunc(cells, func(a, b Cell) int { return comparePosition(&a, &b) }) {
		t.Fatalf("cells of a row are not in its order:\n%s", text)
	}
	return cells
}

func cutWord(t testing.TB, s string) (word, rest string) {
	t.Helper()
	if quoted, err := strconv.QuotedPrefix(s); err == nil {
		if word, err = strconv.Unquote(quoted); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		return word, strings.TrimPrefix(s[len(quoted):], " ")
	}
	word, rest, _ = strings.Cut(s, " ")
	return word, rest
}

// formatCells is the inverse of parseCells, with labels.
func formatCells(cells []Cell) string {
	var b strings.Builder
	for _, c := range cells {
		fmt.Fprintf(&b, "%s:%s %d %s", c.Family, formatWord(c.Qualifier), c.Timestamp, formatWord(c.Value))
		if len(c.Labels) > 0 {
			fmt.Fprintf(&b, " labels=%s", strings.Join(c.Labels, ","))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func formatWord(b []byte) string {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return strconv.QuoteToASCII(string(b))
		}
	}
	if len(b) == 0 {
		return `""`
	}
	return string(b)
}
