package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a server with routes of every behaviour.
type fixture struct {
	*web.Server
	logs     *observer.ObservedLogs
	registry *prometheus.Registry
}

func newFixture(t testing.TB, ops web.Ops, extra func(*http.ServeMux)) *fixture {
	t.Helper()
	return newConfigured(t, ops, extra, func(*web.Config) {})
}

// newConfigured is newFixture with another configuration.
func newConfigured(t testing.TB, ops web.Ops, extra func(*http.ServeMux), change func(*web.Config)) *fixture {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	f := &fixture{logs: logs, registry: prometheus.NewRegistry()}
	mux := http.NewServeMux()
	mux.Handle("/panic", web.Get(func(http.ResponseWriter, *http.Request) error { panic("oh") }))
	mux.Handle("/half", web.Get(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half") //nolint:errcheck // a test
		panic("oh")
	}))
	mux.Handle("/secret", web.Get(func(http.ResponseWriter, *http.Request) error { return errors.New("secret") }))
	mux.Handle("/slow", web.Get(func(_ http.ResponseWriter, r *http.Request) error {
		<-r.Context().Done()
		return fmt.Errorf("read: %w", r.Context().Err())
	}))
	mux.Handle("/item/{id}", web.Get(func(w http.ResponseWriter, r *http.Request) error {
		return web.WriteJSON(w, r, map[string]string{"id": r.PathValue("id")})
	}))
	mux.HandleFunc("/body", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	})
	if extra != nil {
		extra(mux)
	}
	ops.Gatherer = f.registry
	web.Register(mux, ops)
	c := web.Config{Routes: mux, Logger: zap.New(core), Registerer: f.registry, ShutdownTimeout: 2 * time.Second}
	change(&c)
	var err error
	f.Server, err = web.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) do(method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

func (f *fixture) errorLogs() []observer.LoggedEntry {
	return slices.DeleteFunc(f.logs.TakeAll(), func(e observer.LoggedEntry) bool { return e.Level < zapcore.ErrorLevel })
}

func TestRequestID(t *testing.T) {
	f := newFixture(t, web.Ops{}, nil)
	if got := f.do(http.MethodGet, "/item/1", "X-Request-Id", "abc-1.2_3").Header().Get("X-Request-Id"); got != "abc-1.2_3" {
		t.Errorf("the client's id became %q", got)
	}
	made := map[string]bool{}
	for _, id := range []string{"", "a b", "a\nb", strings.Repeat("a", 65), "<script>"} {
		got := f.do(http.MethodGet, "/item/1", "X-Request-Id", id).Header().Get("X-Request-Id")
		if got == "" || got == id || made[got] {
			t.Errorf("id %q became %q", id, got)
		}
		made[got] = true
	}
}

func TestFaultsAreLoggedOnceAndNotShown(t *testing.T) {
	f := newFixture(t, web.Ops{}, nil)
	for target, cause := range map[string]string{"/panic": "panic: oh", "/secret": "secret"} {
		w := f.do(http.MethodGet, target, "X-Request-Id", "id-of-this")
		var got map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 500 || got["code"] != "internal" || got["parameter"] != nil {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), cause) {
			t.Errorf("%s shows %s", target, w.Body)
		}
		logged := f.errorLogs()
		if len(logged) != 1 || logged[0].ContextMap()["error"] != cause || logged[0].ContextMap()["requestId"] != "id-of-this" {
			t.Errorf("%s: logged %v", target, logged)
		}
	}
	f.do(http.MethodGet, "/item/1")
	f.do(http.MethodGet, "/nothing")
	if logged := f.errorLogs(); len(logged) != 0 {
		t.Errorf("no fault, but logged %v", logged)
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, web.Ops{}, nil)
		start := time.Now()
		w := f.do(http.MethodGet, "/slow")
		if w.Code != http.StatusGatewayTimeout || !strings.Contains(w.Body.String(), string(query.DeadlineExceeded)) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if took := time.Since(start); took != web.RequestTimeout {
			t.Errorf("took %s", took)
		}
	})
}

func TestBodyLimit(t *testing.T) {
	f := newFixture(t, web.Ops{}, nil)
	for size, want := range map[int]int{1 << 20: 200, 1<<20 + 1: http.StatusRequestEntityTooLarge} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/body", strings.NewReader(strings.Repeat("x", size))))
		if w.Code != want {
			t.Errorf("body of %d bytes: %d, want %d", size, w.Code, want)
		}
	}
}

// TestMetrics counts by route, never by what was asked.
func TestMetrics(t *testing.T) {
	f := newFixture(t, web.Ops{}, nil)
	for i := range 3 {
		f.do(http.MethodGet, fmt.Sprint("/item/", i))
	}
	f.do(http.MethodPost, "/item/1")
	f.do(http.MethodGet, "/nothing")
	f.do(http.MethodGet, "/panic")
	f.do(http.MethodOptions, "/item/1")
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts, timed := map[string]float64{}, map[string]uint64{}
	for _, family := range families {
		for _, m := range family.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			switch family.GetName() {
			case "attestry_http_requests_total":
				counts[labels["route"]+" "+labels["code"]] = m.Counter.GetValue()
			case "attestry_http_request_seconds":
				timed[labels["route"]] = m.Histogram.GetSampleCount()
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"/item/{id} 200": 3, "/item/{id} 405": 1, "/ 404": 1, "/panic 500": 1, "/item/{id} 204": 1}, counts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]uint64{"/item/{id}": 5, "/": 1, "/panic": 1}, timed); diff != "" {
		t.Error(diff)
	}
	if body := f.do(http.MethodGet, "/metrics").Body.String(); !strings.Contains(body, `attestry_http_requests_total{code="405",route="/item/{id}"} 1`) {
		t.Errorf("/metrics: %s", body)
	}
	if _, err := web.NewServer(web.Config{Registerer: f.registry}); err == nil {
		t.Error("metrics registered twice")
	}
}

