package filter

// cellsPerRowOffset drops the first n cells of a row, each duplicate counted.
type cellsPerRowOffset struct{ n int }

func compileCellsPerRowOffset(n int32) (node, traits, error) {
	if n < 0 { // 0 drops nothing (inferred)
		return nil, traits{}, invalid("cells_per_row_offset_filter", "argument must be >= 0, is %d", n)
	}
	return cellsPerRowOffset{int(n)}, traits{copies: 1, countsRow: true}, nil
}

func (n cellsPerRowOffset) step(b *builder, next step) step {
	s := &rowOffsetStep{next: next, offset: n.n}
	b.perPass(s)
	return s
}

type rowOffsetStep struct {
	next   step
	offset int
	seen   int
}

func (s *rowOffsetStep) reset() { s.seen = 0 }

func (s *rowOffsetStep) push(c *Cell) Skip {
	if s.seen < s.offset {
		s.seen++
		return SkipNone
	}
	return s.next.push(c) // from here on nothing is counted
}

// cellsPerRowLimit passes the first n cells of a row, each duplicate counted.
type cellsPerRowLimit struct{ n int }

func compileCellsPerRowLimit(n int32) (node, traits, error) {
	if n <= 0 {
		return nil, traits{}, invalid("cells_per_row_limit_filter", "argument must be > 0, is %d", n)
	}
	return cellsPerRowLimit{int(n)}, traits{copies: 1, countsRow: true}, nil
}

func (n cellsPerRowLimit) step(b *builder, next step) step {
	s := &rowLimitStep{next: next, limit: n.n}
	b.perPass(s)
	return s
}

type rowLimitStep struct {
	next  step
	limit int
	seen  int
}

func (s *rowLimitStep) reset() { s.seen = 0 }

func (s *rowLimitStep) push(c *Cell) Skip {
	if s.seen == s.limit {
		return SkipRow
	}
	s.seen++
	skip := s.next.push(c)
	if s.seen == s.limit {
		return SkipRow
	}
	if skip < SkipRow { // cells that the steps behind drop count here
		return SkipNone
	}
	return skip
}

// cellsPerColumnLimit passes the first n cells of a column, its newest, each
// duplicate counted.
type cellsPerColumnLimit struct{ n int }

func compileCellsPerColumnLimit(n int32) (node, traits, error) {
	if n <= 0 {
		return nil, traits{}, invalid("cells_per_column_limit_filter", "argument must be > 0, is %d", n)
	}
	return cellsPerColumnLimit{int(n)}, cellwise(), nil
}

func (n cellsPerColumnLimit) step(b *builder, next step) step {
	b.e.tracksColumns = true
	return &columnLimitStep{next: next, limit: n.n, e: b.e}
}

type columnLimitStep struct {
	next   step
	limit  int
	e      *Evaluator
	column uint64
	seen   int
}

func (s *columnLimitStep) push(c *Cell) Skip {
	if s.column != s.e.column {
		s.column, s.seen = s.e.column, 0
	}
	if s.seen == s.limit {
		return SkipColumn
	}
	s.seen++
	skip := s.next.push(c)
	if s.seen == s.limit {
		return max(skip, SkipColumn)
	}
	return skip
}
