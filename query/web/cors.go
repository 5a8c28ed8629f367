package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// What pages of other origins may send and see, beside what the Fetch standard lets
// them anyway. The names are those of HTTP, of gRPC-Web and Connect, of SSE, and of
// W3C Trace Context.
const (
	allowedHeaders = "Accept, Authorization, Connect-Protocol-Version, Connect-Timeout-Ms, Content-Type, Grpc-Timeout, If-None-Match, " +
		"Last-Event-Id, Traceparent, X-Api-Key, X-Grpc-Web, X-Request-Id, X-User-Agent"
	exposedHeaders = "ETag, Grpc-Message, Grpc-Status, Grpc-Status-Details-Bin, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"
	// preflightAge is how long the answer to a preflight may be kept, in seconds: a day,
	// which some browsers cut to two hours.
	preflightAge = "86400"
)

// anyOrigin is the origin that stands for all.
const anyOrigin = "*"

// ParseOrigins reads a list of origins, parted by commas: * for any, or each as a
// browser sends it, https://example.org or http://localhost:8080. "" is none. Errors:
// one that no browser sends.
func ParseOrigins(text string) ([]string, error) {
	origins := []string{}
	for part := range strings.SplitSeq(text, ",") {
		origin := strings.TrimSpace(part)
		if origin == "" {
			continue
		}
		u, err := url.Parse(origin)
		if origin != anyOrigin && (err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || origin != strings.ToLower(origin)) {
			return nil, fmt.Errorf("%q is no origin: write https://example.org, in small letters and without a path, or * for any", origin)
		}
		origins = append(origins, origin)
	}
	return origins, nil
}

// cors answers for pages of other origins (the CORS protocol of the Fetch standard).
// Credentials are never allowed: nothing here depends on a cookie.
type cors struct {
	any     bool
	origins map[string]bool
}

// newCORS allows the origins given; nil allows any.
func newCORS(origins []string) cors {
	c := cors{any: origins == nil, origins: map[string]bool{}}
	for _, o := range origins {
		c.any = c.any || o == anyOrigin
		c.origins[o] = true
	}
	return c
}

// answer sets what every answer tells a browser, errors too.
func (c cors) answer(h http.Header, r *http.Request) {
	origin := anyOrigin
	if !c.any {
		h.Add("Vary", "Origin")
		if origin = r.Header.Get("Origin"); !c.origins[origin] {
			return
		}
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", exposedHeaders)
}

// options answers OPTIONS for an endpoint, and with it what a browser asks before a
// request from another origin.
func options(w http.ResponseWriter, r *http.Request, e Endpoint) {
	h := w.Header()
	h.Set("Allow", e.allow()+", OPTIONS")
	if r.Header.Get("Access-Control-Request-Method") != "" && h.Get("Access-Control-Allow-Origin") != "" {
		h.Set("Access-Control-Allow-Methods", e.allow())
		h.Set("Access-Control-Allow-Headers", allowedHeaders)
		h.Set("Access-Control-Max-Age", preflightAge)
	}
	w.WriteHeader(http.StatusNoContent)
}
