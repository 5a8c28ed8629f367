package wormholescan

import (
	"errors"
	"net/http"

	"google.golang.org/grpc/codes"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/web"
)

// apiError is an error in the words of the interface.
type apiError struct {
	code    codes.Code
	message string
}

func (e *apiError) Error() string { return e.message }

func invalid(message string) error { return &apiError{codes.InvalidArgument, message} }

// Errors of the interface that are not about one parameter. They are never written to.
var (
	errNotFound = &apiError{codes.NotFound, "NOT FOUND"}
	errInternal = &apiError{codes.Internal, "INTERNAL ERROR"}
)

// errorBody is the JSON of an error.
type errorBody struct {
	Code    codes.Code    `json:"code"`
	Message string        `json:"message"`
	Details []errorDetail `json:"details"`
}

type errorDetail struct {
	RequestID string `json:"request_id"`
}

// writeError answers with an error: as it is if it is one of the interface, else in
// its words.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*apiError](err)
	var status int
	if ok {
		status = httpStatus(e.code)
	} else {
		web.NoteError(r, err)
		shown := query.AsError(err)
		e, status = inTheirWords(shown), shown.Code.Status()
	}
	web.WriteStatus(w, status, errorBody{Code: e.code, Message: e.message, Details: []errorDetail{{web.RequestID(r)}}})
}

// inTheirWords gives an error of the archive its code and text.
func inTheirWords(e *query.Error) *apiError {
	code := map[query.Code]codes.Code{
		query.InvalidArgument: codes.InvalidArgument, query.TooLarge: codes.InvalidArgument, query.Conflict: codes.FailedPrecondition,
		query.MethodNotAllowed: codes.Unimplemented, query.Unauthenticated: codes.Unauthenticated, query.ResourceExhausted: codes.ResourceExhausted,
		query.Canceled: codes.Canceled, query.DeadlineExceeded: codes.DeadlineExceeded, query.Unavailable: codes.Unavailable,
	}
	switch c, ok := code[e.Code]; {
	case ok:
		return &apiError{c, e.Message}
	case e.Code == query.NotFound:
		return errNotFound
	}
	return errInternal
}

func httpStatus(c codes.Code) int {
	switch c {
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.NotFound:
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}
