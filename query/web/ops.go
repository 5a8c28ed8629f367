package web

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/attestry/attestry/query"
)

// checkTimeout bounds the checks of one request; they run side by side.
const checkTimeout = 5 * time.Second

// Check returns nil if a part of the program works. It ends with its context and
// may be called concurrently.
type Check func(ctx context.Context) error

// Ops is what the operator's paths show.
type Ops struct {
	// Ready are the checks without which no question can be answered, by name.
	Ready map[string]Check
	// Health are checks of the rest: what fails there makes the archive degraded,
	// not unready. Names differ from those of Ready.
	Health   map[string]Check
	Gatherer prometheus.Gatherer // shown at /metrics
}

// Register adds the operator's paths to a mux, and the JSON 404 for every path
// that nobody else has.
//
//	/livez    200 while the program answers at all
//	/readyz   200, or 503 if a check of Ready fails
//	/health   200, or 503 if any check fails
//	/metrics  in the text format of Prometheus
func Register(mux *http.ServeMux, o Ops) {
	all := maps.Clone(o.Ready)
	if all == nil {
		all = map[string]Check{}
	}
	maps.Copy(all, o.Health)
	exempt := func(h func(http.ResponseWriter, *http.Request) error) http.Handler {
		return Endpoint{Handler: orError(h), Methods: getMethods, Exempt: true}
	}
	mux.Handle("/livez", exempt(func(w http.ResponseWriter, _ *http.Request) error {
		WriteStatus(w, http.StatusOK, report{Status: "ok", Checks: map[string]result{}})
		return nil
	}))
	mux.Handle("/readyz", exempt(checks(o.Ready, "not ready")))
	mux.Handle("/health", exempt(checks(all, "degraded")))
	metrics := promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{})
	mux.Handle("/metrics", exempt(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", noStore)
		metrics.ServeHTTP(w, r)
		return nil
	}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		WriteError(w, r, missing(w, r))
	})
}

// missing tells what is wrong with a request for a path that nobody has.
func missing(w http.ResponseWriter, r *http.Request) error {
	switch {
	case isGRPC(r): // 404 is what its clients take for a service that is not here
	case !IsGet(r):
		w.Header().Set("Allow", getMethods)
		return &query.Error{Code: query.MethodNotAllowed, Message: "method " + r.Method + " is not allowed here: use GET or HEAD"}
	case strings.ContainsRune(r.URL.Path, 0):
		return query.Invalid("path", "the path has a zero byte")
	case !utf8.ValidString(r.URL.Path):
		return query.Invalid("path", "the path is no UTF-8")
	}
	return &query.Error{Code: query.NotFound, Message: "no such path"}
}

// report is the JSON of /livez, /readyz and /health.
type report struct {
	Status string            `json:"status"` // "ok", "not ready" or "degraded"
	Checks map[string]result `json:"checks"` // by name
}

type result struct {
	OK    bool    `json:"ok"`
	Error *string `json:"error"`
}

// checks runs checks side by side and answers 200, or 503 and the given status
// text when one fails.
func checks(all map[string]Check, failing string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
		defer cancel()
		var (
			wg  sync.WaitGroup
			mu  sync.Mutex
			out = report{Status: "ok", Checks: map[string]result{}}
		)
		status := http.StatusOK
		for name, check := range all {
			wg.Go(func() {
				err := check(ctx)
				mu.Lock()
				defer mu.Unlock()
				res := result{OK: err == nil}
				if err != nil {
					text := err.Error()
					res.Error, out.Status, status = &text, failing, http.StatusServiceUnavailable
				}
				out.Checks[name] = res
			})
		}
		wg.Wait()
		WriteStatus(w, status, out)
		return nil
	}
}
