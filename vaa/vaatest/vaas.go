package vaatest

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/attestry/attestry/vaa"
)

// NewBody returns a random body: an emitter of a random named chain, a sequence of random magnitude over all of uint64, a time
// from 2020 to 2036, a payload of up to 256 bytes.
func NewBody(r *rand.Rand) vaa.Body {
	chains := vaa.Chains()[1:] // the first, 0, is no emitter
	return vaa.Body{
		Timestamp:        1577836800 + r.Uint32N(16*365*86400),
		Nonce:            r.Uint32(),
		EmitterChain:     chains[r.IntN(len(chains))],
		EmitterAddress:   vaa.Address(randomBytes(r, 32)),
		Sequence:         r.Uint64() >> r.UintN(64),
		ConsistencyLevel: uint8(r.UintN(256)),
		Payload:          randomBytes(r, r.IntN(257)),
	}
}

// NewVAA returns a random body signed by a random quorum of g.
func NewVAA(r *rand.Rand, g *Guardians) *vaa.VAA {
	v := &vaa.VAA{Version: 1, Body: NewBody(r)}
	signers := r.Perm(g.Size())[:vaa.Quorum(g.Size())]
	slices.Sort(signers)
	g.Sign(v, signers...)
	return v
}

// Resign returns v's body signed anew by g: the same message and digest under another header.
func Resign(v *vaa.VAA, g *Guardians, signers ...int) *vaa.VAA {
	c := Clone(v)
	g.Sign(c, signers...)
	return c
}

// Equivocate returns another message under v's message id, signed by g, with another digest: as if the block that published it
// had been replaced by a later one. Repeated, it gives ever new digests.
func Equivocate(v *vaa.VAA, g *Guardians, signers ...int) *vaa.VAA {
	c := Clone(v)
	c.Timestamp++
	c.Nonce ^= c.Timestamp
	g.Sign(c, signers...)
	return c
}

// Upgrade returns the governance VAA by which one set names the next, at a time in unix seconds.
func Upgrade(by, next *Guardians, timestamp uint32) *vaa.VAA {
	payload := append(make([]byte, 28, 64+20*next.Size()), "Core"...)
	payload = append(payload, 2, 0, 0) // action, target chain
	payload = binary.BigEndian.AppendUint32(payload, next.Index)
	payload = append(payload, uint8(next.Size()))
	for _, key := range next.Set().Keys {
		payload = append(payload, key[:]...)
	}
	v := Governance(payload, timestamp)
	by.Sign(v)
	return v
}

// Governance returns an unsigned VAA from the governance emitter. Its sequence follows from the payload, as random as those of
// real ones.
func Governance(payload []byte, timestamp uint32) *vaa.VAA {
	v := &vaa.VAA{Version: 1}
	v.Timestamp, v.Payload, v.ConsistencyLevel = timestamp, payload, 32
	v.EmitterChain, v.EmitterAddress = vaa.GovernanceEmitter()
	digest := v.Digest()
	v.Sequence = binary.BigEndian.Uint64(digest[:])
	return v
}

// Chain is a chain of trust of made-up guardians: set 0, and each further set by an upgrade VAA that its predecessor signed.
type Chain struct {
	Guardians []*Guardians
	Upgrades  []*vaa.VAA       // Upgrades[i] establishes set i+1
	Genesis   vaa.GuardianSets // knows set 0 only
	Sets      vaa.GuardianSets // knows all
}

// NewChain returns a chain with sets of the given sizes, the upgrades 200 days apart from 2021-08-04 on. Mainnet's own is that of sizes
// 1, 19, 19, …: one key, which anyone may come to hold, names the first real set.
func NewChain(network vaa.Network, seed uint64, sizes ...int) Chain {
	var c Chain
	for i, size := range sizes {
		next := NewGuardians(seed, uint32(i), size)
		if i == 0 {
			c.Genesis = Sets(network, next)
			c.Sets = c.Genesis
		} else {
			upgrade := Upgrade(c.Guardians[i-1], next, uint32(1628094930+(i-1)*200*86400))
			extended, err := c.Sets.Extend(upgrade)
			if err != nil {
				panic("vaatest: " + err.Error())
			}
			c.Sets, c.Upgrades = extended, append(c.Upgrades, upgrade)
		}
		c.Guardians = append(c.Guardians, next)
	}
	return c
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.UintN(256))
	}
	return b
}
