package ingest

import "github.com/prometheus/client_golang/prometheus"

// metrics of ingestion. Their labels are bounded: outcomes and reasons are fixed
// names.
type metrics struct {
	items        *prometheus.CounterVec
	reasons      *prometheus.CounterVec
	held         prometheus.Gauge
	writeSeconds prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		items: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attestry_ingest_items_total", Help: "Items by what became of them.",
		}, []string{"outcome"}),
		reasons: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attestry_ingest_refused_total", Help: "Items that are invalid or ended in error, by reason.",
		}, []string{"reason"}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "attestry_ingest_held", Help: "Items that wait for a guardian set that is not known yet.",
		}),
		writeSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "attestry_ingest_write_seconds", Help: "Time to classify, append, apply and settle a batch.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2, 14),
		}),
	}
	if r != nil {
		r.MustRegister(m.items, m.reasons, m.held, m.writeSeconds)
	}
	return m
}
