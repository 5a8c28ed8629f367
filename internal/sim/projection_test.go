package sim

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

// projection is what rows and index must say, folded from the journal in the
// order of offsets by the rules of docs/protocol.md, without a line of the code
// under test.
type projection struct {
	rows  map[vaa.MessageID]*folded
	index map[string]map[vaa.Digest]bool
}

// folded is one message as the journal's events so far make it.
type folded struct {
	archive.Record
	digest *vaa.Digest     // stands for the message
	set    uint32          // that signed digest, if signed
	signed *archive.Offset // the canonical VAA's event
	events string          // for people
}

func project(journal []archive.Batch) (*projection, error) {
	p := &projection{rows: map[vaa.MessageID]*folded{}, index: map[string]map[vaa.Digest]bool{}}
	for _, b := range journal {
		for _, e := range b.Events {
			e.RecordedAt = b.WallTime
			m := p.rows[e.ID]
			if m == nil {
				m = &folded{Record: archive.Record{ID: e.ID}}
				p.rows[e.ID] = m
			}
			text, err := json.Marshal(e)
			if err != nil {
				return nil, err
			}
			m.events += string(text) + "\n"
			if err := p.fold(m, &e); err != nil {
				return nil, err
			}
		}
	}
	for _, m := range p.rows {
		m.finish()
	}
	return p, nil
}

func (p *projection) fold(m *folded, e *archive.Event) error {
	var body *vaa.Body
	if e.Bytes != nil {
		raw := e.Bytes
		if e.GuardianSetIndex != nil { // a VAA is six bytes, 66 a signature, and the body
			raw = raw[6+66*int(raw[5]):]
		}
		b, err := vaa.ParseBody(raw)
		if err != nil {
			return err
		}
		body = &b
		p.indexed(rowkey.Digest(b.Digest().String(), e.ID), e.Digest)
		p.indexed(rowkey.Digest(b.SingleDigest().String(), e.ID), e.Digest)
		p.indexed(rowkey.Time(b.Timestamp, e.ID), e.Digest)
		if chain, bridge := tokenBridge(); b.EmitterChain == chain && b.EmitterAddress == bridge {
			to := b.Payload[recipientAt:]
			p.indexed(rowkey.To(vaa.Address(to[:32]), vaa.ChainID(binary.BigEndian.Uint16(to[32:])), b.Timestamp, e.ID), e.Digest)
		}
	}
	if e.Link != nil {
		p.indexed(rowkey.Tx(e.Link.TxID, e.ID), e.Digest)
		same := func(l archive.DigestLink) bool { return l.Digest == e.Digest && l.TxID == e.Link.TxID }
		m.Links = append(slices.DeleteFunc(m.Links, same), archive.DigestLink{Digest: e.Digest, Link: *e.Link, Offset: e.Offset})
	}
	switch e.Kind {
	case archive.KindObserved:
		m.become(e, body)
	case archive.KindVanished:
		m.VanishedMarks = marked(m.VanishedMarks, e.Digest)
	case archive.KindConflict:
		m.ConflictMarks = marked(m.ConflictMarks, e.Digest)
		if e.GuardianSetIndex != nil && *e.GuardianSetIndex > m.set {
			m.ConflictMarks = marked(m.ConflictMarks, *m.digest) // it loses its place
		}
	}
	if e.GuardianSetIndex == nil {
		return nil
	}
	v := archive.Version{Digest: e.Digest, GuardianSetIndex: *e.GuardianSetIndex, Bytes: e.Bytes, Offset: e.Offset}
	if m.signed == nil || v.GuardianSetIndex > m.set { // the newer set's, else the first
		version, recorded := uint8(1), e.RecordedAt
		v.WasCanonical, v.RecordedAt = true, &recorded
		m.signed, m.set = &v.Offset, v.GuardianSetIndex
		m.Publication.Version, m.Publication.GuardianSetIndex, m.Publication.HeaderOffset = &version, &m.set, e.Offset
		if m.digest == nil || *m.digest != e.Digest {
			m.become(e, body)
		}
	}
	m.Versions = append(m.Versions, v)
	return nil
}

