package vaa

import (
	"fmt"

	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
)

// Reason says why a VAA does not verify. Its String is stable: it names rejects and labels metrics.
type Reason uint8

// The reasons, in the order in which they are looked for.
const (
	UnknownSet         Reason = iota + 1 // the named guardian set is not known; see [VerifyError.NewerSet]
	TooMany                              // more signatures than the set has guardians
	IndexOutOfRange                      // a guardian index that the set does not have
	DuplicateSigner                      // two signatures with one guardian index
	NotAscending                         // guardian indices are not in ascending order
	NoQuorum                             // fewer signatures than the set's quorum
	MalformedSignature                   // r, s or v is not a signature from which a key can be recovered
	WrongKey                             // the signature is another key's than the guardian's, or of other bytes
)

// Reasons lists all reasons.
func Reasons() []Reason {
	return []Reason{
		UnknownSet, TooMany, IndexOutOfRange, DuplicateSigner, NotAscending, NoQuorum, MalformedSignature, WrongKey,
	}
}

// String returns the reason's stable name in snake case.
func (r Reason) String() string {
	switch r {
	case UnknownSet:
		return "unknown_set"
	case TooMany:
		return "too_many"
	case IndexOutOfRange:
		return "index_out_of_range"
	case DuplicateSigner:
		return "duplicate_signer"
	case NotAscending:
		return "not_ascending"
	case NoQuorum:
		return "no_quorum"
	case MalformedSignature:
		return "malformed_signature"
	case WrongKey:
		return "wrong_key"
	}
	return fmt.Sprintf("invalid_reason_%d", uint8(r))
}

// VerifyError says why a VAA did not verify, and where.
type VerifyError struct {
	Reason    Reason
	Network   Network
	SetIndex  uint32 // the guardian set that the VAA names
	NewestSet uint32 // the newest set known
	// Position is the place of the offending signature, counted from 0; -1 if the VAA as a whole is at fault.
	Position int
	// GuardianIndex is the guardian index of that signature; 0 if Position is -1.
	GuardianIndex uint8
	// Signatures is how many signatures the VAA has, Guardians how many guardians the set; 0 for an unknown set.
	Signatures, Guardians int
}

// NewerSet reports whether the VAA names a set that is newer than the newest known: it may verify once that set is
// learnt, so it is to be held and not rejected.
func (e *VerifyError) NewerSet() bool { return e.Reason == UnknownSet && e.SetIndex > e.NewestSet }

func (e *VerifyError) Error() string {
	switch e.Reason {
	case UnknownSet:
		if e.NewerSet() {
			return fmt.Sprintf("guardian set %d of %s is newer than the newest known, %d", e.SetIndex, e.Network, e.NewestSet)
		}
		return fmt.Sprintf("guardian set %d of %s is unknown", e.SetIndex, e.Network)
	case TooMany:
		return fmt.Sprintf("%d signatures are more than the %d guardians of set %d", e.Signatures, e.Guardians, e.SetIndex)
	case NoQuorum:
		return fmt.Sprintf("%d signatures are fewer than the quorum %d of the %d guardians of set %d",
			e.Signatures, Quorum(e.Guardians), e.Guardians, e.SetIndex)
	}
	return fmt.Sprintf("signature %d of %d, guardian %d of set %d: %s",
		e.Position, e.Signatures, e.GuardianIndex, e.SetIndex, e.Reason)
}

// Verify checks that v carries a quorum of valid signatures of the guardian set that it names, and none that is invalid.
// Whether the set has expired does not matter, nor whether s is in the lower half of the curve's order (both hold for the
// core contracts as well). It fails with *[VerifyError]. It does not change v.
func (s GuardianSets) Verify(v *VAA) error {
	fault := &VerifyError{
		Network: s.network, SetIndex: v.GuardianSetIndex, NewestSet: s.Newest().Index,
		Position: -1, Signatures: len(v.Signatures),
	}
	keys, ok := s.keysFor(v)
	if !ok {
		fault.Reason = UnknownSet
		return fault
	}
	fault.Guardians = len(keys)
	if len(v.Signatures) > len(keys) {
		fault.Reason = TooMany
		return fault
	}
	last := -1
	for i := range v.Signatures {
		index := int(v.Signatures[i].GuardianIndex)
		switch {
		case index >= len(keys):
			return fault.at(IndexOutOfRange, v, i)
		case index == last:
			return fault.at(DuplicateSigner, v, i)
		case index < last:
			return fault.at(NotAscending, v, i)
		}
		last = index
	}
	if len(v.Signatures) < Quorum(len(keys)) {
		fault.Reason = NoQuorum
		return fault
	}
	h := newKeccak()
	single := v.singleDigest(h)
	digest := Digest(h.sum32(single[:]))
	for i := range v.Signatures {
		if reason := checkSignature(h, digest, keys[v.Signatures[i].GuardianIndex], &v.Signatures[i]); reason != 0 {
			return fault.at(reason, v, i)
		}
	}
	return nil
}

func (e *VerifyError) at(reason Reason, v *VAA, position int) *VerifyError {
	e.Reason, e.Position, e.GuardianIndex = reason, position, v.Signatures[position].GuardianIndex
	return e
}

// VerifySignature checks one signature of a signing digest against the key of its guardian: what evidence beyond a stored
// VAA needs. The returned reason is 0 if it holds, else [MalformedSignature] or [WrongKey].
func VerifySignature(digest Digest, key GuardianKey, sig Signature) Reason {
	return checkSignature(newKeccak(), digest, key, &sig)
}

func checkSignature(h keccak, digest Digest, key GuardianKey, sig *Signature) Reason {
	recovered, ok := recoverKey(h, digest, &sig.RSV)
	switch {
	case !ok:
		return MalformedSignature
	case recovered != key:
		return WrongKey
	}
	return 0
}

// recoverKey returns the key that signed digest; false if rsv is no signature.
func recoverKey(h keccak, digest Digest, rsv *[65]byte) (GuardianKey, bool) {
	v := rsv[64]
	if v > 1 {
		return GuardianKey{}, false
	}
	// The library's compact form has the recovery id first, as Bitcoin signs messages.
	var compact [65]byte
	compact[0] = 27 + v
	copy(compact[1:], rsv[:64])
	public, _, err := ecdsa.RecoverCompact(compact[:], digest[:])
	if err != nil {
		return GuardianKey{}, false
	}
	sum := h.sum32(public.SerializeUncompressed()[1:])
	return GuardianKey(sum[12:]), true
}
