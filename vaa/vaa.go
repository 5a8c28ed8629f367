package vaa

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Bounds and sizes of the wire form, in bytes. All integers are big-endian.
const (
	// MaxBytes bounds a signed VAA. The format itself has no bound; the largest VAAs seen are some KiB. [Parse] and
	// [ParseBody] refuse larger input.
	MaxBytes = 4 << 20

	headerSize    = 6  // version, guardian set index, signature count
	signatureSize = 66 // guardian index, r, s, v
	bodySize      = 51 // body without payload
	minSize       = headerSize + bodySize

	// supportedVersion is the only version that [Parse] reads.
	supportedVersion = 1
)

// Signature is one guardian's signature of the signing digest.
type Signature struct {
	// GuardianIndex is the signer's place in the guardian set that the VAA names.
	GuardianIndex uint8
	// RSV is r (32 bytes), s (32 bytes) and the recovery id v, which is 0 or 1 in the wire form.
	RSV [65]byte
}

// Body is what guardians sign: everything after the signatures.
type Body struct {
	Timestamp        uint32 // unix seconds of the block that holds the message
	Nonce            uint32
	EmitterChain     ChainID
	EmitterAddress   Address
	Sequence         uint64
	ConsistencyLevel uint8
	Payload          []byte // may be empty; owned by the Body
}

// VAA is a signed message of version 1. The header (version, set index, signatures) is not covered by the digest, so
// different headers may legitimately carry the same message.
type VAA struct {
	Version          uint8
	GuardianSetIndex uint32
	Signatures       []Signature
	Body
}

// VersionError reports a VAA whose version is not 1. Version 2 has been used for more than one layout; none is read here.
type VersionError struct {
	Version uint8
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("vaa version %d is not supported: only version 1 is", e.Version)
}

// Parse reads a signed VAA of version 1. It copies what it keeps, so that the caller may reuse b. Any number and order of
// signatures is accepted here; [GuardianSets.Verify] judges them. It fails with *[VersionError] for another version.
func Parse(b []byte) (*VAA, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("parse vaa: no bytes")
	}
	if b[0] != supportedVersion {
		return nil, fmt.Errorf("parse vaa: %w", &VersionError{Version: b[0]})
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("parse vaa: %d bytes exceed the limit of %d", len(b), MaxBytes)
	}
	if len(b) < minSize {
		return nil, fmt.Errorf("parse vaa: %d bytes are too short: the least is %d", len(b), minSize)
	}
	v := &VAA{Version: b[0], GuardianSetIndex: binary.BigEndian.Uint32(b[1:])}
	count := int(b[5])
	bodyAt := headerSize + count*signatureSize
	if len(b) < bodyAt+bodySize {
		return nil, fmt.Errorf("parse vaa: %d bytes are too short for %d signatures and a body: the least is %d",
			len(b), count, bodyAt+bodySize)
	}
	if count > 0 {
		v.Signatures = make([]Signature, count)
	}
	for i := range v.Signatures {
		at := b[headerSize+i*signatureSize:]
		v.Signatures[i].GuardianIndex = at[0]
		copy(v.Signatures[i].RSV[:], at[1:signatureSize])
	}
	v.Body = readBody(b[bodyAt:])
	return v, nil
}

// ParseBody reads a body without header ("headless VAA"): 51 bytes and the payload. It copies what it keeps.
func ParseBody(b []byte) (Body, error) {
	if len(b) > MaxBytes {
		return Body{}, fmt.Errorf("parse vaa body: %d bytes exceed the limit of %d", len(b), MaxBytes)
	}
	if len(b) < bodySize {
		return Body{}, fmt.Errorf("parse vaa body: %d bytes are too short: the least is %d", len(b), bodySize)
	}
	return readBody(b), nil
}

func readBody(b []byte) Body {
	body := Body{
		Timestamp:        binary.BigEndian.Uint32(b),
		Nonce:            binary.BigEndian.Uint32(b[4:]),
		EmitterChain:     ChainID(binary.BigEndian.Uint16(b[8:])),
		EmitterAddress:   Address(b[10:42]),
		Sequence:         binary.BigEndian.Uint64(b[42:]),
		ConsistencyLevel: b[50],
	}
	body.Payload = append([]byte{}, b[bodySize:]...)
	return body
}

// Append appends the wire form to dst: the inverse of [Parse]. A VAA has at most 255 signatures; further ones cannot be
// written and are left out.
func (v *VAA) Append(dst []byte) []byte {
	signatures := v.Signatures[:min(len(v.Signatures), 255)]
	dst = append(dst, v.Version)
	dst = binary.BigEndian.AppendUint32(dst, v.GuardianSetIndex)
	dst = append(dst, uint8(len(signatures)))
	for i := range signatures {
		dst = append(dst, signatures[i].GuardianIndex)
		dst = append(dst, signatures[i].RSV[:]...)
	}
	return v.Body.Append(dst)
}

// Append appends the wire form of the body to dst: the inverse of [ParseBody].
func (b *Body) Append(dst []byte) []byte {
	return append(b.appendFixed(dst), b.Payload...)
}

// appendFixed appends all but the payload: 51 bytes.
func (b *Body) appendFixed(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, b.Timestamp)
	dst = binary.BigEndian.AppendUint32(dst, b.Nonce)
	dst = binary.BigEndian.AppendUint16(dst, uint16(b.EmitterChain))
	dst = append(dst, b.EmitterAddress[:]...)
	dst = binary.BigEndian.AppendUint64(dst, b.Sequence)
	return append(dst, b.ConsistencyLevel)
}

// MessageID returns the id of the message that the body carries.
func (b *Body) MessageID() MessageID {
	return MessageID{EmitterChain: b.EmitterChain, EmitterAddress: b.EmitterAddress, Sequence: b.Sequence}
}

// Time returns the body's timestamp in UTC, to the second.
func (b *Body) Time() time.Time { return time.Unix(int64(b.Timestamp), 0).UTC() }

// Digest returns the signing digest: Keccak-256 of the Keccak-256 of the body. Guardians, explorers and logs mean this one.
func (b *Body) Digest() Digest { return newKeccak().digest(b) }

// SingleDigest returns the Keccak-256 of the body once: the digest that addresses posted VAAs on Solana.
func (b *Body) SingleDigest() Digest { return Digest(*newKeccak().single(b)) }
