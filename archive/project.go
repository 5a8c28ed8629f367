package archive

import (
	"fmt"
	"slices"

	"github.com/attestry/attestry/vaa"
)

// Apply brings an event of the record's message into the record. As in the
// store, an event that was written later shadows an earlier one whatever order
// they are applied in, and a second application changes nothing.
//
// An error means that the event's bytes are not what its kind says.
func (r *Record) Apply(e Event) error {
	body, err := e.Body()
	if err != nil {
		return err
	}
	if body != nil && e.WritesBody() && e.Offset > r.Publication.Offset {
		r.writeBody(e, body)
	}
	if p := &r.Publication; e.Signed() && e.Canonical && e.Offset > p.HeaderOffset {
		version := uint8(1) // the only one that verifies
		p.Version, p.GuardianSetIndex, p.HeaderOffset = &version, e.GuardianSetIndex, e.Offset
	}
	if e.Canonical && e.Offset > r.Publication.InitiatingTxIDOffset {
		r.Publication.InitiatingTxID, r.Publication.InitiatingTxIDOffset = e.InitiatingTxID, e.Offset
	}
	if e.Signed() && e.Bytes != nil {
		v := Version{
			Digest: e.Digest, GuardianSetIndex: *e.GuardianSetIndex, Bytes: e.Bytes,
			WasCanonical: e.Canonical, Offset: e.Offset,
		}
		if e.Canonical {
			recorded := e.RecordedAt
			v.RecordedAt = &recorded
		}
		r.addVersion(v)
	}
	if e.Link != nil {
		r.addLink(DigestLink{Digest: e.Digest, Link: *e.Link, Offset: e.Offset})
	}
	switch e.Kind {
	case KindConflict:
		r.ConflictMarks = mark(r.ConflictMarks, e.Digest)
		if e.Displaced != nil {
			r.ConflictMarks = mark(r.ConflictMarks, *e.Displaced)
		}
	case KindVanished:
		r.VanishedMarks = mark(r.VanishedMarks, e.Digest)
	}
	r.Sort()
	return nil
}

// Body returns the message body that the event's bytes hold, nil when the event
// has no bytes.
func (e *Event) Body() (*vaa.Body, error) {
	if e.Bytes == nil {
		return nil, nil
	}
	if !e.Signed() {
		b, err := vaa.ParseBody(e.Bytes)
		if err != nil {
			return nil, fmt.Errorf("event at offset %d: %w", e.Offset, err)
		}
		return &b, nil
	}
	v, err := vaa.Parse(e.Bytes)
	if err != nil {
		return nil, fmt.Errorf("event at offset %d: %w", e.Offset, err)
	}
	return &v.Body, nil
}

func (r *Record) writeBody(e Event, b *vaa.Body) {
	p := &r.Publication
	t, recorded, digest := b.Time(), e.RecordedAt, e.Digest
	p.Timestamp, p.Nonce, p.Sequence = &t, &b.Nonce, &b.Sequence
	p.EmitterChain, p.EmitterAddress = &b.EmitterChain, &b.EmitterAddress
	p.Payload, p.ConsistencyLevel = b.Payload, &b.ConsistencyLevel
	p.Digest, p.RecordedAt, p.Offset = &digest, &recorded, e.Offset
	if p.Payload == nil {
		p.Payload = []byte{}
	}
}

// addVersion keeps every canonical version, and of the others one for each set
// and digest, the newest.
func (r *Record) addVersion(v Version) {
	for i := range r.Versions {
		o := &r.Versions[i]
		switch {
		case o.Offset == v.Offset:
			return
		case !o.WasCanonical && !v.WasCanonical && o.Digest == v.Digest && o.GuardianSetIndex == v.GuardianSetIndex:
			if v.Offset > o.Offset {
				*o = v
			}
			return
		}
	}
	r.Versions = append(r.Versions, v)
}

func (r *Record) addLink(l DigestLink) {
	for i := range r.Links {
		if o := &r.Links[i]; o.Digest == l.Digest && o.TxID == l.TxID {
			if l.Offset > o.Offset {
				*o = l
			}
			return
		}
	}
	r.Links = append(r.Links, l)
}

func mark(marks []vaa.Digest, d vaa.Digest) []vaa.Digest {
	if slices.Contains(marks, d) {
		return marks
	}
	return append(marks, d)
}

// Clone returns a copy that shares only bytes, which nobody writes to.
func (r *Record) Clone() Record {
	c := *r
	c.Versions = slices.Clone(r.Versions)
	c.Links = slices.Clone(r.Links)
	c.ConflictMarks = slices.Clone(r.ConflictMarks)
	c.VanishedMarks = slices.Clone(r.VanishedMarks)
	c.Evidence = slices.Clone(r.Evidence)
	return c
}
