package vaatest

import (
	"slices"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"

	"github.com/attestry/attestry/vaa"
)

// Corruption is one way to make a VAA that verifies into one that does not.
type Corruption struct {
	Name string
	// Reason is why the result does not verify.
	Reason vaa.Reason
	// Apply changes a VAA that verifies under the set, the set having at least two guardians and being the only one known.
	Apply func(v *vaa.VAA, set vaa.GuardianSet)
}

// Corruptions returns one or more corruptions for every [vaa.Reason].
func Corruptions() []Corruption {
	last := func(v *vaa.VAA) *vaa.Signature { return &v.Signatures[len(v.Signatures)-1] }
	return []Corruption{
		{"newer set", vaa.UnknownSet, func(v *vaa.VAA, set vaa.GuardianSet) { v.GuardianSetIndex = set.Index + 1 }},
		{"one signature more than guardians", vaa.TooMany, func(v *vaa.VAA, set vaa.GuardianSet) {
			sig := *last(v)
			v.Signatures = nil
			for i := range len(set.Keys) + 1 {
				sig.GuardianIndex = uint8(i)
				v.Signatures = append(v.Signatures, sig)
			}
		}},
		{"index out of range", vaa.IndexOutOfRange, func(v *vaa.VAA, set vaa.GuardianSet) {
			last(v).GuardianIndex = uint8(len(set.Keys))
		}},
		{"duplicate signer", vaa.DuplicateSigner, func(v *vaa.VAA, _ vaa.GuardianSet) { v.Signatures[1] = v.Signatures[0] }},
		{"swapped order", vaa.NotAscending, func(v *vaa.VAA, _ vaa.GuardianSet) {
			v.Signatures[0], v.Signatures[1] = v.Signatures[1], v.Signatures[0]
		}},
		{"no signatures", vaa.NoQuorum, func(v *vaa.VAA, _ vaa.GuardianSet) { v.Signatures = nil }},
		{"one below quorum", vaa.NoQuorum, func(v *vaa.VAA, set vaa.GuardianSet) {
			v.Signatures = v.Signatures[:set.Quorum()-1]
		}},
		{"v 27 or 28", vaa.MalformedSignature, func(v *vaa.VAA, _ vaa.GuardianSet) { last(v).RSV[64] += 27 }},
		{"v 2 or 3", vaa.MalformedSignature, func(v *vaa.VAA, _ vaa.GuardianSet) { last(v).RSV[64] += 2 }},
		{"r zero", vaa.MalformedSignature, func(v *vaa.VAA, _ vaa.GuardianSet) { clear(last(v).RSV[:32]) }},
		{"s zero", vaa.MalformedSignature, func(v *vaa.VAA, _ vaa.GuardianSet) { clear(last(v).RSV[32:64]) }},
		{"s not below the order", vaa.MalformedSignature, func(v *vaa.VAA, _ vaa.GuardianSet) {
			copy(last(v).RSV[32:64], slices.Repeat([]byte{0xff}, 32))
		}},
		{"another v", vaa.WrongKey, func(v *vaa.VAA, _ vaa.GuardianSet) { last(v).RSV[64] ^= 1 }},
		{"another s", vaa.WrongKey, func(v *vaa.VAA, _ vaa.GuardianSet) { last(v).RSV[63] ^= 1 }},
		{"stranger's signature", vaa.WrongKey, func(v *vaa.VAA, set vaa.GuardianSet) {
			stranger := NewGuardians(^uint64(0), set.Index, 1).Signature(v.Digest(), 0)
			last(v).RSV = stranger.RSV
		}},
		{"another guardian's signature", vaa.WrongKey, func(v *vaa.VAA, _ vaa.GuardianSet) { last(v).RSV = v.Signatures[0].RSV }},
		{"flipped bit in the body", vaa.WrongKey, func(v *vaa.VAA, _ vaa.GuardianSet) { v.Nonce ^= 1 }},
		{"longer payload", vaa.WrongKey, func(v *vaa.VAA, _ vaa.GuardianSet) { v.Payload = append(v.Payload, 0) }},
	}
}

// HighS replaces every signature by its twin: s by the order minus s, and the other v. The result has other bytes, the same
// digest, and is as valid as before: it is the reason to tell VAAs apart by digest and never by their bytes.
func HighS(v *vaa.VAA) {
	for i := range v.Signatures {
		rsv := &v.Signatures[i].RSV
		var s secp256k1.ModNScalar
		s.SetByteSlice(rsv[32:64])
		twin := s.Negate().Bytes()
		copy(rsv[32:64], twin[:])
		rsv[64] ^= 1
	}
}
