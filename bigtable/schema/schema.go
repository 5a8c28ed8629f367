// Package schema names the tables, families and qualifiers of the archive in
// Cloud Bigtable and their garbage-collection rules. It is pure: bigtable creates
// and compares tables by it, and the definitions for terraform are generated from
// it.
package schema

import (
	"fmt"
	"strings"
	"time"
)

// Version is the version of the schema. A program refuses a store of a higher
// version. It is to be raised by any change that an older program would write or
// read wrongly.
const Version = 1

// The tables of a generation.
const (
	Attestations = "attestations"
	Index        = "index"
	Journal      = "journal"
	State        = "state"
)

// Families of the table attestations.
const (
	MessagePublication = "MessagePublication" // body of the message; versions shadow each other
	QuorumState        = "QuorumState"        // verified VAAs; versions are data
)

// Qualifiers of MessagePublication.
const (
	ColVersion          = "Version"
	ColGuardianSetIndex = "GuardianSetIndex"
	ColTimestamp        = "Timestamp"
	ColNonce            = "Nonce"
	ColSequence         = "Sequence"
	ColEmitterChain     = "EmitterChain"
	ColEmitterAddress   = "EmitterAddress"
	ColInitiatingTxID   = "InitiatingTxID"
	ColPayload          = "Payload"
	ColConsistencyLevel = "ConsistencyLevel"
	ColDigest           = "Digest"
	ColRecordedAt       = "RecordedAt" // in QuorumState too
	PrefixVanished      = "Vanished."  // + digest
	PrefixTxID          = "TxID."      // + digest.txid
)

// Qualifiers of QuorumState beside RecordedAt.
const (
	ColSignedVAA    = "SignedVAA"
	PrefixConflict  = "Conflict."  // + digest
	PrefixOther     = "Other."     // + set.digest
	PrefixSignature = "Signature." // + set.digest.guardian
)

// Family of the table index; a qualifier is a digest.
const Digests = "Digests"

// Families of the table journal. Qualifiers of Event and Bytes are offsets of 20
// digits.
const (
	Batch = "Batch"
	Event = "Event"
	Bytes = "Bytes"
)

// Qualifiers of Batch.
const (
	ColID       = "ID"
	ColWriter   = "Writer"
	ColWallTime = "WallTime"
	ColCount    = "Count"
	ColClass    = "Class"
	ColApplied  = "Applied"
)

// Families of the table state.
const (
	Value  = "Value"  // watermark, cursors, guardian sets, jobs, subscriptions
	Reject = "Reject" // refused items, dropped by age
)

// Family, row and qualifiers of the table <network>.store, which says which
// generation is open.
const (
	Store         = "Store"
	RowCurrent    = "current"
	ColGeneration = "Generation"
	ColEpoch      = "Epoch"
	ColState      = "State"
	ColSchema     = "SchemaVersion"
)

// A Table is the definition of one table.
type Table struct {
	Name     string
	Families []Family
}

// A Family is the definition of one column family. Neither MaxVersions nor MaxAge
// means that nothing is ever collected; both mean that either suffices.
type Family struct {
	Name        string
	MaxVersions int           // 0: unbounded
	MaxAge      time.Duration // 0: unbounded
}

// Tables returns the tables of one generation.
func Tables() []Table {
	return []Table{
		{Attestations, []Family{{Name: MessagePublication, MaxVersions: 1}, {Name: QuorumState}}},
		{Index, []Family{{Name: Digests, MaxVersions: 1}}},
		{Journal, []Family{{Name: Batch, MaxVersions: 1}, {Name: Event}, {Name: Bytes}}},
		{State, []Family{{Name: Value, MaxVersions: 1}, {Name: Reject, MaxVersions: 1, MaxAge: 30 * 24 * time.Hour}}},
	}
}

// StoreTable returns the table that names the open generation.
func StoreTable() Table {
	return Table{"store", []Family{{Name: Store, MaxVersions: 1}}}
}

// TableID returns the id of a generation's table, as mainnet.g1.journal.
func TableID(network string, generation uint64, table string) string {
	return fmt.Sprintf("%s.g%d.%s", network, generation, table)
}

// StoreTableID returns the id of a network's store table, as mainnet.store.
func StoreTableID(network string) string { return network + "." + StoreTable().Name }

// Columns returns the qualifiers of a family of the table attestations; those
// that end in a dot are prefixes. Nil for an unknown family.
func Columns(family string) []string {
	switch family {
	case MessagePublication:
		return []string{
			ColVersion, ColGuardianSetIndex, ColTimestamp, ColNonce, ColSequence, ColEmitterChain,
			ColEmitterAddress, ColInitiatingTxID, ColPayload, ColConsistencyLevel, ColDigest, ColRecordedAt,
			PrefixVanished, PrefixTxID,
		}
	case QuorumState:
		return []string{ColSignedVAA, ColRecordedAt, PrefixConflict, PrefixOther, PrefixSignature}
	}
	return nil
}

// Rule returns a family's garbage-collection rule in the words of cbt.
func (f Family) Rule() string {
	var rules []string
	if f.MaxVersions > 0 {
		rules = append(rules, fmt.Sprintf("maxversions=%d", f.MaxVersions))
	}
	if f.MaxAge > 0 {
		rules = append(rules, fmt.Sprintf("maxage=%dh", int(f.MaxAge.Hours())))
	}
	if len(rules) == 0 {
		return "never"
	}
	return strings.Join(rules, " || ")
}
