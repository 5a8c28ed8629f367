package archive

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/attestry/attestry/vaa"
)

// Record is what the archive knows of one message, or the part of it that was
// asked for. What is absent or was not asked for is nil.
type Record struct {
	ID vaa.MessageID
	// Publication holds the message's body and what is known of its origin.
	Publication Publication
	// Versions are the verified VAAs, the canonical one first, then by descending
	// guardian set, then by offset.
	Versions []Version
	// Links are the known transactions by ascending digest and id.
	Links []DigestLink
	// ConflictMarks and VanishedMarks are the digests that were marked, ascending.
	// A mark of the digest that stands for the message has no meaning; use
	// Conflicts and Vanished.
	ConflictMarks []vaa.Digest
	VanishedMarks []vaa.Digest
	// Evidence are valid signatures beyond those of Versions, by set, digest and
	// guardian.
	Evidence []Evidence
}

// Publication holds the columns of the family MessagePublication. They are those
// of the canonical digest.
type Publication struct {
	Version          *uint8
	GuardianSetIndex *uint32 // of the canonical VAA; nil while there is none
	Timestamp        *time.Time
	Nonce            *uint32
	Sequence         *uint64
	EmitterChain     *vaa.ChainID
	EmitterAddress   *vaa.Address
	InitiatingTxID   *string
	Payload          []byte // nil when absent; an empty payload is not nil
	ConsistencyLevel *uint8
	Digest           *vaa.Digest
	RecordedAt       *time.Time // when the digest was first recorded

	// Offset is the event that wrote the body, HeaderOffset the one that wrote
	// Version and GuardianSetIndex, InitiatingTxIDOffset the one that decided
	// InitiatingTxID. 0 when absent or not asked for.
	Offset               Offset
	HeaderOffset         Offset
	InitiatingTxIDOffset Offset
}

// Version is one verified VAA of a message.
type Version struct {
	Digest           vaa.Digest
	GuardianSetIndex uint32
	Bytes            []byte
	Canonical        bool
	// WasCanonical: it is or was the row's canonical VAA.
	WasCanonical bool
	// RecordedAt is nil for a VAA that never was canonical, or when not asked for.
	RecordedAt *time.Time
	Offset     Offset
}

// DigestLink is a link to a transaction and the digest that it counts for.
type DigestLink struct {
	Digest vaa.Digest
	Link
	Offset Offset
}

// Signed returns the canonical VAA, or nil when none is known or asked for.
func (r *Record) Signed() *Version {
	if len(r.Versions) > 0 && r.Versions[0].Canonical {
		return &r.Versions[0]
	}
	return nil
}

// Digest returns the digest that stands for the message: that of the canonical
// VAA, else the observed one; nil when neither is known or asked for.
func (r *Record) Digest() *vaa.Digest {
	if s := r.Signed(); s != nil {
		return &s.Digest
	}
	return r.Publication.Digest
}

// Known reports whether a verified VAA of this digest and set is stored, whether
// it is canonical, once was, or never became so.
func (r *Record) Known(digest vaa.Digest, set uint32) bool {
	return slices.ContainsFunc(r.Versions, func(v Version) bool {
		return v.Digest == digest && v.GuardianSetIndex == set
	})
}

// LinkTrust returns how well the link of a digest to a transaction is trusted,
// and false when it is unknown.
func (r *Record) LinkTrust(digest vaa.Digest, txID string) (Trust, bool) {
	for _, l := range r.Links {
		if l.Digest == digest && l.TxID == txID {
			return l.Trust, true
		}
	}
	return 0, false
}

// BestLink returns the best known transaction of a digest: of those trusted
// most, the one known first. Nil when none is known.
func (r *Record) BestLink(digest vaa.Digest) *Link {
	var best *DigestLink
	for i := range r.Links {
		l := &r.Links[i]
		if l.Digest != digest {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(l.Trust, best.Trust), cmp.Compare(best.Offset, l.Offset), cmp.Compare(best.TxID, l.TxID)) > 0 {
			best = l
		}
	}
	if best == nil {
		return nil
	}
	return &best.Link
}

// Conflicts returns the digests that were seen for this id besides the one that
// stands for it, ascending.
func (r *Record) Conflicts() []vaa.Digest { return r.without(r.ConflictMarks) }

// Vanished returns the observed digests that their source gave up, ascending.
func (r *Record) Vanished() []vaa.Digest { return r.without(r.VanishedMarks) }

func (r *Record) without(marks []vaa.Digest) []vaa.Digest {
	d := r.Digest()
	return slices.DeleteFunc(slices.Clone(marks), func(m vaa.Digest) bool { return d != nil && m == *d })
}

// Empty reports whether nothing is known of the message.
func (r *Record) Empty() bool {
	return r.Publication.Offset == 0 && r.Publication.HeaderOffset == 0 && r.Publication.InitiatingTxIDOffset == 0 && len(r.Versions) == 0 &&
		len(r.Links) == 0 && len(r.ConflictMarks) == 0 && len(r.VanishedMarks) == 0 && len(r.Evidence) == 0
}

// Sort brings the lists into their documented order and marks the canonical
// version: of those that ever were canonical, the one written last.
func (r *Record) Sort() {
	newest := -1
	for i := range r.Versions {
		r.Versions[i].Canonical = false
		if r.Versions[i].WasCanonical && (newest < 0 || r.Versions[i].Offset > r.Versions[newest].Offset) {
			newest = i
		}
	}
	if newest >= 0 {
		r.Versions[newest].Canonical = true
	}
	slices.SortFunc(r.Versions, func(a, b Version) int {
		if a.Canonical != b.Canonical {
			if a.Canonical {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.GuardianSetIndex, a.GuardianSetIndex), cmp.Compare(a.Offset, b.Offset))
	})
	slices.SortFunc(r.Links, func(a, b DigestLink) int {
		return cmp.Or(compareDigests(a.Digest, b.Digest), cmp.Compare(a.TxID, b.TxID))
	})
	slices.SortFunc(r.ConflictMarks, compareDigests)
	slices.SortFunc(r.VanishedMarks, compareDigests)
	slices.SortFunc(r.Evidence, func(a, b Evidence) int {
		return cmp.Or(cmp.Compare(a.GuardianSetIndex, b.GuardianSetIndex), compareDigests(a.Digest, b.Digest),
			cmp.Compare(a.Signature.GuardianIndex, b.Signature.GuardianIndex))
	})
}

func compareDigests(a, b vaa.Digest) int { return bytes.Compare(a[:], b[:]) }
