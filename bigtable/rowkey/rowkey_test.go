package rowkey_test

import (
	"cmp"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		id   vaa.MessageID
		want string
	}{
		{
			vaa.MessageID{EmitterChain: 2, EmitterAddress: vaa.Address{12: 0x3e, 31: 0x85}, Sequence: 7},
			"2:0000000000000000000000003e00000000000000000000000000000000000085:00000000000000000007",
		},
		{
			vaa.MessageID{EmitterChain: math.MaxUint16, Sequence: math.MaxUint64},
			"65535:" + strings.Repeat("0", 64) + ":18446744073709551615",
		},
		{vaa.MessageID{Sequence: 1<<53 + 1}, "0:" + strings.Repeat("0", 64) + ":00009007199254740993"},
	} {
		if got := rowkey.Of(c.id); got != c.want {
			t.Errorf("key of %s = %s, want %s", c.id, got, c.want)
		}
	}
}

// FuzzRowKey holds keys to their promises: parse is the inverse of append, the
// order of bytes is that of sequences within an emitter, and the prefix of a chain
// or emitter selects exactly it.
func FuzzRowKey(f *testing.F) {
	f.Add(uint16(1), uint16(10), []byte{1}, []byte{2}, uint64(9), uint64(10), "1:00")
	f.Add(uint16(0), uint16(65535), []byte{}, []byte{255}, uint64(0), uint64(math.MaxUint64), "01:00")
	f.Add(uint16(2), uint16(2), []byte{0xab}, []byte{0xab}, uint64(1<<53+1), uint64(1<<63), rowkey.Of(vaa.MessageID{EmitterChain: 2}))
	f.Fuzz(func(t *testing.T, chainA, chainB uint16, addressA, addressB []byte, a, b uint64, text string) {
		x, y := idOf(chainA, addressA, a), idOf(chainB, addressB, b)
		for _, id := range []vaa.MessageID{x, y} {
			if back, err := rowkey.Parse(rowkey.Of(id)); err != nil || back != id {
				t.Errorf("parse of the key of %v = %v, %v", id, back, err)
			}
			if got := string(rowkey.Append([]byte("before "), id)); got != "before "+rowkey.Of(id) {
				t.Errorf("append gives %q", got)
			}
		}
		selects(t, "chain", rowkey.Chain(x.EmitterChain), y, x.EmitterChain == y.EmitterChain)
		selects(t, "emitter", rowkey.Emitter(x.EmitterChain, x.EmitterAddress), y,
			x.EmitterChain == y.EmitterChain && x.EmitterAddress == y.EmitterAddress)
		z := x
		z.Sequence = b
		if got := cmp.Compare(rowkey.Of(x), rowkey.Of(z)); got != cmp.Compare(a, b) {
			t.Errorf("keys of sequences %d and %d compare as %d", a, b, got)
		}
		if got := cmp.Compare(rowkey.Offset(a), rowkey.Offset(b)); got != cmp.Compare(a, b) {
			t.Errorf("keys of offsets %d and %d compare as %d", a, b, got)
		}
		// What is accepted at all is what would be written.
		if id, err := rowkey.Parse(text); err == nil && rowkey.Of(id) != text {
			t.Errorf("%q is accepted, but written %q", text, rowkey.Of(id))
		}
		if o, err := rowkey.ParseOffset(text); err == nil && rowkey.Offset(o) != text {
			t.Errorf("%q is accepted, but written %q", text, rowkey.Offset(o))
		}
	})
}

// selects checks that a message's key has the prefix, and lies between it and its
// end, exactly if it should.
func selects(t *testing.T, what, prefix string, id vaa.MessageID, want bool) {
	t.Helper()
	key := rowkey.Of(id)
	if strings.HasPrefix(key, prefix) != want || (key >= prefix && key < rowkey.PrefixEnd(prefix)) != want {
		t.Errorf("%s prefix %q selects %q: want %t", what, prefix, key, want)
	}
}

func idOf(chain uint16, address []byte, sequence uint64) vaa.MessageID {
	id := vaa.MessageID{EmitterChain: vaa.ChainID(chain), Sequence: sequence}
	copy(id.EmitterAddress[:], address)
	return id
}

