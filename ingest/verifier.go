package ingest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

const (
	// lateAfter is the time after a guardian set's expiry from which a first
	// arrival under it is history: old keys that were stolen must not reach a
	// relayer.
	lateAfter = 24 * time.Hour
	// verifiedKept bounds the hashes of verified bytes that are remembered.
	verifiedKept = 1 << 16
)

// Verifier checks signatures against the guardian sets that are known and learns
// new ones. Its methods may be called concurrently.
type Verifier struct {
	store archive.GuardianSetStore
	now   func() time.Time

	mu       sync.Mutex // guards all below
	sets     vaa.GuardianSets
	verified map[[sha256.Size]byte]bool // hashes of bytes that verified lately
	before   map[[sha256.Size]byte]bool // those of the time before
}

// NewVerifier returns a verifier that knows the sets it is given and those whose
// upgrades the store keeps. The store's word is not taken for them: each upgrade
// is proved again.
func NewVerifier(ctx context.Context, store archive.GuardianSetStore, sets vaa.GuardianSets, now func() time.Time) (*Verifier, error) {
	v := &Verifier{store: store, now: now, sets: sets, verified: map[[sha256.Size]byte]bool{}}
	if err := v.Refresh(ctx); err != nil {
		return nil, err
	}
	return v, nil
}

// Refresh learns the sets that others have learnt, whose upgrades the store keeps.
func (v *Verifier) Refresh(ctx context.Context) error {
	raws, err := v.store.GuardianSetUpgrades(ctx)
	if err != nil {
		return fmt.Errorf("read the learnt guardian sets: %w", err)
	}
	sets := v.Sets()
	for _, raw := range raws {
		upgrade, err := vaa.Parse(raw)
		if err != nil {
			return fmt.Errorf("a learnt guardian set: %w", err)
		}
		extended, err := sets.Extend(upgrade)
		switch {
		case err == nil:
			sets = extended
		case !errors.Is(err, vaa.ErrUpgradeKnown): // a newer program may know it by itself
			return fmt.Errorf("a learnt guardian set: %w", err)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(sets.All()) > len(v.sets.All()) {
		v.sets = sets
	}
	return nil
}

// Sets returns the guardian sets that are known now.
func (v *Verifier) Sets() vaa.GuardianSets {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sets
}

// verdict is what verification finds of one delivery.
type verdict struct {
	item  *Item
	fault *Fault // refused
	held  bool   // signed by a set newer than the newest known: to be tried again
}

// verify parses and checks one delivery.
func (v *Verifier) verify(d *Delivery, source string) verdict {
	if d.Fault != nil {
		return verdict{fault: d.Fault}
	}
	parsed, err := vaa.Parse(d.Raw)
	if err != nil {
		reason := "malformed"
		if _, ok := errors.AsType[*vaa.VersionError](err); ok {
			reason = "unsupported_version"
		}
		return verdict{fault: &Fault{Reason: reason, Detail: err.Error()}}
	}
	var link *archive.Link
	if d.TxID != "" {
		tx, err := archive.ParseTxID(d.TxID)
		if err != nil {
			return verdict{fault: &Fault{Reason: "malformed_tx_id", Detail: err.Error()}}
		}
		link = &archive.Link{TxID: tx, Trust: archive.TrustClaimed, Source: source}
	}
	sets := v.Sets()
	hash := sha256.Sum256(d.Raw)
	if !v.known(hash) {
		if err := sets.Verify(parsed); err != nil {
			return refuse(sets, parsed, err)
		}
		v.remember(hash)
	}
	set, _ := sets.Set(parsed.GuardianSetIndex)
	return verdict{item: &Item{
		ID: parsed.MessageID(), Digest: parsed.Digest(), VAA: parsed, Raw: d.Raw, Link: link, Source: source,
		Expired: !set.ExpiresAt.IsZero() && v.now().After(set.ExpiresAt.Add(lateAfter)),
	}}
}

func refuse(sets vaa.GuardianSets, parsed *vaa.VAA, err error) verdict {
	bad, ok := errors.AsType[*vaa.VerifyError](err)
	if !ok {
		return verdict{fault: &Fault{Reason: "malformed", Detail: err.Error()}}
	}
	if bad.NewerSet() && signedByNewest(sets, parsed) {
		return verdict{held: true, fault: &Fault{Reason: reasonFutureSet, Detail: err.Error()}}
	}
	return verdict{fault: &Fault{Reason: bad.Reason.String(), Detail: err.Error()}}
}

// signedByNewest reports whether at least half of the signatures are by guardians
// of the newest known set, each at its place. Of nineteen guardians five at most
// were ever replaced at once, so a VAA of a set to come looks like this, and what
// nobody known signed is not kept waiting.
func signedByNewest(sets vaa.GuardianSets, parsed *vaa.VAA) bool {
	keys, digest, n := sets.Newest().Keys, parsed.Digest(), 0
	for _, s := range parsed.Signatures {
		if int(s.GuardianIndex) < len(keys) && vaa.VerifySignature(digest, keys[s.GuardianIndex], s) == 0 {
			n++
		}
	}
	return n > 0 && 2*n >= len(parsed.Signatures)
}

// learn takes a verified VAA that introduces the next guardian set, and reports
// whether a set became known.
func (v *Verifier) learn(ctx context.Context, it *Item) (bool, error) {
	if !it.Signed() || !vaa.IsGuardianSetUpgrade(it.VAA) {
		return false, nil
	}
	extended, err := v.Sets().Extend(it.VAA)
	if err != nil {
		return false, nil // known, or not signed by the newest: an attestation like any other
	}
	newest := extended.Newest()
	if err := v.store.PutGuardianSetUpgrade(ctx, newest.Index, it.Raw); err != nil {
		return false, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.sets.Newest().Index >= newest.Index {
		return false, nil
	}
	v.sets = extended
	return true, nil
}

func (v *Verifier) known(hash [sha256.Size]byte) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.verified[hash] || v.before[hash]
}

// remember keeps the last hashes in two halves, the older of which is forgotten
// when the newer is full.
func (v *Verifier) remember(hash [sha256.Size]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.verified) >= verifiedKept/2 {
		v.before, v.verified = v.verified, map[[sha256.Size]byte]bool{}
	}
	v.verified[hash] = true
}
