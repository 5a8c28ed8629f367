package derive

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	events prometheus.Counter
	errors prometheus.Counter
	offset prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "attestry_rollup_events_total", Help: "Events of the journal that were counted into rollups.",
		}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "attestry_rollup_errors_total", Help: "Attempts to count that failed and are repeated.",
		}),
		offset: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "attestry_rollup_offset", Help: "Offset of the journal through which rollups are counted.",
		}),
	}
	if r == nil {
		return m, nil
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.events, m.errors, m.offset} {
		errs = append(errs, r.Register(c))
	}
	return m, errors.Join(errs...)
}
