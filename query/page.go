package query

import (
	"cmp"
	"context"
	"slices"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
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

// Page is a part of a listing. It may have fewer items than its limit, even none,
// and be followed by another; HasMore alone says which.
type Page struct {
	Items      []Attestation `json:"items"` // never nil
	Pagination Pagination    `json:"pagination"`
}

// Pagination tells how a listing goes on.
type Pagination struct {
	Limit int `json:"limit"`
	// Scanned counts what was examined for the page, selected or not; Limit bounds it
	// too. Null where all that is examined is an item.
	Scanned *int    `json:"scanned"`
	Offset  *int    `json:"offset"`       // null where pages have none
	Total   *int64  `json:"total,string"` // items of all pages; null when not known
	HasMore bool    `json:"hasMore"`
	Next    *string `json:"next"` // the cursor of the next page; nil after the last
}

func (p *Pagination) more(next string) { p.HasMore, p.Next = true, &next }

// Paging asks for a page.
type Paging struct {
	Limit  int    // 1 to MaxLimit; 0 for the default
	Cursor string // Pagination.Next of the page before; "" for the first page
	// Offset skips so many messages of the listing, at most MaxOffset, which are read
	// to be skipped. It does not go with Cursor.
	Offset int
}

// check refuses an offset that is out of bounds.
func (p Paging) check() error {
	switch {
	case p.Offset < 0:
		return Invalid("offset", "offset %d is negative", p.Offset)
	case p.Offset > MaxOffset:
		return Invalid("offset", "offset %d is beyond %d: go on by cursor", p.Offset, MaxOffset)
	case p.Offset > 0 && p.Cursor != "":
		return Invalid("offset", "offset does not go with cursor: leave one of them out")
	}
	return nil
}

func (p Paging) limit(standard, most int) (int, error) {
	if p.Limit < 0 || p.Limit > most {
		return 0, Invalid("limit", "limit %d is out of range: write 1 to %d", p.Limit, most)
	}
	return cmp.Or(p.Limit, standard), nil
}

// Scan returns a page of the messages of a range: in the order of their row keys,
// or, with a range of times and no emitter, in the order of their VAA time and then
// of their row keys. r.After and r.Limit are the page's and not the caller's.
//
// Every message that is in the archive during the whole walk from page to page is on
// exactly one page; one that comes meanwhile is on at most one. With conditions the
// limit bounds what is examined, so that pages may be empty. Errors:
// archive.ErrInvalidRange; an *Error about limit or cursor.
func (s *Service) Scan(ctx context.Context, r archive.Range, columns archive.Columns, p Paging) (*Page, error) {
	if r.Emitter == nil && (r.Where.FirstTime != nil || r.Where.LastTime != nil) {
		return s.scanTime(ctx, r, columns, p)
	}
	limit, err := p.limit(DefaultLimit, MaxLimit)
	if err != nil {
		return nil, err
	}
	l := s.listingOf("scan", r)
	if p.Offset > 0 {
		skipped, ok, err := s.skipRows(ctx, r, p)
		if err != nil || !ok {
			return &Page{Items: []Attestation{}, Pagination: Pagination{Limit: limit}}, err
		}
		p.Cursor = l.next(archive.Ref{ID: skipped})
	}
	after, err := l.after(p.Cursor)
	if err != nil {
		return nil, err
	}
	if after != nil {
		if r.After = &after.ID; !contains(r, after.ID) {
			return nil, outside(after.ID)
		}
	}
	r.Limit = limit + 1
	page := &Page{Pagination: Pagination{Limit: limit}}
	var last archive.Ref
	var records []archive.Record
	size, scanned := 0, 0
	for record, err := range s.reader.Scan(ctx, r, toRead(columns)) {
		if err != nil {
			return nil, err
		}
		if scanned == limit || size >= maxPageBytes {
			page.Pagination.more(l.next(last))
			break
		}
		scanned++
		last.ID = record.ID
		if !r.Where.IsZero() && record.Empty() {
			continue
		}
		size += sizeOf(&record)
		records = append(records, record)
	}
	page.Items = make([]Attestation, len(records))
	Halves(len(records), func(from, to int) {
		for i := from; i < to; i++ {
			page.Items[i] = s.attestation(&records[i], columns)
		}
	})
	if !r.Where.IsZero() {
		page.Pagination.Scanned = &scanned
	}
	return page, nil
}

// skipRows returns the last of the messages that an offset skips, false if there are
// fewer.
func (s *Service) skipRows(ctx context.Context, r archive.Range, p Paging) (last vaa.MessageID, ok bool, err error) {
	if err := p.check(); err != nil {
		return last, false, err
	}
	r.Limit = p.Offset
	n := 0
	for record, err := range s.reader.Scan(ctx, r, archive.Columns{Qualifiers: []string{schema.ColDigest}}) {
		if err != nil {
			return last, false, err
		}
		n++
		last = record.ID
	}
	return last, n == p.Offset, nil
}

func outside(id vaa.MessageID) error {
	return Invalid("cursor", "cursor names message %s, which is not in this listing: start over without it", id)
}

// sizeOf returns the bytes of a record's payload and VAAs.
func sizeOf(r *archive.Record) int {
	n := len(r.Publication.Payload)
	for i := range r.Versions {
		n += len(r.Versions[i].Bytes)
	}
	return n
}

// scanTime is Scan over the index of times.
func (s *Service) scanTime(ctx context.Context, r archive.Range, columns archive.Columns, p Paging) (*Page, error) {
	limit, err := p.limit(DefaultLimit, MaxLimit)
	if err != nil {
		return nil, err
	}
	l := archive.Lookup{By: archive.ByTime, Chain: r.Chain, OldestFirst: !r.Descending}
	if t := r.Where.FirstTime; t != nil {
		seconds := uint32(t.Unix())
		l.FirstTime = &seconds
	}
	if t := r.Where.LastTime; t != nil {
		seconds := uint32(t.Unix())
		l.LastTime = &seconds
	}
	where := r.Where
	where.FirstTime, where.LastTime = nil, nil // the index has them
	return s.lookup(ctx, s.listingOf("time", r), l, found{columns: columns, where: where}, limit, p)
}

// found says what of the messages that an index names is answered.
type found struct {
	columns archive.Columns
	where   archive.Where
	// matches: digests that lost are found too, and each item says what became of
	// those that were found. Else only messages whose standing digest the index has.
	matches bool
}

// lookup returns a page of what an index names, in its order.
func (s *Service) lookup(ctx context.Context, list listing, l archive.Lookup, f found, limit int, p Paging) (*Page, error) {
	if p.Offset > MaxOffset {
		return nil, s.beyond(ctx, list, l, p.Offset)
	}
	err := p.check()
	if err == nil && p.Offset > 0 {
		if p.Cursor, err = s.skip(ctx, list, l, p.Offset); err == nil && p.Cursor == "" {
			return &Page{Items: []Attestation{}, Pagination: Pagination{Limit: limit}}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if l.After, err = list.after(p.Cursor); err != nil {
		return nil, err
	}
	if l.After != nil && !within(l, l.After) {
		return nil, outside(l.After.ID)
	}
	l.Limit = limit + 1
	refs, err := s.refs(ctx, l)
	if err != nil {
		return nil, err
	}
	page := &Page{Pagination: Pagination{Limit: limit}}
	more := len(refs) > limit
	read := 0
	if page.Items, read, err = s.attestations(ctx, refs[:min(limit, len(refs))], f); err != nil {
		return nil, err
	}
	if more || read < len(refs) {
		page.Pagination.more(list.next(refs[read-1]))
	}
	if !f.matches {
		page.Pagination.Scanned = &read
	}
	return page, nil
}

// within reports whether a place may be one of the lookup's answers.
func within(l archive.Lookup, r *archive.Ref) bool {
	chain := r.ID.EmitterChain
	if l.By == archive.ByRecipient {
		chain = r.RecipientChain
	}
	return (l.Chain == nil || *l.Chain == chain) &&
		(l.FirstTime == nil || *l.FirstTime <= r.UnixSeconds) && (l.LastTime == nil || r.UnixSeconds <= *l.LastTime)
}

// refs returns what a lookup names, at most its limit.
func (s *Service) refs(ctx context.Context, l archive.Lookup) ([]archive.Ref, error) {
	var refs []archive.Ref
	for ref, err := range s.reader.Lookup(ctx, l) {
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// getChunk is how many messages an index page reads at once; what is read between
// two looks at maxPageBytes.
const getChunk = archive.MaxBatchItems

// attestations returns what the refs point at, in their order, and how many of them
// it read: not all when they are large. One that points at nothing is left out: its
// row is still to be written.
func (s *Service) attestations(ctx context.Context, refs []archive.Ref, f found) ([]Attestation, int, error) {
	items := make([]Attestation, 0, len(refs))
	columns := f.toRead()
	read, size := 0, 0
	for chunk := range slices.Chunk(refs, getChunk) {
		if size >= maxPageBytes {
			break
		}
		ids := make([]vaa.MessageID, len(chunk))
		for i := range chunk {
			ids[i] = chunk[i].ID
		}
		records, err := s.reader.GetAll(ctx, ids, columns)
		if err != nil {
			return nil, 0, err
		}
		for _, ref := range chunk {
			read++
			record, ok := records[ref.ID]
			if !ok || !f.holds(&record, ref) {
				continue
			}
			size += sizeOf(&record)
			a := s.attestation(&record, f.columns)
			if f.matches {
				a.Matches = matches(&record, ref.Digests)
			}
			items = append(items, a)
		}
	}
	return items, read, nil
}

// toRead returns what to read to tell whether a message is answered, and to answer.
func (f found) toRead() archive.Columns {
	if f.where.IsZero() {
		return toRead(f.columns)
	}
	return toRead(f.columns, schema.ColPayload, schema.ColGuardianSetIndex, schema.ColSignedVAA, schema.ColInitiatingTxID)
}

// holds reports whether a message that an index named is answered.
func (f found) holds(r *archive.Record, ref archive.Ref) bool {
	if !f.where.Selects(r) {
		return false
	}
	stands := r.Digest()
	return f.matches || stands != nil && slices.Contains(ref.Digests, *stands)
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
	return s.byKey(ctx, "tx", archive.Lookup{By: archive.ByTx, Key: key, Chain: chain}, MaxLimit, p)
}

// ByDigest returns the messages that have a digest: the signing digest or the
// single hash. Digests that lost are found too, as each item's Matches say. The
// default limit is MaxLimit.
func (s *Service) ByDigest(ctx context.Context, digest vaa.Digest, p Paging) (*Page, error) {
	return s.byKey(ctx, "digest", archive.Lookup{By: archive.ByDigest, Key: digest.String()}, MaxLimit, p)
}

// ByRecipient returns the transfers to an address, newest first unless turned round;
// chain, when not nil, keeps those to one chain, and without one, transfers are in
// the order of the recipient's chain first.
func (s *Service) ByRecipient(ctx context.Context, to vaa.Address, chain *vaa.ChainID, oldestFirst bool, p Paging) (*Page, error) {
	l := archive.Lookup{By: archive.ByRecipient, Key: to.String(), Chain: chain, OldestFirst: oldestFirst}
	return s.byKey(ctx, "to", l, DefaultLimit, p)
}

// Conflicts returns the messages of which more than one digest was seen, in the
// order of their row keys; chain, when not nil, keeps those of one emitter chain.
func (s *Service) Conflicts(ctx context.Context, chain *vaa.ChainID, p Paging) (*Page, error) {
	return s.byKey(ctx, "conflict", archive.Lookup{By: archive.ByConflict, Chain: chain}, DefaultLimit, p)
}

// byKey looks one key of an index up.
func (s *Service) byKey(ctx context.Context, kind string, l archive.Lookup, standard int, p Paging) (*Page, error) {
	limit, err := p.limit(standard, MaxLimit)
	if err != nil {
		return nil, err
	}
	list := newListing(s.network.String(), kind, l.Key, text(l.Chain), text(&l.OldestFirst))
	return s.lookup(ctx, list, l, found{matches: true}, limit, p)
}

// ByTime returns messages in the order of their VAA time and then of their row keys,
// of all chains or of one, newest first unless turned round.
func (s *Service) ByTime(ctx context.Context, chain *vaa.ChainID, columns archive.Columns, oldestFirst bool, p Paging) (*Page, error) {
	limit, err := p.limit(DefaultLimit, MaxLimit)
	if err != nil {
		return nil, err
	}
	list := newListing(s.network.String(), "by time", text(chain), text(&oldestFirst))
	return s.lookup(ctx, list, archive.Lookup{By: archive.ByTime, Chain: chain, OldestFirst: oldestFirst}, found{columns: columns}, limit, p)
}

// Bounds of Recent.
const (
	MaxRecent = 100
	MaxOffset = 10_000
)

// Recent is ByTime for the newest messages, MaxRecent at most, with the total.
func (s *Service) Recent(ctx context.Context, chain *vaa.ChainID, columns archive.Columns, p Paging) (*Page, error) {
	var err error
	if p.Limit, err = p.limit(MaxRecent, MaxRecent); err != nil {
		return nil, err
	}
	page, err := s.ByTime(ctx, chain, columns, false, p)
	if err != nil {
		return nil, err
	}
	if p.Cursor == "" {
		page.Pagination.Offset = &p.Offset
	}
	page.Pagination.Total, err = s.messages(ctx, scopeOf(chain))
	return page, err
}

// skip returns the cursor behind the first n answers of a lookup, "" if there are
// fewer.
func (s *Service) skip(ctx context.Context, list listing, l archive.Lookup, n int) (string, error) {
	l.Limit = n
	refs, err := s.refs(ctx, l)
	if err != nil || len(refs) < n {
		return "", err
	}
	return list.next(refs[n-1]), nil
}

// beyond is the error of an offset that is too large, with the way on.
func (s *Service) beyond(ctx context.Context, list listing, l archive.Lookup, offset int) error {
	cursor, err := s.skip(ctx, list, l, MaxOffset)
	if err != nil {
		return err
	}
	if cursor == "" {
		return Invalid("offset", "offset %d is beyond %d, and there are fewer messages than that", offset, MaxOffset)
	}
	return Invalid("offset", "offset %d is beyond %d: go on from there with cursor=%s", offset, MaxOffset, cursor)
}
