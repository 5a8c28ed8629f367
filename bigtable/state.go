package bigtable

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
)

// Rows and columns of the table state.
const (
	rowWatermark      = "watermark"
	rowClock          = "clock"
	prefixCursor      = "cursor:"
	prefixGuardianSet = "guardianset:"
	prefixReject      = "reject:"
	prefixRollup      = "rollup:"

	colOffset    = "Offset"
	colNow       = "Now"
	colPosition  = "Position"
	colUpdatedAt = "UpdatedAt"
	colVAA       = "VAA"
	colCount     = "Count" // 8 bytes, big endian: incremented by the server
	colDetail    = "Detail"
	colSource    = "Source"
	colBytes     = "Bytes"
	colLastSeen  = "LastSeen"
	prefixCounts = "Counts." // + generation in 20 digits
)

// Watermark returns the stored watermark.
func (s *Store) Watermark(ctx context.Context) (archive.Offset, error) {
	value, err := s.readState(ctx, rowWatermark, colOffset)
	if err != nil || value == nil {
		return 1, err
	}
	o, err := rowkey.ParseOffset(string(value))
	if err != nil {
		return 0, fmt.Errorf("the stored watermark: %w", err)
	}
	return archive.Offset(o), nil
}

// RaiseWatermark writes the watermark unless a higher one is stored.
func (s *Store) RaiseWatermark(ctx context.Context, w archive.Offset) error {
	value := rowkey.Offset(uint64(w)) // padded: the order of bytes is that of numbers
	higher := bigtable.ChainFilters(stateColumn(colOffset), bigtable.LatestNFilter(1), bigtable.ValueRangeFilter([]byte(value), nil))
	err := s.state.Apply(ctx, rowWatermark, bigtable.NewCondMutation(higher, nil, replaceCell(colOffset, value)))
	if err != nil {
		return fmt.Errorf("raise the watermark to %d: %w", w, err)
	}
	return nil
}

// Cursor returns the committed position of a source.
func (s *Store) Cursor(ctx context.Context, source string) (uint64, error) {
	value, err := s.readState(ctx, prefixCursor+source, colPosition)
	if err != nil || value == nil {
		return 0, err
	}
	position, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the stored cursor of %s: %w", source, err)
	}
	return position, nil
}

// CommitCursor compares and sets. A lost reply to an earlier call shows as
// archive.ErrCursorMoved; Cursor tells what holds.
func (s *Store) CommitCursor(ctx context.Context, source string, from, to uint64) error {
	if to <= from {
		return fmt.Errorf("cursor of %s from %d to %d does not move forward: %w", source, from, to, archive.ErrCursorMoved)
	}
	set := replaceCell(colPosition, strconv.FormatUint(to, 10))
	set.DeleteCellsInColumn(schema.Value, colUpdatedAt)
	set.Set(schema.Value, colUpdatedAt, 0, []byte(formatTime(time.Now())))
	write := bigtable.NewCondMutation(stateColumn(colPosition), nil, set)
	moved := true // from 0 means that there must be no position yet
	if from > 0 {
		is := bigtable.ChainFilters(stateColumn(colPosition), bigtable.LatestNFilter(1), bigtable.ValueFilter(strconv.FormatUint(from, 10)))
		write, moved = bigtable.NewCondMutation(is, set, nil), false
	}
	var matched bool
	if err := s.state.Apply(ctx, prefixCursor+source, write, bigtable.GetCondMutationResult(&matched)); err != nil {
		return fmt.Errorf("commit the cursor of %s: %w", source, err)
	}
	if matched == moved {
		return fmt.Errorf("commit the cursor of %s from %d to %d: %w", source, from, to, archive.ErrCursorMoved)
	}
	return nil
}

// PutReject keeps the first bytes of what was refused and counts its deliveries.
func (s *Store) PutReject(ctx context.Context, r archive.Reject) error {
	key := rejectKey(&r)
	m := bigtable.NewMutation()
	now := time.Now()
	set := func(column string, value []byte) {
		m.Set(schema.Reject, column, bigtable.Time(now).TruncateToMilliseconds(), value)
	}
	set(colDetail, []byte(r.Detail))
	set(colSource, []byte(r.Source))
	set(colBytes, r.Bytes[:min(len(r.Bytes), archive.MaxRejectBytes)])
	set(colLastSeen, []byte(formatTime(now)))
	if err := s.state.Apply(ctx, key, m); err != nil {
		return fmt.Errorf("keep a reject: %w", err)
	}
	count := bigtable.NewReadModifyWrite()
	count.Increment(schema.Reject, colCount, 1)
	if _, err := s.state.ApplyReadModifyWrite(ctx, key, count); err != nil {
		return fmt.Errorf("count a reject: %w", err)
	}
	return nil
}

func rejectKey(r *archive.Reject) string {
	return prefixReject + r.Reason + ":" + hex.EncodeToString(r.SHA256[:])
}

