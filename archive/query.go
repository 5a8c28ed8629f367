package archive

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/attestry/attestry/vaa"
)

// Columns says which cells of a record travel. The zero value asks for all of
// them, with every version. Names are those of bigtable/schema.
type Columns struct {
	// Families restricts to these families; empty means all.
	Families []string
	// Qualifiers restricts to these qualifiers in whichever family has them. A
	// qualifier that ends in a dot, as "TxID.", asks for all that begin with it.
	// Empty means all.
	Qualifiers []string
	// Latest asks for the newest version of each cell only.
	Latest bool
}

// Range selects consecutive records by row key.
type Range struct {
	// Chain and Emitter select one emitter; Chain alone one chain. Both nil
	// selects the whole table. Emitter without Chain is ErrInvalidRange.
	Chain   *vaa.ChainID
	Emitter *vaa.Address
	// FirstSequence and LastSequence bound an emitter's sequences, both
	// inclusive; nil is unbounded. They need Emitter.
	FirstSequence *uint64
	LastSequence  *uint64
	// After resumes behind this message in the order of the scan, exclusive.
	After *vaa.MessageID
	// Descending reverses the order of row keys.
	Descending bool
	// Where selects among the records of the range. One that is not selected is
	// yielded all the same, with nothing but its id, so that Limit bounds what is
	// read and a scan that selects little can be resumed.
	Where Where
	// Limit bounds the number of records when positive.
	Limit int
}

// Where is a choice of records by what they hold, which the store makes. The zero
// value selects all. A record is selected if it meets every condition that is not
// nil.
type Where struct {
	PayloadPrefix    []byte     // the payload begins with these bytes
	GuardianSetIndex *uint32    // of the canonical VAA
	Signed           *bool      // a signed VAA is known
	Linked           *bool      // a transaction is known of the canonical digest
	FirstTime        *time.Time // VAA time, in whole seconds, both inclusive
	LastTime         *time.Time
}

// IsZero reports whether all records are selected.
func (w Where) IsZero() bool {
	return w.PayloadPrefix == nil && w.GuardianSetIndex == nil && w.Signed == nil && w.Linked == nil && w.FirstTime == nil && w.LastTime == nil
}

// Selects reports whether a whole record is selected.
func (w Where) Selects(r *Record) bool {
	p := &r.Publication
	return (w.PayloadPrefix == nil || p.Payload != nil && bytes.HasPrefix(p.Payload, w.PayloadPrefix)) &&
		(w.GuardianSetIndex == nil || p.GuardianSetIndex != nil && *p.GuardianSetIndex == *w.GuardianSetIndex) &&
		(w.Signed == nil || (r.Signed() != nil) == *w.Signed) &&
		(w.Linked == nil || (p.InitiatingTxID != nil) == *w.Linked) &&
		(w.FirstTime == nil || p.Timestamp != nil && !p.Timestamp.Before(*w.FirstTime)) &&
		(w.LastTime == nil || p.Timestamp != nil && !p.Timestamp.After(*w.LastTime))
}

// Check returns ErrInvalidRange with what is wrong.
func (r Range) Check() error {
	switch {
	case r.Emitter != nil && r.Chain == nil:
		return fmt.Errorf("%w: an emitter needs its chain", ErrInvalidRange)
	case (r.FirstSequence != nil || r.LastSequence != nil) && r.Emitter == nil:
		return fmt.Errorf("%w: a sequence range needs an emitter", ErrInvalidRange)
	case r.FirstSequence != nil && r.LastSequence != nil && *r.FirstSequence > *r.LastSequence:
		return fmt.Errorf("%w: first sequence %d is after last sequence %d", ErrInvalidRange, *r.FirstSequence, *r.LastSequence)
	case r.Limit < 0:
		return fmt.Errorf("%w: limit %d is negative", ErrInvalidRange, r.Limit)
	}
	return nil
}

// Evidence is a valid signature beyond those in a stored VAA.
type Evidence struct {
	ID               vaa.MessageID
	GuardianSetIndex uint32
	Digest           vaa.Digest
	Signature        vaa.Signature
}

// Reject is an item that was refused.
type Reject struct {
	Reason   string // a stable name in snake_case, bounded in number
	Detail   string // one sentence for a person
	Source   string
	Bytes    []byte // the first MaxRejectBytes of what was delivered
	SHA256   [32]byte
	Count    uint64 // deliveries of these bytes refused for this reason
	LastSeen time.Time
}

// ParseTxID brings the text of a transaction id into the form in which it is
// kept and looked up: hexadecimal ids in lower case without 0x, others (base58,
// base32, base64) as they are. Errors name what is wrong with the text.
func ParseTxID(s string) (string, error) {
	s = strings.TrimSpace(s)
	digits, prefixed := strings.CutPrefix(s, "0x")
	if !prefixed {
		digits, prefixed = strings.CutPrefix(s, "0X")
	}
	if prefixed || len(digits) >= 64 {
		if isHex(digits) {
			s = strings.ToLower(digits)
		} else if prefixed {
			return "", fmt.Errorf("transaction id %q: not hexadecimal after 0x", clip(s))
		}
	}
	if s == "" {
		return "", fmt.Errorf("transaction id is empty")
	}
	if len(s) > MaxTxIDBytes {
		return "", fmt.Errorf("transaction id of %d characters: at most %d are possible", len(s), MaxTxIDBytes)
	}
	for _, c := range s {
		ok := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.ContainsRune("-_+/=.", c)
		if !ok {
			return "", fmt.Errorf("transaction id %q: character %q is in no chain's ids", clip(s), c)
		}
	}
	return s, nil
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return s != ""
}

// clip bounds foreign text in an error.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
