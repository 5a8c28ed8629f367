package storage

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Table is the definition of a table at one moment. It is immutable; a change
// makes another.
type Table struct {
	// Def is the definition as the admin API gives it, with its full name.
	Def *adminpb.Table
	// Splits are the row keys that the table was split at when it was made,
	// ascending.
	Splits   []string
	id       uint32
	families map[string]*Family // by name
}

// Family is a column family of a table. It is immutable.
type Family struct {
	Name string
	// Generation tells the family from an earlier one of the same name.
	Generation uint32
	Def        *adminpb.ColumnFamily
}

// Name returns the table's full resource name.
func (t *Table) Name() string { return t.Def.GetName() }

// Family returns a family by its name, nil when the table has none of it.
func (t *Table) Family(name string) *Family { return t.families[name] }

// meta holds what the engine knows of tables, and the other small records.
type meta struct {
	mu     sync.RWMutex // guards all below; held over a change until it is durable
	tables map[string]*Table
	next   uint32 // a number not used yet for a table or a generation
}

// Keys of the meta space.
var (
	keyFormat = []byte{spaceMeta, 'f'}
	keyNext   = []byte{spaceMeta, 'n'}
)

func keyTable(name string) []byte  { return append([]byte{spaceMeta, 't'}, name...) }
func keyRecord(name string) []byte { return append([]byte{spaceMeta, 'r'}, name...) }

// storedTable is a table as it is kept.
type storedTable struct {
	ID          uint32            `json:"id"`
	Generations map[string]uint32 `json:"generations"`
	Splits      [][]byte          `json:"splits"`
	Def         json.RawMessage   `json:"def"`
}

func (e *Engine) loadMeta() error {
	e.meta.tables, e.meta.next = map[string]*Table{}, 1
	format, err := e.get(keyFormat)
	if err != nil {
		return err
	}
	if format == nil {
		format = []byte{FormatVersion}
		if err := e.db.Set(keyFormat, format, pebble.Sync); err != nil {
			return err
		}
	}
	if len(format) != 1 || format[0] != FormatVersion {
		return fmt.Errorf("version %v, this program reads %d: %w", format, FormatVersion, ErrFormat)
	}
	next, err := e.get(keyNext)
	if err != nil {
		return err
	}
	if next != nil {
		e.meta.next = binary.BigEndian.Uint32(next)
	}
	return e.scan(keyTable(""), func(_, value []byte) error {
		t, err := decodeTable(value)
		if err != nil {
			return err
		}
		e.meta.tables[t.Name()] = t
		return nil
	})
}

func decodeTable(value []byte) (*Table, error) {
	var s storedTable
	if err := json.Unmarshal(value, &s); err != nil {
		return nil, fmt.Errorf("read a table's definition: %w", err)
	}
	def := &adminpb.Table{}
	if err := protojson.Unmarshal(s.Def, def); err != nil {
		return nil, fmt.Errorf("read a table's definition: %w", err)
	}
	t := &Table{Def: def, id: s.ID}
	for _, split := range s.Splits {
		t.Splits = append(t.Splits, string(split))
	}
	t.setFamilies(s.Generations)
	return t, nil
}

func (t *Table) setFamilies(generations map[string]uint32) {
	t.families = map[string]*Family{}
	for name, f := range t.Def.GetColumnFamilies() {
		t.families[name] = &Family{Name: name, Generation: generations[name], Def: f}
	}
}

// Table returns a table by its full name, nil when there is none.
func (e *Engine) Table(name string) *Table {
	e.meta.mu.RLock()
	defer e.meta.mu.RUnlock()
	return e.meta.tables[name]
}

// Tables returns the tables whose full names begin with prefix, by name.
func (e *Engine) Tables(prefix string) []*Table {
	e.meta.mu.RLock()
	defer e.meta.mu.RUnlock()
	var out []*Table
	for _, name := range slices.Sorted(maps.Keys(e.meta.tables)) {
		if strings.HasPrefix(name, prefix) {
			out = append(out, e.meta.tables[name])
		}
	}
	return out
}

// ErrExists and ErrMissing are what creating and changing a table may meet.
var (
	ErrExists  = errors.New("the table exists")
	ErrMissing = errors.New("there is no such table")
)

