package feed_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/vaa"
)

const (
	emitter = "0000000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585"
	digest  = "1111111111111111111111111111111111111111111111111111111111111111"

	// The digits of offset, epoch and sequence are beyond what a double holds.
	eventData = `{"offset":"9223372036854775809","kind":"quorum","id":"2/` + emitter + `/18446744073709551615",` +
		`"digest":"` + digest + `","guardianSetIndex":4,"canonical":true,"displaced":null,"before":null,"completes":false,"expired":false,` +
		`"timestamp":"2026-03-01T11:59:58Z","link":{"txId":"ab","trust":"chain","source":"x\u003cy"},"initiatingTxId":null,"source":"file",` +
		`"epoch":"18446744073709551615","class":"live","recordedAt":"2026-03-01T12:00:00.123456789Z","network":"mainnet","vaa":"AQID"}`
	eventID = "1772366400123-9223372036854775809"

	skippedData = `{"kind":"skipped","from":"9007199254740993","to":"18446744073709551615","epoch":"7"}`
	skippedID   = "1772366400123-18446744073709551615"
)

func item(t testing.TB, id, data string) feed.Item {
	t.Helper()
	parsed, err := feed.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	return feed.Item{ID: parsed, Data: data}
}

func TestEntryJSON(t *testing.T) {
	set := uint32(4)
	d, err := vaa.ParseDigest(digest)
	if err != nil {
		t.Fatal(err)
	}
	id, err := vaa.ParseMessageID("2/" + emitter + "/18446744073709551615")
	if err != nil {
		t.Fatal(err)
	}
	const offset = archive.Offset(1<<63 + 1)
	for _, c := range []struct {
		name, id, data string
		want           feed.Entry
	}{
		{"event", eventID, eventData, feed.Entry{
			ID: feed.ID{Millis: 1772366400123, Offset: offset}, Epoch: math.MaxUint64, From: offset, Class: archive.ClassLive, Network: vaa.Mainnet,
			Event: &archive.Event{
				Offset: offset, Kind: archive.KindQuorum, ID: id, Digest: d, GuardianSetIndex: &set, Canonical: true,
				Time: time.Date(2026, 3, 1, 11, 59, 58, 0, time.UTC), Link: &archive.Link{TxID: "ab", Trust: archive.TrustChain, Source: "x<y"},
				Source: "file", RecordedAt: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC), Bytes: []byte{1, 2, 3},
			},
		}},
		{"skipped", skippedID, skippedData, feed.Entry{
			ID: feed.ID{Millis: 1772366400123, Offset: math.MaxUint64}, Epoch: 7, From: 1<<53 + 1,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := feed.ParseEntry(item(t, c.id, c.data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("parsed (-want +got):\n%s", diff)
			}
			again, err := c.want.Item()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.data, again.Data); diff != "" || again.ID.String() != c.id {
				t.Errorf("encoded as %s (-want +got):\n%s", again.ID, diff)
			}
		})
	}
}

