package web_test

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/zap"

	"github.com/attestry/attestry/query/web"
)

// sink takes an answer at no cost of its own.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(int)             {}

// BenchmarkChain measures what the server adds to a handler: alone, with rate limits,
// and with a thousand keys; and what a body of some KiB costs to hash and compress.
func BenchmarkChain(b *testing.B) {
	key := web.Key{Name: "k", Hash: sha256.Sum256([]byte("k")), PerMinute: web.MaxPerMinute}
	keys, many := []web.Key{key}, append(make([]web.Key, 999), key)
	for name, c := range map[string]struct {
		target, header, value string
		limits                web.Limits
	}{
		"bare mux":   {target: "/nop/1"},
		"chain":      {target: "/nop/1"},
		"limited":    {target: "/nop/1", limits: web.Limits{PerMinute: web.MaxPerMinute}},
		"proxied":    {"/nop/1", "X-Forwarded-For", "192.0.2.1, 198.51.100.7", web.Limits{PerMinute: web.MaxPerMinute, TrustedProxies: 2}},
		"key":        {"/nop/1", "X-Api-Key", "k", web.Limits{Keys: keys}},
		"1000 keys":  {"/nop/1", "X-Api-Key", "k", web.Limits{Keys: many}},
		"4 KiB":      {target: "/body"},
		"4 KiB gzip": {"/body", "Accept-Encoding", "gzip", web.Limits{}},
		"4 KiB zstd": {"/body", "Accept-Encoding", "zstd", web.Limits{}},
		"304":        {"/body", "If-None-Match", "*", web.Limits{}},
	} {
		b.Run(name, func(b *testing.B) {
			mux := http.NewServeMux()
			mux.Handle("/nop/{id}", web.Endpoint{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), Methods: "GET, HEAD"})
			body := large()[:4<<10]
			mux.Handle("/body", web.Get(func(w http.ResponseWriter, r *http.Request) error {
				web.WriteBytes(w, r, "application/json", body)
				return nil
			}))
			web.Register(mux, web.Ops{})
			server, err := web.NewServer(web.Config{Routes: mux, Logger: zap.NewNop(), Limits: c.limits})
			if err != nil {
				b.Fatal(err)
			}
			var h http.Handler = server
			if name == "bare mux" {
				h = mux
			}
			r := httptest.NewRequest(http.MethodGet, c.target, nil)
			if c.header != "" {
				r.Header.Set(c.header, c.value)
			}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(&sink{http.Header{}}, r)
			}
		})
	}
}
