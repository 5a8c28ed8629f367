package archivetest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func idsOf(events []archive.Event) []vaa.MessageID {
	ids := make([]vaa.MessageID, len(events))
	for i := range events {
		ids[i] = events[i].ID
	}
	return ids
}

func testApply(t *testing.T, o Options) {
	ctx, s, h := newContext(t), o.New(t), newScript(10)
	v := h.vaa(0)
	b := h.batch(linked(quorum(v), txID(1), archive.TrustClaimed))
	check(t, "append", s.Append(ctx, b))
	if _, err := s.Get(ctx, v.MessageID(), archive.Columns{}); !errors.Is(err, archive.ErrNotFound) {
		t.Fatalf("before apply: got %v, want %v", err, archive.ErrNotFound)
	}
	for range 2 { // a second application changes nothing
		check(t, "apply", s.Apply(ctx, b))
		diff(t, "row", mustGet(t, s, v.MessageID(), archive.Columns{}), project(t, v.MessageID(), b.Events...))
	}
	r := mustGet(t, s, v.MessageID(), archive.Columns{})
	if got := r.Signed(); got == nil || string(got.Bytes) != string(v.Append(nil)) {
		t.Error("the canonical VAA is not the bytes that were received")
	}
}

// testApplyAnyOrder applies the life of one message in every order.
func testApplyAnyOrder(t *testing.T, o Options) {
	ctx, s, h := newContext(t), o.New(t), newScript(11)
	seen := h.vaa(0)
	first := vaatest.Equivocate(seen, h.sets[0])
	again := vaatest.Resign(first, h.sets[1])
	newer := vaatest.Equivocate(first, h.sets[2])
	late := vaatest.Resign(seen, h.sets[0])
	tx := txID(7)
	d := func(v *vaa.VAA) *vaa.Digest { d := v.Digest(); return &d }

	vanished := archive.Event{Kind: archive.KindVanished, ID: seen.MessageID(), Digest: seen.Digest(), Source: "archivetest"}
	quorum2 := quorum(first)
	quorum2.Displaced = d(seen)
	resigned := quorum(again)
	resigned.Kind = archive.KindResigned
	conflict := quorum(newer)
	conflict.Kind, conflict.Displaced = archive.KindConflict, d(first)
	loser := quorum(late)
	loser.Kind, loser.Canonical = archive.KindConflict, false
	link := archive.Event{
		Kind: archive.KindLinked, ID: seen.MessageID(), Digest: newer.Digest(), Canonical: true, InitiatingTxID: &tx,
		Link: &archive.Link{TxID: tx, Trust: archive.TrustChain, Source: "archivetest"}, Source: "archivetest",
	}
	batches := []archive.Batch{
		h.batch(linked(observed(&seen.Body), txID(3), archive.TrustPeer)), h.batch(vanished, quorum2),
		h.batch(resigned), h.batch(conflict), h.batch(loser), h.batch(link),
	}
	var events []archive.Event
	for _, b := range batches {
		check(t, "append", s.Append(ctx, b))
		events = append(events, b.Events...)
	}
	want := project(t, seen.MessageID(), events...)
	if got := want.Signed(); got == nil || got.Digest != newer.Digest() || len(want.Versions) != 4 {
		t.Fatal("the script is not what it is meant to be")
	}
	for range 12 {
		h.r.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
		for _, b := range batches {
			check(t, "apply", s.Apply(ctx, b))
		}
		diff(t, "row", mustGet(t, s, seen.MessageID(), archive.Columns{}), want)
	}
	// The same from nothing, each time in another store: the first order decides no
	// more than a later one.
	for range 3 {
		s2 := o.New(t)
		slices.SortFunc(batches, func(a, b archive.Batch) int { return cmp.Compare(a.Offset, b.Offset) })
		for _, b := range batches {
			check(t, "append", s2.Append(ctx, b))
		}
		h.r.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
		for _, b := range batches {
			check(t, "apply", s2.Apply(ctx, b))
		}
		diff(t, "row", mustGet(t, s2, seen.MessageID(), archive.Columns{}), want)
	}
}

