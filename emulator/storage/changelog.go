package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/protobuf/proto"
)

// The log of a table's change stream is in a space of its own:
//
//	0x02 | table u32                    start u64
//	0x02 | table u32 | commit u64 | row  a DataChange with its type and chunks
//
// Commit is the time of the change in microseconds since 1970, raised where two
// would be equal: it is at once the change's number in the log. Nothing at or
// after start was removed from the log, and no time before it is given again.

// ClusterID is the cluster that changes by users are said to be made at, the only
// one of every instance.
const ClusterID = "local"

// ErrTrimmed: a part of the log that was to be read is no longer kept.
var ErrTrimmed = errors.New("the changes are no longer kept")

// Errors that end a ChangeLog.
var (
	// ErrNoChangeStream: the table, or its change stream, is gone.
	ErrNoChangeStream = errors.New("the table has no change stream")
	// ErrClosing: the engine is about to be closed.
	ErrClosing = errors.New("the server is closing")
)

// A Change is what one write changed in one row.
type Change struct {
	Commit int64 // microseconds since 1970; no two changes of a table have the same
	Row    []byte
	// Type is USER or GARBAGE_COLLECTION.
	Type   btpb.ReadChangeStreamResponse_DataChange_Type
	Chunks []*btpb.ReadChangeStreamResponse_MutationChunk // at least one
}

// ChangeLog is the log of a table from the enabling of its change stream to its
// end. Its methods may be called concurrently.
type ChangeLog struct {
	engine *Engine
	id     uint32 // of the table

	order   sync.Mutex // held while changes are given their times and applied
	last    int64      // no change to come is at or before it; guarded by order
	applied int64      // the last change; guarded by order

	mu      sync.Mutex
	start   int64         // as on disk; guarded by mu
	durable int64         // every change up to it is; guarded by mu
	changed chan struct{} // made when it is asked for, closed at the next change; guarded by mu
	ended   error         // guarded by mu
}

// streams are the logs of the tables that have a change stream.
type streams struct {
	mu     sync.RWMutex
	logs   map[uint32]*ChangeLog
	closed bool
}

func (s *streams) of(t *Table) *ChangeLog {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.logs[t.id]
}

func (s *streams) put(l *ChangeLog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		l.end(ErrClosing)
	}
	s.logs[l.id] = l
}

func (s *streams) remove(t *Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.logs[t.id]; l != nil {
		l.end(ErrNoChangeStream)
		delete(s.logs, t.id)
	}
}

func streamPrefix(id uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{spaceChanges}, id)
}

const changePart = tablePart + 8

func changeKey(id uint32, commit int64, row string) []byte {
	key := make([]byte, 0, changePart+len(row))
	key = binary.BigEndian.AppendUint32(append(key, spaceChanges), id)
	key = binary.BigEndian.AppendUint64(key, uint64(commit))
	return append(key, row...)
}

// loadStreams opens the logs. It is called once, after loadMeta.
func (e *Engine) loadStreams() error {
	e.streams.logs = map[uint32]*ChangeLog{}
	for _, t := range e.meta.tables {
		if !t.logs() {
			continue
		}
		l, err := e.openLog(t.id)
		if err != nil {
			return fmt.Errorf("open the change stream of %s: %w", t.Name(), err)
		}
		if l.start == 0 { // the table is older than its log
			l.start = e.now().UnixMicro()
			if err := e.durable(e.db.Set(streamPrefix(t.id), binary.BigEndian.AppendUint64(nil, uint64(l.start)), pebble.Sync)); err != nil {
				return fmt.Errorf("begin the change stream of %s: %w", t.Name(), err)
			}
		}
		e.streams.logs[t.id] = l
	}
	return nil
}

// openLog returns a log as it is on disk; start is 0 when there is none.
func (e *Engine) openLog(id uint32) (*ChangeLog, error) {
	l := &ChangeLog{engine: e, id: id}
	value, err := e.get(streamPrefix(id))
	if err != nil {
		return nil, err
	}
	if len(value) == 8 {
		l.start = int64(binary.BigEndian.Uint64(value))
	}
	last, ok, err := e.lastChange(id, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	l.last = l.start - 1
	if ok {
		l.last = max(l.last, last)
	}
	l.applied, l.durable = l.last, l.last
	return l, nil
}

// lastChange returns the time of the last change before a time, and whether there
// is one.
func (e *Engine) lastChange(id uint32, before int64) (commit int64, ok bool, err error) {
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: changeKey(id, 0, ""), UpperBound: changeKey(id, before, "")})
	if err != nil {
		return 0, false, err
	}
	if ok = it.Last(); ok {
		commit = int64(binary.BigEndian.Uint64(it.Key()[tablePart:]))
	}
	return commit, ok, it.Close()
}

