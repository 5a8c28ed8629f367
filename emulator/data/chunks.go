package data

import (
	"encoding/binary"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/attestry/attestry/emulator/filter"
)

// Bounds of a response. A client that dials an emulator takes at most 4 MiB in
// one message.
const (
	maxPiece       = 1 << 20 // bytes of a value in one chunk
	maxResponse    = 3584 << 10
	flushBytes     = 512 << 10 // bytes from which a response is sent at the end of a row
	firstFlushRows = 8         // rows after which the first response is sent, doubled each time
	lastFlushRows  = 256
)

// Field numbers of google.bigtable.v2.ReadRowsResponse and of its CellChunk
// (google/bigtable/v2/bigtable.proto), and of the wrappers of a string and of
// bytes (google/protobuf/wrappers.proto).
const (
	fieldChunk        = 1
	fieldLastScanned  = 2
	fieldRequestStats = 3

	fieldRowKey    = 1
	fieldFamily    = 2
	fieldQualifier = 3
	fieldTimestamp = 4
	fieldLabel     = 5
	fieldValue     = 6
	fieldValueSize = 7
	fieldCommitRow = 9

	fieldWrapped = 1
)

// writer turns cells into the chunks of ReadRowsResponses, which it encodes as it
// goes: a message of Go objects for each cell would cost more than all else of a
// scan. A response ends with a whole row, unless one alone passes maxResponse.
type writer struct {
	send func(encoded []byte) error // it keeps nothing of what it is given
	// split allows a row in several responses. Google's client for Go takes none
	// that ends within a row.
	split bool

	buf       []byte // a response
	rows      int    // whole ones in buf
	whole     int    // bytes of whole rows in buf
	last      int    // where in buf the last chunk begins
	flushRows int

	row       []byte // of the cells that follow
	begun     bool   // the row has a chunk
	family    string
	qualifier []byte
}

func newWriter(send func([]byte) error, buf []byte, split bool) *writer {
	return &writer{send: send, split: split, buf: buf[:0], flushRows: firstFlushRows}
}

// startRow begins a row, whose key must stay as it is until endRow. It sends
// nothing of it until there is a cell.
func (w *writer) startRow(row []byte) {
	w.row, w.begun, w.family, w.qualifier = row, false, "", w.qualifier[:0]
}

// chunk is what a chunk says.
type chunk struct {
	row               []byte // nil: as before
	family, qualifier bool   // whether they are said
	cell              *filter.Cell
	value             []byte // the cell's, or a part of it
	valueSize         int    // of the whole value when more of it follows
}

// cell adds a cell, in several chunks when its value is long.
func (w *writer) cell(c *filter.Cell) error {
	next := chunk{cell: c, value: c.Value}
	if !w.begun {
		next.row = w.row
	}
	if next.family = !w.begun || c.Family != w.family; next.family {
		w.family = c.Family
	}
	if next.qualifier = next.family || string(c.Qualifier) != string(w.qualifier); next.qualifier {
		w.qualifier = append(w.qualifier[:0], c.Qualifier...)
	}
	w.begun = true
	for w.split && len(next.value) > maxPiece {
		rest := next.value[maxPiece:]
		next.value, next.valueSize = next.value[:maxPiece], len(c.Value)
		if err := w.add(&next); err != nil {
			return err
		}
		next = chunk{value: rest}
	}
	return w.add(&next)
}

