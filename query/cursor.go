package query

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// A cursor is, in base64url without padding: its version, the first bytes of the
// hash of the listing that it continues, and the place that it continues behind. It
// holds no authority: what it names is checked as any other input.
const (
	cursorVersion = 2
	listingBytes  = 8
	refBytes      = 2 + 32 + 8 + 4 + 2
)

// listing identifies what is listed and in which order; the size of a page and
// the columns may change from page to page.
type listing [listingBytes]byte

func newListing(parts ...string) listing {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return listing(sum[:listingBytes])
}

// cursor returns the cursor of a place in the listing.
func (l listing) cursor(place []byte) string {
	b := append([]byte{cursorVersion}, l[:]...)
	return base64.RawURLEncoding.EncodeToString(append(b, place...))
}

// place is the inverse of cursor, nil for the empty one, which is the beginning.
// size is that of a place, -1 where it varies.
func (l listing) place(cursor string, size int) ([]byte, error) {
	if cursor == "" {
		return nil, nil
	}
	const at = 1 + listingBytes
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	switch {
	case err != nil || len(b) == 0 || b[0] == cursorVersion && len(b) < at || strings.ContainsAny(cursor, "\r\n"):
		return nil, damaged(cursor)
	case b[0] != cursorVersion:
		return nil, Invalid("cursor", "cursor has version %d, not %d: start over without it", b[0], cursorVersion)
	case listing(b[1:at]) != l:
		return nil, Invalid("cursor", "cursor belongs to another listing: repeat the parameters of the page before, or start over without it")
	case size >= 0 && len(b) != at+size:
		return nil, damaged(cursor)
	}
	return b[at:], nil
}

func damaged(cursor string) error {
	return Invalid("cursor", "cursor %q is damaged: use pagination.next of the page before, or none to start over", clip(cursor))
}

// next returns the cursor that continues behind a message: chain, address, sequence,
// Unix seconds and recipient's chain, big-endian.
func (l listing) next(r archive.Ref) string {
	b := binary.BigEndian.AppendUint16(make([]byte, 0, refBytes), uint16(r.ID.EmitterChain))
	b = append(b, r.ID.EmitterAddress[:]...)
	b = binary.BigEndian.AppendUint64(b, r.ID.Sequence)
	b = binary.BigEndian.AppendUint32(b, r.UnixSeconds)
	return l.cursor(binary.BigEndian.AppendUint16(b, uint16(r.RecipientChain)))
}

// after is the inverse of next, nil for the empty cursor.
func (l listing) after(cursor string) (*archive.Ref, error) {
	b, err := l.place(cursor, refBytes)
	if b == nil || err != nil {
		return nil, err
	}
	return &archive.Ref{
		ID: vaa.MessageID{
			EmitterChain:   vaa.ChainID(binary.BigEndian.Uint16(b)),
			EmitterAddress: vaa.Address(b[2:34]),
			Sequence:       binary.BigEndian.Uint64(b[34:]),
		},
		UnixSeconds:    binary.BigEndian.Uint32(b[42:]),
		RecipientChain: vaa.ChainID(binary.BigEndian.Uint16(b[46:])),
	}, nil
}

// listingOf identifies a scan.
func (s *Service) listingOf(kind string, r archive.Range) listing {
	w := r.Where
	return newListing(s.network.String(), kind, text(r.Chain), text(r.Emitter), text(r.FirstSequence), text(r.LastSequence), fmt.Sprint(r.Descending),
		fmt.Sprintf("%t%x", w.PayloadPrefix != nil, w.PayloadPrefix), text(w.GuardianSetIndex), text(w.Signed), text(w.Linked),
		text(unixOf(w.FirstTime)), text(unixOf(w.LastTime)))
}

func text[T any](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

func unixOf(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	seconds := t.Unix()
	return &seconds
}

// contains reports whether a message lies in a range, whatever its After.
func contains(r archive.Range, id vaa.MessageID) bool {
	return (r.Chain == nil || id.EmitterChain == *r.Chain) &&
		(r.Emitter == nil || id.EmitterAddress == *r.Emitter) &&
		(r.FirstSequence == nil || id.Sequence >= *r.FirstSequence) &&
		(r.LastSequence == nil || id.Sequence <= *r.LastSequence)
}
