package vaa

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Network says which Wormhole network something belongs to. The zero value is invalid.
type Network uint8

// The three networks. Each has guardian sets, emitters and message ids of its own.
const (
	Mainnet Network = iota + 1
	Testnet
	Devnet
)

// Networks lists all networks in order.
func Networks() []Network { return []Network{Mainnet, Testnet, Devnet} }

// String returns "mainnet", "testnet" or "devnet".
func (n Network) String() string {
	switch n {
	case Mainnet:
		return "mainnet"
	case Testnet:
		return "testnet"
	case Devnet:
		return "devnet"
	}
	return fmt.Sprintf("invalid network %d", uint8(n))
}

// ParseNetwork is the inverse of [Network.String]; case and surrounding space do not matter.
func ParseNetwork(s string) (Network, error) {
	for _, n := range Networks() {
		if strings.EqualFold(strings.TrimSpace(s), n.String()) {
			return n, nil
		}
	}
	return 0, fmt.Errorf("network %q is unknown: write mainnet, testnet or devnet", s)
}

// Address is a universal Wormhole address: 32 bytes, shorter native addresses left-padded with zeros.
type Address [32]byte

// String returns 64 lower-case hex digits without prefix.
func (a Address) String() string { return hex.EncodeToString(a[:]) }

// MarshalText writes the form of [Address.String].
func (a Address) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, a[:]), nil }

// Digest is a 32-byte Keccak-256 digest of a VAA's body.
type Digest [32]byte

// String returns 64 lower-case hex digits without prefix.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the form of [Digest.String].
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads what [ParseDigest] accepts.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// ParseDigest reads 64 hex digits of any case, with or without 0x, surrounding space allowed.
func ParseDigest(s string) (Digest, error) {
	digits := trimHexPrefix(strings.TrimSpace(s))
	if len(digits) != 64 {
		return Digest{}, fmt.Errorf("digest %q has %d hex digits: write all 64, with or without 0x", clip(s), len(digits))
	}
	var d Digest
	if _, err := hex.Decode(d[:], []byte(digits)); err != nil {
		return Digest{}, fmt.Errorf("digest %q is not hexadecimal: write 64 hex digits, with or without 0x", clip(s))
	}
	return d, nil
}

// trimHexPrefix drops one leading 0x or 0X.
func trimHexPrefix(s string) string {
	if len(s) >= 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		return s[2:]
	}
	return s
}

// clip bounds text from outside that is quoted in an error.
func clip(s string) string {
	const limit = 100
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}
