package memarchive

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/attestry/attestry/archive"
)

// Cursor returns the committed position of a source.
func (s *Store) Cursor(ctx context.Context, source string) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursors[source], ctx.Err()
}

// CommitCursor moves a source's position.
func (s *Store) CommitCursor(ctx context.Context, source string, from, to uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if to <= from {
		return s.illegal("cursor of %s from %d to %d does not move forward", source, from, to)
	}
	if s.cursors[source] != from {
		return fmt.Errorf("cursor of %s is %d, not %d: %w", source, s.cursors[source], from, archive.ErrCursorMoved)
	}
	s.cursors[source] = to
	return nil
}

// PutReject keeps or counts a reject.
func (s *Store) PutReject(ctx context.Context, r archive.Reject) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	key := rejectKey(&r)
	r.Count = s.rejects[key].Count + 1
	r.Bytes = r.Bytes[:min(len(r.Bytes), archive.MaxRejectBytes)]
	r.LastSeen = s.now()
	s.rejects[key] = r
	return nil
}

// Rejects yields the kept rejects.
func (s *Store) Rejects(ctx context.Context, after *archive.Reject) iter.Seq2[archive.Reject, error] {
	return func(yield func(archive.Reject, error) bool) {
		s.mu.Lock()
		rejects := maps.Clone(s.rejects)
		s.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(rejects)) {
			if err := ctx.Err(); err != nil {
				yield(archive.Reject{}, err)
				return
			}
			if after != nil && key <= rejectKey(after) {
				continue
			}
			if !yield(rejects[key], nil) {
				return
			}
		}
	}
}

func rejectKey(r *archive.Reject) string { return fmt.Sprintf("%s:%x", r.Reason, r.SHA256) }

// PutGuardianSetUpgrade keeps an upgrade VAA; the first of an index stays.
func (s *Store) PutGuardianSetUpgrade(ctx context.Context, index uint32, raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.upgrades[index]; !ok {
		s.upgrades[index] = slices.Clone(raw)
	}
	return ctx.Err()
}

// GuardianSetUpgrades returns the kept upgrade VAAs.
func (s *Store) GuardianSetUpgrades(ctx context.Context) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var raws [][]byte
	for _, index := range slices.Sorted(maps.Keys(s.upgrades)) {
		raws = append(raws, s.upgrades[index])
	}
	return raws, ctx.Err()
}
