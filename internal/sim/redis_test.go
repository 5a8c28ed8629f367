package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
)

// redisModel is a stream as Redis keeps it, and what holds of it at any moment:
// it is dense, of one epoch, and no event ever has two forms within an epoch.
type redisModel struct {
	w      *world
	items  []entry
	lastID feed.ID // survives the removal of all entries
	older  []redisState
	down   int // step until which it does not answer
	seen   map[position]feed.Item
}

// entry is an item and what it says.
type entry struct {
	feed.Item
	feed.Entry
}

// redisState is what a replica may have that becomes the primary.
type redisState struct {
	items  []entry
	lastID feed.ID
}

type position struct {
	epoch  uint64
	offset archive.Offset
}

var errRedis = errors.New("redis refuses")

func newRedisModel(w *world) *redisModel {
	return &redisModel{w: w, seen: map[position]feed.Item{}}
}

// accident is what happens to Redis without the archive's doing.
func (m *redisModel) accident(w *world) {
	switch w.r.IntN(5) {
	case 0: // flushed
		m.items, m.lastID = nil, feed.ID{}
	case 1: // emptied by trimming, which does not forget the last id
		m.items = nil
	case 2, 3: // failed over to a replica that lags
		if n := len(m.older); n > 0 {
			s := m.older[max(n-1-w.r.IntN(6), 0)]
			m.items, m.lastID = slices.Clone(s.items), s.lastID
		}
	case 4:
		m.down = w.step + w.r.IntN(60)
	}
}

func (m *redisModel) last() feed.Item {
	if len(m.items) == 0 {
		return feed.Item{}
	}
	return m.items[len(m.items)-1].Item
}

func (m *redisModel) same(a, b feed.Item) bool {
	switch m.w.off {
	case blindPublish:
		return true
	case anyEpoch:
		return a.ID == b.ID
	}
	return a == b
}

func (m *redisModel) append(last feed.Item, items []feed.Item) (feed.Item, error) {
	if found := m.last(); !m.same(found, last) {
		return found, nil
	}
	m.older = append(m.older, redisState{slices.Clone(m.items), m.lastID})
	if len(m.items) == 0 && m.w.off != keptLastID {
		m.lastID = feed.ID{}
	}
	for _, item := range items {
		if item.ID.Compare(m.lastID) <= 0 {
			return feed.Item{}, errRedis // the script ends, what it has written stays
		}
		e, err := feed.ParseEntry(item)
		if err != nil {
			m.w.problem("stream: %w", err)
			return feed.Item{}, err
		}
		m.check(item, &e)
		m.items, m.lastID = append(m.items, entry{item, e}), item.ID
	}
	return m.last(), nil
}

// check holds an entry against the one before it, the journal of its epoch, and
// all that was ever seen.
func (m *redisModel) check(item feed.Item, e *feed.Entry) {
	if n := len(m.items); n > 0 {
		if p := &m.items[n-1]; p.Epoch != e.Epoch || e.From != p.Entry.ID.Offset+1 {
			m.w.problem("stream: entry %s from offset %d of epoch %d behind entry %s of epoch %d", e.ID, e.From, e.Epoch, p.Entry.ID, p.Epoch)
		}
	}
	at := position{e.Epoch, e.ID.Offset}
	before, ok := m.seen[at]
	if ok && before.ID != item.ID {
		m.w.problem("stream: offset %d of epoch %d had the id %s and now has %s", at.offset, at.epoch, before.ID, item.ID)
	}
	if ok && e.Event != nil && before.Data != item.Data {
		m.w.problem("stream: offset %d of epoch %d had other data", at.offset, at.epoch)
	}
	m.seen[at] = item
	m.w.checkEntry(e)
}

// checkEntry holds an entry against the journal: it is applied and of the class.
func (w *world) checkEntry(e *feed.Entry) {
	g := w.generations[e.Epoch-1]
	for o := e.From; o <= e.ID.Offset; {
		b, ok, err := holding(context.Background(), g.store, o)
		switch {
		case err != nil || !ok:
			w.problem("stream: the journal of epoch %d has nothing at offset %d: %v", e.Epoch, o, err)
			return
		case !b.Applied:
			w.problem("stream: the batch at offset %d of epoch %d is not applied", b.Offset, e.Epoch)
		case (e.Event == nil) != (b.Class == archive.ClassHistory):
			w.problem("stream: offset %d is of class %s", o, b.Class)
		case e.Event != nil:
			have := &b.Events[o-b.Offset]
			if have.ID != e.Event.ID || have.Digest != e.Event.Digest || have.Kind != e.Event.Kind {
				w.problem("stream: offset %d of epoch %d is another event than the journal's", o, e.Epoch)
			}
		}
		o = b.End()
	}
}

