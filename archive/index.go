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

// IndexKeys returns the keys of the index rows that an event of the journal asks
// for; in each of them the event's digest is a cell. The index is a pure function
// of the message rows, so the same keys follow from BodyIndexKeys and
// rowkey.Tx for what a row holds.
func IndexKeys(network vaa.Network, e *Event) ([]string, error) {
	var keys []string
	body, err := e.Body()
	if err != nil {
		return nil, err
	}
	if body != nil {
		keys = BodyIndexKeys(network, body)
	}
	if e.Link != nil {
		keys = append(keys, rowkey.Tx(e.Link.TxID, e.ID))
	}
	return keys, nil
}

// BodyIndexKeys returns the keys of the index rows that follow from a message
// body: by both of its digests, by time, and by the recipient of a transfer as
// this version of the program decodes it.
func BodyIndexKeys(network vaa.Network, b *vaa.Body) []string {
	id := b.MessageID()
	keys := []string{
		rowkey.Digest(b.Digest().String(), id),
		rowkey.Digest(b.SingleDigest().String(), id),
		rowkey.Time(b.Timestamp, id),
	}
	if kind, decoded, err := payload.Decode(network, b); err == nil {
		if to, chain, ok := payload.Recipient(kind, decoded); ok {
			keys = append(keys, rowkey.To(to, chain, b.Timestamp, id))
		}
	}
	return keys
}
