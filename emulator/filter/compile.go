package filter

import (
	"fmt"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// compiler walks a filter from the outside in and from left to right.
type compiler struct {
	families func(string) bool // nil: not to be checked
	depth    int               // filters around the present one
	within   bool              // in a condition
	rank     int               // conditions that must be decided before the next one
}

func (c *compiler) compileRoot(f *btpb.RowFilter) (node, traits, error) {
	if f == nil {
		return passAll{}, cellwise(), nil
	}
	if n, ok := bound(f); (!ok || n > MaxSize) && proto.Size(f) > MaxSize {
		return nil, traits{}, status.Errorf(codes.InvalidArgument, "Row filter exceeds maximum size of %d bytes", MaxSize)
	}
	n, t, err := c.compile(f)
	if err == nil && max(t.copies, t.sunk) > MaxCopies {
		err = status.Errorf(codes.InvalidArgument, "Row filter may put out one cell more than %d times", MaxCopies)
	}
	return n, t, err
}

// around is more than what the encoding of a filter puts around what it holds: two
// tags and two lengths.
const around = 16

// bound returns a size that a filter does not exceed, for less than it takes to find
// its size, if it is of the kinds that most are.
func bound(f *btpb.RowFilter) (n int, ok bool) {
	switch k := f.GetFilter().(type) {
	case *btpb.RowFilter_Chain_:
		return boundOf(k.Chain.GetFilters())
	case *btpb.RowFilter_Interleave_:
		return boundOf(k.Interleave.GetFilters())
	case *btpb.RowFilter_FamilyNameRegexFilter:
		return around + len(k.FamilyNameRegexFilter), true
	case *btpb.RowFilter_ColumnQualifierRegexFilter:
		return around + len(k.ColumnQualifierRegexFilter), true
	case *btpb.RowFilter_CellsPerColumnLimitFilter, *btpb.RowFilter_PassAllFilter:
		return around, true
	}
	return 0, false
}

func boundOf(filters []*btpb.RowFilter) (n int, ok bool) {
	n = around
	for _, f := range filters {
		m, ok := bound(f)
		if n += m; !ok || n > MaxSize {
			return 0, false
		}
	}
	return n, true
}

// compile compiles one filter and all within it.
func (c *compiler) compile(f *btpb.RowFilter) (node, traits, error) {
	if c.depth > MaxDepth {
		return nil, traits{}, status.Errorf(codes.InvalidArgument, "Row filter is nested deeper than %d", MaxDepth)
	}
	if len(f.ProtoReflect().GetUnknown()) > 0 {
		return nil, traits{}, status.Error(codes.InvalidArgument, "Row filter is of a kind unknown to this server")
	}
	c.depth++
	defer func() { c.depth-- }()

	switch k := f.GetFilter().(type) {
	case nil:
		return passAll{}, cellwise(), nil
	case *btpb.RowFilter_Chain_:
		return c.chain(k.Chain.GetFilters())
	case *btpb.RowFilter_Interleave_:
		return c.interleave(k.Interleave.GetFilters())
	case *btpb.RowFilter_Condition_:
		return c.condition(k.Condition)
	case *btpb.RowFilter_Sink:
		return c.sink(k.Sink)
	default:
		return c.compileLeaf(f)
	}
}

// compileLeaf compiles a filter that holds no other.
func (c *compiler) compileLeaf(f *btpb.RowFilter) (node, traits, error) {
	switch k := f.GetFilter().(type) {
	case *btpb.RowFilter_PassAllFilter:
		return compilePassAll(k.PassAllFilter)
	case *btpb.RowFilter_BlockAllFilter:
		return compileBlockAll(k.BlockAllFilter)
	case *btpb.RowFilter_RowKeyRegexFilter:
		return compileRowKeyRegex(k.RowKeyRegexFilter)
	case *btpb.RowFilter_RowSampleFilter:
		return compileRowSample(k.RowSampleFilter)
	case *btpb.RowFilter_FamilyNameRegexFilter:
		return c.familyNameRegex(k.FamilyNameRegexFilter)
	case *btpb.RowFilter_ColumnQualifierRegexFilter:
		return compileColumnQualifierRegex(k.ColumnQualifierRegexFilter)
	case *btpb.RowFilter_ColumnRangeFilter:
		return c.columnRange(k.ColumnRangeFilter)
	case *btpb.RowFilter_TimestampRangeFilter:
		return compileTimestampRange(k.TimestampRangeFilter)
	case *btpb.RowFilter_ValueRegexFilter:
		return compileValueRegex(k.ValueRegexFilter)
	case *btpb.RowFilter_ValueRangeFilter:
		return compileValueRange(k.ValueRangeFilter)
	case *btpb.RowFilter_ValueBitmaskFilter:
		return compileValueBitmask(k.ValueBitmaskFilter)
	case *btpb.RowFilter_CellsPerRowOffsetFilter:
		return compileCellsPerRowOffset(k.CellsPerRowOffsetFilter)
	case *btpb.RowFilter_CellsPerRowLimitFilter:
		return compileCellsPerRowLimit(k.CellsPerRowLimitFilter)
	case *btpb.RowFilter_CellsPerColumnLimitFilter:
		return compileCellsPerColumnLimit(k.CellsPerColumnLimitFilter)
	case *btpb.RowFilter_StripValueTransformer:
		return compileStripValue(k.StripValueTransformer)
	case *btpb.RowFilter_ApplyLabelTransformer:
		return compileApplyLabel(k.ApplyLabelTransformer)
	default:
		return nil, traits{}, status.Errorf(codes.InvalidArgument, "Row filter of kind %T is unknown to this server", k)
	}
}

// checkFamily refuses a family that the table lacks.
func (c *compiler) checkFamily(name string) error {
	if c.families == nil || c.families(name) {
		return nil
	}
	return status.Errorf(codes.NotFound, "Requested column family not found: %q", name)
}

// invalid is an error in a field of a filter, worded as production words them.
func invalid(field, format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, "Error in field '%s' : %s", field, fmt.Sprintf(format, args...))
}

// at says that an INVALID_ARGUMENT arose within a field. Other codes keep their
// text, which clients look for.
func at(field string, err error) error {
	s := status.Convert(err)
	if s.Code() != codes.InvalidArgument {
		return err
	}
	return invalid(field, "%s", s.Message())
}

// atElement says that an error arose within an element of a field.
func atElement(field string, i int, err error) error {
	s := status.Convert(err)
	if s.Code() != codes.InvalidArgument {
		return err
	}
	return invalid(field, "Error in element #%d : %s", i, s.Message())
}

// mustBeTrue refuses a false flag: a filter is switched off by leaving it out.
func mustBeTrue(field string, v bool) error {
	if !v {
		return invalid(field, "must be true if set")
	}
	return nil
}