func testRecords(t *testing.T, o Options) {
	ctx, s, h := newContext(t), o.New(t), newScript(12)
	var events []archive.Event
	for i, sequence := range []uint64{0, 1, 1 << 53, 1<<53 + 1, 1 << 63, math.MaxUint64} {
		v := h.vaa(0)
		v.Sequence = sequence
		if i == 0 {
			v.Payload = nil
		}
		h.sets[0].Sign(v)
		events = append(events, quorum(v))
	}
	b := h.batch(events...)
	put(t, s, b)
	all, err := s.GetAll(ctx, append(idsOf(events), idsOf(events)...), archive.Columns{})
	check(t, "get all", err)
	if len(all) != len(events) {
		t.Fatalf("got %d records, want %d", len(all), len(events))
	}
	for _, e := range b.Events {
		want := project(t, e.ID, e)
		diff(t, "get all", all[e.ID], want)
		diff(t, "get", mustGet(t, s, e.ID, archive.Columns{}), want)
	}
	unknown := events[0].ID
	unknown.Sequence = 5
	if _, err := s.Get(ctx, unknown, archive.Columns{}); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("an unknown message: got %v, want %v", err, archive.ErrNotFound)
	}
	none, err := s.GetAll(ctx, nil, archive.Columns{})
	check(t, "get none", err)
	if len(none) != 0 {
		t.Errorf("no ids gave %d records", len(none))
	}
}

func testColumns(t *testing.T, o Options) {
	s, h := o.New(t), newScript(13)
	v := h.vaa(0)
	again := quorum(vaatest.Resign(v, h.sets[1]))
	again.Kind = archive.KindResigned
	loser := quorum(vaatest.Equivocate(v, h.sets[0]))
	loser.Kind, loser.Canonical = archive.KindConflict, false
	b := h.batch(linked(quorum(v), txID(2), archive.TrustPeer), linked(again, txID(2), archive.TrustChain), loser)
	put(t, s, b)
	whole := project(t, v.MessageID(), b.Events...)
	for _, c := range []archive.Columns{
		{},
		{Latest: true},
		{Families: []string{schema.MessagePublication}},
		{Families: []string{schema.QuorumState}},
		{Families: []string{schema.QuorumState}, Latest: true},
		{Qualifiers: []string{schema.ColSignedVAA}, Latest: true},
		{Qualifiers: []string{schema.ColSignedVAA}},
		{Qualifiers: []string{schema.ColPayload}},
		{Qualifiers: []string{schema.ColRecordedAt}},
		{Qualifiers: []string{schema.ColInitiatingTxID, schema.ColVersion}},
		{Qualifiers: []string{schema.PrefixTxID, schema.PrefixOther, schema.PrefixConflict}},
		{Families: []string{schema.QuorumState}, Qualifiers: []string{schema.ColSignedVAA, schema.ColRecordedAt}},
		{Families: []string{schema.MessagePublication}, Qualifiers: []string{schema.ColDigest, schema.ColTimestamp}},
	} {
		want := whole.Select(c)
		if want.Empty() {
			want = archive.Record{ID: want.ID}
		}
		r, err := s.Get(newContext(t), v.MessageID(), c)
		if err != nil && !errors.Is(err, archive.ErrNotFound) {
			t.Fatal(err)
		}
		r.ID = v.MessageID()
		diff(t, fmt.Sprintf("columns %+v", c), r, want)
	}
}

