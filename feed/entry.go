package feed

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// ID is the id of a stream entry: the wall time of the event's batch in Unix
// milliseconds and the event's offset, "<millis>-<offset>" in text. It comes from
// the journal and never from a clock, so that a stream written anew has the ids
// that it had. The zero value stands before all entries.
type ID struct {
	Millis uint64
	Offset archive.Offset
}

// String returns the id as Redis writes it.
func (id ID) String() string {
	return strconv.FormatUint(id.Millis, 10) + "-" + strconv.FormatUint(uint64(id.Offset), 10)
}

// Compare orders ids as Redis does.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Millis, other.Millis), cmp.Compare(id.Offset, other.Offset))
}

// next returns the smallest id after id.
func (id ID) next() ID {
	if id.Offset == math.MaxUint64 {
		return ID{Millis: id.Millis + 1}
	}
	return ID{Millis: id.Millis, Offset: id.Offset + 1}
}

// ParseID is the inverse of ID.String. It accepts nothing else.
func ParseID(s string) (ID, error) {
	millis, offset, _ := strings.Cut(s, "-")
	m, err := strconv.ParseUint(millis, 10, 64)
	if err != nil {
		return ID{}, fmt.Errorf("stream id %q: want <milliseconds>-<offset>", s)
	}
	o, err := strconv.ParseUint(offset, 10, 64)
	if err != nil {
		return ID{}, fmt.Errorf("stream id %q: want <milliseconds>-<offset>", s)
	}
	id := ID{Millis: m, Offset: archive.Offset(o)}
	if id.String() != s {
		return ID{}, fmt.Errorf("stream id %q: written otherwise than %q", s, id)
	}
	return id, nil
}

// Item is an entry as the stream holds it, undecoded: its id and the value of
// its field "data", "" when it has none. Items are compared with ==; two that are
// equal are of one epoch, which is in the data. The zero value is no entry.
type Item struct {
	ID   ID
	Data string
}

// Entry is one entry of the stream: an event of class live, or a run of history
// that is skipped and can be read from the journal.
type Entry struct {
	ID    ID     // ID.Offset is the last offset that the entry stands for
	Epoch uint64 // of the store whose journal it is from
	// From is the first offset that the entry stands for; for an event it equals
	// ID.Offset.
	From archive.Offset
	// Event is nil in a skipped entry. Its Bytes are those of the signed VAA; nil
	// when it is about none, and when the journal has dropped them.
	Event   *archive.Event
	Class   archive.Class // zero in a skipped entry
	Network vaa.Network   // zero in a skipped entry
}

// kindSkipped stands where events have their kind.
const kindSkipped = "skipped"

// skippedJSON is the data of a skipped entry.
type skippedJSON struct {
	Kind  string         `json:"kind"`
	From  archive.Offset `json:"from,string"`
	To    archive.Offset `json:"to,string"`
	Epoch uint64         `json:"epoch,string"`
}

// eventJSON holds what the data of an event has beside the JSON form of
// archive.Event.
type eventJSON struct {
	Epoch      uint64    `json:"epoch,string"`
	Class      string    `json:"class"`
	RecordedAt time.Time `json:"recordedAt"`
	Network    string    `json:"network"`
	VAA        []byte    `json:"vaa"`
}

// Item encodes the entry. An error means that a time is beyond what RFC 3339 can
// say.
func (e *Entry) Item() (Item, error) {
	data, err := e.data()
	if err != nil {
		return Item{}, fmt.Errorf("encode stream entry %s: %w", e.ID, err)
	}
	return Item{ID: e.ID, Data: string(data)}, nil
}

func (e *Entry) data() ([]byte, error) {
	if e.Event == nil {
		return json.Marshal(skippedJSON{Kind: kindSkipped, From: e.From, To: e.ID.Offset, Epoch: e.Epoch})
	}
	event, err := json.Marshal(validUTF8(*e.Event))
	if err != nil {
		return nil, err
	}
	j := eventJSON{Epoch: e.Epoch, Class: e.Class.String(), RecordedAt: e.Event.RecordedAt.UTC(), Network: e.Network.String()}
	if e.Event.Signed() && len(e.Event.Bytes) > 0 {
		j.VAA = e.Event.Bytes
	}
	rest, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	event[len(event)-1] = ',' // two objects become one
	return append(event, rest[1:]...), nil
}

// validUTF8 replaces what JSON cannot carry, which the encoder would write in a
// form that decodes to another text.
func validUTF8(e archive.Event) archive.Event {
	clean := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
	e.Source = clean(e.Source)
	if e.Link != nil {
		link := *e.Link
		link.TxID, link.Source = clean(link.TxID), clean(link.Source)
		e.Link = &link
	}
	if e.InitiatingTxID != nil {
		txID := clean(*e.InitiatingTxID)
		e.InitiatingTxID = &txID
	}
	return e
}

