package data

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/attestry/attestry/emulator/filter"
	"github.com/attestry/attestry/emulator/storage"
)

// checkEvery is how many rows are read between looks at the request's end, and
// after how many without a result the client hears of the progress.
const checkEvery = 512

// ReadRows streams the rows of a row set through a filter. It reads a consistent
// state, and no more of it than it answers needs.
func (s *Server) ReadRows(req *btpb.ReadRowsRequest, stream btpb.Bigtable_ReadRowsServer) error {
	start := s.now()
	if req.GetMaterializedViewName() != "" {
		return unimplemented("materialized views")
	}
	t, err := s.table(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return err
	}
	if req.GetRowsLimit() < 0 {
		return invalid("rows_limit is %d; it must not be negative", req.GetRowsLimit())
	}
	if req.GetReversed() && !featuresOf(stream.Context()).GetReverseScans() {
		return status.Error(codes.Unimplemented, "Client doesn't support reverse scans yet")
	}
	targets, err := targetsOf(req.GetRows())
	if err != nil {
		return err
	}
	f, err := filter.Compile(req.GetFilter(), hasFamily(t))
	if err != nil {
		return err
	}
	if req.GetReversed() {
		slices.Reverse(targets)
	}
	buf := s.buffers.Get().(*[]byte)
	w := newWriter(func(m []byte) error { return stream.SendMsg(encoded(m)) }, *buf, !isGoClient(stream.Context()))
	defer func() {
		if *buf = w.buf; cap(*buf) <= maxResponse {
			s.buffers.Put(buf)
		}
	}()
	r := &read{
		ended: stream.Context().Err, w: w, filter: f, eval: f.NewEvaluator(nil),
		limit: req.GetRowsLimit(), progress: func() bool { return featuresOf(stream.Context()).GetLastScannedRowResponses() },
	}
	if err := r.run(s.engine, t, targets, req.GetReversed()); err != nil {
		return internal(err)
	}
	if req.GetRequestStatsView() == btpb.ReadRowsRequest_REQUEST_STATS_FULL {
		if err := w.stats(r.stats.proto(s.now().Sub(start))); err != nil {
			return internal(err)
		}
	}
	return w.flush()
}

func hasFamily(t *storage.Table) func(string) bool {
	return func(name string) bool { return t.Family(name) != nil }
}

// featuresOf returns what the client says that it can do.
func featuresOf(ctx context.Context) *btpb.FeatureFlags {
	flags := &btpb.FeatureFlags{}
	for _, value := range metadata.ValueFromIncomingContext(ctx, "bigtable-features") {
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(value, "="))
		if err != nil {
			raw, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
		}
		if err == nil && proto.Unmarshal(raw, flags) == nil {
			return flags
		}
	}
	return flags
}

// isGoClient reports whether the request is of Google's client library for Go.
func isGoClient(ctx context.Context) bool {
	for _, value := range metadata.ValueFromIncomingContext(ctx, "user-agent") {
		if strings.Contains(value, "grpc-go/") {
			return true
		}
	}
	return false
}

// read is one ReadRows on its way.
type read struct {
	ended    func() error // why the request has ended, nil while it has not
	w        *writer
	filter   *filter.Filter
	eval     *filter.Evaluator
	limit    int64
	progress func() bool // whether the client wants to hear of it
	stats    stats
	silent   int // rows since the last that was answered
}

func (r *read) run(e *storage.Engine, t *storage.Table, targets []target, reverse bool) (err error) {
	v, err := e.View(t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	v.Within(r.filter.Bounds(), r.filter.ReadsValues())
	more := true
	for _, target := range targets {
		if target.single {
			cells, err := v.Row(target.Start)
			if err != nil {
				return err
			}
			if cells == nil {
				continue
			}
			more, err = r.row([]byte(target.Start), cells)
			if err != nil {
				return err
			}
		} else if err := v.Rows(target.Range, reverse, func(row []byte, cells filter.Source) (bool, error) {
			var err error
			more, err = r.row(row, cells)
			return more, err
		}); err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return nil
}

// row answers one row, and reports whether there is to be another.
func (r *read) row(row []byte, cells filter.Source) (bool, error) {
	if r.stats.rowsSeen++; r.stats.rowsSeen%checkEvery == 0 {
		if err := r.ended(); err != nil {
			return false, err
		}
	}
	counted := &counter{Source: cells, n: &r.stats.cellsSeen}
	r.eval.Reset(row, counted)
	r.w.startRow(row)
	size := 0
	for {
		c, err := r.eval.Next()
		if err != nil {
			return false, err
		}
		if c == nil {
			break
		}
		r.stats.cellsReturned++
		if size += len(c.Value) + len(c.Qualifier); size > maxRow {
			return false, status.Errorf(codes.FailedPrecondition, "Read returned more of row %s than the limit of %d MiB; leave out what is not needed by a filter", quoted(row), maxRow>>20)
		}
		if err := r.w.cell(c); err != nil {
			return false, err
		}
	}
	answered, err := r.w.endRow()
	if err != nil {
		return false, err
	}
	if answered {
		r.silent = 0
		r.stats.rowsReturned++
		return r.limit == 0 || r.stats.rowsReturned < r.limit, nil
	}
	if r.silent++; r.silent%checkEvery == 0 && r.progress() {
		return true, r.w.scanned(row)
	}
	return true, nil
}

type counter struct {
	filter.Source
	n *int64
}

func (c *counter) Next(skip filter.Skip) (*filter.Cell, error) {
	cell, err := c.Source.Next(skip)
	if cell != nil {
		*c.n++
	}
	return cell, err
}

type stats struct{ rowsSeen, rowsReturned, cellsSeen, cellsReturned int64 }

func (s *stats) proto(latency time.Duration) *btpb.RequestStats {
	return &btpb.RequestStats{StatsView: &btpb.RequestStats_FullReadStatsView{FullReadStatsView: &btpb.FullReadStatsView{
		ReadIterationStats: &btpb.ReadIterationStats{
			RowsSeenCount: s.rowsSeen, RowsReturnedCount: s.rowsReturned,
			CellsSeenCount: s.cellsSeen, CellsReturnedCount: s.cellsReturned,
		},
		RequestLatencyStats: &btpb.RequestLatencyStats{FrontendServerLatency: durationpb.New(latency)},
	}}}
}

// SampleRowKeys answers with keys that cut the table into parts of about the same
// size on disk, the splits that the table was made with among them, and last with
// the end of the range, or the empty key that stands for the table's end.
func (s *Server) SampleRowKeys(req *btpb.SampleRowKeysRequest, stream btpb.Bigtable_SampleRowKeysServer) error {
	if req.GetMaterializedViewName() != "" {
		return unimplemented("materialized views")
	}
	t, err := s.table(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return err
	}
	var within storage.Range
	if r := req.GetRowRange(); r != nil {
		if within.Start, within.End, err = bounds(r, 0); err != nil {
			return err
		}
	}
	samples, err := s.engine.Samples(t, within)
	if err != nil {
		return internal(err)
	}
	for _, sample := range samples {
		if err := stream.Send(&btpb.SampleRowKeysResponse{RowKey: []byte(sample.Row), OffsetBytes: sample.Offset}); err != nil {
			return err
		}
	}
	return nil
}
