package archive_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func TestParseTxID(t *testing.T) {
	h := strings.Repeat("aB", 32)
	for _, c := range []struct{ name, in, want string }{
		{"evm", "0x" + h, strings.ToLower(h)},
		{"evm without 0x", h, strings.ToLower(h)},
		{"cosmos in capitals", strings.ToUpper(h), strings.ToLower(h)},
		{"spaces around", " 0X" + h + "\n", strings.ToLower(h)},
		{"a short hex number keeps its 0x meaning", "0xAB", "ab"},
		{"solana keeps its case", "5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnbJLgp8uirBgmQpjKhoR4tjF3ZpRzrFmBV6UjKdiSZkQUW", "5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnbJLgp8uirBgmQpjKhoR4tjF3ZpRzrFmBV6UjKdiSZkQUW"},
		{"short text that could be hex is left alone", "ABCDEF", "ABCDEF"},
		{"near", "6Bo2Kgm8nJ-_=", "6Bo2Kgm8nJ-_="},
	} {
		got, err := archive.ParseTxID(c.in)
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.name, got, err, c.want)
		}
		again, err := archive.ParseTxID(got)
		if err != nil || again != got {
			t.Errorf("%s: %q read again is %q, %v", c.name, got, again, err)
		}
	}
	for _, bad := range []string{"", "  ", "0x", "0xzz", "a:b", "a b", "a\x00", "é", strings.Repeat("x", archive.MaxTxIDBytes+1)} {
		if got, err := archive.ParseTxID(bad); err == nil {
			t.Errorf("%q: got %q, want an error", bad, got)
		}
	}
}

func TestEventJSON(t *testing.T) {
	set, tx, displaced := uint32(math.MaxUint32), "ab", vaa.Digest{1}
	full := archive.Event{
		Offset: math.MaxUint64, Kind: archive.KindConflict, ID: vaa.MessageID{EmitterChain: 65535, EmitterAddress: vaa.Address{2}, Sequence: math.MaxUint64},
		Digest: vaa.Digest{3}, GuardianSetIndex: &set, Canonical: true, Displaced: &displaced, Completes: true, Expired: true,
		Time: time.Unix(1_700_000_000, 0).UTC(), Link: &archive.Link{TxID: "cd", Trust: archive.TrustPeer, Source: "s"}, InitiatingTxID: &tx, Source: "s",
	}
	for _, e := range []archive.Event{full, {Offset: 1, Kind: archive.KindVanished}} {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var got archive.Event
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	text, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"offset":"18446744073709551615"`, `/18446744073709551615"`, `"timestamp":"2023-11-14T22:13:20Z"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s lacks %s", text, part)
		}
	}
	for _, bad := range []string{`{}`, `{"offset":"1","kind":"none"}`, `{"offset":1}`, `[]`, ``} {
		var e archive.Event
		if err := json.Unmarshal([]byte(bad), &e); err == nil {
			t.Errorf("%s decodes to %+v", bad, e)
		}
	}
}

// FuzzEventJSON: whatever decodes, encodes to what decodes to the same.
func FuzzEventJSON(f *testing.F) {
	text, err := json.Marshal(archive.Event{Offset: 1, Kind: archive.KindQuorum, Time: time.Unix(1, 0)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var first, second archive.Event
		if json.Unmarshal(text, &first) != nil {
			return
		}
		again, err := json.Marshal(first)
		if err != nil {
			return // a year that RFC 3339 cannot say
		}
		if err := json.Unmarshal(again, &second); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if d := cmp.Diff(first, second); d != "" {
			t.Errorf("(-first +second):\n%s", d)
		}
	})
}

