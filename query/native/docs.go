package native

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"

	"github.com/attestry/attestry/query/web"
)

// openAPI describes the interface for programs. A test holds it against the routes and
// the types of package query.
//
//go:embed openapi.yaml
var openAPI []byte

//go:embed docs.html
var docsPage string

//go:embed docs.css
var docsStyle string

// registerDocs adds /openapi.yaml and /docs, a page that is made of the routes. It asks
// nobody for anything, and its policy lets it not.
func registerDocs(mux *http.ServeMux, routes []route) {
	page := docs(routes)
	sum := sha256.Sum256([]byte(docsStyle))
	policy := fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		base64.StdEncoding.EncodeToString(sum[:]))
	mux.Handle("/openapi.yaml", web.Get(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", web.Static)
		web.WriteBytes(w, r, "application/yaml", openAPI)
		return nil
	}))
	mux.Handle("/docs", web.Get(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Cache-Control", web.Static)
		web.WriteBytes(w, r, "text/html; charset=utf-8", page)
		return nil
	}))
}

// docs returns the page. It panics on a template that does not fit the routes, both of
// which are part of the program.
func docs(routes []route) []byte {
	type row struct{ Name, Meaning string }
	type entry struct {
		Method, Path, Summary string
		Params                []row
	}
	var entries []entry
	for _, rt := range routes {
		e := entry{Method: rt.method(), Path: rt.plainPath(), Summary: rt.summary}
		for _, p := range rt.params {
			e.Params = append(e.Params, row{string(p), p.meaning()})
		}
		entries = append(entries, e)
	}
	var page bytes.Buffer
	t := template.Must(template.New("docs").Parse(docsPage))
	err := t.Execute(&page, struct {
		Style  template.CSS
		Routes []entry
	}{template.CSS(docsStyle), entries})
	if err != nil {
		panic("native: page of the paths: " + err.Error())
	}
	return page.Bytes()
}