func TestHealth(t *testing.T) {
	ok := func(context.Context) error { return nil }
	bad := func(context.Context) error { return errors.New("store is away") }
	type want struct {
		ready, health   int
		readyz, healthz string
	}
	for name, c := range map[string]struct {
		ops web.Ops
		want
	}{
		"none": {web.Ops{}, want{200, 200, `{"status":"ok","checks":{}}`, `{"status":"ok","checks":{}}`}},
		"ok": {web.Ops{Ready: map[string]web.Check{"store": ok}, Health: map[string]web.Check{"redis": ok}}, want{
			200, 200, `{"status":"ok","checks":{"store":{"ok":true,"error":null}}}`,
			`{"status":"ok","checks":{"redis":{"ok":true,"error":null},"store":{"ok":true,"error":null}}}`,
		}},
		"degraded": {web.Ops{Ready: map[string]web.Check{"store": ok}, Health: map[string]web.Check{"redis": bad}}, want{
			200, 503, `{"status":"ok","checks":{"store":{"ok":true,"error":null}}}`,
			`{"status":"degraded","checks":{"redis":{"ok":false,"error":"store is away"},"store":{"ok":true,"error":null}}}`,
		}},
		"not ready": {web.Ops{Ready: map[string]web.Check{"store": bad, "index": ok}}, want{
			503, 503, `{"status":"not ready","checks":{"index":{"ok":true,"error":null},"store":{"ok":false,"error":"store is away"}}}`,
			`{"status":"degraded","checks":{"index":{"ok":true,"error":null},"store":{"ok":false,"error":"store is away"}}}`,
		}},
	} {
		f := newFixture(t, c.ops, nil)
		readyz, health := f.do(http.MethodGet, "/readyz"), f.do(http.MethodGet, "/health")
		got := want{readyz.Code, health.Code, strings.TrimSpace(readyz.Body.String()), strings.TrimSpace(health.Body.String())}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(want{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if w := f.do(http.MethodGet, "/livez"); w.Code != 200 {
			t.Errorf("%s: /livez %d", name, w.Code)
		}
	}
}

// TestHangingCheck holds that a check that does not come back in time counts as
// failed, and the others are told as they are.
func TestHangingCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		f := newFixture(t, web.Ops{Ready: map[string]web.Check{"a": hang, "b": func(context.Context) error { return nil }}}, nil)
		w := f.do(http.MethodGet, "/readyz")
		want := `{"status":"not ready","checks":{"a":{"ok":false,"error":"context deadline exceeded"},"b":{"ok":true,"error":null}}}`
		if got := strings.TrimSpace(w.Body.String()); w.Code != 503 || got != want {
			t.Errorf("%d %s", w.Code, got)
		}
	})
}

// run starts the server on a loopback port and returns its address, how to stop
// it, and what Run returned.
func (f *fixture) run(t testing.TB) (base string, stop func(), done chan error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	done = make(chan error, 1)
	go func() { done <- f.Run(ctx, ln) }()
	return "http://" + ln.Addr().String(), cancel, done
}

func get(t *testing.T, target string) (*http.Response, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	res, err := client.Get(target)
	if err == nil {
		t.Cleanup(func() { res.Body.Close() })
	}
	return res, err
}

// TestGracefulStop lets a request in flight finish.
func TestGracefulStop(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	f := newFixture(t, web.Ops{}, func(mux *http.ServeMux) {
		mux.HandleFunc("/wait", func(w http.ResponseWriter, r *http.Request) {
			close(entered)
			<-leave
			io.WriteString(w, "finished") //nolint:errcheck // a test
		})
	})
	base, stop, done := f.run(t)
	answer := make(chan string, 1)
	go func() {
		res, err := get(t, base+"/wait")
		if err != nil {
			answer <- err.Error()
			return
		}
		b, err := io.ReadAll(res.Body)
		answer <- fmt.Sprint(string(b), err)
	}()
	<-entered
	stop()
	close(leave)
	if got := <-answer; got != "finished<nil>" {
		t.Errorf("request in flight: %s", got)
	}
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, err := get(t, base+"/livez"); err == nil {
		t.Error("the listener is still open")
	}
}

// TestStopCutsOff ends after the deadline although a request is still in flight,
// whose context ends with it.
func TestStopCutsOff(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	f := newFixture(t, web.Ops{}, func(mux *http.ServeMux) {
		mux.HandleFunc("/wait", func(_ http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
			close(left)
		})
	})
	base, stop, done := f.run(t)
	go get(t, base+"/wait") //nolint:errcheck // it is cut off
	<-entered
	stop()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("Run: %v", err)
	}
	<-left
}

// TestHalfAnAnswer cuts the connection, so that the client cannot take what it
// has for the whole.
func TestHalfAnAnswer(t *testing.T) {
	f := newFixture(t, web.Ops{}, nil)
	base, stop, done := f.run(t)
	res, err := get(t, base+"/half")
	if err == nil {
		if b, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("half an answer looks whole: %q", b)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if logged := f.errorLogs(); len(logged) != 1 {
		t.Errorf("logged %v", logged)
	}
}

func TestFailedListener(t *testing.T) {
	f := newFixture(t, web.Ops{}, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := f.Run(context.Background(), ln); err == nil || !strings.Contains(err.Error(), "serve http on") {
		t.Errorf("Run: %v", err)
	}
}
