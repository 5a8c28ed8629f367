package payload_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestSamples compares the first collected payload of each kind (and of each kind of nested payload) with what it was decoded to
// when somebody last read it. The files under testdata/samples show what decoded payloads look like.
func TestSamples(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, network := range vaa.Networks() {
		for _, c := range readCollected(t, "vaas-"+network.String()+".ndjson") {
			v, err := vaa.Parse(c.VAA)
			if err != nil {
				t.Fatal(err)
			}
			kind, decoded, err := payload.Decode(network, &v.Body)
			name := sampleName(kind, decoded)
			if seen[name] || kind == payload.KindGeneric {
				continue
			}
			seen[name] = true
			sample := map[string]any{
				"network": network.String(), "id": v.MessageID(), "kind": kind, "decoded": decoded,
				"properties": payload.PropertiesOf(v.EmitterChain, kind, decoded),
			}
			if err != nil {
				sample["error"] = err.Error()
			}
			golden(t, name, sample)
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "samples", "*.json"))
	if err != nil || len(files) != len(seen) {
		t.Errorf("%d files for %d samples, %v", len(files), len(seen), err)
	}
}

func sampleName(kind string, decoded any) string {
	var nested *payload.Nested
	switch d := decoded.(type) {
	case *payload.CircleDeposit:
		nested = d.Nested
	case *payload.EarlyPriceBatch:
		kind = fmt.Sprintf("%s.v%d", kind, d.Version)
	case *payload.PythGovernance:
		if d.ActionName != nil {
			kind += "." + *d.ActionName
		}
	case *payload.TransferWithPayload:
		nested = d.Nested
	case *payload.DeliveryInstruction:
		nested = d.Nested
	}
	if nested != nil {
		kind += "+" + nested.Kind
	}
	return strings.ReplaceAll(kind, ":", ".")
}

func golden(t *testing.T, name string, sample any) {
	t.Helper()
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(sample); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "samples", name+".json")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", file, diff)
	}
}
