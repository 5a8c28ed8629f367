// Package archivetest is the conformance suite of archive.Store: what every
// implementation must do, whatever keeps its bytes.
package archivetest

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

// Options describe the implementation under test.
type Options struct {
	// New returns an empty store for devnet, of its own for each call.
	New func(t *testing.T) archive.Store
	// Reopen closes a store and opens it again on the same data. Nil: the
	// implementation keeps nothing, and what needs it is skipped.
	Reopen func(t *testing.T, s archive.Store) archive.Store
	// Seal makes the store's generation one that nothing may be settled in.
	Seal func(t *testing.T, s archive.Store)
	// CheckCalls, when not nil, runs f and returns how many requests to the server
	// it took.
	CheckCalls func(t *testing.T, s archive.Store, f func()) int
}

// Run runs the suite.
func Run(t *testing.T, o Options) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Options)
	}{
		{"append", testAppend},
		{"batches", testBatches},
		{"apply", testApply},
		{"apply in any order", testApplyAnyOrder},
		{"records", testRecords},
		{"columns", testColumns},
		{"scan", testScan},
		{"lookup", testLookup},
		{"lookup windows", testLookupWindows},
		{"lookup conflicts", testLookupConflicts},
		{"where", testWhere},
		{"evidence", testEvidence},
		{"cursors", testCursors},
		{"watermark", testWatermark},
		{"rejects", testRejects},
		{"guardian sets", testGuardianSets},
		{"buckets", testBuckets},
		{"seal", testSeal},
		{"clock", testClock},
		{"reopen", testReopen},
		{"calls", testCalls},
		{"limits", testLimits},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, o) })
	}
}

// timeout bounds every call of the suite.
const timeout = 20 * time.Second

func newContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
	t.Cleanup(cancel)
	return ctx
}

// script builds histories of real, signed messages.
type script struct {
	r    *rand.Rand
	sets []*vaatest.Guardians
	wall time.Time
	next archive.Offset
	n    int
}

func newScript(seed uint64) *script {
	s := &script{r: rand.New(rand.NewPCG(seed, 1)), wall: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC), next: 1}
	for i := range uint32(4) {
		s.sets = append(s.sets, vaatest.NewGuardians(seed, i, 3))
	}
	return s
}

func (s *script) vaa(set int) *vaa.VAA { return vaatest.NewVAA(s.r, s.sets[set]) }

// quorum returns the event of a VAA, canonical unless the caller changes it.
func quorum(v *vaa.VAA) archive.Event {
	set := v.GuardianSetIndex
	return archive.Event{
		Kind: archive.KindQuorum, ID: v.MessageID(), Digest: v.Digest(), GuardianSetIndex: &set, Canonical: true,
		Time: v.Time(), Source: "archivetest", Bytes: v.Append(nil),
	}
}

func observed(b *vaa.Body) archive.Event {
	return archive.Event{
		Kind: archive.KindObserved, ID: b.MessageID(), Digest: b.Digest(), Canonical: true, Time: b.Time(),
		Source: "archivetest", Bytes: b.Append(nil),
	}
}

func linked(e archive.Event, txID string, trust archive.Trust) archive.Event {
	e.Link = &archive.Link{TxID: txID, Trust: trust, Source: "archivetest"}
	e.InitiatingTxID = &txID
	return e
}

// batch makes the next batch of the history.
func (s *script) batch(events ...archive.Event) archive.Batch {
	s.n++
	s.wall = s.wall.Add(time.Second)
	b := archive.Batch{
		Offset: s.next, ID: fmt.Sprintf("batch-%d", s.n), Writer: "writer-1", WallTime: s.wall, Class: archive.ClassLive, Events: events,
	}
	for i := range b.Events {
		b.Events[i].Offset = s.next + archive.Offset(i)
		b.Events[i].RecordedAt = b.WallTime
	}
	s.next = b.End()
	return b
}

// put appends and applies batches.
func put(t *testing.T, s archive.Store, batches ...archive.Batch) {
	t.Helper()
	ctx := newContext(t)
	for _, b := range batches {
		check(t, "append", s.Append(ctx, b))
		check(t, "apply", s.Apply(ctx, b))
		check(t, "mark applied", s.MarkApplied(ctx, b.Offset))
	}
}

func check(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func collect[T any](t *testing.T, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for v, err := range seq {
		if err != nil {
			t.Fatalf("after %d: %v", len(all), err)
		}
		all = append(all, v)
	}
	return all
}

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return // cmp is slow on large values
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func mustGet(t *testing.T, s archive.Store, id vaa.MessageID, c archive.Columns) archive.Record {
	t.Helper()
	r, err := s.Get(newContext(t), id, c)
	check(t, "get", err)
	return r
}

// project folds events in their order, the plain way.
func project(t *testing.T, id vaa.MessageID, events ...archive.Event) archive.Record {
	t.Helper()
	r := archive.Record{ID: id}
	for _, e := range events {
		check(t, "project", r.Apply(e))
	}
	return r
}

func txID(n int) string { return hex.EncodeToString(bytes.Repeat([]byte{byte(n)}, 32)) }
