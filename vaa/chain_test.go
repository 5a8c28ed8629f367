package vaa_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/attestry/attestry/vaa"
)

// recordedChain is one chain of testdata/vaas/chains.json.
type recordedChain struct {
	ID            vaa.ChainID `json:"id"`
	GoName        string      `json:"go_string"`
	FormerGoName  string      `json:"go_string_before_removal"`
	TSName        string      `json:"ts_name"`
	FormerTSName  string      `json:"ts_name_before_removal"`
	EnumName      string      `json:"publicrpc_enum"`
	Obsolete      bool        `json:"obsolete"`
	NativeAddress string      `json:"native_address"`
	Emitters      map[string]struct {
		TokenBridge vaa.Digest `json:"token_bridge_emitter"` // 32 bytes in hex, as a digest is
	} `json:"emitters"`
	Contracts struct {
		TokenBridge map[string]string `json:"token_bridge"`
	} `json:"contracts"`
}

func recordedChains(t testing.TB) []recordedChain {
	t.Helper()
	b, err := os.ReadFile(testdata("chains.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Chains []recordedChain `json:"chains"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	return file.Chains
}

func TestChainTable(t *testing.T) {
	t.Parallel()
	var named []vaa.ChainID
	for _, c := range recordedChains(t) {
		names := []string{c.GoName, c.FormerGoName, c.TSName, c.FormerTSName, c.EnumName}
		names = slices.DeleteFunc(names, func(s string) bool { return s == "" })
		if len(names) == 0 {
			if c.ID.Known() {
				t.Errorf("chain %d has a name: %s", c.ID, c.ID)
			}
			continue
		}
		named = append(named, c.ID)
		if want := strings.ToLower(names[0]); c.ID.String() != want || c.ID.Obsolete() != c.Obsolete {
			t.Errorf("chain %d is %s, obsolete %t; want %s, %t", c.ID, c.ID, c.ID.Obsolete(), want, c.Obsolete)
		}
		for _, name := range names {
			for _, spelling := range []string{name, strings.ToUpper(name), " " + strings.ToLower(name) + " "} {
				if got, err := vaa.ParseChainID(spelling); err != nil || got != c.ID {
					t.Errorf("%q is read as %d, %v; want %d", spelling, got, err, c.ID)
				}
			}
		}
	}
	slices.Sort(named)
	if !slices.Equal(vaa.Chains(), named) {
		t.Errorf("named chains %v, want %v", vaa.Chains(), named)
	}
}

func TestEveryChainIDReadsBack(t *testing.T) {
	t.Parallel()
	for id := range 1 << 16 {
		chain := vaa.ChainID(id)
		if got, err := vaa.ParseChainID(chain.String()); err != nil || got != chain {
			t.Fatalf("%s is read as %d, %v; want %d", chain, got, err, id)
		}
	}
}

func TestParseChainIDRefuses(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":            "empty",
		" \t":         "empty",
		"65536":       "0 to 65535",
		"-1":          "0 to 65535",
		"99999999999": "0 to 65535",
		"etherium":    "unknown",
		"2.0":         "unknown",
		"0x2":         "unknown",
		"CHAIN_ID_":   "unknown",
		"_":           "unknown",
	} {
		if got, err := vaa.ParseChainID(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %d, %v; want an error with %q", s, got, err, want)
		}
	}
}

// TestContractsAreEmitters: where a chain's emitter is the token bridge contract itself, the contract's native address and the
// emitter's universal one, both from the SDKs, must be the same for us.
func TestContractsAreEmitters(t *testing.T) {
	t.Parallel()
	reversible := regexp.MustCompile(`^(20-byte hex|bech32)`)
	// Of these the two SDKs name different contracts.
	disagree := map[string]bool{"testnet neon": true, "devnet wormchain": true}
	compared := map[string]int{}
	for _, c := range recordedChains(t) {
		format := reversible.FindString(c.NativeAddress)
		if format == "" {
			continue
		}
		for network, native := range c.Contracts.TokenBridge {
			emitter := vaa.Address(c.Emitters[network].TokenBridge)
			if emitter == (vaa.Address{}) || disagree[network+" "+c.ID.String()] {
				continue
			}
			compared[format]++
			if got, err := vaa.ParseAddress(c.ID, native); err != nil || got != emitter {
				t.Errorf("%s %s: %s is read as %s, %v; want %s", network, c.ID, native, got, err, emitter)
			}
			if got, ok := vaa.NativeAddress(c.ID, emitter); !ok || !strings.EqualFold(got, native) {
				t.Errorf("%s %s: %s is rendered as %q, want %s", network, c.ID, emitter, got, native)
			}
		}
	}
	if compared["20-byte hex"] < 50 || compared["bech32"] < 8 {
		t.Errorf("only %v compared", compared)
	}
}
