package vaa_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/vaa"
)

// collected is one line of the collected VAAs under testdata/vaas.
type collected struct {
	VAA              []byte     `json:"vaa"`
	Network          string     `json:"network"`
	GuardianSetIndex uint32     `json:"guardian_set_index"`
	Verified         bool       `json:"verified"`
	Digest           vaa.Digest `json:"digest"`
	EmitterChain     uint16     `json:"emitter_chain"`
	EmitterAddress   string     `json:"emitter_address"`
	Sequence         string     `json:"sequence"`
	MessageID        string     `json:"message_id"` // of variants, in place of the three before it
	Timestamp        uint32     `json:"timestamp"`
	Nonce            uint32     `json:"nonce"`
	ConsistencyLevel uint8      `json:"consistency_level"`
	SignerIndices    []int      `json:"signer_indices"`
	PayloadLen       int        `json:"payload_len"`
}

func testdata(name string) string { return filepath.Join("..", "testdata", "vaas", name) }

func readCollected(t testing.TB, name string) []collected {
	t.Helper()
	b, err := os.ReadFile(testdata(name))
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

func readVerified(t testing.TB) []collected {
	t.Helper()
	var all []collected
	for _, network := range vaa.Networks() {
		all = append(all, readCollected(t, "vaas-"+network.String()+".ndjson")...)
	}
	if len(all) != 578 {
		t.Fatalf("%d verified VAAs, want 578", len(all))
	}
	return all
}

func knownSets(t testing.TB) map[string]vaa.GuardianSets {
	t.Helper()
	known := map[string]vaa.GuardianSets{}
	for _, network := range vaa.Networks() {
		sets, err := vaa.KnownGuardianSets(network)
		if err != nil {
			t.Fatal(err)
		}
		known[network.String()] = sets
	}
	return known
}

func TestCollectedVAAs(t *testing.T) {
	t.Parallel()
	known := knownSets(t)
	var above53, above63 int
	for _, c := range readVerified(t) {
		input := bytes.Clone(c.VAA)
		v, err := vaa.Parse(input)
		if err != nil {
			t.Errorf("%s: %v", c.Digest, err)
			continue
		}
		clear(input) // what Parse keeps must not depend on its input
		if got := v.Append(nil); !bytes.Equal(got, c.VAA) {
			t.Errorf("%s: round trip gives\n%x, want\n%x", c.Digest, got, c.VAA)
		}
		body, err := vaa.ParseBody(v.Body.Append(nil))
		if err != nil || cmp.Diff(v.Body, body) != "" {
			t.Errorf("%s: body: %v %s", c.Digest, err, cmp.Diff(v.Body, body))
		}
		if got := v.Digest(); got != c.Digest {
			t.Errorf("digest %s, want %s", got, c.Digest)
		}
		type facts struct {
			Set, Timestamp, Nonce uint32
			Level                 uint8
			ID                    string
			Signers               []int
			PayloadLen            int
		}
		got := facts{
			v.GuardianSetIndex, uint32(v.Time().Unix()), v.Nonce, v.ConsistencyLevel, v.MessageID().String(), signers(v), len(v.Payload),
		}
		id := strconv.Itoa(int(c.EmitterChain)) + "/" + c.EmitterAddress + "/" + c.Sequence
		want := facts{c.GuardianSetIndex, c.Timestamp, c.Nonce, c.ConsistencyLevel, id, c.SignerIndices, c.PayloadLen}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.Digest, diff)
		}
		if err := known[c.Network].Verify(v); err != nil {
			t.Errorf("%s on %s: %v", c.Digest, c.Network, err)
		}
		if v.Sequence > 1<<53 {
			above53++
		}
		if v.Sequence > 1<<63 {
			above63++
		}
	}
	if above53 == 0 || above63 == 0 {
		t.Errorf("%d sequences above 2^53 and %d above 2^63: the data no longer covers them", above53, above63)
	}
}

func signers(v *vaa.VAA) []int {
	indices := []int{}
	for _, s := range v.Signatures {
		indices = append(indices, int(s.GuardianIndex))
	}
	return indices
}

func TestUnverifiableOnEveryNetwork(t *testing.T) {
	t.Parallel()
	all := readCollected(t, "vaas-unverifiable.ndjson")
	if len(all) != 81 {
		t.Fatalf("%d unverifiable VAAs, want 81", len(all))
	}
	known := knownSets(t)
	reasons := map[vaa.Reason]int{}
	for _, c := range all {
		v, err := vaa.Parse(c.VAA)
		if err != nil {
			t.Errorf("%s: %v", c.Digest, err)
			continue
		}
		if got := v.Digest(); got != c.Digest {
			t.Errorf("digest %s, want %s", got, c.Digest)
		}
		for network, sets := range known {
			fault, ok := errors.AsType[*vaa.VerifyError](sets.Verify(v))
			if !ok {
				t.Errorf("%s verifies on %s", c.Digest, network)
				continue
			}
			reasons[fault.Reason]++
		}
	}
	t.Log(reasons)
}

func TestVariants(t *testing.T) {
	t.Parallel()
	known := knownSets(t)
	var verified int
	for _, c := range readCollected(t, "vaa-variants.ndjson") {
		v, err := vaa.Parse(c.VAA)
		if err != nil {
			t.Errorf("%s: %v", c.Digest, err)
			continue
		}
		if v.Digest() != c.Digest || v.MessageID().String() != c.MessageID {
			t.Errorf("%s of %s, want %s of %s", v.Digest(), v.MessageID(), c.Digest, c.MessageID)
		}
		var ok bool
		if sets, have := known[c.Network]; have {
			ok = sets.Verify(v) == nil
		}
		if ok != c.Verified {
			t.Errorf("%s set %d on %s verifies %t, want %t", c.Digest, v.GuardianSetIndex, c.Network, ok, c.Verified)
		}
		if ok {
			verified++
		}
	}
	if verified == 0 {
		t.Error("no variant verifies")
	}
}

// TestFlippedByteNeverVerifies changes one byte anywhere in the signatures (their count included) or the body.
func TestFlippedByteNeverVerifies(t *testing.T) {
	t.Parallel()
	known := knownSets(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, c := range readVerified(t) {
		at := 5 + r.IntN(len(c.VAA)-5)
		flipped := bytes.Clone(c.VAA)
		flipped[at] ^= byte(1 + r.IntN(255))
		v, err := vaa.Parse(flipped)
		if err != nil {
			continue
		}
		if err := known[c.Network].Verify(v); err == nil {
			t.Errorf("%s verifies with byte %d changed from %#x to %#x", c.Digest, at, c.VAA[at], flipped[at])
		}
	}
}

// TestEveryFlippedBitOfOneVAA leaves nothing to chance for the smallest VAA there is.
func TestEveryFlippedBitOfOneVAA(t *testing.T) {
	t.Parallel()
	known := knownSets(t)
	c := readCollected(t, "vaas-testnet.ndjson")[0]
	for bit := 8; bit < 8*len(c.VAA); bit++ {
		flipped := bytes.Clone(c.VAA)
		flipped[bit/8] ^= 1 << (bit % 8)
		v, err := vaa.Parse(flipped)
		if err != nil {
			continue
		}
		if err := known[c.Network].Verify(v); err == nil {
			t.Errorf("verifies with bit %d flipped", bit)
		}
	}
}
