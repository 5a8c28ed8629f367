package ingest

import (
	"fmt"
	"slices"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// decision is what classification finds: the outcome, the events that it takes
// (without offsets), and the signatures worth keeping of a known VAA.
type decision struct {
	Result
	events   []archive.Event
	evidence []archive.Evidence
}

// classify decides an item against all that is known of its id. It is the table
// of docs/protocol.md, "Outcomes".
func classify(r *archive.Record, it *Item) decision {
	if len(it.bytes()) > vaa.MaxBytes {
		return invalid(reasonTooLarge, "%d bytes, at most %d are kept", len(it.bytes()), vaa.MaxBytes)
	}
	link := unknownLink(r, it)
	if it.Signed() {
		return classifyVAA(r, it, link)
	}
	return classifyPublication(r, it, link)
}

func classifyVAA(r *archive.Record, it *Item, link *archive.Link) decision {
	set := it.VAA.GuardianSetIndex
	if r.Known(it.Digest, set) {
		d := known(r, it, link)
		d.evidence = newEvidence(r, it)
		return d
	}
	if len(r.Versions) >= archive.MaxVersions {
		return invalid(reasonTooManyVersions, "%d verified VAAs of %s are kept already", len(r.Versions), it.ID)
	}
	canonical := r.Signed()
	switch {
	case canonical == nil:
		return firstSigned(r, it, link)
	case canonical.Digest == it.Digest:
		e := newEvent(r, it, archive.KindResigned, link)
		e.Canonical = set > canonical.GuardianSetIndex
		if !e.Canonical && link != nil {
			// An older set's VAA writes no column of the row, and the link may be the
			// best of the row's digest: it gets an event that writes InitiatingTxID.
			e.Link = nil
			return decided(archive.OutcomeResigned, linked(r, it, link), e)
		}
		return decided(archive.OutcomeResigned, e)
	default:
		e := newEvent(r, it, archive.KindConflict, link)
		if set > canonical.GuardianSetIndex {
			displaced := canonical.Digest // a copy: the record is sorted when the event is applied to it
			e.Canonical, e.Displaced = true, &displaced
		}
		return decided(archive.OutcomeConflict, e)
	}
}

// firstSigned classifies the first verified VAA of an id. An observed digest
// yields to it: with the same digest the publication is completed, another one
// has vanished.
func firstSigned(r *archive.Record, it *Item, link *archive.Link) decision {
	e := newEvent(r, it, archive.KindQuorum, link)
	e.Canonical = true
	observed := r.Publication.Digest
	switch {
	case observed == nil:
		return decided(archive.OutcomeAccepted, e)
	case *observed == it.Digest:
		e.Completes = true
		return decided(archive.OutcomeCompleted, e)
	default:
		e.Displaced = observed
		return decided(archive.OutcomeAccepted, vanished(it, *observed), e)
	}
}

func classifyPublication(r *archive.Record, it *Item, link *archive.Link) decision {
	current := r.Digest()
	switch {
	case current != nil && *current == it.Digest, slices.Contains(r.VanishedMarks, it.Digest):
		return known(r, it, link)
	case current == nil:
		return decided(archive.OutcomeAccepted, observed(r, it, link))
	case r.Signed() == nil && !it.Final:
		return invalid(reasonNotFinal, "digest %s was observed first and the source does not call %s final", *current, it.Digest)
	case r.Signed() == nil:
		e := observed(r, it, link)
		e.Displaced = current
		return decided(archive.OutcomeAccepted, vanished(it, *current), e)
	case it.Trust < archive.TrustChain:
		return invalid(reasonContradictsSigned, "digest %s is signed for %s, and %s is only of trust %s", *current, it.ID, it.Digest, it.Trust)
	case marked(r, it.Digest):
		return known(r, it, link)
	default:
		e := newEvent(r, it, archive.KindConflict, link)
		e.Bytes = nil // a body without signatures is no version of the message
		return decided(archive.OutcomeConflict, e)
	}
}

// marked reports whether a digest that does not stand for the message is known
// to be in conflict: signed or marked so before.
func marked(r *archive.Record, d vaa.Digest) bool {
	return slices.Contains(r.ConflictMarks, d) ||
		slices.ContainsFunc(r.Versions, func(v archive.Version) bool { return v.Digest == d })
}

// known is the decision for an item that brings nothing new but perhaps a link.
func known(r *archive.Record, it *Item, link *archive.Link) decision {
	if link == nil {
		return decision{Result: Result{Outcome: archive.OutcomeDuplicate}}
	}
	return decided(archive.OutcomeLinked, linked(r, it, link))
}

func linked(r *archive.Record, it *Item, link *archive.Link) archive.Event {
	e := newEvent(r, it, archive.KindLinked, link)
	current := r.Digest()
	e.Canonical = current != nil && *current == it.Digest
	return e
}

func observed(r *archive.Record, it *Item, link *archive.Link) archive.Event {
	e := newEvent(r, it, archive.KindObserved, link)
	e.Canonical = true
	return e
}

func vanished(it *Item, digest vaa.Digest) archive.Event {
	return archive.Event{Kind: archive.KindVanished, ID: it.ID, Digest: digest, Source: it.Source}
}

func newEvent(r *archive.Record, it *Item, kind archive.Kind, link *archive.Link) archive.Event {
	e := archive.Event{
		Kind: kind, ID: it.ID, Digest: it.Digest, Link: link, Source: it.Source,
		InitiatingTxID: initiatingTxID(r, it.Digest, link),
	}
	if kind == archive.KindLinked {
		return e
	}
	e.Time, e.Bytes, e.Expired = it.body().Time(), it.bytes(), it.Expired
	if it.Signed() {
		set := it.VAA.GuardianSetIndex
		e.GuardianSetIndex = &set
	}
	return e
}

// initiatingTxID is the best link of a digest, counting the one that comes with
// the item; of equally trusted links the one known first stays.
func initiatingTxID(r *archive.Record, digest vaa.Digest, link *archive.Link) *string {
	best := r.BestLink(digest)
	if link != nil && (best == nil || link.Trust > best.Trust) {
		best = link
	}
	if best == nil {
		return nil
	}
	txID := best.TxID // a copy: the record's links are sorted when the event is applied to it
	return &txID
}

// unknownLink returns the item's link if it is new for the item's digest, or
// better trusted than before. Links beyond the bound are left out, so that no
// row grows without end.
func unknownLink(r *archive.Record, it *Item) *archive.Link {
	if it.Link == nil {
		return nil
	}
	trust, ok := r.LinkTrust(it.Digest, it.Link.TxID)
	if ok && trust >= it.Link.Trust || !ok && len(r.Links) >= archive.MaxLinks {
		return nil
	}
	return it.Link
}

// newEvidence returns those of a known VAA's signatures that no stored one of
// its digest and set has. All of them are valid: the VAA is verified.
func newEvidence(r *archive.Record, it *Item) []archive.Evidence {
	set := it.VAA.GuardianSetIndex
	var stored [256]bool
	for i := range r.Versions {
		v := &r.Versions[i]
		if v.Digest != it.Digest || v.GuardianSetIndex != set {
			continue
		}
		if parsed, err := vaa.Parse(v.Bytes); err == nil {
			for _, s := range parsed.Signatures {
				stored[s.GuardianIndex] = true
			}
		}
	}
	for _, e := range r.Evidence {
		if e.Digest == it.Digest && e.GuardianSetIndex == set {
			stored[e.Signature.GuardianIndex] = true
		}
	}
	var fresh []archive.Evidence
	for _, s := range it.VAA.Signatures {
		if !stored[s.GuardianIndex] {
			fresh = append(fresh, archive.Evidence{ID: it.ID, GuardianSetIndex: set, Digest: it.Digest, Signature: s})
		}
	}
	return fresh
}

func decided(o archive.Outcome, events ...archive.Event) decision {
	return decision{Result: Result{Outcome: o}, events: events}
}

func invalid(reason, format string, args ...any) decision {
	return decision{Result: Result{Outcome: archive.OutcomeInvalid, Reason: reason, Detail: fmt.Sprintf(format, args...)}}
}
