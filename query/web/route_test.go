package web_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/web"
)

// raw sends the head of a request as it is and returns the answer, which no client has
// followed or unpacked.
func raw(t testing.TB, base, head string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // a test
	method, _, _ := strings.Cut(head, " ")
	if _, err := io.WriteString(conn, strings.ReplaceAll(head, "\n", "\r\n")+"\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: %v", head, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", head, err)
	}
	return res, string(body)
}

// serving starts the server and stops it at the end of the test.
func (f *fixture) serving(t testing.TB) string {
	t.Helper()
	base, stop, done := f.run(t)
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return base
}

// dialect writes errors as an interface of another would.
func dialect(w http.ResponseWriter, _ *http.Request, err error) {
	e := query.AsError(err)
	web.WriteStatus(w, e.Code.Status(), map[string]string{"theirs": string(e.Code)})
}

// spellings are routes that echo what reaches them.
func spellings(mux *http.ServeMux) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s?%s", r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	})
	mux.Handle("/echo/{id}", echo)
	mux.Handle("/tree/", echo)
	mux.Handle("/rest/{rest...}", echo)
	mux.Handle("/theirs/{id}", web.Endpoint{Handler: echo, Methods: "GET, HEAD", WriteError: dialect})
	mux.Handle("/theirs/panic", web.Endpoint{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh") }), WriteError: dialect})
	mux.Handle("/post", web.Post(func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		return web.WriteJSON(w, r, len(body))
	}))
}

// TestSpellingsOfPaths sends paths that the mux alone would redirect, or that are
// none.
func TestSpellingsOfPaths(t *testing.T) {
	base := newFixture(t, web.Ops{}, spellings).serving(t)
	for _, c := range []struct {
		head   string
		status int
		body   string // all of it, or of an error the parameter and a part of its message
	}{
		{"GET /echo/1?a=b", 200, "GET /echo/1?a=b"},
		{"GET //echo/1?a=b&c", 200, "GET /echo/1?a=b&c"},
		{"POST ///echo/1?a=b", 200, "POST /echo/1?a=b"},
		{"GET //echo/a%2Fb", 200, "GET /echo/a%2Fb?"},
		{"GET /echo/a%2Fb", 200, "GET /echo/a%2Fb?"},
		{"GET /echo/%2e%2e", 200, "GET /echo/%2e%2e?"},
		{"GET /echo/%00%ff", 200, "GET /echo/%00%ff?"}, // the endpoint's to name
		{"GET http://localhost//echo/1", 200, "GET /echo/1?"},
		{"GET /tree?a=b", 200, "GET /tree/?a=b"},
		{"POST /tree", 200, "POST /tree/?"},
		{"GET /tree/x/", 200, "GET /tree/x/?"},
		{"GET /rest", 200, "GET /rest/?"},
		{"GET //rest?a", 200, "GET /rest/?a"},
		{"GET /rest/x%2F%2Fy", 200, "GET /rest/x%2F%2Fy?"},
		{"GET /echo//1", 400, "path: write /echo/1"},
		{"GET /echo/./1", 400, "path: write /echo/1"},
		{"GET /nothing/../echo/1?a=b", 400, "path: write /echo/1"},
		{"GET //rest/a//b/", 400, "path: write /rest/a/b/"},
		{"GET /..", 400, "path: write /,"},
		{"GET /nothing%00", 400, "path: zero byte"},
		{"GET /nothing/%ff%fe", 400, "path: UTF-8"},
		{"GET /echo/1/", 404, ": no such path"},
		{"GET /", 404, ": no such path"},
		{"GET //", 404, ": no such path"},
		{"GET http://localhost", 404, ": no such path"},
		{"POST //nothing", 405, ": use GET"},
		{"GET /theirs//1", 400, `{"theirs":"invalid_argument"}`},
		{"PUT //theirs/1", 405, `{"theirs":"method_not_allowed"}`},
		{"GET /theirs/panic", 500, `{"theirs":"internal"}`},
		{"PUT /post", 405, ": use POST"},
	} {
		res, body := raw(t, base, c.head+" HTTP/1.1")
		if res.StatusCode != c.status || res.Header.Get("Location") != "" {
			t.Errorf("%s: %d %v %s", c.head, res.StatusCode, res.Header, body)
			continue
		}
		if c.status == 200 || strings.HasPrefix(c.body, "{") {
			if got := strings.TrimSpace(body); got != c.body {
				t.Errorf("%s: %q, want %q", c.head, got, c.body)
			}
			continue
		}
		parameter, message, _ := strings.Cut(c.body, ": ")
		got := problemOf(t, res, body)
		if got["parameter"] != nil && got["parameter"] != parameter || got["parameter"] == nil && parameter != "" || !strings.Contains(got["message"].(string), message) {
			t.Errorf("%s: %s", c.head, body)
		}
	}
}

