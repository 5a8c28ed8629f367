package archive

import (
	"fmt"
	"strings"
	"time"

	"github.com/attestry/attestry/vaa"
)

// Offset is a position in the journal. The first event has offset 1; 0 is before
// the first. Offsets are dense and never used twice within an epoch.
type Offset uint64

// Kind says what an event changed.
type Kind uint8

// The kinds of events.
const (
	KindQuorum   Kind = iota + 1 // a first signed VAA of the message
	KindObserved                 // a publication without a signed VAA
	KindResigned                 // the canonical digest signed by another guardian set
	KindLinked                   // a link to a transaction became known or better trusted
	KindConflict                 // another digest for an id that has a signed VAA
	KindVanished                 // an observed digest that its source gave up
)

var kindNames = [...]string{"", "quorum", "observed", "resigned", "linked", "conflict", "vanished"}

func (k Kind) String() string { return nameOf(kindNames[:], int(k)) }

// MarshalText returns the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText accepts the names that String returns.
func (k *Kind) UnmarshalText(text []byte) error {
	i, err := indexOf("event kind", kindNames[:], string(text))
	*k = Kind(i)
	return err
}

// Class says whether relayers see a batch's events live or as history.
type Class uint8

// The classes of batches.
const (
	ClassLive Class = iota + 1
	ClassHistory
)

var classNames = [...]string{"", "live", "history"}

func (c Class) String() string { return nameOf(classNames[:], int(c)) }

// ParseClass is the inverse of String.
func ParseClass(s string) (Class, error) {
	i, err := indexOf("class", classNames[:], s)
	return Class(i), err
}

// Trust says how well a fact is known that no guardian signature proves. Higher
// is better.
type Trust uint8

// The degrees of trust.
const (
	TrustClaimed Trust = iota + 1 // somebody said so, e.g. a file
	TrustPeer                     // a guardian's gossip or another archive said so
	TrustChain                    // read from the chain's own node
)

var trustNames = [...]string{"", "claimed", "peer", "chain"}

func (t Trust) String() string { return nameOf(trustNames[:], int(t)) }

// ParseTrust is the inverse of String.
func ParseTrust(s string) (Trust, error) {
	i, err := indexOf("trust", trustNames[:], s)
	return Trust(i), err
}

// MarshalText returns the name.
func (t Trust) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText accepts the names that String returns.
func (t *Trust) UnmarshalText(text []byte) error {
	var err error
	*t, err = ParseTrust(string(text))
	return err
}

// Link names a transaction in which a message was published.
type Link struct {
	TxID   string `json:"txId"` // in the form of ParseTxID
	Trust  Trust  `json:"trust"`
	Source string `json:"source"` // name of the source that reported it
}

// Event is one entry of the journal. It carries all that its projection needs:
// after the append nothing about it is open.
type Event struct {
	Offset Offset
	Kind   Kind
	ID     vaa.MessageID
	Digest vaa.Digest
	// GuardianSetIndex is the set that signed; nil unless the event is about a
	// signed VAA.
	GuardianSetIndex *uint32
	// Canonical: the event's digest (and VAA, if any) becomes the row's.
	Canonical bool
	// Displaced is the digest that was canonical and is no longer; nil when none
	// was or the event changes no digest.
	Displaced *vaa.Digest
	// Before is what counted of the message before the event; nil when nothing did.
	Before *Standing
	// Completes: the event is the quorum of the very digest that was observed, so
	// the body is in the row already.
	Completes bool
	// Expired: the set had expired more than a day before the VAA first arrived.
	Expired bool
	// Time is the message's own time; zero for KindVanished and for a KindLinked.
	Time time.Time
	// Link is the link to a transaction that the event brings, or nil.
	Link *Link
	// InitiatingTxID is the best known transaction of Digest, decided when the
	// event was classified. Nil when none is known. It belongs to the row only if
	// the digest is the row's.
	InitiatingTxID *string
	// Source is the name of the source that delivered the item.
	Source string
	// RecordedAt is the wall time of the event's batch.
	RecordedAt time.Time
	// Bytes are the VAA's as received, or for KindObserved those of the body. Nil
	// for the other kinds and when dropped after their retention.
	Bytes []byte
}

