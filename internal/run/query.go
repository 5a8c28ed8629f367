package run

import (
	"context"
	"errors"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/derive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
)

// Query returns the read service over the archive.
func (a *Archive) Query() *query.Service {
	return query.New(a.Store, a.conn.network, a.Verifier.Sets).With(a.parts())
}

func (a *Archive) parts() query.Parts {
	return query.Parts{Upgrades: a.Store, Rejects: a.Store, Journal: a.Store, Rollups: rollups{a.Rollups()}}
}

// service is Query with what only a serve has.
func (s *Server) service() *query.Service {
	parts := s.parts()
	parts.Feed = position{feed.NewRedisStream(s.redis, s.Store.Info().Network)}
	return s.Query().With(parts)
}

// position tells the query service where the stream is.
type position struct{ stream *feed.RedisStream }

func (p position) Position(ctx context.Context) (query.FeedPosition, error) {
	extent, err := p.stream.Extent(ctx)
	if err != nil || extent.Length == 0 {
		return query.FeedPosition{}, err
	}
	first, last := extent.First.String(), extent.Last.String()
	age := now().Sub(time.UnixMilli(int64(extent.First.Millis))).Seconds()
	return query.FeedPosition{FirstID: &first, LastID: &last, Length: extent.Length, OldestAgeSeconds: &age}, nil
}

// rollups gives the query service its counts.
type rollups struct{ from *derive.Rollups }

func (r rollups) Total(ctx context.Context, scope archive.Scope) (query.Counted, error) {
	total, err := r.from.Total(ctx, scope)
	return query.Counted{Scope: total.Scope, Counts: total.Counts, Until: total.CountedUntil}, shown("", err)
}

func (r rollups) Totals(ctx context.Context, level archive.Level, chain *vaa.ChainID, after *archive.Scope, limit int) ([]query.Counted, error) {
	totals, err := r.from.Totals(ctx, derive.TotalsQuery{Level: level, Chain: chain, After: after, Limit: min(limit, derive.MaxTotals)})
	out := make([]query.Counted, len(totals))
	for i, t := range totals {
		out[i] = query.Counted{Scope: t.Scope, Counts: t.Counts, Until: t.CountedUntil}
	}
	return out, shown("limit", err)
}

func (r rollups) Series(ctx context.Context, scope archive.Scope, period string, from, to time.Time) (query.Counting, error) {
	p, err := derive.ParsePeriod(period)
	if err != nil {
		return query.Counting{}, shown("period", err)
	}
	series, err := r.from.Series(ctx, derive.SeriesQuery{Scope: scope, Period: p, From: from, To: to})
	out := query.Counting{Until: series.CountedUntil, Buckets: make([]query.Bucket, len(series.Buckets))}
	for i, b := range series.Buckets {
		out.Buckets[i] = query.Bucket{From: b.Start, To: b.End, Complete: b.Complete, Counts: b.Counts, SoFar: b.SoFar}
	}
	return out, shown("to", err)
}

// shown returns an error about the question as one about a parameter.
func shown(parameter string, err error) error {
	if errors.Is(err, derive.ErrInvalid) {
		return query.Invalid(parameter, "%w", err)
	}
	return err
}
