package query

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

// Bounds of a page.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
	// maxPageBytes ends a page early when the VAAs and payloads in it reach this
	// sum, so that one answer cannot take the memory of a thousand large ones.
	maxPageBytes = 16 << 20
)

// Page is a part of a listing. It may have fewer items than its limit and be
// followed by another; HasMore alone says which.
type Page struct {
	Items      []Attestation `json:"items"` // never nil
	Pagination Pagination    `json:"pagination"`
}

// Pagination tells how a listing goes on.
type Pagination struct {
	Limit   int     `json:"limit"`
	HasMore bool    `json:"hasMore"`
	Next    *string `json:"next"` // the cursor of the next page; nil after the last
}

// Paging asks for a page.
type Paging struct {
	Limit  int    // 1 to MaxLimit; 0 for the default
	Cursor string // Pagination.Next of the page before; "" for the first page
}

func (p Paging) limit(standard int) (int, error) {
	if p.Limit < 0 || p.Limit > MaxLimit {
		return 0, Invalid("limit", "limit %d is out of range: write 1 to %d", p.Limit, MaxLimit)
	}
	return cmp.Or(p.Limit, standard), nil
}

// Scan returns a page of the messages of a range in the order of their row keys.
// r.After and r.Limit are the page's and not the caller's. Every message that is
// in the archive during the whole walk from page to page is on exactly one page;
// one that comes meanwhile is on at most one. Errors: archive.ErrInvalidRange; an
// *Error about limit or cursor.
func (s *Service) Scan(ctx context.Context, r archive.Range, columns archive.Columns, p Paging) (*Page, error) {
	limit, err := p.limit(DefaultLimit)
	if err != nil {
		return nil, err
	}
	l := s.listingOf(r)
	if r.After, err = l.after(p.Cursor); err != nil {
		return nil, err
	}
	if r.After != nil && !contains(r, *r.After) {
		return nil, Invalid("cursor", "cursor names message %s, which is not in this listing: start over without it", *r.After)
	}
	r.Limit = limit + 1
	page := &Page{Items: []Attestation{}, Pagination: Pagination{Limit: limit}}
	size := 0
	for record, err := range s.reader.Scan(ctx, r, toRead(columns)) {
		if err != nil {
			return nil, err
		}
		if len(page.Items) == limit || size >= maxPageBytes {
			page.more(l, page.Items[len(page.Items)-1].id)
			break
		}
		size += sizeOf(&record)
		page.Items = append(page.Items, s.attestation(&record, columns))
	}
	return page, nil
}

// sizeOf returns the bytes of a record's payload and VAAs.
func sizeOf(r *archive.Record) int {
	n := len(r.Publication.Payload)
	for i := range r.Versions {
		n += len(r.Versions[i].Bytes)
	}
	return n
}

func (p *Page) more(l listing, last vaa.MessageID) {
	next := l.cursor(last)
	p.Pagination.HasMore, p.Pagination.Next = true, &next
}

// ByTx returns the messages that a transaction published, in the order of their
// row keys; chain, when not nil, keeps those of one emitter chain. The
// transaction is in any spelling that archive.ParseTxID reads. Links of digests
// that lost are among them: each item's Matches say for which digests the link is
// known and what became of those. The default limit is MaxLimit.
func (s *Service) ByTx(ctx context.Context, txID string, chain *vaa.ChainID, p Paging) (*Page, error) {
	key, err := archive.ParseTxID(txID)
	if err != nil {
		return nil, Invalid("txid", "%w", err)
	}
	return s.lookup(ctx, archive.Lookup{By: archive.ByTx, Key: key, Chain: chain}, p)
}

// ByDigest returns the messages that have a digest: the signing digest or the
// single hash. Digests that lost are found too, as each item's Matches say. The
// default limit is MaxLimit.
func (s *Service) ByDigest(ctx context.Context, digest vaa.Digest, p Paging) (*Page, error) {
	return s.lookup(ctx, archive.Lookup{By: archive.ByDigest, Key: digest.String()}, p)
}

func (s *Service) lookup(ctx context.Context, l archive.Lookup, p Paging) (*Page, error) {
	limit, err := p.limit(MaxLimit)
	if err != nil {
		return nil, err
	}
	kind, chain := "digest", ""
	if l.By == archive.ByTx {
		kind = "tx"
	}
	if l.Chain != nil {
		chain = rowkey.Chain(*l.Chain)
	}
	list := newListing(s.network.String(), kind, l.Key, chain)
	after, err := list.after(p.Cursor)
	if err != nil {
		return nil, err
	}
	refs, more, err := s.refs(ctx, []archive.Lookup{l}, after, limit)
	if err != nil {
		return nil, err
	}
	page := &Page{Pagination: Pagination{Limit: limit}}
	if page.Items, err = s.attestations(ctx, refs); err != nil {
		return nil, err
	}
	if more {
		page.more(list, refs[len(refs)-1].ID)
	}
	return page, nil
}

// refs returns the first limit messages after one that any of the lookups names,
// in the order of their row keys, each once; and whether there are more.
func (s *Service) refs(ctx context.Context, lookups []archive.Lookup, after *vaa.MessageID, limit int) ([]archive.Ref, bool, error) {
	found := map[string]archive.Ref{}
	for _, l := range lookups {
		if after == nil {
			l.Limit = limit + 1
		}
		n := 0
		for ref, err := range s.reader.Lookup(ctx, l) {
			if err != nil {
				return nil, false, err
			}
			key := rowkey.Of(ref.ID)
			if after != nil && key <= rowkey.Of(*after) {
				continue
			}
			ref.Digests = slices.Concat(found[key].Digests, ref.Digests)
			found[key] = ref
			if n++; n > limit {
				break
			}
		}
	}
	var refs []archive.Ref
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if len(refs) == limit {
			return refs, true, nil
		}
		refs = append(refs, found[key])
	}
	return refs, false, nil
}

// attestations returns what the refs point at, in their order. One that points at
// nothing is left out: its row is still to be written.
func (s *Service) attestations(ctx context.Context, refs []archive.Ref) ([]Attestation, error) {
	items := make([]Attestation, 0, len(refs))
	for chunk := range slices.Chunk(refs, archive.MaxBatchItems) {
		ids := make([]vaa.MessageID, len(chunk))
		for i := range chunk {
			ids[i] = chunk[i].ID
		}
		records, err := s.reader.GetAll(ctx, ids, archive.Columns{})
		if err != nil {
			return nil, err
		}
		for _, ref := range chunk {
			record, ok := records[ref.ID]
			if !ok {
				continue
			}
			a := s.attestation(&record, archive.Columns{})
			a.Matches = matches(&record, ref.Digests)
			items = append(items, a)
		}
	}
	return items, nil
}