// Rejects yields the kept rejects by reason and hash.
func (s *Store) Rejects(ctx context.Context, after *archive.Reject) iter.Seq2[archive.Reject, error] {
	return func(yield func(archive.Reject, error) bool) {
		start := prefixReject
		if after != nil {
			start = rowkey.Next(rejectKey(after))
		}
		stopped := false
		err := s.readRows(ctx, s.state, bigtable.NewRange(start, rowkey.PrefixEnd(prefixReject)), func(row bigtable.Row) (bool, error) {
			r, err := decodeReject(row)
			if err != nil {
				return false, err
			}
			stopped = !yield(r, nil)
			return !stopped, nil
		}, bigtable.RowFilter(bigtable.LatestNFilter(1)))
		if err != nil && !stopped {
			yield(archive.Reject{}, fmt.Errorf("read rejects: %w", err))
		}
	}
}

func decodeReject(row bigtable.Row) (archive.Reject, error) {
	reason, hash, _ := strings.Cut(strings.TrimPrefix(row.Key(), prefixReject), ":")
	r := archive.Reject{Reason: reason}
	if n, err := hex.Decode(r.SHA256[:], []byte(hash[:min(len(hash), 64)])); err != nil || n != len(r.SHA256) {
		return r, fmt.Errorf("row %s: want reject:<reason>:<sha256>", row.Key())
	}
	for _, item := range row[schema.Reject] {
		switch qualifier(item) {
		case colCount:
			if len(item.Value) != 8 {
				return r, fmt.Errorf("row %s: count of %d bytes", row.Key(), len(item.Value))
			}
			r.Count = binary.BigEndian.Uint64(item.Value)
		case colDetail:
			r.Detail = string(item.Value)
		case colSource:
			r.Source = string(item.Value)
		case colBytes:
			r.Bytes = item.Value
		case colLastSeen:
			t, err := time.Parse(time.RFC3339, string(item.Value))
			if err != nil {
				return r, fmt.Errorf("row %s: %w", row.Key(), err)
			}
			r.LastSeen = t
		}
	}
	return r, nil
}

// PutGuardianSetUpgrade keeps an upgrade VAA unless one is kept for its index.
func (s *Store) PutGuardianSetUpgrade(ctx context.Context, index uint32, raw []byte) error {
	m := bigtable.NewMutation()
	m.Set(schema.Value, colVAA, 0, raw)
	key := fmt.Sprintf("%s%010d", prefixGuardianSet, index)
	if err := s.state.Apply(ctx, key, bigtable.NewCondMutation(stateColumn(colVAA), nil, m)); err != nil {
		return fmt.Errorf("keep the upgrade to guardian set %d: %w", index, err)
	}
	return nil
}

// GuardianSetUpgrades returns the kept upgrade VAAs by ascending index.
func (s *Store) GuardianSetUpgrades(ctx context.Context) ([][]byte, error) {
	var raws [][]byte
	err := s.readRows(ctx, s.state, bigtable.PrefixRange(prefixGuardianSet), func(row bigtable.Row) (bool, error) {
		for _, item := range row[schema.Value] {
			raws = append(raws, item.Value)
		}
		return true, nil
	}, bigtable.RowFilter(bigtable.ChainFilters(stateColumn(colVAA), bigtable.LatestNFilter(1))))
	if err != nil {
		return nil, fmt.Errorf("read guardian-set upgrades: %w", err)
	}
	return raws, nil
}

// bulkReads bounds the keys of one read of buckets, bulksInFlight the requests for
// buckets at one time.
const (
	bulkReads     = 1000
	bulksInFlight = 4
)

// Buckets returns the stored ones of the keys.
func (s *Store) Buckets(ctx context.Context, generation uint64, keys []archive.BucketKey) (map[archive.BucketKey]archive.Bucket, error) {
	out := make(map[archive.BucketKey]archive.Bucket, len(keys))
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(bulksInFlight)
	for part := range slices.Chunk(keys, bulkReads) {
		rows := make(bigtable.RowList, len(part))
		for i, k := range part {
			rows[i] = prefixRollup + k.String()
		}
		g.Go(func() error {
			return s.readBuckets(ctx, generation, rows, func(b archive.Bucket) bool {
				mu.Lock()
				defer mu.Unlock()
				out[b.BucketKey] = b
				return true
			})
		})
	}
	return out, g.Wait()
}

// ScanBuckets yields buckets by their keys' text.
func (s *Store) ScanBuckets(ctx context.Context, generation uint64, start, end string, limit int) iter.Seq2[archive.Bucket, error] {
	return func(yield func(archive.Bucket, error) bool) {
		stop := rowkey.PrefixEnd(prefixRollup)
		if end != "" {
			stop = prefixRollup + end
		}
		var opts []bigtable.ReadOption
		if limit > 0 {
			opts = append(opts, bigtable.LimitRows(int64(limit)))
		}
		stopped := false
		err := s.readBuckets(ctx, generation, bigtable.NewRange(prefixRollup+start, stop), func(b archive.Bucket) bool {
			stopped = !yield(b, nil)
			return !stopped
		}, opts...)
		if err != nil && !stopped {
			yield(archive.Bucket{}, err)
		}
	}
}

