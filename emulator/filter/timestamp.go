package filter

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// granularity of the timestamps of a filter in microseconds.
const granularity = 1000

// timestampRange passes cells with start <= timestamp < end, in microseconds;
// end 0 is infinity.
type timestampRange struct{ start, end int64 }

// compileTimestampRange refuses what is not in milliseconds, and an inverted
// range (inferred: data.proto says only that the range must be granular).
func compileTimestampRange(f *btpb.TimestampRange) (node, traits, error) {
	const field = "timestamp_range_filter"
	n := &timestampRange{f.GetStartTimestampMicros(), f.GetEndTimestampMicros()}
	for _, bound := range []struct {
		name  string
		value int64
	}{{"start_timestamp_micros", n.start}, {"end_timestamp_micros", n.end}} {
		if bound.value%granularity != 0 {
			return nil, traits{}, invalid(field, "%s must be a multiple of %d, is %d", bound.name, granularity, bound.value)
		}
	}
	if n.end != 0 && n.start > n.end {
		return nil, traits{}, invalid(field, "start_timestamp_micros must not be greater than end_timestamp_micros")
	}
	return n, cellwise(), nil
}

func (n *timestampRange) step(_ *builder, next step) step { return &timestampStep{next, n} }

type timestampStep struct {
	next step
	*timestampRange
}

func (s *timestampStep) push(c *Cell) Skip {
	switch {
	case c.Timestamp < s.start: // what follows in the column is older
		return SkipColumn
	case s.end != 0 && c.Timestamp >= s.end:
		return SkipNone
	default:
		return s.next.push(c)
	}
}
