package archive

import (
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// IndexRow is a row of the index: its key, and the digests that it is known for,
// ascending. The message that it points at is rowkey.Indexed of the key.
type IndexRow struct {
	Key     string
	Digests []vaa.Digest
}

// IndexCell is one cell of the index: a digest in the row of a key.
type IndexCell struct {
	Key    string
	Digest vaa.Digest
}

// IndexCells returns the index cells that an event of the journal asks for. The
// index is a pure function of the message rows, so the same cells follow from
// BodyIndexKeys, rowkey.Tx and rowkey.Conflict for what a row holds.
func IndexCells(network vaa.Network, e *Event) ([]IndexCell, error) {
	body, err := e.Body()
	if err != nil {
		return nil, err
	}
	var cells []IndexCell
	if body != nil {
		for _, key := range BodyIndexKeys(network, body) {
			cells = append(cells, IndexCell{key, e.Digest})
		}
	}
	if e.Link != nil {
		cells = append(cells, IndexCell{rowkey.Tx(e.Link.TxID, e.ID), e.Digest})
	}
	if e.Kind == KindConflict {
		cells = append(cells, IndexCell{rowkey.Conflict(e.ID), e.Digest})
		if e.Displaced != nil {
			cells = append(cells, IndexCell{rowkey.Conflict(e.ID), *e.Displaced})
		}
	}
	return cells, nil
}

// BodyIndexKeys returns the keys of the index rows that follow from a message
// body: by both of its digests, by time, by its chain and time, and by the recipient of a transfer as
// this version of the program decodes it.
func BodyIndexKeys(network vaa.Network, b *vaa.Body) []string {
	id := b.MessageID()
	keys := []string{
		rowkey.Digest(b.Digest().String(), id),
		rowkey.Digest(b.SingleDigest().String(), id),
		rowkey.Time(b.Timestamp, id),
		rowkey.ChainTime(b.Timestamp, id),
	}
	if kind, decoded, err := payload.Decode(network, b); err == nil {
		if to, chain, ok := payload.Recipient(kind, decoded); ok {
			keys = append(keys, rowkey.To(to, chain, b.Timestamp, id))
		}
	}
	return keys
}
