package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/query/web"
)

// transports speak each version of HTTP to a server without TLS.
func transports(t testing.TB, dial func(context.Context, string, string) (net.Conn, error)) map[string]*http.Transport {
	http2 := &http.Protocols{}
	http2.SetUnencryptedHTTP2(true)
	all := map[string]*http.Transport{"HTTP/1.1": {DialContext: dial}, "HTTP/2.0": {DialContext: dial, Protocols: http2}}
	for _, tr := range all {
		t.Cleanup(tr.CloseIdleConnections)
	}
	return all
}

// TestSlowClient cuts off who asks and does not read: of a whole answer after the
// write timeout, of a stream when one write is not taken in that time.
func TestSlowClient(t *testing.T) {
	const size = 64 << 20 // more than the buffers of two sockets and of HTTP/2 together
	ended := make(chan error, 1)
	f := newConfigured(t, web.Ops{}, func(mux *http.ServeMux) {
		mux.HandleFunc("/whole", func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, size))
			ended <- err
		})
		mux.Handle("/stream", web.Endpoint{Stream: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			chunk, rc := make([]byte, 1<<20), http.NewResponseController(w)
			var err error
			for written := 0; written < size && err == nil; written += len(chunk) {
				_, err = w.Write(chunk)
				err = errors.Join(err, rc.Flush())
			}
			ended <- err
		})})
	}, func(c *web.Config) { c.WriteTimeout = 200 * time.Millisecond })
	base := f.serving(t)
	for proto, tr := range transports(t, nil) {
		for _, path := range []string{"/whole", "/stream"} {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatalf("%s %s: %v", proto, path, err)
			}
			if err := <-ended; err == nil || res.Proto != proto {
				t.Errorf("%s %s: all of it was written by %s to a client that reads nothing", proto, path, res.Proto)
			}
			if n, err := io.Copy(io.Discard, res.Body); err == nil {
				t.Errorf("%s %s: %d bytes look whole", proto, path, n)
			}
			res.Body.Close()
			cancel()
		}
	}
}

// pipes is a listener whose connections are in memory, for a clock that is not real.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	server, client := net.Pipe()
	p.conns <- server
	return client, nil
}

// TestLongStream lets a stream live beyond every timeout, silent for longer than a
// write may take, and asks for another on the same connection.
func TestLongStream(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		synctest.Test(t, func(t *testing.T) {
			const events = 5
			f := newFixture(t, web.Ops{}, func(mux *http.ServeMux) {
				mux.Handle("/stream", web.Endpoint{Stream: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					for i := range events {
						fmt.Fprintf(w, "event %d\n", i)
						if err := http.NewResponseController(w).Flush(); err != nil {
							t.Errorf("flush: %v", err)
						}
						select {
						case <-time.After(2 * time.Minute):
						case <-r.Context().Done():
							t.Errorf("the stream's context ended: %v", r.Context().Err())
							return
						}
					}
					io.WriteString(w, "end\n") //nolint:errcheck // a test
				})})
			})
			ln := &pipes{make(chan net.Conn), make(chan struct{})}
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- f.Run(ctx, ln) }()
			tr := transports(t, ln.dial)[proto]
			for range 2 {
				req, err := http.NewRequest(http.MethodGet, "http://pipe/stream", nil)
				if err != nil {
					t.Fatal(err)
				}
				res, err := tr.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				start, lines := time.Now(), bufio.NewScanner(res.Body)
				for i := 0; lines.Scan(); i++ {
					if at := time.Since(start); at != time.Duration(i)*2*time.Minute {
						t.Errorf("%s: %q came after %s", proto, lines.Text(), at)
					}
				}
				if lines.Err() != nil || time.Since(start) != events*2*time.Minute || res.Proto != proto {
					t.Errorf("%s: ended after %s: %v", res.Proto, time.Since(start), lines.Err())
				}
				res.Body.Close()
			}
			tr.CloseIdleConnections()
			stop()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