func (m *redisModel) delete(last feed.Item, epoch uint64) (feed.Item, error) {
	found := m.last()
	if !m.same(found, last) {
		return found, nil
	}
	if n := len(m.items); n > 0 && m.items[n-1].Epoch > epoch {
		m.w.problem("stream: a publisher of epoch %d deletes a stream of epoch %d", epoch, m.items[n-1].Epoch)
	}
	m.older = nil // older states are replaced as well
	m.items, m.lastID = nil, feed.ID{}
	return feed.Item{}, nil
}

func (m *redisModel) trim(before time.Time) int64 {
	n := 0
	for n < len(m.items)-1 && int64(m.items[n].Item.ID.Millis) < before.UnixMilli() {
		n++
	}
	m.items = slices.Clone(m.items[n:])
	return int64(n)
}

// stream is the stream as one publisher sees it.
type stream struct {
	a     *actor
	m     *redisModel
	epoch uint64
}

func (s *stream) Last(context.Context) (feed.Item, error) {
	if err := s.a.look("read the stream's end"); err != nil {
		return feed.Item{}, err
	}
	if s.m.isDown() {
		return feed.Item{}, errRedis
	}
	return s.m.last(), nil
}

func (s *stream) Append(_ context.Context, last feed.Item, items []feed.Item) (found feed.Item, err error) {
	items = slices.Clone(items)
	if s.m.w.off == idsFromNow {
		for i := range items {
			items[i].ID.Millis = uint64(s.a.now().UnixMilli())
		}
	}
	err = s.do("append to the stream", func() error {
		found, err = s.m.append(last, items)
		return err
	})
	return found, err
}

func (s *stream) Delete(_ context.Context, last feed.Item) (found feed.Item, err error) {
	err = s.do("delete the stream", func() error {
		found, err = s.m.delete(last, s.epoch)
		return err
	})
	return found, err
}

func (s *stream) Trim(_ context.Context, before time.Time, _ int64) (n int64, err error) {
	err = s.do("trim the stream", func() error {
		n = s.m.trim(before)
		return nil
	})
	return n, err
}

func (m *redisModel) isDown() bool { return !m.w.calm && m.w.step < m.down }

func (s *stream) do(what string, effect func() error) error {
	return s.a.call(what, func() error {
		if s.m.isDown() {
			return errRedis
		}
		return effect()
	})
}

// reader follows the stream as a client does and keeps what it was given.
type reader struct {
	name  string
	epoch uint64
	id    feed.ID
	last  archive.Offset // delivered, with all before it from first on
	first archive.Offset
	live  map[archive.Offset]int // deliveries of events
}

// read takes what the stream has behind the reader's position. Readers accept
// from ≤ last+1, ignore to ≤ last, and fill a hole from the journal.
func (d *reader) read(w *world) {
	for i := range w.redis.items {
		e := &w.redis.items[i].Entry
		switch {
		case e.Epoch < d.epoch:
			continue
		case e.Epoch > d.epoch:
			*d = reader{name: d.name, epoch: e.Epoch, first: e.From, last: e.From - 1, live: map[archive.Offset]int{}}
		}
		if e.ID.Compare(d.id) <= 0 {
			continue
		}
		if e.ID.Offset <= d.last {
			w.problem("%s: entry %s comes behind %s but not behind offset %d", d.name, e.ID, d.id, d.last)
		}
		for o := d.last + 1; o < e.From; {
			b, ok, err := holding(context.Background(), w.generations[e.Epoch-1].store, o)
			if err != nil || !ok {
				w.problem("%s: a hole at offset %d that the journal does not fill: %v", d.name, o, err)
				return
			}
			for i := range b.Events {
				if ev := &b.Events[i]; b.Class == archive.ClassLive && ev.Offset >= o && ev.Offset < e.From {
					d.live[ev.Offset]++
				}
			}
			o = b.End()
		}
		if e.Event != nil {
			d.live[e.ID.Offset]++
		}
		d.id, d.last = e.ID, e.ID.Offset
	}
}
