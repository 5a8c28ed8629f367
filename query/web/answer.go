package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/attestry/attestry/query"
)

// RequestTimeout bounds the work on one request that is no stream: its context ends
// then.
const RequestTimeout = 10 * time.Second

// Values of Cache-Control; the package's text says which is for what.
const (
	Immutable = "public, max-age=31536000, immutable"
	Static    = "public, max-age=300"

	revalidate = "no-cache"
	noStore    = "no-store"
)

// retryAfter is what Retry-After says, in seconds, where nothing better is known.
const retryAfter = "1"

const (
	getMethods = "GET, HEAD"
	postMethod = "POST"
)

// Get returns an endpoint for GET and HEAD in the native conventions: an error that
// h returns is answered with WriteError. h returns one only before it has written
// anything.
func Get(h func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return Endpoint{Handler: orError(h), Methods: getMethods}
}

// Post is Get for POST. Of a body beyond 1 MiB h gets an *http.MaxBytesError, which
// it returns as it is for a 413.
func Post(h func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return Endpoint{Handler: orError(h), Methods: postMethod}
}

func orError(h func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			WriteError(w, r, err)
		}
	})
}

// IsGet reports whether the method is one of those that only read.
func IsGet(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// WriteJSON answers 200 with v as JSON; see WriteBytes.
func WriteJSON(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	WriteBytes(w, r, "application/json", append(body, '\n'))
	return nil
}

// WriteBytes answers 200 with a body, compressed where that is asked for and worth
// it, and with its ETag; or 304 if the client has that body already. Cache-Control is
// no-cache, and no-store for a POST, unless it was set before.
func WriteBytes(w http.ResponseWriter, r *http.Request, contentType string, body []byte) {
	h := w.Header()
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", revalidate)
		if !IsGet(r) {
			h.Set("Cache-Control", noStore)
		}
	}
	var coding coding
	if compressible(contentType) && len(body) >= minCompressed && h.Get("Content-Encoding") == "" {
		h.Add("Vary", "Accept-Encoding")
		coding = negotiate(r.Header.Values("Accept-Encoding"))
	}
	hash := hashed(body)
	tag := etag(hash, coding)
	if had := known(r.Header.Values("If-None-Match"), tag, etag(hash, identity)); had != "" && IsGet(r) {
		h.Set("ETag", had)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if coding != identity {
		body = compress(coding, body)
		h.Set("Content-Encoding", string(coding))
	}
	h.Set("ETag", tag)
	write(w, r, http.StatusOK, contentType, body)
}

// problem is the JSON of an error: that of RFC 9457, whose type about:blank says that
// the title is that of the status, and the members of query.Error.
type problem struct {
	Type      string     `json:"type"`
	Title     string     `json:"title"`
	Status    int        `json:"status"`
	Detail    string     `json:"detail"`
	Instance  string     `json:"instance"` // the request id
	Code      query.Code `json:"code"`
	Message   string     `json:"message"` // as Detail
	Parameter *string    `json:"parameter"`
}

// WriteError answers with err as query.AsError shows it, as application/problem+json
// (RFC 9457), and notes it for the log.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	NoteError(r, err)
	shown := query.AsError(err)
	status := shown.Code.Status()
	if h := w.Header(); status == http.StatusServiceUnavailable && h.Get("Retry-After") == "" {
		h.Set("Retry-After", retryAfter)
	}
	title := http.StatusText(status)
	if title == "" {
		title = "Client Closed Request" // 499, which has no other
	}
	writeStatus(w, r, status, "application/problem+json", problem{
		Type: "about:blank", Title: title, Status: status, Detail: shown.Message, Instance: RequestID(r),
		Code: shown.Code, Message: shown.Message, Parameter: shown.Parameter,
	})
}

// WriteStatus answers with a status and v as JSON, not to be kept by anyone. v is
// of a type that always encodes.
func WriteStatus(w http.ResponseWriter, status int, v any) {
	writeStatus(w, nil, status, "application/json", v)
}

func writeStatus(w http.ResponseWriter, r *http.Request, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		body = []byte(`{"code":"internal","message":"internal error","parameter":null}`)
	}
	w.Header().Set("Cache-Control", noStore)
	write(w, r, status, contentType, append(body, '\n'))
}

// write writes an answer whose body is whole. r is nil where it does not matter: the
// server leaves out the body of an answer to HEAD itself.
func write(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r != nil && r.ProtoMajor == 1 && len(body) <= maxGathered {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			c.gather()
			defer c.release()
			defer http.NewResponseController(w).Flush() //nolint:errcheck // as with the write
		}
	}
	w.WriteHeader(status)
	if r == nil || r.Method != http.MethodHead {
		w.Write(body) //nolint:errcheck // the client is gone then, and nobody else is to be told
	}
}

// isGRPC reports whether a request is one of gRPC or gRPC-Web.
func isGRPC(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// writeGRPC answers with err as a gRPC status without messages, which is in the
// header alone (a "Trailers-Only" of gRPC over HTTP2; gRPC-Web takes the same).
func writeGRPC(w http.ResponseWriter, r *http.Request, err error) {
	shown := query.AsError(err)
	h := w.Header()
	h.Set("Cache-Control", noStore)
	h.Set("Content-Type", r.Header.Get("Content-Type"))
	h.Set("Grpc-Status", strconv.Itoa(int(grpcCode(shown.Code))))
	h.Set("Grpc-Message", url.PathEscape(shown.Message))
	w.WriteHeader(http.StatusOK)
}

func grpcCode(c query.Code) codes.Code {
	switch c {
	case query.InvalidArgument:
		return codes.InvalidArgument
	case query.Unauthenticated:
		return codes.Unauthenticated
	case query.NotFound:
		return codes.NotFound
	case query.Conflict:
		return codes.FailedPrecondition
	case query.MethodNotAllowed:
		return codes.Unimplemented
	case query.ResourceExhausted, query.TooLarge:
		return codes.ResourceExhausted
	case query.Canceled:
		return codes.Canceled
	case query.DeadlineExceeded:
		return codes.DeadlineExceeded
	case query.Unavailable:
		return codes.Unavailable
	}
	return codes.Internal
}
