package web_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/attestry/attestry/query/web"
)

// large is the body of a listing in size and redundancy.
func large() []byte {
	var b bytes.Buffer
	for i := range 200 {
		b.WriteString(`{"emitterChain":2,"sequence":"` + strconv.Itoa(i*i*i) + `","state":"quorum"},` + "\n")
	}
	return b.Bytes()
}

func bodies(mux *http.ServeMux) {
	serve := func(path, contentType string, body []byte, header ...string) {
		mux.Handle(path, web.Get(func(w http.ResponseWriter, r *http.Request) error {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			web.WriteBytes(w, r, contentType, body)
			return nil
		}))
	}
	serve("/large", "application/json", large())
	serve("/text", "text/plain; charset=utf-8", large())
	serve("/small", "application/json", large()[:1023])
	serve("/raw", "application/octet-stream", large())
	serve("/encoded", "application/json", large(), "Content-Encoding", "br")
	serve("/immutable", "application/json", large(), "Cache-Control", web.Immutable, "Vary", "Accept")
	mux.Handle("/posted", web.Post(func(w http.ResponseWriter, r *http.Request) error {
		web.WriteBytes(w, r, "application/json", large())
		return nil
	}))
}

// unpacked returns the body of an answer without its coding.
func unpacked(t testing.TB, res *http.Response, body string) []byte {
	t.Helper()
	var r io.Reader = strings.NewReader(body)
	var err error
	switch res.Header.Get("Content-Encoding") {
	case "gzip":
		r, err = gzip.NewReader(r)
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20)); err == nil {
			defer d.Close()
		}
		r = d
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNegotiation goes by the weights of RFC 9110, 12.5.3.
func TestNegotiation(t *testing.T) {
	base := newFixture(t, web.Ops{}, bodies).serving(t)
	for accept, want := range map[string]string{
		"": "", "identity": "", "br": "", "gzip": "gzip", "zstd": "zstd", "GZIP": "gzip", "x-gzip": "gzip",
		"gzip, compress, deflate, br":        "gzip", // axios
		"gzip, deflate, br, zstd":            "zstd", // browsers
		"gzip,deflate":                       "gzip",
		"gzip;q=0":                           "",
		"gzip;q=0, zstd":                     "zstd",
		"zstd;q=0.5, gzip;q=0.8":             "gzip",
		"zstd; q=0.5 , gzip ; q=0.5":         "zstd",
		"*":                                  "zstd",
		"*;q=0":                              "",
		"*;q=0.5, zstd;q=0":                  "gzip",
		"gzip, *;q=0":                        "gzip",
		"identity;q=1, gzip;q=0.5":           "",
		"identity;q=0.5, gzip;q=1":           "gzip",
		"identity;q=0.5, gzip;q=0.5":         "gzip",
		"identity;q=0, *;q=0":                "", // nothing is allowed; an answer is better than none
		"gzip;q=nonsense":                    "",
		"gzip;q=2":                           "",
		"gzip;q=-1":                          "",
		"gzip;q=NaN":                         "",
		"gzip\nAccept-Encoding: zstd":        "zstd",
		";;,,q=1, gzip;q=0.001":              "gzip",
		"gzip;q=1.000, zstd;q=0.999, *;q=.1": "gzip",
	} {
		res, body := raw(t, base, "GET /large HTTP/1.1\nAccept-Encoding: "+accept)
		if got := res.Header.Get("Content-Encoding"); got != want {
			t.Errorf("%q: %q, want %q", accept, got, want)
		}
		if !bytes.Equal(unpacked(t, res, body), large()) {
			t.Errorf("%q: another body", accept)
		}
		if res.Header.Get("Vary") != "Accept-Encoding" || res.ContentLength != int64(len(body)) {
			t.Errorf("%q: %v", accept, res.Header)
		}
		if want != "" && len(body) > len(large())/3 {
			t.Errorf("%q: %d bytes of %d", accept, len(body), len(large()))
		}
	}
}

