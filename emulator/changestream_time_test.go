package emulator_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/attestry/attestry/emulator"
)

// bubbleWorld is a server whose table has a change stream, for a test under
// synctest's clock, which moves when everything waits.
func bubbleWorld(t *testing.T) *world {
	t.Helper()
	w := start(t, vfs.NewMem(), "data", emulator.Options{})
	t.Cleanup(func() { w.stop(t) })
	w.createTable(t)
	w.setRetention(t, day)
	return w
}

func TestChangeStreamHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := bubbleWorld(t)
		begin := time.Now()
		req := startAt(timestamppb.New(begin))
		s := w.changes(t, req)
		var token *btpb.StreamContinuationToken
		for i := range 3 {
			r, err := s.next()
			check(t, err)
			want := begin.Add(time.Duration(i+1) * 5 * time.Second)
			if r.kind != "HEARTBEAT" || !time.Now().Equal(want) {
				t.Errorf("%s at %s, want a heartbeat at %s", r.kind, time.Now(), want)
			}
			// Nothing was written since, which the watermark says: it moves.
			if low := want.Add(-5 * time.Second); r.watermark.Before(low) || r.watermark.After(want) {
				t.Errorf("watermark %s, want %s to %s", r.watermark, low, want)
			}
			token = r.token
		}
		s.cancel()
		w.mutate(t, "a", set("f", "q", 0, ""))
		diff(t, "from a heartbeat's token", texts(w.changes(t, resume(partition("", ""), token)).take(1)), `a set f:q@0=""`)
		req.HeartbeatDuration = durationpb.New(time.Minute)
		s = w.changes(t, req)
		s.take(1)
		before := time.Now()
		r, err := s.next()
		check(t, err)
		if r.kind != "HEARTBEAT" || time.Since(before) != time.Minute {
			t.Errorf("%s after %s, want a heartbeat after a minute", r.kind, time.Since(before))
		}
	})
}

func TestChangeStreamEndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := bubbleWorld(t)
		begin := time.Now()
		until := func(end time.Time) (rows []string) {
			t.Helper()
			req := startAt(timestamppb.New(begin))
			req.EndTime = timestamppb.New(end)
			s := w.changes(t, req)
			for {
				r, err := s.next()
				check(t, err)
				if r.kind == "CLOSE" {
					break
				}
				if r.kind == "USER" {
					rows = append(rows, r.row)
				}
			}
			if _, err := s.next(); err == nil || !strings.Contains(err.Error(), "EOF") {
				t.Errorf("behind the close: %v", err)
			}
			return rows
		}
		w.mutate(t, "a", set("f", "q", 0, ""))
		time.Sleep(time.Second)
		w.mutate(t, "b", set("f", "q", 0, ""))
		all := w.changes(t, startAt(timestamppb.New(begin))).take(2)
		diff(t, "the end is inclusive", until(all[1].commit), "a", "b")
		diff(t, "before the second", until(all[1].commit.Add(-time.Microsecond)), "a")
		diff(t, "before all", until(begin.Add(-time.Second)))

		end := time.Now().Add(7 * time.Second)
		var late sync.WaitGroup
		late.Go(func() {
			time.Sleep(6 * time.Second)
			w.mutate(t, "c", set("f", "q", 0, ""))
			time.Sleep(2 * time.Second)
			w.mutate(t, "d", set("f", "q", 0, ""))
		})
		diff(t, "an end to come", until(end), "a", "b", "c")
		if now := time.Now(); !now.Equal(end) {
			t.Errorf("the stream to %s ended at %s", end, now)
		}
		late.Wait()
	})
}

func TestChangeStreamGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := bubbleWorld(t)
		begin := timestamppb.Now()
		for i := range int64(4) { // of at most two
			w.mutate(t, "a", set("g", "q", 1000*i, ""))
		}
		got := w.changes(t, startAt(begin)).take(5)[4]
		if got.kind != "GARBAGE_COLLECTION" {
			t.Errorf("a change of kind %s", got.kind)
		}
		diff(t, "what was collected", []string{got.String()}, "a delete g:q [0,2000)")
		diff(t, "what is left", w.cells(t, &btpb.ReadRowsRequest{}), "a/g:q@3000=", "a/g:q@2000=")
	})
}

func TestChangeStreamRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := bubbleWorld(t)
		begin := time.Now()
		w.mutate(t, "a", set("f", "q", 0, ""))
		s := w.changes(t, startAt(timestamppb.New(begin)))
		a := s.take(1)[0]
		s.cancel()
		time.Sleep(12 * time.Hour)
		w.mutate(t, "b", set("f", "q", 0, ""))
		time.Sleep(12*time.Hour + time.Minute)
		// Of a's change nobody is told any more, though the sweeper may not have come by.
		wantCode(t, "from the beginning", w.changesError(t, startAt(timestamppb.New(begin))), codes.OutOfRange, "retention")
		diff(t, "within the period", texts(w.changes(t, startAt(timestamppb.New(time.Now().Add(-day+time.Minute)))).take(1)), `b set f:q@0=""`)
		s = w.changes(t, resume(partition("", ""), a.token))
		b := s.take(1)[0]
		diff(t, "a token that nothing was lost behind", texts([]*record{b}), `b set f:q@0=""`)
		s.cancel()
		time.Sleep(day)
		wantCode(t, "a token that something was lost behind", w.changesError(t, resume(partition("", ""), a.token)), codes.OutOfRange, "older")
		w.mutate(t, "c", set("f", "q", 0, ""))
		diff(t, "the next token", texts(w.changes(t, resume(partition("", ""), b.token)).take(1)), `c set f:q@0=""`)
	})
}

// TestChangeStreamComplete has writers, a reader that follows them, and a restart
// in the middle of both: what was acknowledged comes once, and each row's changes
// in their order.
func TestChangeStreamComplete(t *testing.T) {
	const writers, writes = 8, 60
	dir := t.TempDir()
	w := start(t, nil, dir, emulator.Options{})
	w.createTable(t)
	w.setRetention(t, day)
	begin := timestamppb.Now()

	phase := func(first int) *sync.WaitGroup {
		var all sync.WaitGroup
		for n := range writers {
			all.Go(func() {
				for i := first; i < first+writes; i++ {
					row := func(k int) *btpb.MutateRowsRequest_Entry {
						return &btpb.MutateRowsRequest_Entry{RowKey: fmt.Appendf(nil, "%d-%d", n, k), Mutations: []*btpb.Mutation{set("f", "q", 0, fmt.Sprint(i))}}
					}
					stream, err := w.data.MutateRows(t.Context(), &btpb.MutateRowsRequest{TableName: table, Entries: []*btpb.MutateRowsRequest_Entry{row(0), row(1)}})
					if err == nil {
						_, err = stream.Recv()
					}
					if err != nil {
						t.Errorf("write %d of %d: %v", i, n, err)
						return
					}
				}
			})
		}
		return &all
	}
	var seen []*record
	first := phase(0)
	s := w.changes(t, startAt(begin))
	seen = append(seen, s.take(writers*writes)...) // half of them
	token := s.last.token
	first.Wait()
	w.stop(t)
	w = start(t, nil, dir, emulator.Options{})
	defer func() { w.stop(t) }()
	second := phase(writes)
	s = w.changes(t, resume(partition("", ""), token))
	seen = append(seen, s.take(3*writers*writes)...)
	second.Wait()
	token = s.last.token
	s.cancel()
	end := resume(partition("", ""), token)
	end.EndTime = timestamppb.Now()
	if r, err := w.changes(t, end).next(); err != nil || r.kind != "CLOSE" {
		t.Errorf("behind the last: %v, %v", r, err)
	}

	perRow := map[string][]string{}
	for i, r := range seen {
		if i > 0 && !r.commit.After(seen[i-1].commit) {
			t.Fatalf("commit times %s, then %s", seen[i-1].commit, r.commit)
		}
		perRow[r.row] = append(perRow[r.row], r.mutations...)
	}
	var want []string
	for i := range 2 * writes {
		want = append(want, fmt.Sprintf("set f:q@0=%q", fmt.Sprint(i)))
	}
	if len(perRow) != 2*writers {
		t.Errorf("changes of %d rows, want %d", len(perRow), 2*writers)
	}
	for row, got := range perRow {
		if !slices.Equal(got, want) {
			t.Errorf("row %s: %d changes, want %d in order", row, len(got), len(want))
		}
	}
}
