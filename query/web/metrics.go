package web

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attestry_http_requests_total", Help: "Answered HTTP requests by route and status code.",
		}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "attestry_http_request_seconds", Help: "Time from a request's header to the end of its answer, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15), // 0.5 ms to 8 s
		}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "attestry_http_requests_in_flight", Help: "HTTP requests that are not answered yet, streams too.",
		}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.inFlight} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of requests: %w", err)
		}
	}
	return m, nil
}

// observe counts and times a request that is answered. The route is the pattern that
// the mux has for it, so the number of series does not depend on what is asked; "none"
// is where it has none.
func (m *metrics) observe(r *http.Request, status int, took time.Duration) {
	m.inFlight.Dec()
	route := cmp.Or(r.Pattern, "none")
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}
