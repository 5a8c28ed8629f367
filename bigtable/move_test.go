package bigtable_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	cbt "cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

// fillStore journals and applies a history of all kinds of events but linked, with
// state beside it.
func fillStore(t *testing.T, s *bigtable.Store, random *rand.Rand) {
	t.Helper()
	by, later := vaatest.NewGuardians(1, 0, 3), vaatest.NewGuardians(1, 1, 3)
	ctx := t.Context()
	signed := func(v *vaa.VAA, kind archive.Kind, canonical bool) archive.Event {
		set := v.GuardianSetIndex
		return archive.Event{
			Kind: kind, ID: v.MessageID(), Digest: v.Digest(), GuardianSetIndex: &set, Canonical: canonical, Time: v.Time(), Source: "test", Bytes: v.Append(nil),
		}
	}
	next := archive.Offset(1)
	for i := range 4 {
		b := archive.Batch{Offset: next, ID: fmt.Sprint("batch ", i), Writer: "w", WallTime: time.Unix(1_700_000_000+int64(i), 0).UTC(), Class: archive.ClassLive}
		v := vaatest.NewVAA(random, by)
		e := signed(v, archive.KindQuorum, true)
		link := archive.Link{TxID: fmt.Sprintf("%064x", i), Trust: archive.TrustChain, Source: "test"}
		e.Link, e.InitiatingTxID = &link, &link.TxID
		again := signed(vaatest.Resign(v, later), archive.KindResigned, true)
		again.InitiatingTxID = &link.TxID
		loser := signed(vaatest.Equivocate(v, by), archive.KindConflict, false)
		seen := vaatest.NewVAA(random, by)
		observed := archive.Event{Kind: archive.KindObserved, ID: seen.MessageID(), Digest: seen.Digest(), Canonical: true, Time: seen.Time(), Source: "test", Bytes: seen.Body.Append(nil)}
		for _, e := range []archive.Event{e, again, loser, observed} {
			e.Offset, e.RecordedAt = b.End(), b.WallTime
			b.Events = append(b.Events, e)
		}
		next = b.End()
		check(t, s.Append(ctx, b))
		check(t, s.Apply(ctx, b))
		if i < 2 { // the last are not applied as far as the journal says
			check(t, s.MarkApplied(ctx, b.Offset))
		}
		check(t, s.PutEvidence(ctx, []archive.Evidence{{ID: v.MessageID(), Digest: v.Digest(), Signature: by.Signature(v.Digest(), 2)}}))
	}
	check(t, s.RaiseWatermark(ctx, 5))
	check(t, s.CommitCursor(ctx, "file:a", 0, 7))
	check(t, s.PutReject(ctx, archive.Reject{Reason: "no_quorum", Detail: "d", Source: "s", Bytes: []byte("b")}))
	check(t, s.PutGuardianSetUpgrade(ctx, 3, []byte("upgrade")))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// content is everything in a store that a move must keep.
type content struct {
	Records  []archive.Record
	Index    []archive.IndexRow
	Batches  []archive.Batch
	Rejects  []archive.Reject
	Upgrades [][]byte
}

func contentOf(t *testing.T, s *bigtable.Store) (c content) {
	t.Helper()
	ctx := t.Context()
	for r, err := range s.Scan(ctx, archive.Range{}, archive.Columns{}) {
		check(t, err)
		c.Records = append(c.Records, r)
	}
	for r, err := range s.IndexRows(ctx) {
		check(t, err)
		c.Index = append(c.Index, r)
	}
	for b, err := range s.Batches(ctx, 1) {
		check(t, err)
		b.Applied = true
		c.Batches = append(c.Batches, b)
	}
	for r, err := range s.Rejects(ctx, nil) {
		check(t, err)
		c.Rejects = append(c.Rejects, r)
	}
	var err error
	c.Upgrades, err = s.GuardianSetUpgrades(ctx)
	check(t, err)
	return c
}

func openStore(t *testing.T, c *bigtable.Clients) *bigtable.Store {
	t.Helper()
	s, err := bigtable.Open(t.Context(), c.Data, vaa.Devnet)
	check(t, err)
	return s
}

// checkMoved finds the store in its second generation as it was in the first, with
// everything applied and no position of a source.
func checkMoved(t *testing.T, c *bigtable.Clients, old *bigtable.Store, want content) *bigtable.Store {
	t.Helper()
	s := openStore(t, c)
	if diff := cmp.Diff(archive.StoreInfo{Network: vaa.Devnet, Generation: 2, Epoch: 2}, s.Info()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, contentOf(t, s)); diff != "" {
		t.Errorf("what was moved (-before +after):\n%s", diff)
	}
	for b, err := range s.Batches(t.Context(), 1) {
		if err != nil || !b.Applied {
			t.Errorf("batch at %d: applied %t, %v", b.Offset, b.Applied, err)
		}
	}
	if w, err := s.Watermark(t.Context()); err != nil || w != 17 {
		t.Errorf("watermark %d, %v", w, err)
	}
	if p, err := s.Cursor(t.Context(), "file:a"); err != nil || p != 0 {
		t.Errorf("position %d, %v", p, err)
	}
	if err := old.CheckOpen(t.Context()); !errors.Is(err, archive.ErrSealed) {
		t.Errorf("a writer of the old generation: %v", err)
	}
	return s
}

func TestMove(t *testing.T) {
	onEachServer(t, func(t *testing.T, addr string) {
		c := fresh(t, addr, "move")
		create(t, c)
		old := openStore(t, c)
		fillStore(t, old, rand.New(rand.NewPCG(testenv.Seed(t), 0)))
		want := contentOf(t, old)
		moved, err := bigtable.Move(t.Context(), c.Admin, c.Data, vaa.Devnet, 1, 2)
		check(t, err)
		if diff := cmp.Diff(bigtable.Moved{Events: 16, State: 2, Evidence: 4}, moved); diff != "" {
			t.Error(diff)
		}
		checkMoved(t, c, old, want)
		moved, err = bigtable.Move(t.Context(), c.Admin, c.Data, vaa.Devnet, 1, 2)
		if err != nil || moved != (bigtable.Moved{}) {
			t.Errorf("once more: %+v, %v", moved, err)
		}
		for _, bad := range [][2]uint64{{1, 1}, {2, 2}, {1, 4}, {3, 3}} {
			if _, err := bigtable.Move(t.Context(), c.Admin, c.Data, vaa.Devnet, bad[0], bad[1]); bad[1] != 2 && !errors.Is(err, bigtable.ErrMove) {
				t.Errorf("from %d to %d: %v", bad[0], bad[1], err)
			}
		}
	})
}

// TestMoveOfInconsistentTables takes a generation whose journal has a hole, as a
// replica that lags has, and whose rows know of later events: of them nothing stays.
func TestMoveOfInconsistentTables(t *testing.T) {
	onEachServer(t, func(t *testing.T, addr string) {
		c := fresh(t, addr, "hole")
		create(t, c)
		old := openStore(t, c)
		fillStore(t, old, rand.New(rand.NewPCG(testenv.Seed(t), 0)))
		hole := cbt.NewMutation()
		hole.DeleteRow()
		check(t, c.Data.Open(schema.TableID("devnet", 1, schema.Journal)).Apply(t.Context(), rowkey.Offset(9), hole))
		_, err := bigtable.Move(t.Context(), c.Admin, c.Data, vaa.Devnet, 1, 2)
		check(t, err)
		got := contentOf(t, openStore(t, c))
		if len(got.Batches) != 2 || len(got.Records) != 4 {
			t.Errorf("%d batches and %d messages, want 2 and 4", len(got.Batches), len(got.Records))
		}
		for _, r := range got.Records {
			if r.Publication.Offset > 8 {
				t.Errorf("message %s has cells of offset %d, behind the hole", r.ID, r.Publication.Offset)
			}
		}
	})
}

// TestMoveOfJournalAndState restores from the two tables that a backup must have.
func TestMoveOfJournalAndState(t *testing.T) {
	onEachServer(t, func(t *testing.T, addr string) {
		c := fresh(t, addr, "two")
		create(t, c)
		old := openStore(t, c)
		fillStore(t, old, rand.New(rand.NewPCG(testenv.Seed(t), 0)))
		want := contentOf(t, old)
		for i := range want.Records {
			want.Records[i].Evidence = nil
		}
		for _, table := range []string{schema.Attestations, schema.Index} {
			check(t, c.Admin.DeleteTable(t.Context(), schema.TableID("devnet", 1, table)))
		}
		_, err := bigtable.Move(t.Context(), c.Admin, c.Data, vaa.Devnet, 1, 2)
		check(t, err)
		checkMoved(t, c, old, want)
	})
}

// TestMoveInterrupted ends a move at each of its calls in turn, before it and after
// it with the reply lost, and finishes it by the same call.
func TestMoveInterrupted(t *testing.T) {
	addr := testenv.BTTest(t)
	seed := testenv.Seed(t)
	for _, lost := range []bool{false, true} {
		for k := int64(1); ; k++ {
			name := fmt.Sprintf("cut-%t-%d", lost, k)
			c := fresh(t, addr, name)
			create(t, c)
			old := openStore(t, c)
			fillStore(t, old, rand.New(rand.NewPCG(seed, 0)))
			want := contentOf(t, old)
			if !moveCut(t, addr, name, k, lost) {
				if k < 30 {
					t.Errorf("a move makes %d calls only", k)
				}
				break
			}
			_, err := bigtable.Move(t.Context(), c.Admin, c.Data, vaa.Devnet, 1, 2)
			check(t, err)
			checkMoved(t, c, old, want)
			if t.Failed() {
				t.Fatalf("cut at call %d, reply lost: %t", k, lost)
			}
		}
	}
}

// moveCut moves with the k-th call failing and those after it, and reports whether
// there was such a call.
func moveCut(t *testing.T, addr, name string, k int64, lost bool) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls atomic.Int64
	cut := status.Error(codes.Internal, "cut")
	stream := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if calls.Add(1) >= k {
			cancel()
			return nil, cut
		}
		return next(ctx, desc, cc, method, opts...)
	}
	unary := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		n := calls.Add(1)
		if n < k {
			return next(ctx, method, req, reply, cc, opts...)
		}
		var err error
		if lost && n == k {
			err = next(ctx, method, req, reply, cc, opts...)
		}
		cancel()
		return errors.Join(cut, err)
	}
	clients, err := bigtable.DialLocal(t.Context(), addr, name, grpc.WithChainStreamInterceptor(stream), grpc.WithChainUnaryInterceptor(unary))
	check(t, err)
	defer clients.Close()
	_, err = bigtable.Move(ctx, clients.Admin, clients.Data, vaa.Devnet, 1, 2)
	if (err != nil) != (calls.Load() >= k) {
		t.Fatalf("%d calls, cut at %d, and the move ended with %v", calls.Load(), k, err)
	}
	return err != nil
}