// WritesBody reports whether the event makes its digest the row's where another,
// or none, was before.
func (e *Event) WritesBody() bool {
	switch e.Kind {
	case KindObserved:
		return true
	case KindQuorum, KindConflict:
		return e.Canonical && !e.Completes
	}
	return false
}

// Signed reports whether the event's bytes are those of a signed VAA.
func (e *Event) Signed() bool { return e.GuardianSetIndex != nil }

// Batch is one row of the journal: events that were appended together. Only
// Applied ever changes once it is appended.
type Batch struct {
	Offset   Offset // of the first event
	ID       string // random for each content
	Writer   string // random for each start of a writer
	WallTime time.Time
	Class    Class
	Applied  bool
	Events   []Event // 1 to MaxBatchEvents, offsets dense from Offset
}

// End returns the offset after the batch's last event.
func (b *Batch) End() Offset { return b.Offset + Offset(len(b.Events)) }

// Bytes returns the sum of the lengths of the events' bytes.
func (b *Batch) Bytes() int {
	n := 0
	for i := range b.Events {
		n += len(b.Events[i].Bytes)
	}
	return n
}

func (b *Batch) withBytes() int {
	n := 0
	for i := range b.Events {
		if len(b.Events[i].Bytes) > 0 {
			n++
		}
	}
	return n
}

// Check returns an error that names the first thing about the batch that no
// history allows, whatever came before it.
func (b *Batch) Check() error {
	switch {
	case b.Offset == 0:
		return fmt.Errorf("batch at offset 0: offsets start at 1")
	case b.ID == "" || b.Writer == "":
		return fmt.Errorf("batch at offset %d: no batch id or no writer id", b.Offset)
	case b.Class != ClassLive && b.Class != ClassHistory:
		return fmt.Errorf("batch at offset %d: no class", b.Offset)
	case len(b.Events) == 0 || len(b.Events) > MaxBatchEvents:
		return fmt.Errorf("batch at offset %d: %d events, not 1 to %d", b.Offset, len(b.Events), MaxBatchEvents)
	case b.Bytes() > MaxBatchBytes && b.withBytes() > 1:
		return fmt.Errorf("batch at offset %d: %d bytes in %d events, more than %d: %w", b.Offset, b.Bytes(), len(b.Events), MaxBatchBytes, ErrTooLarge)
	}
	for i := range b.Events {
		e := &b.Events[i]
		if want := b.Offset + Offset(i); e.Offset != want {
			return fmt.Errorf("batch at offset %d: event %d has offset %d, not %d", b.Offset, i, e.Offset, want)
		}
		if len(e.Bytes) > vaa.MaxBytes {
			return fmt.Errorf("event at offset %d: %d bytes, more than %d: %w", e.Offset, len(e.Bytes), vaa.MaxBytes, ErrTooLarge)
		}
	}
	return nil
}

// Outcome says what became of one delivered item.
type Outcome uint8

// The outcomes, as in docs/protocol.md.
const (
	OutcomeAccepted  Outcome = iota + 1
	OutcomeDuplicate         // known before
	OutcomeResigned          // signed again by another set
	OutcomeCompleted         // a publication met its quorum
	OutcomeLinked            // a link to a transaction became known
	OutcomeConflict          // another digest for the id
	OutcomeInvalid           // decoding or verification failed, kept as a reject
	OutcomeError             // not settled: to be delivered again
)

var outcomeNames = [...]string{"", "accepted", "duplicate", "resigned", "completed", "linked", "conflict", "invalid", "error"}

func (o Outcome) String() string { return nameOf(outcomeNames[:], int(o)) }

// Outcomes returns every outcome in the order of the table.
func Outcomes() []Outcome {
	all := make([]Outcome, 0, len(outcomeNames)-1)
	for i := 1; i < len(outcomeNames); i++ {
		all = append(all, Outcome(i))
	}
	return all
}

func nameOf(names []string, i int) string {
	if i <= 0 || i >= len(names) {
		return fmt.Sprintf("unknown(%d)", i)
	}
	return names[i]
}

func indexOf(what string, names []string, s string) (int, error) {
	for i := 1; i < len(names); i++ {
		if names[i] == s {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q: use one of %s", what, s, strings.Join(names[1:], ", "))
}
