package vaa

import (
	"encoding/hex"
	"fmt"
	"time"
)

// GuardianKey is the Ethereum-style address of a guardian's public key: the last 20 bytes of its Keccak-256.
type GuardianKey [20]byte

// String returns the key with 0x and the EIP-55 checksum.
func (k GuardianKey) String() string { return checksumHex(k[:]) }

// MarshalText writes the form of [GuardianKey.String].
func (k GuardianKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// ParseGuardianKey reads 40 hex digits of any case, with or without 0x. The checksum is not judged.
func ParseGuardianKey(s string) (GuardianKey, error) {
	digits := trimHexPrefix(s)
	var k GuardianKey
	if len(digits) != 2*len(k) {
		return k, fmt.Errorf("guardian key %q has %d hex digits: write 40, with or without 0x", clip(s), len(digits))
	}
	if _, err := hex.Decode(k[:], []byte(digits)); err != nil {
		return GuardianKey{}, fmt.Errorf("guardian key %q is not hexadecimal: write 40 hex digits", clip(s))
	}
	return k, nil
}

// checksumHex renders a 20-byte address as EIP-55 has it: a letter is upper case where the Keccak-256 of the
// lower-case digits has a nibble of 8 or more.
func checksumHex(address []byte) string {
	text := hex.AppendEncode([]byte("0x"), address)
	digits := text[2:]
	sum := newKeccak().sum(digits, nil)
	for i, c := range digits {
		nibble := sum[i/2] >> 4
		if i%2 == 1 {
			nibble = sum[i/2] & 0x0f
		}
		if c >= 'a' && nibble >= 8 {
			digits[i] = c - 'a' + 'A'
		}
	}
	return string(text)
}

// GuardianSet is one set of guardians. A guardian's index is its place in Keys.
type GuardianSet struct {
	Index uint32
	Keys  []GuardianKey
	// ExpiresAt is when the set stopped being current, plus a day; zero if it is not superseded. It is an attribute and
	// no bar: an expired set still verifies what it signed. Each chain lets a set expire a day after the upgrade was
	// submitted there, a time that no VAA carries; the upgrade VAA's own time is taken for it.
	ExpiresAt time.Time
}

// Quorum returns how many signatures the set needs.
func (s GuardianSet) Quorum() int { return Quorum(len(s.Keys)) }

// Quorum returns how many of n guardians must sign: floor(2n/3)+1, the rule of the core contracts.
func Quorum(n int) int { return n*2/3 + 1 }
