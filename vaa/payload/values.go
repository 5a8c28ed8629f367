package payload

import (
	"encoding/hex"
	"math/big"
	"strings"
	"unicode"

	"github.com/attestry/attestry/vaa"
)

// Uint256 is an unsigned 256-bit integer, big-endian. In JSON it is a decimal string.
type Uint256 [32]byte

// Int returns the number as a new big.Int.
func (u Uint256) Int() *big.Int { return new(big.Int).SetBytes(u[:]) }

// String returns the number in decimal.
func (u Uint256) String() string { return u.Int().String() }

// MarshalText writes the form of [Uint256.String].
func (u Uint256) MarshalText() ([]byte, error) { return u.Int().Append(nil, 10), nil }

// Bytes is uninterpreted data. In JSON it is lower-case hex.
type Bytes []byte

// MarshalText writes lower-case hex without prefix.
func (b Bytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, b), nil }

// ChainAddress is an address on a chain, in the universal form and as the chain writes it.
type ChainAddress struct {
	Chain   vaa.ChainID `json:"chain"`
	Address vaa.Address `json:"address"`
	// Native is the chain's own form; nil where it cannot be told from the universal one (see [vaa.NativeAddress]).
	Native *string `json:"native"`
}

func on(chain vaa.ChainID, address vaa.Address) ChainAddress {
	a := ChainAddress{Chain: chain, Address: address}
	if native, ok := vaa.NativeAddress(chain, address); ok {
		a.Native = &native
	}
	return a
}

// text cleans a text field of fixed size: padding with NUL or space on either side is dropped, and what is not UTF-8 becomes
// U+FFFD. An empty field is nil.
func text(b []byte) *string {
	padding := func(r rune) bool { return r == 0 || unicode.IsSpace(r) }
	s := strings.TrimFunc(strings.ToValidUTF8(string(b), "\uFFFD"), padding)
	if s == "" {
		return nil
	}
	return &s
}