func testScan(t *testing.T, o Options) {
	ctx, s, h := newContext(t), o.New(t), newScript(14)
	var events []archive.Event
	a, b := vaa.Address{31: 1}, vaa.Address{31: 2}
	for _, id := range []vaa.MessageID{
		{EmitterChain: 1, EmitterAddress: a, Sequence: 9},
		{EmitterChain: 1, EmitterAddress: a, Sequence: 10},
		{EmitterChain: 1, EmitterAddress: a, Sequence: math.MaxUint64},
		{EmitterChain: 1, EmitterAddress: b, Sequence: 0},
		{EmitterChain: 2, EmitterAddress: a, Sequence: 1},
		{EmitterChain: 10, EmitterAddress: a, Sequence: 1},
		{EmitterChain: 19, EmitterAddress: b, Sequence: 2},
		{EmitterChain: 65535, EmitterAddress: a, Sequence: 1 << 60},
	} {
		v := h.vaa(0)
		v.EmitterChain, v.EmitterAddress, v.Sequence = id.EmitterChain, id.EmitterAddress, id.Sequence
		h.sets[0].Sign(v)
		events = append(events, quorum(v))
	}
	put(t, s, h.batch(events...))
	sorted := slices.SortedFunc(slices.Values(idsOf(events)), func(a, b vaa.MessageID) int { return cmp.Compare(rowkey.Of(a), rowkey.Of(b)) })
	one, two, absent := vaa.ChainID(1), vaa.ChainID(2), vaa.ChainID(3)
	n9, n10, n11 := uint64(9), uint64(10), uint64(11)
	for _, c := range []struct {
		name string
		r    archive.Range
		keep func(vaa.MessageID) bool
	}{
		{"all", archive.Range{}, func(vaa.MessageID) bool { return true }},
		{"chain 1 is not 10 or 19", archive.Range{Chain: &one}, func(id vaa.MessageID) bool { return id.EmitterChain == 1 }},
		{"absent chain", archive.Range{Chain: &absent}, func(vaa.MessageID) bool { return false }},
		{"emitter", archive.Range{Chain: &one, Emitter: &a}, func(id vaa.MessageID) bool { return id.EmitterChain == 1 && id.EmitterAddress == a }},
		{"emitter elsewhere", archive.Range{Chain: &two, Emitter: &b}, func(vaa.MessageID) bool { return false }},
		{"sequences", archive.Range{Chain: &one, Emitter: &a, FirstSequence: &n9, LastSequence: &n10}, func(id vaa.MessageID) bool {
			return id.EmitterChain == 1 && id.EmitterAddress == a && id.Sequence <= 10
		}},
		{"from a sequence", archive.Range{Chain: &one, Emitter: &a, FirstSequence: &n11}, func(id vaa.MessageID) bool {
			return id.EmitterChain == 1 && id.EmitterAddress == a && id.Sequence >= 11
		}},
		{"after", archive.Range{After: &sorted[3]}, func(id vaa.MessageID) bool { return rowkey.Of(id) > rowkey.Of(sorted[3]) }},
	} {
		for _, descending := range []bool{false, true} {
			r := c.r
			r.Descending = descending
			want := slices.DeleteFunc(slices.Clone(sorted), func(id vaa.MessageID) bool {
				if r.After != nil && descending {
					return rowkey.Of(id) >= rowkey.Of(*r.After)
				}
				return !c.keep(id)
			})
			if descending {
				slices.Reverse(want)
			}
			for _, limit := range []int{0, 1, 2, 100} {
				r.Limit = limit
				part := want
				if limit > 0 {
					part = want[:min(limit, len(want))]
				}
				diff(t, fmt.Sprintf("%s, descending %t, limit %d", c.name, descending, limit), scanned(t, s, r), part)
			}
		}
	}
	for _, r := range []archive.Range{{Emitter: &a}, {Chain: &one, FirstSequence: &n9}, {Chain: &one, Emitter: &a, FirstSequence: &n10, LastSequence: &n9}, {Limit: -1}} {
		for _, err := range s.Scan(ctx, r, archive.Columns{}) {
			if !errors.Is(err, archive.ErrInvalidRange) {
				t.Errorf("range %+v: got %v, want %v", r, err, archive.ErrInvalidRange)
			}
		}
	}
}

func scanned(t *testing.T, s archive.Store, r archive.Range) []vaa.MessageID {
	t.Helper()
	ids := []vaa.MessageID{}
	for _, record := range collect(t, s.Scan(newContext(t), r, archive.Columns{Qualifiers: []string{schema.ColDigest}})) {
		ids = append(ids, record.ID)
	}
	return ids
}
