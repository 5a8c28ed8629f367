package guardian

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"connectrpc.com/connect"
)

// Content types of gRPC-Web (PROTOCOL-WEB.md of grpc/grpc): the one of text is the
// other in base64.
const (
	webText   = "application/grpc-web-text"
	webBinary = "application/grpc-web"
)

// withText lets a handler of gRPC-Web also answer in base64, which browsers needed
// for lack of binary bodies. Requests and answers are held whole.
func withText(h http.Handler) http.Handler {
	refuse := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		contentType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // of what is none the handler says so
		codec, isText := strings.CutPrefix(contentType, webText)
		if !isText {
			h.ServeHTTP(w, r)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set("Content-Type", webBinary+codec)
		answer := &textWriter{ResponseWriter: w}
		body, err := decodeText(r.Body)
		if err != nil {
			code := connect.CodeInvalidArgument
			if _, large := errors.AsType[*http.MaxBytesError](err); large {
				code = connect.CodeResourceExhausted
			}
			_ = refuse.Write(answer, r, connect.NewError(code, err)) // what is held is always written
		} else {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			h.ServeHTTP(answer, r)
		}
		answer.end(contentType)
	})
}

// decodeText reads base64 in which each piece that a client wrote may be padded.
func decodeText(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	text = bytes.TrimSpace(text)
	if len(text)%4 != 0 {
		return nil, fmt.Errorf("the request is not base64: %d characters are no multiple of 4", len(text))
	}
	body := make([]byte, 0, base64.StdEncoding.DecodedLen(len(text)))
	for i := 0; i < len(text); i += 4 {
		if body, err = base64.StdEncoding.AppendDecode(body, text[i:i+4]); err != nil {
			return nil, fmt.Errorf("the request is not base64 at character %d", i)
		}
	}
	return body, nil
}

// textWriter holds an answer back until it can be written as text.
type textWriter struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *textWriter) WriteHeader(status int)      { w.status = status }
func (w *textWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

// Flush is nothing: the answer goes out whole.
func (w *textWriter) Flush() {}

func (w *textWriter) end(contentType string) {
	text := base64.StdEncoding.EncodeToString(w.body.Bytes())
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
	io.WriteString(w.ResponseWriter, text) //nolint:errcheck // the client is gone then
}
