package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/archive"
)

// Code classifies an error for whoever asked. Its text is stable.
type Code string

// The codes.
const (
	InvalidArgument   Code = "invalid_argument"   // the question is wrong; asking again does not help
	Unauthenticated   Code = "unauthenticated"    // the API key is not known
	NotFound          Code = "not_found"          // nothing is known under what was asked
	Conflict          Code = "conflict"           // what is asked for cannot be made of what is known now
	MethodNotAllowed  Code = "method_not_allowed" // the path exists, not with this method
	TooLarge          Code = "too_large"          // the body of the request is larger than is read
	ResourceExhausted Code = "resource_exhausted" // too many requests; ask again later
	Canceled          Code = "canceled"           // whoever asked went away
	DeadlineExceeded  Code = "deadline_exceeded"  // the answer took too long; ask again, or for less
	Unavailable       Code = "unavailable"        // the store cannot be reached; ask again
	Internal          Code = "internal"           // a fault of the archive
)

// Status returns the HTTP status of a code. 499 for Canceled is a convention of
// proxies; nobody is left to read it.
func (c Code) Status() int {
	switch c {
	case InvalidArgument:
		return http.StatusBadRequest
	case Unauthenticated:
		return http.StatusUnauthorized
	case NotFound:
		return http.StatusNotFound
	case Conflict:
		return http.StatusConflict
	case MethodNotAllowed:
		return http.StatusMethodNotAllowed
	case TooLarge:
		return http.StatusRequestEntityTooLarge
	case ResourceExhausted:
		return http.StatusTooManyRequests
	case Canceled:
		return 499
	case DeadlineExceeded:
		return http.StatusGatewayTimeout
	case Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// Error is an error that may be shown to whoever asked, and its JSON form.
type Error struct {
	Code Code `json:"code"`
	// Message says what was wrong and how to write it.
	Message string `json:"message"`
	// Parameter names what was wrong: a part of the path or a query parameter. Nil
	// when no single one is.
	Parameter *string `json:"parameter"`

	cause error
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the error behind it, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Invalid returns an InvalidArgument error about a parameter.
func Invalid(parameter, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: InvalidArgument, Message: err.Error(), Parameter: &parameter, cause: err}
}

// notFound returns a NotFound error for which errors.Is finds
// archive.ErrNotFound.
func notFound(format string, args ...any) *Error {
	return &Error{Code: NotFound, Message: fmt.Sprintf(format, args...), cause: archive.ErrNotFound}
}

func conflict(format string, args ...any) *Error {
	return &Error{Code: Conflict, Message: fmt.Sprintf(format, args...)}
}

// sentinels gives each error that a reader may return its code and what is said
// of it outside. ErrNotFound is the fallback for one that no lookup has put into
// words.
var sentinels = [...]struct {
	err     error
	code    Code
	message string
}{
	{archive.ErrNotFound, NotFound, "nothing is known under what was asked"},
	{archive.ErrInvalidRange, InvalidArgument, ""}, // its text says what is wrong
	{archive.ErrSealed, Unavailable, "the archive is being moved to another generation; try again in a minute"},
	{archive.ErrNoStore, Unavailable, "no store was created for this network"},
	{archive.ErrNewerSchema, Unavailable, "the store was made by a newer version of the program"},
	{context.Canceled, Canceled, "the request was cancelled"},
	{context.DeadlineExceeded, DeadlineExceeded, tooSlow},
}

const (
	tooSlow   = "the answer took too long; try again, or ask for less at once"
	storeDown = "the store cannot be reached at the moment; try again"
)

// AsError returns err as it may be shown: as it is if it is an *Error, else as
// TooLarge if it is an *http.MaxBytesError, else by its sentinel, else by the gRPC
// status that a store's client gave it, else as Internal. What is not meant for
// outside stays in the chain of Unwrap.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Error{Code: TooLarge, Message: fmt.Sprintf("the body is larger than the %d bytes that are read", e.Limit), cause: err}
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			message := s.message
			if message == "" {
				message = err.Error()
			}
			return &Error{Code: s.code, Message: message, cause: err}
		}
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return &Error{Code: Unavailable, Message: storeDown, cause: err}
	case codes.DeadlineExceeded:
		return &Error{Code: DeadlineExceeded, Message: tooSlow, cause: err}
	case codes.Canceled:
		return &Error{Code: Canceled, Message: "the request was cancelled", cause: err}
	}
	return &Error{Code: Internal, Message: "internal error; it is logged under the request id of this answer", cause: err}
}
