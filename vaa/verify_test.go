package vaa_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func TestQuorum(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 3, 4: 3, 6: 5, 7: 5, 13: 9, 19: 13, 255: 171} {
		if got := vaa.Quorum(n); got != want {
			t.Errorf("Quorum(%d) = %d, want %d", n, got, want)
		}
	}
}

// recordedSets are the guardian sets of testdata/vaas/guardian-sets.json.
type recordedSet struct {
	Index         uint32   `json:"index"`
	Addresses     []string `json:"addresses"`
	Quorum        int      `json:"quorum"`
	EstablishedBy *struct {
		Timestamp int64 `json:"timestamp"`
	} `json:"established_by"`
}

func recordedSets(t *testing.T, network string) []recordedSet {
	t.Helper()
	b, err := os.ReadFile(testdata("guardian-sets.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Networks map[string][]recordedSet `json:"networks"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	return file.Networks[network]
}

// TestKnownGuardianSets compares what the build derives with what was recorded. For mainnet the derivation starts from set 0 and
// goes over the embedded upgrade VAAs.
func TestKnownGuardianSets(t *testing.T) {
	t.Parallel()
	known := knownSets(t)
	for _, network := range vaa.Networks() {
		recorded := recordedSets(t, network.String())
		sets := known[network.String()]
		if got := sets.Network(); got != network {
			t.Errorf("network %s, want %s", got, network)
		}
		all := sets.All()
		if len(recorded) == 0 || len(all) != len(recorded) {
			t.Fatalf("%s: %d sets, want %d", network, len(all), len(recorded))
		}
		for i, want := range recorded {
			got := all[i]
			var keys []string
			for _, key := range got.Keys {
				keys = append(keys, key.String())
			}
			if diff := cmp.Diff(want.Addresses, keys); diff != "" || got.Index != want.Index {
				t.Errorf("%s set %d, want %d: %s", network, got.Index, want.Index, diff)
			}
			if want.Quorum != 0 && got.Quorum() != want.Quorum {
				t.Errorf("%s set %d: quorum %d, want %d", network, got.Index, got.Quorum(), want.Quorum)
			}
			var expires time.Time
			if i+1 < len(recorded) {
				expires = time.Unix(recorded[i+1].EstablishedBy.Timestamp+86400, 0)
			}
			if !got.ExpiresAt.Equal(expires) {
				t.Errorf("%s set %d expires at %s, want %s", network, got.Index, got.ExpiresAt, expires)
			}
		}
		if got, want := sets.Newest().Index, recorded[len(recorded)-1].Index; got != want {
			t.Errorf("%s: newest set %d, want %d", network, got, want)
		}
	}
	if _, err := vaa.KnownGuardianSets(0); err == nil {
		t.Error("the zero network has guardian sets")
	}
}

func TestUnknownSets(t *testing.T) {
	t.Parallel()
	sets := vaatest.Sets(vaa.Mainnet, vaatest.NewGuardians(1, 3, 2), vaatest.NewGuardians(1, 5, 2))
	for index, newer := range map[uint32]bool{0: false, 4: false, 6: true, 1 << 31: true} {
		v := vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), vaatest.NewGuardians(1, index, 2))
		fault, ok := errors.AsType[*vaa.VerifyError](sets.Verify(v))
		if !ok || fault.Reason != vaa.UnknownSet || fault.NewerSet() != newer {
			t.Errorf("set %d: %v, newer %t, want newer %t", index, fault, ok && fault.NewerSet(), newer)
		}
	}
	// What no set could mend is not held for a newer one.
	v := vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), vaatest.NewGuardians(1, 9, 2))
	v.Signatures[0].RSV[64] = 27
	if fault, ok := errors.AsType[*vaa.VerifyError](sets.Verify(v)); !ok || fault.Reason != vaa.MalformedSignature {
		t.Errorf("malformed signature of a newer set: %v", fault)
	}
}