// problemOf checks the form of an error on a native path, and returns it.
func problemOf(t testing.TB, res *http.Response, body string) map[string]any {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for key, want := range map[string]any{
		"type": "about:blank", "title": http.StatusText(res.StatusCode), "status": float64(res.StatusCode),
		"instance": res.Header.Get("X-Request-Id"), "detail": got["message"],
	} {
		if got[key] != want || want == "" {
			t.Errorf("%s of an error is %v, want %v", key, got[key], want)
		}
	}
	if code, ok := got["code"].(string); !ok || code == "" || len(got) != 8 {
		t.Errorf("an error: %s", body)
	}
	if res.Header.Get("Content-Type") != "application/problem+json" || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("header of an error: %v", res.Header)
	}
	return got
}

// TestOptions tells the methods of each path, to browsers in the form that they
// understand.
func TestOptions(t *testing.T) {
	base := newFixture(t, web.Ops{}, spellings).serving(t)
	for path, methods := range map[string]string{
		"/item/1": "GET, HEAD", "/theirs/1": "GET, HEAD", "/post": "POST", "/echo/1": "GET, HEAD, POST", "/nothing": "GET, HEAD, POST", "/livez": "GET, HEAD",
	} {
		res, body := raw(t, base, "OPTIONS "+path+" HTTP/1.1")
		if res.StatusCode != 204 || body != "" || res.Header.Get("Allow") != methods+", OPTIONS" || res.Header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("OPTIONS %s: %d %v", path, res.StatusCode, res.Header)
		}
		res, _ = raw(t, base, "OPTIONS "+path+" HTTP/1.1\nOrigin: https://example.org\nAccess-Control-Request-Method: GET")
		if res.StatusCode != 204 || res.Header.Get("Access-Control-Allow-Methods") != methods || res.Header.Get("Access-Control-Max-Age") == "" {
			t.Errorf("preflight of %s: %d %v", path, res.StatusCode, res.Header)
		}
	}
}

// TestCORS lets pages of some origins read every answer and send every header that
// clients of the interfaces send.
func TestCORS(t *testing.T) {
	const page = "https://example.org"
	for name, c := range map[string]struct {
		setting string
		allowed string // to page
		vary    []string
	}{
		"any":   {"*", "*", nil},
		"it":    {"http://localhost:8080, https://example.org", page, []string{"Origin"}},
		"other": {"http://example.org", "", []string{"Origin"}},
		"none":  {"", "", []string{"Origin"}},
	} {
		origins, err := web.ParseOrigins(c.setting)
		if err != nil {
			t.Fatal(err)
		}
		limits := web.Limits{Origins: origins, PerMinute: 4}
		f := newConfigured(t, web.Ops{}, spellings, func(cfg *web.Config) { cfg.Limits = limits })
		for _, want := range []struct {
			target string
			status int
		}{{"/item/1", 200}, {"/nothing", 404}, {"/panic", 500}, {"/theirs/panic", 500}, {"/item/1", 429}, {"/theirs/1", 429}} {
			res := f.do(http.MethodGet, want.target, "Origin", page).Result()
			if res.StatusCode != want.status || res.Header.Get("Access-Control-Allow-Origin") != c.allowed {
				t.Errorf("%s: %s: %d %v", name, want.target, res.StatusCode, res.Header)
			}
			if diff := cmp.Diff(c.vary, res.Header.Values("Vary")); diff != "" {
				t.Errorf("%s: %s: Vary %s", name, want.target, diff)
			}
			if exposed := res.Header.Get("Access-Control-Expose-Headers"); (exposed == "") != (c.allowed == "") || res.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s: %s: %v", name, want.target, res.Header)
			}
		}
		preflight := f.do(http.MethodOptions, "/item/1", "Origin", page, "Access-Control-Request-Method", "POST").Header()
		if (preflight.Get("Access-Control-Allow-Headers") == "") != (c.allowed == "") {
			t.Errorf("%s: preflight %v", name, preflight)
		}
	}
}

// TestHeadersOfClients names to browsers all headers that clients send and read.
func TestHeadersOfClients(t *testing.T) {
	f := newFixture(t, web.Ops{}, nil)
	h := f.do(http.MethodOptions, "/item/1", "Origin", "https://example.org", "Access-Control-Request-Method", "POST").Header()
	for header, names := range map[string]string{
		"Access-Control-Allow-Headers": "content-type accept authorization x-api-key x-user-agent x-grpc-web grpc-timeout connect-protocol-version " +
			"if-none-match last-event-id traceparent x-request-id",
		"Access-Control-Expose-Headers": "grpc-status grpc-message etag retry-after x-request-id ratelimit ratelimit-policy",
	} {
		listed := strings.Split(strings.ToLower(h.Get(header)), ", ")
		for name := range strings.FieldsSeq(names) {
			if !slices.Contains(listed, name) {
				t.Errorf("%s lacks %s: %s", header, name, h.Get(header))
			}
		}
	}
}

func TestParseOrigins(t *testing.T) {
	for text, want := range map[string][]string{
		"": {}, " , ": {}, "*": {"*"}, "https://a.b, http://c:80": {"https://a.b", "http://c:80"},
	} {
		if got, err := web.ParseOrigins(text); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"example.org", "https://example.org/", "https://Example.org", "https://", "null", "https://a.b/c", "https://u@a.b", "https://a.b https://c.d", "https://%zz"} {
		if got, err := web.ParseOrigins(text); err == nil {
			t.Errorf("%q is taken: %q", text, got)
		}
	}
}
