package query

import (
	"context"
	"slices"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// Rollups are the counts that are kept of messages. Errors of its methods that are
// about the question are *Error, of which the parameter may be nil.
type Rollups interface {
	// Total returns the counts of a scope over all time.
	Total(ctx context.Context, scope archive.Scope) (Counted, error)
	// Totals returns the counts over all time of the scopes of a level, at most limit
	// of them, in an order of their own; of emitters those of one chain. after resumes
	// behind one of them.
	Totals(ctx context.Context, level archive.Level, chain *vaa.ChainID, after *archive.Scope, limit int) ([]Counted, error)
	// Series returns the buckets of a period that hold the times from one on and before
	// another, ascending and without a hole.
	Series(ctx context.Context, scope archive.Scope, period string, from, to time.Time) (Counting, error)
}

// Counted is what is counted of a scope.
type Counted struct {
	archive.Scope
	archive.Counts
	Until time.Time // whatever was recorded before is counted
}

// Counting is what is counted of a scope by time.
type Counting struct {
	Buckets []Bucket
	Until   time.Time // as of Counted
}

// Bucket counts the messages whose VAA time lies in it.
type Bucket struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"` // exclusive
	// Complete: its time is well over, and all that was recorded until then is counted:
	// the counts are those of the archive, which may lack messages. Null for a time
	// before the oldest message of the archive.
	Complete *bool `json:"complete"`
	// Counts is null unless the bucket is complete; SoFar is what is counted of one that
	// is not.
	Counts *archive.Counts `json:"counts"`
	SoFar  *archive.Counts `json:"soFar"`
}

// How counts are grouped.
const (
	GroupNetwork = "network"
	GroupChain   = "chain"
	GroupEmitter = "emitter"
)

// Group is one scope of an answer of counts.
type Group struct {
	EmitterChain     *vaa.ChainID `json:"emitterChain"` // null for the network
	EmitterChainName *string      `json:"emitterChainName"`
	EmitterAddress   *vaa.Address `json:"emitterAddress"` // null for all of a chain
	EmitterNative    *string      `json:"emitterNative"`
}

// Total is the counts of a group over all time.
type Total struct {
	Group
	Counts archive.Counts `json:"counts"`
}

// Totals are the counts of groups over all time.
type Totals struct {
	GroupBy string `json:"groupBy"`
	// CountedUntil: whatever was recorded before is counted. Null without items.
	CountedUntil *time.Time `json:"countedUntil"`
	Items        []Total    `json:"items"`
	Pagination   Pagination `json:"pagination"`
}

// GroupSeries is the counts of a group by time.
type GroupSeries struct {
	Group
	Buckets []Bucket `json:"buckets"`
}

