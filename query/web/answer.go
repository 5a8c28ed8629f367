package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/attestry/attestry/query"
)

// RequestTimeout bounds the work on one request that is no stream.
const RequestTimeout = 10 * time.Second

// Get returns a handler for GET and HEAD in the native conventions: h works under
// a deadline of RequestTimeout, an error that it returns is answered with
// WriteError, and other methods get 405. h returns an error only before it has
// written anything.
func Get(h func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !IsGet(r) {
			w.Header().Set("Allow", allowed)
			WriteError(w, r, &query.Error{Code: query.MethodNotAllowed, Message: "method " + r.Method + " is not allowed here: use GET or HEAD"})
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), RequestTimeout)
		defer cancel()
		if err := h(w, r.WithContext(ctx)); err != nil {
			WriteError(w, r, err)
		}
	})
}

const allowed = "GET, HEAD"

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

// WriteBytes answers 200 with a body and its ETag, or 304 if the client has that
// body already. The answer may be kept, but must be asked for again: a message
// can still change.
func WriteBytes(w http.ResponseWriter, r *http.Request, contentType string, body []byte) {
	sum := sha256.Sum256(body)
	w.Header().Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:16])+`"`)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Content-Type", contentType)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// WriteError answers with err as query.AsError shows it, and notes it for the
// log.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	NoteError(r, err)
	shown := query.AsError(err)
	WriteStatus(w, shown.Code.Status(), shown)
}

// WriteStatus answers with a status and v as JSON, not to be kept by anyone. v is
// of a type that always encodes.
func WriteStatus(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		body = []byte(`{"code":"internal","message":"internal error","parameter":null}`)
	}
	body = append(body, '\n')
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client is gone then, and nobody else is to be told
}
