package filter

// maxLabel is the longest label in bytes (data.proto, apply_label_transformer).
const maxLabel = 15

// stripValue empties values and keeps all else, labels included.
type stripValue struct{}

func compileStripValue(v bool) (node, traits, error) {
	// False is an error as in pass_all_filter (inferred).
	return stripValue{}, traits{copies: 1, strips: true}, mustBeTrue("strip_value_transformer", v)
}

func (stripValue) step(_ *builder, next step) step { return &stripStep{next: next} }

type stripStep struct {
	next step
	cell Cell
}

func (s *stripStep) push(c *Cell) Skip {
	s.cell = *c
	s.cell.Value = nil
	return s.next.push(&s.cell)
}

// applyLabel labels cells. Validation leaves at most one on a cell's way.
type applyLabel struct{ labels []string }

func compileApplyLabel(label string) (node, traits, error) {
	if !isLabel(label) {
		return nil, traits{}, invalid("apply_label_transformer",
			`must be at most %d characters and match RE2([a-z0-9\-]+), is %q`, maxLabel, label)
	}
	t := cellwise()
	t.label = true
	return applyLabel{[]string{label}}, t, nil
}

func isLabel(s string) bool {
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-') {
			return false
		}
	}
	return 0 < len(s) && len(s) <= maxLabel
}

func (n applyLabel) step(_ *builder, next step) step {
	return &labelStep{next: next, labels: n.labels}
}

type labelStep struct {
	next   step
	labels []string
	cell   Cell
}

func (s *labelStep) push(c *Cell) Skip {
	s.cell = *c
	s.cell.Labels = s.labels
	return s.next.push(&s.cell)
}
