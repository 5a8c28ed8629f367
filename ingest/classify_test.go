package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

// equivocations makes items about one message, whose digests are named a, b and
// c, and which sets 1 to 3 sign.
type equivocations struct {
	digests map[string]*vaa.VAA
	sets    map[uint32]*vaatest.Guardians
}

func newEquivocations(r *rand.Rand) *equivocations {
	m := &equivocations{digests: map[string]*vaa.VAA{}, sets: map[uint32]*vaatest.Guardians{}}
	for set := range uint32(3) {
		m.sets[set+1] = vaatest.NewGuardians(7, set+1, 4)
	}
	v := vaatest.NewVAA(r, m.sets[1])
	for _, name := range []string{"a", "b", "c"} {
		m.digests[name] = v
		v = vaatest.Equivocate(v, m.sets[1])
	}
	return m
}

func (m *equivocations) name(d vaa.Digest) string {
	for name, v := range m.digests {
		if v.Digest() == d {
			return name
		}
	}
	return "unknown"
}

func (m *equivocations) signed(digest string, set uint32, signers ...int) ingest.Item {
	v := vaatest.Resign(m.digests[digest], m.sets[set], signers...)
	return ingest.Item{ID: v.MessageID(), Digest: v.Digest(), VAA: v, Raw: v.Append(nil), Source: "test"}
}

func (m *equivocations) published(digest string, trust archive.Trust, final bool) ingest.Item {
	b := m.digests[digest].Body
	return ingest.Item{ID: b.MessageID(), Digest: b.Digest(), Body: &b, RawBody: b.Append(nil), Trust: trust, Final: final, Source: "test"}
}

func linkedTo(it ingest.Item, tx string, trust archive.Trust) ingest.Item {
	it.Link = &archive.Link{TxID: tx, Trust: trust, Source: "test"}
	return it
}

// text is what an event says, for people.
func (m *equivocations) text(e *archive.Event) string {
	s := e.Kind.String() + " " + m.name(e.Digest)
	if e.GuardianSetIndex != nil {
		s += fmt.Sprintf(" by %d", *e.GuardianSetIndex)
	}
	if e.Canonical {
		s += ", canonical"
	}
	if e.Completes {
		s += ", completes"
	}
	if e.Displaced != nil {
		s += ", displaces " + m.name(*e.Displaced)
	}
	if e.Link != nil {
		s += fmt.Sprintf(", %s of trust %s", e.Link.TxID, e.Link.Trust)
	}
	if e.InitiatingTxID != nil {
		s += ", initiated by " + *e.InitiatingTxID
	}
	return s
}

// unapplied is a store that takes batches and applies none.
type unapplied struct{ archive.Store }

func (unapplied) Apply(context.Context, archive.Batch) error { return errors.New("applies nothing") }

