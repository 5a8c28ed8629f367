package clienttest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/query/publicrpc"
	"github.com/attestry/attestry/vaa"
)

// pageTimeout bounds the load of a page with all that it does.
const pageTimeout = time.Minute

// openPage opens a page in a browser that finds no host but this one, and returns the
// document as its scripts left it. What the browser's console says is an error of the
// page, but for the texts expected: it tells of scripts that fail, and of what a policy
// or CORS holds back, not of requests that fail.
func openPage(t *testing.T, address string, expected ...string) string {
	t.Helper()
	chromium := testenv.Chromium(t)
	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	defer cancel()
	// The virtual time stands while a request is under way, and ends the page when it is idle.
	cmd := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--user-data-dir="+t.TempDir(), "--enable-logging=stderr", "--virtual-time-budget=30000", "--dump-dom", address)
	cmd.WaitDelay = time.Second // its children may hold the pipes
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("open %s: %v\n%s", address, err, &stderr)
	}
	for line := range strings.Lines(stderr.String()) {
		of := func(text string) bool { return strings.Contains(line, text) }
		if of("CONSOLE") && !slices.ContainsFunc(expected, of) {
			t.Errorf("the console of %s: %s", address, line)
		}
	}
	return stdout.String()
}

// browserAnswer is what the page saw of an answer; a header that it did not see is "".
type browserAnswer struct {
	Status                  int
	Error                   string
	Type                    string
	RequestID               string
	ETag                    string
	RetryAfter, RateLimit   string
	GRPCStatus, GRPCMessage string
	NotExposed              string
	Body                    json.RawMessage
}

// text is the body of an answer that the page read as text.
func (a browserAnswer) text(t *testing.T) string {
	t.Helper()
	var s string
	if err := json.Unmarshal(a.Body, &s); err != nil {
		t.Errorf("%s: %v", a.Body, err)
	}
	return s
}

// webRequest is the frame that asks for a VAA by gRPC-Web, in base64.
func webRequest(t *testing.T, id vaa.MessageID) string {
	t.Helper()
	body := marshal(t, signedVAARequest(id))
	return base64.StdEncoding.EncodeToString(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...))
}

// webVAA is the VAA in the first of the frames that answer by gRPC-Web, in base64. It is
// nil where there is none.
func webVAA(t *testing.T, text string) []byte {
	t.Helper()
	frames, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(frames) < 5 || frames[0] != 0 || uint64(len(frames)-5) < uint64(binary.BigEndian.Uint32(frames[1:])) {
		t.Errorf("no frames: %v, %q", err, text)
		return nil
	}
	var got publicrpc.GetSignedVAAResponse
	if err := proto.Unmarshal(frames[5:5+binary.BigEndian.Uint32(frames[1:])], &got); err != nil {
		t.Error(err)
	}
	return got.GetVaaBytes()
}

