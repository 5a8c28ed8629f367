package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/attestry/attestry/emulator/filter"
)

const (
	instance   = "projects/p/instances/i"
	backedUp   = instance + "/tables/source"
	restored   = instance + "/tables/restored"
	backupPath = instance + "/clusters/c/backups/"
)

func backupDef(id string, expire time.Time) *adminpb.Backup {
	return &adminpb.Backup{Name: backupPath + id, SourceTable: backedUp, ExpireTime: timestamppb.New(expire)}
}

func tableDef(name string) *adminpb.Table {
	return &adminpb.Table{Name: name, ColumnFamilies: map[string]*adminpb.ColumnFamily{"f": {}, "g": {}}}
}

// write sets one cell.
func write(t testing.TB, e *Engine, table, row, family, value string) {
	t.Helper()
	tab := e.Table(table)
	ok(t, e.Update(tab, []string{row}, SetOnly, func(tx *Tx) error {
		tx.Row(row)
		return tx.Set(tab.Family(family), []byte("q"), 0, []byte(value))
	}))
}

// dump returns the cells of a table as text; nil when there is no such table.
func dump(t testing.TB, e *Engine, table string) []string {
	t.Helper()
	tab := e.Table(table)
	if tab == nil {
		return nil
	}
	v, err := e.View(tab)
	ok(t, err)
	out := []string{}
	ok(t, v.Rows(Range{}, false, func(row []byte, cells filter.Source) (bool, error) {
		for {
			c, err := cells.Next(filter.SkipNone)
			if c == nil || err != nil {
				return err == nil, err
			}
			out = append(out, fmt.Sprintf("%s/%s:%s=%.20s", row, c.Family, c.Qualifier, c.Value))
		}
	}))
	ok(t, v.Close())
	return out
}

// leftovers returns what is on disk of no table and no backup.
func leftovers(t testing.TB, e *Engine) []string {
	t.Helper()
	known := map[uint32]bool{}
	for _, tab := range e.Tables("") {
		known[tab.id] = true
	}
	ok(t, e.eachDropped(func(_ string, d storedDropped) error {
		known[d.Table.ID] = true
		return nil
	}))
	var out []string
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceCells}, UpperBound: []byte{spaceCells + 1}})
	ok(t, err)
	for valid := it.First(); valid; valid = it.Next() {
		if id := bytes.Clone(it.Key()[:tablePart]); !known[uint32(id[1])<<24|uint32(id[2])<<16|uint32(id[3])<<8|uint32(id[4])] {
			out = append(out, fmt.Sprintf("cell %x", it.Key()))
		}
	}
	ok(t, it.Close())
	recorded, err := e.Backups("")
	ok(t, err)
	names, err := e.backups.fs.List(e.backups.dir)
	must(t, err == nil || len(recorded) == 0, "list backups: %v", err)
	for _, name := range names {
		if !slices.ContainsFunc(recorded, func(b *Backup) bool { return strconv.Itoa(int(b.number)) == name }) {
			out = append(out, "directory "+name)
		}
	}
	return out
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// TestBackup: a copy is of its moment, whatever becomes of its table and of the
// process, and holds nothing of families that were dropped.
func TestBackup(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := newClock()
			o := Options{FS: fs, Now: c.now}
			e, err := Open(dir, true, o)
			ok(t, err)
			defer func() { ok(t, e.Close()) }()
			ok(t, e.CreateTable(tableDef(backedUp), []string{"m"}))
			ok(t, e.CreateTable(tableDef(instance+"/tables/other"), nil))
			write(t, e, instance+"/tables/other", "o", "f", "other")
			write(t, e, backedUp, "a", "f", "old")
			write(t, e, backedUp, "dead", "g", "of a family that is dropped")
			ok(t, e.ChangeFamilies(backedUp, func(*adminpb.Table) ([]string, error) { return []string{"g"}, nil }))
			write(t, e, backedUp, "z\x00", "g", "new")
			want := []string{"a/f:q=old", "z\x00/g:q=new"}

			b, err := e.CreateBackup(backupDef("b", c.now().Add(day)))
			ok(t, err)
			must(t, b.Def.GetState() == adminpb.Backup_READY && b.Def.GetSizeBytes() > 0, "the backup is %v", b.Def)
			_, err = e.CreateBackup(backupDef("b", c.now().Add(day)))
			must(t, errors.Is(err, ErrExists), "made again: %v", err)
			write(t, e, backedUp, "a", "f", "newer")
			write(t, e, backedUp, "later", "f", "later")

			ok(t, e.RestoreTable(t.Context(), backupPath+"b", tableDef(restored)))
			same(t, "restored", dump(t, e, restored), want)
			same(t, "splits", e.Table(restored).Splits, []string{"m"})
			write(t, e, restored, "own", "f", "own")
			same(t, "its own writes", dump(t, e, restored), []string{"a/f:q=old", "own/f:q=own", "z\x00/g:q=new"})
			err = e.RestoreTable(t.Context(), backupPath+"b", tableDef(restored))
			must(t, errors.Is(err, ErrExists), "over a table: %v", err)

			copied := backupDef("copy", c.now().Add(day))
			copied.SourceBackup = backupPath + "b"
			_, err = e.CopyBackup(copied)
			ok(t, err)
			ok(t, e.DropBackup(backupPath+"b"))
			ok(t, e.DropTable(backedUp))
			ok(t, e.PurgeTables(backedUp))
			ok(t, e.db.Compact(t.Context(), []byte{spaceCells}, []byte{spaceCells + 1}, false))
			ok(t, e.Close())
			e, err = Open(dir, false, o)
			ok(t, err)
			same(t, "of nothing", leftovers(t, e), nil)
			ok(t, e.RestoreTable(t.Context(), backupPath+"copy", tableDef(backedUp)))
			same(t, "of the copy, after all else is gone", dump(t, e, backedUp), want)

			c.move(day)
			gone, err := e.Backup(backupPath + "copy")
			must(t, gone == nil && err == nil, "expired: %v, %v", gone, err)
			err = e.RestoreTable(t.Context(), backupPath+"copy", tableDef(instance+"/tables/late"))
			must(t, errors.Is(err, ErrMissing), "of an expired one: %v", err)
			ok(t, e.DropExpired())
			same(t, "of expired ones", leftovers(t, e), nil)
		})
	}
}

