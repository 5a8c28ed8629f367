package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/attestry/attestry/query"
)

// exchange is what is known of a request beside itself, and what its handler leaves
// for the log.
type exchange struct {
	id  string
	key string // name of its API key, "" for none
	err error
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// NoteError leaves an error that was answered for the server's log, which tells
// faults of the server once, with the request.
func NoteError(r *http.Request, err error) { NoteErrorContext(r.Context(), err) }

// NoteErrorContext is NoteError where only the request's context is at hand.
func NoteErrorContext(ctx context.Context, err error) {
	if x := exchangeOf(ctx); x != nil {
		x.err = err
	}
}

// RequestID returns the id of a request: that of its X-Request-Id if it is of up to 64
// letters, digits, dots, hyphens and underscores, else one that the server made. It is
// "" outside of a Server.
func RequestID(r *http.Request) string {
	if x := exchangeOf(r.Context()); x != nil {
		return x.id
	}
	return ""
}

// errBusy refuses a request beyond those that may be in work.
var errBusy = &query.Error{Code: query.Unavailable, Message: "too many requests are in work at the moment; ask again in a second"}

// ServeHTTP answers one request: with a request id and CORS, the answer of its
// endpoint or the reason why it gets none, metrics, and a line in the log.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	x := &exchange{id: requestID(r)}
	e, pattern, u, err := s.route(r)
	ctx := context.WithValue(r.Context(), exchangeKey{}, x)
	if !e.Stream {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, RequestTimeout)
		defer cancel()
	}
	r = r.WithContext(ctx)
	r.URL, r.Pattern = u, pattern
	rec := &recorder{ResponseWriter: w}
	header := rec.Header()
	header.Set("X-Request-Id", x.id)
	header.Set("X-Content-Type-Options", "nosniff")
	s.cors.answer(header, r)
	s.metrics.inFlight.Inc()
	defer func() { s.finish(rec, r, e, start, recover()) }()
	if err := s.serve(rec, r, e, err); err != nil {
		e.refuse(rec, r, err)
	}
}

// serve lets the endpoint answer, or returns why it is not asked to; invalid is what
// is wrong with the path.
func (s *Server) serve(w *recorder, r *http.Request, e Endpoint, invalid error) error {
	if r.Method == http.MethodOptions {
		options(w, r, e)
		return nil
	}
	if !e.Exempt {
		if err := s.count(w.Header(), r); err != nil {
			return err
		}
	}
	if invalid != nil {
		return invalid
	}
	if !e.takes(r.Method) {
		w.Header().Set("Allow", e.allow())
		return &query.Error{Code: query.MethodNotAllowed, Message: "method " + r.Method + " is not allowed here: use " + e.use()}
	}
	if r.ContentLength > maxBodyBytes {
		return &http.MaxBytesError{Limit: maxBodyBytes}
	}
	switch {
	case e.Stream:
		w.patience = s.writeTimeout
		w.deadline(time.Time{})
	case !e.Exempt:
		select {
		case s.work <- struct{}{}:
			defer func() { <-s.work }()
		default:
			w.Header().Set("Retry-After", retryAfter)
			return errBusy
		}
	}
	r.Body = http.MaxBytesReader(w.ResponseWriter, r.Body, maxBodyBytes)
	s.routes.ServeHTTP(w, r)
	return nil
}

// count counts a request on whoever it is from, which is an error beyond their limit.
// One with an unknown key is counted on its address.
func (s *Server) count(h http.Header, r *http.Request) error {
	key, unknown := keyOf(r, s.limits.Keys)
	who, limit := client{}, s.limits.PerMinute
	if key != nil {
		exchangeOf(r.Context()).key = key.Name
		who, limit = client{key: key.Name}, key.PerMinute
	}
	if limit > 0 {
		if key == nil {
			who.address = addressOf(r, s.limits.TrustedProxies)
		}
		if err := s.limiter.take(h, who, limit); err != nil {
			return err
		}
	}
	if unknown != nil {
		h.Set("WWW-Authenticate", "ApiKey") // RFC 9110 wants a scheme in a 401
	}
	return unknown
}

// finish answers for a handler that panicked, counts the request and logs it.
func (s *Server) finish(w *recorder, r *http.Request, e Endpoint, start time.Time, panicked any) {
	x := exchangeOf(r.Context())
	var fields []zap.Field
	cut := panicked != nil && w.status != 0 // half an answer is out; it must not look whole
	if panicked != nil && panicked != http.ErrAbortHandler {
		err := fmt.Errorf("panic: %v", panicked)
		fields = append(fields, zap.ByteString("stack", debug.Stack()))
		if !cut {
			e.refuse(w, r, err)
		}
		x.err = err
	}
	if panicked == nil && w.status == 0 {
		w.status = http.StatusOK // what net/http sends for a handler that wrote nothing
	}
	if w.patience > 0 {
		w.deadline(time.Now().Add(w.patience)) // for what is still in the buffers
	}
	took := time.Since(start)
	s.metrics.observe(r, w.status, took)
	if entry := s.logger.Check(level(x.err), "http request"); entry != nil {
		fields = append(fields, zap.String("requestId", x.id), httpRequest(r, w.status, took), zap.Error(x.err))
		if x.key != "" {
			fields = append(fields, zap.String("apiKey", x.key))
		}
		entry.Write(append(fields, traceFields(s.traceProject, r)...)...)
	}
	if cut || panicked == http.ErrAbortHandler {
		panic(http.ErrAbortHandler) // the server knows it as the wish to cut the connection
	}
}

// level tells what to log a request at: faults of the archive above what is the
// world's, and above what is the client's. A request that was refused for the number
// of others is not worth a line each; metrics count them.
func level(err error) zapcore.Level {
	if err == nil || errors.Is(err, errBusy) {
		return zap.DebugLevel
	}
	switch query.AsError(err).Code {
	case query.Internal:
		return zap.ErrorLevel
	case query.Unavailable, query.DeadlineExceeded:
		return zap.WarnLevel
	}
	return zap.DebugLevel
}

// requestID returns the client's request id if it is fit to be logged and echoed,
// else a new one.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); plainName.MatchString(id) {
		return id
	}
	return rand.Text()
}

// recorder remembers the status of an answer, and gives each write of a stream a
// deadline.
type recorder struct {
	http.ResponseWriter
	status   int           // 0 until something was written
	patience time.Duration // for a write to be taken; 0 where the server's own timeout is for all of it
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	w.begin()
	defer w.end()
	return w.ResponseWriter.Write(b)
}

// Flush is for handlers that look for http.Flusher, as that of gRPC does.
func (w *recorder) Flush() {
	_ = w.FlushError() // a client that is gone is seen by the next write
}

// FlushError is for http.ResponseController.
func (w *recorder) FlushError() error {
	w.begin()
	defer w.end()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) begin() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.patience > 0 {
		w.deadline(time.Now().Add(w.patience))
	}
}

// end lifts the deadline: one that passes between two writes would end an HTTP/2
// stream.
func (w *recorder) end() {
	if w.patience > 0 {
		w.deadline(time.Time{})
	}
}

func (w *recorder) deadline(t time.Time) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t) // what has none is no connection
}
