package query_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

// TestLifecycle tells each way in which a message can go.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	g := []*vaatest.Guardians{vaatest.NewGuardians(1, 0, 1)}
	g = append(g, g[0].Next(0), g[0].Next(0).Next(0))
	r := rand.New(rand.NewPCG(1, 1))
	for name, c := range map[string]struct {
		do func(a *querytest.Archive, v *vaa.VAA)
		// want has a step each: state, set or -, and whether its time is known.
		want, state string
	}{
		"observed": {func(a *querytest.Archive, v *vaa.VAA) { must(t, a.Observe(v.Body, nil)) }, "observed - at", "observed"},
		"vanished": {func(a *querytest.Archive, v *vaa.VAA) {
			must(t, a.Observe(v.Body, nil))
			must(t, a.Vanish(v.MessageID()))
		}, "observed - at, vanished - null", "vanished"},
		"observed anew": {func(a *querytest.Archive, v *vaa.VAA) {
			must(t, a.Observe(vaatest.Equivocate(v, g[0]).Body, nil))
			must(t, a.Vanish(v.MessageID()))
			must(t, a.Observe(v.Body, nil))
		}, "vanished - null, observed - at", "observed"},
		"quorum": {func(a *querytest.Archive, v *vaa.VAA) { must(t, a.AddVAA(v.Append(nil), nil)) }, "quorum 0 at", "quorum"},
		"observed, then signed": {func(a *querytest.Archive, v *vaa.VAA) {
			must(t, a.Observe(v.Body, nil))
			must(t, a.AddVAA(v.Append(nil), nil))
		}, "observed - at, quorum 0 at", "quorum"},
		"vanished, then signed": {func(a *querytest.Archive, v *vaa.VAA) {
			must(t, a.Observe(v.Body, nil))
			must(t, a.Vanish(v.MessageID()))
			must(t, a.AddVAA(v.Append(nil), nil))
		}, "observed - at, vanished - null, quorum 0 at", "quorum"},
		"another vanished, then signed": {func(a *querytest.Archive, v *vaa.VAA) {
			must(t, a.Observe(vaatest.Equivocate(v, g[0]).Body, nil))
			must(t, a.Vanish(v.MessageID()))
			must(t, a.AddVAA(v.Append(nil), nil))
		}, "vanished - null, quorum 0 at", "quorum"},
		"resigned": {func(a *querytest.Archive, v *vaa.VAA) {
			must(t, a.AddVAA(v.Append(nil), nil))
			must(t, a.AddVAA(vaatest.Resign(v, g[1]).Append(nil), nil))
		}, "quorum 0 at, resigned 1 at", "resigned"},
		"resigned by an older set": {func(a *querytest.Archive, v *vaa.VAA) {
			must(t, a.AddVAA(vaatest.Resign(v, g[1]).Append(nil), nil))
			must(t, a.AddVAA(v.Append(nil), nil))
		}, "quorum 1 at, resigned 0 null", "resigned"},
		"conflict that lost": {func(a *querytest.Archive, v *vaa.VAA) {
			must(t, a.AddVAA(v.Append(nil), nil))
			must(t, a.AddVAA(vaatest.Equivocate(v, g[0]).Append(nil), nil))
		}, "quorum 0 at, conflict 0 null", "conflict"},
		"conflict that won, then resigned": {func(a *querytest.Archive, v *vaa.VAA) {
			other := vaatest.Equivocate(v, g[1])
			must(t, a.AddVAA(v.Append(nil), nil))
			must(t, a.AddVAA(other.Append(nil), nil))
			must(t, a.AddVAA(vaatest.Resign(other, g[2]).Append(nil), nil))
		}, "quorum 0 at, conflict 1 at, resigned 2 at", "conflict"},
	} {
		a := querytest.New(vaa.Mainnet)
		v := vaatest.NewVAA(r, g[0])
		c.do(a, v)
		s := query.New(a.Store, vaa.Mainnet, func() vaa.GuardianSets { return vaatest.Sets(vaa.Mainnet, g...) })
		got, err := s.Get(context.Background(), v.MessageID(), archive.Columns{})
		must(t, err)
		var steps []string
		for _, step := range got.Lifecycle {
			set, at := "-", "at"
			if step.GuardianSetIndex != nil {
				set = fmt.Sprint(*step.GuardianSetIndex)
			}
			if step.At == nil {
				at = "null"
			}
			steps = append(steps, step.State+" "+set+" "+at)
		}
		if diff := cmp.Diff(c.want, strings.Join(steps, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.State == nil || *got.State != c.state {
			t.Errorf("%s: state %v, want %s", name, got.State, c.state)
		}
	}
}

// TestRepair puts a VAA together from what guardians of the current set signed under
// older ones, of a set in which they have other places.
func TestRepair(t *testing.T) {
	t.Parallel()
	old := vaatest.NewGuardians(1, 0, 6) // quorum 5
	set := old.Set()
	keys := slices.Clone(set.Keys)
	slices.Reverse(keys)
	keys[0] = vaatest.NewGuardians(2, 0, 1).Set().Keys[0] // instead of guardian 5
	sets, err := vaa.NewGuardianSets(vaa.Mainnet, set, vaa.GuardianSet{Index: 1, Keys: keys})
	must(t, err)
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		signers, evidence []int
		signatures        int
		repairable        bool
	}{
		{[]int{0, 1, 2, 3, 4}, nil, 5, true},
		{[]int{0, 1, 2, 3, 5}, nil, 4, false},
		{[]int{0, 1, 2, 3, 5}, []int{4}, 5, true},
		{[]int{0, 1, 2, 3, 5}, []int{3}, 4, false},
		{[]int{0, 1, 2, 3, 4, 5}, []int{5}, 5, true},
	} {
		a := querytest.New(vaa.Mainnet)
		v := vaatest.NewVAA(r, old)
		old.Sign(v, c.signers...)
		must(t, a.AddVAA(v.Append(nil), nil))
		for _, signer := range c.evidence {
			e := archive.Evidence{ID: v.MessageID(), Digest: v.Digest(), Signature: old.Signature(v.Digest(), signer)}
			must(t, a.Store.PutEvidence(context.Background(), []archive.Evidence{e}))
		}
		s := query.New(a.Store, vaa.Mainnet, func() vaa.GuardianSets { return sets })
		got, err := s.Get(context.Background(), v.MessageID(), archive.Columns{})
		must(t, err)
		want := &query.Repair{GuardianSetIndex: 1, Signatures: c.signatures, Quorum: 5, Repairable: c.repairable}
		if diff := cmp.Diff(want, got.Repair); diff != "" {
			t.Errorf("signed by %v, evidence of %v: %s", c.signers, c.evidence, diff)
		}
		raw, err := s.Repaired(context.Background(), v.MessageID())
		if !c.repairable {
			if query.AsError(err).Code != query.Conflict {
				t.Errorf("signed by %v, evidence of %v: %v", c.signers, c.evidence, err)
			}
			continue
		}
		must(t, err)
		repaired, err := vaa.Parse(raw)
		must(t, err)
		if err := sets.Verify(repaired); err != nil || repaired.GuardianSetIndex != 1 || repaired.Digest() != v.Digest() {
			t.Errorf("signed by %v, evidence of %v: repaired by set %d: %v", c.signers, c.evidence, repaired.GuardianSetIndex, err)
		}
	}
}

// TestRepairOfOthers answers what the current set signed as it is, and says why there
// is nothing else to answer.
func TestRepairOfOthers(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	g := vaatest.NewGuardians(1, 0, 3)
	r := rand.New(rand.NewPCG(1, 1))
	v, observed := vaatest.NewVAA(r, g), vaatest.NewBody(r)
	must(t, a.AddVAA(v.Append(nil), nil))
	must(t, a.Observe(observed, nil))
	s := query.New(a.Store, vaa.Mainnet, func() vaa.GuardianSets { return vaatest.Sets(vaa.Mainnet, g) })
	raw, err := s.Repaired(context.Background(), v.MessageID())
	if err != nil || string(raw) != string(v.Append(nil)) {
		t.Errorf("signed by the current set: %v", err)
	}
	for _, id := range []vaa.MessageID{observed.MessageID(), {EmitterChain: 1}} {
		if _, err := s.Repaired(context.Background(), id); !errors.Is(err, archive.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	got, err := s.Get(context.Background(), observed.MessageID(), archive.Columns{})
	if err != nil || got.Repair != nil {
		t.Errorf("repair of an observed message: %+v, %v", got.Repair, err)
	}
}
