package native

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
)

type specification struct {
	Paths      map[string]map[string]operation
	Components struct {
		Parameters map[string]struct{ Name, In, Description string }
		Schemas    map[string]struct {
			Required   []string
			Properties map[string]any
		}
	}
}

type operation struct {
	Summary    string
	Parameters []struct {
		Ref  string `yaml:"$ref"`
		Name string
		In   string
	}
	Responses map[string]any
}

func readSpecification(t *testing.T) specification {
	t.Helper()
	var spec specification
	if err := yaml.Unmarshal(openAPI, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestSpecification holds openapi.yaml against the routes, both ways.
func TestSpecification(t *testing.T) {
	t.Parallel()
	spec := readSpecification(t)
	want, got := []string{}, []string{}
	used := map[string]bool{}
	for _, rt := range (api{}).routes() {
		line := rt.method() + " " + rt.plainPath()
		for _, p := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(rt.plainPath(), -1) {
			line += " path:" + p[1]
		}
		for _, p := range rt.params {
			line += " " + string(p)
			used[string(p)] = true
			if p.meaning() == "" {
				t.Errorf("parameter %s has no meaning", p)
			}
		}
		want = append(want, line)
	}
	for path, operations := range spec.Paths {
		for method, op := range operations {
			line := strings.ToUpper(method) + " " + path
			for _, p := range op.Parameters {
				if p.In == "path" {
					line += " path:" + p.Name
				} else {
					line += " " + strings.TrimPrefix(p.Ref, "#/components/parameters/")
				}
			}
			got = append(got, line)
			if op.Summary == "" || op.Responses["200"] == nil || op.Responses["default"] == nil {
				t.Errorf("%s: no summary or responses", line)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes and openapi.yaml (-routes +yaml):\n%s", diff)
	}
	for key, p := range spec.Components.Parameters {
		if p.Name != key || p.In != "query" || p.Description == "" || !used[key] {
			t.Errorf("parameter %s: %+v, used: %t", key, p, used[key])
		}
	}
	if len(used) != len(spec.Components.Parameters) {
		t.Errorf("%d parameters are used, %d described", len(used), len(spec.Components.Parameters))
	}
}

// TestSchemas holds the schemas against the types whose JSON they are.
func TestSchemas(t *testing.T) {
	t.Parallel()
	spec := readSpecification(t)
	types := map[string]reflect.Type{}
	for _, v := range []any{
		query.Attestation{},
		query.Search{},
		query.ParsedVAA{},
		query.Page{},
		query.GuardianSet{},
		query.EmitterPage{},
		query.RejectPage{},
		query.Status{},
		query.Totals{},
		query.Series{},
		query.Error{},
	} {
		collect(types, reflect.TypeOf(v))
	}
	for name, typ := range types {
		schema, ok := spec.Components.Schemas[name]
		if !ok {
			t.Errorf("type %s has no schema", name)
			continue
		}
		want := fields(typ)
		if name == "Error" { // the server adds what RFC 9457 asks for
			want = append(want, "detail", "instance", "status", "title", "type")
			slices.Sort(want)
		}
		got := slices.Sorted(func(yield func(string) bool) {
			for property := range schema.Properties {
				if !yield(property) {
					return
				}
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("schema %s (-type +schema): %s", name, diff)
		}
		slices.Sort(schema.Required)
		if diff := cmp.Diff(want, schema.Required); diff != "" {
			t.Errorf("schema %s, required: %s", name, diff)
		}
	}
	for name := range spec.Components.Schemas {
		if types[name] == nil {
			t.Errorf("schema %s is of no type", name)
		}
	}
}

// collect finds the structs of package query that a type is made of.
func collect(types map[string]reflect.Type, typ reflect.Type) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice:
		collect(types, typ.Elem())
	case reflect.Struct:
		if types[typ.Name()] != nil || !strings.HasSuffix(typ.PkgPath(), "/query") && typ.Name() != "Counts" {
			return
		}
		if typ.Name() != "Group" { // is embedded
			types[typ.Name()] = typ
		}
		for i := range typ.NumField() {
			if typ.Field(i).IsExported() {
				collect(types, typ.Field(i).Type)
			}
		}
	}
}

func fields(typ reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(typ) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestDocsPage holds that the page has every path and asks nobody for anything.
func TestDocsPage(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	Register(mux, query.New(nil, vaa.Mainnet, nil))
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK || w.Header().Get("ETag") == "" {
			t.Errorf("GET %s: status %d", path, w.Code)
		}
		return w
	}
	if got := get("/openapi.yaml"); got.Body.String() != string(openAPI) || got.Header().Get("Content-Type") != "application/yaml" {
		t.Errorf("/openapi.yaml: %s", got.Header())
	}
	page := get("/docs")
	for _, rt := range (api{}).routes() {
		if !strings.Contains(page.Body.String(), fmt.Sprintf("<code>%s %s</code>", rt.method(), rt.plainPath())) {
			t.Errorf("the page lacks %s", rt.path)
		}
	}
	for _, foreign := range []string{"http:", "https:", "src=", "<script", "@import", "url(", "style=\"", "ZgotmplZ"} {
		if strings.Contains(page.Body.String(), foreign) {
			t.Errorf("the page has %s", foreign)
		}
	}
	if policy := page.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") {
		t.Errorf("policy %q", policy)
	}
}
