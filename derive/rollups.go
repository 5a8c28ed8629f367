package derive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

// ErrInvalid marks what cannot be answered as asked; the text says why and what can.
var ErrInvalid = errors.New("invalid question about rollups")

// Grace is how long after the end of a bucket messages of its time are awaited:
// finality, quorum and delivery take minutes.
const Grace = time.Hour

// Bounds of an answer.
const (
	MaxBuckets = 1500      // buckets of a series
	MaxTotals  = 1000      // scopes of a page of totals
	maxStored  = 10 * 1500 // stored buckets that are read for a series
)

// maxEmpty bounds the oldest buckets that are read in search of one that is not empty.
const maxEmpty = 10

// freshFor is how long what is known of the counting's progress is used.
const freshFor = time.Second

// Rollups answers from the buckets. Its methods may be called concurrently.
type Rollups struct {
	store Store
	now   func() time.Time

	mu       sync.Mutex
	progress progress
	lookedAt time.Time // zero before the first look
}

// progress is how far counting has come.
type progress struct {
	generation uint64
	// until is a time before which everything that was recorded is counted.
	until time.Time
	// first is when the network's oldest bucket of a minute begins; nil while there is
	// none.
	first *time.Time
}

// NewRollups returns what answers from a store's buckets. now is the clock.
func NewRollups(store Store, now func() time.Time) *Rollups {
	return &Rollups{store: store, now: now}
}

// look returns the progress as of a second ago or later.
func (r *Rollups) look(ctx context.Context) (progress, error) {
	now := r.now()
	r.mu.Lock()
	p, at := r.progress, r.lookedAt
	r.mu.Unlock()
	if !at.IsZero() && now.Sub(at) < freshFor && !now.Before(at) {
		return p, nil
	}
	p, err := r.read(ctx, now)
	if err != nil {
		return p, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress, r.lookedAt = p, now
	return p, nil
}

func (r *Rollups) read(ctx context.Context, now time.Time) (progress, error) {
	p := progress{until: now}
	var err error
	if p.generation, err = r.store.Cursor(ctx, cursorGeneration); err != nil {
		return p, err
	}
	counted, err := r.store.Cursor(ctx, cursorOf(p.generation))
	if err != nil {
		return p, err
	}
	// What is not counted was recorded from the first such batch on: wall times do not
	// decrease along the journal.
	for b, err := range r.store.Batches(ctx, archive.Offset(counted)+1) {
		if err != nil {
			return p, err
		}
		if b.WallTime.Before(now) {
			p.until = b.WallTime.UTC()
		}
		break
	}
	prefix := archive.BucketPrefix(archive.Period1Min, archive.Scope{})
	for b, err := range r.store.ScanBuckets(ctx, p.generation, prefix, rowkey.PrefixEnd(prefix), maxEmpty) {
		if err != nil {
			return p, err
		}
		first := time.Unix(int64(b.Start), 0).UTC()
		if p.first = &first; b.Messages > 0 { // else all of it moved to another time
			break
		}
	}
	return p, nil
}

// SeriesQuery asks for the buckets of a scope that hold the times from From on and
// before To.
type SeriesQuery struct {
	Scope    archive.Scope
	Period   Period
	From, To time.Time
}

// Series is a run of buckets without gaps, oldest first.
type Series struct {
	// CountedUntil: whatever was recorded before is counted.
	CountedUntil time.Time
	Buckets      []SeriesBucket
}

// SeriesBucket is the messages with a VAA time from Start on and before End.
type SeriesBucket struct {
	Start, End time.Time
	// Complete: the bucket's time and Grace are over, and all that was recorded until
	// then is counted. It says that the counts are those of the archive, not that the
	// archive has all messages. Nil, with all else, for a time before the oldest
	// message of the archive, of which nothing is known.
	Complete *bool
	// Counts is nil unless the bucket is complete.
	Counts *archive.Counts
	// SoFar is what is counted of a bucket that is not complete.
	SoFar *archive.Counts
}

// Series reads a series. It reads at most 15,000 stored buckets, one range of rows.
// Errors: ErrInvalid.
func (r *Rollups) Series(ctx context.Context, q SeriesQuery) (Series, error) {
	buckets, err := q.buckets()
	if err != nil || len(buckets) == 0 {
		return Series{}, err
	}
	p, err := r.look(ctx)
	if err != nil {
		return Series{}, err
	}
	counts := make([]archive.Counts, len(buckets))
	prefix := archive.BucketPrefix(q.Period.stored, q.Scope)
	start := prefix + rowkey.Seconds(uint64(max(buckets[0].Start.Unix(), 0)))
	end := prefix + rowkey.Seconds(uint64(buckets[len(buckets)-1].End.Unix()))
	i := 0
	for b, err := range r.store.ScanBuckets(ctx, p.generation, start, end, 0) {
		if err != nil {
			return Series{}, err
		}
		for !time.Unix(int64(b.Start), 0).Before(buckets[i].End) {
			i++
		}
		counts[i] = counts[i].Sum(b.Counts)
	}
	for i := range buckets {
		b := &buckets[i]
		if p.first == nil || !b.End.After(*p.first) {
			continue
		}
		complete := !b.End.Add(Grace).After(p.until)
		b.Complete = &complete
		if complete {
			b.Counts = &counts[i]
		} else {
			b.SoFar = &counts[i]
		}
	}
	return Series{CountedUntil: p.until, Buckets: buckets}, nil
}

// buckets returns the buckets of the answer without their counts.
func (q *SeriesQuery) buckets() ([]SeriesBucket, error) {
	last := time.Unix(math.MaxUint32, 0) // the last VAA time that can be
	switch {
	case q.Period.text == "":
		return nil, fmt.Errorf("%w: no period: %s", ErrInvalid, possible)
	case !q.From.Before(q.To):
		return nil, fmt.Errorf("%w: it begins at %s and ends at %s", ErrInvalid, q.From.UTC().Format(time.RFC3339), q.To.UTC().Format(time.RFC3339))
	case q.From.Unix() < 0 || q.To.After(last):
		return nil, fmt.Errorf("%w: VAA times are from %s to %s", ErrInvalid, time.Unix(0, 0).UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339))
	}
	var all []SeriesBucket
	for start := q.Period.Start(q.From); start.Before(q.To); {
		end := q.Period.Next(start)
		if len(all) == MaxBuckets {
			return nil, fmt.Errorf("%w: from %s to %s are more than %d buckets of %s: ask for a shorter time or a longer period",
				ErrInvalid, q.From.UTC().Format(time.RFC3339), q.To.UTC().Format(time.RFC3339), MaxBuckets, q.Period)
		}
		all = append(all, SeriesBucket{Start: start, End: end})
		start = end
	}
	step := time.Duration(q.Period.stored.Seconds()) * time.Second
	if n := all[len(all)-1].End.Sub(all[0].Start) / step; n > maxStored {
		return nil, fmt.Errorf("%w: it would be merged of %d stored buckets of %s, more than %d: ask for a shorter time, or a period that a longer stored one divides",
			ErrInvalid, n, q.Period.stored, maxStored)
	}
	return all, nil
}

