package data

import (
	"math"
	"strconv"
	"unicode/utf8"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/emulator/storage"
)

// Limits of production (google/bigtable/v2/data.proto and bigtable.proto, and the
// documentation's page on quotas).
const (
	maxRowKey    = 4 << 10
	maxQualifier = 16 << 10
	maxValue     = 100 << 20
	maxRow       = 256 << 20 // that can be read at once
	maxMutations = 100_000   // in one request
	maxRules     = 100_000   // of a ReadModifyWriteRow
)

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func checkRowKey(key []byte) error {
	switch {
	case len(key) == 0:
		return invalid("Row keys must be non-empty")
	case len(key) > maxRowKey:
		return invalid("Row key is %d bytes long; the limit is %d", len(key), maxRowKey)
	}
	return nil
}

// checkMutations validates mutations of one row completely, so that nothing is
// written of a row that is refused.
func checkMutations(t *storage.Table, row []byte, mutations []*btpb.Mutation) error {
	if err := checkRowKey(row); err != nil {
		return err
	}
	for i, m := range mutations {
		if err := checkMutation(t, row, m); err != nil {
			s := status.Convert(err)
			return status.Errorf(s.Code(), "Error in field 'Mutation list' : Error in element #%d : %s", i, s.Message())
		}
	}
	return nil
}

func checkMutation(t *storage.Table, row []byte, m *btpb.Mutation) error {
	switch m := m.GetMutation().(type) {
	case *btpb.Mutation_SetCell_:
		return checkSetCell(t, row, m.SetCell)
	case *btpb.Mutation_AddToCell_:
		c := m.AddToCell
		if _, ok := c.GetInput().GetKind().(*btpb.Value_IntValue); !ok {
			return invalid("AddToCell needs an input of kind int_value")
		}
		return checkAggregate(t, row, c.GetFamilyName(), c.GetColumnQualifier(), c.GetTimestamp())
	case *btpb.Mutation_MergeToCell_:
		c := m.MergeToCell
		if raw, ok := c.GetInput().GetKind().(*btpb.Value_RawValue); !ok || len(raw.RawValue) != 8 {
			return invalid("MergeToCell needs an input of kind raw_value with 8 bytes, the state of an int64 aggregate")
		}
		return checkAggregate(t, row, c.GetFamilyName(), c.GetColumnQualifier(), c.GetTimestamp())
	case *btpb.Mutation_DeleteFromColumn_:
		d := m.DeleteFromColumn
		if _, err := familyOf(t, row, d.GetFamilyName()); err != nil {
			return err
		}
		if err := checkQualifier(d.GetColumnQualifier()); err != nil {
			return err
		}
		return checkTimeRange(t, d.GetTimeRange())
	case *btpb.Mutation_DeleteFromFamily_:
		_, err := familyOf(t, row, m.DeleteFromFamily.GetFamilyName())
		return err
	case *btpb.Mutation_DeleteFromRow_:
		return nil
	case nil:
		return invalid("No mutation is set")
	}
	return status.Errorf(codes.Unimplemented, "mutation of kind %T is not offered", m.GetMutation())
}

func checkSetCell(t *storage.Table, row []byte, c *btpb.Mutation_SetCell) error {
	f, err := familyOf(t, row, c.GetFamilyName())
	if err != nil {
		return err
	}
	if aggregateOf(f) != nil {
		return invalid("SetCell cannot be used on the aggregate family %q; use AddToCell or MergeToCell", f.Name)
	}
	if err := checkQualifier(c.GetColumnQualifier()); err != nil {
		return err
	}
	if n := len(c.GetValue()); n > maxValue {
		return invalid("Cell value is %d bytes long; the limit is %d", n, maxValue)
	}
	if c.GetTimestampMicros() == serverTime {
		return nil
	}
	return checkTimestamp(t, c.GetTimestampMicros())
}

func checkAggregate(t *storage.Table, row []byte, family string, qualifier, timestamp *btpb.Value) error {
	f, err := familyOf(t, row, family)
	if err != nil {
		return err
	}
	if aggregateOf(f) == nil {
		return invalid("Family %q is not of an aggregate type that is offered (sum, min, max of int64)", f.Name)
	}
	q, ok := qualifier.GetKind().(*btpb.Value_RawValue)
	if !ok {
		return invalid("The column qualifier must be of kind raw_value")
	}
	if err := checkQualifier(q.RawValue); err != nil {
		return err
	}
	at, ok := timestamp.GetKind().(*btpb.Value_RawTimestampMicros)
	if !ok {
		return invalid("The timestamp must be of kind raw_timestamp_micros")
	}
	return checkTimestamp(t, at.RawTimestampMicros)
}

func checkQualifier(q []byte) error {
	if len(q) > maxQualifier {
		return invalid("Column qualifier is %d bytes long; the limit is %d", len(q), maxQualifier)
	}
	return nil
}

// serverTime stands for the time at which the server writes a cell.
const serverTime = -1

func checkTimestamp(t *storage.Table, micros int64) error {
	if micros < 0 {
		return invalid("Timestamp %d is negative; only -1, which stands for the server's time, may be", micros)
	}
	if !inMicros(t) && micros%1000 != 0 {
		return invalid("Timestamp granularity mismatch. Expected a multiple of 1000 (millisecond granularity), but got %d", micros)
	}
	return nil
}

// inMicros reports whether a table has timestamps to the microsecond.
func inMicros(t *storage.Table) bool {
	return t.Def.GetGranularity() != adminpb.Table_MILLIS && t.Def.GetGranularity() != adminpb.Table_TIMESTAMP_GRANULARITY_UNSPECIFIED
}

func checkTimeRange(t *storage.Table, r *btpb.TimestampRange) error {
	start, end := r.GetStartTimestampMicros(), r.GetEndTimestampMicros()
	for _, micros := range []int64{start, end} {
		if err := checkTimestamp(t, micros); err != nil && !(micros == end && end == math.MaxInt64) {
			return err
		}
	}
	if end != 0 && start > end {
		return invalid("Timestamp range starts at %d, after its end %d", start, end)
	}
	return nil
}

func familyOf(t *storage.Table, row []byte, name string) (*storage.Family, error) {
	if f := t.Family(name); f != nil {
		return f, nil
	}
	return nil, status.Errorf(codes.NotFound, "Error while mutating the row %s (%s) : Requested column family not found. Family %q is not one of the table's", quoted(row), t.Name(), name)
}

// quoted shows a row key, which may be no text, in a message.
func quoted(row []byte) string {
	row = row[:min(len(row), 100)]
	if utf8.Valid(row) {
		return "'" + string(row) + "'"
	}
	return strconv.QuoteToASCII(string(row))
}

// aggregateOf returns the type of an aggregate family whose aggregator is
// offered, nil for any other.
func aggregateOf(f *storage.Family) *adminpb.Type_Aggregate {
	a := f.Def.GetValueType().GetAggregateType()
	switch a.GetAggregator().(type) {
	case *adminpb.Type_Aggregate_Sum_, *adminpb.Type_Aggregate_Min_, *adminpb.Type_Aggregate_Max_:
		return a
	}
	return nil
}
