package memarchive_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/archivetest"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func TestConformance(t *testing.T) {
	archivetest.Run(t, archivetest.Options{
		New: func(t *testing.T) archive.Store {
			s := memarchive.New(vaa.Devnet, time.Now)
			t.Cleanup(func() {
				for _, err := range s.Violations() {
					if !errors.Is(err, archive.ErrTooLarge) {
						t.Error(err)
					}
				}
			})
			return s
		},
		Seal: func(_ *testing.T, s archive.Store) { s.(*memarchive.Store).Seal() },
	})
}

// TestRefusesIllegalHistories holds the reference model to its word.
func TestRefusesIllegalHistories(t *testing.T) {
	g := []*vaatest.Guardians{vaatest.NewGuardians(1, 0, 1), vaatest.NewGuardians(1, 1, 1)}
	r := rand.New(rand.NewPCG(1, 1))
	v := vaatest.NewVAA(r, g[0])
	event := func(kind archive.Kind, v *vaa.VAA, canonical bool) archive.Event {
		set := v.GuardianSetIndex
		return archive.Event{
			Kind: kind, ID: v.MessageID(), Digest: v.Digest(), GuardianSetIndex: &set, Canonical: canonical, Time: v.Time(), Bytes: v.Append(nil),
		}
	}
	plain := func(kind archive.Kind, b *vaa.Body, canonical bool) archive.Event {
		return archive.Event{Kind: kind, ID: b.MessageID(), Digest: b.Digest(), Canonical: canonical, Time: b.Time(), Bytes: b.Append(nil)}
	}
	other, newer := vaatest.Equivocate(v, g[0]), vaatest.Resign(v, g[1])
	expired := event(archive.KindQuorum, vaatest.NewVAA(r, g[0]), true)
	expired.Expired = true
	first := event(archive.KindQuorum, v, true)
	for _, c := range []struct {
		name   string
		before []archive.Event
		event  archive.Event
	}{
		{"the same digest and set twice", []archive.Event{first}, first},
		{"a first VAA that is not canonical", nil, event(archive.KindQuorum, v, false)},
		{"an equal set displaces the first", []archive.Event{first}, event(archive.KindConflict, other, true)},
		{"a newer set does not", []archive.Event{first}, event(archive.KindResigned, newer, false)},
		{"a second quorum", []archive.Event{first}, event(archive.KindQuorum, other, true)},
		{"a publication over a signed VAA", []archive.Event{first}, plain(archive.KindObserved, &other.Body, true)},
		{"a quorum over another observed digest", []archive.Event{plain(archive.KindObserved, &other.Body, true)}, first},
		{"what was never observed vanishes", nil, archive.Event{Kind: archive.KindVanished, ID: v.MessageID(), Digest: v.Digest()}},
		{"a link that is known", []archive.Event{withLink(first)}, withLink(event(archive.KindResigned, newer, true))},
		{"an expired set in class live", nil, expired},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memarchive.New(vaa.Devnet, time.Now)
			o := archive.Offset(1)
			for _, e := range c.before {
				if err := s.Append(t.Context(), batch(o, e)); err != nil {
					t.Fatal(err)
				}
				o++
			}
			if err := s.Append(t.Context(), batch(o, c.event)); !errors.Is(err, memarchive.ErrIllegal) {
				t.Errorf("got %v, want %v", err, memarchive.ErrIllegal)
			}
			if len(s.Violations()) != 1 {
				t.Errorf("%d violations are kept, want 1", len(s.Violations()))
			}
		})
	}

	s := memarchive.New(vaa.Devnet, time.Now)
	for _, o := range []archive.Offset{2, 5} {
		if err := s.Append(t.Context(), batch(o, first)); !errors.Is(err, memarchive.ErrIllegal) {
			t.Errorf("an append beyond the end at %d: got %v, want %v", o, err, memarchive.ErrIllegal)
		}
	}
	if err := s.Append(t.Context(), batch(1, first)); err != nil {
		t.Fatal(err)
	}
	if err := s.MarkApplied(t.Context(), 1); !errors.Is(err, memarchive.ErrIllegal) {
		t.Errorf("marked applied without its rows: got %v, want %v", err, memarchive.ErrIllegal)
	}
	if err := s.RaiseWatermark(t.Context(), 2); !errors.Is(err, memarchive.ErrIllegal) {
		t.Errorf("a watermark over a batch that is not applied: got %v, want %v", err, memarchive.ErrIllegal)
	}
}

func batch(o archive.Offset, e archive.Event) archive.Batch {
	e.Offset = o
	return archive.Batch{
		Offset: o, ID: "b", Writer: "w", WallTime: time.Unix(1_700_000_000+int64(o), 0).UTC(), Class: archive.ClassLive, Events: []archive.Event{e},
	}
}

func withLink(e archive.Event) archive.Event {
	e.Link = &archive.Link{TxID: "aa", Trust: archive.TrustPeer, Source: "s"}
	return e
}
