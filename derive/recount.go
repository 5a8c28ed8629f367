package derive

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// RowStore is the part of the archive that a recount needs.
type RowStore interface {
	archive.Reader
	Store
}

const (
	recountRows  = 1000    // rows that are read between two looks at the journal
	maxMeanwhile = 1 << 20 // messages that may change while a recount runs
)

// recount counts the rows as they were at one offset of the journal while they go on
// changing. What a row held then is in the row itself if the journal has no later
// event of it, and else what the first such event says stood before it.
//
// It holds the counts of each minute that has messages, of the network and of one
// chain and one emitter at a time, and what changes meanwhile.
type recount struct {
	store RowStore
	at    archive.Offset
	// emit is called once for each scope with its buckets, all of them not zero.
	emit func(archive.Scope, map[archive.BucketKey]archive.Counts) error

	tail   archive.Offset // of the journal, as far as it was read
	before map[vaa.MessageID]*archive.Standing
	late   changes // of the events after at; nil: not wanted

	open [3]*minutes // of the network, a chain, an emitter
	rows int
}

// minutes are the counts of a scope by the minute, in Unix seconds.
type minutes struct {
	scope  archive.Scope
	counts map[uint32]archive.Counts
}

func (c *recount) run(ctx context.Context) error {
	c.tail, c.before = c.at+1, map[vaa.MessageID]*archive.Standing{}
	columns := archive.Columns{Qualifiers: []string{
		schema.ColTimestamp, schema.ColDigest, schema.ColSignedVAA, schema.PrefixConflict, schema.PrefixOther,
	}}
	r := archive.Range{Limit: recountRows}
	for {
		var rows []archive.Record
		for row, err := range c.store.Scan(ctx, r, columns) {
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		if len(rows) == 0 {
			break
		}
		// An event is in the journal before it is in a row.
		if err := c.readTail(ctx); err != nil {
			return err
		}
		for i := range rows {
			if err := c.count(&rows[i]); err != nil {
				return err
			}
		}
		r.After = &rows[len(rows)-1].ID
	}
	for level := len(c.open) - 1; level >= 0; level-- {
		if err := c.close(level); err != nil {
			return err
		}
	}
	return nil
}

// readTail reads the journal to its end: until there is nothing where it has come
// to, as one scan may stop short (docs/protocol.md, rule 3).
func (c *recount) readTail(ctx context.Context) error {
	for {
		from := c.tail
		for b, err := range c.store.Batches(ctx, from) {
			if err != nil {
				return err
			}
			for i := range b.Events {
				if e := &b.Events[i]; e.Offset >= from {
					if err := c.meanwhile(e); err != nil {
						return err
					}
				}
			}
			c.tail = b.End()
		}
		if c.tail == from {
			return nil
		}
	}
}

func (c *recount) meanwhile(e *archive.Event) error {
	if _, err := e.After(); err != nil {
		return err
	}
	if _, ok := c.before[e.ID]; !ok {
		if len(c.before) == maxMeanwhile {
			return fmt.Errorf("more than %d messages changed since offset %d: too many to recount at once; try again when rollups have caught up and less comes in", maxMeanwhile, c.at)
		}
		c.before[e.ID] = e.Before
	}
	if c.late == nil {
		return nil
	}
	return c.late.add(e)
}

func (c *recount) count(r *archive.Record) error {
	c.rows++
	standing, changed := c.before[r.ID]
	if !changed {
		standing = r.Standing()
	}
	if standing == nil {
		return nil
	}
	minute := seconds(standing) / 60 * 60
	for level, scope := range archive.Scopes(r.ID) {
		if m := c.open[level]; m == nil || m.scope != scope {
			// Rows come in the order of chains and emitters.
			for inner := len(c.open) - 1; inner >= level; inner-- {
				if err := c.close(inner); err != nil {
					return err
				}
			}
			c.open[level] = &minutes{scope, map[uint32]archive.Counts{}}
		}
		counts := c.open[level].counts[minute]
		counts.Add(standing, 1)
		c.open[level].counts[minute] = counts
	}
	return nil
}

// close emits the buckets of the open scope of a level.
func (c *recount) close(level int) error {
	m := c.open[level]
	if m == nil {
		return nil
	}
	c.open[level] = nil
	buckets := map[archive.BucketKey]archive.Counts{}
	for minute, counts := range m.counts {
		for _, p := range archive.Periods() {
			k := archive.KeyOf(p, m.scope, minute)
			buckets[k] = buckets[k].Sum(counts)
		}
	}
	return c.emit(m.scope, buckets)
}

// Rebuilt is what a rebuild has made.
type Rebuilt struct {
	Generation uint64         `json:"generation,string"`
	Rows       int            `json:"rows"`
	Buckets    int            `json:"buckets"`
	Through    archive.Offset `json:"through,string"` // the journal's offset at which the rows were counted
}

// putBuckets bounds what a rebuild puts at once.
const putBuckets = 10_000

// Rebuild counts all rows into a new generation of buckets, makes it the current one
// and drops the others. Until then the old one answers, and what counts the journal
// goes on with it; a rebuild that is interrupted leaves nothing that counts. wait is
// called before the old one is dropped and should last until requests that use it
// are over.
func Rebuild(ctx context.Context, store RowStore, wait func(context.Context)) (Rebuilt, error) {
	var out Rebuilt
	var err error
	if out.Generation, err = reserve(ctx, store); err != nil {
		return out, fmt.Errorf("begin a generation of rollups: %w", err)
	}
	if out.Through, err = appliedEnd(ctx, store); err != nil {
		return out, err
	}
	if out.Through > 0 {
		c := recount{store: store, at: out.Through, emit: func(_ archive.Scope, counted map[archive.BucketKey]archive.Counts) error {
			out.Buckets += len(counted)
			return putAll(ctx, store, out.Generation, out.Through, counted)
		}}
		err = c.run(ctx)
		if out.Rows = c.rows; err != nil {
			return out, fmt.Errorf("count the rows: %w", err)
		}
		// CRASH HERE: nobody reads the new generation, and the next rebuild drops it.
		if err := store.CommitCursor(ctx, cursorOf(out.Generation), 0, uint64(out.Through)); err != nil {
			return out, err
		}
	}
	if err := catchUp(ctx, store, out.Generation); err != nil {
		return out, err
	}
	current, err := store.Cursor(ctx, cursorGeneration)
	if err != nil {
		return out, err
	}
	if err := store.CommitCursor(ctx, cursorGeneration, current, out.Generation); err != nil {
		return out, fmt.Errorf("make generation %d of rollups the current one, which is %d: %w", out.Generation, current, err)
	}
	// CRASH HERE: the new generation answers, and the next rebuild drops the old one.
	wait(ctx)
	return out, store.DropBuckets(ctx, out.Generation)
}

// reserve returns a number that no other rebuild has or had.
func reserve(ctx context.Context, store Store) (uint64, error) {
	reserved, err := store.Cursor(ctx, cursorReserved)
	if err != nil {
		return 0, err
	}
	return reserved + 1, store.CommitCursor(ctx, cursorReserved, reserved, reserved+1)
}

// appliedEnd returns the offset through which all batches are applied, 0 when none
// is.
func appliedEnd(ctx context.Context, store archive.Journal) (archive.Offset, error) {
	end, err := store.Watermark(ctx)
	if err != nil {
		return 0, err
	}
	for b, err := range applied(ctx, store, end) {
		if err != nil {
			return 0, err
		}
		end = b.End()
	}
	return end - 1, nil
}

func putAll(ctx context.Context, store Store, generation uint64, through archive.Offset, counted map[archive.BucketKey]archive.Counts) error {
	for keys := range slices.Chunk(slices.Collect(maps.Keys(counted)), putBuckets) {
		buckets := make([]archive.Bucket, len(keys))
		for i, k := range keys {
			buckets[i] = archive.Bucket{BucketKey: k, Through: through, Counts: counted[k]}
		}
		if err := store.PutBuckets(ctx, generation, buckets); err != nil {
			return err
		}
	}
	return nil
}

// catchUp counts what was applied meanwhile.
func catchUp(ctx context.Context, store Store, generation uint64) error {
	c, err := NewConsumer(store, nil, nil)
	for more := true; more && err == nil; {
		more, err = c.turn(ctx, generation)
	}
	return err
}
