package filter

import (
	"bytes"
	"math/rand/v2"
)

// Evaluator runs a filter over rows, one after another. It is for one
// goroutine. Once warm it allocates nothing for a row.
type Evaluator struct {
	root   step
	output step
	random func() float64
	passes int

	starters  []starter
	resetters []resetter
	gates     []*gateStep // that every cell must pass

	in      Source
	pass    int  // passes: the one that yields; less: one that decides conditions
	skip    Skip // of the last cell
	done    bool
	pending []Cell // what came of the last cell
	next    int    // in pending

	tracksColumns bool   // a step asks for column
	column        uint64 // number of the present column, never used again
	inColumn      bool   // family and qualifier are those of the column
	family        string
	qualifier     []byte
}

// starter is a step that decides something once for a row.
type starter interface{ begin(key []byte) }

// resetter is a step that counts, anew in each pass.
type resetter interface{ reset() }

// NewEvaluator makes an evaluator of f. random draws the numbers in [0, 1) of
// row samples; nil is the generator of math/rand/v2.
func (f *Filter) NewEvaluator(random func() float64) *Evaluator {
	if random == nil {
		random = rand.Float64
	}
	e := &Evaluator{random: random, passes: f.passes, done: true}
	e.output = &outputStep{e}
	e.root = f.root.step(&builder{e: e, branches: f.traits.sink}, e.output)
	return e
}

// Reset begins a row. The evaluator reads in until the next Reset; it does not
// keep key.
func (e *Evaluator) Reset(key []byte, in Source) {
	e.in = in
	for _, s := range e.starters {
		s.begin(key)
	}
	e.pending, e.next = e.pending[:0], 0
	e.pass = 0
	e.startPass()
	e.done = false
	for _, g := range e.gates {
		e.done = e.done || !g.open
	}
}

func (e *Evaluator) startPass() {
	e.skip = SkipNone
	e.inColumn = false
	for _, s := range e.resetters {
		s.reset()
	}
}

// Next returns the next cell that the filter puts out, nil at the end of the
// row, in the order of a Source; cells of the same column and timestamp, which
// interleaves and sinks make, are in no particular order. The cell is valid
// until the next call of Next or Reset. Errors are the source's, and final.
//
// A row that the row key or a sample rules out is ended before its source is
// read. Who wants to know only whether there is a cell calls Next once.
func (e *Evaluator) Next() (*Cell, error) {
	for {
		if e.next < len(e.pending) {
			e.next++
			return &e.pending[e.next-1], nil
		}
		if e.done {
			return nil, nil
		}
		e.pending, e.next = e.pending[:0], 0
		c, err := e.in.Next(e.skip)
		if err != nil {
			e.done = true
			return nil, err
		}
		if c != nil {
			if e.tracksColumns {
				e.track(c)
			}
			e.skip = e.root.push(c)
		}
		if c == nil || e.skip == SkipRow {
			if err := e.endPass(); err != nil {
				return nil, err
			}
		}
	}
}

// endPass begins the row again if this was not the pass that yields.
func (e *Evaluator) endPass() error {
	if e.pass == e.passes {
		e.done = true
		return nil
	}
	if err := e.in.Rewind(); err != nil {
		e.done = true
		return err
	}
	e.pass++
	e.startPass()
	return nil
}

// track numbers columns.
func (e *Evaluator) track(c *Cell) {
	if e.inColumn && c.Family == e.family && bytes.Equal(c.Qualifier, e.qualifier) {
		return
	}
	e.column++
	e.inColumn = true
	e.family = c.Family
	e.qualifier = append(e.qualifier[:0], c.Qualifier...)
}

// outputStep is the end of the filter. In a pass that decides conditions it
// wants nothing.
type outputStep struct{ e *Evaluator }

func (s *outputStep) push(c *Cell) Skip {
	if s.e.pass < s.e.passes {
		return SkipRow
	}
	s.e.pending = append(s.e.pending, *c)
	return SkipNone
}

// builder makes the steps of an evaluator.
type builder struct {
	e        *Evaluator
	branches bool // in a branch, or with sinks: a closed gate does not end the row
}

func (b *builder) perRow(s starter) { b.e.starters = append(b.e.starters, s) }

func (b *builder) perPass(s resetter) { b.e.resetters = append(b.e.resetters, s) }

// gate makes a step that passes a row or nothing.
func (b *builder) gate(next step, passes func(key []byte) bool) step {
	s := &gateStep{next: next, passes: passes}
	b.perRow(s)
	if !b.branches {
		b.e.gates = append(b.e.gates, s)
	}
	return s
}

// branch says that what is built until the returned function is called is one
// of several ways through the filter.
func (b *builder) branch() (leave func()) {
	before := b.branches
	b.branches = true
	return func() { b.branches = before }
}
