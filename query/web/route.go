package web

import (
	"cmp"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/attestry/attestry/query"
)

// ErrorWriter answers with err in the form of an interface. It finds what to say by
// query.AsError; the headers that belong to it, Retry-After and Allow, are set
// already.
type ErrorWriter func(w http.ResponseWriter, r *http.Request, err error)

// Endpoint is a handler and what the server has to know to speak for it. One that is
// registered on the server's mux without an Endpoint is as in one with nothing else.
type Endpoint struct {
	http.Handler
	// Methods are those that are taken, as in the header Allow: "GET, HEAD". Others
	// get 405. "" leaves it to the handler.
	Methods string
	// WriteError writes what the server refuses; nil is WriteError, or a gRPC status
	// where the request is one of gRPC.
	WriteError ErrorWriter
	// Exempt is for the state of the program: no rate limit, no API key, no bound on
	// requests in work.
	Exempt bool
	// Stream is for answers without an end: no deadline for the whole, but one for
	// each write and each flush, and no part in the bound on requests in work.
	Stream bool
}

// refuse answers with an error of the server's own, in the form of the endpoint.
func (e Endpoint) refuse(w http.ResponseWriter, r *http.Request, err error) {
	NoteError(r, err)
	switch {
	case e.WriteError != nil:
		e.WriteError(w, r, err)
	case isGRPC(r):
		writeGRPC(w, r, err)
	default:
		WriteError(w, r, err)
	}
}

// allow is the header Allow of the endpoint.
func (e Endpoint) allow() string { return cmp.Or(e.Methods, "GET, HEAD, POST") }

// use names the methods for a sentence.
func (e Endpoint) use() string { return strings.Join(strings.Split(e.allow(), ", "), " or ") }

func (e Endpoint) takes(method string) bool {
	if e.Methods == "" {
		return true
	}
	for m := range strings.SplitSeq(e.Methods, ", ") {
		if m == method {
			return true
		}
	}
	return false
}

// route finds the endpoint of a URL, the pattern that it was registered under, and
// the URL to ask it by. The mux would answer some spellings with a redirect, in HTML,
// which a POST or a strict client does not survive. Instead slashes before the path,
// which clients make that join a base and a path, count as one; one that is missing
// behind the root of a subtree is added; and any other path that is not clean is an
// error, which the endpoint of the clean one may write.
func (s *Server) route(r *http.Request) (e Endpoint, pattern string, u *url.URL, err error) {
	u = r.URL
	escaped := u.EscapedPath()
	if n := len(escaped) - len(strings.TrimLeft(escaped, "/")); n != 1 {
		escaped = "/" + escaped[n:]
		u = withPath(u, "/"+u.Path[n:], escaped)
	}
	if clean := cleaned(escaped); clean != escaped {
		err = query.Invalid("path", "the path has empty or dot segments: write %s, or escape what belongs to a name", clean)
		escaped = clean
		u = withPath(u, cleaned(u.Path), escaped)
	}
	e, pattern = s.lookup(r, u)
	// A pattern with more slashes than the path is that of the root of a subtree.
	if strings.Count(pattern, "/") > strings.Count(escaped, "/") {
		u = withPath(u, u.Path+"/", escaped+"/")
		e, pattern = s.lookup(r, u)
	}
	return e, pattern, u, err
}

func (s *Server) lookup(r *http.Request, u *url.URL) (Endpoint, string) {
	if u != r.URL {
		other := *r
		other.URL = u
		r = &other
	}
	h, pattern := s.routes.Handler(r)
	if e, ok := h.(Endpoint); ok {
		return e, pattern
	}
	return Endpoint{Handler: h}, pattern
}

// withPath returns the URL with another path, given both as it is and escaped; where
// they do not belong together url.URL goes by the first.
func withPath(u *url.URL, path, escaped string) *url.URL {
	other := *u
	other.Path, other.RawPath = path, escaped
	return &other
}

// cleaned is path.Clean, but for a slash at the end.
func cleaned(p string) string {
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}
