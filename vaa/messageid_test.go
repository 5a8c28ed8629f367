package vaa_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/attestry/attestry/vaa"
)

func TestMessageIDSpellings(t *testing.T) {
	t.Parallel()
	const (
		evm    = "2/0000000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585/7"
		solana = "1/ec7372995d5cc8732397fb0ad35c0121e0eaa90d26f828a534cab54391b3a4f5/18446744073709551615"
		terra2 = "18/a463ad028fb79679cfc8ce1efba35ac0e77b35080a1abe9bebe83461f176b0a3/1"
		aptos  = "22/0000000000000000000000000000000000000000000000000000000000000001/0"
		sui    = "21/00ceeb29348f71bdd22ffef43a2a19c1f5b5e17c5cca5411529120182672ade5/3"
		algo   = "8/67e93fa6c8ac5c819990aa7340c0c16b508abb1178be9b30d024b8ac25193d45/9"
	)
	for spelling, want := range map[string]string{
		evm:                               evm,
		strings.ReplaceAll(evm, "/", ":"): evm,
		"2/0x0000000000000000000000003EE18B2214AFF97000D974CF647E7C347E8FA585/7":                  evm,
		"2:0000000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585:0000000000000007":     evm,
		"2:0000000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585:00000000000000000007": evm,
		"00002/3ee18b2214aff97000d974cf647e7c347e8fa585/00000000000000000007":                     evm,
		"ethereum/0x3ee18B2214AFF97000D974cf647E7C347E8fa585/7":                                   evm,
		"Ethereum:0X3EE18B2214AFF97000D974CF647E7C347E8FA585/7":                                   evm,
		" CHAIN_ID_ETHEREUM / 0x3ee18b2214aff97000d974cf647e7c347e8fa585 : 7 \n":                  evm,
		"solana/Gv1KWf8DT1jKv5pKBmGaTmVszqa56Xn8YGx2Pg7i7qAk/18446744073709551615":                solana,
		"1:ec7372995d5cc8732397fb0ad35c0121e0eaa90d26f828a534cab54391b3a4f5:18446744073709551615": solana,
		"Terra2/terra153366q50k7t8nn7gec00hg66crnhkdggpgdtaxltaq6xrutkkz3s992fw9/1":               terra2,
		"18/TERRA153366Q50K7T8NN7GEC00HG66CRNHKDGGPGDTAXLTAQ6XRUTKKZ3S992FW9/1":                   terra2,
		"aptos/0x1/0":    aptos,
		"APTOS/1/0":      aptos,
		"aptos/0x0001/0": aptos,
		"sui/0xceeb29348f71bdd22ffef43a2a19c1f5b5e17c5cca5411529120182672ade5/3": sui,
		"algorand/M7UT7JWIVROIDGMQVJZUBQGBNNIIVOYRPC7JWMGQES4KYJIZHVCRZEGFRQ/9":  algo,
		"4242/3ee18b2214aff97000d974cf647e7c347e8fa585/7":                        "4242" + evm[1:],
	} {
		got, err := vaa.ParseMessageID(spelling)
		if err != nil || got.String() != want {
			t.Errorf("%q is read as %s, %v; want %s", spelling, got, err, want)
		}
	}
}

func TestParseMessageIDRefuses(t *testing.T) {
	t.Parallel()
	const emitter = "0000000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585"
	for s, want := range map[string][]string{
		"":                                       {"1 parts", "chain/emitter/sequence"},
		"2/" + emitter:                           {"2 parts", "chain/emitter/sequence"},
		"2/" + emitter + "/7/8":                  {"4 parts", "chain/emitter/sequence"},
		"65536/" + emitter + "/7":                {"chain", "65535"},
		"-1/" + emitter + "/7":                   {"chain", "65535"},
		"/" + emitter + "/7":                     {"chain is empty"},
		"nowhere/" + emitter + "/7":              {`chain "nowhere"`},
		"2/" + emitter + "/":                     {"sequence is empty"},
		"2/" + emitter + "/18446744073709551616": {"sequence", "18446744073709551615"},
		"2/" + emitter + "/-7":                   {"sequence", "digits"},
		"2/" + emitter + "/0x7":                  {"sequence", "digits"},
		"2//7":                                   {"emitter", "empty", "64 hex digits"},
		"2/" + emitter[1:] + "/7":                {"emitter", "odd", "63"},
		"2/" + emitter + "00/7":                  {"emitter", "33 bytes"},
		"2/0x3ee18b/7":                           {"emitter", "3 bytes", "20-byte address of ethereum"},
		"2/0xzz/7":                               {"emitter", "not hexadecimal"},
		"1/3ee18b2214aff97000d974cf647e7c347e8fa585/7":                          {"emitter", "base58"},
		"1/0x3ee18b2214aff97000d974cf647e7c347e8fa585/7":                        {"emitter", "20 bytes", "base58"},
		"1/Gv1KWf8DT1jKv5pKBmGaTmVszqa56Xn8YGx2Pg7i/7":                          {"emitter", "base58", "not 32"},
		"1/" + strings.Repeat("z", 5000) + "/7":                                 {"emitter", "too long"},
		"18/terra153366q50k7t8nn7gec00hg66crnhkdggpgdtaxltaq6xrutkkz3s992fw8/1": {"emitter", "checksum"},
		"18/inj1ghd753shjuwexxywmgs4xz7x2q732vcnxxynfn/1":                       {"emitter", `"inj"`, `"terra"`},
		"8/M7UT7JWIVROIDGMQVJZUBQGBNNIIVOYRPC7JWMGQES4KYJIZHVCRZEGFRA/9":        {"emitter", "checksum"},
		"15/contract.portalbridge.near/9":                                       {"emitter", "64 hex digits"},
		"22/" + emitter + "0/9":                                                 {"emitter", "odd"},
	} {
		got, err := vaa.ParseMessageID(s)
		if err == nil {
			t.Errorf("%q is read as %s", s, got)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v; want %q in it", s, err, part)
			}
		}
		if len(err.Error()) > 600 {
			t.Errorf("error of %d bytes", len(err.Error()))
		}
	}
}

