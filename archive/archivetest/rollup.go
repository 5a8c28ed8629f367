package archivetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

func testBuckets(t *testing.T, o Options) {
	ctx, s := newContext(t), o.New(t)
	two := archive.Scope{Level: archive.LevelChain, Chain: 2}
	emitter := archive.Scope{Level: archive.LevelEmitter, Chain: 2, Emitter: vaa.Address{31: 1}}
	bucket := func(p archive.Period, scope archive.Scope, seconds uint32, through archive.Offset, n int64) archive.Bucket {
		return archive.Bucket{
			BucketKey: archive.KeyOf(p, scope, seconds), Through: through,
			Counts: archive.Counts{Messages: 5 * n, Quorum: 3 * n, Observed: 2 * n, Conflicts: n, Resigned: -n},
		}
	}
	var all []archive.Bucket
	for i, p := range archive.Periods() {
		for j, scope := range []archive.Scope{{}, two, {Level: archive.LevelChain, Chain: 20}, emitter} {
			for k, seconds := range []uint32{0, 86400, 1_700_000_000, 1<<32 - 1} {
				if p.Seconds() == 0 && k > 0 {
					continue
				}
				all = append(all, bucket(p, scope, seconds, archive.Offset(7+i+j), int64(100*i+10*j+k)))
			}
		}
	}
	check(t, "put", s.PutBuckets(ctx, 3, all))
	check(t, "put into another generation", s.PutBuckets(ctx, 2, all[:2]))
	slices.SortFunc(all, func(a, b archive.Bucket) int { return strings.Compare(a.String(), b.String()) })
	diff(t, "all", collect(t, s.ScanBuckets(ctx, 3, "", "", 0)), all)
	diff(t, "none", collect(t, s.ScanBuckets(ctx, 4, "", "", 0)), []archive.Bucket(nil))

	series := archive.BucketPrefix(archive.Period5Min, two)
	first, last := archive.KeyOf(archive.Period5Min, two, 86400), archive.KeyOf(archive.Period5Min, two, 1_700_000_000)
	want := slices.DeleteFunc(slices.Clone(all), func(b archive.Bucket) bool {
		return !strings.HasPrefix(b.String(), series) || b.Start < first.Start || b.Start >= last.Start
	})
	diff(t, "a part of one series", collect(t, s.ScanBuckets(ctx, 3, first.String(), last.String(), 0)), want)
	diff(t, "the first", collect(t, s.ScanBuckets(ctx, 3, series, "", 2)), slices.DeleteFunc(slices.Clone(all), func(b archive.Bucket) bool { return b.String() < series })[:2])
	for range s.ScanBuckets(ctx, 3, "", "", 0) {
		break // stopping early is no error
	}

	// Whatever is put later, what is counted through more events stands.
	k := first
	for i, step := range []struct {
		through archive.Offset
		n, want int64
	}{{20, 1, 1}, {19, 2, 1}, {20, 3, 3}, {30, 4, 4}, {1, 5, 4}} {
		check(t, "put", s.PutBuckets(ctx, 3, []archive.Bucket{bucket(k.Period, k.Scope, k.Start, step.through, step.n)}))
		got, err := s.Buckets(ctx, 3, []archive.BucketKey{k})
		check(t, "get", err)
		diff(t, fmt.Sprintf("step %d", i), got[k].Counts, bucket(k.Period, k.Scope, k.Start, 0, step.want).Counts)
	}
	absent := archive.KeyOf(archive.Period1Min, emitter, 60)
	got, err := s.Buckets(ctx, 3, []archive.BucketKey{absent, all[0].BucketKey})
	check(t, "get", err)
	diff(t, "those that are there", got, map[archive.BucketKey]archive.Bucket{all[0].BucketKey: all[0]})
	many := make([]archive.Bucket, 2500)
	keys := make([]archive.BucketKey, len(many))
	for i := range many {
		many[i] = bucket(archive.Period1Min, emitter, uint32(60*i), 50, int64(i))
		keys[i] = many[i].BucketKey
	}
	check(t, "put many", s.PutBuckets(ctx, 5, many))
	if got, err = s.Buckets(ctx, 5, keys); err != nil || len(got) != len(keys) || got[keys[2499]] != many[2499] {
		t.Errorf("got %d buckets of %d, %v", len(got), len(keys), err)
	}
	check(t, "nothing", s.PutBuckets(ctx, 5, nil))

	check(t, "drop", s.DropBuckets(ctx, 5))
	for generation, want := range map[uint64]int{2: 0, 3: 0, 5: len(many)} {
		if got := collect(t, s.ScanBuckets(ctx, generation, "", "", 0)); len(got) != want {
			t.Errorf("generation %d has %d buckets, want %d", generation, len(got), want)
		}
	}
}
