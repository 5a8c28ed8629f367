package bigtable

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// addEvent adds the cells of an event to the mutation of its message's row. It
// deletes nothing: deletes do not commute with a late apply.
func addEvent(m *bigtable.Mutation, e *archive.Event) error {
	at := cellTime(e.Offset)
	publication := func(column, value string) { m.Set(schema.MessagePublication, column, at, []byte(value)) }
	quorum := func(column string, value []byte) { m.Set(schema.QuorumState, column, at, value) }
	recorded := formatTime(e.RecordedAt)

	if e.WritesBody() && e.Bytes != nil {
		if err := addBody(m, e); err != nil {
			return err
		}
	}
	if e.Canonical {
		tx := "" // an empty cell shadows that of the digest before
		if e.InitiatingTxID != nil {
			tx = *e.InitiatingTxID
		}
		publication(schema.ColInitiatingTxID, tx)
	}
	if e.Signed() {
		set := strconv.FormatUint(uint64(*e.GuardianSetIndex), 10)
		if e.Canonical {
			publication(schema.ColVersion, "1")
			publication(schema.ColGuardianSetIndex, set)
			quorum(schema.ColRecordedAt, []byte(recorded))
		}
		switch {
		case e.Bytes == nil: // dropped by retention: the row has them
		case e.Canonical:
			quorum(schema.ColSignedVAA, e.Bytes)
		default:
			quorum(schema.PrefixOther+set+"."+e.Digest.String(), e.Bytes)
		}
	}
	if e.Link != nil {
		publication(schema.PrefixTxID+e.Digest.String()+"."+e.Link.TxID, e.Link.Trust.String()+" "+e.Link.Source)
	}
	switch e.Kind {
	case archive.KindConflict:
		quorum(schema.PrefixConflict+e.Digest.String(), []byte(recorded))
		if e.Displaced != nil {
			quorum(schema.PrefixConflict+e.Displaced.String(), []byte(recorded))
		}
	case archive.KindVanished:
		publication(schema.PrefixVanished+e.Digest.String(), recorded)
	}
	return nil
}

func addBody(m *bigtable.Mutation, e *archive.Event) error {
	b, err := e.Body()
	if err != nil {
		return err
	}
	set := func(column string, value []byte) { m.Set(schema.MessagePublication, column, cellTime(e.Offset), value) }
	number := func(column string, n uint64) { set(column, strconv.AppendUint(nil, n, 10)) }
	set(schema.ColTimestamp, []byte(b.Time().Format(time.RFC3339)))
	number(schema.ColNonce, uint64(b.Nonce))
	number(schema.ColSequence, b.Sequence)
	number(schema.ColEmitterChain, uint64(b.EmitterChain))
	set(schema.ColEmitterAddress, []byte(b.EmitterAddress.String()))
	set(schema.ColPayload, b.Payload)
	number(schema.ColConsistencyLevel, uint64(b.ConsistencyLevel))
	set(schema.ColDigest, []byte(e.Digest.String()))
	set(schema.ColRecordedAt, []byte(formatTime(e.RecordedAt)))
	return nil
}

func addEvidence(m *bigtable.Mutation, e *archive.Evidence) {
	column := fmt.Sprintf("%s%d.%s.%d", schema.PrefixSignature, e.GuardianSetIndex, e.Digest, e.Signature.GuardianIndex)
	m.Set(schema.QuorumState, column, 0, e.Signature.RSV[:])
}

// qualifier returns the column of a cell without its family.
func qualifier(item bigtable.ReadItem) string {
	_, q, _ := strings.Cut(item.Column, ":")
	return q
}

// decodeRow returns the record that a row holds, or the part of it that the row
// was read with. Errors name row and column.
func decodeRow(row bigtable.Row) (archive.Record, error) {
	id, err := rowkey.Parse(row.Key())
	if err != nil {
		return archive.Record{}, err
	}
	r := archive.Record{ID: id}
	last := ""
	for _, item := range row[schema.MessagePublication] {
		if item.Column == last {
			continue // an older version that is not collected yet
		}
		last = item.Column
		if err := decodePublication(&r, qualifier(item), item); err != nil {
			return r, fmt.Errorf("row %s, column %s: %w", row.Key(), item.Column, err)
		}
	}
	recorded := map[archive.Offset]time.Time{}
	for _, item := range row[schema.QuorumState] {
		if qualifier(item) == schema.ColRecordedAt {
			t, err := time.Parse(time.RFC3339, string(item.Value))
			if err != nil {
				return r, fmt.Errorf("row %s, column %s: %w", row.Key(), item.Column, err)
			}
			recorded[offsetOf(item.Timestamp)] = t
			continue
		}
		if err := decodeQuorum(&r, qualifier(item), item); err != nil {
			return r, fmt.Errorf("row %s, column %s: %w", row.Key(), item.Column, err)
		}
	}
	for i := range r.Versions {
		if t, ok := recorded[r.Versions[i].Offset]; ok {
			r.Versions[i].RecordedAt = &t
		}
	}
	r.Sort()
	return r, nil
}