// Series are the counts of groups by time.
type Series struct {
	GroupBy string    `json:"groupBy"`
	Period  string    `json:"period"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// CountedUntil: whatever was recorded before is counted. Null without items.
	CountedUntil *time.Time    `json:"countedUntil"`
	Items        []GroupSeries `json:"items"`
}

// Bounds of an answer.
const (
	MaxTotals  = 100
	MaxBuckets = 1500 // of all groups together
)

// Grouping asks for groups: the network, its chains or one of them, or the emitters of
// a chain or one of them.
type Grouping struct {
	By      string // one of the three; "" for the network
	Chain   *vaa.ChainID
	Emitter *vaa.Address
}

// check refuses what does not go together.
func (g Grouping) check() error {
	switch {
	case !slices.Contains([]string{GroupNetwork, GroupChain, GroupEmitter}, g.By):
		return Invalid("groupBy", "groupBy %q is unknown: use network, chain or emitter", clip(g.By))
	case g.By == GroupNetwork && g.Chain != nil:
		return Invalid("chain", "chain does not go with groupBy=network: use groupBy=chain")
	case g.By == GroupEmitter && g.Chain == nil:
		return Invalid("chain", "emitters are grouped by chain: add chain=")
	case g.By != GroupEmitter && g.Emitter != nil:
		return Invalid("emitter", "emitter goes with groupBy=emitter only")
	}
	return nil
}

// Totals returns a page of the counts of groups over all time, by one row each.
func (s *Service) Totals(ctx context.Context, g Grouping, p Paging) (*Totals, error) {
	limit, err := p.limit(MaxTotals, MaxTotals)
	if err != nil {
		return nil, err
	}
	list := newListing(s.network.String(), "totals", g.By, text(g.Chain), text(g.Emitter))
	after, err := list.after(p.Cursor)
	if err != nil {
		return nil, err
	}
	all, err := s.counted(ctx, g, after, limit+1)
	if err != nil {
		return nil, err
	}
	out := &Totals{GroupBy: g.By, Items: []Total{}, Pagination: Pagination{Limit: limit}}
	for i := range all {
		if i == limit {
			last := &all[i-1].Scope
			out.Pagination.more(list.next(archive.Ref{ID: vaa.MessageID{EmitterChain: last.Chain, EmitterAddress: last.Emitter}}))
			break
		}
		until := all[i].Until.UTC()
		out.CountedUntil = &until
		out.Items = append(out.Items, Total{group(&all[i].Scope), all[i].Counts})
	}
	return out, nil
}

// counted returns what is counted of the groups that are asked for.
func (s *Service) counted(ctx context.Context, g Grouping, after *archive.Ref, limit int) ([]Counted, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	if s.parts.Rollups == nil {
		return nil, missing("counts")
	}
	level := archive.LevelChain
	switch {
	case g.By == GroupNetwork, g.By == GroupChain && g.Chain != nil, g.Emitter != nil:
		one, err := s.parts.Rollups.Total(ctx, g.scope())
		return []Counted{one}, err
	case g.By == GroupEmitter:
		level = archive.LevelEmitter
	}
	var behind *archive.Scope
	if after != nil {
		if g.Chain != nil && after.ID.EmitterChain != *g.Chain {
			return nil, outside(after.ID)
		}
		behind = &archive.Scope{Level: level, Chain: after.ID.EmitterChain}
		if level == archive.LevelEmitter {
			behind.Emitter = after.ID.EmitterAddress
		}
	}
	return s.parts.Rollups.Totals(ctx, level, g.Chain, behind, limit)
}

// scope is what one group of the grouping is.
func (g Grouping) scope() archive.Scope {
	scope := scopeOf(g.Chain)
	if g.Emitter != nil {
		scope.Level, scope.Emitter = archive.LevelEmitter, *g.Emitter
	}
	return scope
}

// scopeOf returns the scope of a chain, of the network where it is nil.
func scopeOf(chain *vaa.ChainID) archive.Scope {
	if chain == nil {
		return archive.Scope{}
	}
	return archive.Scope{Level: archive.LevelChain, Chain: *chain}
}

func group(scope *archive.Scope) Group {
	var g Group
	if scope.Level >= archive.LevelChain {
		g.EmitterChain, g.EmitterChainName = &scope.Chain, chainName(scope.Chain)
	}
	if scope.Level == archive.LevelEmitter {
		g.EmitterAddress, g.EmitterNative = &scope.Emitter, native(scope.Chain, scope.Emitter)
	}
	return g
}

// Series returns the counts of groups by time, MaxBuckets at most. The emitters of a
// chain are too many for one answer: one must be named.
func (s *Service) Series(ctx context.Context, g Grouping, period string, from, to time.Time) (*Series, error) {
	switch err := g.check(); {
	case err != nil:
		return nil, err
	case g.By == GroupEmitter && g.Emitter == nil:
		return nil, Invalid("emitter", "a series is of one emitter: add emitter=")
	case !from.Before(to):
		return nil, Invalid("to", "to is not after from")
	}
	all, err := s.counted(ctx, g, nil, MaxLimit)
	if err != nil {
		return nil, err
	}
	out := &Series{GroupBy: g.By, Period: period, From: from.UTC(), To: to.UTC(), Items: []GroupSeries{}}
	n := 0
	for i := range all {
		counting, err := s.parts.Rollups.Series(ctx, all[i].Scope, period, from, to)
		if err != nil {
			return nil, err
		}
		if n += len(counting.Buckets); n > MaxBuckets {
			return nil, Invalid("to", "%d series of %d buckets each are more than %d buckets: ask for a shorter time, a longer period or one %s",
				len(all), len(counting.Buckets), MaxBuckets, g.By)
		}
		until := counting.Until.UTC()
		out.CountedUntil = &until
		out.Items = append(out.Items, GroupSeries{group(&all[i].Scope), counting.Buckets})
	}
	return out, nil
}

// lagging is how far counting may be behind before a count is not known.
const lagging = 10 * time.Second

// messages counts the messages of a scope, nil when that is not known, as while they
// are being counted after a large import.
func (s *Service) messages(ctx context.Context, scope archive.Scope) (*int64, error) {
	if s.parts.Rollups == nil {
		return nil, nil
	}
	total, err := s.parts.Rollups.Total(ctx, scope)
	if err != nil || time.Since(total.Until) > lagging {
		return nil, err
	}
	return &total.Messages, nil
}
