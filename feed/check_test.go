package feed_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
)

// differs says how the entries are not what the journal's offsets first to last
// look like in a stream, "" if they are. It is written from the rules and shares
// no code with the publisher.
func (h *history) differs(epoch uint64, first, last archive.Offset, entries []feed.Entry) string {
	h.t.Helper()
	journal := h.events()
	next := first
	var before feed.ID
	for i, e := range entries {
		if e.From > next || e.ID.Offset < next {
			return fmt.Sprintf("entry %d stands for offsets %d to %d, not from %d on", i, e.From, e.ID.Offset, next)
		}
		if e.ID.Compare(before) <= 0 {
			return fmt.Sprintf("entry %d has id %s after %s", i, e.ID, before)
		}
		before = e.ID
		if e.Epoch != epoch {
			return fmt.Sprintf("entry %d is of epoch %d", i, e.Epoch)
		}
		for o := e.From; o <= e.ID.Offset; o++ {
			b, ok := journal[o]
			if !ok {
				return fmt.Sprintf("entry %d stands for offset %d, which the journal lacks", i, o)
			}
			if problem := stands(e, b, o); problem != "" {
				return fmt.Sprintf("entry %d: %s", i, problem)
			}
		}
		next = e.ID.Offset + 1
	}
	if next != last+1 {
		return fmt.Sprintf("the entries end at offset %d, not %d", next-1, last)
	}
	return ""
}

// stands says how an entry does not stand for the batch's event at an offset.
func stands(e feed.Entry, b archive.Batch, o archive.Offset) string {
	if o == e.ID.Offset && e.ID.Millis != uint64(b.WallTime.UnixMilli()) {
		return fmt.Sprintf("id %s, but the batch is of %d", e.ID, b.WallTime.UnixMilli())
	}
	if b.Class == archive.ClassHistory {
		if e.Event != nil {
			return fmt.Sprintf("offset %d is history, but has an entry of its own", o)
		}
		return ""
	}
	if e.Event == nil {
		return fmt.Sprintf("offset %d is live, but skipped", o)
	}
	if e.Network != network || e.Class != archive.ClassLive {
		return fmt.Sprintf("network %s, class %s", e.Network, e.Class)
	}
	want := b.Events[o-b.Offset]
	want.RecordedAt = b.WallTime
	if want.Kind == archive.KindObserved {
		want.Bytes = nil // a body is not a signed VAA
	}
	if reflect.DeepEqual(want, *e.Event) {
		return "" // far quicker than a diff
	}
	return cmp.Diff(want, *e.Event)
}

func TestStandsNoticesWhatIsWrong(t *testing.T) {
	h := newHistory(t, 1)
	m := &model{}
	h.live(3)
	h.old(2)
	h.live(1)
	p := h.publisher(m, 5)
	publish(t, p)
	good := decode(t, m.snapshot())
	h.check(5, 1, 6, good)
	for name, spoil := range map[string]func([]feed.Entry) []feed.Entry{
		"a hole":          func(e []feed.Entry) []feed.Entry { return append(e[:1], e[2:]...) },
		"a repetition":    func(e []feed.Entry) []feed.Entry { return append(e[:1], e...) },
		"a missing end":   func(e []feed.Entry) []feed.Entry { return e[:4] },
		"another epoch":   func(e []feed.Entry) []feed.Entry { e[2].Epoch = 4; return e },
		"another time":    func(e []feed.Entry) []feed.Entry { e[2].ID.Millis++; return e },
		"live is skipped": func(e []feed.Entry) []feed.Entry { e[1].Event = nil; return e },
		"another event":   func(e []feed.Entry) []feed.Entry { e[1].Event = e[0].Event; return e },
		"history is sent": func(e []feed.Entry) []feed.Entry { e[3].Event = e[0].Event; return e },
	} {
		if h.differs(5, 1, 6, spoil(append([]feed.Entry(nil), good...))) == "" {
			t.Errorf("%s is not noticed", name)
		}
	}
}

func decode(t testing.TB, items []feed.Item) []feed.Entry {
	t.Helper()
	entries := make([]feed.Entry, len(items))
	for i, item := range items {
		var err error
		if entries[i], err = feed.ParseEntry(item); err != nil {
			t.Fatal(err)
		}
	}
	return entries
}
