// Package rowkey builds and parses the row keys of the attestations table and of
// its indexes. It is pure.
//
// A message's key is EmitterChain:EmitterAddress:Sequence with the chain in
// decimal, the address as 64 lower-case hex digits and the sequence as 20 decimal
// digits, enough for every uint64, so that within an emitter the order of bytes
// is the order of numbers. Chains sort as text; "<chain>:" selects exactly one.
package rowkey

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/attestry/attestry/vaa"
)

const (
	addressDigits  = 2 * len(vaa.Address{})
	sequenceDigits = 20
	secondsDigits  = 10 // enough for every uint32
	// TimeShards is the number of shards of the time index. A power of two that
	// spreads the newest second over as many tablets as a small cluster has.
	TimeShards = 16
)

// Of returns the row key of a message.
func Of(id vaa.MessageID) string { return string(Append(nil, id)) }

// Append appends the row key of a message to dst.
func Append(dst []byte, id vaa.MessageID) []byte {
	dst = append(dst, Emitter(id.EmitterChain, id.EmitterAddress)...)
	return appendPadded(dst, id.Sequence, sequenceDigits)
}

// Parse is the inverse of Of. It accepts nothing that Of does not produce; what
// people write is read by vaa.ParseMessageID.
func Parse(key string) (vaa.MessageID, error) {
	var id vaa.MessageID
	chain, rest, ok := strings.Cut(key, ":")
	if !ok {
		return id, fmt.Errorf("row key %q: no colon after the chain", key)
	}
	c, err := strconv.ParseUint(chain, 10, 16)
	if err != nil || strconv.FormatUint(c, 10) != chain {
		return id, fmt.Errorf("row key %q: chain is not a decimal number of 16 bits", key)
	}
	if len(rest) != addressDigits+1+sequenceDigits || rest[addressDigits] != ':' {
		return id, fmt.Errorf("row key %q: want %d hex digits, a colon and %d digits after the chain", key, addressDigits, sequenceDigits)
	}
	address, digits := rest[:addressDigits], rest[addressDigits+1:]
	if _, err := hex.Decode(id.EmitterAddress[:], []byte(address)); err != nil || strings.ToLower(address) != address {
		return id, fmt.Errorf("row key %q: address is not lower-case hex", key)
	}
	if strings.Trim(digits, "0123456789") != "" {
		return id, fmt.Errorf("row key %q: sequence is not decimal", key)
	}
	if id.Sequence, err = strconv.ParseUint(digits, 10, 64); err != nil {
		return id, fmt.Errorf("row key %q: sequence does not fit 64 bits", key)
	}
	id.EmitterChain = vaa.ChainID(c)
	return id, nil
}

// Chain returns the prefix that selects exactly the messages of a chain.
func Chain(chain vaa.ChainID) string { return strconv.Itoa(int(chain)) + ":" }

// Emitter returns the prefix that selects exactly the messages of an emitter.
func Emitter(chain vaa.ChainID, emitter vaa.Address) string {
	return Chain(chain) + hex.EncodeToString(emitter[:]) + ":"
}

