package filter

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// chain hands what each filter puts out to the next.
type chain []node

func (c *compiler) chain(filters []*btpb.RowFilter) (node, traits, error) {
	if len(filters) < 2 {
		return nil, traits{}, invalid("chain", "must contain at least two filters")
	}
	nodes := make(chain, 0, len(filters))
	all := cellwise()
	for i, f := range filters {
		n, t, err := c.compile(f)
		if err != nil {
			return nil, traits{}, atElement("chain", i, err)
		}
		if all.label && t.label {
			return nil, traits{}, atElement("chain", i,
				invalid("apply_label_transformer", "only one element of a chain may contain one"))
		}
		nodes = append(nodes, n)
		all = all.then(t)
	}
	return nodes, all, nil
}

// then returns the traits of a chain of t and next.
func (t traits) then(next traits) traits {
	if !t.opaque() {
		t.bounds = t.bounds.intersect(next.bounds)
	}
	t.sunk = capCopies(t.sunk + t.copies*next.sunk)
	t.copies = capCopies(t.copies * next.copies)
	t.readsValue = t.readsValue || !t.strips && next.readsValue
	t.strips = t.strips || next.strips
	t.label = t.label || next.label
	t.sink = t.sink || next.sink
	t.condition = t.condition || next.condition
	t.countsRow = t.countsRow || next.countsRow
	return t
}

// beside returns the traits of t and other on copies of the same row, except
// copies, which depend on whether both put out.
func (t traits) beside(other traits) traits {
	t.bounds = t.bounds.union(other.bounds)
	t.readsValue = t.readsValue || other.readsValue
	t.strips = t.strips && other.strips
	t.label = t.label || other.label
	t.sink = t.sink || other.sink
	t.condition = t.condition || other.condition
	t.countsRow = t.countsRow || other.countsRow
	return t
}

// capCopies keeps numbers of copies from overflowing.
func capCopies(n int) int { return min(n, MaxCopies+1) }

func (nodes chain) step(b *builder, next step) step {
	for i := len(nodes) - 1; i >= 0; i-- {
		next = nodes[i].step(b, next)
	}
	return next
}

// interleave gives each branch a copy of the row and puts out all that they put
// out, duplicates included, in the order of rows. Since every step hands on a
// cell's offspring before it takes the next cell, the offspring of one cell
// stand together, in the order of the branches.
type interleave struct {
	branches []node
	holds    Skip
}

func (c *compiler) interleave(filters []*btpb.RowFilter) (node, traits, error) {
	if len(filters) < 2 {
		return nil, traits{}, invalid("interleave", "must contain at least two filters")
	}
	n := &interleave{}
	var all traits
	rank, last := c.rank, c.rank
	for i, f := range filters {
		c.rank = rank
		branch, t, err := c.compile(f)
		if err != nil {
			return nil, traits{}, atElement("interleave", i, err)
		}
		last = max(last, c.rank)
		n.branches = append(n.branches, branch)
		if i == 0 {
			all = t
			continue
		}
		all.copies, all.sunk = capCopies(all.copies+t.copies), capCopies(all.sunk+t.sunk)
		all = all.beside(t)
	}
	c.rank = last
	n.holds = all.holds()
	return n, all, nil
}

func (n *interleave) step(b *builder, next step) step {
	s := &interleaveStep{join: joinStep{next: next}, holds: n.holds}
	defer b.branch()()
	for _, branch := range n.branches {
		s.branches = append(s.branches, branch.step(b, &s.join))
	}
	return s
}

type interleaveStep struct {
	branches []step
	join     joinStep
	holds    Skip
}

func (s *interleaveStep) push(c *Cell) Skip {
	s.join.skip = SkipNone
	skip := SkipRow
	for _, branch := range s.branches {
		skip = min(skip, branch.push(c))
	}
	// What no branch wants may be skipped, and what the step behind does not
	// want, unless a branch has reasons to see it all the same.
	if s.join.skip >= s.holds {
		skip = max(skip, s.join.skip)
	}
	return skip
}

// joinStep is where branches meet. It keeps what the step behind said.
type joinStep struct {
	next step
	skip Skip
}

func (s *joinStep) push(c *Cell) Skip {
	skip := s.next.push(c)
	s.skip = max(s.skip, skip)
	return skip
}

// sink puts cells straight into the final output, past all filters around it.
type sink struct{}

func (c *compiler) sink(v bool) (node, traits, error) {
	if err := mustBeTrue("sink", v); err != nil { // false is an error as in pass_all_filter (inferred)
		return nil, traits{}, err
	}
	if c.within {
		return nil, traits{}, invalid("sink", "must not be used within a condition")
	}
	return sink{}, traits{copies: 1, sunk: 1, sink: true, readsValue: true, strips: true}, nil
}

func (sink) step(b *builder, _ step) step { return b.e.output }
