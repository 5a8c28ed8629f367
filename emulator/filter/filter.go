// Package filter evaluates Cloud Bigtable row filters.
//
// Compile validates and compiles a google.bigtable.v2.RowFilter once for each
// request; an Evaluator then runs it over one row after another. A row streams
// through cell by cell and is never held: the evaluator tells its source what
// it need not deliver (Skip), and stops asking when nothing more can come out,
// so that the existence check of a row with a million versions reads one cell.
//
// Where a filter lives:
//
//	compose.go    chain, interleave, sink
//	condition.go  condition
//	row.go        pass_all, block_all, row_key_regex, row_sample
//	column.go     family_name_regex, column_qualifier_regex, column_range
//	timestamp.go  timestamp_range
//	value.go      value_regex, value_range, value_bitmask
//	count.go      cells_per_row_offset, cells_per_row_limit, cells_per_column_limit
//	transform.go  strip_value_transformer, apply_label_transformer
//
// The contract is google/bigtable/v2/data.proto. What it leaves open is decided
// beside each filter and marked "inferred".
package filter

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// Bounds of a filter.
const (
	// MaxSize is the largest serialized filter in bytes (data.proto, RowFilter).
	MaxSize = 20480
	// MaxDepth is how many filters may enclose one (data.proto, RowFilter).
	// Conditions count as chains and interleaves do (inferred).
	MaxDepth = 20
	// MaxCopies is how many copies of one cell a filter may make on its way, and
	// how many of them may go to sinks: a chain of interleaves multiplies them.
	// Bigtable documents no such bound; this one is ours and keeps 20 KiB of
	// filter from filling the memory. One interleave of filters that do anything
	// cannot reach it.
	MaxCopies = 10_000
)

// Cell is one cell of a row on its way through filters. It is owned by the
// Source or Evaluator that returned it and valid until the next call of its
// Next; who wants to keep it copies the bytes. Nobody changes it.
type Cell struct {
	Family    string
	Qualifier []byte
	Timestamp int64 // microseconds
	Value     []byte
	Labels    []string // empty in cells of a source
}

// Skip tells a Source which cells after the one that it returned last are of no
// interest. Greater values include lesser ones.
type Skip uint8

// The values of Skip.
const (
	SkipNone   Skip = iota // nothing
	SkipColumn             // the rest of the column
	SkipFamily             // the rest of the family
	SkipRow                // the rest of the row; an Evaluator then asks no more instead
)

// Source yields the cells of one row: families ascending by bytes, in each
// qualifiers ascending by bytes, in each timestamps descending.
type Source interface {
	// Next returns the next cell, nil at the end of the row. A source may
	// deliver cells that it was told to skip; it must not leave out others.
	Next(Skip) (*Cell, error)
	// Rewind goes back to before the first cell of the row, whose cells must be
	// the same again. Only filters with conditions ask for it, once for each
	// level of conditions, so that they need not hold the row.
	Rewind() error
}

// Filter is a compiled row filter. It is immutable and safe for concurrent use.
type Filter struct {
	root   node
	traits traits
	passes int // of a row that decide conditions, before the one that yields
}

// Compile compiles f; nil passes every cell. All of f is validated. Errors are
// gRPC statuses, INVALID_ARGUMENT with a text that names the filter and where
// it stands.
//
// families tells whether the table has a family. If it is not nil, a filter
// that names a family that the table lacks (a column_range, or a
// family_name_regex that is a literal) is NOT_FOUND "Requested column family
// not found", as reads in production answer (seen for a family_name_regex at
// the top; inferred for the rest).
func Compile(f *btpb.RowFilter, families func(string) bool) (*Filter, error) {
	c := compiler{families: families}
	root, traits, err := c.compileRoot(f)
	if err != nil {
		return nil, err
	}
	return &Filter{root: root, traits: traits, passes: c.rank}, nil
}

// node is one filter of a compiled tree.
type node interface {
	// step makes the filter's state for one evaluator: a step that hands what
	// it puts out to next.
	step(b *builder, next step) step
}

// step is a filter at work on one row.
type step interface {
	// push takes a cell, hands on what comes of it before it returns, and
	// returns the most that may be skipped after the cell: what would put out
	// nothing any more, here and in all steps behind. The cell is valid during
	// the call.
	push(c *Cell) Skip
}

// traits are what is known of a filter without a row.
type traits struct {
	copies     int  // most cells that one cell becomes, at least 1
	sunk       int  // most cells of these that one cell sends to sinks
	label      bool // holds an apply_label_transformer
	sink       bool // holds a sink
	condition  bool // holds a condition
	countsRow  bool // counts cells over the row, so that it must see all before a limit
	readsValue bool // looks at values, or puts them out through a sink
	strips     bool // all that it puts out has no value
	bounds     Bounds
}

// cellwise are the traits of a filter that keeps, drops or changes single cells.
func cellwise() traits { return traits{copies: 1} }

// holds is the least skip of the steps behind a filter that may pass it: a
// filter that counts cells must see those that later steps drop, and a sink
// and a condition have wishes of their own.
func (t traits) holds() Skip {
	switch {
	case t.sink, t.condition:
		return SkipRow + 1
	case t.countsRow:
		return SkipRow
	default:
		return SkipNone
	}
}

// opaque reports whether what steps behind a filter drop may matter to it.
func (t traits) opaque() bool { return t.holds() != SkipNone }
