package vaa

import (
	"hash"

	"golang.org/x/crypto/sha3"
)

// keccak is a reusable Keccak-256 state. One serves a whole verification, which saves an allocation a signature.
type keccak struct {
	state interface {
		hash.Hash
		Read([]byte) (int, error)
	}
}

func newKeccak() keccak {
	// Read squeezes the state in place, where Sum would copy it first. The assertion holds for every release of the
	// library that has a legacy Keccak; the tests would not pass without it.
	return keccak{sha3.NewLegacyKeccak256().(interface {
		hash.Hash
		Read([]byte) (int, error)
	})}
}

// sum32 returns the Keccak-256 of the concatenation of parts.
func (k keccak) sum32(parts ...[]byte) (out [32]byte) {
	k.state.Reset()
	for _, part := range parts {
		k.state.Write(part)
	}
	k.state.Read(out[:])
	return out
}
