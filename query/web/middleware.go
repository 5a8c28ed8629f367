package web

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"regexp"
	"runtime/debug"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/attestry/attestry/query"
)

// exchange is what a request's handler leaves for the log.
type exchange struct {
	id  string
	err error
}

type exchangeKey struct{}

// NoteError leaves an error that was answered for the server's log, which tells
// faults of the server once, with the request.
func NoteError(r *http.Request, err error) {
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		x.err = err
	}
}

// ServeHTTP answers one request: with a request id and CORS, the routes'
// answer or 500 where they panic, metrics, and a line in the log.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{id: requestID(r)}
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	rec := &recorder{ResponseWriter: w}
	header := rec.Header()
	header.Set("X-Request-Id", x.id)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Expose-Headers", "ETag, X-Request-Id")
	start := time.Now()
	defer func() { s.finish(rec, r, x, start, recover()) }()
	if r.Method == http.MethodOptions {
		preflight(rec)
		return
	}
	r.Body = http.MaxBytesReader(rec, r.Body, maxBodyBytes)
	s.routes.ServeHTTP(rec, r)
}

// preflight answers what a browser asks before a request from another origin.
func preflight(w http.ResponseWriter) {
	w.Header().Set("Allow", allowed+", OPTIONS")
	w.Header().Set("Access-Control-Allow-Methods", allowed)
	w.Header().Set("Access-Control-Allow-Headers", "Accept, Content-Type, If-None-Match, X-Request-Id")
	w.Header().Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

// finish answers for a handler that panicked, counts the request and logs it.
func (s *Server) finish(w *recorder, r *http.Request, x *exchange, start time.Time, panicked any) {
	fields := make([]zap.Field, 0, 8)
	cut := panicked != nil && w.status != 0 // half an answer is out; it must not look whole
	if panicked != nil && panicked != http.ErrAbortHandler {
		x.err = fmt.Errorf("panic: %v", panicked)
		fields = append(fields, zap.ByteString("stack", debug.Stack()))
		if !cut {
			WriteError(w, r, x.err)
		}
	}
	if panicked == nil && w.status == 0 {
		w.status = http.StatusOK // what net/http sends for a handler that wrote nothing
	}
	took := time.Since(start)
	s.metrics.observe(r, w.status, took)
	fields = append(fields, zap.String("requestId", x.id), httpRequest(r, w.status, took), zap.Error(x.err))
	fields = append(fields, traceFields(s.traceProject, r)...)
	s.logger.Log(level(x.err), "http request", fields...)
	if cut || panicked == http.ErrAbortHandler {
		panic(http.ErrAbortHandler) // the server knows it as the wish to cut the connection
	}
}

// level tells what to log a request at: faults of the archive above what is the
// world's, and above what is the client's.
func level(err error) zapcore.Level {
	if err == nil {
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
	if id := r.Header.Get("X-Request-Id"); validID.MatchString(id) {
		return id
	}
	return rand.Text()
}

var validID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int // 0 until something was written
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Flush is for handlers that look for http.Flusher, as that of gRPC does.
func (w *recorder) Flush() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a client that is gone is seen by the next write
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