// ParseEntry is the inverse of Entry.Item. It accepts nothing that Item does not
// produce: no unknown, missing or repeated field, no other order or spelling, no
// data that contradicts the id.
func ParseEntry(item Item) (Entry, error) {
	e, err := parseEntry(item)
	if err != nil {
		return Entry{}, fmt.Errorf("stream entry %s: %w", item.ID, err)
	}
	return e, nil
}

func parseEntry(item Item) (Entry, error) {
	data := []byte(item.Data)
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return Entry{}, err
	}
	parse := parseEvent
	if kind.Kind == kindSkipped {
		parse = parseSkipped
	}
	e, err := parse(item.ID, data)
	if err != nil {
		return Entry{}, err
	}
	if e.Epoch == 0 {
		return Entry{}, fmt.Errorf("names no epoch")
	}
	again, err := e.data()
	if err != nil {
		return Entry{}, err
	}
	if !bytes.Equal(again, data) {
		return Entry{}, fmt.Errorf("the data is not written as this version writes it")
	}
	return e, nil
}

func parseSkipped(id ID, data []byte) (Entry, error) {
	var j skippedJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return Entry{}, err
	}
	if j.From == 0 || j.From > j.To || j.To != id.Offset {
		return Entry{}, fmt.Errorf("skips offsets %d to %d", j.From, j.To)
	}
	return Entry{ID: id, Epoch: j.Epoch, From: j.From}, nil
}

func parseEvent(id ID, data []byte) (Entry, error) {
	var (
		j     eventJSON
		event archive.Event
	)
	if err := json.Unmarshal(data, &j); err != nil {
		return Entry{}, err
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return Entry{}, err
	}
	event.RecordedAt, event.Bytes = j.RecordedAt.UTC(), j.VAA
	e := Entry{ID: id, Epoch: j.Epoch, From: id.Offset, Event: &event}
	var err error
	if e.Class, err = archive.ParseClass(j.Class); err != nil {
		return Entry{}, err
	}
	if e.Network, err = vaa.ParseNetwork(j.Network); err != nil {
		return Entry{}, err
	}
	if millis, err := unixMillis(j.RecordedAt); err != nil || (ID{Millis: millis, Offset: event.Offset}) != id || id.Offset == 0 {
		return Entry{}, fmt.Errorf("holds the event at offset %d recorded at %s", event.Offset, j.RecordedAt.Format(time.RFC3339Nano))
	}
	return e, nil
}

// epochOf returns the epoch that the data names, 0 when it names none. It asks
// for nothing else, so that an entry written by a later version of the program
// still says which history it is of.
func epochOf(item Item) uint64 {
	var j struct {
		Epoch uint64 `json:"epoch,string"`
	}
	if err := json.Unmarshal([]byte(item.Data), &j); err != nil {
		return 0
	}
	return j.Epoch
}

func unixMillis(t time.Time) (uint64, error) {
	millis := t.UnixMilli()
	if millis < 0 {
		return 0, fmt.Errorf("time %s is before 1970", t.UTC().Format(time.RFC3339Nano))
	}
	return uint64(millis), nil
}

// appendEntries appends what the stream holds of the batch's offsets from from
// on: an entry for each event of class live, one skipped entry for a batch of
// history, which continues a skipped entry that dst ends with.
func appendEntries(dst []Entry, b *archive.Batch, from archive.Offset, store archive.StoreInfo) ([]Entry, error) {
	millis, err := unixMillis(b.WallTime)
	if err != nil {
		return dst, fmt.Errorf("batch at offset %d: %w", b.Offset, err)
	}
	if b.Class == archive.ClassHistory {
		id := ID{Millis: millis, Offset: b.End() - 1}
		if n := len(dst); n > 0 && dst[n-1].Event == nil {
			dst[n-1].ID = id
			return dst, nil
		}
		return append(dst, Entry{ID: id, Epoch: store.Epoch, From: max(from, b.Offset)}), nil
	}
	for _, event := range b.Events {
		if event.Offset < from {
			continue
		}
		event.RecordedAt = b.WallTime.UTC()
		if !event.Signed() || len(event.Bytes) == 0 {
			event.Bytes = nil
		}
		dst = append(dst, Entry{
			ID: ID{Millis: millis, Offset: event.Offset}, Epoch: store.Epoch, From: event.Offset,
			Event: &event, Class: b.Class, Network: store.Network,
		})
	}
	return dst, nil
}

// isFrom reports whether the entry is the journal's: what the stream holds of
// batch b at the entry's id. VAA bytes do not count, for the journal drops them.
func (e *Entry) isFrom(b *archive.Batch, store archive.StoreInfo) bool {
	entries, err := appendEntries(nil, b, e.ID.Offset, store)
	if err != nil || len(entries) == 0 || entries[0].ID != e.ID {
		return false
	}
	want, got := entries[0], *e
	if want.Event == nil || got.Event == nil {
		return want.Event == nil && got.Event == nil
	}
	want.Event.Bytes = nil
	event := *got.Event
	event.Bytes, got.Event = nil, &event
	a, errA := want.data()
	c, errB := got.data()
	return errA == nil && errB == nil && bytes.Equal(a, c)
}