// add sends whole rows when there is no room for the chunk beside them.
func (w *writer) add(c *chunk) error {
	size := c.size()
	need := protowire.SizeTag(fieldChunk) + protowire.SizeBytes(size) + commitBytes
	if len(w.buf)+need > maxResponse {
		if err := w.flushWhole(); err != nil {
			return err
		}
		if w.split && len(w.buf) > 0 && len(w.buf)+need > maxResponse {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.last = len(w.buf)
	w.buf = protowire.AppendTag(w.buf, fieldChunk, protowire.BytesType)
	w.buf = protowire.AppendVarint(w.buf, uint64(size))
	w.buf = c.append(w.buf)
	return nil
}

// wrapped is the size of a message with one string or bytes that are n long; an
// empty one is left out.
func wrapped(n int) int {
	if n == 0 {
		return 0
	}
	return protowire.SizeTag(fieldWrapped) + protowire.SizeBytes(n)
}

func sizeBytes(field protowire.Number, n int) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(n)
}

func (c *chunk) size() int {
	n := 0
	if c.row != nil {
		n += sizeBytes(fieldRowKey, len(c.row))
	}
	if c.family {
		n += sizeBytes(fieldFamily, wrapped(len(c.cell.Family)))
	}
	if c.qualifier {
		n += sizeBytes(fieldQualifier, wrapped(len(c.cell.Qualifier)))
	}
	if c.cell != nil {
		if c.cell.Timestamp != 0 {
			n += protowire.SizeTag(fieldTimestamp) + protowire.SizeVarint(uint64(c.cell.Timestamp))
		}
		for _, label := range c.cell.Labels {
			n += sizeBytes(fieldLabel, len(label))
		}
	}
	if len(c.value) > 0 {
		n += sizeBytes(fieldValue, len(c.value))
	}
	if c.valueSize > 0 {
		n += protowire.SizeTag(fieldValueSize) + protowire.SizeVarint(uint64(c.valueSize))
	}
	return n
}

func (c *chunk) append(b []byte) []byte {
	if c.row != nil {
		b = protowire.AppendTag(b, fieldRowKey, protowire.BytesType)
		b = protowire.AppendBytes(b, c.row)
	}
	if c.family {
		b = protowire.AppendTag(b, fieldFamily, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(wrapped(len(c.cell.Family))))
		if c.cell.Family != "" {
			b = protowire.AppendTag(b, fieldWrapped, protowire.BytesType)
			b = protowire.AppendString(b, c.cell.Family)
		}
	}
	if c.qualifier {
		b = protowire.AppendTag(b, fieldQualifier, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(wrapped(len(c.cell.Qualifier))))
		if len(c.cell.Qualifier) > 0 {
			b = protowire.AppendTag(b, fieldWrapped, protowire.BytesType)
			b = protowire.AppendBytes(b, c.cell.Qualifier)
		}
	}
	if c.cell != nil {
		if c.cell.Timestamp != 0 {
			b = protowire.AppendTag(b, fieldTimestamp, protowire.VarintType)
			b = protowire.AppendVarint(b, uint64(c.cell.Timestamp))
		}
		for _, label := range c.cell.Labels {
			b = protowire.AppendTag(b, fieldLabel, protowire.BytesType)
			b = protowire.AppendString(b, label)
		}
	}
	if len(c.value) > 0 {
		b = protowire.AppendTag(b, fieldValue, protowire.BytesType)
		b = protowire.AppendBytes(b, c.value)
	}
	if c.valueSize > 0 {
		b = protowire.AppendTag(b, fieldValueSize, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(c.valueSize))
	}
	return b
}

// flushWhole sends the whole rows and keeps the part of another.
func (w *writer) flushWhole() error {
	if w.whole == 0 {
		return nil
	}
	err := w.send(w.buf[:w.whole])
	w.last -= w.whole
	w.buf = append(w.buf[:0], w.buf[w.whole:]...)
	w.rows, w.whole = 0, 0
	return err
}

// commitBytes is what committing a row adds to its last chunk, at most: a flag,
// and a byte to the chunk's length.
const commitBytes = 2 + 1

// endRow commits the row and reports whether it had a cell.
func (w *writer) endRow() (bool, error) {
	if !w.begun {
		return false, nil
	}
	w.commit()
	w.rows, w.whole = w.rows+1, len(w.buf)
	if w.rows >= w.flushRows || len(w.buf) >= flushBytes {
		w.flushRows = min(2*w.flushRows, lastFlushRows)
		return true, w.flush()
	}
	return true, nil
}

// commit sets commit_row in the last chunk, which ends the buffer.
func (w *writer) commit() {
	at := w.last + protowire.SizeTag(fieldChunk)
	old, n := binary.Uvarint(w.buf[at:])
	body := len(w.buf) - at - n
	w.buf = protowire.AppendTag(w.buf, fieldCommitRow, protowire.VarintType)
	w.buf = protowire.AppendVarint(w.buf, 1)
	size := int(old) + len(w.buf) - at - n - body
	if grown := protowire.SizeVarint(uint64(size)) - n; grown > 0 {
		w.buf = append(w.buf, make([]byte, grown)...)
		copy(w.buf[at+n+grown:], w.buf[at+n:])
	}
	binary.PutUvarint(w.buf[at:], uint64(size))
}

func (w *writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.send(w.buf)
	w.buf, w.rows, w.whole = w.buf[:0], 0, 0
	return err
}

// scanned tells the client how far the scan is where it finds nothing.
func (w *writer) scanned(row []byte) error {
	if err := w.flush(); err != nil {
		return err
	}
	w.buf = protowire.AppendTag(w.buf, fieldLastScanned, protowire.BytesType)
	w.buf = protowire.AppendBytes(w.buf, row)
	return w.flush()
}

// stats adds what a request did to the response that ends it.
func (w *writer) stats(s *btpb.RequestStats) error {
	encoded, err := proto.Marshal(s)
	if err != nil {
		return err
	}
	w.buf = protowire.AppendTag(w.buf, fieldRequestStats, protowire.BytesType)
	w.buf = protowire.AppendBytes(w.buf, encoded)
	return nil
}
