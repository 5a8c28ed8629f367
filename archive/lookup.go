package archive

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

// LookupKind names an index.
type LookupKind uint8

// The indexes.
const (
	ByTx        LookupKind = iota + 1 // Key is a transaction id as from ParseTxID
	ByDigest                          // Key is a digest in hex: the signing digest or the single hash
	ByTime                            // Key is empty; newest first
	ByRecipient                       // Key is a recipient's address in 64 hex digits; newest first within each chain
	ByConflict                        // Key is empty: messages of which more than one digest was seen
)

// Lookup asks an index.
type Lookup struct {
	By  LookupKind
	Key string
	// Chain is the emitter chain for ByTx, ByTime and ByConflict, the recipient's for
	// ByRecipient; nil is any. ByDigest takes none.
	Chain *vaa.ChainID
	// FirstTime and LastTime bound the VAA time in Unix seconds, both inclusive,
	// for ByTime and, with a chain, for ByRecipient.
	FirstTime, LastTime *uint32
	// OldestFirst turns the order of ByTime and ByRecipient round.
	OldestFirst bool
	// After resumes behind an answer of the same lookup, exclusive. Its digests do
	// not matter.
	After *Ref
	Limit int // bounds the number of refs when positive
}

// Ref is an answer of an index: a message and those of its digests that the
// looked-up fact is known for. Whether one of them is canonical is for the
// record to say.
type Ref struct {
	ID      vaa.MessageID
	Digests []vaa.Digest
	// UnixSeconds is the VAA time in answers of ByTime and ByRecipient,
	// RecipientChain the recipient's chain in those of ByRecipient.
	UnixSeconds    uint32
	RecipientChain vaa.ChainID
}

// Span is a run of index rows: the keys that begin with Prefix, from Start on and
// before End.
type Span struct{ Prefix, Start, End string }

// Spans returns the index rows that answer the lookup: one span, or for ByTime
// one for each shard. What follows the prefix in a key orders answers across
// spans. Errors: ErrInvalidRange.
func (l Lookup) Spans() ([]Span, error) {
	prefixes, err := l.prefixes()
	if err != nil {
		return nil, err
	}
	timed := l.By == ByTime || l.By == ByRecipient && l.Chain != nil
	if (l.FirstTime != nil || l.LastTime != nil) && !timed {
		return nil, fmt.Errorf("%w: times do not bound this lookup", ErrInvalidRange)
	}
	after := ""
	if l.After != nil {
		if after, err = l.order(l.After); err != nil {
			return nil, err
		}
	}
	spans := make([]Span, len(prefixes))
	for i, p := range prefixes {
		sp := Span{Prefix: p, Start: p, End: rowkey.PrefixEnd(p)}
		if l.FirstTime != nil {
			sp.Start = p + rowkey.Seconds(uint64(*l.FirstTime))
		}
		if l.LastTime != nil {
			sp.End = p + rowkey.Seconds(uint64(*l.LastTime)+1)
		}
		switch {
		case l.After == nil:
		case l.NewestFirst():
			sp.End = min(sp.End, p+after)
		default:
			sp.Start = max(sp.Start, rowkey.Next(p+after))
		}
		spans[i] = sp
	}
	return spans, nil
}

func (l Lookup) prefixes() ([]string, error) {
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
			if l.Chain != nil {
				prefixes[i] = rowkey.ChainTimePrefix(*l.Chain, i)
			}
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
	case ByConflict:
		if l.Chain != nil {
			return []string{rowkey.ConflictChainPrefix(*l.Chain)}, nil
		}
		return []string{rowkey.ConflictPrefix()}, nil
	}
	return nil, fmt.Errorf("%w: no such index", ErrInvalidRange)
}

// order returns what follows the prefix in the key of an answer.
func (l Lookup) order(r *Ref) (string, error) {
	of, key := r.ID.EmitterChain, rowkey.Of(r.ID)
	if l.By == ByRecipient {
		of = r.RecipientChain
	}
	if l.By != ByDigest && l.Chain != nil && *l.Chain != of {
		return "", fmt.Errorf("%w: %s is no answer of this lookup", ErrInvalidRange, r.ID)
	}
	switch l.By {
	case ByTime, ByRecipient:
		key = rowkey.Seconds(uint64(r.UnixSeconds)) + ":" + key
	case ByConflict:
		if l.Chain != nil { // the prefix has it
			return strings.TrimPrefix(key, rowkey.Chain(of)), nil
		}
	}
	if (l.By == ByTx || l.By == ByRecipient) && l.Chain == nil { // the key has it before what orders within it
		key = rowkey.Chain(of) + key
	}
	return key, nil
}

// NewestFirst reports whether the lookup's answers come in descending order.
func (l Lookup) NewestFirst() bool { return (l.By == ByTime || l.By == ByRecipient) && !l.OldestFirst }

// Ref returns the answer that an index row is. Errors: the key is not one of this
// index.
func (l Lookup) Ref(row IndexRow) (Ref, error) {
	id, err := rowkey.Indexed(row.Key)
	ref := Ref{ID: id, Digests: row.Digests}
	if err != nil || l.By != ByTime && l.By != ByRecipient {
		return ref, err
	}
	parts := strings.Split(strings.TrimSuffix(row.Key, ":"+rowkey.Of(id)), ":")
	seconds, err := strconv.ParseUint(parts[len(parts)-1], 10, 32)
	if err != nil {
		return ref, fmt.Errorf("index row key %q: no time before the message", row.Key)
	}
	ref.UnixSeconds = uint32(seconds)
	if l.By == ByRecipient {
		chain, err := strconv.ParseUint(parts[max(len(parts)-2, 0)], 10, 16)
		if err != nil {
			return ref, fmt.Errorf("index row key %q: no chain before the time", row.Key)
		}
		ref.RecipientChain = vaa.ChainID(chain)
	}
	return ref, nil
}
