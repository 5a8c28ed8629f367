package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/attestry/attestry/emulator/filter"
)

const (
	streamed = "projects/p/instances/i/tables/t"
	day      = 24 * time.Hour
)

// clock is a clock that a test moves.
type clock struct{ micros atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.micros.Store(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

func (c *clock) now() time.Time       { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *clock) move(d time.Duration) { c.micros.Add(d.Microseconds()) }

func ok(t testing.TB, err error) {
	t.Helper()
	must(t, err == nil, "%v", err)
}

// verifyNone looks for goroutines that are left, unless the test ended early.
func verifyNone(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		goleak.VerifyNone(t)
	}
}

func must(t testing.TB, b bool, f string, args ...any) {
	t.Helper()
	if !b {
		t.Fatalf(f, args...)
	}
}

func openStreamed(t testing.TB, dir string, o Options) *Engine {
	t.Helper()
	e, err := Open(dir, true, o)
	ok(t, err)
	return e
}

// createStreamed makes a table with the family f, which keeps one version, and a
// change stream when retention is not 0.
func createStreamed(t testing.TB, e *Engine, retention time.Duration) *Table {
	t.Helper()
	def := &adminpb.Table{Name: streamed, ColumnFamilies: map[string]*adminpb.ColumnFamily{"f": {}}}
	if retention > 0 {
		def.ChangeStreamConfig = &adminpb.ChangeStreamConfig{RetentionPeriod: durationpb.New(retention)}
	}
	ok(t, e.CreateTable(def, nil))
	return e.Table(streamed)
}

func setRetention(t testing.TB, e *Engine, d time.Duration) *Table {
	t.Helper()
	ok(t, e.ChangeTable(streamed, func(def *adminpb.Table) error {
		def.ChangeStreamConfig = nil
		if d > 0 {
			def.ChangeStreamConfig = &adminpb.ChangeStreamConfig{RetentionPeriod: durationpb.New(d)}
		}
		return nil
	}))
	return e.Table(streamed)
}

func put(e *Engine, t *Table, value string, rows ...string) error {
	return e.Update(t, rows, SetOnly, func(tx *Tx) error {
		for _, row := range rows {
			tx.Row(row)
			if err := tx.Set(t.Family("f"), nil, 0, []byte(value)); err != nil {
				return err
			}
		}
		return nil
	})
}

func everything([]byte, int64) bool { return true }

// logOf returns all changes of a table that can be read.
func logOf(t testing.TB, e *Engine) []Change {
	t.Helper()
	l, err := e.Changes(e.Table(streamed))
	ok(t, err)
	p, err := l.Progress()
	ok(t, err)
	from, err := l.Earliest(e.Table(streamed))
	ok(t, err)
	var all []Change
	for from <= p.Durable {
		var some []Change
		some, from, err = l.Read(from, p.Durable, everything)
		ok(t, err)
		all = append(all, some...)
	}
	return all
}

func valueOf(c *Change) string { return string(c.Chunks[0].GetMutation().GetSetCell().GetValue()) }

// rowsOf returns the value of each row.
func rowsOf(t testing.TB, e *Engine) map[string]string {
	t.Helper()
	v, err := e.View(e.Table(streamed))
	ok(t, err)
	rows := map[string]string{}
	err = v.Rows(Range{}, false, func(row []byte, cells filter.Source) (bool, error) {
		c, err := cells.Next(filter.SkipNone)
		if err == nil {
			rows[string(row)] = string(c.Value)
		}
		return true, err
	})
	ok(t, errors.Join(err, v.Close()))
	return rows
}

// TestChangesSurviveCrash loses power at random moments under writers and a
// reader. What the reader was given is there afterwards, the log says what the
// rows hold, and no commit time is given twice.
func TestChangesSurviveCrash(t *testing.T) {
	defer verifyNone(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	fs := vfs.NewCrashableMem()
	for range 6 {
		e := openStreamed(t, "data", Options{FS: fs})
		table := e.Table(streamed)
		if table == nil {
			table = createStreamed(t, e, day)
		}
		var last int64
		if all := logOf(t, e); len(all) > 0 {
			last = all[len(all)-1].Commit
		}
		l, err := e.Changes(table)
		ok(t, err)
		var writers sync.WaitGroup
		for n := range 4 {
			writers.Go(func() {
				for i := range 50 {
					if err := put(e, table, strconv.Itoa(i), fmt.Sprintf("%d-a", n), fmt.Sprintf("%d-b", n)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		var given []Change
		from, err := l.Earliest(table)
		ok(t, err)
		from = max(from, last+1)
		for wanted := 1 + rng.IntN(390); len(given) < wanted; {
			p, err := l.Progress()
			ok(t, err)
			if p.Durable < from {
				<-p.Changed
				continue
			}
			var some []Change
			some, from, err = l.Read(from, p.Durable, everything)
			ok(t, err)
			given = append(given, some...)
		}
		fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(seed, 1))})
		writers.Wait()
		ok(t, e.Close())

		e = openStreamed(t, "data", Options{FS: fs})
		all := logOf(t, e)
		at := slices.IndexFunc(all, func(c Change) bool { return c.Commit > last })
		must(t, at >= 0, "of %d changes that were given none is left", len(given))
		same := func(a, b Change) bool {
			return a.Commit == b.Commit && string(a.Row) == string(b.Row) && valueOf(&a) == valueOf(&b)
		}
		must(t, len(all)-at >= len(given) && slices.EqualFunc(all[at:at+len(given)], given, same), "the log is not what was given")
		replayed := map[string]string{}
		for i := range all {
			must(t, i == 0 || all[i].Commit > all[i-1].Commit, "a commit time twice")
			replayed[string(all[i].Row)] = valueOf(&all[i])
		}
		rows := rowsOf(t, e)
		must(t, len(rows) == len(replayed), "%d rows, the log has %d", len(rows), len(replayed))
		for row, value := range rows {
			must(t, replayed[row] == value, "row %s is %q, by the log %q", row, value, replayed[row])
		}
		ok(t, e.Close())
	}
}

// TestChangesAreTrimmed follows a log over its retention period, a restart and a
// clock that is set back.
func TestChangesAreTrimmed(t *testing.T) {
	defer verifyNone(t)
	c, fs := newClock(), vfs.NewMem()
	e := openStreamed(t, "data", Options{FS: fs, Now: c.now})
	table := createStreamed(t, e, day)
	begin := c.now().UnixMicro()
	for range 3 {
		ok(t, put(e, table, "v", "a", "b"))
		c.move(10 * time.Hour)
	}
	first := logOf(t, e) // the first two are older than the period already
	must(t, len(first) == 4, "%d changes, want 4", len(first))
	l, err := e.Changes(table)
	ok(t, err)
	ok(t, e.SweepAll(t.Context()))
	must(t, len(logOf(t, e)) == 4, "the sweeper took more")
	_, _, err = l.Read(begin, first[3].Commit, everything)
	must(t, errors.Is(err, ErrTrimmed), "a read of what was trimmed: %v", err)
	c.move(2 * day)
	ok(t, e.SweepAll(t.Context()))
	must(t, len(logOf(t, e)) == 0, "changes are left")
	last := first[3].Commit
	_, _, err = l.Read(last+1, last+1, everything)
	ok(t, err) // nothing was missed by a reader that had all
	ok(t, e.Close())

	c.move(-30 * day)
	e = openStreamed(t, "data", Options{FS: fs, Now: c.now})
	ok(t, put(e, e.Table(streamed), "v", "a", "b"))
	again := logOf(t, e)
	must(t, len(again) == 2 && again[0].Commit > last && again[1].Commit > again[0].Commit, "changes %v after %d", again, last)
	setRetention(t, e, 0)
	table = setRetention(t, e, day)
	must(t, len(logOf(t, e)) == 0, "changes of the stream that was disabled")
	ok(t, put(e, table, "v", "a"))
	must(t, logOf(t, e)[0].Commit > again[1].Commit, "a commit time of the stream that was disabled")
	ok(t, e.DropTable(streamed))
	ok(t, e.SweepAll(t.Context()))
	it, err := e.db.NewIter(nil)
	ok(t, err)
	must(t, !it.SeekGE([]byte{spaceChanges}), "the log of a table that is gone: %x", it.Key())
	ok(t, errors.Join(it.Close(), e.Close()))
}

// TestChangesFromEnabling enables and disables the change stream under writers
// that hold the table's definition from before. What the rows hold is what they
// held once it was enabled and what the log says.
func TestChangesFromEnabling(t *testing.T) {
	defer verifyNone(t)
	e := openStreamed(t, "data", Options{FS: vfs.NewMem()})
	table := createStreamed(t, e, 0)
	for round := range 40 {
		var all sync.WaitGroup
		var written atomic.Int64
		for n := range 8 {
			all.Go(func() {
				for i := range 30 {
					row := fmt.Sprintf("%d-%d-%d", round, n, i)
					if err := e.Update(table, []string{row}, SetOnly, func(tx *Tx) error {
						runtime.Gosched() // to be overtaken by the enabling
						tx.Row(row)
						return tx.Set(table.Family("f"), nil, 0, []byte("v"))
					}); err != nil {
						t.Error(err)
					}
					written.Add(1)
				}
			})
		}
		for written.Load() < 60 {
			runtime.Gosched()
		}
		setRetention(t, e, day)
		rows := rowsOf(t, e)
		all.Wait()
		for _, c := range logOf(t, e) {
			rows[string(c.Row)] = valueOf(&c)
		}
		must(t, len(rowsOf(t, e)) == len(rows), "round %d: %d rows, by the log %d", round, len(rowsOf(t, e)), len(rows))
		setRetention(t, e, 0)
	}
	ok(t, e.Close())
}

// TestProgress follows what a log says of itself.
func TestProgress(t *testing.T) {
	defer verifyNone(t)
	for _, noSync := range []bool{false, true} {
		c := newClock()
		e := openStreamed(t, "data", Options{FS: vfs.NewMem(), Now: c.now, NoSync: noSync})
		table := createStreamed(t, e, day)
		l, err := e.Changes(table)
		ok(t, err)
		c.move(time.Second)
		p, err := l.Progress()
		ok(t, err)
		must(t, p.Complete == c.now().UnixMicro() && p.Durable < p.Complete, "idle: %+v at %d", p, c.now().UnixMicro())
		// The clock stands, and yet nothing comes at a time of which was said that
		// nothing comes.
		ok(t, put(e, table, "v", "a", "b"))
		<-p.Changed
		q, err := l.Progress()
		ok(t, err)
		must(t, q.Durable == p.Complete+2 && q.Complete == q.Durable, "after two changes: %+v, before %+v", q, p)
		c.move(-time.Hour)
		ok(t, put(e, table, "v", "a"))
		all := logOf(t, e)
		must(t, len(all) == 3 && all[2].Commit == q.Durable+1, "a clock that is set back: %v", all)
		e.EndChangeStreams()
		<-q.Changed
		_, err = l.Progress()
		must(t, errors.Is(err, ErrClosing), "ended: %v", err)
		ok(t, put(e, table, "v", "a")) // writes go on
		ok(t, e.Close())
	}
}

// BenchmarkChanges writes hundred rows of ten cells of 120 bytes at once, with
// four writers, without and with a change stream.
func BenchmarkChanges(b *testing.B) {
	for name, retention := range map[string]time.Duration{"without": 0, "with": day} {
		b.Run(name, func(b *testing.B) {
			e := openStreamed(b, b.TempDir(), Options{})
			table := createStreamed(b, e, retention)
			value := make([]byte, 120)
			rng := rand.NewChaCha8([32]byte{})
			_, _ = rng.Read(value) // never fails
			qualifiers := [][]byte{}
			for i := range 10 {
				qualifiers = append(qualifiers, fmt.Appendf(nil, "column%d", i))
			}
			var next atomic.Int64
			b.SetParallelism(2)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					rows := make([]string, 100)
					for i := range rows {
						rows[i] = fmt.Sprintf("%016x", uint64(next.Add(1))*0x9e3779b97f4a7c15) // in no order
					}
					ok(b, e.Update(table, rows, SetOnly, func(tx *Tx) error {
						for _, row := range rows {
							tx.Row(row)
							for _, q := range qualifiers {
								if err := tx.Set(table.Family("f"), q, 0, value); err != nil {
									return err
								}
							}
						}
						return nil
					}))
				}
			})
			b.ReportMetric(float64(next.Load())/b.Elapsed().Seconds(), "rows/s")
			ok(b, e.Close())
		})
	}
}
