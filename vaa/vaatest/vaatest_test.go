package vaatest_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func TestRandomVAAsVerifyAndRepeat(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 7, 19} {
		g := vaatest.NewGuardians(1, 4, size)
		sets := vaatest.Sets(vaa.Mainnet, g)
		again := rand.New(rand.NewPCG(7, uint64(size)))
		r := rand.New(rand.NewPCG(7, uint64(size)))
		for range 3 {
			v := vaatest.NewVAA(r, g)
			if err := sets.Verify(v); err != nil {
				t.Errorf("size %d: %v", size, err)
			}
			if diff := cmp.Diff(v, vaatest.NewVAA(again, vaatest.NewGuardians(1, 4, size))); diff != "" {
				t.Errorf("size %d: the same seed gave another VAA:\n%s", size, diff)
			}
			parsed, err := vaa.Parse(v.Append(nil))
			if err != nil || cmp.Diff(v, parsed) != "" {
				t.Errorf("size %d: round trip: %v\n%s", size, err, cmp.Diff(v, parsed))
			}
		}
	}
}

func TestCorruptionsCoverEveryReason(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	covered := map[vaa.Reason]bool{}
	for _, size := range []int{2, 3, 19} {
		g := vaatest.NewGuardians(seed, 3, size)
		sets := vaatest.Sets(vaa.Testnet, g)
		for _, c := range vaatest.Corruptions() {
			v := vaatest.NewVAA(r, g)
			c.Apply(v, g.Set())
			fault, ok := errors.AsType[*vaa.VerifyError](sets.Verify(v))
			if !ok || fault.Reason != c.Reason {
				t.Errorf("%s in a set of %d: %v, want reason %s", c.Name, size, fault, c.Reason)
				continue
			}
			covered[fault.Reason] = true
		}
	}
	for _, reason := range vaa.Reasons() {
		if !covered[reason] {
			t.Errorf("no corruption for %s", reason)
		}
	}
}

func TestHighSTwinVerifies(t *testing.T) {
	t.Parallel()
	g := vaatest.NewGuardians(2, 0, 19)
	v := vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), g)
	twin := vaatest.Clone(v)
	vaatest.HighS(twin)
	if slices.Equal(twin.Append(nil), v.Append(nil)) || twin.Digest() != v.Digest() {
		t.Error("the twin must have other bytes and the same digest")
	}
	if err := vaatest.Sets(vaa.Mainnet, g).Verify(twin); err != nil {
		t.Error(err)
	}
}

func TestEquivocationsDiffer(t *testing.T) {
	t.Parallel()
	g := vaatest.NewGuardians(2, 0, 3)
	v := vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), g)
	seen := map[vaa.Digest]bool{v.Digest(): true}
	for next := v; len(seen) < 10; {
		next = vaatest.Equivocate(next, g)
		if next.MessageID() != v.MessageID() || seen[next.Digest()] {
			t.Fatalf("equivocation %d: id %s, digest %s", len(seen), next.MessageID(), next.Digest())
		}
		if err := vaatest.Sets(vaa.Mainnet, g).Verify(next); err != nil {
			t.Fatal(err)
		}
		seen[next.Digest()] = true
	}
}

func TestDevnetGuardianVerifiesUnderTheKnownSets(t *testing.T) {
	t.Parallel()
	sets, err := vaa.KnownGuardianSets(vaa.Devnet)
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range []uint32{0, 1, 77} {
		v := vaatest.NewVAA(rand.New(rand.NewPCG(3, 3)), vaatest.DevnetGuardian(index))
		if err := sets.Verify(v); err != nil {
			t.Errorf("set %d: %v", index, err)
		}
	}
}

func TestChain(t *testing.T) {
	t.Parallel()
	c := vaatest.NewChain(vaa.Mainnet, 5, 1, 19, 7)
	if got := c.Sets.Newest(); got.Index != 2 || len(got.Keys) != 7 {
		t.Errorf("newest set is %d with %d keys, want 2 with 7", got.Index, len(got.Keys))
	}
	if got := c.Genesis.All(); len(got) != 1 || len(got[0].Keys) != 1 {
		t.Errorf("genesis knows %v", got)
	}
	if len(c.Upgrades) != 2 || len(c.Guardians) != 3 {
		t.Errorf("%d upgrades, %d sets", len(c.Upgrades), len(c.Guardians))
	}
}
