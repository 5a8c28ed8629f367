package archive

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/attestry/attestry/vaa"
)

// eventJSON is the JSON form of an event, the same in the journal, the stream
// and the API. Times are RFC 3339 UTC, absent values null, 64-bit numbers
// strings. Bytes and RecordedAt travel beside it: the first in a cell (or field)
// of their own, the second with the batch.
type eventJSON struct {
	Offset           Offset      `json:"offset,string"`
	Kind             Kind        `json:"kind"`
	ID               string      `json:"id"`
	Digest           string      `json:"digest"`
	GuardianSetIndex *uint32     `json:"guardianSetIndex"`
	Canonical        bool        `json:"canonical"`
	Displaced        *vaa.Digest `json:"displaced"`
	Before           *Standing   `json:"before"`
	Completes        bool        `json:"completes"`
	Expired          bool        `json:"expired"`
	Timestamp        *time.Time  `json:"timestamp"`
	Link             *Link       `json:"link"`
	InitiatingTxID   *string     `json:"initiatingTxId"`
	Source           string      `json:"source"`
}

// MarshalJSON returns the event without Bytes and RecordedAt.
func (e Event) MarshalJSON() ([]byte, error) {
	j := eventJSON{
		Offset: e.Offset, Kind: e.Kind, ID: e.ID.String(), Digest: e.Digest.String(),
		GuardianSetIndex: e.GuardianSetIndex, Canonical: e.Canonical, Displaced: e.Displaced, Before: e.Before,
		Completes: e.Completes, Expired: e.Expired, Link: e.Link, InitiatingTxID: e.InitiatingTxID, Source: e.Source,
	}
	if !e.Time.IsZero() {
		t := e.Time.UTC()
		j.Timestamp = &t
	}
	return json.Marshal(j)
}

// UnmarshalJSON is the inverse of MarshalJSON; Bytes and RecordedAt stay as they
// are.
func (e *Event) UnmarshalJSON(data []byte) error {
	var j eventJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("decode event: %w", err)
	}
	id, err := vaa.ParseMessageID(j.ID)
	if err != nil {
		return fmt.Errorf("decode event: %w", err)
	}
	digest, err := vaa.ParseDigest(j.Digest)
	if err != nil {
		return fmt.Errorf("decode event: %w", err)
	}
	switch {
	case j.Kind == 0:
		return fmt.Errorf("decode event: it has no kind")
	case j.Link != nil && j.Link.Trust == 0:
		return fmt.Errorf("decode event: its link has no trust")
	}
	e.Offset, e.Kind, e.ID, e.Digest = j.Offset, j.Kind, id, digest
	e.GuardianSetIndex, e.Canonical, e.Displaced, e.Before = j.GuardianSetIndex, j.Canonical, j.Displaced, j.Before
	e.Completes, e.Expired, e.Link, e.InitiatingTxID, e.Source = j.Completes, j.Expired, j.Link, j.InitiatingTxID, j.Source
	e.Time = time.Time{}
	if j.Timestamp != nil {
		e.Time = j.Timestamp.UTC()
	}
	return nil
}
