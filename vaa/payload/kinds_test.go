package payload_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// collected is one line of the collected VAAs under testdata/vaas, as far as payloads go.
type collected struct {
	VAA         []byte          `json:"vaa"`
	Network     string          `json:"network"`
	Digest      string          `json:"digest"`
	PayloadKind string          `json:"payload_kind"`
	Decoded     json.RawMessage `json:"decoded"`
}

func readCollected(t testing.TB, name string) []collected {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vaas", name))
	if err != nil {
		t.Fatal(err)
	}
	var all []collected
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c collected
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, c)
	}
	return all
}

func TestKindsOfCollectedVAAs(t *testing.T) {
	t.Parallel()
	var count int
	for _, network := range vaa.Networks() {
		for _, c := range readCollected(t, "vaas-"+network.String()+".ndjson") {
			count++
			v, err := vaa.Parse(c.VAA)
			if err != nil {
				t.Fatal(err)
			}
			kind, _, err := payload.Decode(network, &v.Body)
			if kind != c.PayloadKind {
				t.Errorf("%s %s from %s: kind %s (%v), want %s", network, c.Digest, v.MessageID(), kind, err, c.PayloadKind)
			}
		}
	}
	if count != 578 {
		t.Errorf("%d VAAs, want 578", count)
	}
}

func TestKindsOfUnverifiable(t *testing.T) {
		for _, c := range readCollected(t, "vaas-unverifiable.ndjson") {
			v, err := vaa.Parse(c.VAA)
			if err != nil {
				t.Fatal(err)
			}
			kind, _, err := payload.Decode(vaa.Devnet, &v.Body)
			if kind != c.PayloadKind {
				t.Errorf("%s %s from %s: kind %s (%v), want %s", c.Network, c.Digest, v.MessageID(), kind, err, c.PayloadKind)
			}
		}
}
