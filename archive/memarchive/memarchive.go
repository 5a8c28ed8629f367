// Package memarchive is the reference model of archive.Store: the whole archive
// in memory, in the plainest code, which refuses every history that the rules of
// docs/protocol.md do not allow. Tests hold other implementations against it and
// run simulations on it; it is no store to keep anything in.
package memarchive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

// ErrIllegal marks what no legal history contains. It means a fault in the
// caller, never in the outside world.
var ErrIllegal = errors.New("illegal history")

// Store is an archive in memory. Its methods may be called concurrently.
type Store struct {
	info archive.StoreInfo
	now  func() time.Time

	mu         sync.Mutex // guards all below
	sealed     bool
	starts     []archive.Offset // offsets of the batches, ascending
	batches    map[archive.Offset]*archive.Batch
	written    map[archive.Offset]bool // event offsets whose cells were put
	truth      map[vaa.MessageID]*archive.Record
	rows       map[vaa.MessageID]*archive.Record
	index      map[string]map[vaa.Digest]bool
	cursors    map[string]uint64
	rejects    map[string]archive.Reject
	upgrades   map[uint32][]byte
	buckets    map[uint64]map[archive.BucketKey]archive.Bucket // by generation
	watermark  archive.Offset
	violations []error
}

var _ archive.Store = (*Store)(nil)

// New returns an empty store of the first generation and epoch. now is the
// store's clock.
func New(network vaa.Network, now func() time.Time) *Store {
	return &Store{
		info:      archive.StoreInfo{Network: network, Generation: 1, Epoch: 1},
		now:       now,
		batches:   map[archive.Offset]*archive.Batch{},
		written:   map[archive.Offset]bool{},
		truth:     map[vaa.MessageID]*archive.Record{},
		rows:      map[vaa.MessageID]*archive.Record{},
		index:     map[string]map[vaa.Digest]bool{},
		cursors:   map[string]uint64{},
		rejects:   map[string]archive.Reject{},
		upgrades:  map[uint32][]byte{},
		buckets:   map[uint64]map[archive.BucketKey]archive.Bucket{},
		watermark: 1,
	}
}

// Info tells which store this is.
func (s *Store) Info() archive.StoreInfo { return s.info }

// Clock returns the store's time.
func (s *Store) Clock(ctx context.Context) (time.Time, error) { return s.now(), ctx.Err() }

// Seal makes every later CheckOpen return archive.ErrSealed.
func (s *Store) Seal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = true
}

// Violations returns what was refused as illegal so far.
func (s *Store) Violations() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]error(nil), s.violations...)
}

// illegal records and returns a violation. The caller holds s.mu.
func (s *Store) illegal(format string, args ...any) error {
	err := fmt.Errorf("%w: %w", ErrIllegal, fmt.Errorf(format, args...))
	s.violations = append(s.violations, err)
	return err
}

// end returns the offset after the last batch. The caller holds s.mu.
func (s *Store) end() archive.Offset {
	if len(s.starts) == 0 {
		return 1
	}
	return s.batches[s.starts[len(s.starts)-1]].End()
}

// Append stores a batch. Besides the port's errors it returns ErrIllegal for a
// batch that could only come of a broken rule.
func (s *Store) Append(ctx context.Context, b archive.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		if errors.Is(err, archive.ErrTooLarge) {
			return err
		}
		return s.illegal("%w", err)
	}
	if _, ok := s.batches[b.Offset]; ok {
		return archive.ErrOffsetTaken
	}
	if end := s.end(); b.Offset != end {
		return s.illegal("batch at offset %d while the journal ends at %d", b.Offset, end)
	}
	if err := s.legal(&b); err != nil {
		return s.illegal("batch at offset %d: %w", b.Offset, err)
	}
	b.Applied = false
	b.Events = append([]archive.Event(nil), b.Events...)
	for i := range b.Events {
		b.Events[i].RecordedAt = b.WallTime
	}
	s.batches[b.Offset] = &b
	s.starts = append(s.starts, b.Offset)
	return nil
}

