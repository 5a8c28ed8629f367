package filter

import (
	"math"

	"github.com/attestry/attestry/emulator/filter/byteregexp"
)

// passAll passes every cell. So does a filter with nothing set.
type passAll struct{}

func compilePassAll(v bool) (node, traits, error) {
	return passAll{}, cellwise(), mustBeTrue("pass_all_filter", v)
}

func (passAll) step(_ *builder, next step) step { return next }

// blockAll passes no cell.
type blockAll struct{}

func compileBlockAll(v bool) (node, traits, error) {
	return blockAll{}, traits{copies: 1, strips: true}, mustBeTrue("block_all_filter", v)
}

func (blockAll) step(b *builder, next step) step {
	return b.gate(next, func([]byte) bool { return false })
}

// rowKeyRegex passes rows whose key matches.
type rowKeyRegex struct{ re *byteregexp.Regexp }

func compileRowKeyRegex(pattern []byte) (node, traits, error) {
	const field = "row_key_regex_filter"
	if len(pattern) == 0 {
		return nil, traits{}, invalid(field, "argument must not be empty")
	}
	re, err := compileRegexp(field, pattern)
	return rowKeyRegex{re}, cellwise(), err
}

func (n rowKeyRegex) step(b *builder, next step) step { return b.gate(next, n.re.Match) }

// rowSample passes a row with a probability. Two samples in one filter draw
// independently.
type rowSample struct{ probability float64 }

func compileRowSample(p float64) (node, traits, error) {
	if math.IsNaN(p) || p <= 0 || p >= 1 {
		return nil, traits{}, invalid("row_sample_filter", "argument must be > 0 and < 1, is %v", p)
	}
	return rowSample{p}, cellwise(), nil
}

func (n rowSample) step(b *builder, next step) step {
	return b.gate(next, func([]byte) bool { return b.e.random() < n.probability })
}

// gateStep passes all of a row or nothing.
type gateStep struct {
	next   step
	passes func(key []byte) bool
	open   bool
}

func (s *gateStep) begin(key []byte) { s.open = s.passes(key) }

func (s *gateStep) push(c *Cell) Skip {
	if !s.open {
		return SkipRow
	}
	return s.next.push(c)
}

// compileRegexp compiles the pattern of a filter.
func compileRegexp(field string, pattern []byte) (*byteregexp.Regexp, error) {
	re, err := byteregexp.Compile(pattern)
	if err != nil {
		return nil, invalid(field, "invalid RE2 pattern %q: %v", pattern, err)
	}
	return re, nil
}
