// Package file is the source of VAAs in files and on standard input: newline
// delimited JSON, CSV lines, bare hexadecimal or base64 lines, or one binary VAA
// in a file; each plain or compressed with gzip or zstd.
package file

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/vaa"
)

const (
	// maxLine bounds a line: the largest VAA in hexadecimal and room for the names
	// and values around it.
	maxLine = 2*vaa.MaxBytes + 64<<10
	// keptOfLine bounds what is kept of a line that cannot be read.
	keptOfLine = archive.MaxRejectBytes
	sniffed    = 512
	mebibyte   = 1 << 20
)

// Source reads one file or stream once.
type Source struct {
	name string
	open func() (io.ReadCloser, error)
	read func(int)
}

var _ ingest.Source = (*Source)(nil)

// Open returns the source of a file; "-" is standard input. The file is opened
// when the source is run, but that it can be is checked at once.
func Open(path string, stdin io.Reader) (*Source, error) {
	if path == "-" {
		return New("stdin", stdin), nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, errors.Unwrap(err))
	}
	if info.IsDir() {
		return nil, fmt.Errorf("open %s: it is a directory; name the files in it", path)
	}
	s := New(filepath.Base(path), nil)
	s.open = func() (io.ReadCloser, error) { return os.Open(path) }
	return s, nil
}

// New returns a source that reads from r under a name.
func New(name string, r io.Reader) *Source {
	return &Source{name: sourceName(name), open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil }, read: func(int) {}}
}

// OnRead calls f with the number of bytes of each read of the file, before
// decompression. f must not block.
func (s *Source) OnRead(f func(n int)) { s.read = f }

// Name is "file:" and the file's name without its folders, in printable ASCII.
func (s *Source) Name() string { return s.name }

func sourceName(base string) string {
	clean := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, base)
	name := "file:" + clean
	return name[:min(len(name), archive.MaxSourceBytes)]
}

// Deliver reads to the end. Lines that cannot be read are delivered with their
// fault; only a file that cannot be read on is an error. A file has no positions:
// it is read from its beginning each time.
func (s *Source) Deliver(ctx context.Context, _ uint64, deliver func(ingest.Delivery) error) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	r, closeReader, err := decompress(&counted{f, s.read})
	if err != nil {
		return err
	}
	defer closeReader()
	head, err := r.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if isBinary(head) {
		return deliverBinary(r, deliver)
	}
	return deliverLines(ctx, r, deliver)
}

type counted struct {
	io.Reader
	read func(int)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read(n)
	return n, err
}

// decompress looks at the first bytes, not at the name: standard input has none.
func decompress(in io.Reader) (*bufio.Reader, func(), error) {
	r := bufio.NewReaderSize(in, mebibyte)
	magic, err := r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, fmt.Errorf("gzip: %w", err)
		}
		return bufio.NewReaderSize(z, mebibyte), func() { z.Close() }, nil //nolint:errcheck // read to its end or given up
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, nil, fmt.Errorf("zstd: %w", err)
		}
		return bufio.NewReaderSize(z, mebibyte), z.Close, nil
	}
	return r, func() {}, nil
}

// isBinary reports whether a file is one VAA in its wire format: its first byte
// is a version, and no text begins with a control character.
func isBinary(head []byte) bool {
	return len(head) > 0 && head[0] < ' ' && !bytes.ContainsAny(head[:1], "\t\r\n")
}

func deliverBinary(r io.Reader, deliver func(ingest.Delivery) error) error {
	raw, err := io.ReadAll(io.LimitReader(r, vaa.MaxBytes+1))
	if err != nil {
		return err
	}
	return deliver(ingest.Delivery{Raw: raw, Where: "the whole file"})
}

func deliverLines(ctx context.Context, r *bufio.Reader, deliver func(ingest.Delivery) error) error {
	for n := 1; ; n++ {
		line, tooLong, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			d := ingest.Delivery{Raw: line[:min(len(line), keptOfLine)], Fault: &ingest.Fault{
				Reason: reasonTooLong, Detail: fmt.Sprintf("the line is longer than %d bytes", maxLine),
			}}
			if !tooLong {
				d = parseLine(line)
			}
			d.Where = fmt.Sprintf("line %d", n)
			if err := deliver(d); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// readLine returns the next line in memory of its own, and for one that is too
// long its beginning. The rest of it is skipped. The last line may lack its end.
func readLine(r *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			tooLong = true
			part = part[:max(0, maxLine-len(line))]
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}