// TestInWork refuses what is beyond the requests in work, but never the state of the
// program or a stream, and takes the next when one is done, in whatever way.
func TestInWork(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan bool)
	f := newConfigured(t, web.Ops{}, func(mux *http.ServeMux) {
		spellings(mux)
		mux.HandleFunc("/wait", func(http.ResponseWriter, *http.Request) {
			entered <- struct{}{}
			if <-leave {
				panic("oh")
			}
		})
		mux.Handle("/stream", web.Endpoint{Stream: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "streamed") //nolint:errcheck // a test
		})})
	}, func(c *web.Config) { c.InWork = 1 })
	base := f.serving(t)
	for _, panics := range []bool{false, true} {
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			raw(t, base, "GET /wait HTTP/1.1")
		}()
		<-entered
		res, body := raw(t, base, "GET /item/1 HTTP/1.1")
		if got := problemOf(t, res, body); res.StatusCode != 503 || got["code"] != "unavailable" || res.Header.Get("Retry-After") != "1" {
			t.Errorf("beyond the bound: %d %v %s", res.StatusCode, res.Header, body)
		}
		if res, body := raw(t, base, "GET /theirs/1 HTTP/1.1"); res.StatusCode != 503 || strings.TrimSpace(body) != `{"theirs":"unavailable"}` || res.Header.Get("Retry-After") != "1" {
			t.Errorf("beyond the bound, another's form: %d %v %s", res.StatusCode, res.Header, body)
		}
		for _, target := range []string{"GET /livez", "GET /readyz", "GET /health", "GET /metrics", "GET /stream"} {
			if res, _ := raw(t, base, target+" HTTP/1.1"); res.StatusCode != 200 {
				t.Errorf("%s: %d", target, res.StatusCode)
			}
		}
		for _, e := range f.logs.TakeAll() {
			if e.Level > 0 {
				t.Errorf("logged %v", e)
			}
		}
		leave <- panics
		<-answered
	}
	if res, _ := raw(t, base, "GET /item/1 HTTP/1.1"); res.StatusCode != 200 {
		t.Errorf("with nothing in work: %d", res.StatusCode)
	}
}

// TestDeadline ends the work on every request that is no stream.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deadlines := map[string]time.Duration{}
		note := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if d, ok := r.Context().Deadline(); ok {
				deadlines[r.Pattern] = time.Until(d)
			}
		})
		f := newFixture(t, web.Ops{}, func(mux *http.ServeMux) {
			mux.Handle("/plain", note)
			mux.Handle("/exempt", web.Endpoint{Handler: note, Exempt: true})
			mux.Handle("/stream", web.Endpoint{Handler: note, Stream: true})
		})
		for _, path := range []string{"/plain", "/exempt", "/stream"} {
			f.do(http.MethodGet, path)
		}
		if diff := cmp.Diff(map[string]time.Duration{"/plain": web.RequestTimeout, "/exempt": web.RequestTimeout}, deadlines); diff != "" {
			t.Error(diff)
		}
	})
}

// TestLargeBodies refuses a body that says it is too large before it is read, and one
// that does not say so when it is.
func TestLargeBodies(t *testing.T) {
	f := newFixture(t, web.Ops{}, spellings)
	for name, c := range map[string]struct {
		body io.Reader
		want int
	}{
		"at the limit":       {strings.NewReader(strings.Repeat("x", 1<<20)), 200},
		"beyond it":          {strings.NewReader(strings.Repeat("x", 1<<20+1)), 413},
		"of unknown length":  {io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20))), 200},
		"beyond it, unknown": {io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20+1))), 413},
	} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/post", c.body))
		if w.Code != c.want {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if c.want == 413 {
			if got := problemOf(t, w.Result(), w.Body.String()); got["code"] != "too_large" || !strings.Contains(got["message"].(string), "1048576 bytes") {
				t.Errorf("%s: %s", name, w.Body)
			}
		}
	}
}

// TestPanicIsLoggedWithItsStack finds the place of a panic in the log, and nothing of
// it in the answer.
func TestPanicIsLoggedWithItsStack(t *testing.T) {
	f := newFixture(t, web.Ops{}, spellings)
	for _, target := range []string{"/panic", "/theirs/panic"} {
		w := f.do(http.MethodGet, target)
		logged := f.errorLogs()
		if w.Code != 500 || strings.Contains(w.Body.String(), "oh") || len(logged) != 1 {
			t.Fatalf("%s: %d %s, logged %v", target, w.Code, w.Body, logged)
		}
		if stack, _ := logged[0].ContextMap()["stack"].(string); !strings.Contains(stack, "_test.go:") || logged[0].ContextMap()["error"] != "panic: oh" {
			t.Errorf("%s: logged %v", target, logged[0].ContextMap())
		}
	}
}