func TestBatchCheck(t *testing.T) {
	event := func(n int) archive.Event { return archive.Event{Kind: archive.KindObserved, Bytes: make([]byte, n)} }
	batch := func(o archive.Offset, events ...archive.Event) archive.Batch {
		for i := range events {
			events[i].Offset = o + archive.Offset(i)
		}
		return archive.Batch{Offset: o, ID: "b", Writer: "w", Class: archive.ClassLive, Events: events}
	}
	gap := batch(1, event(1), event(1))
	gap.Events[1].Offset++
	for _, c := range []struct {
		name     string
		b        archive.Batch
		ok       bool
		tooLarge bool
	}{
		{"one event", batch(1, event(1)), true, false},
		{"offset 0", batch(0, event(1)), false, false},
		{"no events", batch(1), false, false},
		{"a gap", gap, false, false},
		{"200 events", batch(1, make([]archive.Event, 200)...), true, false},
		{"201 events", batch(1, make([]archive.Event, 201)...), false, false},
		{"one large event", batch(1, event(archive.MaxBatchBytes+1)), true, false},
		{"one large event and one without bytes", batch(1, event(0), event(archive.MaxBatchBytes+1)), true, false},
		{"two of together too much", batch(1, event(1), event(archive.MaxBatchBytes)), false, true},
		{"beyond any VAA", batch(1, event(vaa.MaxBytes+1)), false, true},
	} {
		err := c.b.Check()
		if (err == nil) != c.ok || errors.Is(err, archive.ErrTooLarge) != c.tooLarge {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestBestLink(t *testing.T) {
	d, other := vaa.Digest{1}, vaa.Digest{2}
	link := func(d vaa.Digest, tx string, trust archive.Trust, o archive.Offset) archive.DigestLink {
		return archive.DigestLink{Digest: d, Link: archive.Link{TxID: tx, Trust: trust}, Offset: o}
	}
	for _, c := range []struct {
		name  string
		links []archive.DigestLink
		want  string
	}{
		{"none", nil, ""},
		{"of another digest", []archive.DigestLink{link(other, "x", archive.TrustChain, 1)}, ""},
		{"the better trusted", []archive.DigestLink{link(d, "a", archive.TrustClaimed, 1), link(d, "b", archive.TrustChain, 9)}, "b"},
		{"of equals the first known", []archive.DigestLink{link(d, "a", archive.TrustPeer, 5), link(d, "b", archive.TrustPeer, 4)}, "b"},
	} {
		r := archive.Record{Links: c.links}
		got := ""
		if l := r.BestLink(d); l != nil {
			got = l.TxID
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestWants holds the meaning of column filters.
func TestWants(t *testing.T) {
	p, q := schema.MessagePublication, schema.QuorumState
	for _, c := range []struct {
		columns           archive.Columns
		family, qualifier string
		want              bool
	}{
		{archive.Columns{}, p, schema.ColPayload, true},
		{archive.Columns{Families: []string{q}}, p, schema.ColPayload, false},
		{archive.Columns{Families: []string{q}}, q, schema.ColSignedVAA, true},
		{archive.Columns{Qualifiers: []string{schema.ColSignedVAA}}, q, schema.ColSignedVAA, true},
		{archive.Columns{Qualifiers: []string{"Signed"}}, q, schema.ColSignedVAA, false},
		{archive.Columns{Qualifiers: []string{schema.PrefixTxID}}, p, schema.PrefixTxID + "aa.bb", true},
		{archive.Columns{Qualifiers: []string{schema.PrefixTxID}}, p, "TxIDx", false},
	} {
		if got := c.columns.Wants(c.family, c.qualifier); got != c.want {
			t.Errorf("%+v wants %s:%s: %t", c.columns, c.family, c.qualifier, got)
		}
	}
}

func TestIndexKeysOfTransfers(t *testing.T) {
	v := vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), vaatest.NewGuardians(1, 0, 1))
	keys := archive.BodyIndexKeys(vaa.Devnet, &v.Body)
	for _, prefix := range []string{"digest:" + v.Digest().String(), "digest:" + v.SingleDigest().String(), "time:"} {
		n := 0
		for _, k := range keys {
			if strings.HasPrefix(k, prefix) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d keys begin with %s", n, prefix)
		}
	}
}
