package archive

import (
	"fmt"
	"strings"
	"time"

	"github.com/attestry/attestry/bigtable/rowkey"
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
	// Limit bounds the number of records when positive.
	Limit int
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

// LookupKind names an index.
type LookupKind uint8

// The indexes.
const (
	ByTx        LookupKind = iota + 1 // Key is a transaction id as from ParseTxID
	ByDigest                          // Key is a digest in hex: the signing digest or the single hash
	ByTime                            // Key is empty; newest first
	ByRecipient                       // Key is a recipient's address in 64 hex digits; newest first within each chain
)

// Lookup asks an index.
type Lookup struct {
	By    LookupKind
	Key   string
	Chain *vaa.ChainID // ByTx: the emitter chain; ByRecipient: the recipient's chain; nil is any
	Limit int          // bounds the number of refs when positive
}

// Ref is an answer of an index: a message and those of its digests that the
// looked-up fact is known for. Whether one of them is canonical is for the
// record to say.
type Ref struct {
	ID      vaa.MessageID
	Digests []vaa.Digest
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

// Prefixes returns the prefixes of the index rows that answer the lookup: one,
// or for ByTime one for each shard. Errors: ErrInvalidRange.
func (l Lookup) Prefixes() ([]string, error) {
	switch l.By {
	case ByTx:
		if l.Key == "" {
			return nil, fmt.Errorf("%w: no transaction id", ErrInvalidRange)
		}
		if l.Chain != nil {
			return []string{rowkey.TxChainPrefix(l.Key, *l.Chain)}, nil
		}
		return []string{rowkey.TxPrefix(l.Key)}, nil
	case ByDigest:
		d, err := vaa.ParseDigest(l.Key)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidRange, err)
		}
		return []string{rowkey.DigestPrefix(d.String())}, nil
	case ByTime:
		prefixes := make([]string, rowkey.TimeShards)
		for i := range prefixes {
			prefixes[i] = rowkey.TimePrefix(i)
		}
		return prefixes, nil
	case ByRecipient:
		to, err := vaa.ParseAddress(0, l.Key)
		if err != nil {
			return nil, fmt.Errorf("%w: recipient: %w", ErrInvalidRange, err)
		}
		if l.Chain != nil {
			return []string{rowkey.ToChainPrefix(to, *l.Chain)}, nil
		}
		return []string{rowkey.ToPrefix(to)}, nil
	}
	return nil, fmt.Errorf("%w: no such index", ErrInvalidRange)
}

// NewestFirst reports whether the lookup's answers come newest first.
func (l Lookup) NewestFirst() bool { return l.By == ByTime || l.By == ByRecipient }

// Order returns what an index row under one of the prefixes is ordered by.
func (l Lookup) Order(key, prefix string) string { return key[len(prefix):] }