// Apply puts rows and index entries of the events of a batch. A part of a batch
// may be applied, as a store does that dies in the middle.
func (s *Store) Apply(ctx context.Context, b archive.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	stored, ok := s.batches[b.Offset]
	if !ok {
		return s.illegal("apply of a batch at offset %d that the journal does not have", b.Offset)
	}
	for _, e := range b.Events {
		if i := int(e.Offset - stored.Offset); i >= len(stored.Events) || !sameEvent(&stored.Events[i], &e) {
			return s.illegal("apply of an event at offset %d that is not the journal's", e.Offset)
		}
		if err := s.put(e); err != nil {
			return s.illegal("%w", err)
		}
	}
	return nil
}

func (s *Store) put(e archive.Event) error {
	r := s.rows[e.ID]
	if r == nil {
		r = &archive.Record{ID: e.ID}
		s.rows[e.ID] = r
	}
	if err := r.Apply(e); err != nil {
		return err
	}
	cells, err := archive.IndexCells(s.info.Network, &e)
	if err != nil {
		return err
	}
	for _, c := range cells {
		if s.index[c.Key] == nil {
			s.index[c.Key] = map[vaa.Digest]bool{}
		}
		s.index[c.Key][c.Digest] = true
	}
	s.written[e.Offset] = true
	return nil
}

// MarkApplied records that the batch at offset o is applied.
func (s *Store) MarkApplied(ctx context.Context, o archive.Offset) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	b, ok := s.batches[o]
	if !ok {
		return fmt.Errorf("mark batch at offset %d applied: %w", o, archive.ErrNotFound)
	}
	for i := range b.Events {
		if !s.written[b.Events[i].Offset] {
			return s.illegal("batch at offset %d marked applied, but the row of the event at %d is missing", o, b.Events[i].Offset)
		}
	}
	b.Applied = true
	return nil
}

// PutEvidence keeps signatures at their rows.
func (s *Store) PutEvidence(ctx context.Context, evidence []archive.Evidence) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, e := range evidence {
		r := s.rows[e.ID]
		if r == nil {
			r = &archive.Record{ID: e.ID}
			s.rows[e.ID] = r
		}
		known := false
		for i := range r.Evidence {
			o := &r.Evidence[i]
			if o.GuardianSetIndex == e.GuardianSetIndex && o.Digest == e.Digest && o.Signature.GuardianIndex == e.Signature.GuardianIndex {
				*o, known = e, true
			}
		}
		if !known {
			r.Evidence = append(r.Evidence, e)
		}
		r.Sort()
	}
	return nil
}

// CheckOpen reports whether the store was sealed.
func (s *Store) CheckOpen(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed {
		return archive.ErrSealed
	}
	return ctx.Err()
}

// Watermark returns the highest watermark set.
func (s *Store) Watermark(ctx context.Context) (archive.Offset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watermark, ctx.Err()
}

// RaiseWatermark records that all batches before w are applied.
func (s *Store) RaiseWatermark(ctx context.Context, w archive.Offset) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if w > s.end() {
		return s.illegal("watermark %d beyond the journal's end %d", w, s.end())
	}
	for _, o := range s.starts {
		if o < w && !s.batches[o].Applied {
			return s.illegal("watermark %d, but the batch at offset %d is not applied", w, o)
		}
	}
	s.watermark = max(s.watermark, w)
	return nil
}

// Record returns the row of a message as it is stored, for comparisons.
func (s *Store) Record(id vaa.MessageID) (archive.Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.rows[id]
	if !ok {
		return archive.Record{}, false
	}
	return r.Clone(), true
}

// sameEvent compares what identifies an event and its effect.
func sameEvent(a, b *archive.Event) bool {
	return a.Offset == b.Offset && a.Kind == b.Kind && a.ID == b.ID && a.Digest == b.Digest &&
		a.Canonical == b.Canonical && string(a.Bytes) == string(b.Bytes)
}

func keyOf(id vaa.MessageID) string { return rowkey.Of(id) }
