package vaa

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors of [GuardianSets.Extend] that callers branch on.
var (
	// ErrNotUpgrade: the VAA is no guardian-set upgrade (see [IsGuardianSetUpgrade]).
	ErrNotUpgrade = errors.New("not a guardian-set upgrade")
	// ErrUpgradeKnown: the upgrade establishes a set that is known already.
	ErrUpgradeKnown = errors.New("guardian set is known already")
	// ErrUpgradeRefused: the upgrade breaks the rule of succession, or does not verify.
	ErrUpgradeRefused = errors.New("guardian-set upgrade refused")
)

// supersededFor is how long a superseded set stays valid on the chains: 86,400 s in the EVM core contract
// (ethereum/contracts/Setters.sol), the same on NEAR and Aptos.
const supersededFor = 24 * time.Hour

// GuardianSets are the guardian sets of one network, in ascending order of index. The zero value knows none and belongs to
// no network. A GuardianSets is immutable and safe for concurrent use; [GuardianSets.Extend] returns a new one.
type GuardianSets struct {
	network Network
	sets    []GuardianSet
	// anyPrefix is the rule of the development network: see [KnownGuardianSets]. Nothing but KnownGuardianSets(Devnet)
	// sets it.
	anyPrefix bool
	// newestSince is the time of the VAA that established the newest set; zero if that is not known.
	newestSince time.Time
}

// NewGuardianSets returns the given sets for a network: ascending indices, each with 1 to 255 distinct, non-zero keys. It copies
// what it keeps. It is meant for tests and tools; programs start from [KnownGuardianSets].
func NewGuardianSets(network Network, sets ...GuardianSet) (GuardianSets, error) {
	if !slices.Contains(Networks(), network) {
		return GuardianSets{}, fmt.Errorf("guardian sets: %s", network)
	}
	if len(sets) == 0 {
		return GuardianSets{}, fmt.Errorf("guardian sets of %s: none given", network)
	}
	known := GuardianSets{network: network}
	for i, set := range sets {
		if i > 0 && set.Index <= sets[i-1].Index {
			return GuardianSets{}, fmt.Errorf("guardian sets of %s: index %d after %d: indices must ascend",
				network, set.Index, sets[i-1].Index)
		}
		if err := checkKeys(set.Keys); err != nil {
			return GuardianSets{}, fmt.Errorf("guardian set %d of %s: %w", set.Index, network, err)
		}
		set.Keys = slices.Clone(set.Keys)
		known.sets = append(known.sets, set)
	}
	return known, nil
}

// checkKeys refuses what would let fewer guardians than the quorum sign: an empty set, a key twice, the zero key (to which
// some recoveries of invalid signatures evaluate).
func checkKeys(keys []GuardianKey) error {
	if len(keys) == 0 || len(keys) > 255 {
		return fmt.Errorf("%d keys: a set has 1 to 255", len(keys))
	}
	seen := make(map[GuardianKey]bool, len(keys))
	for i, key := range keys {
		if key == (GuardianKey{}) {
			return fmt.Errorf("key %d is zero", i)
		}
		if seen[key] {
			return fmt.Errorf("key %d repeats %s", i, key)
		}
		seen[key] = true
	}
	return nil
}

// Network returns the network that the sets belong to.
func (s GuardianSets) Network() Network { return s.network }

// Newest returns the set with the highest index; the zero GuardianSet if none is known. The caller must not change its Keys.
func (s GuardianSets) Newest() GuardianSet {
	if len(s.sets) == 0 {
		return GuardianSet{}
	}
	return s.sets[len(s.sets)-1]
}

// Set returns the set with that index. On the development network every index names the nineteen keys of which a set is a
// prefix. The caller must not change its Keys.
func (s GuardianSets) Set(index uint32) (GuardianSet, bool) {
	if s.anyPrefix {
		set := s.Newest()
		set.Index = index
		return set, true
	}
	at, ok := slices.BinarySearchFunc(s.sets, index, func(set GuardianSet, index uint32) int {
		return int(int64(set.Index) - int64(index))
	})
	if !ok {
		return GuardianSet{}, false
	}
	return s.sets[at], true
}

// All returns a copy of the list of sets in ascending order of index. The caller must not change their Keys.
func (s GuardianSets) All() []GuardianSet { return slices.Clone(s.sets) }

