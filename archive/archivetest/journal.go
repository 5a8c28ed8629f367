package archivetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/attestry/attestry/archive"
)

func testAppend(t *testing.T, o Options) {
	ctx, s, h := newContext(t), o.New(t), newScript(1)
	first := h.batch(quorum(h.vaa(0)), quorum(h.vaa(0)))
	check(t, "append", s.Append(ctx, first))

	if err := s.Append(ctx, first); !errors.Is(err, archive.ErrOffsetTaken) {
		t.Errorf("the same batch again: got %v, want %v", err, archive.ErrOffsetTaken)
	}
	other := first
	other.ID = "another"
	if err := s.Append(ctx, other); !errors.Is(err, archive.ErrOffsetTaken) {
		t.Errorf("another batch at a taken offset: got %v, want %v", err, archive.ErrOffsetTaken)
	}
	got := collect(t, s.Batches(ctx, 1))
	diff(t, "the first batch stays", got, []archive.Batch{first})

	second := h.batch(quorum(h.vaa(1)))
	check(t, "append", s.Append(ctx, second))
	diff(t, "journal", collect(t, s.Batches(ctx, 1)), []archive.Batch{first, second})
}

func testBatches(t *testing.T, o Options) {
	ctx, s, h := newContext(t), o.New(t), newScript(2)
	if got := collect(t, s.Batches(ctx, 1)); len(got) != 0 {
		t.Fatalf("an empty journal has %d batches", len(got))
	}
	var all []archive.Batch
	for _, n := range []int{1, 3, 12, 1, 7} {
		var events []archive.Event
		for range n {
			events = append(events, quorum(h.vaa(0)))
		}
		b := h.batch(events...)
		b.Class = []archive.Class{archive.ClassLive, archive.ClassHistory}[n%2]
		check(t, "append", s.Append(ctx, b))
		all = append(all, b)
	}
	for from := archive.Offset(0); from <= h.next+1; from++ {
		var want []archive.Batch
		for _, b := range all {
			if b.End() > from {
				want = append(want, b)
			}
		}
		diff(t, fmt.Sprintf("from offset %d", from), collect(t, s.Batches(ctx, from)), want)
	}
	for range s.Batches(ctx, 1) {
		break // stopping early is no error
	}
	check(t, "apply", s.Apply(ctx, all[1]))
	check(t, "mark applied", s.MarkApplied(ctx, all[1].Offset))
	all[1].Applied = true
	diff(t, "one batch is applied", collect(t, s.Batches(ctx, 1)), all)
	if err := s.MarkApplied(ctx, all[2].Offset+1); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("mark applied where no batch begins: got %v, want %v", err, archive.ErrNotFound)
	}
	diff(t, "no ghost row", collect(t, s.Batches(ctx, 1)), all)
}

func testLimits(t *testing.T, o Options) {
	ctx, s, h := newContext(t), o.New(t), newScript(3)
	big := h.vaa(0)
	big.Payload = make([]byte, archive.MaxBatchBytes/2+1)
	h.sets[0].Sign(big)
	other := h.vaa(0)
	other.Payload = big.Payload
	h.sets[0].Sign(other)
	two := h.batch(quorum(big), quorum(other))
	if err := s.Append(ctx, two); !errors.Is(err, archive.ErrTooLarge) {
		t.Errorf("two events of together %d bytes: got %v, want %v", two.Bytes(), err, archive.ErrTooLarge)
	}
	h.next = 1
	huge := h.vaa(0)
	huge.Payload = make([]byte, archive.MaxBatchBytes+1)
	h.sets[0].Sign(huge)
	one := h.batch(quorum(huge))
	put(t, s, one)
	one.Applied = true
	diff(t, "one larger event goes alone", collect(t, s.Batches(ctx, 1)), []archive.Batch{one})
	diff(t, "its row", mustGet(t, s, huge.MessageID(), archive.Columns{}), project(t, huge.MessageID(), one.Events...))
}