// CreateTable makes a table of a definition, which it copies, and the row keys
// that it is to be split at. Errors: ErrExists.
func (e *Engine) CreateTable(def *adminpb.Table, splits []string) error {
	e.meta.mu.Lock()
	defer e.meta.mu.Unlock()
	if e.meta.tables[def.GetName()] != nil {
		return ErrExists
	}
	b := e.db.NewBatch()
	defer b.Close() //nolint:errcheck // committed or given up
	id, err := e.take(b)
	if err != nil {
		return err
	}
	splits = slices.Clone(splits)
	slices.Sort(splits)
	return e.putTable(b, &Table{Def: proto.CloneOf(def), Splits: slices.Compact(splits), id: id})
}

// ChangeTable replaces a table's definition by what change makes of a copy of it.
// A family that is dropped and made anew, in one change or two, is empty. Errors:
// ErrMissing and those of change.
func (e *Engine) ChangeTable(name string, change func(def *adminpb.Table) error) error {
	e.meta.mu.Lock()
	defer e.meta.mu.Unlock()
	t := e.meta.tables[name]
	if t == nil {
		return ErrMissing
	}
	def := proto.CloneOf(t.Def)
	if err := change(def); err != nil {
		return err
	}
	b := e.db.NewBatch()
	defer b.Close() //nolint:errcheck // committed or given up
	return e.putTable(b, &Table{Def: def, Splits: t.Splits, id: t.id})
}

// putTable gives new families their generations, makes the table durable and then
// known. The caller holds meta.mu.
func (e *Engine) putTable(b *pebble.Batch, t *Table) error {
	generations := map[string]uint32{}
	for name := range t.Def.GetColumnFamilies() {
		if old := e.meta.tables[t.Name()]; old != nil && old.families[name] != nil {
			generations[name] = old.families[name].Generation
			continue
		}
		g, err := e.take(b)
		if err != nil {
			return err
		}
		generations[name] = g
	}
	t.setFamilies(generations)
	value, err := encodeTable(t, generations)
	if err != nil {
		return fmt.Errorf("write a table's definition: %w", err)
	}
	if err := b.Set(keyTable(t.Name()), value, nil); err != nil {
		return err
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("write a table's definition: %w", err)
	}
	e.meta.tables[t.Name()] = t
	return nil
}

func encodeTable(t *Table, generations map[string]uint32) ([]byte, error) {
	text, err := protojson.Marshal(t.Def)
	if err != nil {
		return nil, err
	}
	stored := storedTable{ID: t.id, Generations: generations, Def: text}
	for _, split := range t.Splits {
		stored.Splits = append(stored.Splits, []byte(split))
	}
	return json.Marshal(stored)
}

// take returns a number that was never used, as part of a batch. The caller holds
// meta.mu.
func (e *Engine) take(b *pebble.Batch) (uint32, error) {
	n := e.meta.next
	e.meta.next++
	return n, b.Set(keyNext, binary.BigEndian.AppendUint32(nil, e.meta.next), nil)
}

// DropTable removes a table and all that is in it. Errors: ErrMissing.
func (e *Engine) DropTable(name string) error {
	e.meta.mu.Lock()
	defer e.meta.mu.Unlock()
	t := e.meta.tables[name]
	if t == nil {
		return ErrMissing
	}
	b := e.db.NewBatch()
	defer b.Close() //nolint:errcheck // committed or given up
	prefix := tablePrefix(t.id)
	err := errors.Join(b.Delete(keyTable(name), nil), b.DeleteRange(prefix, successor(prefix), nil), b.Commit(pebble.Sync))
	if err != nil {
		return fmt.Errorf("drop table %s: %w", name, err)
	}
	delete(e.meta.tables, name)
	return nil
}

// Record returns a small record that the admin API keeps, nil when there is none.
func (e *Engine) Record(name string) ([]byte, error) { return e.get(keyRecord(name)) }

// PutRecord keeps a small record.
func (e *Engine) PutRecord(name string, value []byte) error {
	return e.db.Set(keyRecord(name), value, pebble.Sync)
}

// DropRecord removes a small record.
func (e *Engine) DropRecord(name string) error { return e.db.Delete(keyRecord(name), pebble.Sync) }

// Records calls f with the records whose names begin with prefix, by name.
func (e *Engine) Records(prefix string, f func(name string, value []byte) error) error {
	return e.scan(keyRecord(prefix), func(key, value []byte) error { return f(string(key[2:]), value) })
}

// get returns a copy of a value, nil when there is none.
func (e *Engine) get(key []byte) ([]byte, error) {
	value, closer, err := e.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return slices.Clone(value), closer.Close()
}

func (e *Engine) scan(prefix []byte, f func(key, value []byte) error) (err error) {
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: successor(prefix)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if err := f(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return it.Error()
}
