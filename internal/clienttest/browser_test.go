package clienttest

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/attestry/attestry/internal/testenv"
)

// pageTimeout bounds the load of a page with all that it does.
const pageTimeout = time.Minute

// openPage opens a page in a browser and returns the document as its scripts left it.
// What the browser's console says is an error of the page, but for what it says of the
// answers that are no success.
func openPage(t *testing.T, address string) string {
	t.Helper()
	chromium := testenv.Chromium(t)
	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--enable-logging=stderr", "--virtual-time-budget=30000", "--dump-dom", address)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("open %s: %v\n%s", address, err, &stderr)
	}
	for line := range strings.Lines(stderr.String()) {
		if strings.Contains(line, "CONSOLE") && !strings.Contains(line, "the server responded with a status of") {
			t.Errorf("the console of %s: %s", address, line)
		}
	}
	return stdout.String()
}

// browserAnswer is what the page saw of an answer.
type browserAnswer struct {
	Status     int
	Error      string
	RequestID  string
	ETag       string
	Type       string
	RetryAfter string
	Body       json.RawMessage
}

// TestBrowser asks from a page of another origin in a real browser, which lets the page
// see what CORS lets it see.
func TestBrowser(t *testing.T) {
	testenv.Chromium(t)
	w := newWorldWith(t, 60)
	page := httptest.NewServer(http.FileServer(http.Dir("testdata/browser")))
	defer page.Close()
	asked := url.Values{"service": {"http://" + w.server.HTTP}, "message": {w.all[0].id.String()}, "limit": {"60"}}
	document := openPage(t, page.URL+"/page.html?"+asked.Encode())
	text := regexp.MustCompile(`(?s)<pre>(.*)</pre>`).FindStringSubmatch(document)
	if text == nil {
		t.Fatalf("the page did not come to its end:\n%s", document)
	}
	var got map[string]browserAnswer
	if err := json.Unmarshal([]byte(html.UnescapeString(text[1])), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		status int
		mime   string
	}{
		"get": {200, "application/json"}, "raw": {200, "application/octet-stream"}, "absent": {404, "application/problem+json"},
		"post": {400, "application/problem+json"}, "again": {304, ""}, "guardian": {200, "application/json"},
		"wormholescan": {200, "application/json"}, "grpc-web": {200, "application/grpc-web+proto"}, "limited": {429, "application/problem+json"},
	} {
		a := got[name]
		if a.Error != "" || a.Status != want.status || !strings.HasPrefix(a.Type, want.mime) || a.RequestID == "" {
			t.Errorf("%s: got %+v, want status %d of %s", name, a, want.status, want.mime)
		}
	}
	var attestation struct{ ID, Digest string }
	if err := json.Unmarshal(got["get"].Body, &attestation); err != nil || attestation.ID != w.all[0].id.String() || attestation.Digest == "" {
		t.Errorf("an attestation: %+v", attestation)
	}
	if got["get"].ETag == "" || got["limited"].RetryAfter == "" {
		t.Errorf("headers are hidden from the page: %+v, %+v", got["get"], got["limited"])
	}
	if string(got["grpc-web"].Body) == "0" {
		t.Error("gRPC-Web: no bytes")
	}
}

// TestDocsPage opens /docs in a real browser: every path is there, with a link that
// leads to it, and nothing is fetched from elsewhere.
func TestDocsPage(t *testing.T) {
	testenv.Chromium(t)
	w := newWorldWith(t, 0)
	base := "http://" + w.server.HTTP
	document := openPage(t, base+"/docs")
	res, err := http.Get(base + "/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it is read below
	var spec bytes.Buffer
	if _, err := spec.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile(`(?m)^  (/v1/\S+):$`).FindAllStringSubmatch(spec.String(), -1)
	if len(paths) < 20 {
		t.Fatalf("%d paths in openapi.yaml", len(paths))
	}
	for _, p := range paths {
		if !strings.Contains(document, html.EscapeString(p[1])) {
			t.Errorf("the page lacks %s", p[1])
		}
	}
	for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(document, -1) {
		id, err := url.PathUnescape(link[1]) // as browsers do
		if err != nil || !strings.Contains(document, `id="`+html.EscapeString(id)+`"`) {
			t.Errorf("the link #%s leads nowhere", link[1])
		}
	}
	for _, asset := range regexp.MustCompile(`(?:src|<link[^>]*href)="([^"]+)"`).FindAllStringSubmatch(document, -1) {
		if strings.Contains(asset[1], "//") {
			t.Errorf("the page wants %s", asset[1])
		}
	}
}