// Total is all that is counted of a scope.
type Total struct {
	archive.Scope
	archive.Counts
	// CountedUntil: whatever was recorded before is counted.
	CountedUntil time.Time
}

// Total reads the total of a scope by one row.
func (r *Rollups) Total(ctx context.Context, scope archive.Scope) (Total, error) {
	p, err := r.look(ctx)
	if err != nil {
		return Total{}, err
	}
	k := archive.KeyOf(archive.PeriodAll, scope, 0)
	found, err := r.store.Buckets(ctx, p.generation, []archive.BucketKey{k})
	return Total{Scope: scope, Counts: found[k].Counts, CountedUntil: p.until}, err
}

// TotalsQuery asks for the totals of all scopes of a level, in the order of their
// keys: chains and addresses as text.
type TotalsQuery struct {
	Level archive.Level
	Chain *vaa.ChainID   // only the emitters of this chain; nil for all
	After *archive.Scope // resumes behind this scope of the same query, exclusive
	Limit int            // 1 to MaxTotals
}

// Totals reads a page of totals, one row each. Errors: ErrInvalid.
func (r *Rollups) Totals(ctx context.Context, q TotalsQuery) ([]Total, error) {
	prefix := string(archive.PeriodAll) + ":" + q.Level.String() + ":"
	switch {
	case q.Limit < 1 || q.Limit > MaxTotals:
		return nil, fmt.Errorf("%w: limit %d is not 1 to %d", ErrInvalid, q.Limit, MaxTotals)
	case q.Chain != nil && q.Level != archive.LevelEmitter:
		return nil, fmt.Errorf("%w: a chain restricts emitters only", ErrInvalid)
	case q.After != nil && (q.After.Level != q.Level || q.Chain != nil && q.After.Chain != *q.Chain):
		return nil, fmt.Errorf("%w: %s is not of this list", ErrInvalid, q.After)
	case q.Chain != nil:
		prefix += rowkey.Chain(*q.Chain)
	}
	p, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	start := prefix
	if q.After != nil {
		start = rowkey.PrefixEnd(archive.BucketPrefix(archive.PeriodAll, *q.After))
	}
	totals := []Total{}
	for b, err := range r.store.ScanBuckets(ctx, p.generation, start, rowkey.PrefixEnd(prefix), q.Limit) {
		if err != nil {
			return nil, err
		}
		totals = append(totals, Total{b.Scope, b.Counts, p.until})
	}
	return totals, nil
}
