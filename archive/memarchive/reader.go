package memarchive

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// Get returns one record.
func (s *Store) Get(ctx context.Context, id vaa.MessageID, columns archive.Columns) (archive.Record, error) {
	all, err := s.GetAll(ctx, []vaa.MessageID{id}, columns)
	if err != nil {
		return archive.Record{}, err
	}
	r, ok := all[id]
	if !ok {
		return archive.Record{}, fmt.Errorf("message %s: %w", id, archive.ErrNotFound)
	}
	return r, nil
}

// GetAll returns the records of those ids that have one.
func (s *Store) GetAll(ctx context.Context, ids []vaa.MessageID, columns archive.Columns) (map[vaa.MessageID]archive.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(ids) > archive.MaxBatchItems {
		return nil, fmt.Errorf("get %d messages: at most %d at once: %w", len(ids), archive.MaxBatchItems, archive.ErrInvalidRange)
	}
	out := map[vaa.MessageID]archive.Record{}
	for _, id := range ids {
		if r, ok := s.selected(id, columns); ok {
			out[id] = r
		}
	}
	return out, nil
}

// selected returns a copy of the asked part of a record. A row with none of the
// asked cells is no row, as in Bigtable. The caller holds s.mu.
func (s *Store) selected(id vaa.MessageID, columns archive.Columns) (archive.Record, bool) {
	r, ok := s.rows[id]
	if !ok {
		return archive.Record{}, false
	}
	clone := r.Clone()
	part := clone.Select(columns)
	return part, !part.Empty()
}

// Scan yields the records of a range.
func (s *Store) Scan(ctx context.Context, r archive.Range, columns archive.Columns) iter.Seq2[archive.Record, error] {
	return func(yield func(archive.Record, error) bool) {
		if err := r.Check(); err != nil {
			yield(archive.Record{}, err)
			return
		}
		n := 0
		for _, id := range s.idsIn(r) {
			s.mu.Lock()
			rec, ok := s.selected(id, columns)
			if ok && !r.Where.Selects(s.rows[id]) {
				rec = archive.Record{ID: id}
			}
			s.mu.Unlock()
			if err := ctx.Err(); err != nil {
				yield(archive.Record{}, err)
				return
			}
			if !ok {
				continue
			}
			if n++; !yield(rec, nil) || r.Limit > 0 && n == r.Limit {
				return
			}
		}
	}
}

func (s *Store) idsIn(r archive.Range) []vaa.MessageID {
	s.mu.Lock()
	defer s.mu.Unlock()
	byKey := func(a, b vaa.MessageID) int { return cmp.Compare(keyOf(a), keyOf(b)) }
	ids := slices.SortedFunc(maps.Keys(s.rows), byKey)
	if r.Descending {
		slices.Reverse(ids)
	}
	return slices.DeleteFunc(ids, func(id vaa.MessageID) bool {
		out := r.Chain != nil && id.EmitterChain != *r.Chain || r.Emitter != nil && id.EmitterAddress != *r.Emitter ||
			r.FirstSequence != nil && id.Sequence < *r.FirstSequence || r.LastSequence != nil && id.Sequence > *r.LastSequence
		if r.After != nil {
			c := byKey(id, *r.After)
			out = out || !r.Descending && c <= 0 || r.Descending && c >= 0
		}
		return out
	})
}

// Lookup yields what an index names.
func (s *Store) Lookup(ctx context.Context, l archive.Lookup) iter.Seq2[archive.Ref, error] {
	return func(yield func(archive.Ref, error) bool) {
		refs, err := s.refs(l)
		if err != nil {
			yield(archive.Ref{}, err)
			return
		}
		for i, ref := range refs {
			if err := ctx.Err(); err != nil {
				yield(archive.Ref{}, err)
				return
			}
			if !yield(ref, nil) || i+1 == l.Limit {
				return
			}
		}
	}
}

func (s *Store) refs(l archive.Lookup) ([]archive.Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	spans, err := l.Spans()
	if err != nil {
		return nil, err
	}
	type found struct {
		order string
		ref   archive.Ref
	}
	var all []found
	for key, digests := range s.index {
		for _, sp := range spans {
			if !strings.HasPrefix(key, sp.Prefix) || key < sp.Start || key >= sp.End {
				continue
			}
			ref, err := l.Ref(archive.IndexRow{Key: key, Digests: slices.SortedFunc(maps.Keys(digests), compareDigests)})
			if err != nil {
				return nil, err
			}
			all = append(all, found{key[len(sp.Prefix):], ref})
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		if l.NewestFirst() {
			return cmp.Compare(b.order, a.order)
		}
		return cmp.Compare(a.order, b.order)
	})
	refs := make([]archive.Ref, len(all))
	for i := range all {
		refs[i] = all[i].ref
	}
	return refs, nil
}

// IndexRows yields every row of the index in the order of keys.
func (s *Store) IndexRows(ctx context.Context) iter.Seq2[archive.IndexRow, error] {
	return func(yield func(archive.IndexRow, error) bool) {
		s.mu.Lock()
		rows := make([]archive.IndexRow, 0, len(s.index))
		for key, digests := range s.index {
			rows = append(rows, archive.IndexRow{Key: key, Digests: slices.SortedFunc(maps.Keys(digests), compareDigests)})
		}
		s.mu.Unlock()
		slices.SortFunc(rows, func(a, b archive.IndexRow) int { return cmp.Compare(a.Key, b.Key) })
		for _, row := range rows {
			if err := ctx.Err(); err != nil {
				yield(archive.IndexRow{}, err)
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

func compareDigests(a, b vaa.Digest) int { return bytes.Compare(a[:], b[:]) }

// Batches yields the journal from the batch that holds from.
func (s *Store) Batches(ctx context.Context, from archive.Offset) iter.Seq2[archive.Batch, error] {
	return func(yield func(archive.Batch, error) bool) {
		next := max(from, 1)
		for {
			if err := ctx.Err(); err != nil {
				yield(archive.Batch{}, err)
				return
			}
			b, ok := s.holding(next)
			if !ok || !yield(b, nil) {
				return
			}
			next = b.End()
		}
	}
}

// BatchOffsets yields the offsets at which batches begin, ascending, from one on.
func (s *Store) BatchOffsets(ctx context.Context, from archive.Offset) iter.Seq2[archive.Offset, error] {
	return func(yield func(archive.Offset, error) bool) {
		s.mu.Lock()
		starts := slices.Clone(s.starts)
		s.mu.Unlock()
		for _, o := range starts {
			if err := ctx.Err(); err != nil {
				yield(0, err)
				return
			}
			if o >= from && !yield(o, nil) {
				return
			}
		}
	}
}

func (s *Store) holding(o archive.Offset) (archive.Batch, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, exact := slices.BinarySearch(s.starts, o)
	if !exact {
		i--
	}
	if i < 0 {
		return archive.Batch{}, false
	}
	b := s.batches[s.starts[i]]
	if o >= b.End() {
		return archive.Batch{}, false
	}
	out := *b
	out.Events = slices.Clone(b.Events)
	return out, true
}