func drawAddress(t *rapid.T) (a vaa.Address) {
	copy(a[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "address"))
	clear(a[:rapid.SampledFrom([]int{0, 0, 12, 12, 31}).Draw(t, "zeros")])
	return a
}

func TestNativeAddressRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		chain := rapid.SampledFrom(vaa.Chains()).Draw(t, "chain")
		address := drawAddress(t)
		native, ok := vaa.NativeAddress(chain, address)
		if !ok {
			return
		}
		if got, err := vaa.ParseAddress(chain, native); err != nil || got != address {
			t.Fatalf("%s on %s is %s, which is read as %s, %v", address, chain, native, got, err)
		}
	})
}

func TestNativeAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		chain     vaa.ChainID
		universal string
		want      string // empty: none
	}{
		{2, "0000000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585", "0x3ee18B2214AFF97000D974cf647E7C347E8fa585"},
		{2, "0100000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585", ""},
		{1, "ec7372995d5cc8732397fb0ad35c0121e0eaa90d26f828a534cab54391b3a4f5", "Gv1KWf8DT1jKv5pKBmGaTmVszqa56Xn8YGx2Pg7i7qAk"},
		{22, "0000000000000000000000000000000000000000000000000000000000000001", "0x1"},
		{22, "0000000000000000000000000000000000000000000000000000000000000010", "0x0000000000000000000000000000000000000000000000000000000000000010"},
		// Account zero of the XRP ledger is a documented special address.
		{66, "0000000000000000000000000000000000000000000000000000000000000000", "rrrrrrrrrrrrrrrrrrrrrhoLvTp"},
		{66, "0100000000000000000000000000000000000000000000000000000000000000", ""},
		{15, "148410499d3fcda4dcfd68a1ebfcdddda16ab28326448d4aae4d2f0465cdfcb7", ""}, // a hash of the account's name
		{4242, "0000000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585", ""},
	} {
		address, err := vaa.ParseAddress(c.chain, c.universal)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := vaa.NativeAddress(c.chain, address); got != c.want || ok != (c.want != "") {
			t.Errorf("%s on %s: %q, %t; want %q", c.universal, c.chain, got, ok, c.want)
		}
	}
}

// TestMessageIDSpellingsAgree writes random ids in many ways.
func TestMessageIDSpellingsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := vaa.MessageID{
			EmitterChain:   vaa.ChainID(rapid.Uint16().Draw(t, "chain")),
			EmitterAddress: drawAddress(t),
			Sequence:       rapid.Uint64().Draw(t, "sequence"),
		}
		parts := strings.Split(id.String(), "/")
		name := id.EmitterChain.String()
		chain := rapid.SampledFrom([]string{parts[0], "0" + parts[0], name, strings.ToUpper(name)}).Draw(t, "chain text")
		emitters := []string{parts[1], "0x" + parts[1], strings.ToUpper(parts[1])}
		if native, ok := vaa.NativeAddress(id.EmitterChain, id.EmitterAddress); ok {
			emitters = append(emitters, native)
		}
		emitter := rapid.SampledFrom(emitters).Draw(t, "emitter text")
		width := rapid.SampledFrom([]int{0, 16, 20}).Draw(t, "width")
		sequence := strings.Repeat("0", max(0, width-len(parts[2]))) + parts[2]
		separator := rapid.SampledFrom([]string{"/", ":", " / ", ": "})
		text := chain + separator.Draw(t, "first") + emitter + separator.Draw(t, "second") + sequence
		if got, err := vaa.ParseMessageID(text); err != nil || got != id {
			t.Fatalf("%q is read as %s, %v; want %s", text, got, err, id)
		}
	})
}
