package archivetest

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func lookup(t *testing.T, s archive.Store, l archive.Lookup) []archive.Ref {
	t.Helper()
	return collect(t, s.Lookup(newContext(t), l))
}

func testLookup(t *testing.T, o Options) {
	ctx, s, h := newContext(t), o.New(t), newScript(20)
	var events []archive.Event
	for i := range 40 {
		v := h.vaa(0)
		v.Timestamp = 1_700_000_000 + uint32(i%7)
		h.sets[0].Sign(v)
		events = append(events, linked(quorum(v), txID(i%3), archive.TrustClaimed))
	}
	put(t, s, h.batch(events...))
	byTime := slices.SortedFunc(slices.Values(events), func(a, b archive.Event) int {
		return -cmp.Or(a.Time.Compare(b.Time), strings.Compare(rowkey.Of(a.ID), rowkey.Of(b.ID)))
	})
	for _, limit := range []int{0, 1, 5, 39, 1000} {
		want := idsOf(byTime)
		if limit > 0 {
			want = want[:min(limit, len(want))]
		}
		var got []vaa.MessageID
		for _, ref := range lookup(t, s, archive.Lookup{By: archive.ByTime, Limit: limit}) {
			got = append(got, ref.ID)
		}
		diff(t, fmt.Sprintf("newest first, limit %d", limit), got, want)
	}
	for i := range 3 {
		var want []string
		for j, e := range events {
			if j%3 == i {
				want = append(want, rowkey.Of(e.ID))
			}
		}
		slices.Sort(want)
		refs := lookup(t, s, archive.Lookup{By: archive.ByTx, Key: txID(i)})
		var got []string
		for _, ref := range refs {
			got = append(got, rowkey.Of(ref.ID))
		}
		diff(t, "messages of a transaction", got, want)
		chain := refs[0].ID.EmitterChain
		for _, ref := range lookup(t, s, archive.Lookup{By: archive.ByTx, Key: txID(i), Chain: &chain}) {
			if ref.ID.EmitterChain != chain {
				t.Errorf("asked for chain %d, got %s", chain, ref.ID)
			}
		}
	}
	other := vaatest.Equivocate(parse(t, events[0]), h.sets[0])
	loser := quorum(other)
	loser.Kind, loser.Canonical = archive.KindConflict, false
	put(t, s, h.batch(loser))

	body := &other.Body
	for _, key := range []vaa.Digest{body.Digest(), body.SingleDigest()} {
		diff(t, "the digest that lost", lookup(t, s, archive.Lookup{By: archive.ByDigest, Key: key.String()}),
			[]archive.Ref{{ID: other.MessageID(), Digests: []vaa.Digest{body.Digest()}}})
	}
	if got := lookup(t, s, archive.Lookup{By: archive.ByTx, Key: txID(9)}); len(got) != 0 {
		t.Errorf("an unknown transaction gave %v", got)
	}

	for _, l := range []archive.Lookup{{}, {By: archive.ByTx}, {By: archive.ByDigest, Key: "12"}} {
		for _, err := range s.Lookup(ctx, l) {
			if !errors.Is(err, archive.ErrInvalidRange) {
				t.Errorf("lookup %+v: got %v, want %v", l, err, archive.ErrInvalidRange)
			}
		}
	}
}

func parse(t *testing.T, e archive.Event) *vaa.VAA {
	t.Helper()
	v, err := vaa.Parse(e.Bytes)
	check(t, "parse", err)
	return v
}

func testEvidence(t *testing.T, o Options) {
	ctx, s, h := newContext(t), o.New(t), newScript(21)
	v := h.vaa(0)
	b := h.batch(quorum(v))
	put(t, s, b)
	want := project(t, v.MessageID(), b.Events...)
	for guardian := range 3 {
		want.Evidence = append(want.Evidence, archive.Evidence{
			ID: v.MessageID(), Digest: v.Digest(), Signature: h.sets[0].Signature(v.Digest(), guardian),
		})
	}
	for range 2 {
		check(t, "put evidence", s.PutEvidence(ctx, want.Evidence))
		diff(t, "row", mustGet(t, s, v.MessageID(), archive.Columns{}), want)
	}
	check(t, "put none", s.PutEvidence(ctx, nil))
}

func testCursors(t *testing.T, o Options) {
	ctx, s := newContext(t), o.New(t)
	for i, step := range []struct {
		source   string
		from, to uint64
		want     error
		position uint64
	}{
		{"spy:a", 0, 5, nil, 5},
		{"spy:a", 0, 6, archive.ErrCursorMoved, 5},
		{"spy:a", 5, 1<<63 + 1, nil, 1<<63 + 1},
		{"spy:a", 5, 7, archive.ErrCursorMoved, 1<<63 + 1},
		{"spy:b", 3, 4, archive.ErrCursorMoved, 0},
		{"spy:b", 0, 1, nil, 1},
	} {
		err := s.CommitCursor(ctx, step.source, step.from, step.to)
		if !errors.Is(err, step.want) {
			t.Fatalf("step %d: got %v, want %v", i, err, step.want)
		}
		got, err := s.Cursor(ctx, step.source)
		check(t, "cursor", err)
		if got != step.position {
			t.Fatalf("step %d: position %d, want %d", i, got, step.position)
		}
	}
}

func testRejects(t *testing.T, o Options) {
	ctx, s := newContext(t), o.New(t)
	long := []byte(strings.Repeat("x", archive.MaxRejectBytes+1))
	reject := func(reason string, b []byte) archive.Reject {
		return archive.Reject{Reason: reason, Detail: "why", Source: "file:a", Bytes: b, SHA256: sha256.Sum256(b)}
	}
	for _, r := range []archive.Reject{reject("wrong_key", []byte("b")), reject("wrong_key", []byte("b")), reject("no_quorum", long), reject("no_quorum", []byte("b"))} {
		check(t, "put reject", s.PutReject(ctx, r))
	}
	got := collect(t, s.Rejects(ctx, nil))
	for i := range got {
		diff(t, "rejects after one", collect(t, s.Rejects(ctx, &archive.Reject{Reason: got[i].Reason, SHA256: got[i].SHA256})), append([]archive.Reject(nil), got[i+1:]...))
	}
	counts := map[string]uint64{}
	for _, r := range got {
		counts[fmt.Sprintf("%s %x", r.Reason, r.SHA256[:4])] = r.Count
		if r.LastSeen.IsZero() || r.Detail != "why" || r.Source != "file:a" || len(r.Bytes) > archive.MaxRejectBytes || len(r.Bytes) == 0 {
			t.Errorf("kept %q: %q from %q, %d bytes, seen %s", r.Reason, r.Detail, r.Source, len(r.Bytes), r.LastSeen)
		}
	}
	b, l := sha256.Sum256([]byte("b")), sha256.Sum256(long)
	diff(t, "counts", counts, map[string]uint64{
		fmt.Sprintf("wrong_key %x", b[:4]): 2, fmt.Sprintf("no_quorum %x", b[:4]): 1, fmt.Sprintf("no_quorum %x", l[:4]): 1,
	})
}

func testGuardianSets(t *testing.T, o Options) {
	ctx, s := newContext(t), o.New(t)
	for _, put := range []struct {
		index uint32
		raw   string
	}{{10, "ten"}, {9, "nine"}, {10, "another ten"}} {
		check(t, "put", s.PutGuardianSetUpgrade(ctx, put.index, []byte(put.raw)))
	}
	got, err := s.GuardianSetUpgrades(ctx)
	check(t, "get", err)
	diff(t, "upgrades", got, [][]byte{[]byte("nine"), []byte("ten")})
}
