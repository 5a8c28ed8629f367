package web

import (
	"encoding/binary"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// httpRequest is the field of the log that tells of a request, named and formed as
// LogEntry.HttpRequest of Cloud Logging. The path is without its query.
func httpRequest(r *http.Request, status int, took time.Duration) zap.Field {
	return zap.Dict("httpRequest",
		zap.String("requestMethod", r.Method),
		zap.String("requestUrl", r.URL.EscapedPath()),
		zap.Int("status", status),
		zap.String("latency", strconv.FormatFloat(took.Seconds(), 'f', 9, 64)+"s"),
		zap.String("protocol", r.Proto),
	)
}

// traceFields are the fields of the log by which Cloud Logging shows an entry with
// the trace of its request: none where the project is not known or the request
// carries no trace.
func traceFields(project string, r *http.Request) []zap.Field {
	span := requestSpan(r)
	if project == "" || !span.HasTraceID() {
		return nil
	}
	fields := []zap.Field{
		zap.String("logging.googleapis.com/trace", "projects/"+project+"/traces/"+span.TraceID().String()),
		zap.Bool("logging.googleapis.com/trace_sampled", span.IsSampled()),
	}
	if span.HasSpanID() {
		fields = append(fields, zap.String("logging.googleapis.com/spanId", span.SpanID().String()))
	}
	return fields
}

// requestSpan returns the span that a request is part of: that of its traceparent
// (W3C Trace Context), else that of Google's older header. It is zero without
// either.
func requestSpan(r *http.Request) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		return span
	}
	return cloudSpan(r.Header.Get("X-Cloud-Trace-Context"))
}

// cloudTrace is TRACE_ID/SPAN_ID;o=OPTIONS, the last two of which may be missing.
var cloudTrace = regexp.MustCompile(`^([0-9a-fA-F]{32})(?:/([0-9]{1,20}))?(?:;o=([0-9]))?$`)

func cloudSpan(header string) trace.SpanContext {
	m := cloudTrace.FindStringSubmatch(header)
	if m == nil {
		return trace.SpanContext{}
	}
	var c trace.SpanContextConfig
	var err error
	if c.TraceID, err = trace.TraceIDFromHex(strings.ToLower(m[1])); err != nil {
		return trace.SpanContext{}
	}
	if id, err := strconv.ParseUint(m[2], 10, 64); err == nil {
		binary.BigEndian.PutUint64(c.SpanID[:], id)
	}
	c.TraceFlags = c.TraceFlags.WithSampled(m[3] == "1")
	return trace.NewSpanContext(c)
}
