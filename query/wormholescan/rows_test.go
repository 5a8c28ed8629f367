package wormholescan_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/query/wormholescan"
	"github.com/attestry/attestry/vaa"
)

// rows counts what a reader gives out.
type rows struct {
	archive.Reader
	index, records int
}

func (r *rows) Get(ctx context.Context, id vaa.MessageID, c archive.Columns) (archive.Record, error) {
	r.records++
	return r.Reader.Get(ctx, id, c)
}

func (r *rows) GetAll(ctx context.Context, ids []vaa.MessageID, c archive.Columns) (map[vaa.MessageID]archive.Record, error) {
	r.records += len(ids)
	return r.Reader.GetAll(ctx, ids, c)
}

func (r *rows) Scan(ctx context.Context, in archive.Range, c archive.Columns) iter.Seq2[archive.Record, error] {
	return counted(r.Reader.Scan(ctx, in, c), &r.records)
}

func (r *rows) Lookup(ctx context.Context, l archive.Lookup) iter.Seq2[archive.Ref, error] {
	return counted(r.Reader.Lookup(ctx, l), &r.index)
}

func counted[T any](seq iter.Seq2[T, error], n *int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			*n++
			if !yield(v, err) {
				return
			}
		}
	}
}

// TestRowsRead holds that no path reads more than it answers, one row to know whether
// there is more, and what an offset skips.
func TestRowsRead(t *testing.T) {
	t.Parallel()
	a, err := querytest.Load(vaa.Mainnet, collectedDir)
	if err != nil {
		t.Fatal(err)
	}
	known, err := vaa.KnownGuardianSets(vaa.Mainnet)
	if err != nil {
		t.Fatal(err)
	}
	counter := &rows{Reader: a.Store}
	mux := http.NewServeMux()
	wormholescan.Register(mux, wormholescan.Config{
		Service: query.New(counter, vaa.Mainnet, func() vaa.GuardianSets { return known }),
		Ready:   func(context.Context) error { return nil },
	})
	h, err := web.NewServer(web.Config{Routes: mux, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	const id = "26/f8cd23c2ab91237730770bbea08d61005cdda0984348f3f6eecb559638c0bba0/475780911"
	emitter, _, _ := strings.Cut(id, "/475780911")
	for _, c := range []struct {
		path    string
		skipped int
	}{
		{"vaas?pageSize=10", 0},
		{"vaas?pageSize=10&page=3", 30},
		{"vaas/26?pageSize=5", 0},
		{"vaas/" + emitter + "?pageSize=3", 0},
		{"vaas/" + emitter + "?pageSize=3&page=1", 3},
		{"vaas/" + id, 0},
		{"operations?pageSize=20", 0},
		{"operations?pageSize=20&sourceChain=26", 0},
		{"operations/" + id, 0},
		{"transactions?pageSize=4", 0},
		{"transactions/" + id, 0},
		{"observations?pageSize=40", 0},
		{"observations/" + id, 0},
	} {
		counter.index, counter.records = 0, 0
		w := do(h, http.MethodGet, "/api/v1/"+c.path, "")
		var body any
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", c.path, w.Code, w.Body)
		}
		n := itemsOf(body)
		if counter.index > n+c.skipped+1 || counter.records > n+c.skipped+1 || counter.records == 0 {
			t.Errorf("%s: %d items, %d index rows and %d rows read", c.path, n, counter.index, counter.records)
		}
	}
}

// itemsOf counts the items of an answer: those of its one list, else one.
func itemsOf(body any) int {
	switch v := body.(type) {
	case []any:
		return len(v)
	case map[string]any:
		for _, name := range []string{"data", "operations", "transactions"} {
			if list, ok := v[name]; ok && reflect.TypeOf(list).Kind() == reflect.Slice {
				return len(list.([]any))
			}
		}
	}
	return 1
}
