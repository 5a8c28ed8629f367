package filter

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// condition evaluates one of two filters on the row, by whether a third puts
// out any cell of it.
//
// Which of the two is decided before anything is put out: the evaluator reads
// the row once for each rank of conditions, as far as that needs, and in each
// pass the conditions of that rank show their input to their predicates. A
// condition's rank is the number of those that its input or its predicate
// depends on.
type condition struct {
	rank      int
	predicate node
	yes, no   node // nil: no cells
}

func (c *compiler) condition(f *btpb.RowFilter_Condition) (node, traits, error) {
	within := c.within
	c.within = true
	defer func() { c.within = within }()

	n := &condition{}
	branch := func(field string, f *btpb.RowFilter, absent node) (node, traits, error) {
		if f == nil {
			return absent, traits{copies: 1, strips: absent == nil}, nil
		}
		n, t, err := c.compile(f)
		if err != nil {
			return nil, traits{}, at("condition", at(field, err))
		}
		return n, t, nil
	}
	var predicate, yes, no traits
	var err error
	// An absent predicate asks whether the input has a cell (inferred; the
	// field has no documented default).
	if n.predicate, predicate, err = branch("predicate_filter", f.GetPredicateFilter(), passAll{}); err != nil {
		return nil, traits{}, err
	}
	n.rank = c.rank
	after := n.rank + 1
	c.rank = after
	if n.yes, yes, err = branch("true_filter", f.GetTrueFilter(), nil); err != nil {
		return nil, traits{}, err
	}
	last := c.rank
	c.rank = after
	if n.no, no, err = branch("false_filter", f.GetFalseFilter(), nil); err != nil {
		return nil, traits{}, err
	}
	c.rank = max(last, c.rank)
	return n, conditionTraits(predicate, yes, no, n.yes == nil, n.no == nil), nil
}

func conditionTraits(predicate, yes, no traits, noYes, noNo bool) traits {
	branches := yes
	switch {
	case noYes:
		branches = no
	case !noNo:
		branches = yes.beside(no)
	}
	t := branches.beside(predicate)
	t.strips = branches.strips
	t.copies = max(predicate.copies, yes.copies, no.copies)
	t.condition = true
	return t
}

func (n *condition) step(b *builder, next step) step {
	s := &conditionStep{e: b.e, rank: n.rank}
	defer b.branch()()
	s.predicate = n.predicate.step(b, &foundStep{s})
	if n.yes != nil {
		s.yes = n.yes.step(b, next)
	}
	if n.no != nil {
		s.no = n.no.step(b, next)
	}
	b.perRow(s)
	return s
}

type conditionStep struct {
	e         *Evaluator
	rank      int
	predicate step
	yes, no   step // nil: no cells
	met       bool
}

func (s *conditionStep) begin([]byte) { s.met = false }

func (s *conditionStep) push(c *Cell) Skip {
	if s.e.pass <= s.rank {
		// In a pass before its own, what is in the predicate may be due.
		if skip := s.predicate.push(c); !s.met {
			return skip
		}
		return SkipRow
	}
	branch := s.no
	if s.met {
		branch = s.yes
	}
	if branch == nil {
		return SkipRow
	}
	return branch.push(c)
}

// foundStep is what a predicate puts its cells out to.
type foundStep struct{ condition *conditionStep }

func (s *foundStep) push(*Cell) Skip {
	if s.condition.e.pass == s.condition.rank {
		s.condition.met = true
	}
	return SkipRow
}
