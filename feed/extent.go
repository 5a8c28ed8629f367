package feed

import (
	"context"
	"fmt"
)

// Extent is how far a stream reaches.
type Extent struct {
	First, Last ID    // zero while it is empty
	Length      int64 // entries
}

// Extent returns how far the stream reaches, by one round trip; entries that come or
// go meanwhile may be in one part of the answer and not in another.
func (s *RedisStream) Extent(ctx context.Context) (Extent, error) {
	pipe := s.client.Pipeline()
	length := pipe.XLen(ctx, s.keys[0])
	first := pipe.XRangeN(ctx, s.keys[0], "-", "+", 1)
	last := pipe.XRevRangeN(ctx, s.keys[0], "+", "-", 1)
	if _, err := pipe.Exec(ctx); err != nil {
		return Extent{}, fmt.Errorf("read the extent of redis stream %s: %w", s.keys[0], err)
	}
	e := Extent{Length: length.Val()}
	var err error
	for _, m := range first.Val() {
		if e.First, err = ParseID(m.ID); err != nil {
			return Extent{}, err
		}
	}
	for _, m := range last.Val() {
		if e.Last, err = ParseID(m.ID); err != nil {
			return Extent{}, err
		}
	}
	return e, nil
}
