package derive

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
)

// Verified is what a verification has found.
type Verified struct {
	Generation uint64         `json:"generation,string"`
	Through    archive.Offset `json:"through,string"` // the journal's offset at which rows and buckets are compared
	Rows       int            `json:"rows"`
	Buckets    int            `json:"buckets"` // stored
	// Differences are the first 100 of DifferencesTotal.
	Differences      []Difference `json:"differences"`
	DifferencesTotal int          `json:"differencesTotal"`
}

// Difference is a bucket that is not what the rows say.
type Difference struct {
	Bucket string         `json:"bucket"`
	Stored archive.Counts `json:"stored"` // zero where no bucket is stored
	Want   archive.Counts `json:"want"`
}

const maxDifferences = 100

// Verify counts all rows, as they were at the offset through which the current
// generation is counted, and compares every bucket with that. It changes nothing and
// may run beside what counts: what a bucket has counted meanwhile is taken from the
// journal. An error means that the comparison could not be completed.
func Verify(ctx context.Context, store RowStore) (Verified, error) {
	v := verifier{Verified: Verified{Differences: []Difference{}}, store: store, seen: map[archive.Scope]bool{}}
	err := v.run(ctx)
	if err != nil {
		err = fmt.Errorf("verify rollups: %w", err)
	}
	return v.Verified, err
}

type verifier struct {
	Verified
	store   RowStore
	recount recount
	seen    map[archive.Scope]bool // scopes that have rows
}

func (v *verifier) run(ctx context.Context) error {
	var err error
	if v.Generation, err = v.store.Cursor(ctx, cursorGeneration); err != nil {
		return err
	}
	at, err := v.store.Cursor(ctx, cursorOf(v.Generation))
	if err != nil {
		return err
	}
	v.Through = archive.Offset(at)
	v.recount = recount{store: v.store, at: v.Through, late: changes{}, emit: func(s archive.Scope, want map[archive.BucketKey]archive.Counts) error {
		return v.compare(ctx, s, want)
	}}
	if err := v.recount.run(ctx); err != nil {
		return err
	}
	v.Rows = v.recount.rows
	if err := v.strangers(ctx); err != nil {
		return err
	}
	if current, err := v.store.Cursor(ctx, cursorGeneration); err != nil || current != v.Generation {
		return cmp.Or(err, fmt.Errorf("generation %d was replaced by %d meanwhile: verify again", v.Generation, current))
	}
	return nil
}

// compare compares the buckets of a scope with what its rows say.
func (v *verifier) compare(ctx context.Context, s archive.Scope, want map[archive.BucketKey]archive.Counts) error {
	v.seen[s] = true
	var stored []archive.Bucket
	for _, p := range archive.Periods() {
		prefix := archive.BucketPrefix(p, s)
		for b, err := range v.store.ScanBuckets(ctx, v.Generation, prefix, rowkey.PrefixEnd(prefix), 0) {
			if err != nil {
				return err
			}
			stored = append(stored, b)
		}
	}
	if err := v.recount.readTail(ctx); err != nil { // as far as the buckets are counted
		return err
	}
	for i := range stored {
		b := &stored[i]
		v.judge(b, want[b.BucketKey])
		delete(want, b.BucketKey)
	}
	for _, k := range slices.SortedFunc(maps.Keys(want), func(a, b archive.BucketKey) int { return cmp.Compare(a.String(), b.String()) }) {
		v.differ(k, archive.Counts{}, want[k])
	}
	return nil
}

// judge compares one stored bucket with its counts at the recount's offset.
func (v *verifier) judge(b *archive.Bucket, at archive.Counts) {
	v.Buckets++
	if want := v.recount.late.until(b.BucketKey, at, b.Through); b.Counts != want {
		v.differ(b.BucketKey, b.Counts, want)
	}
}

func (v *verifier) differ(k archive.BucketKey, stored, want archive.Counts) {
	if v.DifferencesTotal++; len(v.Differences) < maxDifferences {
		v.Differences = append(v.Differences, Difference{k.String(), stored, want})
	}
}

// strangers judges the buckets of scopes that had no row: new ones, or wrong.
func (v *verifier) strangers(ctx context.Context) error {
	judge := func(some []archive.Bucket) error {
		if err := v.recount.readTail(ctx); err != nil {
			return err
		}
		for i := range some {
			v.judge(&some[i], archive.Counts{})
		}
		return nil
	}
	var some []archive.Bucket
	for b, err := range v.store.ScanBuckets(ctx, v.Generation, "", "", 0) {
		if err != nil {
			return err
		}
		if v.seen[b.Scope] {
			continue
		}
		if some = append(some, b); len(some) == putBuckets {
			if err := judge(some); err != nil {
				return err
			}
			some = some[:0]
		}
	}
	return judge(some)
}
