package archive_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

func TestBucketKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := vaa.MessageID{EmitterChain: vaa.ChainID(rapid.Uint16().Draw(t, "chain"))}
		copy(id.EmitterAddress[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "address"))
		seconds, later := rapid.Uint32().Draw(t, "seconds"), rapid.Uint32().Draw(t, "later")
		for _, s := range archive.Scopes(id) {
			for _, p := range archive.Periods() {
				k, o := archive.KeyOf(p, s, seconds), archive.KeyOf(p, s, later)
				if back, err := archive.ParseBucketKey(k.String()); err != nil || back != k {
					t.Fatalf("%s is read as %+v, %v", k, back, err)
				}
				if k.Start > seconds || p.Seconds() > 0 && seconds-k.Start >= p.Seconds() {
					t.Fatalf("%d is not in %s", seconds, k)
				}
				if (k.String() < o.String()) != (k.Start < o.Start) {
					t.Fatalf("%s and %s do not sort by time", k, o)
				}
			}
		}
	})
	for _, text := range []string{
		"", "1min", "1min:network", "1min:network:0", "1min:network:0000000061", "2min:network:0000000000", "1min:chain:0000000060",
		"1min:chain:02:0000000060", "1min:chain:65536:0000000060", "1min:emitter:2:ab:0000000060", "1min:galaxy:0000000060",
		"all:network:0000000060", "1min:network:99999999999", "1min:network:0000000060:",
	} {
		if k, err := archive.ParseBucketKey(text); err == nil {
			t.Errorf("%q is read as %+v", text, k)
		}
	}
}

// TestBeforeInJSON: what stood before an event survives the journal, and an event
// without it says null.
func TestBeforeInJSON(t *testing.T) {
	for _, before := range []*archive.Standing{nil, {Time: time.Unix(1_700_000_000, 0).UTC(), Signed: true, Resigned: true}} {
		e := archive.Event{Offset: 1, Kind: archive.KindConflict, Before: before}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back archive.Event
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, back); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if _, err := back.After(); (err != nil) != (before == nil) {
			t.Errorf("after a conflict with %v before: %v", before, err)
		}
	}
}