// logs reports whether a table has a change stream.
func (t *Table) logs() bool { return t.Def.GetChangeStreamConfig() != nil }

// retention is how long its changes are kept.
func (t *Table) retention() time.Duration {
	return t.Def.GetChangeStreamConfig().GetRetentionPeriod().AsDuration()
}

// commitDefinition makes durable a batch that defines table t, which was old
// before, nil when there was none. Where that begins or ends the table's change
// stream it excludes all writes, so that a write is logged exactly when it comes
// after the beginning and before the end. The caller holds meta.mu.
func (e *Engine) commitDefinition(b *pebble.Batch, old, t *Table) error {
	if old != nil && old.logs() == t.logs() || old == nil && !t.logs() {
		return e.durable(b.Commit(pebble.Sync))
	}
	defer e.lockAllRows()()
	l, err := e.openLog(t.id)
	if err != nil {
		return err
	}
	l.start = l.last + 1
	if live := e.streams.of(t); live != nil {
		l.start = max(l.start, live.horizon())
	}
	if t.logs() {
		// To the millisecond, as the clocks of many clients are.
		l.start = max(l.start, e.now().UnixMilli()*1000)
	}
	l.last, l.applied, l.durable = l.start-1, l.start-1, l.start-1
	first := changeKey(t.id, 0, "")
	if err := errors.Join(
		b.DeleteRange(first, successor(streamPrefix(t.id)), nil),
		b.Set(streamPrefix(t.id), binary.BigEndian.AppendUint64(nil, uint64(l.start)), nil),
		e.durable(b.Commit(pebble.Sync)),
	); err != nil {
		return err
	}
	e.streams.remove(t)
	if t.logs() {
		e.streams.put(l)
	}
	return nil
}

// horizon returns a time before which no change to come will be.
func (l *ChangeLog) horizon() int64 {
	l.order.Lock()
	defer l.order.Unlock()
	return l.last + 1
}

// EndChangeStreams ends all logs with ErrClosing, those to come too: their readers
// are to go before the engine is closed.
func (e *Engine) EndChangeStreams() {
	e.streams.mu.Lock()
	defer e.streams.mu.Unlock()
	e.streams.closed = true
	for _, l := range e.streams.logs {
		l.end(ErrClosing)
	}
}

// Changes returns the log of a table. Errors: ErrNoChangeStream.
func (e *Engine) Changes(t *Table) (*ChangeLog, error) {
	if l := e.streams.of(t); l != nil {
		return l, nil
	}
	return nil, ErrNoChangeStream
}

// ID is the table's number, which is never given to another.
func (l *ChangeLog) ID() uint32 { return l.id }

// apply gives the changes of a write their times and applies it with them. Who
// sees one of them sees all before it.
func (l *ChangeLog) apply(b *pebble.Batch, changes []*Change) (commit int64, err error) {
	values := make([][]byte, len(changes))
	for i, c := range changes {
		values[i], err = proto.Marshal(&btpb.ReadChangeStreamResponse_DataChange{Type: c.Type, Chunks: c.Chunks})
		if err != nil {
			return 0, fmt.Errorf("encode a change: %w", err)
		}
	}
	l.order.Lock()
	defer l.order.Unlock()
	commit = l.last
	now := l.engine.now().UnixMicro()
	for i, c := range changes {
		commit = max(commit+1, now)
		if err := b.Set(changeKey(l.id, commit, string(c.Row)), values[i], nil); err != nil {
			return 0, err
		}
	}
	if err = l.engine.durable(l.engine.db.ApplyNoSyncWait(b, pebble.Sync)); err == nil {
		l.last, l.applied = commit, commit
	}
	return commit, err
}

// acknowledge shows readers the changes up to commit, which have become durable:
// what is before them in the log was written before them.
func (l *ChangeLog) acknowledge(commit int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if commit > l.durable {
		l.durable = commit
		l.wake()
	}
}

func (l *ChangeLog) end(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = why
		l.wake()
	}
}

