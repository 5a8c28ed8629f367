package data

import (
	"cmp"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/attestry/attestry/emulator/storage"
)

// target is a part of a row set: one row, or a range of rows.
type target struct {
	storage.Range
	single bool // Start is the row
}

// targetsOf returns a row set as disjoint parts in ascending order: the union of
// its keys and ranges. An unset row set, or one with neither, is the whole table.
func targetsOf(rows *btpb.RowSet) ([]target, error) {
	if len(rows.GetRowKeys()) == 0 && len(rows.GetRowRanges()) == 0 {
		return []target{{}}, nil
	}
	var ranges []storage.Range
	for i, r := range rows.GetRowRanges() {
		start, end, err := bounds(r, i)
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, storage.Range{Start: start, End: end})
	}
	ranges = merged(ranges)
	targets := make([]target, 0, len(ranges)+len(rows.GetRowKeys()))
	for _, r := range ranges {
		targets = append(targets, target{Range: r})
	}
	for _, key := range rows.GetRowKeys() {
		if err := checkRowKey(key); err != nil {
			return nil, err
		}
		if !within(ranges, string(key)) {
			targets = append(targets, target{Range: storage.Range{Start: string(key)}, single: true})
		}
	}
	slices.SortFunc(targets, func(a, b target) int { return cmp.Compare(a.Start, b.Start) })
	return slices.CompactFunc(targets, func(a, b target) bool { return a.single && b.single && a.Start == b.Start }), nil
}

// bounds returns a range as inclusive start and exclusive end; an empty end is
// the end of the table. A range that no key can be in is refused, as in production
// (java-bigtable-hbase issue 928, beam issue 39842).
func bounds(r *btpb.RowRange, index int) (start, end string, err error) {
	switch k := r.GetStartKey().(type) {
	case *btpb.RowRange_StartKeyClosed:
		start = string(k.StartKeyClosed)
	case *btpb.RowRange_StartKeyOpen:
		if len(k.StartKeyOpen) > 0 { // no row has an empty key
			start = string(k.StartKeyOpen) + "\x00"
		}
	}
	switch k := r.GetEndKey().(type) {
	case *btpb.RowRange_EndKeyClosed:
		if len(k.EndKeyClosed) > 0 {
			end = string(k.EndKeyClosed) + "\x00"
		}
	case *btpb.RowRange_EndKeyOpen:
		end = string(k.EndKeyOpen)
	}
	if end != "" && start >= end {
		return "", "", invalid("Error in field 'row_ranges' : Error in element #%d : start_key must be less than end_key", index)
	}
	return start, end, nil
}

func merged(ranges []storage.Range) []storage.Range {
	slices.SortFunc(ranges, func(a, b storage.Range) int { return cmp.Compare(a.Start, b.Start) })
	var out []storage.Range
	for _, r := range ranges {
		if n := len(out); n > 0 && (out[n-1].End == "" || r.Start <= out[n-1].End) {
			if out[n-1].End != "" && (r.End == "" || r.End > out[n-1].End) {
				out[n-1].End = r.End
			}
			continue
		}
		out = append(out, r)
	}
	return out
}

func within(ranges []storage.Range, row string) bool {
	i, exact := slices.BinarySearchFunc(ranges, row, func(r storage.Range, row string) int { return cmp.Compare(r.Start, row) })
	if exact {
		return true
	}
	return i > 0 && (ranges[i-1].End == "" || row < ranges[i-1].End)
}
