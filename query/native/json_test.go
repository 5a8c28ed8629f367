package native

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// checkJSON compares the encoder with encoding/json.
func checkJSON(t *testing.T, p *query.Page) {
	t.Helper()
	want, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if err := newAPI(nil).writePage(w, httptest.NewRequest(http.MethodGet, "/", nil), p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want)+"\n", w.Body.String()); diff != "" {
		t.Fatalf("(-encoding/json +encoder):\n%s", diff)
	}
}

// TestJSON writes what encoding/json does: of all collected messages, whole and in part,
// and with every field set and every field absent, whatever fields there are.
func TestJSON(t *testing.T) {
	t.Parallel()
	for _, network := range vaa.Networks() {
		a, err := querytest.Load(network, "../../testdata/vaas")
		if err != nil {
			t.Fatal(err)
		}
		known, err := vaa.KnownGuardianSets(network)
		if err != nil {
			t.Fatal(err)
		}
		s := query.New(a.Store, network, func() vaa.GuardianSets { return known })
		for _, columns := range []archive.Columns{{}, {Qualifiers: []string{"Digest"}}, {Families: []string{"QuorumState"}}, {Latest: true}} {
			p, err := s.Scan(t.Context(), archive.Range{}, columns, query.Paging{Limit: query.MaxLimit})
			if err != nil {
				t.Fatal(err)
			}
			checkJSON(t, p)
		}
	}
	checkJSON(t, &query.Page{Items: []query.Attestation{{}}})
	checkJSON(t, &query.Page{Items: []query.Attestation{}})
	for _, list := range []int{0, 1, 2} {
		var a query.Attestation
		fill(reflect.ValueOf(&a).Elem(), list)
		for _, decoded := range []any{map[string]any{"x": "<&>\u2028"}, &payload.Transfer{}, &payload.TransferWithPayload{}} {
			if v := reflect.ValueOf(decoded); v.Kind() == reflect.Pointer {
				fill(v.Elem(), list)
			}
			a.Decoded = decoded
			checkJSON(t, &query.Page{Items: []query.Attestation{a, a}})
		}
		checkJSON(t, &query.Page{Items: slices.Repeat([]query.Attestation{a}, 101)}) // in two halves
	}
}

// fill sets every exported field, lists to some items.
func fill(v reflect.Value, items int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), items)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), items, items))
		for i := range items {
			fill(v.Index(i), items)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), items)
		}
	case reflect.String:
		v.SetString("a\"b<é\x00\xff")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(-7)
	case reflect.Uint8:
		v.SetUint(2)
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(65535)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), items)
			}
		}
	}
}

// BenchmarkJSON encodes the collected messages of mainnet, beside encoding/json.
func BenchmarkJSON(b *testing.B) {
	a, err := querytest.Load(vaa.Mainnet, "../../testdata/vaas")
	if err != nil {
		b.Fatal(err)
	}
	known, err := vaa.KnownGuardianSets(vaa.Mainnet)
	if err != nil {
		b.Fatal(err)
	}
	s := query.New(a.Store, vaa.Mainnet, func() vaa.GuardianSets { return known })
	p, err := s.Scan(b.Context(), archive.Range{}, archive.Columns{}, query.Paging{})
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	native := newAPI(s)
	b.Run("encoder", func(b *testing.B) {
		for b.Loop() {
			if err := native.writePage(httptest.NewRecorder(), r, p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		for b.Loop() {
			if _, err := json.Marshal(p); err != nil {
				b.Fatal(err)
			}
		}
	})
}