// become makes an event's digest the message's.
func (m *folded) become(e *archive.Event, b *vaa.Body) {
	t, digest, recorded := b.Time(), e.Digest, e.RecordedAt
	p := &m.Publication
	p.Timestamp, p.Nonce, p.Sequence, p.EmitterChain, p.EmitterAddress = &t, &b.Nonce, &b.Sequence, &b.EmitterChain, &b.EmitterAddress
	p.Payload, p.ConsistencyLevel, p.Digest, p.RecordedAt, p.Offset = b.Payload, &b.ConsistencyLevel, &digest, &recorded, e.Offset
	m.digest = &digest
}

func (p *projection) indexed(key string, d vaa.Digest) {
	if p.index[key] == nil {
		p.index[key] = map[vaa.Digest]bool{}
	}
	p.index[key][d] = true
}

// finish sets what follows from the whole: the canonical mark, and the best link
// of the digest, which is the one trusted most, and of equals the first.
func (m *folded) finish() {
	for i := range m.Versions {
		m.Versions[i].Canonical = m.signed != nil && m.Versions[i].Offset == *m.signed
	}
	var best *archive.DigestLink
	for i := range m.Links {
		l := &m.Links[i]
		if m.digest == nil || l.Digest != *m.digest {
			continue
		}
		if best == nil || l.Trust > best.Trust || l.Trust == best.Trust && l.Offset < best.Offset {
			best = l
		}
	}
	if best != nil {
		m.Publication.InitiatingTxID = &best.TxID
	}
}

// comparable brings a record into the form that is compared: evidence is no
// projection, and that InitiatingTxID is the best link is independent of which
// event said so.
func comparable(r archive.Record) archive.Record {
	r = r.Clone()
	r.Evidence, r.Publication.InitiatingTxIDOffset = nil, 0
	slices.SortFunc(r.Versions, func(a, b archive.Version) int { return cmp.Compare(a.Offset, b.Offset) })
	slices.SortFunc(r.Links, func(a, b archive.DigestLink) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, marks := range []*[]vaa.Digest{&r.ConflictMarks, &r.VanishedMarks} {
		slices.SortFunc(*marks, func(a, b vaa.Digest) int { return cmp.Compare(a.String(), b.String()) })
	}
	return r
}

// overlay is a store of rows in which the event that is applied last wins
// (against rule 11), and an index with one digest a row (against rule 16).
type overlay struct {
	seq   archive.Offset
	true  map[archive.Offset]archive.Offset // offsets of the journal by seq
	rows  map[vaa.MessageID]*archive.Record
	index map[string]vaa.Digest
}

func (o *overlay) reset() {
	*o = overlay{
		true: map[archive.Offset]archive.Offset{0: 0},
		rows: map[vaa.MessageID]*archive.Record{}, index: map[string]vaa.Digest{},
	}
}

func (o *overlay) apply(w *world, events []archive.Event) {
	if w.off != lastApplied && w.off != oneDigest {
		return
	}
	for _, e := range events {
		cells, err := archive.IndexCells(network, &e)
		if err != nil {
			w.problem("index cells: %w", err)
		}
		for _, c := range cells {
			o.index[c.Key] = c.Digest
		}
		r := o.rows[e.ID]
		if r == nil {
			r = &archive.Record{ID: e.ID}
			o.rows[e.ID] = r
		}
		o.seq++
		o.true[o.seq] = e.Offset
		e.Offset = o.seq
		if err := r.Apply(e); err != nil {
			w.problem("apply: %w", err)
		}
	}
}

// all returns the rows with the journal's offsets.
func (o *overlay) all() map[vaa.MessageID]archive.Record {
	rows := map[vaa.MessageID]archive.Record{}
	for id, row := range o.rows {
		r := row.Clone()
		p := &r.Publication
		p.Offset, p.HeaderOffset, p.InitiatingTxIDOffset = o.true[p.Offset], o.true[p.HeaderOffset], o.true[p.InitiatingTxIDOffset]
		versions := r.Versions
		r.Versions = nil
		for _, v := range versions { // the canonical one comes first
			v.Offset = o.true[v.Offset]
			if !slices.ContainsFunc(r.Versions, func(o archive.Version) bool { return o.Offset == v.Offset }) {
				r.Versions = append(r.Versions, v)
			}
		}
		for i := range r.Links {
			r.Links[i].Offset = o.true[r.Links[i].Offset]
		}
		rows[id] = r
	}
	return rows
}

func marked(marks []vaa.Digest, digests ...vaa.Digest) []vaa.Digest {
	for _, d := range digests {
		if !slices.Contains(marks, d) {
			marks = append(marks, d)
		}
	}
	return marks
}
