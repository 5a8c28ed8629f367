package ingest

import "context"

// Source delivers signed VAAs, at least once each.
type Source interface {
	// Name identifies the source in events, rejects and cursors: at most
	// archive.MaxSourceBytes of printable ASCII without spaces.
	Name() string

	// Deliver hands what lies behind position from to deliver, in order, until
	// there is no more, ctx ends or deliver returns an error, which it returns. A
	// source without positions ignores from. An item that cannot be read is handed
	// over with its Fault; only what ends the source is an error.
	Deliver(ctx context.Context, from uint64, deliver func(Delivery) error) error
}

// Delivery is one thing that a source delivered. It belongs to the receiver.
type Delivery struct {
	Raw   []byte // the VAA's bytes, or with a Fault what stands in their place
	TxID  string // the transaction that the source names, "" when it names none
	Where string // for people: where in the source it stands, as "line 7"
	// Position is behind this item in the source; 0 when it has no positions.
	Position uint64
	Fault    *Fault // why it cannot be read, or nil
}

// Fault is a reason to refuse an item: a stable name in snake_case and one
// sentence for a person.
type Fault struct {
	Reason string
	Detail string
}