func (s *Store) readBuckets(ctx context.Context, generation uint64, rows bigtable.RowSet, f func(archive.Bucket) bool, opts ...bigtable.ReadOption) error {
	filter := bigtable.ChainFilters(stateColumn(countsColumn(generation)), bigtable.LatestNFilter(1))
	err := s.readRows(ctx, s.state, rows, func(row bigtable.Row) (bool, error) {
		b, err := decodeBucket(row)
		return err == nil && f(b), err
	}, append(opts, bigtable.RowFilter(filter))...)
	if err != nil {
		return fmt.Errorf("read buckets: %w", err)
	}
	return nil
}

func countsColumn(generation uint64) string { return prefixCounts + rowkey.Offset(generation) }

func decodeBucket(row bigtable.Row) (archive.Bucket, error) {
	var b archive.Bucket
	var err error
	if b.BucketKey, err = archive.ParseBucketKey(strings.TrimPrefix(row.Key(), prefixRollup)); err != nil {
		return b, err
	}
	for _, item := range row[schema.Value] {
		b.Through = offsetOf(item.Timestamp)
		if err := json.Unmarshal(item.Value, &b.Counts); err != nil {
			return b, fmt.Errorf("row %s: %w", row.Key(), err)
		}
	}
	return b, nil
}

// PutBuckets writes each bucket as a cell whose timestamp is its offset, so that one
// that is counted through more events shadows it whatever order they are written in.
func (s *Store) PutBuckets(ctx context.Context, generation uint64, buckets []archive.Bucket) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(bulksInFlight)
	for part := range slices.Chunk(buckets, bulkSize) {
		rows := make(map[string]*bigtable.Mutation, len(part))
		for i := range part {
			text, err := json.Marshal(part[i].Counts)
			if err != nil {
				return fmt.Errorf("encode bucket %s: %w", part[i].BucketKey, err)
			}
			mutationOf(rows, prefixRollup+part[i].String()).Set(schema.Value, countsColumn(generation), cellTime(part[i].Through), text)
		}
		g.Go(func() error { return applyBulk(ctx, s.state, rows) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("put buckets: %w", err)
	}
	return nil
}

// DropBuckets deletes the columns of earlier generations.
func (s *Store) DropBuckets(ctx context.Context, before uint64) error {
	rows := map[string]*bigtable.Mutation{}
	drop := func() error {
		err := applyBulk(ctx, s.state, rows)
		clear(rows)
		return err
	}
	filter := bigtable.ChainFilters(bigtable.ColumnRangeFilter(schema.Value, countsColumn(0), countsColumn(before)),
		bigtable.LatestNFilter(1), bigtable.StripValueFilter())
	err := s.readRows(ctx, s.state, bigtable.PrefixRange(prefixRollup), func(row bigtable.Row) (bool, error) {
		for _, item := range row[schema.Value] {
			mutationOf(rows, row.Key()).DeleteCellsInColumn(schema.Value, qualifier(item))
		}
		if len(rows) < bulkSize {
			return true, nil
		}
		err := drop()
		return err == nil, err
	}, bigtable.RowFilter(filter))
	if err := errors.Join(err, drop()); err != nil {
		return fmt.Errorf("drop buckets: %w", err)
	}
	return nil
}

// Clock returns the server's time, which a read-modify-write gives its cells.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	m := bigtable.NewReadModifyWrite()
	m.AppendValue(schema.Value, colNow, nil)
	row, err := s.state.ApplyReadModifyWrite(ctx, rowClock, m)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the store's clock: %w", err)
	}
	for _, item := range row[schema.Value] {
		return item.Timestamp.Time(), nil
	}
	return time.Time{}, fmt.Errorf("read the store's clock: the reply has no cell")
}

func (s *Store) readState(ctx context.Context, key, column string) ([]byte, error) {
	filter := bigtable.ChainFilters(stateColumn(column), bigtable.LatestNFilter(1))
	row, err := s.state.ReadRow(ctx, key, bigtable.RowFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("read state %s: %w", key, err)
	}
	for _, item := range row[schema.Value] {
		return item.Value, nil
	}
	return nil, nil
}

func stateColumn(column string) bigtable.Filter {
	return bigtable.ChainFilters(bigtable.FamilyFilter(schema.Value), bigtable.ColumnFilter(column))
}

// replaceCell sets a column's only cell, at timestamp 0, in one atomic mutation.
func replaceCell(column, value string) *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.DeleteCellsInColumn(schema.Value, column)
	m.Set(schema.Value, column, 0, []byte(value))
	return m
}