// keysFor returns the keys that v's signatures are checked against.
func (s GuardianSets) keysFor(v *VAA) ([]GuardianKey, bool) {
	set, ok := s.Set(v.GuardianSetIndex)
	if !ok || !s.anyPrefix {
		return set.Keys, ok
	}
	// The smallest prefix that has all signers; whether they are a quorum of it is judged as for any set.
	size := 1
	for i := range v.Signatures {
		size = max(size, int(v.Signatures[i].GuardianIndex)+1)
	}
	return set.Keys[:min(size, len(set.Keys))], true
}

// GovernanceEmitter returns the chain and address that all governance messages come from, on every network: Solana, 0x…04.
func GovernanceEmitter() (ChainID, Address) { return 1, Address{31: 4} }

// IsGuardianSetUpgrade reports whether v claims to be a guardian-set upgrade: it comes from the governance emitter and its
// payload is of module Core, action 2. It is cheap and proves nothing; [GuardianSets.Extend] judges.
func IsGuardianSetUpgrade(v *VAA) bool {
	chain, address := GovernanceEmitter()
	return v.EmitterChain == chain && v.EmitterAddress == address &&
		len(v.Payload) >= 33 && [33]byte(v.Payload[:33]) == upgradeHead
}

// upgradeHead is the module "Core", left-padded to 32 bytes, and action 2.
var upgradeHead = [33]byte{28: 'C', 29: 'o', 30: 'r', 31: 'e', 32: 2}

// Extend returns the sets with the one added that v establishes. The rule of succession: v is a guardian-set upgrade from
// the governance emitter for all chains, its set's index is the newest known plus one, and v verifies under the newest set
// known (an older set's keys cannot name a successor). The superseded set then expires a day after v's time, or, where
// that lies before the time of the upgrade that established the newest set, a day after that one (an expiry too early makes
// late VAAs history, one too late would let stolen keys speak).
//
// It fails with [ErrNotUpgrade], [ErrUpgradeKnown] or [ErrUpgradeRefused]; s itself never changes. The development network
// knows every set by its prefix rule, so an upgrade there is [ErrUpgradeKnown].
func (s GuardianSets) Extend(v *VAA) (GuardianSets, error) {
	if !IsGuardianSetUpgrade(v) {
		return s, ErrNotUpgrade
	}
	if s.anyPrefix {
		return s, fmt.Errorf("guardian sets of %s: %w", s.network, ErrUpgradeKnown)
	}
	set, err := readUpgrade(v.Payload)
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrUpgradeRefused, err)
	}
	newest := s.Newest()
	switch {
	case set.Index <= newest.Index:
		return s, fmt.Errorf("guardian set %d of %s: %w", set.Index, s.network, ErrUpgradeKnown)
	case set.Index != newest.Index+1:
		return s, fmt.Errorf("%w: set %d does not follow %d", ErrUpgradeRefused, set.Index, newest.Index)
	case v.GuardianSetIndex != newest.Index:
		return s, fmt.Errorf("%w: set %d is signed by set %d, which is not the newest, %d",
			ErrUpgradeRefused, set.Index, v.GuardianSetIndex, newest.Index)
	}
	if err := s.Verify(v); err != nil {
		return s, fmt.Errorf("%w: %w", ErrUpgradeRefused, err)
	}
	since := v.Time()
	if since.Before(s.newestSince) {
		since = s.newestSince
	}
	extended := GuardianSets{network: s.network, sets: slices.Clone(s.sets), newestSince: since}
	extended.sets[len(extended.sets)-1].ExpiresAt = since.Add(supersededFor)
	extended.sets = append(extended.sets, set)
	return extended, nil
}

// readUpgrade reads the payload of a guardian-set upgrade: module (32), action (1), target chain u16, new index u32, count u8,
// count keys of 20 bytes, and nothing after them.
func readUpgrade(payload []byte) (GuardianSet, error) {
	const keysAt = 33 + 2 + 4 + 1
	if len(payload) < keysAt || len(payload) != keysAt+20*int(payload[keysAt-1]) {
		return GuardianSet{}, fmt.Errorf("payload of %d bytes is not an upgrade's", len(payload))
	}
	if target := binary.BigEndian.Uint16(payload[33:]); target != 0 {
		return GuardianSet{}, fmt.Errorf("target chain is %d, not 0 (all chains)", target)
	}
	set := GuardianSet{Index: binary.BigEndian.Uint32(payload[35:])}
	for key := range slices.Chunk(payload[keysAt:], 20) {
		set.Keys = append(set.Keys, GuardianKey(key))
	}
	if err := checkKeys(set.Keys); err != nil {
		return GuardianSet{}, fmt.Errorf("set %d: %w", set.Index, err)
	}
	return set, nil
}
