package memarchive

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/attestry/attestry/archive"
)

// Buckets returns the stored ones of the keys.
func (s *Store) Buckets(ctx context.Context, generation uint64, keys []archive.BucketKey) (map[archive.BucketKey]archive.Bucket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[archive.BucketKey]archive.Bucket{}
	for _, k := range keys {
		if b, ok := s.buckets[generation][k]; ok {
			out[k] = b
		}
	}
	return out, ctx.Err()
}

// ScanBuckets yields buckets by their keys' text.
func (s *Store) ScanBuckets(ctx context.Context, generation uint64, start, end string, limit int) iter.Seq2[archive.Bucket, error] {
	return func(yield func(archive.Bucket, error) bool) {
		s.mu.Lock()
		all := slices.Collect(maps.Values(s.buckets[generation]))
		s.mu.Unlock()
		all = slices.DeleteFunc(all, func(b archive.Bucket) bool {
			key := b.String()
			return key < start || end != "" && key >= end
		})
		slices.SortFunc(all, func(a, b archive.Bucket) int { return cmp.Compare(a.String(), b.String()) })
		for i, b := range all {
			if err := ctx.Err(); err != nil {
				yield(archive.Bucket{}, err)
				return
			}
			if !yield(b, nil) || i+1 == limit {
				return
			}
		}
	}
}

// PutBuckets sets buckets that are not behind what is stored.
func (s *Store) PutBuckets(ctx context.Context, generation uint64, buckets []archive.Bucket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.buckets[generation] == nil {
		s.buckets[generation] = map[archive.BucketKey]archive.Bucket{}
	}
	for _, b := range buckets {
		if b.Through == 0 {
			return s.illegal("bucket %s through no offset", b.BucketKey)
		}
		if b.Through >= s.buckets[generation][b.BucketKey].Through {
			s.buckets[generation][b.BucketKey] = b
		}
	}
	return nil
}

// DropBuckets removes generations.
func (s *Store) DropBuckets(ctx context.Context, before uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	maps.DeleteFunc(s.buckets, func(generation uint64, _ map[archive.BucketKey]archive.Bucket) bool { return generation < before })
	return nil
}