// TestWhatIsCompressed leaves alone what is not worth it or is compressed already.
func TestWhatIsCompressed(t *testing.T) {
	base := newFixture(t, web.Ops{}, bodies).serving(t)
	for target, want := range map[string]struct {
		coding, vary, cache string
	}{
		"GET /large":     {"gzip", "Accept-Encoding", "no-cache"},
		"HEAD /large":    {"gzip", "Accept-Encoding", "no-cache"},
		"GET /text":      {"gzip", "Accept-Encoding", "no-cache"},
		"POST /posted":   {"gzip", "Accept-Encoding", "no-store"},
		"GET /small":     {"", "", "no-cache"},
		"GET /raw":       {"", "", "no-cache"},
		"GET /encoded":   {"br", "", "no-cache"},
		"GET /immutable": {"gzip", "Accept Accept-Encoding", "public, max-age=31536000, immutable"},
		"GET /nothing":   {"", "", "no-store"},
		"GET /livez":     {"", "", "no-store"},
		"GET /metrics":   {"gzip", "Accept Accept-Encoding", "no-store"}, // by the handler of the metrics itself
	} {
		res, _ := raw(t, base, target+" HTTP/1.1\nAccept-Encoding: gzip")
		h := res.Header
		if h.Get("Content-Encoding") != want.coding || strings.Join(h.Values("Vary"), " ") != want.vary || h.Get("Cache-Control") != want.cache {
			t.Errorf("%s: %v", target, h)
		}
	}
}

// TestRevalidation has an ETag for each form of an answer, by which each is asked for
// again.
func TestRevalidation(t *testing.T) {
	base := newFixture(t, web.Ops{}, bodies).serving(t)
	ask := func(method, accept, match string) (*http.Response, string) {
		head := method + " /large HTTP/1.1\nAccept-Encoding: " + accept
		if match != "" {
			head += "\nIf-None-Match: " + match
		}
		return raw(t, base, head)
	}
	tags := map[string]string{}
	for _, accept := range []string{"identity", "gzip", "zstd"} {
		res, _ := ask("GET", accept, "")
		tags[accept] = res.Header.Get("ETag")
		if strings.HasPrefix(tags[accept], `"`) != (accept == "identity") || strings.HasPrefix(tags[accept], `W/"`) != (accept != "identity") {
			t.Errorf("%s: ETag %s", accept, tags[accept])
		}
	}
	if tags["gzip"] == tags["zstd"] || strings.Contains(tags["gzip"], tags["identity"]) {
		t.Errorf("ETags %v", tags)
	}
	for _, c := range []struct {
		accept, match string
		known         bool
	}{
		{"identity", tags["identity"], true},
		{"identity", "W/" + tags["identity"], true}, // as a proxy weakens it
		{"identity", tags["gzip"], false},
		{"gzip", tags["gzip"], true},
		{"gzip", strings.TrimPrefix(tags["gzip"], "W/"), true},
		{"gzip", tags["identity"], true},
		{"gzip", tags["zstd"], false},
		{"zstd", tags["zstd"], true},
		{"zstd", `"x", ` + tags["zstd"] + `, W/"y"`, true},
		{"zstd", `"x"` + "\nIf-None-Match: " + tags["zstd"], true},
		{"zstd", "*", true},
		{"zstd", `"x,y"`, false},
		{"zstd", "nonsense", false},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			whole, _ := ask(method, c.accept, "")
			res, body := ask(method, c.accept, c.match)
			if known := res.StatusCode == http.StatusNotModified; known != c.known {
				t.Errorf("%s %s, If-None-Match %s: %d", method, c.accept, c.match, res.StatusCode)
				continue
			}
			if !c.known {
				continue
			}
			if body != "" || !strings.Contains(c.match, strings.TrimPrefix(res.Header.Get("ETag"), "W/")) && c.match != "*" {
				t.Errorf("%s %s, If-None-Match %s: %v %q", method, c.accept, c.match, res.Header, body)
			}
			for _, kept := range []string{"Cache-Control", "Vary"} { // RFC 9110, 15.4.5
				if res.Header.Get(kept) != whole.Header.Get(kept) || res.Header.Get(kept) == "" {
					t.Errorf("%s of a 304: %q", kept, res.Header.Get(kept))
				}
			}
		}
	}
}

// TestHead answers HEAD as GET but for the body.
func TestHead(t *testing.T) {
	base := newFixture(t, web.Ops{}, bodies).serving(t)
	for _, target := range []string{"/large", "/small", "/raw", "/immutable", "/nothing", "/livez", "/item/1", "/secret"} {
		for _, accept := range []string{"identity", "zstd"} {
			headers := "HTTP/1.1\nX-Request-Id: id\nAccept-Encoding: " + accept
			get, _ := raw(t, base, "GET "+target+" "+headers)
			head, body := raw(t, base, "HEAD "+target+" "+headers)
			if body != "" || head.StatusCode != get.StatusCode || head.ContentLength <= 0 {
				t.Errorf("HEAD %s: %d, Content-Length %d, %q", target, head.StatusCode, head.ContentLength, body)
			}
			get.Header.Del("Date")
			head.Header.Del("Date")
			if diff := cmp.Diff(get.Header, head.Header); diff != "" {
				t.Errorf("HEAD %s (-GET +HEAD):\n%s", target, diff)
			}
		}
	}
}
