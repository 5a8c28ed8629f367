package vaa_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func TestNewGuardianSetsRefuses(t *testing.T) {
	t.Parallel()
	keys := vaatest.NewGuardians(1, 0, 3).Set().Keys
	for _, c := range []struct {
		name    string
		network vaa.Network
		sets    []vaa.GuardianSet
	}{
		{"no network", 0, []vaa.GuardianSet{{Keys: keys}}},
		{"no sets", vaa.Mainnet, nil},
		{"no keys", vaa.Mainnet, []vaa.GuardianSet{{}}},
		{"too many keys", vaa.Mainnet, []vaa.GuardianSet{{Keys: slices.Repeat(keys, 100)}}},
		{"a key twice", vaa.Mainnet, []vaa.GuardianSet{{Keys: slices.Repeat(keys, 2)}}},
		{"zero key", vaa.Mainnet, []vaa.GuardianSet{{Keys: append(slices.Clone(keys), vaa.GuardianKey{})}}},
		{"index twice", vaa.Mainnet, []vaa.GuardianSet{{Index: 1, Keys: keys}, {Index: 1, Keys: keys}}},
	} {
		if _, err := vaa.NewGuardianSets(c.network, c.sets...); err == nil {
			t.Errorf("%s is accepted", c.name)
		}
	}
}

func TestNewGuardianSetsCopies(t *testing.T) {
	t.Parallel()
	g := vaatest.NewGuardians(1, 0, 3)
	set := g.Set()
	sets, err := vaa.NewGuardianSets(vaa.Mainnet, set)
	if err != nil {
		t.Fatal(err)
	}
	clear(set.Keys)
	if err := sets.Verify(vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), g)); err != nil {
		t.Errorf("the sets changed with the caller's keys: %v", err)
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	const at = 1700000000
	first, second, third := vaatest.NewGuardians(1, 0, 1), vaatest.NewGuardians(1, 1, 7), vaatest.NewGuardians(1, 2, 7)
	genesis := vaatest.Sets(vaa.Mainnet, first)
	upgrade := vaatest.Upgrade(first, second, at)
	sets, err := genesis.Extend(upgrade)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(second.Set(), sets.Newest()); diff != "" {
		t.Errorf("newest set: %s", diff)
	}
	if old, _ := sets.Set(0); !old.ExpiresAt.Equal(time.Unix(at+86400, 0)) {
		t.Errorf("set 0 expires at %s", old.ExpiresAt)
	}
	if len(genesis.All()) != 1 || !genesis.Newest().ExpiresAt.IsZero() {
		t.Error("the sets that were extended have changed")
	}

	// Set 0's lone key may not name a successor again, nor name the successor of set 1.
	rival := vaatest.Upgrade(first, vaatest.NewGuardians(66, 1, 7), at)
	usurper := vaatest.Upgrade(first, third, at)
	wrongEmitter := vaatest.Clone(upgrade)
	wrongEmitter.EmitterAddress[31] = 5
	short := vaatest.Upgrade(second, third, at)
	short.Payload = short.Payload[:len(short.Payload)-1]
	second.Sign(short)
	forOneChain := vaatest.Upgrade(second, third, at)
	forOneChain.Payload[34] = 2
	second.Sign(forOneChain)
	twice := vaatest.Upgrade(second, third, at)
	copy(twice.Payload[40:60], twice.Payload[60:80])
	second.Sign(twice)
	forged := vaatest.Upgrade(third, third, at)
	forged.GuardianSetIndex = 1
	noQuorum := vaatest.Upgrade(second, third, at)
	noQuorum.Signatures = noQuorum.Signatures[1:]
	for _, c := range []struct {
		name string
		vaa  *vaa.VAA
		want error
	}{
		{"no upgrade", vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), second), vaa.ErrNotUpgrade},
		{"wrong emitter", wrongEmitter, vaa.ErrNotUpgrade},
		{"the same again", upgrade, vaa.ErrUpgradeKnown},
		{"a rival of a known set", rival, vaa.ErrUpgradeKnown},
		{"signed by an older set", usurper, vaa.ErrUpgradeRefused},
		{"skips an index", vaatest.Upgrade(second, vaatest.NewGuardians(1, 3, 7), at), vaa.ErrUpgradeRefused},
		{"signed by its own set", vaatest.Upgrade(third, third, at), vaa.ErrUpgradeRefused},
		{"signed by other keys", forged, vaa.ErrUpgradeRefused},
		{"below quorum", noQuorum, vaa.ErrUpgradeRefused},
		{"short payload", short, vaa.ErrUpgradeRefused},
		{"for one chain", forOneChain, vaa.ErrUpgradeRefused},
		{"a key twice", twice, vaa.ErrUpgradeRefused},
	} {
		got, err := sets.Extend(c.vaa)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if got.Newest().Index != 1 {
			t.Errorf("%s: newest set %d", c.name, got.Newest().Index)
		}
	}
	if _, err := sets.Extend(vaatest.Upgrade(second, third, at)); err != nil {
		t.Errorf("the real successor: %v", err)
	}
}

// TestExtendWithImplausibleTime: a time before the last upgrade's cannot be when the set was superseded.
func TestExtendWithImplausibleTime(t *testing.T) {
	t.Parallel()
	const at = 1700000000
	first, second, third := vaatest.NewGuardians(1, 0, 1), vaatest.NewGuardians(1, 1, 7), vaatest.NewGuardians(1, 2, 7)
	sets := vaatest.Sets(vaa.Testnet, first)
	for _, upgrade := range []*vaa.VAA{vaatest.Upgrade(first, second, at), vaatest.Upgrade(second, third, 0)} {
		extended, err := sets.Extend(upgrade)
		if err != nil {
			t.Fatal(err)
		}
		sets = extended
	}
	if old, _ := sets.Set(1); !old.ExpiresAt.Equal(time.Unix(at+86400, 0)) {
		t.Errorf("set 1 expires at %s, want a day after set 0 was superseded", old.ExpiresAt)
	}
}

func TestDevnetKnowsEverySet(t *testing.T) {
	t.Parallel()
	sets := knownSets(t)["devnet"]
	next := vaatest.NewGuardians(1, 1, 2)
	if _, err := sets.Extend(vaatest.Upgrade(vaatest.DevnetGuardian(0), next, 1)); !errors.Is(err, vaa.ErrUpgradeKnown) {
		t.Errorf("upgrade on devnet: %v", err)
	}
	if set, ok := sets.Set(77); !ok || set.Index != 77 || len(set.Keys) != 19 {
		t.Errorf("set 77: %d with %d keys, %t", set.Index, len(set.Keys), ok)
	}
}
