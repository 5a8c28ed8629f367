package vaa

import (
	"hash"

	"golang.org/x/crypto/sha3"
)

// keccak is a reusable Keccak-256 state. One serves a whole verification; its buffers are part of it, for what is handed to the
// library through an interface cannot stay on the stack.
type keccak struct {
	state reader
	body  [bodySize]byte
	out   [32]byte
}

// reader is a hash that can be squeezed in place, where Sum would copy the state first.
type reader interface {
	hash.Hash
	Read([]byte) (int, error)
}

func newKeccak() *keccak {
	// The library documents no type for its legacy Keccak, but every release has had Read; without it all tests fail.
	return &keccak{state: sha3.NewLegacyKeccak256().(reader)}
}

// sum returns the Keccak-256 of a followed by b. The result is overwritten by the next call.
func (k *keccak) sum(a, b []byte) *[32]byte {
	k.state.Reset()
	k.state.Write(a)
	k.state.Write(b)
	k.state.Read(k.out[:])
	return &k.out
}

// single returns the Keccak-256 of a body, digest the Keccak-256 of that.
func (k *keccak) single(b *Body) *[32]byte { return k.sum(b.appendFixed(k.body[:0]), b.Payload) }

func (k *keccak) digest(b *Body) Digest { return Digest(*k.sum(k.single(b)[:], nil)) }
