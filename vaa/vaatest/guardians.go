// Package vaatest makes VAAs for tests: guardian sets that sign, random bodies, upgrades, a stand-in for mainnet's chain of trust, and
// every way in which a VAA can be wrong. Everything is deterministic: the same seed gives the same keys, bodies and signatures.
//
// Functions panic where a test asks for something that makes no sense, such as a signature of a guardian that is not there.
package vaatest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"golang.org/x/crypto/sha3"

	"github.com/attestry/attestry/vaa"
)

// devnetSecret is the first key of the development network. It is published with Wormhole's development tools and guards nothing.
const devnetSecret = "cfb12303a19cde580bb4dd771639b0d26bc68353645571a8cff516ab2ee113a0"

// Guardians is a guardian set with its private keys. It is immutable after construction.
type Guardians struct {
	Index uint32
	keys  []*secp256k1.PrivateKey
}

// NewGuardians returns size guardians under a set index. Equal arguments give equal keys; different seeds share none.
func NewGuardians(seed uint64, index uint32, size int) *Guardians {
	if size < 1 || size > 255 {
		panic(fmt.Sprintf("vaatest: a set of %d guardians: 1 to 255", size))
	}
	g := &Guardians{Index: index}
	for i := range size {
		material := binary.BigEndian.AppendUint64([]byte("vaatest guardian"), seed)
		material = binary.BigEndian.AppendUint32(material, index)
		material = binary.BigEndian.AppendUint32(material, uint32(i))
		secret := sha256.Sum256(material)
		g.keys = append(g.keys, secp256k1.PrivKeyFromBytes(secret[:]))
	}
	return g
}

// DevnetGuardian returns the first guardian of the development network as a set of one under a set index: what it signs
// verifies under the network's known sets, so that whole programs can be tested on made-up VAAs.
func DevnetGuardian(index uint32) *Guardians {
	secret, err := hex.DecodeString(devnetSecret)
	if err != nil {
		panic(err)
	}
	return &Guardians{Index: index, keys: []*secp256k1.PrivateKey{secp256k1.PrivKeyFromBytes(secret)}}
}

// Next returns the set of the next index, in which the last replaced guardians are others and the rest keep their places.
func (g *Guardians) Next(replaced int) *Guardians {
	fresh := NewGuardians(uint64(guardianKey(g.keys[0])[0]), g.Index+1, len(g.keys))
	kept := len(g.keys) - replaced
	return &Guardians{Index: g.Index + 1, keys: slices.Concat(g.keys[:kept], fresh.keys[kept:])}
}

// Size returns the number of guardians.
func (g *Guardians) Size() int { return len(g.keys) }

// Set returns the public side.
func (g *Guardians) Set() vaa.GuardianSet {
	set := vaa.GuardianSet{Index: g.Index}
	for _, key := range g.keys {
		set.Keys = append(set.Keys, guardianKey(key))
	}
	return set
}

func guardianKey(key *secp256k1.PrivateKey) vaa.GuardianKey {
	h := sha3.NewLegacyKeccak256()
	h.Write(key.PubKey().SerializeUncompressed()[1:])
	return vaa.GuardianKey(h.Sum(nil)[12:])
}

// Sets returns the guardian sets of a network that consist of the given ones, in ascending order of index.
func Sets(network vaa.Network, guardians ...*Guardians) vaa.GuardianSets {
	var sets []vaa.GuardianSet
	for _, g := range guardians {
		sets = append(sets, g.Set())
	}
	known, err := vaa.NewGuardianSets(network, sets...)
	if err != nil {
		panic("vaatest: " + err.Error())
	}
	return known
}

// Quorum returns the guardian indices of the set's first quorum: 0 to quorum-1.
func (g *Guardians) Quorum() []int {
	indices := make([]int, vaa.Quorum(len(g.keys)))
	for i := range indices {
		indices[i] = i
	}
	return indices
}

// Sign makes g's set the one that v names and replaces v's signatures by those of the signers, in the order given; without signers, by
// those of the set's first quorum.
func (g *Guardians) Sign(v *vaa.VAA, signers ...int) {
	if len(signers) == 0 {
		signers = g.Quorum()
	}
	v.GuardianSetIndex = g.Index
	v.Signatures = make([]vaa.Signature, len(signers))
	for i, signer := range signers {
		v.Signatures[i] = g.Signature(v.Digest(), signer)
	}
}

// Signature returns one guardian's signature of a signing digest (RFC 6979, low s).
func (g *Guardians) Signature(digest vaa.Digest, signer int) vaa.Signature {
	if signer < 0 || signer >= len(g.keys) {
		panic(fmt.Sprintf("vaatest: guardian %d of a set of %d", signer, len(g.keys)))
	}
	compact := ecdsa.SignCompact(g.keys[signer], digest[:], false)
	sig := vaa.Signature{GuardianIndex: uint8(signer)}
	copy(sig.RSV[:], compact[1:])
	sig.RSV[64] = compact[0] - 27
	return sig
}

// Clone returns a copy of v that shares nothing with it.
func Clone(v *vaa.VAA) *vaa.VAA {
	c := *v
	c.Signatures = slices.Clone(v.Signatures)
	c.Payload = slices.Clone(v.Payload)
	return &c
}
