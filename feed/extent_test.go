package feed_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/feed"
)

func TestExtent(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		ids := []feed.ID{{Millis: 5, Offset: 1}, {Millis: 5, Offset: 2}, {Millis: 9, Offset: 3}}
		items := []feed.Item{}
		for _, id := range ids {
			items = append(items, feed.Item{ID: id, Data: "{}"})
		}
		for _, want := range []feed.Extent{{}, {First: ids[0], Last: ids[2], Length: 3}} {
			if want.Length > 0 {
				s.set(t, items)
			}
			got, err := s.stream().Extent(t.Context())
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("extent: %v %s", err, diff)
			}
		}
	})
}
