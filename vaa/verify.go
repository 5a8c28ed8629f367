package vaa

import (
	"fmt"

	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
)

// Reason says why a VAA does not verify. Its String is stable: it names rejects and labels metrics.
type Reason uint8

// All reasons.
const (
	UnknownSet         Reason = iota + 1 // the named guardian set is not known; see [VerifyError.NewerSet]
	NoQuorum                             // fewer signatures than the set's quorum, or none
	TooMany                              // more signatures than the set has guardians
	NotAscending                         // guardian indices are not in ascending order
	IndexOutOfRange                      // a guardian index that the set does not have
	DuplicateSigner                      // two signatures with one guardian index
	WrongKey                             // the signature is another key's than the guardian's, or of other bytes
	MalformedSignature                   // r, s and v are no signature from which a key can be recovered; v is 0 or 1
)

// Reasons lists all reasons.
func Reasons() []Reason {
	return []Reason{
		UnknownSet, NoQuorum, TooMany, NotAscending, IndexOutOfRange, DuplicateSigner, WrongKey, MalformedSignature,
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

// explain says in words what is wrong with one signature.
func (r Reason) explain() string {
	switch r {
	case NotAscending:
		return "guardian indices do not ascend"
	case IndexOutOfRange:
		return "the set has no such guardian"
	case DuplicateSigner:
		return "the guardian has signed before it"
	case WrongKey:
		return "not the guardian's signature of this body"
	case MalformedSignature:
		return "no valid signature (r, s in range, v 0 or 1)"
	}
	return r.String()
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
	// Signatures is how many signatures the VAA has, Guardians how many guardians its set; 0 if the set did not matter.
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
		if e.Signatures == 0 {
			return "no signatures"
		}
		return fmt.Sprintf("%d signatures are fewer than the quorum %d of the %d guardians of set %d",
			e.Signatures, Quorum(e.Guardians), e.Guardians, e.SetIndex)
	}
	return fmt.Sprintf("signature %d of %d, by guardian %d of set %d: %s",
		e.Position+1, e.Signatures, e.GuardianIndex, e.SetIndex, e.Reason.explain())
}

// Verify checks that v carries a quorum of valid signatures of the guardian set that it names, and none that is invalid.
// Whether the set has expired does not matter: the chains refuse such a VAA, but it proves what was signed. A high s is as good as
// a low one, as it is to the core contracts. Faults that no set could mend are looked for first, so that a VAA of an unknown set is
// [UnknownSet] only if it may be good. It fails with *[VerifyError]. It does not change v.
func (s GuardianSets) Verify(v *VAA) error {
	if reason, position := checkForm(v); reason != 0 {
		return s.fault(v, 0, reason, position)
	}
	keys, ok := s.keysFor(v)
	if !ok {
		return s.fault(v, 0, UnknownSet, -1)
	}
	// Indices ascend, so the last is the greatest; the check of the count comes first only for the clearer reason.
	last := len(v.Signatures) - 1
	switch {
	case len(v.Signatures) > len(keys):
		return s.fault(v, len(keys), TooMany, -1)
	case int(v.Signatures[last].GuardianIndex) >= len(keys):
		return s.fault(v, len(keys), IndexOutOfRange, last)
	case len(v.Signatures) < Quorum(len(keys)):
		return s.fault(v, len(keys), NoQuorum, -1)
	}
	h := newKeccak()
	digest := h.digest(&v.Body)
	for i := range v.Signatures {
		sig := &v.Signatures[i]
		if reason := checkSignature(h, digest, keys[sig.GuardianIndex], sig); reason != 0 {
			return s.fault(v, len(keys), reason, i)
		}
	}
	return nil
}

// checkForm looks for what makes a VAA invalid whatever its set; reason 0 if there is nothing.
func checkForm(v *VAA) (reason Reason, position int) {
	if len(v.Signatures) == 0 {
		return NoQuorum, -1
	}
	last := -1
	for i := range v.Signatures {
		index := int(v.Signatures[i].GuardianIndex)
		switch {
		case index == last:
			return DuplicateSigner, i
		case index < last:
			return NotAscending, i
		case v.Signatures[i].RSV[64] > 1:
			return MalformedSignature, i
		}
		last = index
	}
	return 0, -1
}

func (s GuardianSets) fault(v *VAA, guardians int, reason Reason, position int) *VerifyError {
	e := &VerifyError{
		Reason: reason, Network: s.network, SetIndex: v.GuardianSetIndex, NewestSet: s.Newest().Index,
		Position: position, Signatures: len(v.Signatures), Guardians: guardians,
	}
	if position >= 0 {
		e.GuardianIndex = v.Signatures[position].GuardianIndex
	}
	return e
}

// VerifySignature checks one signature of a signing digest against the key of its guardian: what evidence beyond a stored
// VAA needs. The returned reason is 0 if it holds, else [MalformedSignature] or [WrongKey].
func VerifySignature(digest Digest, key GuardianKey, sig Signature) Reason {
	return checkSignature(newKeccak(), digest, key, &sig)
}

func checkSignature(h *keccak, digest Digest, key GuardianKey, sig *Signature) Reason {
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
func recoverKey(h *keccak, digest Digest, rsv *[65]byte) (GuardianKey, bool) {
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
	// An Ethereum-style address: the last 20 bytes of the Keccak-256 of the two coordinates.
	return GuardianKey(h.sum(public.SerializeUncompressed()[1:], nil)[12:]), true
}
