package vaa_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/vaa"
)

func FuzzParse(f *testing.F) {
	for _, c := range append(readVerified(f), readCollected(f, "vaas-unverifiable.ndjson")...) {
		f.Add(c.VAA)
	}
	f.Add([]byte{1})
	f.Add([]byte{2, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := vaa.Parse(b)
		if err != nil {
			return
		}
		if got := v.Append(nil); !bytes.Equal(got, b) {
			t.Errorf("round trip of\n%x gives\n%x", b, got)
		}
		body, err := vaa.ParseBody(v.Body.Append(nil))
		if err != nil || cmp.Diff(v.Body, body) != "" {
			t.Errorf("body: %v %s", err, cmp.Diff(v.Body, body))
		}
	})
}

// FuzzVerify looks for a VAA that verifies and is not one of the real ones: such a thing would be a forgery.
func FuzzVerify(f *testing.F) {
	real := map[vaa.Digest]bool{}
	for _, c := range readVerified(f) {
		real[c.Digest] = true
		if len(c.SignerIndices) == 1 && len(real)%10 == 0 { // one signature: many tries a second
			f.Add(c.VAA)
		}
	}
	known := knownSets(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := vaa.Parse(b)
		if err != nil {
			return
		}
		for _, sets := range known {
			if err := sets.Verify(v); err == nil && !real[v.Digest()] {
				t.Errorf("%x verifies on %s", b, sets.Network())
			}
			if _, err := sets.Extend(v); err == nil {
				t.Errorf("guardian sets of %s extended by %x", sets.Network(), b)
			}
		}
	})
}

func FuzzParseMessageID(f *testing.F) {
	for _, c := range readVerified(f)[:20] {
		v, err := vaa.Parse(c.VAA)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(v.MessageID().String())
		if native, ok := vaa.NativeAddress(v.EmitterChain, v.EmitterAddress); ok {
			f.Add(v.EmitterChain.String() + ":" + native + ":00000000000000000007")
		}
	}
	f.Add("aptos/0x1/7")
	f.Add("8/M7UT7JWIVROIDGMQVJZUBQGBNNIIVOYRPC7JWMGQES4KYJIZHVCRZEGFRQ/9")
	f.Add("18/terra153366q50k7t8nn7gec00hg66crnhkdggpgdtaxltaq6xrutkkz3s992fw9/1")
	f.Add("66/rrrrrrrrrrrrrrrrrrrrrhoLvTp/1")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := vaa.ParseMessageID(s)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("error of %d bytes for %d bytes", len(err.Error()), len(s))
			}
			return
		}
		for _, text := range []string{id.String(), strings.ReplaceAll(id.String(), "/", ":")} {
			if again, err := vaa.ParseMessageID(text); err != nil || again != id {
				t.Errorf("%q is %s, which is read as %s, %v", s, text, again, err)
			}
		}
	})
}
