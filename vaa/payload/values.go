package payload

import (
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"strings"
	"time"
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

// plausible reports whether the number is below 2^128, which every real amount is and hardly any other 32 bytes are.
func (u Uint256) plausible() bool { return [16]byte(u[:16]) == [16]byte{} }

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

// plausible reports whether the address is one that the chain can have: not zero, and of the chain's length.
func (a ChainAddress) plausible() bool { return a.Address != vaa.Address{} && a.Native != nil }

// Nested is the meaning of a payload within a payload.
type Nested struct {
	Kind   string `json:"kind"`
	Fields any    `json:"fields"` // a pointer to the type that the kind has
}

// text cleans a text field: padding with NUL or space on either side is dropped, and what is not UTF-8 becomes U+FFFD. An
// empty field is nil.
func text(b []byte) *string {
	padding := func(r rune) bool { return r == 0 || unicode.IsSpace(r) }
	s := strings.TrimFunc(strings.ToValidUTF8(string(b), "\uFFFD"), padding)
	if s == "" {
		return nil
	}
	return &s
}

// unixTime returns a time of seconds since 1970 in UTC; nil for 0, which stands for no time, and for what RFC 3339 cannot write.
func unixTime(seconds int64) *time.Time {
	const year10000 = 253402300800
	if seconds <= 0 || seconds >= year10000 {
		return nil
	}
	t := time.Unix(seconds, 0).UTC()
	return &t
}

// reader reads big-endian fields one after another. Reading past the end gives zeros and is remembered, so that a layout is
// checked once, at its end. It never allocates by a length that the payload merely claims.
type reader struct {
	rest  []byte
	short bool // something was missing, or did not fit
}

// take returns the next n bytes, n being fixed by the layout; n zeros if there are fewer.
func (r *reader) take(n int) []byte {
	if len(r.rest) < n {
		r.rest, r.short = nil, true
		return make([]byte, n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// data returns a copy of the next n bytes, n being claimed by the payload; none if there are fewer.
func (r *reader) data(n uint32) Bytes {
	if uint64(len(r.rest)) < uint64(n) {
		r.rest, r.short = nil, true
		return Bytes{}
	}
	return r.bytes(int(n))
}

func (r *reader) u8() uint8            { return r.take(1)[0] }
func (r *reader) u16() uint16          { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32          { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64          { return binary.BigEndian.Uint64(r.take(8)) }
func (r *reader) i32() int32           { return int32(r.u32()) }
func (r *reader) i64() int64           { return int64(r.u64()) }
func (r *reader) u256() Uint256        { return Uint256(r.take(32)) }
func (r *reader) chain() vaa.ChainID   { return vaa.ChainID(r.u16()) }
func (r *reader) address() vaa.Address { return vaa.Address(r.take(32)) }
func (r *reader) key() vaa.GuardianKey { return vaa.GuardianKey(r.take(20)) }

// bytes returns a copy of the next n bytes, n being fixed by the layout.
func (r *reader) bytes(n int) Bytes { return append(Bytes{}, r.take(n)...) }

// address20 returns the next 20 bytes as a universal address.
func (r *reader) address20() vaa.Address {
	var a vaa.Address
	copy(a[12:], r.take(20))
	return a
}

// sized returns data after its length in one byte.
func (r *reader) sized() Bytes { return r.data(uint32(r.u8())) }

// sizedUint returns an integer after its length in one byte. More than 256 bits do not fit the layout.
func (r *reader) sizedUint() Uint256 {
	var u Uint256
	if b := r.sized(); len(b) <= len(u) {
		copy(u[len(u)-len(b):], b)
	} else {
		r.rest, r.short = nil, true
	}
	return u
}

// sizedAddress returns an address of 20 or 32 bytes after its length in one byte. Another length does not fit the layout.
func (r *reader) sizedAddress() vaa.Address {
	switch r.u8() {
	case 20:
		return r.address20()
	case 32:
		return r.address()
	}
	r.rest, r.short = nil, true
	return vaa.Address{}
}

// name returns printable ASCII, left-padded with NUL to n bytes. Anything else, and nothing at all, does not fit the layout.
func (r *reader) name(n int) string {
	name := strings.TrimLeft(string(r.take(n)), "\x00")
	if name == "" || strings.ContainsFunc(name, func(c rune) bool { return c < 0x21 || c > 0x7e }) {
		r.rest, r.short = nil, true
	}
	return name
}

// sizedName returns a name as [reader.name] does, after its length in one byte.
func (r *reader) sizedName() string { return r.name(int(r.u8())) }

// chainAddress returns an address that follows its chain.
func (r *reader) chainAddress() ChainAddress {
	chain := r.chain()
	return on(chain, r.address())
}

// addressChain returns an address that its chain follows.
func (r *reader) addressChain() ChainAddress {
	address := r.address()
	return on(r.chain(), address)
}

// remaining returns a copy of what is left and passes over it.
func (r *reader) remaining() Bytes { return r.bytes(len(r.rest)) }

// done reports whether the layout fitted: nothing was missing and nothing is left.
func (r *reader) done() bool { return !r.short && len(r.rest) == 0 }
