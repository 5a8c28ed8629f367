package archivetest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func compareKeys(a, b vaa.MessageID) int { return strings.Compare(rowkey.Of(a), rowkey.Of(b)) }

// testLookupWindows walks the time index by pages of every size, in both orders,
// within every bound.
func testLookupWindows(t *testing.T, o Options) {
	s, h := o.New(t), newScript(22)
	const first, seconds = 1_700_000_000, 6
	var events []archive.Event
	for i := range 60 {
		v := h.vaa(0)
		v.EmitterChain, v.Timestamp = 2+vaa.ChainID(i%4), first+uint32(i%seconds)
		h.sets[0].Sign(v)
		events = append(events, quorum(v))
	}
	put(t, s, h.batch(events...))
	for _, oldest := range []bool{false, true} {
		for from := uint32(first - 1); from <= first+seconds; from += 3 {
			for to := from; to <= first+seconds; to++ {
				var in []archive.Event
				for _, e := range events {
					if u := uint32(e.Time.Unix()); u >= from && u <= to {
						in = append(in, e)
					}
				}
				slices.SortFunc(in, func(a, b archive.Event) int {
					c := cmp.Or(a.Time.Compare(b.Time), compareKeys(a.ID, b.ID))
					if oldest {
						return c
					}
					return -c
				})
				l := archive.Lookup{By: archive.ByTime, FirstTime: &from, LastTime: &to, OldestFirst: oldest, Limit: 1 + int(to-from)*5}
				what := fmt.Sprintf("times %d to %d, oldest first %t", from, to, oldest)
				diff(t, what, walk(t, s, l), append([]vaa.MessageID(nil), idsOf(in)...))
				chain := vaa.ChainID(2)
				l.Chain = &chain
				in = slices.DeleteFunc(in, func(e archive.Event) bool { return e.ID.EmitterChain != chain })
				diff(t, what+" of a chain", walk(t, s, l), append([]vaa.MessageID(nil), idsOf(in)...))
			}
		}
	}
}

// walk follows a lookup page by page.
func walk(t *testing.T, s archive.Store, l archive.Lookup) (ids []vaa.MessageID) {
	t.Helper()
	for {
		page := lookup(t, s, l)
		for _, ref := range page {
			ids = append(ids, ref.ID)
		}
		if len(page) < l.Limit {
			return ids
		}
		l.After = &page[len(page)-1]
	}
}

// testLookupConflicts finds the messages of which more than one digest was seen, and
// their digests, whichever of them lost.
func testLookupConflicts(t *testing.T, o Options) {
	s, h := o.New(t), newScript(23)
	var want []archive.Ref
	for i := range 8 {
		v := h.vaa(0)
		v.EmitterChain = vaa.ChainID(2 + i%3)
		h.sets[0].Sign(v)
		other := vaatest.Equivocate(v, h.sets[i%2])
		conflict := quorum(other)
		conflict.Kind, conflict.Canonical = archive.KindConflict, i%2 == 1
		digests := []vaa.Digest{other.Digest()}
		if d := v.Digest(); conflict.Canonical {
			conflict.Displaced = &d
			digests = append(digests, d)
			slices.SortFunc(digests, func(a, b vaa.Digest) int { return bytes.Compare(a[:], b[:]) })
		}
		put(t, s, h.batch(quorum(v)), h.batch(conflict), h.batch(quorum(h.vaa(0))))
		want = append(want, archive.Ref{ID: v.MessageID(), Digests: digests})
	}
	slices.SortFunc(want, func(a, b archive.Ref) int { return compareKeys(a.ID, b.ID) })
	diff(t, "conflicts", lookup(t, s, archive.Lookup{By: archive.ByConflict}), want)
	for _, chain := range []vaa.ChainID{2, 3, 4, 5} {
		var of []vaa.MessageID
		for _, ref := range want {
			if ref.ID.EmitterChain == chain {
				of = append(of, ref.ID)
			}
		}
		diff(t, fmt.Sprint("conflicts of chain ", chain), walk(t, s, archive.Lookup{By: archive.ByConflict, Chain: &chain, Limit: 1}), of)
	}
	foreign := &archive.Ref{ID: vaa.MessageID{EmitterChain: 9}}
	chain := vaa.ChainID(2)
	for _, err := range s.Lookup(newContext(t), archive.Lookup{By: archive.ByConflict, Chain: &chain, After: foreign}) {
		if !errors.Is(err, archive.ErrInvalidRange) {
			t.Errorf("after a message of another chain: got %v", err)
		}
	}
}

