package guardian

import (
	"errors"
	"net/http"

	"google.golang.org/grpc/codes"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/web"
)

// errorBody is grpc-gateway's JSON of an error.
type errorBody struct {
	Code    codes.Code `json:"code"`
	Message string     `json:"message"`
	Details []struct{} `json:"details"` // always []
}

func writeError(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*gatewayError](err)
	if !ok {
		web.NoteError(r, err)
		e = inTheirWords(query.AsError(err))
		if h := w.Header(); e.code == codes.Unavailable && h.Get("Retry-After") == "" {
			h.Set("Retry-After", "1")
		}
	}
	web.WriteStatus(w, httpStatus(e.code), errorBody{Code: e.code, Message: e.message, Details: []struct{}{}})
}

// httpStatus returns the HTTP status that grpc-gateway has for a code.
func httpStatus(c codes.Code) int {
	switch c {
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.NotFound:
		return http.StatusNotFound
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	case codes.Canceled:
		return 499
	}
	return http.StatusInternalServerError
}

// inTheirWords returns what a guardian says where the archive has an error.
func inTheirWords(e *query.Error) *gatewayError {
	switch e.Code {
	case query.NotFound:
		return &gatewayError{codes.NotFound, "requested VAA not found in store"}
	case query.MethodNotAllowed:
		return &gatewayError{codes.Unimplemented, "Method Not Allowed"}
	case query.Canceled:
		return &gatewayError{codes.Canceled, "context canceled"}
	case query.DeadlineExceeded:
		return &gatewayError{codes.DeadlineExceeded, "context deadline exceeded"}
	case query.Unavailable:
		return &gatewayError{codes.Unavailable, "store is not available"}
	case query.ResourceExhausted:
		return &gatewayError{codes.ResourceExhausted, e.Message}
	case query.Unauthenticated:
		return &gatewayError{codes.Unauthenticated, e.Message}
	case query.InvalidArgument, query.TooLarge:
		return &gatewayError{codes.InvalidArgument, e.Message}
	}
	return &gatewayError{codes.Internal, "internal server error"}
}
