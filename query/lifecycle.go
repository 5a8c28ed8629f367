package query

import (
	"cmp"
	"slices"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// The states of a message. A message has a signed VAA in the last three. One that
// was signed under several guardian sets says "resigned" where the columns
// SignedVAA and Other. are asked for, else "quorum", which it has as well.
const (
	StateObserved = "observed" // its chain published it, no signed VAA is known
	StateVanished = "vanished" // it was observed, its source gave it up, and nothing came since
	StateQuorum   = "quorum"   // guardians signed it
	StateResigned = "resigned" // guardians signed it under more than one set
	StateConflict = "conflict" // guardians signed it, and more than one digest was seen of it
)

// Step is one thing that happened to a message.
type Step struct {
	State  string     `json:"state"` // one of the states
	Digest vaa.Digest `json:"digest"`
	// GuardianSetIndex is the set that signed; null where no VAA is behind the step.
	GuardianSetIndex *uint32 `json:"guardianSetIndex"`
	// At is when the archive recorded it; null where a row does not keep that: for
	// VAAs that never were canonical, and for marks.
	At *time.Time `json:"at"`
}

// Repair tells how a message fares under the current guardian set: contracts
// refuse the VAA of an expired one, but a signature still counts if its guardian's
// key is in the current set.
type Repair struct {
	GuardianSetIndex uint32 `json:"guardianSetIndex"` // the current set
	// Signatures counts the guardians of the current set whose signature of the
	// canonical digest is kept, under whichever set it was made.
	Signatures int `json:"signatures"`
	Quorum     int `json:"quorum"` // of the current set
	// Repairable: the signatures are a quorum, so a VAA for the current set can be put
	// together from them.
	Repairable bool `json:"repairable"`
}

// state returns where a message stands as far as the asked columns of its record
// tell.
func state(r *archive.Record, asked archive.Columns, conflict, vanished bool) *string {
	state := StateObserved
	signed := r.Signed()
	switch {
	case signed != nil || r.Publication.HeaderOffset != 0:
		state = StateQuorum
		if conflict {
			state = StateConflict
		} else if slices.ContainsFunc(r.Versions, func(v archive.Version) bool { return signed != nil && v.GuardianSetIndex != signed.GuardianSetIndex }) {
			state = StateResigned
		}
	case !tellsState(asked):
		return nil
	case vanished:
		state = StateVanished
	}
	return &state
}

// standingVanished reports whether the digest that stands for a message without a
// signed VAA was given up.
func standingVanished(r *archive.Record) bool {
	return r.Publication.Digest != nil && slices.Contains(r.VanishedMarks, *r.Publication.Digest)
}

// lifecycle returns what happened to a message, from its whole record. Only what
// was observed vanishes, and only while nothing is signed, so what vanished comes
// before all that a signed VAA did; marks of digests without a VAA come last.
func lifecycle(r *archive.Record) []Step {
	steps := []Step{}
	p := &r.Publication
	for _, d := range r.VanishedMarks {
		if p.Digest == nil || d != *p.Digest {
			steps = append(steps, Step{State: StateVanished, Digest: d})
		}
	}
	versions := slices.Clone(r.Versions)
	slices.SortStableFunc(versions, func(a, b archive.Version) int { return cmp.Compare(a.Offset, b.Offset) })
	published := !slices.ContainsFunc(versions, func(v archive.Version) bool { return v.Offset == p.Offset })
	if p.Digest != nil && published {
		steps = append(steps, Step{State: StateObserved, Digest: *p.Digest, At: utc(p.RecordedAt)})
	}
	if standingVanished(r) {
		steps = append(steps, Step{State: StateVanished, Digest: *p.Digest})
	}
	return append(steps, signedSteps(r, versions)...)
}

// signedSteps tells what the versions, by ascending offset, did.
func signedSteps(r *archive.Record, versions []archive.Version) []Step {
	var steps []Step
	var canonical *vaa.Digest
	for i := range versions {
		v := &versions[i]
		step := Step{State: StateConflict, Digest: v.Digest, GuardianSetIndex: &v.GuardianSetIndex, At: utc(v.RecordedAt)}
		switch {
		case canonical == nil:
			step.State = StateQuorum
		case v.Digest == *canonical:
			step.State = StateResigned
		}
		if v.WasCanonical || canonical == nil {
			canonical = &v.Digest
		}
		steps = append(steps, step)
	}
	for _, d := range r.Conflicts() {
		if !slices.ContainsFunc(versions, func(v archive.Version) bool { return v.Digest == d }) {
			steps = append(steps, Step{State: StateConflict, Digest: d})
		}
	}
	return steps
}

// repair judges a message by the family QuorumState of its record and its parsed
// versions.
func (s *Service) repair(r *archive.Record, parsed []*vaa.VAA) *Repair {
	if r.Signed() == nil || s.network == vaa.Devnet {
		return nil
	}
	sets := s.sets()
	current := sets.Newest()
	n := len(counting(r, parsed, sets))
	return &Repair{GuardianSetIndex: current.Index, Signatures: n, Quorum: current.Quorum(), Repairable: n >= current.Quorum()}
}

// parseVersions parses the VAAs of a record; nil for one that does not parse.
func parseVersions(r *archive.Record) []*vaa.VAA {
	parsed := make([]*vaa.VAA, len(r.Versions))
	for i := range r.Versions {
		if v, err := vaa.Parse(r.Versions[i].Bytes); err == nil {
			parsed[i] = v
		}
	}
	return parsed
}

// counting returns the kept signatures of the canonical digest that the newest set
// accepts, with the guardian's indices in that set, ascending.
func counting(r *archive.Record, parsed []*vaa.VAA, sets vaa.GuardianSets) []vaa.Signature {
	digest, current := r.Signed().Digest, sets.Newest()
	found := make([]vaa.Signature, len(current.Keys))
	has := make([]bool, len(current.Keys))
	add := func(set vaa.GuardianSet, sig *vaa.Signature) {
		if int(sig.GuardianIndex) >= len(set.Keys) {
			return
		}
		if at := slices.Index(current.Keys, set.Keys[sig.GuardianIndex]); at >= 0 && !has[at] {
			found[at], has[at] = *sig, true
			found[at].GuardianIndex = uint8(at)
		}
	}
	for i, v := range parsed {
		if v == nil || r.Versions[i].Digest != digest {
			continue
		}
		set, _ := sets.Set(v.GuardianSetIndex)
		for j := range v.Signatures {
			add(set, &v.Signatures[j])
		}
	}
	for i := range r.Evidence {
		if e := &r.Evidence[i]; e.Digest == digest {
			set, _ := sets.Set(e.GuardianSetIndex)
			add(set, &e.Signature)
		}
	}
	n := 0
	for i := range found {
		if has[i] {
			found[n] = found[i]
			n++
		}
	}
	return found[:n]
}