// TestDevnetSizes follows the rule on the development network: the set is the smallest prefix that has all signers, under any index.
func TestDevnetSizes(t *testing.T) {
	t.Parallel()
	sets := knownSets(t)["devnet"]
	one := vaatest.DevnetGuardian(1234)
	v := vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), one)
	if err := sets.Verify(v); err != nil {
		t.Errorf("one guardian under set 1234: %v", err)
	}
	v.Signatures = append(v.Signatures, v.Signatures[0])
	v.Signatures[1].GuardianIndex = 3
	fault, ok := errors.AsType[*vaa.VerifyError](sets.Verify(v))
	if !ok || fault.Reason != vaa.NoQuorum || fault.Guardians != 4 {
		t.Errorf("guardians 0 and 3: %v, want no quorum of 4", fault)
	}
	v.Signatures[1].GuardianIndex = 19
	if fault, ok := errors.AsType[*vaa.VerifyError](sets.Verify(v)); !ok || fault.Reason != vaa.IndexOutOfRange {
		t.Errorf("guardian 19: %v", fault)
	}
	v.Signatures = nil
	if fault, ok := errors.AsType[*vaa.VerifyError](sets.Verify(v)); !ok || fault.Reason != vaa.NoQuorum {
		t.Errorf("nobody: %v", fault)
	}
}

// TestOnlyDevnetHasThePrefixRule tries to reach the rule from every other network: with the development network's own keys as a
// set, and with its VAAs.
func TestOnlyDevnetHasThePrefixRule(t *testing.T) {
	t.Parallel()
	one := vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), vaatest.DevnetGuardian(0))
	known, fromDevnet := knownSets(t), readCollected(t, "vaas-devnet.ndjson")
	devnet := vaa.GuardianSet{Keys: known["devnet"].Newest().Keys}
	for _, network := range vaa.Networks() {
		sets, err := vaa.NewGuardianSets(network, devnet)
		if err != nil {
			t.Fatal(err)
		}
		// One of nineteen is a quorum of a prefix and no quorum of the set.
		if fault, ok := errors.AsType[*vaa.VerifyError](sets.Verify(one)); !ok || fault.Reason != vaa.NoQuorum {
			t.Errorf("%s with the keys of devnet: %v", network, fault)
		}
		if _, ok := sets.Set(1); ok {
			t.Errorf("%s with the keys of devnet knows set 1", network)
		}
		if network == vaa.Devnet {
			continue
		}
		if err := known[network.String()].Verify(one); err == nil {
			t.Errorf("a VAA of devnet verifies on %s", network)
		}
		for _, c := range fromDevnet {
			v, err := vaa.Parse(c.VAA)
			if err != nil {
				t.Fatal(err)
			}
			if err := known[network.String()].Verify(v); err == nil {
				t.Errorf("%s of devnet verifies on %s", c.Digest, network)
			}
		}
	}
}

func TestExpiredSetStillVerifies(t *testing.T) {
	t.Parallel()
	c := vaatest.NewChain(vaa.Mainnet, 3, 1, 7, 7)
	old, ok := c.Sets.Set(1)
	if !ok || old.ExpiresAt.IsZero() || old.ExpiresAt.After(time.Now()) {
		t.Fatalf("set 1 expires at %s, want a time that has passed", old.ExpiresAt)
	}
	v := vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), c.Guardians[1])
	v.Timestamp = uint32(old.ExpiresAt.Add(1000 * time.Hour).Unix())
	c.Guardians[1].Sign(v)
	if err := c.Sets.Verify(v); err != nil {
		t.Error(err)
	}
}

func TestVerifySignature(t *testing.T) {
	t.Parallel()
	g := vaatest.NewGuardians(1, 0, 2)
	v := vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), g)
	keys, digest, sig := g.Set().Keys, v.Digest(), v.Signatures[1]
	malformed := sig
	malformed.RSV[64] = 28
	for _, c := range []struct {
		name   string
		digest vaa.Digest
		key    vaa.GuardianKey
		sig    vaa.Signature
		want   vaa.Reason
	}{
		{"good", digest, keys[1], sig, 0},
		{"another key", digest, keys[0], sig, vaa.WrongKey},
		{"another digest", v.SingleDigest(), keys[1], sig, vaa.WrongKey},
		{"v 28", digest, keys[1], malformed, vaa.MalformedSignature},
	} {
		if got := vaa.VerifySignature(c.digest, c.key, c.sig); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