func TestParseRefuses(t *testing.T) {
	good := rowkey.Of(vaa.MessageID{EmitterChain: 2, EmitterAddress: vaa.Address{0xab}, Sequence: 7})
	if _, err := rowkey.Parse(good); err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{
		"nothing":               "",
		"no chain":              good[1:],
		"chain with zero":       "0" + good,
		"chain with sign":       "+" + good,
		"chain of 17 bits":      "65536" + good[1:],
		"upper case":            strings.Replace(good, "ab", "AB", 1),
		"not hexadecimal":       strings.Replace(good, "ab", "xy", 1),
		"short sequence":        good[:len(good)-1],
		"long sequence":         good + "0",
		"sequence of 65 bits":   good[:len(good)-20] + "18446744073709551616",
		"sequence with sign":    good[:len(good)-20] + "+0000000000000000007",
		"sequence with a space": good[:len(good)-20] + " 0000000000000000007",
		"slashes":               strings.ReplaceAll(good, ":", "/"),
	} {
		if id, err := rowkey.Parse(key); err == nil {
			t.Errorf("%s: %q is taken for %v", name, key, id)
		}
	}
}

// TestIndexed: whatever an index key begins with, the message at its end is found.
func TestIndexed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := idOf(rapid.Uint16().Draw(t, "chain"), rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "address"), rapid.Uint64().Draw(t, "sequence"))
		other := vaa.Address(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "other"))
		seconds := rapid.Uint32().Draw(t, "seconds")
		txID := rapid.StringMatching(`[0-9A-Za-z+/=_.-]{1,90}`).Draw(t, "txid")
		for prefix, key := range map[string]string{
			rowkey.TxPrefix(txID):                             rowkey.Tx(txID, id),
			rowkey.TxChainPrefix(txID, id.EmitterChain):       rowkey.Tx(txID, id),
			rowkey.DigestPrefix(hex.EncodeToString(other[:])): rowkey.Digest(hex.EncodeToString(other[:]), id),
			rowkey.TimePrefix(rowkey.TimeShard(id)):           rowkey.Time(seconds, id),
			rowkey.ToPrefix(other):                            rowkey.To(other, 5, seconds, id),
			rowkey.ToChainPrefix(other, 5):                    rowkey.To(other, 5, seconds, id),
		} {
			if !strings.HasPrefix(key, prefix) || key >= rowkey.PrefixEnd(prefix) {
				t.Errorf("prefix %q does not select %q", prefix, key)
			}
			if got, err := rowkey.Indexed(key); err != nil || got != id {
				t.Errorf("message of %q = %v, %v; want %v", key, got, err, id)
			}
		}
	})
	for _, key := range []string{"", "tx:aa", "tx:" + strings.Repeat("0", 64) + ":" + strings.Repeat("0", 20), "digest:" + strings.Repeat("a", 120)} {
		if id, err := rowkey.Indexed(key); err == nil {
			t.Errorf("%q is taken for an index key of %v", key, id)
		}
	}
}

// TestTime: within a shard the order of keys is that of times.
func TestTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := idOf(2, nil, rapid.Uint64().Draw(t, "sequence"))
		a, b := rapid.Uint32().Draw(t, "a"), rapid.Uint32().Draw(t, "b")
		if got := cmp.Compare(rowkey.Time(a, id), rowkey.Time(b, id)); got != cmp.Compare(a, b) {
			t.Errorf("keys of times %d and %d compare as %d", a, b, got)
		}
		if s := rowkey.TimeShard(id); s < 0 || s >= rowkey.TimeShards {
			t.Errorf("shard %d", s)
		}
	})
	// Neighbours spread: a run of sequences reaches every shard.
	seen := map[int]bool{}
	for sequence := range uint64(500) {
		seen[rowkey.TimeShard(idOf(2, nil, sequence))] = true
	}
	if len(seen) != rowkey.TimeShards {
		t.Errorf("500 sequences reach %d of %d shards", len(seen), rowkey.TimeShards)
	}
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"": "", "\xff\xff": "", "a": "b", "a\xff": "b", "1:": "1;"} {
		if got := rowkey.PrefixEnd(prefix); got != want {
			t.Errorf("end of %q = %q, want %q", prefix, got, want)
		}
	}
}
