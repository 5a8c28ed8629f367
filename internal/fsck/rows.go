package fsck

import (
	"context"
	"errors"
	"fmt"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

// checkRows compares the rows of the slice's range with its facts, one scan beside
// the sorted facts.
func (c *checker) checkRows(ctx context.Context, s *slice) error {
	rest := s.ids() // without a row so far
	// before checks the messages that come before a row key, all when it is "": they
	// have no row.
	before := func(key string) error {
		for len(rest) > 0 && (key == "" || rowkey.Of(rest[0]) < key) {
			if err := c.checkMessage(ctx, s, rest[0], nil); err != nil {
				return err
			}
			rest = rest[1:]
		}
		return nil
	}
	row := func(r *archive.Record) error {
		if err := before(rowkey.Of(r.ID)); err != nil {
			return err
		}
		if len(rest) > 0 && rest[0] == r.ID {
			rest = rest[1:]
		}
		c.report.Rows++
		c.report.Versions += len(r.Versions)
		return c.checkMessage(ctx, s, r.ID, r)
	}
	from, err := rangeAfter(s.after)
	if err != nil {
		return err
	}
	for {
		failed, err := c.scan(ctx, s, &from, row)
		if err != nil {
			return err
		}
		if failed == nil {
			return before("")
		}
		// A row cannot be read, and the error's text alone says which. Of the messages
		// to come the next tells where to go on.
		if down := c.answers(ctx); down != nil {
			return errors.Join(failed, down)
		}
		if len(rest) == 0 {
			c.found(KindRowUnreadable, s.after, "a row behind the last that has events: %v", failed)
			return nil
		}
		id := rest[0]
		r, err := c.store.Get(ctx, id, archive.Columns{})
		switch {
		case err == nil || errors.Is(err, archive.ErrNotFound):
			c.found(KindRowUnreadable, rowkey.Of(id), "a row at or before this key: %v", failed)
			if err == nil {
				err = row(&r)
			} else {
				err = c.checkMessage(ctx, s, id, nil)
				rest = rest[1:]
			}
		case c.answers(ctx) != nil:
			return err
		default:
			c.found(KindRowUnreadable, rowkey.Of(id), "%v", err)
			rest, err = rest[1:], nil
		}
		if err != nil {
			return err
		}
		from.After = &id
	}
}

func rangeAfter(key string) (archive.Range, error) {
	if key == "" {
		return archive.Range{}, nil
	}
	id, err := rowkey.Parse(key)
	return archive.Range{After: &id}, err
}

// scan calls row with each record of the range that is of the slice, and moves the
// range behind it. failed is the scan's error, err that of row.
func (c *checker) scan(ctx context.Context, s *slice, from *archive.Range, row func(*archive.Record) error) (failed, err error) {
	for r, err := range c.store.Scan(ctx, *from, archive.Columns{}) {
		if err != nil {
			return err, nil
		}
		if !s.holds(rowkey.Of(r.ID)) {
			return nil, nil
		}
		if err := row(&r); err != nil {
			return nil, err
		}
		from.After = &r.ID
	}
	return nil, ctx.Err()
}

// checkMessage checks the row of a message, nil for none, against the facts of the
// slice. What may be on its way is looked at again, as long as there is time to
// wait.
func (c *checker) checkMessage(ctx context.Context, s *slice, id vaa.MessageID, r *archive.Record) error {
	facts := s.facts[id]
	found := c.compare(id, r, facts)
	if len(found) > 0 && !settled(s, r, facts) {
		for {
			var err error
			if r, facts, err = c.again(ctx, s, id); err != nil {
				return err
			}
			if found = c.compare(id, r, facts); len(found) == 0 || !c.pause(ctx) {
				break
			}
		}
	}
	c.add(found...)
	c.expectIndex(s, id, r, facts)
	return nil
}

// settled reports whether nothing about the message is on its way as far as is
// known.
func settled(s *slice, r *archive.Record, facts []fact) bool {
	for i := range facts {
		if !facts[i].applied {
			return false
		}
	}
	return len(facts) > 0 && (r == nil || newest(r) < s.end)
}

// newest returns the highest offset in a row.
func newest(r *archive.Record) archive.Offset {
	p := &r.Publication
	o := max(p.Offset, p.HeaderOffset, p.InitiatingTxIDOffset)
	for i := range r.Versions {
		o = max(o, r.Versions[i].Offset)
	}
	for i := range r.Links {
		o = max(o, r.Links[i].Offset)
	}
	return o
}

// again reads the message's row, nil for none, and then what the journal has of it
// by now.
func (c *checker) again(ctx context.Context, s *slice, id vaa.MessageID) (*archive.Record, []fact, error) {
	record, err := c.get(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	// Facts that were not applied when they were read are read once more.
	var facts []fact
	from := s.end
	for _, f := range s.facts[id] {
		if !f.applied {
			from = min(from, f.batch)
		}
	}
	for _, f := range s.facts[id] {
		if f.batch < from {
			facts = append(facts, f)
		}
	}
	for b, err := range c.store.Batches(ctx, from) {
		if err != nil {
			if down := c.answers(ctx); down != nil {
				return nil, nil, errors.Join(err, down)
			}
			break // found when the journal was judged
		}
		for i := range b.Events {
			if b.Events[i].ID == id {
				facts = append(facts, c.factOf(&b, &b.Events[i]))
			}
		}
	}
	return record, facts, ctx.Err()
}

// get reads a message's row, nil when there is none or it cannot be read, which
// the scan of the rows finds.
func (c *checker) get(ctx context.Context, id vaa.MessageID) (*archive.Record, error) {
	r, err := c.store.Get(ctx, id, archive.Columns{})
	if err == nil {
		return &r, nil
	}
	if down := c.answers(ctx); down != nil {
		return nil, errors.Join(err, down)
	}
	return nil, nil
}

// compare returns what is wrong with a row, nil for none, that follows from these
// facts. Those that are not applied may be in it or not.
func (c *checker) compare(id vaa.MessageID, r *archive.Record, facts []fact) []Finding {
	var found []Finding
	if r != nil {
		found = c.judgeRow(r)
	}
	found = append(found, c.judgeHistory(id, facts)...)
	all := c.diff(id, r, facts)
	if len(all) == 0 {
		return found
	}
	var applied []fact
	for _, f := range facts {
		if f.applied {
			applied = append(applied, f)
		}
	}
	if len(applied) < len(facts) && len(c.diff(id, r, applied)) == 0 {
		return found
	}
	return append(found, all...)
}

// judgeHistory holds the events of a message against rule 4 of the design: the
// digest signed by the newest set is canonical, within one set the first.
func (c *checker) judgeHistory(id vaa.MessageID, facts []fact) []Finding {
	type version struct {
		digest vaa.Digest
		set    uint32
	}
	var found []Finding
	first := map[version]archive.Offset{}
	var canonical *version
	for i := range facts {
		f := &facts[i]
		if !f.Signed() {
			continue
		}
		v := version{f.Digest, *f.GuardianSetIndex}
		if o, ok := first[v]; ok {
			found = append(found, finding(KindEventRepeated, text(f.Offset), "digest %s of %s under guardian set %d was journalled at offset %d", v.digest, id, v.set, o))
			continue
		}
		first[v] = f.Offset
		kind, better := archive.KindQuorum, true
		if canonical != nil {
			kind, better = archive.KindConflict, v.set > canonical.set
			if v.digest == canonical.digest {
				kind = archive.KindResigned
			}
		}
		if f.Kind != kind || f.Canonical != better {
			found = append(found, finding(KindDecisionWrong, text(f.Offset), "%s of %s with canonical %t, should be %s with canonical %t", f.Kind, id, f.Canonical, kind, better))
		}
		if better {
			canonical = &v
		}
	}
	return found
}

// judgeRow checks what a row says by itself.
func (c *checker) judgeRow(r *archive.Record) []Finding {
	key := rowkey.Of(r.ID)
	var found []Finding
	problem := func(kind Kind, format string, args ...any) {
		found = append(found, finding(kind, key, format, args...))
	}
	var canonical *archive.Version
	for i := range r.Versions {
		v := &r.Versions[i]
		parsed, err := vaa.Parse(v.Bytes)
		if err == nil {
			err = c.cfg.Sets.Verify(parsed)
		}
		switch {
		case err != nil:
			problem(KindVAANotVerified, "the VAA of digest %s under guardian set %d: %v", v.Digest, v.GuardianSetIndex, err)
			continue
		case parsed.MessageID() != r.ID:
			problem(KindRowKeyWrong, "the VAA of digest %s is of message %s", v.Digest, parsed.MessageID())
		case parsed.Digest() != v.Digest || parsed.GuardianSetIndex != v.GuardianSetIndex:
			problem(KindDigestWrong, "digest %s under guardian set %d is kept as %s under %d", parsed.Digest(), parsed.GuardianSetIndex, v.Digest, v.GuardianSetIndex)
		}
		if canonical == nil || v.GuardianSetIndex > canonical.GuardianSetIndex ||
			v.GuardianSetIndex == canonical.GuardianSetIndex && v.Offset < canonical.Offset {
			canonical = v
		}
	}
	if s := r.Signed(); canonical != nil && s != canonical {
		is := "none"
		if s != nil {
			is = fmt.Sprintf("%s under guardian set %d", s.Digest, s.GuardianSetIndex)
		}
		problem(KindCanonicalWrong, "canonical is %s, should be %s under guardian set %d", is, canonical.Digest, canonical.GuardianSetIndex)
	}
	found = append(found, judgePublication(r)...)
	return append(found, c.judgeEvidence(r)...)
}

// judgePublication compares the body in the columns with key, digest and canonical
// VAA of the row.
func judgePublication(r *archive.Record) []Finding {
	key, p, signed := rowkey.Of(r.ID), &r.Publication, r.Signed()
	if p.Digest == nil && signed == nil {
		return nil // marks, links or evidence only
	}
	var found []Finding
	if signed != nil {
		if p.Digest == nil || *p.Digest != signed.Digest {
			found = append(found, finding(KindDigestWrong, key, "the digest column is %v, that of the canonical VAA is %s", deref(p.Digest), signed.Digest))
		}
		if p.GuardianSetIndex == nil || *p.GuardianSetIndex != signed.GuardianSetIndex || p.Version == nil || *p.Version != 1 {
			found = append(found, finding(KindPublicationDiffers, key, "version %v and guardian set %v, those of the canonical VAA are 1 and %d",
				deref(p.Version), deref(p.GuardianSetIndex), signed.GuardianSetIndex))
		}
	}
	b, ok := bodyOf(p)
	switch {
	case !ok:
		found = append(found, finding(KindPublicationDiffers, key, "columns of the body are missing"))
	case b.MessageID() != r.ID:
		found = append(found, finding(KindRowKeyWrong, key, "the columns are of message %s", b.MessageID()))
	case p.Digest != nil && b.Digest() != *p.Digest:
		found = append(found, finding(KindDigestWrong, key, "the digest column is %s, that of the columns is %s", *p.Digest, b.Digest()))
	}
	return found
}

func (c *checker) judgeEvidence(r *archive.Record) []Finding {
	var found []Finding
	for i := range r.Evidence {
		e := &r.Evidence[i]
		what := fmt.Sprintf("signature of guardian %d, set %d, of digest %s", e.Signature.GuardianIndex, e.GuardianSetIndex, e.Digest)
		if !r.Known(e.Digest, e.GuardianSetIndex) {
			found = append(found, finding(KindEvidenceWithoutVersion, rowkey.Of(r.ID), "%s: no such VAA is in the row", what))
		}
		set, ok := c.cfg.Sets.Set(e.GuardianSetIndex)
		if !ok || int(e.Signature.GuardianIndex) >= len(set.Keys) {
			found = append(found, finding(KindEvidenceNotVerified, rowkey.Of(r.ID), "%s: no such guardian", what))
			continue
		}
		if reason := vaa.VerifySignature(e.Digest, set.Keys[e.Signature.GuardianIndex], e.Signature); reason != 0 {
			found = append(found, finding(KindEvidenceNotVerified, rowkey.Of(r.ID), "%s: %s", what, reason))
		}
	}
	return found
}

// bodyOf returns the body that the columns hold, false when one is absent.
func bodyOf(p *archive.Publication) (*vaa.Body, bool) {
	if p.Timestamp == nil || p.Nonce == nil || p.Sequence == nil || p.EmitterChain == nil || p.EmitterAddress == nil ||
		p.Payload == nil || p.ConsistencyLevel == nil || p.Digest == nil || p.RecordedAt == nil {
		return nil, false
	}
	return &vaa.Body{
		Timestamp: uint32(p.Timestamp.Unix()), Nonce: *p.Nonce, EmitterChain: *p.EmitterChain, EmitterAddress: *p.EmitterAddress,
		Sequence: *p.Sequence, ConsistencyLevel: *p.ConsistencyLevel, Payload: p.Payload,
	}, true
}

// deref is what a pointer points at, for a text.
func deref[T any](p *T) any {
	if p == nil {
		return "absent"
	}
	return *p
}
