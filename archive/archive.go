// Package archive is the port of the Attestry archive: the records that it
// keeps, the events by which they come about, and the interfaces of the stores
// behind it. It does no I/O. Implementations are archive/memarchive (the
// reference model) and bigtable; archive/archivetest is the conformance suite
// that both run.
//
// The journal is the log and the only place where something is decided; rows
// and index are its projection (docs/protocol.md).
package archive

import (
	"context"
	"iter"
	"time"

	"github.com/attestry/attestry/vaa"
)

// Reader looks messages up. Its methods may be called concurrently. A record is
// read atomically; two records of one scan are not a snapshot.
type Reader interface {
	// Get returns what is known of one message, with the cells that columns asks
	// for. Errors: ErrNotFound when nothing at all is known of the message.
	Get(ctx context.Context, id vaa.MessageID, columns Columns) (Record, error)

	// GetAll returns the records of those ids of which something is known. The
	// ids may repeat; their number is at most MaxBatchItems.
	GetAll(ctx context.Context, ids []vaa.MessageID, columns Columns) (map[vaa.MessageID]Record, error)

	// Scan yields the records of a range in its order, at most r.Limit of them
	// when that is positive. It stops after the first error.
	Scan(ctx context.Context, r Range, columns Columns) iter.Seq2[Record, error]

	// Lookup yields the messages that the index names for a key, in the order of
	// their row keys, or as its kind says. Digests that lost to another are among
	// them. It stops after the first error.
	Lookup(ctx context.Context, l Lookup) iter.Seq2[Ref, error]
}

// Journal is the log. Its methods may be called concurrently.
type Journal interface {
	// Append stores a batch at b.Offset if no batch is there. Errors:
	// ErrOffsetTaken when one is, which may be the very batch after a lost reply;
	// ErrTooLarge when a limit forbids it for ever. After any other error the
	// outcome is unknown, and the request may still land much later.
	Append(ctx context.Context, b Batch) error

	// Batches yields the batches from the one that holds offset from onward, each
	// beginning where the last ended, and stops at the first hole: what it yields
	// is a prefix of the journal's rest, but not a snapshot of it. It stops after
	// the first error.
	Batches(ctx context.Context, from Offset) iter.Seq2[Batch, error]

	// Watermark returns an offset below which every batch is applied, at least 1.
	// Any value ever set is right.
	Watermark(ctx context.Context) (Offset, error)

	// RaiseWatermark records that all batches before w are applied. A lower value
	// than the stored one changes nothing.
	RaiseWatermark(ctx context.Context, w Offset) error

	// CheckOpen reports whether the generation that this store was opened on is
	// still the one to write to. Nothing may be settled before it has returned
	// nil after the write. Errors: ErrSealed.
	CheckOpen(ctx context.Context) error
}

// Applier writes the journal's projection. Its methods may be called
// concurrently, by anyone, late, repeatedly and in any order.
type Applier interface {
	// Apply puts the rows and index entries of a batch as read from the journal.
	// A nil error means that each of them is durable.
	Apply(ctx context.Context, b Batch) error

	// MarkApplied records that the batch at offset o is applied. To be called
	// only after Apply returned nil for it. Errors: ErrNotFound when no batch
	// begins there.
	MarkApplied(ctx context.Context, o Offset) error

	// PutEvidence keeps valid signatures beyond those of a stored VAA. A nil
	// error means that all are durable.
	PutEvidence(ctx context.Context, evidence []Evidence) error
}

// CursorStore keeps the positions of sources.
type CursorStore interface {
	// Cursor returns the committed position of a source, 0 when there is none.
	Cursor(ctx context.Context, source string) (uint64, error)

	// CommitCursor moves a source's position from one value to a higher one.
	// Errors: ErrCursorMoved when the stored position is not from.
	CommitCursor(ctx context.Context, source string, from, to uint64) error
}

// RejectStore keeps what was refused, with the reason: one entry for equal
// bytes and reason, counted.
type RejectStore interface {
	PutReject(ctx context.Context, r Reject) error
	// Rejects yields the kept rejects ordered by reason and hash, from behind one on
	// when after is not nil; of it only these two matter.
	Rejects(ctx context.Context, after *Reject) iter.Seq2[Reject, error]
}

// GuardianSetStore keeps the guardian-set upgrades that came through, so that a
// restart knows what was learnt.
type GuardianSetStore interface {
	// PutGuardianSetUpgrade keeps the bytes of the upgrade VAA that introduces the
	// set of this index. The first bytes for an index stay.
	PutGuardianSetUpgrade(ctx context.Context, index uint32, raw []byte) error
	// GuardianSetUpgrades returns the kept upgrade VAAs by ascending index.
	GuardianSetUpgrades(ctx context.Context) ([][]byte, error)
}

// Store is everything that an implementation offers. Consumers take the part
// that they need.
type Store interface {
	Reader
	Journal
	Applier
	CursorStore
	RejectStore
	GuardianSetStore
	RollupStore
	// Info tells which store this is.
	Info() StoreInfo
	// Clock returns the store's own time, to compare a writer's clock with.
	Clock(ctx context.Context) (time.Time, error)
}

// StoreInfo identifies an open store.
type StoreInfo struct {
	Network    vaa.Network
	Generation uint64 // counts moves and restores, from 1
	Epoch      uint64 // counts histories: a restore begins a new one, from 1
}

// Limits that hold before an append, so that no batch is refused by a store for
// ever (docs/protocol.md, rule 7).
const (
	MaxBatchEvents = 200     // events in one batch
	MaxBatchBytes  = 2 << 20 // sum of the events' bytes; one larger event goes alone
	MaxBatchItems  = 200     // ids in one GetAll
	MaxLinks       = 64      // links to transactions kept a message
	MaxVersions    = 64      // verified VAAs kept a message
	MaxTxIDBytes   = 256     // length of a transaction id's text
	MaxSourceBytes = 128     // length of a source's name
	MaxRejectBytes = 64 << 10
)
