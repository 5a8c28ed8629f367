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
	"time"

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
	dead     bool               // there may be cells of families that were dropped
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

func keyTable(name string) []byte   { return append([]byte{spaceMeta, 't'}, name...) }
func keyDropped(name string) []byte { return append([]byte{spaceMeta, 'd'}, name...) }
func keyRecord(name string) []byte  { return append([]byte{spaceMeta, 'r'}, name...) }

// storedTable is a table as it is kept.
type storedTable struct {
	ID          uint32            `json:"id"`
	Generations map[string]uint32 `json:"generations"`
	Splits      [][]byte          `json:"splits"`
	Dead        bool              `json:"dead,omitempty"`
	Def         json.RawMessage   `json:"def"`
}

// storedDropped is a dropped table as it is kept.
type storedDropped struct {
	Table   storedTable `json:"table"`
	Dropped time.Time   `json:"dropped"`
}

func (e *Engine) loadMeta() error {
	e.meta.tables, e.meta.next = map[string]*Table{}, 1
	format, err := e.get(keyFormat)
	if err != nil {
		return err
	}
	if format == nil {
		format = []byte{FormatVersion}
		if err := e.durable(e.db.Set(keyFormat, format, pebble.Sync)); err != nil {
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
	err = e.scan(keyTable(""), func(_, value []byte) error {
		var s storedTable
		if err := json.Unmarshal(value, &s); err != nil {
			return fmt.Errorf("read a table's definition: %w", err)
		}
		t, err := s.table()
		if err != nil {
			return err
		}
		e.meta.tables[t.Name()] = t
		return nil
	})
	if err != nil {
		return err
	}
	return errors.Join(e.dropOrphans(), e.dropUnrecorded())
}

// dropOrphans deletes cells of no table, which a restore leaves that did not end,
// and a write that was under way when its table was purged.
func (e *Engine) dropOrphans() (err error) {
	known := map[uint32]bool{}
	for _, t := range e.meta.tables {
		known[t.id] = true
	}
	if err := e.eachDropped(func(_ string, d storedDropped) error {
		known[d.Table.ID] = true
		return nil
	}); err != nil {
		return err
	}
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceCells}, UpperBound: []byte{spaceCells + 1}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; {
		if len(it.Key()) < tablePart {
			return fmt.Errorf("corrupt key %x: no table", it.Key())
		}
		id := binary.BigEndian.Uint32(it.Key()[1:])
		prefix := tablePrefix(id)
		if !known[id] {
			if err := e.durable(e.db.DeleteRange(prefix, successor(prefix), pebble.Sync)); err != nil {
				return fmt.Errorf("delete the cells of no table: %w", err)
			}
		}
		ok = it.SeekGE(successor(prefix))
	}
	return it.Error()
}

// table decodes what is kept.
func (s *storedTable) table() (*Table, error) {
	def := &adminpb.Table{}
	if err := protojson.Unmarshal(s.Def, def); err != nil {
		return nil, fmt.Errorf("read a table's definition: %w", err)
	}
	t := &Table{Def: def, id: s.ID, dead: s.Dead}
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

// ErrExists and ErrMissing are what creating and changing a table or a backup may
// meet.
var (
	ErrExists  = errors.New("it exists")
	ErrMissing = errors.New("it does not exist")
)

// CreateTable makes a table of a definition, which it copies, and the row keys
// that it is to be split at. A dropped table of the same name is gone for good.
// Errors: ErrExists.
func (e *Engine) CreateTable(def *adminpb.Table, splits []string) error {
	e.meta.mu.Lock()
	defer e.meta.mu.Unlock()
	b := e.db.NewBatch()
	defer b.Close() //nolint:errcheck // committed or given up
	id, err := e.take(b)
	if err != nil {
		return err
	}
	splits = slices.Clone(splits)
	slices.Sort(splits)
	return e.addTable(b, &Table{Def: proto.CloneOf(def), Splits: slices.Compact(splits), id: id})
}

// addTable makes a new table known. The caller holds meta.mu.
func (e *Engine) addTable(b *pebble.Batch, t *Table) error {
	if e.meta.tables[t.Name()] != nil {
		return ErrExists
	}
	if err := e.purge(b, t.Name()); err != nil {
		return err
	}
	return e.putTable(b, t)
}

// ChangeTable replaces a table's definition by what change makes of a copy of it.
// Errors: ErrMissing and those of change.
func (e *Engine) ChangeTable(name string, change func(def *adminpb.Table) error) error {
	return e.ChangeFamilies(name, func(def *adminpb.Table) ([]string, error) { return nil, change(def) })
}

// ChangeFamilies is ChangeTable for a change that also returns the names of
// families that it dropped. One of them that is in the definition again was made
// anew and is empty. Errors: ErrMissing and those of change.
func (e *Engine) ChangeFamilies(name string, change func(def *adminpb.Table) (dropped []string, err error)) error {
	e.meta.mu.Lock()
	defer e.meta.mu.Unlock()
	t := e.meta.tables[name]
	if t == nil {
		return ErrMissing
	}
	def := proto.CloneOf(t.Def)
	dropped, err := change(def)
	if err != nil {
		return err
	}
	kept := maps.Clone(t.families)
	for _, family := range dropped {
		delete(kept, family)
	}
	b := e.db.NewBatch()
	defer b.Close() //nolint:errcheck // committed or given up
	return e.putTable(b, &Table{Def: def, Splits: t.Splits, id: t.id, families: kept})
}

// putTable gives those families of a definition that the table has not yet their
// generations, makes the table durable and then known. The caller holds meta.mu.
func (e *Engine) putTable(b *pebble.Batch, t *Table) error {
	generations := map[string]uint32{}
	for name := range t.Def.GetColumnFamilies() {
		if old := t.families[name]; old != nil {
			generations[name] = old.Generation
			continue
		}
		g, err := e.take(b)
		if err != nil {
			return err
		}
		generations[name] = g
	}
	t.setFamilies(generations)
	if old := e.meta.tables[t.Name()]; old != nil {
		t.dead = old.dead
		for name, f := range old.families {
			if t.families[name] == nil || t.families[name].Generation != f.Generation {
				t.dead = true
			}
		}
	}
	return e.writeTable(b, t)
}

// writeTable makes a table durable and then known. The caller holds meta.mu.
func (e *Engine) writeTable(b *pebble.Batch, t *Table) error {
	stored, err := t.stored()
	if err != nil {
		return err
	}
	value, err := json.Marshal(stored)
	if err != nil {
		return fmt.Errorf("write a table's definition: %w", err)
	}
	if err := b.Set(keyTable(t.Name()), value, nil); err != nil {
		return err
	}
	if err := e.commitDefinition(b, e.meta.tables[t.Name()], t); err != nil {
		return fmt.Errorf("write a table's definition: %w", err)
	}
	e.meta.tables[t.Name()] = t
	return nil
}

// stored encodes a table as it is kept.
func (t *Table) stored() (storedTable, error) {
	text, err := protojson.Marshal(t.Def)
	if err != nil {
		return storedTable{}, fmt.Errorf("write a table's definition: %w", err)
	}
	s := storedTable{ID: t.id, Generations: map[string]uint32{}, Dead: t.dead, Def: text}
	for name, f := range t.families {
		s.Generations[name] = f.Generation
	}
	for _, split := range t.Splits {
		s.Splits = append(s.Splits, []byte(split))
	}
	return s, nil
}

// take returns a number that was never used, as part of a batch. The caller holds
// meta.mu.
func (e *Engine) take(b *pebble.Batch) (uint32, error) {
	n := e.meta.next
	e.meta.next++
	return n, b.Set(keyNext, binary.BigEndian.AppendUint32(nil, e.meta.next), nil)
}

// undeleteWindow is how long a dropped table can be brought back (production's
// documentation of UndeleteTable).
const undeleteWindow = 7 * 24 * time.Hour

// DropTable drops a table. It can be brought back for seven days, unless another
// of its name is made. Errors: ErrMissing.
func (e *Engine) DropTable(name string) error {
	e.meta.mu.Lock()
	defer e.meta.mu.Unlock()
	t := e.meta.tables[name]
	if t == nil {
		return ErrMissing
	}
	stored, err := t.stored()
	if err != nil {
		return err
	}
	value, err := json.Marshal(storedDropped{Table: stored, Dropped: e.now()})
	if err != nil {
		return fmt.Errorf("drop table %s: %w", name, err)
	}
	b := e.db.NewBatch()
	defer b.Close() //nolint:errcheck // committed or given up
	err = errors.Join(b.Delete(keyTable(name), nil), b.Set(keyDropped(name), value, nil), e.durable(b.Commit(pebble.Sync)))
	if err != nil {
		return fmt.Errorf("drop table %s: %w", name, err)
	}
	delete(e.meta.tables, name)
	e.streams.remove(t)
	return nil
}

// UndeleteTable brings a dropped table back. Errors: ErrMissing, when there is
// none or it was dropped too long ago; ErrExists.
func (e *Engine) UndeleteTable(name string) error {
	e.meta.mu.Lock()
	defer e.meta.mu.Unlock()
	if e.meta.tables[name] != nil {
		return ErrExists
	}
	d, err := e.dropped(name)
	if err != nil {
		return err
	}
	if d == nil || e.now().Sub(d.Dropped) >= undeleteWindow {
		return ErrMissing
	}
	t, err := d.Table.table()
	if err != nil {
		return err
	}
	b := e.db.NewBatch()
	defer b.Close() //nolint:errcheck // committed or given up
	if err := b.Delete(keyDropped(name), nil); err != nil {
		return err
	}
	return e.putTable(b, t)
}

// PurgeTables removes the dropped tables whose full names begin with prefix, and
// all that is in them.
func (e *Engine) PurgeTables(prefix string) error {
	return e.purgeWhere(func(name string, _ storedDropped) bool { return strings.HasPrefix(name, prefix) })
}

func (e *Engine) purgeWhere(which func(name string, d storedDropped) bool) error {
	e.meta.mu.Lock()
	defer e.meta.mu.Unlock()
	b := e.db.NewBatch()
	defer b.Close() //nolint:errcheck // committed or given up
	err := e.eachDropped(func(name string, d storedDropped) error {
		if !which(name, d) {
			return nil
		}
		return e.purge(b, name)
	})
	if err == nil && !b.Empty() {
		err = e.durable(b.Commit(pebble.Sync))
	}
	if err != nil {
		return fmt.Errorf("purge dropped tables: %w", err)
	}
	return nil
}

// purge removes a dropped table, if there is one, as part of a batch. The caller
// holds meta.mu.
func (e *Engine) purge(b *pebble.Batch, name string) error {
	d, err := e.dropped(name)
	if err != nil || d == nil {
		return err
	}
	prefix := tablePrefix(d.Table.ID)
	return errors.Join(b.Delete(keyDropped(name), nil), b.DeleteRange(prefix, successor(prefix), nil))
}

// dropped returns a dropped table, nil when there is none.
func (e *Engine) dropped(name string) (*storedDropped, error) {
	value, err := e.get(keyDropped(name))
	if err != nil || value == nil {
		return nil, err
	}
	d := &storedDropped{}
	if err := json.Unmarshal(value, d); err != nil {
		return nil, fmt.Errorf("read a dropped table: %w", err)
	}
	return d, nil
}

func (e *Engine) eachDropped(f func(name string, d storedDropped) error) error {
	return e.scan(keyDropped(""), func(key, value []byte) error {
		var d storedDropped
		if err := json.Unmarshal(value, &d); err != nil {
			return fmt.Errorf("read a dropped table: %w", err)
		}
		return f(string(key[2:]), d)
	})
}

// Record returns a small record that the admin API keeps, nil when there is none.
func (e *Engine) Record(name string) ([]byte, error) { return e.get(keyRecord(name)) }

// PutRecord keeps a small record.
func (e *Engine) PutRecord(name string, value []byte) error {
	return e.durable(e.db.Set(keyRecord(name), value, pebble.Sync))
}

// DropRecord removes a small record.
func (e *Engine) DropRecord(name string) error {
	return e.durable(e.db.Delete(keyRecord(name), pebble.Sync))
}

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