func decodePublication(r *archive.Record, column string, item bigtable.ReadItem) error {
	p, value, offset := &r.Publication, string(item.Value), offsetOf(item.Timestamp)
	switch column {
	case schema.ColVersion:
		p.HeaderOffset = offset
		return decodeUint(&p.Version, value)
	case schema.ColGuardianSetIndex:
		p.HeaderOffset = offset
		return decodeUint(&p.GuardianSetIndex, value)
	case schema.ColInitiatingTxID:
		p.InitiatingTxIDOffset = offset
		if value != "" {
			p.InitiatingTxID = &value
		}
		return nil
	}
	if digest, ok := strings.CutPrefix(column, schema.PrefixVanished); ok {
		return addMark(&r.VanishedMarks, digest)
	}
	if rest, ok := strings.CutPrefix(column, schema.PrefixTxID); ok {
		return decodeLink(r, rest, value, offset)
	}
	return decodeBodyColumn(p, column, item)
}

func decodeBodyColumn(p *archive.Publication, column string, item bigtable.ReadItem) error {
	value := string(item.Value)
	p.Offset = offsetOf(item.Timestamp)
	switch column {
	case schema.ColTimestamp:
		return decodeTime(&p.Timestamp, value)
	case schema.ColNonce:
		return decodeUint(&p.Nonce, value)
	case schema.ColSequence:
		return decodeUint(&p.Sequence, value)
	case schema.ColEmitterChain:
		return decodeUint(&p.EmitterChain, value)
	case schema.ColEmitterAddress:
		var a vaa.Address
		if n, err := hex.Decode(a[:], item.Value[:min(len(item.Value), 2*len(a))]); err != nil || n != len(a) {
			return fmt.Errorf("not an address of 64 hex digits")
		}
		p.EmitterAddress = &a
	case schema.ColPayload:
		p.Payload = item.Value
		if p.Payload == nil {
			p.Payload = []byte{}
		}
	case schema.ColConsistencyLevel:
		return decodeUint(&p.ConsistencyLevel, value)
	case schema.ColDigest:
		d, err := vaa.ParseDigest(value)
		p.Digest = &d
		return err
	case schema.ColRecordedAt:
		return decodeTime(&p.RecordedAt, value)
	default:
		return fmt.Errorf("not a column of schema %d", schema.Version)
	}
	return nil
}

func decodeQuorum(r *archive.Record, column string, item bigtable.ReadItem) error {
	if digest, ok := strings.CutPrefix(column, schema.PrefixConflict); ok {
		return addMark(&r.ConflictMarks, digest)
	}
	if rest, ok := strings.CutPrefix(column, schema.PrefixSignature); ok {
		return decodeEvidence(r, rest, item.Value)
	}
	other := strings.HasPrefix(column, schema.PrefixOther)
	if !other && column != schema.ColSignedVAA {
		return fmt.Errorf("not a column of schema %d", schema.Version)
	}
	v, err := vaa.Parse(item.Value)
	if err != nil {
		return err
	}
	version := archive.Version{
		Digest: v.Digest(), GuardianSetIndex: v.GuardianSetIndex, Bytes: item.Value,
		WasCanonical: !other, Offset: offsetOf(item.Timestamp),
	}
	if other {
		for _, o := range r.Versions {
			if !o.WasCanonical && o.Digest == version.Digest && o.GuardianSetIndex == version.GuardianSetIndex {
				return nil // an older cell of the same column
			}
		}
	}
	r.Versions = append(r.Versions, version)
	return nil
}

func decodeLink(r *archive.Record, rest, value string, offset archive.Offset) error {
	text, txID, ok := strings.Cut(rest, ".")
	digest, err := vaa.ParseDigest(text)
	if err != nil || !ok {
		return errors.Join(errors.New("want TxID.<digest>.<transaction id>"), err)
	}
	word, source, _ := strings.Cut(value, " ")
	trust, err := archive.ParseTrust(word)
	if err != nil {
		return err
	}
	r.Links = append(r.Links, archive.DigestLink{
		Digest: digest, Link: archive.Link{TxID: txID, Trust: trust, Source: source}, Offset: offset,
	})
	return nil
}

func decodeEvidence(r *archive.Record, rest string, value []byte) error {
	parts := strings.Split(rest, ".")
	e := archive.Evidence{ID: r.ID}
	if len(parts) != 3 || len(value) != len(e.Signature.RSV) {
		return fmt.Errorf("want Signature.<set>.<digest>.<guardian> with %d bytes", len(e.Signature.RSV))
	}
	set, err1 := strconv.ParseUint(parts[0], 10, 32)
	digest, err2 := vaa.ParseDigest(parts[1])
	guardian, err3 := strconv.ParseUint(parts[2], 10, 8)
	e.GuardianSetIndex, e.Digest = uint32(set), digest
	e.Signature.GuardianIndex = uint8(guardian)
	copy(e.Signature.RSV[:], value)
	r.Evidence = append(r.Evidence, e)
	return errors.Join(err1, err2, err3)
}

func addMark(marks *[]vaa.Digest, text string) error {
	d, err := vaa.ParseDigest(text)
	if !slices.Contains(*marks, d) { // an older version of the same mark
		*marks = append(*marks, d)
	}
	return err
}

func decodeTime(to **time.Time, value string) error {
	t, err := time.Parse(time.RFC3339, value)
	*to = &t
	return err
}

func decodeUint[T ~uint8 | ~uint16 | ~uint32 | ~uint64](to **T, value string) error {
	n, err := strconv.ParseUint(value, 10, 64)
	t := T(n)
	if err == nil && uint64(t) != n {
		err = fmt.Errorf("%s is too large", value)
	}
	*to = &t
	return err
}
