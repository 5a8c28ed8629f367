package storage

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestNothingDeadIsKept: what belongs to a family or a table that is no more leaves
// the disk with a sweep, and what lives stays.
func TestNothingDeadIsKept(t *testing.T) {
	var later atomic.Int64 // nanoseconds that have passed
	fs, began := vfs.NewMem(), time.Now()
	o := Options{FS: fs, Now: func() time.Time { return began.Add(time.Duration(later.Load())) }}
	e, err := Open("data", true, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	const rows = 50
	for _, name := range []string{"kept", "dropped"} {
		if err := e.CreateTable(&adminpb.Table{Name: name, ColumnFamilies: map[string]*adminpb.ColumnFamily{"f": {}, "g": {}}}, nil); err != nil {
			t.Fatal(err)
		}
		table := e.Table(name)
		for i := range rows {
			row := fmt.Sprint(i)
			if err := e.Update(table, []string{row}, SetOnly, func(tx *Tx) error {
				tx.Row(row)
				for _, family := range []string{"f", "g"} {
					if err := tx.Set(table.Family(family), []byte("q"), 0, []byte("x")); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	late := e.Table("dropped")
	if err := e.DropTable("dropped"); err != nil {
		t.Fatal(err)
	}
	later.Store(int64(8 * 24 * time.Hour)) // until nobody can have the table back
	if err := e.DropExpired(); err != nil {
		t.Fatal(err)
	}
	// A write that was under way meanwhile; what it leaves is found by the next start.
	if err := e.Update(late, []string{"late"}, SetOnly, func(tx *Tx) error {
		tx.Row("late")
		return tx.Set(late.Family("f"), []byte("q"), 0, []byte("x"))
	}); err != nil {
		t.Logf("a write to a table that is gone: %v", err)
	}
	if err := e.ChangeTable("kept", func(def *adminpb.Table) error {
		delete(def.ColumnFamilies, "f")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := e.SweepAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = Open("data", false, o); err != nil {
		t.Fatal(err)
	}
	kept, dead := 0, 0
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceCells}, UpperBound: []byte{spaceCells + 1}})
	if err != nil {
		t.Fatal(err)
	}
	table := e.Table("kept")
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		k, err := decodeCellKey(key, split(key))
		if err != nil {
			t.Fatal(err)
		}
		if string(key[:tablePart]) == string(tablePrefix(table.id)) && string(k.family(key)) == "g" && k.generation == table.Family("g").Generation {
			kept++
		} else {
			dead++
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	if kept != rows || dead != 0 {
		t.Errorf("%d living cells are left, want %d; and %d dead ones, want none", kept, rows, dead)
	}
}
