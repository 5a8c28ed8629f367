package payload

import (
	"encoding/binary"

	"github.com/attestry/attestry/vaa"
)

// reader reads big-endian fields one after another. Reading past the end gives zeros and is remembered, so that a layout is
// checked once, at its end.
type reader struct {
	rest  []byte
	short bool
}

// take returns the next n bytes; n zeros if there are fewer.
func (r *reader) take(n int) []byte {
	if len(r.rest) < n {
		r.rest, r.short = nil, true
		return make([]byte, n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// skip passes over the next n bytes without keeping them, so that n from a payload costs nothing.
func (r *reader) skip(n int) {
	if len(r.rest) < n {
		r.rest, r.short = nil, true
		return
	}
	r.rest = r.rest[n:]
}

func (r *reader) u8() uint8            { return r.take(1)[0] }
func (r *reader) u16() uint16          { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32          { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) u256() Uint256        { return Uint256(r.take(32)) }
func (r *reader) chain() vaa.ChainID   { return vaa.ChainID(r.u16()) }
func (r *reader) address() vaa.Address { return vaa.Address(r.take(32)) }
func (r *reader) key() vaa.GuardianKey { return vaa.GuardianKey(r.take(20)) }

// remaining returns a copy of what is left and passes over it.
func (r *reader) remaining() Bytes {
	b := append(Bytes{}, r.rest...)
	r.rest = nil
	return b
}

// done reports whether the layout fitted: nothing was missing and nothing is left.
func (r *reader) done() bool { return !r.short && len(r.rest) == 0 }
