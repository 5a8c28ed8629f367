package fsck

import (
	"slices"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

// diff returns how a row, nil for none, differs from the projection of the facts:
// each must have left its cells, unless a later one of the same cell shadows it,
// and no other cell may be there. The bytes of a VAA are compared by a sum where
// the journal keeps them; else the row's own, which are verified, must be of the
// event's digest and set.
func (c *checker) diff(id vaa.MessageID, r *archive.Record, facts []fact) []Finding {
	key := rowkey.Of(id)
	switch {
	case r == nil && len(facts) == 0:
		return nil
	case r == nil:
		return []Finding{finding(KindRowMissing, key, "the journal has %d events of it, the first at offset %d", len(facts), facts[0].Offset)}
	case len(facts) == 0:
		return []Finding{finding(KindRowWithoutEvent, key, "the journal has no event of it")}
	}
	d := differ{c: c, key: key, r: r, facts: facts}
	d.publication()
	d.versions()
	d.links()
	d.marks()
	return d.found
}

type differ struct {
	c     *checker
	key   string
	r     *archive.Record
	facts []fact
	found []Finding
}

func (d *differ) problem(kind Kind, format string, args ...any) {
	d.found = append(d.found, finding(kind, d.key, format, args...))
}

// last returns the last fact that has a property, nil for none.
func (d *differ) last(has func(*fact) bool) *fact {
	for i := len(d.facts) - 1; i >= 0; i-- {
		if has(&d.facts[i]) {
			return &d.facts[i]
		}
	}
	return nil
}

func offset(f *fact) archive.Offset {
	if f == nil {
		return 0
	}
	return f.Offset
}

func (d *differ) publication() {
	p := &d.r.Publication
	body := d.last(func(f *fact) bool { return f.WritesBody() && needsBytes(&f.Event) })
	if p.Offset != offset(body) {
		d.problem(KindPublicationDiffers, "the body was written by the event at offset %d, should be by that at %d", p.Offset, offset(body))
	} else if body != nil {
		if p.Digest == nil || *p.Digest != body.Digest {
			d.problem(KindPublicationDiffers, "digest %v, that of the event at offset %d is %s", deref(p.Digest), body.Offset, body.Digest)
		}
		if p.RecordedAt == nil || !p.RecordedAt.Equal(body.RecordedAt) {
			d.problem(KindPublicationDiffers, "recorded at %v, the event at offset %d at %s", deref(p.RecordedAt), body.Offset, rfc3339(body.RecordedAt))
		}
	}
	header := d.last(func(f *fact) bool { return f.Signed() && f.Canonical })
	if p.HeaderOffset != offset(header) {
		d.problem(KindPublicationDiffers, "the header was written by the event at offset %d, should be by that at %d", p.HeaderOffset, offset(header))
	} else if header != nil && (p.GuardianSetIndex == nil || *p.GuardianSetIndex != *header.GuardianSetIndex) {
		d.problem(KindPublicationDiffers, "guardian set %v, that of the event at offset %d is %d", deref(p.GuardianSetIndex), header.Offset, *header.GuardianSetIndex)
	}
	tx := d.last(func(f *fact) bool { return f.Canonical })
	if p.InitiatingTxIDOffset != offset(tx) {
		d.problem(KindPublicationDiffers, "the initiating transaction was written by the event at offset %d, should be by that at %d", p.InitiatingTxIDOffset, offset(tx))
	} else if tx != nil && deref(p.InitiatingTxID) != deref(tx.InitiatingTxID) {
		d.problem(KindPublicationDiffers, "initiating transaction %v, that of the event at offset %d is %v", deref(p.InitiatingTxID), tx.Offset, deref(tx.InitiatingTxID))
	}
}

func (d *differ) versions() {
	want := map[archive.Offset]*fact{}
	for i := range d.facts {
		if f := &d.facts[i]; f.Signed() {
			want[f.Offset] = f
		}
	}
	for i := range d.r.Versions {
		v := &d.r.Versions[i]
		f := want[v.Offset]
		if f == nil || f.Digest != v.Digest || *f.GuardianSetIndex != v.GuardianSetIndex {
			d.problem(KindVersionWithoutEvent, "the VAA of digest %s under guardian set %d is not that of an event at offset %d", v.Digest, v.GuardianSetIndex, v.Offset)
			continue
		}
		delete(want, v.Offset)
		switch {
		case f.Canonical != v.WasCanonical:
			d.problem(KindVersionDiffers, "the VAA at offset %d is in the column for canonical %t, the event says %t", v.Offset, v.WasCanonical, f.Canonical)
		case f.kept && f.sum != d.c.sum(v.Bytes):
			d.problem(KindVersionDiffers, "the bytes of the VAA at offset %d are not the journal's", v.Offset)
		case f.Canonical && (v.RecordedAt == nil || !v.RecordedAt.Equal(f.RecordedAt)):
			d.problem(KindVersionDiffers, "the VAA at offset %d is recorded at %v, the event at %s", v.Offset, deref(v.RecordedAt), rfc3339(f.RecordedAt))
		}
	}
	for i := range d.facts {
		if f := &d.facts[i]; want[f.Offset] != nil && !d.shadowed(f) {
			d.problem(KindVersionMissing, "the VAA of digest %s under guardian set %d of the event at offset %d", f.Digest, *f.GuardianSetIndex, f.Offset)
		}
	}
}

// shadowed reports whether a later fact has the same cell. Canonical VAAs are
// versions of one cell and shadow nothing.
func (d *differ) shadowed(f *fact) bool {
	return !f.Canonical && d.last(func(o *fact) bool {
		return o.Signed() && !o.Canonical && o.Digest == f.Digest && *o.GuardianSetIndex == *f.GuardianSetIndex
	}).Offset > f.Offset
}

func (d *differ) links() {
	type cell struct {
		digest vaa.Digest
		txID   string
	}
	want := map[cell]*fact{}
	for i := range d.facts {
		if f := &d.facts[i]; f.Link != nil {
			want[cell{f.Digest, f.Link.TxID}] = f
		}
	}
	for _, l := range d.r.Links {
		f := want[cell{l.Digest, l.TxID}]
		delete(want, cell{l.Digest, l.TxID})
		switch {
		case f == nil:
			d.problem(KindLinkDiffers, "the link of digest %s to %s is not in the journal", l.Digest, l.TxID)
		case f.Offset != l.Offset || *f.Link != l.Link:
			d.problem(KindLinkDiffers, "the link of digest %s to %s has trust %s of %q at offset %d, the journal %s of %q at %d",
				l.Digest, l.TxID, l.Trust, l.Source, l.Offset, f.Link.Trust, f.Link.Source, f.Offset)
		}
	}
	for i := range d.facts {
		if f := &d.facts[i]; f.Link != nil && want[cell{f.Digest, f.Link.TxID}] == f {
			d.problem(KindLinkDiffers, "the link of digest %s to %s of the event at offset %d is missing", f.Digest, f.Link.TxID, f.Offset)
		}
	}
}

func (d *differ) marks() {
	var conflicts, vanished []vaa.Digest
	for i := range d.facts {
		switch f := &d.facts[i]; f.Kind {
		case archive.KindConflict:
			conflicts = append(conflicts, f.Digest)
			if f.Displaced != nil {
				conflicts = append(conflicts, *f.Displaced)
			}
		case archive.KindVanished:
			vanished = append(vanished, f.Digest)
		}
	}
	d.compareMarks("conflict", d.r.ConflictMarks, conflicts)
	d.compareMarks("vanished", d.r.VanishedMarks, vanished)
}

func (d *differ) compareMarks(what string, have, want []vaa.Digest) {
	for _, m := range have {
		if !slices.Contains(want, m) {
			d.problem(KindMarkDiffers, "digest %s is marked %s, which no event says", m, what)
		}
	}
	for _, m := range want {
		if !slices.Contains(have, m) {
			d.problem(KindMarkDiffers, "digest %s is not marked %s", m, what)
		}
	}
}
