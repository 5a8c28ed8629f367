package storage

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"sync"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Backup is a copy of a table at one moment.
type Backup struct {
	// Def is the definition as the admin API gives it, with its full name.
	Def *adminpb.Backup
	// Table is the table as it was.
	Table  *Table
	number uint32 // names the directory
}

// backups is where copies of tables are: each is a checkpoint of the engine,
// restricted to the files that hold cells of the table, in a directory of its own
// that shares its files with the engine's as long as both need them. A directory
// counts only once a record names it; others are removed when the engine opens.
type backups struct {
	fs  vfs.FS
	dir string
	mu  sync.Mutex // held while a backup is made, changed, read or removed
}

const backupsDir = "backups"

func keyBackup(name string) []byte { return append([]byte{spaceMeta, 'b'}, name...) }

// storedBackup is a backup as it is kept.
type storedBackup struct {
	Number uint32          `json:"number"`
	Def    json.RawMessage `json:"def"`
	Table  storedTable     `json:"table"`
}

func decodeBackup(value []byte) (*Backup, error) {
	var s storedBackup
	if err := json.Unmarshal(value, &s); err != nil {
		return nil, fmt.Errorf("read a backup's definition: %w", err)
	}
	b := &Backup{Def: &adminpb.Backup{}, number: s.Number}
	if err := protojson.Unmarshal(s.Def, b.Def); err != nil {
		return nil, fmt.Errorf("read a backup's definition: %w", err)
	}
	var err error
	b.Table, err = s.Table.table()
	return b, err
}

func (e *Engine) backupDir(number uint32) string {
	return e.backups.fs.PathJoin(e.backups.dir, strconv.FormatUint(uint64(number), 10))
}

func (e *Engine) expired(b *Backup) bool { return !b.Def.GetExpireTime().AsTime().After(e.now()) }

// Backup returns a backup by its full name, nil when there is none or it has
// expired.
func (e *Engine) Backup(name string) (*Backup, error) {
	value, err := e.get(keyBackup(name))
	if err != nil || value == nil {
		return nil, err
	}
	b, err := decodeBackup(value)
	if err != nil || e.expired(b) {
		return nil, err
	}
	return b, nil
}

// Backups returns the backups whose full names begin with prefix, by name, without
// those that have expired.
func (e *Engine) Backups(prefix string) ([]*Backup, error) {
	var out []*Backup
	err := e.scan(keyBackup(prefix), func(_, value []byte) error {
		b, err := decodeBackup(value)
		if err == nil && !e.expired(b) {
			out = append(out, b)
		}
		return err
	})
	return out, err
}

// CreateBackup makes a backup of the table that a definition names as its source.
// It returns the definition with end time, size and state. Errors: ErrExists;
// ErrMissing, when there is no such table.
func (e *Engine) CreateBackup(def *adminpb.Backup) (*Backup, error) {
	e.backups.mu.Lock()
	defer e.backups.mu.Unlock()
	t := e.Table(def.GetSourceTable())
	if t == nil {
		return nil, ErrMissing
	}
	return e.addBackup(def, t, func(dir string) (int64, error) {
		// A checkpoint copies the log of what is in memory only, of all tables.
		if err := e.db.Flush(); err != nil {
			return 0, err
		}
		first := tablePrefix(t.id)
		span := pebble.CheckpointSpan{Start: first, End: successor(first)}
		if err := e.db.Checkpoint(dir, pebble.WithFlushedWAL(), pebble.WithRestrictToSpans([]pebble.CheckpointSpan{span})); err != nil {
			return 0, err
		}
		if now := e.Table(t.Name()); now == nil || now.id != t.id {
			return 0, ErrMissing // dropped, and perhaps purged, meanwhile
		}
		size, err := e.Size(t, Range{})
		return int64(size), err
	})
}

// CopyBackup makes a backup that is a copy of another, independent of it. Errors:
// ErrExists; ErrMissing, when there is no such source.
func (e *Engine) CopyBackup(def *adminpb.Backup) (*Backup, error) {
	e.backups.mu.Lock()
	defer e.backups.mu.Unlock()
	source, err := e.Backup(def.GetSourceBackup())
	if err != nil {
		return nil, err
	}
	if source == nil {
		return nil, ErrMissing
	}
	return e.addBackup(def, source.Table, func(dir string) (int64, error) {
		return source.Def.GetSizeBytes(), e.linkFiles(e.backupDir(source.number), dir)
	})
}