// PrefixEnd returns the first key after all keys that begin with prefix, "" when
// there is none.
func PrefixEnd(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

// Next returns the first key after key.
func Next(key string) string { return key + "\x00" }

// Offset returns the row key of the journal's batch whose first event has this
// offset.
func Offset(o uint64) string { return string(appendPadded(nil, o, sequenceDigits)) }

// ParseOffset is the inverse of Offset.
func ParseOffset(key string) (uint64, error) {
	o, err := strconv.ParseUint(key, 10, 64)
	if err != nil || Offset(o) != key {
		return 0, fmt.Errorf("journal row key %q: want %d decimal digits", key, sequenceDigits)
	}
	return o, nil
}

// TxPrefix selects the index rows of a transaction.
func TxPrefix(txID string) string { return "tx:" + txID + ":" }

// TxChainPrefix selects the index rows of a transaction and emitter chain.
func TxChainPrefix(txID string, chain vaa.ChainID) string { return TxPrefix(txID) + Chain(chain) }

// Tx returns the key of the index row tx:<txid>:<chain>:<row key>.
func Tx(txID string, id vaa.MessageID) string { return TxChainPrefix(txID, id.EmitterChain) + Of(id) }

// DigestPrefix selects the index rows of a digest in hex.
func DigestPrefix(digest string) string { return "digest:" + digest + ":" }

// Digest returns the key of the index row digest:<digest>:<row key>.
func Digest(digest string, id vaa.MessageID) string { return DigestPrefix(digest) + Of(id) }

// TimePrefix selects the index rows of one shard of the time index, 0 to
// TimeShards-1.
func TimePrefix(shard int) string { return fmt.Sprintf("time:%02d:", shard) }

// TimeShard returns the shard in which a message lies.
func TimeShard(id vaa.MessageID) int {
	h := fnv.New32a()
	h.Write(Append(nil, id)) //nolint:errcheck // a hash does not fail
	return int(h.Sum32() % TimeShards)
}

// Time returns the key of the index row time:<shard>:<unix seconds>:<row key>.
func Time(seconds uint32, id vaa.MessageID) string {
	return TimePrefix(TimeShard(id)) + Seconds(uint64(seconds)) + ":" + Of(id)
}

// ChainTimePrefix selects the index rows of one shard of the time index of an
// emitter chain, 0 to TimeShards-1.
func ChainTimePrefix(chain vaa.ChainID, shard int) string {
	return fmt.Sprintf("chaintime:%s%02d:", Chain(chain), shard)
}

// ChainTime returns the key of the index row
// chaintime:<chain>:<shard>:<unix seconds>:<row key>.
func ChainTime(seconds uint32, id vaa.MessageID) string {
	return ChainTimePrefix(id.EmitterChain, TimeShard(id)) + Seconds(uint64(seconds)) + ":" + Of(id)
}

// Seconds returns Unix seconds as they stand in keys, so that bytes sort as
// numbers; one more than the last uint32 is possible as a bound.
func Seconds(seconds uint64) string { return string(appendPadded(nil, seconds, secondsDigits)) }

// ConflictPrefix selects the index rows of messages of which more than one digest
// was seen.
func ConflictPrefix() string { return "conflict:" }

// ConflictChainPrefix selects those of one emitter chain.
func ConflictChainPrefix(chain vaa.ChainID) string { return ConflictPrefix() + Chain(chain) }

// Conflict returns the key of the index row conflict:<row key>.
func Conflict(id vaa.MessageID) string { return ConflictPrefix() + Of(id) }

// ToPrefix selects the index rows of a recipient.
func ToPrefix(to vaa.Address) string { return "to:" + hex.EncodeToString(to[:]) + ":" }

// ToChainPrefix selects the index rows of a recipient on one chain.
func ToChainPrefix(to vaa.Address, chain vaa.ChainID) string { return ToPrefix(to) + Chain(chain) }

// To returns the key of the index row to:<address>:<chain>:<unix seconds>:<row key>;
// the chain is the recipient's.
func To(to vaa.Address, chain vaa.ChainID, seconds uint32, id vaa.MessageID) string {
	return ToChainPrefix(to, chain) + Seconds(uint64(seconds)) + ":" + Of(id)
}

// Indexed returns the message that an index row points at.
func Indexed(key string) (vaa.MessageID, error) {
	end := len(key) - (addressDigits + 1 + sequenceDigits + 1)
	if end < 0 {
		return vaa.MessageID{}, fmt.Errorf("index row key %q: too short", key)
	}
	start := strings.LastIndexByte(key[:end], ':')
	if start < 0 {
		return vaa.MessageID{}, fmt.Errorf("index row key %q: no message row key at its end", key)
	}
	id, err := Parse(key[start+1:])
	if err != nil {
		return vaa.MessageID{}, fmt.Errorf("index row key %q: %w", key, err)
	}
	return id, nil
}

func appendPadded(dst []byte, n uint64, digits int) []byte {
	var buf [sequenceDigits]byte
	text := strconv.AppendUint(buf[:0], n, 10)
	for range digits - len(text) {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}