// TestUndelete: a dropped table comes back within seven days, unless its name was
// given away.
func TestUndelete(t *testing.T) {
	c := newClock()
	fs := vfs.NewMem()
	e, err := Open("data", true, Options{FS: fs, Now: c.now})
	ok(t, err)
	defer func() { ok(t, e.Close()) }()
	ok(t, e.CreateTable(tableDef(backedUp), nil))
	write(t, e, backedUp, "a", "f", "kept")
	drop := func() {
		t.Helper()
		ok(t, e.DropTable(backedUp))
		same(t, "dropped", dump(t, e, backedUp), nil)
	}
	drop()
	ok(t, e.Close())
	e, err = Open("data", false, Options{FS: fs, Now: c.now})
	ok(t, err)
	c.move(undeleteWindow - time.Second)
	ok(t, e.DropExpired())
	ok(t, e.UndeleteTable(backedUp))
	same(t, "back after a restart and a week less a second", dump(t, e, backedUp), []string{"a/f:q=kept"})
	must(t, errors.Is(e.UndeleteTable(backedUp), ErrExists), "brought back twice")

	drop()
	c.move(undeleteWindow)
	must(t, errors.Is(e.UndeleteTable(backedUp), ErrMissing), "brought back after a week")
	ok(t, e.DropExpired())
	ok(t, e.CreateTable(tableDef(backedUp), nil))
	write(t, e, backedUp, "b", "f", "second")
	drop()
	ok(t, e.CreateTable(tableDef(backedUp), nil))
	same(t, "made anew", dump(t, e, backedUp), []string{})
	drop()
	ok(t, e.UndeleteTable(backedUp))
	same(t, "the newest of the name", dump(t, e, backedUp), []string{})
	same(t, "of nothing", leftovers(t, e), nil)
}

