package fsck

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

// Memory that a fact takes beside its index keys, and that an index key takes,
// approximately.
const (
	factBytes = 512
	keyBytes  = 64
)

// fact is an event of the journal as far as it is remembered: without its bytes.
type fact struct {
	archive.Event
	batch   archive.Offset
	applied bool
	kept    bool     // the journal has the bytes
	sum     uint64   // of the bytes
	indexed []uint64 // sums of the index cells that it asks for
}

// slice holds the facts of the messages whose row keys are in (after, last], all
// behind after when last is empty.
type slice struct {
	c           *checker
	after, last string
	end         archive.Offset // of the journal that was read
	facts       map[vaa.MessageID][]fact
	size        int64
	expected    map[uint64]*expected // by sum of index key and digest
}

// expected is a cell of the index that must be there.
type expected struct {
	id       vaa.MessageID
	required bool // false: it may be on its way
	seen     bool
}

func newSlice(c *checker, after string) *slice {
	return &slice{c: c, after: after, facts: map[vaa.MessageID][]fact{}, expected: map[uint64]*expected{}}
}

func (s *slice) holds(key string) bool { return key > s.after && (s.last == "" || key <= s.last) }

// add takes those events of a batch that are of the slice's messages.
func (s *slice) add(b *archive.Batch) {
	for i := range b.Events {
		if e := &b.Events[i]; s.holds(rowkey.Of(e.ID)) {
			f := s.c.factOf(b, e)
			s.facts[e.ID] = append(s.facts[e.ID], f)
			s.size += size(&f)
		}
	}
	if s.size > s.c.cfg.MemoryBytes {
		s.cut()
	}
}

// cut leaves to a later pass the messages with the highest keys.
func (s *slice) cut() {
	keep := int64(0)
	for _, id := range s.ids() {
		if s.last != "" && keep >= s.c.cfg.MemoryBytes/2 {
			delete(s.facts, id)
			continue
		}
		for i := range s.facts[id] {
			keep += size(&s.facts[id][i])
		}
		s.last = rowkey.Of(id)
	}
	s.size = keep
}

// ids returns the messages in the order of their row keys.
func (s *slice) ids() []vaa.MessageID {
	return slices.SortedFunc(maps.Keys(s.facts), func(a, b vaa.MessageID) int { return cmp.Compare(rowkey.Of(a), rowkey.Of(b)) })
}

// applied notes that a batch has been applied since it was read.
func (s *slice) applied(batch archive.Offset) {
	for _, facts := range s.facts {
		for i := range facts {
			facts[i].applied = facts[i].applied || facts[i].batch == batch
		}
	}
}

func size(f *fact) int64 { return factBytes + int64(len(f.indexed))*keyBytes }

func (c *checker) factOf(b *archive.Batch, e *archive.Event) fact {
	f := fact{Event: *e, batch: b.Offset, applied: b.Applied, kept: e.Bytes != nil, sum: c.sum(e.Bytes)}
	f.RecordedAt = b.WallTime
	cells, err := archive.IndexCells(c.info.Network, e)
	if err == nil { // else it was found when the batch was checked
		for _, cell := range cells {
			f.indexed = append(f.indexed, c.indexSum(cell.Key, cell.Digest))
		}
	}
	f.Bytes = nil
	return f
}

func (c *checker) sum(b []byte) uint64 { return maphash.Bytes(c.seed, b) }

func (c *checker) indexSum(key string, d vaa.Digest) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	h.WriteString(key) //nolint:errcheck // a hash does not fail
	h.Write(d[:])      //nolint:errcheck // a hash does not fail
	return h.Sum64()
}

// expect notes that a cell of the index must be there, or may be.
func (s *slice) expect(sum uint64, id vaa.MessageID, required bool) {
	if e := s.expected[sum]; e != nil {
		e.required = e.required || required
		return
	}
	s.expected[sum] = &expected{id: id, required: required}
}
