package derive

import (
	"context"
	"iter"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// changes are what events do to buckets, by ascending offset.
type changes map[archive.BucketKey][]change

type change struct {
	offset archive.Offset
	counts archive.Counts // to be added
}

// add adds what an event does. Events are added by ascending offset.
func (c changes) add(e *archive.Event) error {
	after, err := e.After()
	if err != nil {
		return err
	}
	if e.Before != nil && *e.Before == *after {
		return nil
	}
	if e.Before != nil {
		c.count(e, e.Before, -1)
	}
	c.count(e, after, 1)
	return nil
}

func (c changes) count(e *archive.Event, s *archive.Standing, n int64) {
	var counts archive.Counts
	counts.Add(s, n)
	for _, k := range keysOf(e.ID, seconds(s)) {
		if last := len(c[k]) - 1; last >= 0 && c[k][last].offset == e.Offset {
			c[k][last].counts = c[k][last].counts.Sum(counts)
			continue
		}
		c[k] = append(c[k], change{e.Offset, counts})
	}
}

// bring adds those changes to a bucket that it does not have, and reports whether
// there were any. The bucket is then that of the journal through its last change,
// whoever counts it.
func (c changes) bring(b *archive.Bucket) bool {
	through := b.Through
	for _, change := range c[b.BucketKey] {
		if change.offset > through {
			b.Through, b.Counts = change.offset, b.Counts.Sum(change.counts)
		}
	}
	return b.Through > through
}

// until returns a bucket's counts at one offset, moved to those at a later one.
func (c changes) until(k archive.BucketKey, counts archive.Counts, through archive.Offset) archive.Counts {
	for _, change := range c[k] {
		if change.offset <= through {
			counts = counts.Sum(change.counts)
		}
	}
	return counts
}

func seconds(s *archive.Standing) uint32 { return uint32(s.Time.Unix()) } // VAA times are seconds in 32 bits

// keysOf returns the buckets that count a message at a time.
func keysOf(id vaa.MessageID, seconds uint32) []archive.BucketKey {
	keys := make([]archive.BucketKey, 0, 15)
	for _, s := range archive.Scopes(id) {
		for _, p := range archive.Periods() {
			keys = append(keys, archive.KeyOf(p, s, seconds))
		}
	}
	return keys
}

// applied yields the journal's applied batches from an offset on, up to the first
// that is not.
func applied(ctx context.Context, j archive.Journal, from archive.Offset) iter.Seq2[archive.Batch, error] {
	return func(yield func(archive.Batch, error) bool) {
		for b, err := range j.Batches(ctx, from) {
			if err == nil && (!b.Applied || b.Offset > from) {
				return
			}
			if !yield(b, err) || err != nil {
				return
			}
			from = b.End()
		}
	}
}
