package query

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// Feed tells where the stream of events is.
type Feed interface {
	// Position returns where the stream begins and ends. Errors: it cannot be reached.
	Position(ctx context.Context) (FeedPosition, error)
}

// FeedPosition is where the stream of events is.
type FeedPosition struct {
	FirstID          *string  `json:"firstId"` // null while the stream is empty
	LastID           *string  `json:"lastId"`
	Length           int64    `json:"length,string"`
	OldestAgeSeconds *float64 `json:"oldestAgeSeconds"`
}

// Emitter is an emitter of which messages are kept.
type Emitter struct {
	EmitterChain     vaa.ChainID `json:"emitterChain"`
	EmitterChainName *string     `json:"emitterChainName"`
	EmitterAddress   vaa.Address `json:"emitterAddress"`
	EmitterNative    *string     `json:"emitterNative"`
	NewestSequence   uint64      `json:"newestSequence,string"`
	NewestTimestamp  *time.Time  `json:"newestTimestamp"` // VAA time; null where a body is not kept
	// Messages counts the kept messages; null when that is not known.
	Messages *int64 `json:"messages,string"`
	// Density is Messages out of the sequences from 0 to the newest: 1 where none is
	// missing. Null when Messages is.
	Density *float64 `json:"density"`
}

// EmitterPage is a part of a chain's emitters.
type EmitterPage struct {
	Items      []Emitter  `json:"items"`
	Pagination Pagination `json:"pagination"`
}

// MaxEmitters bounds a page of emitters, each of which is a seek.
const MaxEmitters = 100

// Emitters returns a page of the emitters of a chain by descending address, by one
// read of one row each.
func (s *Service) Emitters(ctx context.Context, chain vaa.ChainID, p Paging) (*EmitterPage, error) {
	limit, err := p.limit(MaxEmitters, MaxEmitters)
	if err != nil {
		return nil, err
	}
	list := newListing(s.network.String(), "emitters", text(&chain))
	after, err := list.after(p.Cursor)
	if err != nil {
		return nil, err
	}
	r := archive.Range{Chain: &chain, Descending: true, Limit: 1}
	if after != nil {
		if after.ID.EmitterChain != chain {
			return nil, outside(after.ID)
		}
		r.After = &after.ID
	}
	page := &EmitterPage{Items: []Emitter{}, Pagination: Pagination{Limit: limit}}
	for {
		record, err := s.first(ctx, r)
		if record == nil || err != nil {
			return page, err
		}
		if len(page.Items) == limit {
			page.Pagination.more(list.next(archive.Ref{ID: *r.After}))
			return page, nil
		}
		e, err := s.emitter(ctx, record)
		if err != nil {
			return nil, err
		}
		page.Items = append(page.Items, e)
		// What lies before the emitter's sequence 0 is another's.
		r.After = &vaa.MessageID{EmitterChain: chain, EmitterAddress: record.ID.EmitterAddress}
	}
}

// first returns the first record of a range with its time; nil when there is none.
func (s *Service) first(ctx context.Context, r archive.Range) (*archive.Record, error) {
	for record, err := range s.reader.Scan(ctx, r, archive.Columns{Qualifiers: []string{schema.ColTimestamp, schema.ColDigest}}) {
		return &record, err
	}
	return nil, nil
}

func (s *Service) emitter(ctx context.Context, r *archive.Record) (Emitter, error) {
	id := r.ID
	e := Emitter{
		EmitterChain: id.EmitterChain, EmitterChainName: chainName(id.EmitterChain),
		EmitterAddress: id.EmitterAddress, EmitterNative: native(id.EmitterChain, id.EmitterAddress),
		NewestSequence: id.Sequence, NewestTimestamp: utc(r.Publication.Timestamp),
	}
	var err error
	if e.Messages, err = s.messages(ctx, archive.Scope{Level: archive.LevelEmitter, Chain: id.EmitterChain, Emitter: id.EmitterAddress}); e.Messages != nil {
		density := float64(*e.Messages) / (float64(id.Sequence) + 1)
		e.Density = &density
	}
	return e, err
}

// RejectedItem is an item that was refused.
type RejectedItem struct {
	Reason   string    `json:"reason"`
	Detail   string    `json:"detail"`
	Source   string    `json:"source"`
	SHA256   string    `json:"sha256"` // of all that was delivered, in hex
	Bytes    []byte    `json:"bytes"`  // its first 64 KiB
	Count    uint64    `json:"count,string"`
	LastSeen time.Time `json:"lastSeen"`
}

// RejectPage is a part of the rejects.
type RejectPage struct {
	Items      []RejectedItem `json:"items"`
	Pagination Pagination     `json:"pagination"`
}

