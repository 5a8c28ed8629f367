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
		e = inTheirWords(query.AsError(err).Code)
	}
	web.WriteStatus(w, httpStatus(e.code), errorBody{Code: e.code, Message: e.message, Details: []struct{}{}})
}

// inTheirWords returns what a guardian says where the archive has an error of a
// code.
func inTheirWords(c query.Code) *gatewayError {
	switch c {
	case query.NotFound:
		return &gatewayError{codes.NotFound, "requested VAA not found in store"}
	case query.Canceled:
		return &gatewayError{codes.Canceled, "context canceled"}
	case query.DeadlineExceeded:
		return &gatewayError{codes.DeadlineExceeded, "context deadline exceeded"}
	case query.Unavailable:
		return &gatewayError{codes.Unavailable, "store is not available"}
	}
	return &gatewayError{codes.Internal, "internal server error"}
}

// httpStatus returns the HTTP status that grpc-gateway has for a code.
func httpStatus(c codes.Code) int {
	switch c {
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.NotFound:
		return http.StatusNotFound
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
