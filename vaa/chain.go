package vaa

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ChainID is a Wormhole chain id. Every value is legal: ids without a name are chains that this build does not know.
type ChainID uint16

// chain is what is known of a chain id.
type chain struct {
	id       ChainID
	name     string // canonical, lower case
	alias    string // a further name, folded; most chains have none
	format   addressFormat
	hrp      string // human-readable part, of bech32 addresses
	obsolete bool   // guardians no longer serve the chain; its messages remain
}

func (c ChainID) lookup() (*chain, bool) {
	at, ok := slices.BinarySearchFunc(chainTable[:], c, func(row chain, id ChainID) int { return int(row.id) - int(id) })
	if !ok {
		return nil, false
	}
	return &chainTable[at], true
}

// String returns the chain's canonical lower-case name, as the Go SDK has or had it ("ethereum", "arbitrum_sepolia"), or the
// decimal id of a chain without a name. [ParseChainID] reads both.
func (c ChainID) String() string {
	if row, ok := c.lookup(); ok {
		return row.name
	}
	return strconv.Itoa(int(c))
}

// Known reports whether the chain has a name.
func (c ChainID) Known() bool {
	_, ok := c.lookup()
	return ok
}

// Obsolete reports whether guardians have given the chain up. Its historical messages are as valid as any.
func (c ChainID) Obsolete() bool {
	row, ok := c.lookup()
	return ok && row.obsolete
}

// Chains returns all chain ids that have a name, ascending. 0 ("unset") is among them: it addresses all chains in governance.
func Chains() []ChainID {
	ids := make([]ChainID, len(chainTable))
	for i := range chainTable {
		ids[i] = chainTable[i].id
	}
	return ids
}

// ParseChainID reads a chain id in decimal (leading zeros allowed) or a chain's name: that of the Go or the TypeScript SDK, or of
// the guardians' API ("CHAIN_ID_ETHEREUM"). Case, surrounding space, and the characters _ - within a name do not matter.
func ParseChainID(s string) (ChainID, error) {
	text := strings.TrimSpace(s)
	if text == "" {
		return 0, fmt.Errorf("chain is empty: write its decimal id or its name, as 2 or ethereum")
	}
	if digits := strings.TrimLeft(text, "+-"); digits != "" && isDecimal(digits) {
		id, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("chain %q is out of range: write an id from 0 to 65535", clip(text))
		}
		return ChainID(id), nil
	}
	name := strings.TrimPrefix(foldName(text), "chainid")
	for i := range chainTable {
		if row := &chainTable[i]; name != "" && (name == foldName(row.name) || name == row.alias) {
			return row.id, nil
		}
	}
	return 0, fmt.Errorf("chain %q is unknown: write its decimal id or its name, as 2 or ethereum", clip(text))
}

func foldName(s string) string {
	return strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(s, "_", ""), "-", ""))
}

func isDecimal(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