// Rejects returns a page of what was refused, in the order of reason and hash.
func (s *Service) Rejects(ctx context.Context, p Paging) (*RejectPage, error) {
	limit, err := p.limit(DefaultLimit, MaxLimit)
	if err != nil {
		return nil, err
	}
	list := newListing(s.network.String(), "rejects")
	place, err := list.place(p.Cursor, -1)
	if err != nil {
		return nil, err
	}
	page := &RejectPage{Items: []RejectedItem{}, Pagination: Pagination{Limit: limit}}
	if s.parts.Rejects == nil {
		return nil, missing("rejects")
	}
	var after *archive.Reject
	if place != nil {
		if len(place) <= len(after.SHA256) {
			return nil, damaged(p.Cursor)
		}
		after = &archive.Reject{SHA256: [32]byte(place), Reason: string(place[32:])}
	}
	size := 0
	for r, err := range s.parts.Rejects.Rejects(ctx, after) {
		if err != nil {
			return nil, err
		}
		if len(page.Items) == limit || size >= maxPageBytes {
			page.Pagination.more(list.cursor(append(after.SHA256[:], after.Reason...)))
			break
		}
		size += len(r.Bytes)
		page.Items = append(page.Items, RejectedItem{
			Reason: r.Reason, Detail: r.Detail, Source: r.Source, SHA256: hex.EncodeToString(r.SHA256[:]), Bytes: r.Bytes,
			Count: r.Count, LastSeen: r.LastSeen.UTC(),
		})
		after = &r
	}
	return page, nil
}

// missing is the error of a part that the service was not given.
func missing(part string) *Error {
	return &Error{Code: Unavailable, Message: part + " are not available here"}
}

// Status is where the archive is.
type Status struct {
	Network string `json:"network"`
	// Journal is null where the service has no journal.
	Journal *JournalStatus `json:"journal"`
	// Messages counts the kept messages; null when that is not known.
	Messages *int64        `json:"messages,string"`
	Newest   *NewestStatus `json:"newest"` // null while there is no message
	// Feed is null where no stream is known, or it cannot be reached, which FeedError
	// says.
	Feed      *FeedPosition `json:"feed"`
	FeedError *string       `json:"feedError"`
	Guardians uint32        `json:"guardianSetIndex"` // the newest that is known
}

// JournalStatus is where the journal is, in offsets of events.
type JournalStatus struct {
	StartSequence  uint64  `json:"startSequence,string"`  // the first
	SyncedSequence *uint64 `json:"syncedSequence,string"` // all up to it are applied; null while none is
	HeadSequence   *uint64 `json:"headSequence,string"`   // the last; null while there is none
}

// NewestStatus is the message of newest VAA time.
type NewestStatus struct {
	ID        string    `json:"id"`
	Timestamp time.Time `json:"timestamp"`
}

// Status returns where the archive is, for one chain where it is not nil.
func (s *Service) Status(ctx context.Context, chain *vaa.ChainID) (*Status, error) {
	out := &Status{Network: s.network.String(), Guardians: s.sets().Newest().Index}
	var err error
	if out.Journal, err = s.journal(ctx); err != nil {
		return nil, err
	}
	if out.Messages, err = s.messages(ctx, scopeOf(chain)); err != nil {
		return nil, err
	}
	refs, err := s.refs(ctx, archive.Lookup{By: archive.ByTime, Chain: chain, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(refs) > 0 {
		out.Newest = &NewestStatus{ID: refs[0].ID.String(), Timestamp: time.Unix(int64(refs[0].UnixSeconds), 0).UTC()}
	}
	if s.parts.Feed != nil {
		position, err := s.parts.Feed.Position(ctx)
		if err == nil {
			out.Feed = &position
		} else {
			message := "the stream cannot be reached"
			out.FeedError = &message
		}
	}
	return out, nil
}

// journal reads the journal behind what is known to be applied, which every look
// moves on.
func (s *Service) journal(ctx context.Context) (*JournalStatus, error) {
	if s.parts.Journal == nil {
		return nil, nil
	}
	low, err := s.parts.Journal.Watermark(ctx)
	if err != nil {
		return nil, err
	}
	low = max(low, archive.Offset(s.applied.Load()))
	end := low
	for b, err := range s.parts.Journal.Batches(ctx, low) {
		if err != nil {
			return nil, err
		}
		if b.Applied && low == b.Offset {
			low = b.End()
			s.applied.Store(uint64(low)) // a lower one of another request is right too
		}
		end = b.End()
	}
	return &JournalStatus{StartSequence: 1, SyncedSequence: positive(low - 1), HeadSequence: positive(end - 1)}, nil
}

func positive(o archive.Offset) *uint64 {
	if o == 0 {
		return nil
	}
	n := uint64(o)
	return &n
}
