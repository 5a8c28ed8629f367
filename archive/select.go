package archive

import (
	"slices"
	"strconv"
	"strings"

	"github.com/attestry/attestry/bigtable/schema"
)

// Wants reports whether the cell of a family and qualifier is asked for.
func (c Columns) Wants(family, qualifier string) bool {
	if len(c.Families) > 0 && !slices.Contains(c.Families, family) {
		return false
	}
	return len(c.Qualifiers) == 0 || slices.ContainsFunc(c.Qualifiers, func(q string) bool {
		return q == qualifier || strings.HasSuffix(q, ".") && strings.HasPrefix(qualifier, q)
	})
}

// Select returns the record with only the cells that columns asks for. It is how
// a store that holds whole records answers.
func (r *Record) Select(c Columns) Record {
	out := Record{ID: r.ID, Publication: selectPublication(&r.Publication, c)}
	for _, v := range r.Versions {
		q := schema.ColSignedVAA
		if !v.WasCanonical {
			q = schema.PrefixOther + setDigest(v.GuardianSetIndex, v.Digest.String())
		} else if c.Latest && !v.Canonical {
			continue
		}
		if !c.Wants(schema.QuorumState, schema.ColRecordedAt) {
			v.RecordedAt = nil
		}
		if c.Wants(schema.QuorumState, q) {
			out.Versions = append(out.Versions, v)
		}
	}
	for _, l := range r.Links {
		if c.Wants(schema.MessagePublication, schema.PrefixTxID+l.Digest.String()+"."+l.TxID) {
			out.Links = append(out.Links, l)
		}
	}
	for _, d := range r.ConflictMarks {
		if c.Wants(schema.QuorumState, schema.PrefixConflict+d.String()) {
			out.ConflictMarks = append(out.ConflictMarks, d)
		}
	}
	for _, d := range r.VanishedMarks {
		if c.Wants(schema.MessagePublication, schema.PrefixVanished+d.String()) {
			out.VanishedMarks = append(out.VanishedMarks, d)
		}
	}
	for _, e := range r.Evidence {
		q := schema.PrefixSignature + setDigest(e.GuardianSetIndex, e.Digest.String()) + "." + itoa(uint64(e.Signature.GuardianIndex))
		if c.Wants(schema.QuorumState, q) {
			out.Evidence = append(out.Evidence, e)
		}
	}
	return out
}

// selectPublication keeps the asked columns. Offsets stay with the columns that
// they are read from.
func selectPublication(p *Publication, c Columns) Publication {
	want := func(q string) bool { return c.Wants(schema.MessagePublication, q) }
	out := *p
	body := false
	keep := func(q string, drop func()) {
		if want(q) {
			body = true
		} else {
			drop()
		}
	}
	keep(schema.ColTimestamp, func() { out.Timestamp = nil })
	keep(schema.ColNonce, func() { out.Nonce = nil })
	keep(schema.ColSequence, func() { out.Sequence = nil })
	keep(schema.ColEmitterChain, func() { out.EmitterChain = nil })
	keep(schema.ColEmitterAddress, func() { out.EmitterAddress = nil })
	keep(schema.ColPayload, func() { out.Payload = nil })
	keep(schema.ColConsistencyLevel, func() { out.ConsistencyLevel = nil })
	keep(schema.ColDigest, func() { out.Digest = nil })
	keep(schema.ColRecordedAt, func() { out.RecordedAt = nil })
	if !body {
		out.Offset = 0
	}
	if !want(schema.ColVersion) {
		out.Version = nil
	}
	if !want(schema.ColGuardianSetIndex) {
		out.GuardianSetIndex = nil
	}
	if !want(schema.ColVersion) && !want(schema.ColGuardianSetIndex) {
		out.HeaderOffset = 0
	}
	if !want(schema.ColInitiatingTxID) {
		out.InitiatingTxID, out.InitiatingTxIDOffset = nil, 0
	}
	return out
}

func setDigest(set uint32, digest string) string { return itoa(uint64(set)) + "." + digest }

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