func (l *ChangeLog) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Progress is the state of a log at one moment.
type Progress struct {
	// Durable is the time up to which changes can be read.
	Durable int64
	// Complete is a time up to which there will be no other changes than those up to
	// Durable.
	Complete int64
	// Changed is closed when this is no longer the state.
	Changed <-chan struct{}
}

// Progress returns the state of the log. Errors: ErrNoChangeStream, ErrClosing.
func (l *ChangeLog) Progress() (Progress, error) {
	// Where a write is under way its time is not known yet.
	idle := l.order.TryLock()
	if idle {
		defer l.order.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return Progress{}, l.ended
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	p := Progress{Durable: l.durable, Complete: l.durable, Changed: l.changed}
	if idle && l.applied == l.durable {
		l.last = max(l.last, l.engine.now().UnixMicro())
		p.Complete = l.last
	}
	return p, nil
}

// Earliest returns the time from which on a log can be read whose table is t now:
// what was before it is not kept, or older than the retention period.
func (l *ChangeLog) Earliest(t *Table) (int64, error) {
	l.mu.Lock()
	start := l.start
	l.mu.Unlock()
	last, ok, err := l.engine.lastChange(l.id, l.engine.now().Add(-t.retention()).UnixMicro())
	if ok {
		start = max(start, last+1)
	}
	return start, err
}

const readBytes = 1 << 20 // of changes, from which on Read returns

// Read returns changes from the time from up to the time to, those that wants
// accepts, and the time from which on to read next. Errors: ErrTrimmed.
func (l *ChangeLog) Read(from, to int64, wants func(row []byte, commit int64) bool) (changes []Change, next int64, err error) {
	it, err := l.engine.db.NewIter(&pebble.IterOptions{LowerBound: changeKey(l.id, from, ""), UpperBound: changeKey(l.id, to+1, "")})
	if err != nil {
		return nil, 0, fmt.Errorf("read changes: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	next = to + 1
	size := 0
	for ok := it.First(); ok; ok = it.Next() {
		commit := int64(binary.BigEndian.Uint64(it.Key()[tablePart:]))
		if size >= readBytes {
			next = commit
			break
		}
		row := it.Key()[changePart:]
		size += len(row) + changePart
		if !wants(row, commit) {
			continue
		}
		size += len(it.Value())
		var d btpb.ReadChangeStreamResponse_DataChange
		if err := proto.Unmarshal(it.Value(), &d); err != nil {
			return nil, 0, fmt.Errorf("read a change: %w", err)
		}
		changes = append(changes, Change{commit, slices.Clone(row), d.GetType(), d.GetChunks()})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if from < l.start { // trimmed before, or while it was read
		return nil, 0, ErrTrimmed
	}
	return changes, next, it.Error()
}

// trim removes the changes that are older than the retention period.
func (l *ChangeLog) trim(t *Table) error {
	start, err := l.Earliest(t)
	if err != nil {
		return err
	}
	l.mu.Lock()
	trimmed := start > l.start
	l.start = max(l.start, start) // first, so that no reader misses what goes
	l.mu.Unlock()
	if !trimmed {
		return nil
	}
	b := l.engine.db.NewBatch()
	defer b.Close() //nolint:errcheck // committed or given up
	return errors.Join(
		b.DeleteRange(changeKey(l.id, 0, ""), changeKey(l.id, start, ""), nil),
		b.Set(streamPrefix(l.id), binary.BigEndian.AppendUint64(nil, uint64(start)), nil),
		b.Commit(pebble.NoSync), // what is lost of it is trimmed again
	)
}

// trimStreams removes the changes that are no longer kept, and the logs of tables
// that are gone.
func (e *Engine) trimStreams() error {
	e.meta.mu.RLock() // no table comes or goes
	defer e.meta.mu.RUnlock()
	known := map[uint32]bool{}
	var errs []error
	for _, t := range e.meta.tables {
		known[t.id] = true
		if l := e.streams.of(t); l != nil && t.logs() {
			errs = append(errs, l.trim(t))
		}
	}
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceChanges}, UpperBound: []byte{spaceChanges + 1}})
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for ok := it.First(); ok; {
		id := binary.BigEndian.Uint32(it.Key()[1:])
		if !known[id] {
			errs = append(errs, e.db.DeleteRange(streamPrefix(id), successor(streamPrefix(id)), pebble.NoSync))
		}
		ok = it.SeekGE(successor(streamPrefix(id)))
	}
	if err := errors.Join(append(errs, it.Close())...); err != nil {
		return fmt.Errorf("trim change streams: %w", err)
	}
	return nil
}
