package emulator_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/attestry/attestry/emulator"
)

// rewrites is how often TestRewrites writes its row: 200,000 times, or as often as
// ATTESTRY_SOAK_REWRITES says.
func rewrites(t *testing.T) int {
	n := 200_000
	if text := os.Getenv("ATTESTRY_SOAK_REWRITES"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		check(t, err)
	}
	return n
}

// TestRewrites writes one row of a family that keeps one version again and again:
// disk and memory stay bounded.
func TestRewrites(t *testing.T) {
	const (
		value     = 2 << 10
		perWrite  = 500
		diskBound = (4*32 + 64) << 20 // four logs of 32 MiB, of which some are used again
		heapBound = 64 << 20
	)
	n := rewrites(t)
	if n*value < 2*diskBound {
		t.Fatalf("%d rewrites would not show that anything is bounded", n)
	}
	dir := t.TempDir()
	w := start(t, nil, dir, emulator.Options{})
	defer func() { w.stop(t) }()
	check(t, creating(`table_id: "t" table { column_families { key: "f" value { gc_rule { max_num_versions: 1 } } } }`)(t, w))
	before := liveHeap()
	random := make([]byte, value+perWrite) // what cannot be compressed
	_, err := rand.Read(random)
	check(t, err)
	micros := int64(0)
	for written := 0; written < n; written += perWrite {
		mutations := make([]*btpb.Mutation, perWrite)
		for i := range mutations {
			micros += 1000
			mutations[i] = set("f", "q", micros, string(random[i:i+value]))
		}
		w.mutate(t, "r", mutations...)
	}
	eventually(t, func() (string, bool) {
		r, err := readRows(t.Context(), w.data, &btpb.ReadRowsRequest{})
		check(t, err)
		return fmt.Sprintf("%d versions are left", len(r.cells)), len(r.cells) == 1
	})
	eventually(t, func() (string, bool) {
		disk := bytesUnder(t, dir)
		return fmt.Sprintf("%d MiB on disk for one cell; at most %d", disk>>20, diskBound>>20), disk < diskBound
	})
	heap := liveHeap() - before
	t.Logf("%d rewrites: %d MiB on disk, %d MiB more live heap", n, bytesUnder(t, dir)>>20, heap>>20)
	if heap > heapBound {
		t.Errorf("%d MiB more live heap; at most %d", heap>>20, heapBound>>20)
	}
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func bytesUnder(t *testing.T, dir string) int64 {
	t.Helper()
	n := int64(0)
	check(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				n += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the server has removed it meanwhile
		}
		return err
	}))
	return n
}

// TestManyVersions: what does not want the versions of a column does not read them,
// however many there are (nodejs-bigtable#608).
func TestManyVersions(t *testing.T) {
	versions := 1_000_000
	if testing.Short() {
		versions = 200_000
	}
	w := start(t, vfs.NewMem(), "data", emulator.Options{})
	defer w.stop(t)
	_, err := w.tables.CreateTable(t.Context(), &adminpb.CreateTableRequest{Parent: parent, TableId: "t", Table: &adminpb.Table{
		ColumnFamilies: map[string]*adminpb.ColumnFamily{"f": {}, "g": {}},
	}})
	check(t, err)
	const perWrite = 50_000
	for from := 0; from < versions; from += perWrite {
		mutations := make([]*btpb.Mutation, perWrite)
		for i := range mutations {
			mutations[i] = set("f", "q", int64(from+i)*1000, "x")
		}
		w.mutate(t, "r", mutations...)
	}
	newest := fmt.Sprintf("r/f:q@%d=", int64(versions-1)*1000)
	w.mutate(t, "r", set("f", "z", 0, "z"), set("g", "q", 0, "y"))
	w.mutate(t, "s", set("f", "q", 0, "x"))
	for _, c := range []struct {
		req  string
		most int64
		want []string
	}{
		{`rows { row_keys: "r" } filter { chain { filters { cells_per_row_limit_filter: 1 } filters { strip_value_transformer: true } } }`, 2, []string{newest}},
		{`rows { row_keys: "r" } filter { cells_per_column_limit_filter: 1 }`, 6, []string{newest + "x", "r/f:z@0=z", "r/g:q@0=y"}},
		{`filter { chain { filters { cells_per_row_limit_filter: 1 } filters { strip_value_transformer: true } } }`, 4, []string{newest, "s/f:q@0="}},
		{`filter { family_name_regex_filter: "g" } rows_limit: 1`, 4, []string{"r/g:q@0=y"}},
		{`filter { column_range_filter { family_name: "f" start_qualifier_closed: "z" } }`, 5, []string{"r/f:z@0=z"}},
		{`filter { cells_per_row_limit_filter: 1 } reversed: true`, 4, []string{"s/f:q@0=x", newest + "x"}},
	} {
		r, err := readRows(withReverse(t.Context()), w.data, textOf(t, &btpb.ReadRowsRequest{}, c.req+` request_stats_view: REQUEST_STATS_FULL`))
		check(t, err)
		diff(t, c.req, r.cells, c.want...)
		if n := r.stats.GetFullReadStatsView().GetReadIterationStats().GetCellsSeenCount(); n > c.most {
			t.Errorf("%s: %d cells were seen, at most %d", c.req, n, c.most)
		}
	}
}
