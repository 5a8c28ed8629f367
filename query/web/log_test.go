package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/attestry/attestry/query/web"
)

// logged answers one request and returns what the log says of it.
func logged(t *testing.T, project string, header http.Header) map[string]any {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	mux := http.NewServeMux()
	mux.HandleFunc("/item/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	s, err := web.NewServer(web.Config{Routes: mux, Logger: zap.New(core), TraceProject: project})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/item/a%2Fb?key=secret", nil)
	r.Header = header
	s.ServeHTTP(httptest.NewRecorder(), r)
	entries := logs.TakeAll()
	if len(entries) != 1 {
		t.Fatalf("logged %v", entries)
	}
	return entries[0].ContextMap()
}

// TestTrace names the trace of a request as Cloud Logging wants it. The ids are the
// examples of W3C Trace Context and of Google's documentation of its header.
func TestTrace(t *testing.T) {
	const (
		w3c   = "4bf92f3577b34da6a3ce929d0e0e4736"
		cloud = "105445aa7843bc8bf206b12000100000"
		name  = "logging.googleapis.com/trace"
		span  = "logging.googleapis.com/spanId"
		kept  = "logging.googleapis.com/trace_sampled"
	)
	for what, c := range map[string]struct {
		project             string
		traceparent, header string
		want                map[string]any
	}{
		"neither":            {"p", "", "", map[string]any{}},
		"no project":         {"", "00-" + w3c + "-00f067aa0ba902b7-01", "", map[string]any{}},
		"traceparent":        {"p", "00-" + w3c + "-00f067aa0ba902b7-01", "", map[string]any{name: "projects/p/traces/" + w3c, span: "00f067aa0ba902b7", kept: true}},
		"traceparent first":  {"p", "00-" + w3c + "-00f067aa0ba902b7-00", cloud + "/1;o=1", map[string]any{name: "projects/p/traces/" + w3c, span: "00f067aa0ba902b7", kept: false}},
		"the older header":   {"p", "", cloud + "/1;o=1", map[string]any{name: "projects/p/traces/" + cloud, span: "0000000000000001", kept: true}},
		"its largest span":   {"p", "", cloud + "/18446744073709551615", map[string]any{name: "projects/p/traces/" + cloud, span: "ffffffffffffffff", kept: false}},
		"without a span":     {"p", "", cloud, map[string]any{name: "projects/p/traces/" + cloud, kept: false}},
		"a span of 65 bits":  {"p", "", cloud + "/18446744073709551616", map[string]any{name: "projects/p/traces/" + cloud, kept: false}},
		"capital letters":    {"p", "", "105445AA7843BC8BF206B12000100000", map[string]any{name: "projects/p/traces/" + cloud, kept: false}},
		"a broken one":       {"p", "00-" + w3c + "-01", cloud + "\n", map[string]any{}},
		"of zeros":           {"p", "", "00000000000000000000000000000000/1", map[string]any{}},
		"broken, then older": {"p", "00-x", cloud + "/1", map[string]any{name: "projects/p/traces/" + cloud, span: "0000000000000001", kept: false}},
	} {
		header := http.Header{}
		header.Set("Traceparent", c.traceparent)
		header.Set("X-Cloud-Trace-Context", c.header)
		got := map[string]any{}
		for key, value := range logged(t, c.project, header) {
			if key == name || key == span || key == kept {
				got[key] = value
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

// TestHTTPRequest logs a request in the form of LogEntry.HttpRequest, without its
// query.
func TestHTTPRequest(t *testing.T) {
	got, ok := logged(t, "", http.Header{})["httpRequest"].(map[string]any)
	if !ok {
		t.Fatal("no httpRequest")
	}
	var seconds float64
	if n, err := fmt.Sscanf(got["latency"].(string), "%fs", &seconds); n != 1 || err != nil || seconds < 0 || seconds > 60 {
		t.Errorf("latency %v", got["latency"])
	}
	delete(got, "latency")
	want := map[string]any{"requestMethod": "GET", "requestUrl": "/item/a%2Fb", "status": int64(http.StatusTeapot), "protocol": "HTTP/1.1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHTTP2 speaks HTTP/2 without TLS on the port of HTTP/1, and lets a request in
// flight on it finish when the server stops.
func TestHTTP2(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	f := newFixture(t, web.Ops{}, func(mux *http.ServeMux) {
		mux.HandleFunc("/wait", func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-leave
			io.WriteString(w, "finished") //nolint:errcheck // a test
		})
	})
	base, stop, done := f.run(t)
	if res, err := get(t, base+"/livez"); err != nil || res.Proto != "HTTP/1.1" {
		t.Errorf("HTTP/1: %v %v", res, err)
	}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	answer := make(chan string, 1)
	go func() {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, base+"/wait", nil)
		if err != nil {
			answer <- err.Error()
			return
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		answer <- fmt.Sprint(res.Proto, " ", string(b), err)
	}()
	<-entered
	stop()
	close(leave)
	if got := <-answer; got != "HTTP/2.0 finished<nil>" {
		t.Errorf("request in flight: %s", got)
	}
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}