// addBackup makes the directory of a backup, with fill, which returns its size, and
// then its record. The caller holds backups.mu.
func (e *Engine) addBackup(def *adminpb.Backup, t *Table, fill func(dir string) (int64, error)) (*Backup, error) {
	old, err := e.get(keyBackup(def.GetName()))
	if err != nil {
		return nil, err
	}
	if old != nil {
		if b, err := decodeBackup(old); err != nil || !e.expired(b) {
			return nil, errors.Join(err, ErrExists)
		}
		if err := e.dropBackup(def.GetName()); err != nil {
			return nil, err
		}
	}
	n, err := e.number()
	if err != nil {
		return nil, fmt.Errorf("number a backup: %w", err)
	}
	dir := e.backupDir(n)
	size, err := fill(dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("back up table %s: %w", t.Name(), err), e.backups.fs.RemoveAll(dir))
	}
	// A crash here leaves a directory without a record, which opening removes.
	b := &Backup{Def: proto.CloneOf(def), Table: t, number: n}
	b.Def.EndTime, b.Def.SizeBytes, b.Def.State = timestamppb.New(e.now()), size, adminpb.Backup_READY
	return b, e.putBackup(b)
}

// number takes a number that was never used.
func (e *Engine) number() (uint32, error) {
	e.meta.mu.Lock()
	defer e.meta.mu.Unlock()
	b := e.db.NewBatch()
	defer b.Close() //nolint:errcheck // committed or given up
	n, err := e.take(b)
	if err != nil {
		return 0, err
	}
	return n, e.durable(b.Commit(pebble.Sync))
}

func (e *Engine) putBackup(b *Backup) error {
	def, err := protojson.Marshal(b.Def)
	if err != nil {
		return fmt.Errorf("write a backup's definition: %w", err)
	}
	s := storedBackup{Number: b.number, Def: def}
	if s.Table, err = b.Table.stored(); err != nil {
		return err
	}
	value, err := json.Marshal(s)
	if err == nil {
		err = e.durable(e.db.Set(keyBackup(b.Def.GetName()), value, pebble.Sync))
	}
	if err != nil {
		return fmt.Errorf("write a backup's definition: %w", err)
	}
	return nil
}

// linkFiles makes a directory with the files of another, which never change.
func (e *Engine) linkFiles(from, to string) error {
	fs := e.backups.fs
	names, err := fs.List(from)
	if err != nil {
		return err
	}
	if err := fs.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		if name == "LOCK" {
			continue // of whoever reads that directory
		}
		if err := vfs.LinkOrCopy(fs, fs.PathJoin(from, name), fs.PathJoin(to, name)); err != nil {
			return err
		}
	}
	return errors.Join(syncDir(fs, to), syncDir(fs, e.backups.dir))
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ChangeBackup replaces a backup's definition by what change makes of a copy of
// it. Errors: ErrMissing and those of change.
func (e *Engine) ChangeBackup(name string, change func(def *adminpb.Backup) error) error {
	e.backups.mu.Lock()
	defer e.backups.mu.Unlock()
	b, err := e.Backup(name)
	if err != nil {
		return err
	}
	if b == nil {
		return ErrMissing
	}
	if err := change(b.Def); err != nil {
		return err
	}
	return e.putBackup(b)
}

// DropBackup removes a backup. Errors: ErrMissing.
func (e *Engine) DropBackup(name string) error {
	e.backups.mu.Lock()
	defer e.backups.mu.Unlock()
	b, err := e.Backup(name)
	if err != nil {
		return err
	}
	if b == nil {
		return ErrMissing
	}
	return e.dropBackup(name)
}

// dropBackup removes a backup's record and then its directory. The caller holds
// backups.mu.
func (e *Engine) dropBackup(name string) error {
	value, err := e.get(keyBackup(name))
	if err != nil || value == nil {
		return err
	}
	b, err := decodeBackup(value)
	if err != nil {
		return err
	}
	if err := e.durable(e.db.Delete(keyBackup(name), pebble.Sync)); err != nil {
		return fmt.Errorf("remove a backup: %w", err)
	}
	// A crash here leaves a directory without a record, which opening removes.
	if err := e.backups.fs.RemoveAll(e.backupDir(b.number)); err != nil {
		return fmt.Errorf("remove the files of a backup: %w", err)
	}
	return nil
}

// DropExpired removes the backups that have expired, and the dropped tables that
// can no longer be brought back. What is in use at the moment is left for the next
// time.
func (e *Engine) DropExpired() error {
	now := e.now()
	err := e.purgeWhere(func(_ string, d storedDropped) bool { return now.Sub(d.Dropped) >= undeleteWindow })
	if !e.backups.mu.TryLock() {
		return err // a long restore must not hold up the collection of garbage
	}
	defer e.backups.mu.Unlock()
	var names []string
	err = errors.Join(err, e.scan(keyBackup(""), func(key, value []byte) error {
		b, err := decodeBackup(value)
		if err == nil && e.expired(b) {
			names = append(names, string(key[2:]))
		}
		return err
	}))
	for _, name := range names {
		err = errors.Join(err, e.dropBackup(name))
	}
	return err
}

