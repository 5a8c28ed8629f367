package web

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// coding is a content coding by its name in Content-Encoding.
type coding string

const (
	identity  coding = ""
	zstandard coding = "zstd"
	gzipped   coding = "gzip"
)

// minCompressed is the size of a body in bytes from which on it is compressed: one
// that fits a packet with its header is not there sooner for it.
const minCompressed = 1 << 10

// maxWindow is the window of zstd in bytes, far below the 8 MiB that RFC 9659 lets
// a client insist on.
const maxWindow = 1 << 20

// The fastest levels: the rest of JSON's redundancy costs more time than it saves.
// Encoders are kept for the memory of their tables; they hold nothing of a body.
var (
	gzips = sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is one of the package's own
		}
		return w
	}}
	zstds = sync.Pool{New: func() any {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(maxWindow))
		if err != nil {
			panic(err) // the options are constants that it takes
		}
		return w
	}}
)

// compress returns the body in a coding.
func compress(c coding, body []byte) []byte {
	if c == zstandard {
		w := zstds.Get().(*zstd.Encoder)
		defer zstds.Put(w)
		return w.EncodeAll(body, make([]byte, 0, len(body)/2))
	}
	w := gzips.Get().(*gzip.Writer)
	defer gzips.Put(w)
	out := bytes.NewBuffer(make([]byte, 0, len(body)/2))
	w.Reset(out)
	w.Write(body) //nolint:errcheck // a buffer takes everything
	w.Close()     //nolint:errcheck // a buffer takes everything
	return out.Bytes()
}

// compressible reports whether bodies of a type are ever compressed: text is, the
// bytes of a VAA, most of which are signatures, are not.
func compressible(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	switch mediaType {
	case "application/json", "application/problem+json", "application/yaml", "application/javascript", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(mediaType, "text/")
}

// negotiate returns the coding that Accept-Encoding likes best (RFC 9110, 12.5.3), of
// equals the one that costs least. Identity is taken where it is liked better, and
// where nothing that is known here is allowed.
func negotiate(accept []string) coding {
	likes := map[coding]float64{}
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			name, q := weighted(part)
			likes[name] = q
		}
	}
	rest, ok := likes["*"]
	best, most := identity, likes["identity"]
	if !ok {
		rest = 0
	}
	for _, c := range [...]coding{zstandard, gzipped} {
		q, named := likes[c]
		if !named {
			q = rest
		}
		if q > 0 && (q > most || best == identity && q >= most) {
			best, most = c, q
		}
	}
	return best
}

// weighted reads a part of Accept-Encoding: a name, and how much it is liked. What is
// no weight is as 0.
func weighted(part string) (coding, float64) {
	name, params, found := strings.Cut(part, ";")
	c := coding(strings.ToLower(strings.TrimSpace(name)))
	if c == "x-gzip" {
		c = gzipped // RFC 9110, 8.4.1.3
	}
	if !found {
		return c, 1
	}
	weight, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(params)), "q=")
	q, err := strconv.ParseFloat(weight, 64)
	if !ok || err != nil || q > 1 {
		return c, 0
	}
	return c, q
}

// hashed returns what the ETags of a body are made of. Nobody gains by two bodies of
// one tag, so that the hash is a fast one.
func hashed(body []byte) string {
	return strconv.FormatUint(xxhash.Sum64(body), 36)
}

// etag returns the ETag of a body in a coding. It is weak for one that is compressed:
// its bytes are those of this version of an encoder.
func etag(hash string, c coding) string {
	if c == identity {
		return `"` + hash + `"`
	}
	return `W/"` + hash + "-" + string(c) + `"`
}

// known returns the first of some ETags that If-None-Match has, or "", by weak
// comparison (RFC 9110, 8.8.3.2). A comma within another's ETag does no harm: no piece
// of it is one of ours.
func known(match []string, tags ...string) string {
	for _, tag := range tags {
		for _, line := range match {
			for part := range strings.SplitSeq(line, ",") {
				part = strings.TrimSpace(part)
				if part == "*" || strings.TrimPrefix(part, "W/") == strings.TrimPrefix(tag, "W/") {
					return tag
				}
			}
		}
	}
	return ""
}
