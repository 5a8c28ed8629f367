package filter

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// valueFilter passes cells whose value matches.
type valueFilter struct{ match func([]byte) bool }

func newValueFilter(match func([]byte) bool) (node, traits, error) {
	t := cellwise()
	t.readsValue = true
	return valueFilter{match}, t, nil
}

func (n valueFilter) step(_ *builder, next step) step { return &valueStep{next, n.match} }

type valueStep struct {
	next  step
	match func([]byte) bool
}

func (s *valueStep) push(c *Cell) Skip {
	if !s.match(c.Value) {
		return SkipNone
	}
	return s.next.push(c)
}

func compileValueRegex(pattern []byte) (node, traits, error) {
	re, err := compileRegexp("value_regex_filter", pattern)
	if err != nil {
		return nil, traits{}, err
	}
	return newValueFilter(re.Match)
}

func compileValueRange(f *btpb.ValueRange) (node, traits, error) {
	r := &byteRange{}
	switch k := f.GetStartValue().(type) {
	case *btpb.ValueRange_StartValueClosed:
		r.start = k.StartValueClosed
	case *btpb.ValueRange_StartValueOpen:
		r.start, r.startOpen = k.StartValueOpen, true
	}
	switch k := f.GetEndValue().(type) {
	case *btpb.ValueRange_EndValueClosed:
		r.end, r.bounded = k.EndValueClosed, true
	case *btpb.ValueRange_EndValueOpen:
		// An empty open end is infinity, as in row ranges (inferred).
		r.end, r.endOpen, r.bounded = k.EndValueOpen, true, len(k.EndValueOpen) > 0
	}
	if r.inverted() {
		return nil, traits{}, invalid("value_range_filter", "start_value must not be greater than end_value")
	}
	return newValueFilter(func(v []byte) bool { return !r.isBefore(v) && !r.isAfter(v) })
}

// compileValueBitmask compiles (value & mask) == mask. Values of another length
// do not match, so that an empty mask matches empty values only.
func compileValueBitmask(f *btpb.ValueBitmask) (node, traits, error) {
	mask := f.GetMask()
	return newValueFilter(func(v []byte) bool {
		if len(v) != len(mask) {
			return false
		}
		for i, m := range mask {
			if v[i]&m != m {
				return false
			}
		}
		return true
	})
}