// dropUnrecorded removes directories of backups that were not finished, or whose
// removal was not.
func (e *Engine) dropUnrecorded() error {
	recorded := []string{}
	err := e.scan(keyBackup(""), func(_, value []byte) error {
		b, err := decodeBackup(value)
		if err == nil {
			recorded = append(recorded, strconv.FormatUint(uint64(b.number), 10))
		}
		return err
	})
	if err != nil {
		return err
	}
	names, err := e.backups.fs.List(e.backups.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list backups: %w", err)
	}
	for _, name := range names {
		if !slices.Contains(recorded, name) {
			if err := e.backups.fs.RemoveAll(e.backups.fs.PathJoin(e.backups.dir, name)); err != nil {
				return fmt.Errorf("remove an unfinished backup: %w", err)
			}
		}
	}
	return nil
}

// RestoreTable makes a table of a definition, with the cells of a backup in those
// families that the backup has too. The table is there when it is complete and
// durable, or not at all. Errors: ErrMissing, when there is no such backup;
// ErrExists, when there is such a table; those of ctx.
func (e *Engine) RestoreTable(ctx context.Context, backup string, def *adminpb.Table) error {
	e.backups.mu.Lock()
	defer e.backups.mu.Unlock()
	source, err := e.Backup(backup)
	if err != nil {
		return err
	}
	switch {
	case source == nil:
		return ErrMissing
	case e.Table(def.GetName()) != nil:
		return ErrExists
	}
	id, err := e.number()
	if err != nil {
		return fmt.Errorf("restore table %s: %w", def.GetName(), err)
	}
	t := &Table{Def: proto.CloneOf(def), Splits: source.Table.Splits, id: id, families: source.Table.families}
	if err := e.fillTable(ctx, source, t); err != nil {
		// Should the cells stay, they are of no table, and opening removes them.
		prefix := tablePrefix(id)
		return errors.Join(fmt.Errorf("restore table %s: %w", def.GetName(), err), e.durable(e.db.DeleteRange(prefix, successor(prefix), pebble.Sync)))
	}
	return nil
}

// fillTable copies cells and makes the table known.
func (e *Engine) fillTable(ctx context.Context, source *Backup, t *Table) (err error) {
	cache := pebble.NewCache(restoreCache)
	defer cache.Unref()
	opts := pebbleOptions(e.backups.fs, nil, cache, false, Options{})
	opts.ReadOnly = true
	db, err := pebble.Open(e.backupDir(source.number), opts)
	if err != nil {
		return fmt.Errorf("open backup %s: %w", source.Def.GetName(), err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := e.copyCells(ctx, db, source.Table, t.id); err != nil {
		return err
	}
	e.meta.mu.Lock()
	defer e.meta.mu.Unlock()
	b := e.db.NewBatch()
	defer b.Close() //nolint:errcheck // committed or given up
	return e.addTable(b, t)
}

const (
	restoreCache = 8 << 20
	restoreBatch = 4 << 20 // bytes that a restore writes at once
)

// copyCells copies the cells of a table in another database, under another id. It
// leaves out what is of families that were dropped. When it returns nil they are
// durable.
func (e *Engine) copyCells(ctx context.Context, from *pebble.DB, t *Table, id uint32) (err error) {
	first := tablePrefix(t.id)
	it, err := from.NewIter(&pebble.IterOptions{LowerBound: first, UpperBound: successor(first)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	b := e.db.NewBatch()
	defer func() { err = errors.Join(err, b.Close()) }()
	var to []byte
	for ok := it.First(); ok; ok = it.Next() {
		k, err := decodeCellKey(it.Key(), split(it.Key()))
		if err != nil {
			return err
		}
		if f := t.families[string(k.family(it.Key()))]; f == nil || f.Generation != k.generation {
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		to = append(to[:0], it.Key()...)
		binary.BigEndian.PutUint32(to[1:], id)
		if err := b.Set(to, value, nil); err != nil {
			return err
		}
		if b.Len() < restoreBatch {
			continue
		}
		if err := errors.Join(ctx.Err(), b.Commit(pebble.NoSync)); err != nil {
			return err
		}
		if err := b.Close(); err != nil {
			return err
		}
		b = e.db.NewBatch()
	}
	// A sync makes durable what was written before, too.
	return errors.Join(it.Error(), ctx.Err(), e.durable(e.db.Apply(b, pebble.Sync)))
}