func testWatermark(t *testing.T, o Options) {
	ctx, s, h := newContext(t), o.New(t), newScript(4)
	w, err := s.Watermark(ctx)
	check(t, "watermark", err)
	if w != 1 {
		t.Fatalf("watermark of an empty store: got %d, want 1", w)
	}
	put(t, s, h.batch(quorum(h.vaa(0))), h.batch(quorum(h.vaa(0)), quorum(h.vaa(0))))
	for _, step := range []struct{ raise, want archive.Offset }{{2, 2}, {4, 4}, {2, 4}, {4, 4}} {
		check(t, "raise", s.RaiseWatermark(ctx, step.raise))
		w, err := s.Watermark(ctx)
		check(t, "watermark", err)
		if w != step.want {
			t.Fatalf("after raising to %d: got %d, want %d", step.raise, w, step.want)
		}
	}
}

func testSeal(t *testing.T, o Options) {
	ctx, s := newContext(t), o.New(t)
	check(t, "an open store", s.CheckOpen(ctx))
	if o.Seal == nil {
		t.Skip("the implementation cannot be sealed in a test")
	}
	o.Seal(t, s)
	if err := s.CheckOpen(ctx); !errors.Is(err, archive.ErrSealed) {
		t.Fatalf("a sealed store: got %v, want %v", err, archive.ErrSealed)
	}
}

func testClock(t *testing.T, o Options) {
	ctx, s := newContext(t), o.New(t)
	first, err := s.Clock(ctx)
	check(t, "clock", err)
	second, err := s.Clock(ctx)
	check(t, "clock", err)
	if second.Before(first) {
		t.Errorf("the clock went from %s to %s", first, second)
	}
	if first.Year() < 2024 || time.Until(first).Abs() > time.Hour {
		t.Errorf("the clock says %s", first)
	}
}

func testReopen(t *testing.T, o Options) {
	if o.Reopen == nil {
		t.Skip("the implementation keeps nothing when it is closed")
	}
	ctx, s, h := newContext(t), o.New(t), newScript(5)
	b := h.batch(quorum(h.vaa(0)))
	check(t, "append", s.Append(ctx, b))
	s = o.Reopen(t, s)
	diff(t, "journal", collect(t, s.Batches(ctx, 1)), []archive.Batch{b})
	check(t, "apply", s.Apply(ctx, b))
	check(t, "mark applied", s.MarkApplied(ctx, b.Offset))
	s = o.Reopen(t, s)
	diff(t, "row", mustGet(t, s, b.Events[0].ID, archive.Columns{}), project(t, b.Events[0].ID, b.Events...))
}

func testCalls(t *testing.T, o Options) {
	if o.CheckCalls == nil {
		t.Skip("the implementation has no requests to count")
	}
	ctx, s, h := newContext(t), o.New(t), newScript(6)
	b := h.batch(quorum(h.vaa(0)), quorum(h.vaa(0)))
	put(t, s, b)
	for _, c := range []struct {
		name string
		want int
		call func()
	}{
		{"get", 1, func() { mustGet(t, s, b.Events[0].ID, archive.Columns{}) }},
		{"get one column", 1, func() {
			mustGet(t, s, b.Events[0].ID, archive.Columns{Qualifiers: []string{"SignedVAA"}, Latest: true})
		}},
		{"get all", 1, func() {
			_, err := s.GetAll(ctx, idsOf(b.Events), archive.Columns{})
			check(t, "get all", err)
		}},
		{"scan", 1, func() { collect(t, s.Scan(ctx, archive.Range{Limit: 10}, archive.Columns{})) }},
		{"append", 1, func() { check(t, "append", s.Append(ctx, h.batch(quorum(h.vaa(0))))) }},
		{"read the journal's end", 1, func() { collect(t, s.Batches(ctx, h.next)) }},
		{"check open", 1, func() { check(t, "check open", s.CheckOpen(ctx)) }},
	} {
		if got := o.CheckCalls(t, s, c.call); got != c.want {
			t.Errorf("%s took %d requests, want %d", c.name, got, c.want)
		}
	}
}