func TestParseEntryIsStrict(t *testing.T) {
	replace := func(data, from, to string) string {
		if !strings.Contains(data, from) {
			t.Fatalf("%s is not in the data", from)
		}
		return strings.Replace(data, from, to, 1)
	}
	for _, c := range []struct{ name, id, data string }{
		{"nothing", eventID, ""},
		{"null", eventID, "null"},
		{"an empty object", eventID, "{}"},
		{"text behind", eventID, eventData + " "},
		{"an unknown field", eventID, replace(eventData, `"kind"`, `"more":1,"kind"`)},
		{"a missing field", eventID, replace(eventData, `"completes":false,`, "")},
		{"a field twice", eventID, replace(eventData, `"completes":false,`, `"completes":false,"completes":false,`)},
		{"a name in capitals", eventID, replace(eventData, `"vaa"`, `"VAA"`)},
		{"a number for a string", eventID, replace(eventData, `"offset":"9223372036854775809"`, `"offset":9223372036854775809`)},
		{"a leading zero", eventID, replace(eventData, `"epoch":"1`, `"epoch":"01`)},
		{"epoch 0", skippedID, replace(skippedData, `"epoch":"7"`, `"epoch":"0"`)},
		{"an epoch beyond 64 bits", eventID, replace(eventData, `"epoch":"1`, `"epoch":"11`)},
		{"an id in another spelling", eventID, replace(eventData, "2/"+emitter, "2/0x"+emitter)},
		{"a time not in UTC", eventID, replace(eventData, "12:00:00.123456789Z", "13:00:00.123456789+01:00")},
		{"an unknown kind", eventID, replace(eventData, "quorum", "quorums")},
		{"an unknown class", eventID, replace(eventData, `"live"`, `"alive"`)},
		{"an unknown network", eventID, replace(eventData, `"mainnet"`, `"Mainnet"`)},
		{"empty bytes for none", eventID, replace(eventData, `"AQID"`, `""`)},
		{"other base64", eventID, replace(eventData, `"AQID"`, `"AQ\nID"`)},
		{"a signed VAA without a set", eventID, replace(eventData, `"guardianSetIndex":4`, `"guardianSetIndex":null`)},
		{"another offset than the id's", "1772366400123-9223372036854775808", eventData},
		{"another time than the id's", "1772366400124-9223372036854775809", eventData},
		{"skipped to another offset than the id's", "1772366400123-18446744073709551614", skippedData},
		{"skipped backwards", "1-3", `{"kind":"skipped","from":"4","to":"3","epoch":"7"}`},
		{"skipped from 0", "1-3", `{"kind":"skipped","from":"0","to":"3","epoch":"7"}`},
		{"skipped with an event's field", "1-3", `{"kind":"skipped","from":"1","to":"3","epoch":"7","class":"live"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := feed.ParseEntry(item(t, c.id, c.data))
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), "stream entry "+c.id) {
				t.Errorf("the error does not name the entry: %v", err)
			}
		})
	}
}

func TestParseID(t *testing.T) {
	for _, s := range []string{"0-0", "1-2", "18446744073709551615-18446744073709551615"} {
		id, err := feed.ParseID(s)
		if err != nil || id.String() != s {
			t.Errorf("%s: got %s, %v", s, id, err)
		}
	}
	for _, s := range []string{"", "1", "1-", "-1", "1-2-3", "01-2", "1-02", "+1-2", "1-18446744073709551616", "1-x", "1-2 "} {
		if id, err := feed.ParseID(s); err == nil {
			t.Errorf("%q: accepted as %s", s, id)
		}
	}
}

func TestEncodedEntriesParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		item, err := e.Item()
		if err != nil {
			t.Fatal(err)
		}
		got, err := feed.ParseEntry(item)
		if err != nil {
			t.Fatalf("%v\n%s", err, item.Data)
		}
		// Texts with bytes that JSON cannot carry change once and never again.
		again, err := got.Item()
		if err != nil || again != item {
			t.Fatalf("encoded again: %v\n%s", err, cmp.Diff(item.Data, again.Data))
		}
		if got.ID != e.ID || got.Epoch != e.Epoch || got.From != e.From || (got.Event == nil) != (e.Event == nil) {
			t.Fatalf("got %+v of %+v", got, e)
		}
	})
}

func drawEntry(t *rapid.T) feed.Entry {
	offset := archive.Offset(rapid.Uint64Min(1).Draw(t, "offset"))
	e := feed.Entry{Epoch: rapid.Uint64Min(1).Draw(t, "epoch"), From: offset}
	e.ID.Offset = offset
	if rapid.Bool().Draw(t, "skipped") {
		e.ID.Millis = rapid.Uint64().Draw(t, "millis")
		e.From = archive.Offset(rapid.Uint64Range(1, uint64(offset)).Draw(t, "from"))
		return e
	}
	// Up to the year 9999, beyond which RFC 3339 says nothing.
	at := func(label string) time.Time {
		return time.Unix(rapid.Int64Range(0, 253402300799).Draw(t, label), rapid.Int64Range(0, 999999999).Draw(t, label+" ns")).UTC()
	}
	text := func(label string) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, label)) }
	event := archive.Event{
		Offset: offset, Kind: archive.Kind(rapid.IntRange(1, 6).Draw(t, "kind")), Source: text("source"),
		ID:        vaa.MessageID{EmitterChain: vaa.ChainID(rapid.Uint16().Draw(t, "chain")), Sequence: rapid.Uint64().Draw(t, "sequence")},
		Canonical: rapid.Bool().Draw(t, "canonical"), Time: at("time"), RecordedAt: at("recorded"),
	}
	if rapid.Bool().Draw(t, "signed") {
		set := rapid.Uint32().Draw(t, "set")
		event.GuardianSetIndex, event.Bytes = &set, rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
	}
	if rapid.Bool().Draw(t, "linked") {
		txID := text("initiating tx")
		event.Link = &archive.Link{TxID: text("tx"), Trust: archive.TrustPeer, Source: text("link source")}
		event.InitiatingTxID = &txID
	}
	e.ID.Millis, e.Event, e.Class, e.Network = uint64(event.RecordedAt.UnixMilli()), &event, archive.ClassLive, vaa.Devnet
	return e
}

// FuzzParseEntry: whatever is accepted is what the encoder writes, byte for byte.
func FuzzParseEntry(f *testing.F) {
	f.Add(uint64(1772366400123), uint64(1<<63+1), eventData)
	f.Add(uint64(1772366400123), uint64(math.MaxUint64), skippedData)
	f.Fuzz(func(t *testing.T, millis, offset uint64, data string) {
		in := feed.Item{ID: feed.ID{Millis: millis, Offset: archive.Offset(offset)}, Data: data}
		e, err := feed.ParseEntry(in)
		if err != nil {
			return
		}
		out, err := e.Item()
		if err != nil || out != in {
			t.Fatalf("accepted %q, written as %q: %v", in, out, err)
		}
		if e.From == 0 || e.From > e.ID.Offset || e.Epoch == 0 {
			t.Fatalf("accepted %+v", e)
		}
	})
}
