package vaa

import (
	"fmt"
	"strconv"
	"strings"
)

// MessageID names a message: who published it, and which one it was. It is comparable.
type MessageID struct {
	EmitterChain   ChainID
	EmitterAddress Address
	Sequence       uint64
}

// String returns chain, address and sequence as "2/<64 hex digits>/7", without padding.
func (id MessageID) String() string { return string(id.append(make([]byte, 0, 92))) }

// MarshalText writes the form of [MessageID.String].
func (id MessageID) MarshalText() ([]byte, error) { return id.append(nil), nil }

// UnmarshalText reads what [ParseMessageID] accepts.
func (id *MessageID) UnmarshalText(text []byte) error {
	parsed, err := ParseMessageID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

func (id MessageID) append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, uint64(id.EmitterChain), 10)
	dst = append(dst, '/')
	dst = append(dst, id.EmitterAddress.String()...)
	dst = append(dst, '/')
	return strconv.AppendUint(dst, id.Sequence, 10)
}

// ParseMessageID reads a message id as people write it: chain, emitter and sequence between slashes or colons (mixed, if they
// like), with any surrounding space. The chain is what [ParseChainID] reads, the emitter what [ParseAddress] reads for that
// chain, the sequence decimal with or without leading zeros, so that row keys with sequences padded to 16 or 20 digits are
// ids too. It is the inverse of [MessageID.String]. Its errors name the part that is wrong and how to write it.
func ParseMessageID(s string) (MessageID, error) {
	parts := strings.Split(strings.ReplaceAll(strings.TrimSpace(s), ":", "/"), "/")
	if len(parts) != 3 {
		return MessageID{}, fmt.Errorf("message id %q has %d parts: write chain/emitter/sequence, as "+
			"ethereum/0x3ee18b2214aff97000d974cf647e7c347e8fa585/7", clip(s), len(parts))
	}
	id, err := parseParts(parts[0], parts[1], parts[2])
	if err != nil {
		return MessageID{}, fmt.Errorf("message id %q: %w", clip(s), err)
	}
	return id, nil
}

func parseParts(chain, emitter, sequence string) (id MessageID, err error) {
	if id.EmitterChain, err = ParseChainID(chain); err != nil {
		return MessageID{}, err
	}
	if id.EmitterAddress, err = ParseAddress(id.EmitterChain, emitter); err != nil {
		return MessageID{}, fmt.Errorf("emitter: %w", err)
	}
	if id.Sequence, err = ParseSequence(sequence); err != nil {
		return MessageID{}, err
	}
	return id, nil
}

// ParseSequence reads a sequence in decimal, 0 to 2^64-1, leading zeros and surrounding space allowed.
func ParseSequence(s string) (uint64, error) {
	text := strings.TrimSpace(s)
	switch {
	case text == "":
		return 0, fmt.Errorf("sequence is empty: write a decimal number")
	case !isDecimal(text):
		return 0, fmt.Errorf("sequence %q is not a decimal number: write digits only", clip(text))
	}
	sequence, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("sequence %q is out of range: the greatest is 18446744073709551615", clip(text))
	}
	return sequence, nil
}
