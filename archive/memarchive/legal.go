package memarchive

import (
	"fmt"
	"slices"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// legal checks a batch against the projection of the whole journal before it,
// and on success makes it part of that projection. The caller holds s.mu.
//
// What is checked is written from the rules, not from the code that classifies.
func (s *Store) legal(b *archive.Batch) error {
	if n := len(s.starts); n > 0 {
		if last := s.batches[s.starts[n-1]]; b.WallTime.Before(last.WallTime) {
			return fmt.Errorf("wall time %s is before its predecessor's %s", b.WallTime, last.WallTime)
		}
	}
	next := map[vaa.MessageID]*archive.Record{}
	for _, e := range b.Events {
		e.RecordedAt = b.WallTime
		r := next[e.ID]
		if r == nil {
			clone := archive.Record{ID: e.ID}
			if t := s.truth[e.ID]; t != nil {
				clone = t.Clone()
			}
			r = &clone
			next[e.ID] = r
		}
		if err := legalEvent(r, &e, b.Class); err != nil {
			return fmt.Errorf("event at offset %d, %s of %s: %w", e.Offset, e.Kind, e.ID, err)
		}
		if err := r.Apply(e); err != nil {
			return err
		}
	}
	for id, r := range next {
		s.truth[id] = r
	}
	return nil
}

func legalEvent(r *archive.Record, e *archive.Event, class archive.Class) error {
	if is := r.Standing(); e.Before != nil && (is == nil || *e.Before != *is) {
		return fmt.Errorf("before it stood %v, not %v", is, *e.Before)
	}
	if e.Expired && class == archive.ClassLive {
		return fmt.Errorf("signed by an expired set, but of class live")
	}
	if e.Link != nil {
		if trust, ok := r.LinkTrust(e.Digest, e.Link.TxID); ok && trust >= e.Link.Trust {
			return fmt.Errorf("link to %s is known with trust %s", e.Link.TxID, trust)
		}
	}
	if e.Signed() {
		return legalSigned(r, e)
	}
	current := r.Digest()
	is := current != nil && *current == e.Digest
	switch e.Kind {
	case archive.KindObserved:
		if r.Signed() != nil {
			return fmt.Errorf("a publication where a signed VAA stands")
		}
		if current != nil && !slices.Contains(r.VanishedMarks, *current) {
			return fmt.Errorf("digest %s was observed and has not vanished", *current)
		}
		if slices.Contains(r.VanishedMarks, e.Digest) {
			return fmt.Errorf("the digest had vanished")
		}
	case archive.KindLinked:
		if e.Link == nil || current == nil {
			return fmt.Errorf("no link, or nothing known of the message")
		}
		if e.Canonical != is {
			return fmt.Errorf("canonical is %t, but the row's digest is %s", e.Canonical, *current)
		}
	case archive.KindVanished:
		if !is || r.Signed() != nil {
			return fmt.Errorf("the digest is not the observed one")
		}
	case archive.KindConflict:
		if r.Signed() == nil || is || slices.Contains(r.ConflictMarks, e.Digest) {
			return fmt.Errorf("no other signed digest, or marked before")
		}
	default:
		return fmt.Errorf("without a guardian set")
	}
	return nil
}

// legalSigned holds rule 4 of the design: the digest signed by the newer set is
// canonical, within one set the first.
func legalSigned(r *archive.Record, e *archive.Event) error {
	if r.Known(e.Digest, *e.GuardianSetIndex) {
		return fmt.Errorf("digest %s under set %d is journalled already", e.Digest, *e.GuardianSetIndex)
	}
	canonical := true
	kind := archive.KindQuorum
	if s := r.Signed(); s != nil {
		canonical = *e.GuardianSetIndex > s.GuardianSetIndex
		kind = archive.KindConflict
		if s.Digest == e.Digest {
			kind = archive.KindResigned
		}
	} else if d := r.Digest(); d != nil && *d != e.Digest && !slices.Contains(r.VanishedMarks, *d) {
		return fmt.Errorf("digest %s was observed and has not vanished", *d)
	}
	if e.Kind != kind || e.Canonical != canonical {
		return fmt.Errorf("canonical %t, should be %s with canonical %t", e.Canonical, kind, canonical)
	}
	if len(e.Bytes) == 0 {
		return fmt.Errorf("without bytes")
	}
	return nil
}