// testWhere has the store choose among rows by each condition, and by two at once.
func testWhere(t *testing.T, o Options) {
	s, h := o.New(t), newScript(24)
	var all []archive.Record
	for i := range 24 {
		v := h.vaa(i % 2)
		v.EmitterChain, v.EmitterAddress, v.Sequence = 2, vaa.Address{1}, uint64(i)
		v.Timestamp, v.Payload = 1_700_000_000+uint32(i/5), []byte{byte(i % 3), 0xff, '\n', byte(i)}
		if i == 7 {
			v.Payload = nil
		}
		h.sets[i%2].Sign(v)
		e := quorum(v)
		if i%5 == 0 {
			e = observed(&v.Body)
		}
		if i%4 == 0 {
			e = linked(e, txID(i), archive.TrustChain)
		}
		b := h.batch(e)
		put(t, s, b)
		r := project(t, e.ID, b.Events...)
		if i == 8 { // a conflict without a link: the column stands for another digest now
			other := vaatest.Equivocate(v, h.sets[2])
			d := v.Digest()
			c := quorum(other)
			c.Kind, c.Displaced = archive.KindConflict, &d
			b := h.batch(c)
			put(t, s, b)
			check(t, "project", r.Apply(b.Events[0]))
		}
		all = append(all, r)
	}
	yes, no := true, false
	set, at := uint32(1), time.Unix(1_700_000_002, 0).UTC()
	for _, w := range []archive.Where{
		{},
		{PayloadPrefix: []byte{1}},
		{PayloadPrefix: []byte{0, 0xff}},
		{PayloadPrefix: []byte{2, 0xff, '\n', 5}},
		{PayloadPrefix: []byte{0xff}},
		{PayloadPrefix: []byte{}},
		{GuardianSetIndex: &set},
		{Signed: &yes},
		{Signed: &no},
		{Linked: &yes},
		{Linked: &no},
		{FirstTime: &at},
		{LastTime: &at},
		{FirstTime: &at, LastTime: &at},
		{Signed: &yes, Linked: &no, PayloadPrefix: []byte{1}},
		{Signed: &no, GuardianSetIndex: &set},
	} {
		for _, descending := range []bool{false, true} {
			var want, got []vaa.MessageID
			for i := range all {
				if w.Selects(&all[i]) {
					want = append(want, all[i].ID)
				}
			}
			read := 0
			chain := vaa.ChainID(2)
			for _, r := range collect(t, s.Scan(newContext(t), archive.Range{Chain: &chain, Where: w, Descending: descending, Limit: 20}, archive.Columns{})) {
				if read++; !r.Empty() {
					got = append(got, r.ID)
					diff(t, "a selected record", r, all[r.ID.Sequence])
				}
			}
			if descending {
				slices.Reverse(want)
				want = slices.DeleteFunc(want, func(id vaa.MessageID) bool { return id.Sequence < 4 })
			} else {
				want = slices.DeleteFunc(want, func(id vaa.MessageID) bool { return id.Sequence >= 20 })
			}
			if read != 20 {
				t.Errorf("%+v: %d rows are yielded, want as many as the limit", w, read)
			}
			diff(t, fmt.Sprintf("selected by %+v, descending %t", w, descending), got, want)
		}
	}
}
