package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/vaa"
)

// there returns what is missing of an item that its source may have forgotten.
func (w *world) there(ctx context.Context, g *generation, events []archive.Event, it *ingest.Item, s settle) error {
	about := slices.DeleteFunc(slices.Clone(events), func(e archive.Event) bool { return e.ID != it.ID || e.Digest != it.Digest })
	if it.Signed() {
		n := 0
		for i := range about {
			if e := &about[i]; e.Signed() && *e.GuardianSetIndex == it.VAA.GuardianSetIndex {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("its VAA is journalled %d times", n)
		}
		if err := w.evidence(ctx, g, it); err != nil {
			return err
		}
	} else if len(about) == 0 && !s.early {
		return errMissing
	}
	if it.Link != nil && !s.early && !slices.ContainsFunc(about, func(e archive.Event) bool {
		return e.Link != nil && e.Link.TxID == it.Link.TxID && e.Link.Trust >= it.Link.Trust
	}) {
		return fmt.Errorf("its link to %s is missing", it.Link.TxID)
	}
	return nil
}

// evidence looks for each signature of a settled VAA, in the stored version or
// beside it.
func (w *world) evidence(ctx context.Context, g *generation, it *ingest.Item) error {
	r, err := g.store.Get(ctx, it.ID, archive.Columns{})
	if err != nil {
		return err
	}
	have := map[uint8]bool{}
	for _, v := range r.Versions {
		if v.Digest != it.Digest || v.GuardianSetIndex != it.VAA.GuardianSetIndex {
			continue
		}
		stored, err := vaa.Parse(v.Bytes)
		if err != nil {
			return err
		}
		for _, sig := range stored.Signatures {
			have[sig.GuardianIndex] = true
		}
	}
	for _, e := range r.Evidence {
		if e.Digest == it.Digest && e.GuardianSetIndex == it.VAA.GuardianSetIndex {
			have[e.Signature.GuardianIndex] = true
		}
	}
	for _, sig := range it.VAA.Signatures {
		if !have[sig.GuardianIndex] {
			return fmt.Errorf("the signature of guardian %d is missing", sig.GuardianIndex)
		}
	}
	return nil
}