// askFromPage has a page of another origin ask a service for a VAA in all ways, until
// it asked too much.
func askFromPage(t *testing.T, service string, c collectedVAA) map[string]browserAnswer {
	t.Helper()
	page := httptest.NewServer(http.FileServer(http.Dir("testdata/browser")))
	defer page.Close()
	given := url.Values{
		"service": {service}, "message": {c.id.String()}, "vaa": {base64.StdEncoding.EncodeToString(c.VAA)},
		"present": {webRequest(t, c.id)}, "absent": {webRequest(t, vaa.MessageID{EmitterChain: 2, Sequence: 1})},
	}
	document := openPage(t, page.URL+"/page.html?"+given.Encode(), "x-of-nobody is not allowed")
	text := regexp.MustCompile(`(?s)<pre>(.*)</pre>`).FindStringSubmatch(document)
	if text == nil {
		t.Fatalf("the page did not come to its end:\n%s", document)
	}
	var answers map[string]browserAnswer
	if err := json.Unmarshal([]byte(html.UnescapeString(text[1])), &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

// TestBrowser asks from a page of another origin in a real browser, which lets the page
// see what CORS lets it see.
func TestBrowser(t *testing.T) {
	testenv.Chromium(t)
	w := newWorldWith(t, 30)
	asked := w.all[0]
	got := askFromPage(t, "http://"+w.server.HTTP, asked)
	const problem = "application/problem+json"
	for name, want := range map[string]struct {
		status int
		mime   string
		grpc   string
	}{
		"get": {200, "application/json", ""}, "raw": {200, "application/octet-stream", ""}, "again": {304, "", ""},
		"absent": {404, problem, ""}, "decode": {200, "application/json", ""}, "malformed": {400, problem, ""},
		"guardian": {200, "application/json", ""}, "wormholescan": {200, "application/json", ""},
		"grpc-web": {200, "application/grpc-web+proto", ""}, "grpc-web absent": {200, "application/grpc-web+proto", "5"},
		"grpc-web-text": {200, "application/grpc-web-text", ""}, "grpc-web-text absent": {200, "application/grpc-web-text", "5"},
		"limited": {429, problem, ""}, "limited post": {429, problem, ""},
	} {
		a := got[name]
		if a.Error != "" || a.Status != want.status || !strings.HasPrefix(a.Type, want.mime) || a.GRPCStatus != want.grpc || a.RequestID == "" || a.RateLimit == "" {
			t.Errorf("%s: got %+v, want status %d of %s, gRPC's %q", name, a, want.status, want.mime, want.grpc)
		}
		if a.NotExposed != "" || (want.grpc != "") != (a.GRPCMessage != "") || (want.status == 429) != (a.RetryAfter != "") {
			t.Errorf("%s: the page sees %+v", name, a)
		}
	}
	// The browser does hold back what it is not allowed.
	if a := got["forbidden header"]; a.Error == "" {
		t.Errorf("a header that is not allowed: %+v", a)
	}
	for _, name := range []string{"get", "decode"} {
		var attestation struct{ ID, Digest string }
		if err := json.Unmarshal(got[name].Body, &attestation); err != nil || attestation.ID != asked.id.String() || attestation.Digest == "" {
			t.Errorf("%s: %s", name, got[name].Body)
		}
	}
	if got["get"].ETag == "" || got["decode"].RequestID != "of-the-page" {
		t.Errorf("headers: %+v, %+v", got["get"], got["decode"])
	}
	if raw := got["raw"].text(t); raw != base64.StdEncoding.EncodeToString(asked.VAA) {
		t.Errorf("the bytes of the VAA: %s", raw)
	}
	for _, name := range []string{"grpc-web", "grpc-web-text"} {
		if raw := webVAA(t, got[name].text(t)); !bytes.Equal(raw, asked.VAA) {
			t.Errorf("the VAA by %s: %x", name, raw)
		}
	}
}

// TestDocsPage opens /docs in a real browser: every operation of openapi.yaml is there,
// with a link that leads to it, and nothing is fetched.
func TestDocsPage(t *testing.T) {
	testenv.Chromium(t)
	w := newWorldWith(t, 0)
	base := "http://" + w.server.HTTP
	document := openPage(t, base+"/docs")
	header, _ := get(t, base+"/docs")
	// What else the page wanted, the browser would hold back and say.
	policy := regexp.MustCompile(`^default-src 'none'; style-src 'sha256-\S+'(; (base-uri|form-action|frame-ancestors) 'none')+$`)
	if got := header.Get("Content-Security-Policy"); !policy.MatchString(got) {
		t.Errorf("policy of the page: %q", got)
	}
	_, text := get(t, base+"/openapi.yaml")
	var spec struct{ Paths map[string]map[string]any }
	if err := yaml.Unmarshal(text, &spec); err != nil || len(spec.Paths) < 20 {
		t.Fatalf("openapi.yaml: %d paths, %v", len(spec.Paths), err)
	}
	for path, operations := range spec.Paths {
		for method := range operations {
			if title := strings.ToUpper(method) + " " + html.EscapeString(path); !strings.Contains(document, "<h3><code>"+title+"</code></h3>") {
				t.Errorf("the page lacks %s", title)
			}
		}
	}
	links := regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(document, -1)
	if len(links) < len(spec.Paths) {
		t.Errorf("%d links for %d paths", len(links), len(spec.Paths))
	}
	for _, link := range links {
		id, err := url.PathUnescape(link[1]) // as browsers do
		if err != nil || !strings.Contains(document, `id="`+html.EscapeString(id)+`"`) {
			t.Errorf("the link #%s leads nowhere", link[1])
		}
	}
}

func get(t *testing.T, address string) (http.Header, []byte) {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it is read
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, res.Status, err)
	}
	return res.Header, body
}