// write writes all items, together or each alone, and returns the outcomes and
// the text of the events of each.
func (m *equivocations) write(t *testing.T, wrap func(archive.Store) archive.Store, together bool, items []ingest.Item) ([]ingest.Result, []string) {
	t.Helper()
	store := memarchive.New(vaa.Mainnet, time.Now)
	w := ingest.NewWriter(ingest.WriterConfig{
		Store: wrap(store),
		Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	step := 1
	if together {
		step = len(items)
	}
	var results []ingest.Result
	for at := 0; at < len(items); at += step {
		r, err := w.Write(t.Context(), archive.ClassLive, items[at:at+step])
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r...)
	}
	for _, err := range store.Violations() {
		t.Error(err)
	}
	var events []string
	for b, err := range store.Batches(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Events {
			events = append(events, m.text(&b.Events[i]))
		}
	}
	return results, events
}

// TestOutcomes is the table "Outcomes" of docs/protocol.md, line by line. What is
// known of the id may be in the row, in the journal's unapplied end, or in the
// same batch: the outcome is the same.
func TestOutcomes(t *testing.T) {
	const claimed, peer, chain = archive.TrustClaimed, archive.TrustPeer, archive.TrustChain
	m := newEquivocations(rand.New(rand.NewPCG(1, 2)))
	observed := func(d string) ingest.Item { return m.published(d, chain, false) }
	final := func(d string) ingest.Item { return m.published(d, chain, true) }
	type items = []ingest.Item
	for _, c := range []struct {
		line   string
		before items
		item   ingest.Item
		want   archive.Outcome
		events []string
	}{
		{"VAA, nothing", nil, m.signed("a", 1), archive.OutcomeAccepted, []string{"quorum a by 1, canonical"}},
		{"VAA, observed with the same digest", items{observed("a")}, m.signed("a", 1), archive.OutcomeCompleted, []string{"quorum a by 1, canonical, completes"}},
		{"VAA, observed with another digest", items{observed("b")}, m.signed("a", 1), archive.OutcomeAccepted, []string{"vanished b", "quorum a by 1, canonical, displaces b"}},
		{"VAA, known and canonical", items{m.signed("a", 1)}, m.signed("a", 1), archive.OutcomeDuplicate, nil},
		{"VAA, known and never canonical", items{m.signed("a", 2), m.signed("b", 1)}, m.signed("b", 1), archive.OutcomeDuplicate, nil},
		{"VAA, known and once canonical", items{m.signed("a", 1), m.signed("b", 2)}, m.signed("a", 1), archive.OutcomeDuplicate, nil},
		{"VAA, known of an older set", items{m.signed("a", 1), m.signed("a", 2)}, m.signed("a", 1), archive.OutcomeDuplicate, nil},
		{"VAA, canonical digest by a newer set", items{m.signed("a", 1)}, m.signed("a", 2), archive.OutcomeResigned, []string{"resigned a by 2, canonical"}},
		{"VAA, canonical digest by an older set", items{m.signed("a", 2)}, m.signed("a", 1), archive.OutcomeResigned, []string{"resigned a by 1"}},
		{"VAA, another digest is canonical, newer set", items{m.signed("a", 1)}, m.signed("b", 2), archive.OutcomeConflict, []string{"conflict b by 2, canonical, displaces a"}},
		{"VAA, another digest is canonical, same set", items{m.signed("b", 1)}, m.signed("a", 1), archive.OutcomeConflict, []string{"conflict a by 1"}},
		{"VAA, another digest is canonical, older set", items{m.signed("a", 2)}, m.signed("b", 1), archive.OutcomeConflict, []string{"conflict b by 1"}},
		{"VAA, lost before, newest set", items{m.signed("a", 1), m.signed("b", 2)}, m.signed("a", 3), archive.OutcomeConflict, []string{"conflict a by 3, canonical, displaces b"}},
		{"VAA, lost before, same set", items{m.signed("a", 1), m.signed("b", 2)}, m.signed("a", 2), archive.OutcomeConflict, []string{"conflict a by 2"}},
		{"VAA, lost before, older set", items{m.signed("a", 3), m.signed("b", 2)}, m.signed("b", 1), archive.OutcomeConflict, []string{"conflict b by 1"}},
		{"VAA, lost before among others, newest set", items{m.signed("a", 1), m.signed("b", 1), m.signed("c", 1)}, m.signed("b", 2), archive.OutcomeConflict, []string{"conflict b by 2, canonical, displaces a"}},
		{"publication, nothing", nil, observed("a"), archive.OutcomeAccepted, []string{"observed a, canonical"}},
		{"publication, observed with the same digest", items{observed("a")}, final("a"), archive.OutcomeDuplicate, nil},
		{"publication, observed with the same digest, tx is new", items{observed("a")}, linkedTo(observed("a"), "t1", chain), archive.OutcomeLinked, []string{"linked a, canonical, t1 of trust chain, initiated by t1"}},
		{"publication, observed with another digest, final", items{observed("b")}, final("a"), archive.OutcomeAccepted, []string{"vanished b", "observed a, canonical, displaces b"}},
		{"publication, observed with another digest, not final", items{observed("b")}, observed("a"), archive.OutcomeInvalid, nil},
		{"publication, vanished before", items{observed("b"), final("a")}, final("b"), archive.OutcomeDuplicate, nil},
		{"publication, vanished before, tx is new", items{observed("b"), final("a")}, linkedTo(final("b"), "t1", chain), archive.OutcomeLinked, []string{"linked b, t1 of trust chain, initiated by t1"}},
		{"VAA brings back what had vanished", items{observed("b"), final("a")}, m.signed("b", 1), archive.OutcomeAccepted, []string{"vanished a", "quorum b by 1, canonical, displaces a"}},
		{"publication, signed with the same digest", items{m.signed("a", 1)}, observed("a"), archive.OutcomeDuplicate, nil},
		{"publication, signed with the same digest, tx is new", items{m.signed("a", 1)}, linkedTo(observed("a"), "t1", peer), archive.OutcomeLinked, []string{"linked a, canonical, t1 of trust peer, initiated by t1"}},
		{"publication, signed with another digest, chain", items{m.signed("a", 1)}, observed("b"), archive.OutcomeConflict, []string{"conflict b"}},
		{"publication, signed with another digest, chain, again", items{m.signed("a", 1), observed("b")}, final("b"), archive.OutcomeDuplicate, nil},
		{"publication, signed with another digest that is signed too", items{m.signed("a", 1), m.signed("b", 1)}, observed("b"), archive.OutcomeDuplicate, nil},
		{"publication, signed with another digest, peer", items{m.signed("a", 1)}, m.published("b", peer, true), archive.OutcomeInvalid, nil},
		{"publication, signed with another digest, claimed", items{m.signed("a", 1)}, m.published("b", claimed, true), archive.OutcomeInvalid, nil},
		{"link with a first VAA", nil, linkedTo(m.signed("a", 1), "t1", claimed), archive.OutcomeAccepted, []string{"quorum a by 1, canonical, t1 of trust claimed, initiated by t1"}},
		{"link with a VAA of a newer set", items{m.signed("a", 1)}, linkedTo(m.signed("a", 2), "t1", claimed), archive.OutcomeResigned, []string{"resigned a by 2, canonical, t1 of trust claimed, initiated by t1"}},
		{"link with a VAA of an older set", items{m.signed("a", 2)}, linkedTo(m.signed("a", 1), "t1", claimed), archive.OutcomeResigned, []string{"linked a, canonical, t1 of trust claimed, initiated by t1", "resigned a by 1, initiated by t1"}},
		{"link with a duplicate", items{m.signed("a", 1)}, linkedTo(m.signed("a", 1), "t1", claimed), archive.OutcomeLinked, []string{"linked a, canonical, t1 of trust claimed, initiated by t1"}},
		{"link with better trust", items{linkedTo(m.signed("a", 1), "t1", claimed)}, linkedTo(observed("a"), "t1", peer), archive.OutcomeLinked, []string{"linked a, canonical, t1 of trust peer, initiated by t1"}},
		{"link with the same trust", items{linkedTo(m.signed("a", 1), "t1", peer)}, linkedTo(observed("a"), "t1", peer), archive.OutcomeDuplicate, nil},
		{"link with worse trust", items{linkedTo(m.signed("a", 1), "t1", chain)}, linkedTo(observed("a"), "t1", peer), archive.OutcomeDuplicate, nil},
		{"link for another digest", items{linkedTo(m.signed("a", 1), "t1", chain), m.signed("b", 1)}, linkedTo(m.signed("b", 1), "t1", claimed), archive.OutcomeLinked, []string{"linked b, t1 of trust claimed, initiated by t1"}},
		{"second link, as well trusted", items{linkedTo(m.signed("a", 1), "t2", peer), m.signed("a", 2)}, linkedTo(observed("a"), "t1", peer), archive.OutcomeLinked, []string{"linked a, canonical, t1 of trust peer, initiated by t2"}},
		{"second link, better trusted", items{linkedTo(m.signed("a", 1), "t2", peer), m.signed("a", 2)}, linkedTo(observed("a"), "t1", chain), archive.OutcomeLinked, []string{"linked a, canonical, t1 of trust chain, initiated by t1"}},
		{"one link among many", items{linkedTo(m.signed("a", 1), "t2", peer), linkedTo(observed("a"), "t3", peer), linkedTo(observed("a"), "t4", peer), m.signed("a", 2)}, linkedTo(observed("a"), "t1", peer), archive.OutcomeLinked, []string{"linked a, canonical, t1 of trust peer, initiated by t2"}},
	} {
		t.Run(c.line, func(t *testing.T) {
			all := append(c.before[:len(c.before):len(c.before)], c.item)
			plain := func(s archive.Store) archive.Store { return s }
			results, events := m.write(t, plain, false, all)
			_, first := m.write(t, plain, false, c.before)
			if got := results[len(results)-1].Outcome; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if diff := cmp.Diff(append(first, c.events...), events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			for how, write := range map[string]func() ([]ingest.Result, []string){
				"in one batch": func() ([]ingest.Result, []string) { return m.write(t, plain, true, all) },
				"with none applied": func() ([]ingest.Result, []string) {
					return m.write(t, func(s archive.Store) archive.Store { return unapplied{s} }, false, all)
				},
			} {
				r, e := write()
				if diff := cmp.Diff(results, r); diff != "" {
					t.Errorf("%s, results (-alone +so):\n%s", how, diff)
				}
				if diff := cmp.Diff(events, e); diff != "" {
					t.Errorf("%s, events (-alone +so):\n%s", how, diff)
				}
			}
		})
	}
}

// TestEvidence: further signatures of a known VAA are kept beside it, each once.
func TestEvidence(t *testing.T) {
	m := newEquivocations(rand.New(rand.NewPCG(3, 4)))
	store := memarchive.New(vaa.Mainnet, time.Now)
	w := ingest.NewWriter(ingest.WriterConfig{Store: store})
	for _, signers := range [][]int{{0, 1, 2}, {1, 2, 3}, {0, 2, 3}} {
		if _, err := w.Write(t.Context(), archive.ClassLive, []ingest.Item{m.signed("a", 1, signers...), m.signed("a", 1, signers...)}); err != nil {
			t.Fatal(err)
		}
	}
	it := m.signed("a", 1)
	r, err := store.Get(t.Context(), it.ID, archive.Columns{})
	if err != nil {
		t.Fatal(err)
	}
	want := []archive.Evidence{{ID: it.ID, GuardianSetIndex: 1, Digest: it.Digest, Signature: m.sets[1].Signature(it.Digest, 3)}}
	if diff := cmp.Diff(want, r.Evidence); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	if len(r.Versions) != 1 {
		t.Errorf("%d versions, want 1", len(r.Versions))
	}
}

// TestBounds: what a row cannot hold without end is refused or left out.
func TestBounds(t *testing.T) {
	g := vaatest.NewGuardians(7, 1, 1)
	v := vaatest.NewVAA(rand.New(rand.NewPCG(5, 6)), g)
	var items []ingest.Item
	for i := range archive.MaxVersions + 1 {
		it := ingest.Item{ID: v.MessageID(), Digest: v.Digest(), VAA: v, Raw: v.Append(nil), Source: "test"}
		items = append(items, linkedTo(it, fmt.Sprintf("t%d", i), archive.TrustPeer))
		v = vaatest.Equivocate(v, g)
	}
	items = append(items, linkedTo(items[0], "one-more", archive.TrustChain), linkedTo(items[0], "t0", archive.TrustChain))
	huge := ingest.Item{ID: v.MessageID(), Digest: v.Digest(), VAA: v, Raw: make([]byte, vaa.MaxBytes+1), Source: "test"}
	w := ingest.NewWriter(ingest.WriterConfig{Store: memarchive.New(vaa.Mainnet, time.Now)})
	results, err := w.Write(t.Context(), archive.ClassLive, append(items, huge))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]string{
		archive.MaxVersions - 1: "conflict ", archive.MaxVersions: "invalid too_many_versions",
		archive.MaxVersions + 1: "duplicate ", archive.MaxVersions + 2: "linked ", archive.MaxVersions + 3: "invalid too_large",
	} {
		if got := results[i].Outcome.String() + " " + results[i].Reason; got != want {
			t.Errorf("item %d: got %s, want %s", i, got, want)
		}
	}
}
