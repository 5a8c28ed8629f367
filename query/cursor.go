package query

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

// A cursor is, in base64url without padding: its version, the first bytes of the
// hash of the listing that it continues, and the message that it continues after
// (chain, address, sequence, big-endian). It holds no authority: what it names is
// checked as any other input.
const (
	cursorVersion = 1
	listingBytes  = 8
	cursorBytes   = 1 + listingBytes + 2 + 32 + 8
)

// listing identifies what is listed and in which order; the size of a page and
// the columns may change from page to page.
type listing [listingBytes]byte

func newListing(parts ...string) listing {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return listing(sum[:listingBytes])
}

func (l listing) cursor(after vaa.MessageID) string {
	b := make([]byte, 0, cursorBytes)
	b = append(b, cursorVersion)
	b = append(b, l[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(after.EmitterChain))
	b = append(b, after.EmitterAddress[:]...)
	b = binary.BigEndian.AppendUint64(b, after.Sequence)
	return base64.RawURLEncoding.EncodeToString(b)
}

// after returns the message that a cursor of this listing continues after, nil
// for the empty cursor, which is the beginning.
func (l listing) after(cursor string) (*vaa.MessageID, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	switch {
	case err != nil || len(b) == 0 || b[0] == cursorVersion && len(b) != cursorBytes || strings.ContainsAny(cursor, "\r\n"):
		return nil, Invalid("cursor", "cursor %q is damaged: use pagination.next of the page before, or none to start over", clip(cursor))
	case b[0] != cursorVersion:
		return nil, Invalid("cursor", "cursor has version %d, not %d: start over without it", b[0], cursorVersion)
	case listing(b[1:1+listingBytes]) != l:
		return nil, Invalid("cursor", "cursor belongs to another listing: repeat the parameters of the page before, or start over without it")
	}
	b = b[1+listingBytes:]
	return &vaa.MessageID{
		EmitterChain:   vaa.ChainID(binary.BigEndian.Uint16(b)),
		EmitterAddress: vaa.Address(b[2:34]),
		Sequence:       binary.BigEndian.Uint64(b[34:]),
	}, nil
}

// listingOf identifies a scan.
func (s *Service) listingOf(r archive.Range) listing {
	var chain, emitter, first, last string
	if r.Chain != nil {
		chain = rowkey.Chain(*r.Chain)
	}
	if r.Emitter != nil {
		emitter = r.Emitter.String()
	}
	if r.FirstSequence != nil {
		first = fmt.Sprint(*r.FirstSequence)
	}
	if r.LastSequence != nil {
		last = fmt.Sprint(*r.LastSequence)
	}
	return newListing(s.network.String(), "scan", chain, emitter, first, last, fmt.Sprint(r.Descending))
}

// contains reports whether a message lies in a range, whatever its After.
func contains(r archive.Range, id vaa.MessageID) bool {
	return (r.Chain == nil || id.EmitterChain == *r.Chain) &&
		(r.Emitter == nil || id.EmitterAddress == *r.Emitter) &&
		(r.FirstSequence == nil || id.Sequence >= *r.FirstSequence) &&
		(r.LastSequence == nil || id.Sequence <= *r.LastSequence)
}