// TestBackupPowerLost loses power before each write to the disk while tables are
// backed up, restored, dropped and brought back: what was acknowledged is there,
// and the rest is there whole or not at all.
func TestBackupPowerLost(t *testing.T) {
	want := []string{"r0/f:q=v", "r1/f:q=v", "r2/f:q=v"}
	c := newClock()
	def, copied := backupDef("b", c.now().Add(day)), backupDef("copy", c.now().Add(day))
	copied.SourceBackup = def.GetName()
	steps := []func(e *Engine) error{
		func(e *Engine) error { _, err := e.CreateBackup(def); return err },
		func(e *Engine) error { return e.RestoreTable(t.Context(), def.GetName(), tableDef(restored)) },
		func(e *Engine) error { _, err := e.CopyBackup(copied); return err },
		func(e *Engine) error { return e.DropTable(restored) },
		func(e *Engine) error { return e.UndeleteTable(restored) },
		func(e *Engine) error { return e.DropBackup(def.GetName()) },
	}
	type loss struct {
		fs   *vfs.MemFS
		done int // steps acknowledged
	}
	var losses []loss
	var mu sync.Mutex // guards losses and done
	done := -1
	mem := vfs.NewCrashableMem()
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if done >= 0 && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose {
			losses = append(losses, loss{mem.CrashClone(vfs.CrashCloneCfg{}), done})
		}
		return nil
	}))
	e, err := Open("data", true, Options{FS: fs, Now: c.now})
	ok(t, err)
	ok(t, e.CreateTable(tableDef(backedUp), nil))
	for i := range 3 {
		write(t, e, backedUp, fmt.Sprintf("r%d", i), "f", "v")
	}
	for i, step := range append(steps, func(*Engine) error { return nil }) {
		mu.Lock()
		done = i
		mu.Unlock()
		ok(t, step(e))
	}
	ok(t, e.Close())
	for i, l := range losses {
		what := fmt.Sprintf("loss %d of %d, %d steps done", i, len(losses), l.done)
		e, err := Open("data", false, Options{FS: l.fs, Now: c.now})
		ok(t, err)
		same(t, what+": leftovers", leftovers(t, e), nil)
		same(t, what+": the source", dump(t, e, backedUp), want)
		got := dump(t, e, restored)
		must(t, got == nil || slices.Equal(got, want), "%s: the restored table holds %q", what, got)
		must(t, got != nil || l.done < 2 || l.done == 3 || l.done == 4, "%s: the restored table is gone", what)
		for _, b := range []struct {
			name     string
			from, to int // steps between which it is there
		}{{def.GetName(), 1, 5}, {copied.GetName(), 3, len(steps) + 1}} {
			there, err := e.Backup(b.name)
			ok(t, err)
			must(t, there != nil || l.done < b.from || l.done >= b.to, "%s: %s is gone", what, b.name)
			if there != nil {
				name := instance + "/tables/again-" + there.Def.GetName()[len(backupPath):]
				ok(t, e.RestoreTable(t.Context(), b.name, tableDef(name)))
				same(t, what+": of "+b.name, dump(t, e, name), want)
			}
		}
		ok(t, e.Close())
	}
	must(t, len(losses) > 3*len(steps), "only %d writes were seen", len(losses))
}

// whenAsked is a context that is asked now and then whether it has ended.
type whenAsked func() error

func (whenAsked) Deadline() (time.Time, bool) { return time.Time{}, false }
func (whenAsked) Done() <-chan struct{}       { return nil }
func (f whenAsked) Err() error                { return f() }
func (whenAsked) Value(any) any               { return nil }

// TestRestoreGivenUp: a restore of many batches whose client goes away, and whose
// power goes at the same moment, leaves nothing.
func TestRestoreGivenUp(t *testing.T) {
	c := newClock()
	fs := vfs.NewCrashableMem()
	e, err := Open("data", true, Options{FS: fs, Now: c.now})
	ok(t, err)
	ok(t, e.CreateTable(tableDef(backedUp), nil))
	for i := range 5 {
		write(t, e, backedUp, fmt.Sprintf("r%d", i), "f", string(bytes.Repeat([]byte("v"), restoreBatch)))
	}
	_, err = e.CreateBackup(backupDef("b", c.now().Add(day)))
	ok(t, err)
	var asked int
	var lost *vfs.MemFS
	err = e.RestoreTable(whenAsked(func() error {
		if asked++; asked < 3 {
			return nil
		}
		ok(t, e.db.LogData(nil, pebble.Sync)) // as any other writer may
		must(t, len(leftovers(t, e)) == 2, "cells of no table: %q", leftovers(t, e))
		lost = fs.CrashClone(vfs.CrashCloneCfg{})
		return context.Canceled
	}), backupPath+"b", tableDef(restored))
	must(t, errors.Is(err, context.Canceled), "given up: %v", err)
	same(t, "after the client went", dump(t, e, restored), nil)
	same(t, "of nothing, after the client went", leftovers(t, e), nil)
	ok(t, e.RestoreTable(t.Context(), backupPath+"b", tableDef(restored)))
	must(t, len(dump(t, e, restored)) == 5, "restored again: %q", dump(t, e, restored))
	ok(t, e.Close())

	e, err = Open("data", false, Options{FS: lost, Now: c.now})
	ok(t, err)
	same(t, "after the power went", dump(t, e, restored), nil)
	same(t, "of nothing, after the power went", leftovers(t, e), nil)
	ok(t, e.Close())
}
