package data

import (
	"bytes"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/wrapperspb"

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
	perChunk       = 32 // about what a chunk takes beside its bytes
)

// writer turns cells into the chunks of ReadRowsResponses. A response ends with a
// whole row, unless one alone passes maxResponse.
type writer struct {
	send func(*btpb.ReadRowsResponse) error
	// split allows a row in several responses. Google's client for Go takes none
	// that ends within a row.
	split bool

	res       *btpb.ReadRowsResponse
	size      int
	rows      int // whole ones in res
	whole     int // chunks of whole rows in res
	wholeSize int
	flushRows int

	row       []byte // of the cells that follow; sent when nil is not what it was
	begun     bool   // the row has a chunk
	family    string
	qualifier []byte
}

func newWriter(send func(*btpb.ReadRowsResponse) error, split bool) *writer {
	return &writer{send: send, split: split, res: &btpb.ReadRowsResponse{}, flushRows: firstFlushRows}
}

// startRow begins a row. It sends nothing of it until there is a cell.
func (w *writer) startRow(row []byte) {
	w.row, w.begun, w.family, w.qualifier = row, false, "", nil
}

// cell adds a cell, in several chunks when its value is long.
func (w *writer) cell(c *filter.Cell) error {
	chunk := &btpb.ReadRowsResponse_CellChunk{TimestampMicros: c.Timestamp, Labels: c.Labels}
	switch {
	case !w.begun:
		chunk.RowKey = bytes.Clone(w.row)
		fallthrough
	case c.Family != w.family:
		chunk.FamilyName = wrapperspb.String(c.Family)
		w.family, w.qualifier = c.Family, nil
		fallthrough
	case !bytes.Equal(c.Qualifier, w.qualifier) || chunk.FamilyName != nil:
		w.qualifier = bytes.Clone(c.Qualifier)
		chunk.Qualifier = wrapperspb.Bytes(w.qualifier)
	}
	w.begun = true
	value := c.Value
	for w.split && len(value) > maxPiece {
		chunk.Value, chunk.ValueSize = bytes.Clone(value[:maxPiece]), int32(len(c.Value))
		if err := w.add(chunk, maxPiece); err != nil {
			return err
		}
		value, chunk = value[maxPiece:], &btpb.ReadRowsResponse_CellChunk{}
	}
	chunk.Value = bytes.Clone(value)
	return w.add(chunk, len(value))
}

// add sends whole rows when there is no room for the chunk beside them. The row's
// last chunk stays at hand for its commit.
func (w *writer) add(chunk *btpb.ReadRowsResponse_CellChunk, value int) error {
	size := value + len(chunk.GetRowKey()) + len(chunk.GetFamilyName().GetValue()) + len(chunk.GetQualifier().GetValue()) + perChunk
	for _, l := range chunk.GetLabels() {
		size += len(l) + 2
	}
	if w.size+size > maxResponse {
		if err := w.flushWhole(); err != nil {
			return err
		}
		if w.split && w.size > 0 && w.size+size > maxResponse {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.res.Chunks = append(w.res.Chunks, chunk)
	w.size += size
	return nil
}

// flushWhole sends the whole rows and keeps the part of another.
func (w *writer) flushWhole() error {
	if w.whole == 0 {
		return nil
	}
	part, size := w.res.Chunks[w.whole:], w.size-w.wholeSize
	w.res.Chunks = w.res.Chunks[:w.whole:w.whole]
	if err := w.flush(); err != nil {
		return err
	}
	w.res.Chunks, w.size = part, size
	return nil
}

// endRow commits the row and reports whether it had a cell.
func (w *writer) endRow() (bool, error) {
	if !w.begun {
		return false, nil
	}
	last := w.res.Chunks[len(w.res.Chunks)-1]
	last.RowStatus = &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
	w.rows, w.whole, w.wholeSize = w.rows+1, len(w.res.Chunks), w.size
	if w.rows >= w.flushRows || w.size >= flushBytes {
		w.flushRows = min(2*w.flushRows, lastFlushRows)
		return true, w.flush()
	}
	return true, nil
}

func (w *writer) flush() error {
	if len(w.res.Chunks) == 0 && w.res.LastScannedRowKey == nil && w.res.RequestStats == nil {
		return nil
	}
	res := w.res
	w.res, w.size, w.rows, w.whole, w.wholeSize = &btpb.ReadRowsResponse{}, 0, 0, 0, 0
	return w.send(res)
}

// scanned tells the client how far the scan is where it finds nothing.
func (w *writer) scanned(row []byte) error {
	if err := w.flush(); err != nil {
		return err
	}
	w.res.LastScannedRowKey = bytes.Clone(row)
	return w.flush()
}
