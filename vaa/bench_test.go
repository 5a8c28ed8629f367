package vaa_test

import (
	"testing"

	"github.com/attestry/attestry/vaa"
)

// benchmarkVAA is a real mainnet VAA of 13 signatures.
func benchmarkVAA(b *testing.B) (collected, *vaa.VAA, vaa.GuardianSets) {
	b.Helper()
	for _, c := range readCollected(b, "vaas-mainnet.ndjson") {
		if len(c.SignerIndices) == 13 {
			v, err := vaa.Parse(c.VAA)
			if err != nil {
				b.Fatal(err)
			}
			return c, v, knownSets(b)["mainnet"]
		}
	}
	b.Fatal("no VAA of 13 signatures")
	return collected{}, nil, vaa.GuardianSets{}
}

func BenchmarkParse(b *testing.B) {
	c, _, _ := benchmarkVAA(b)
	b.SetBytes(int64(len(c.VAA)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := vaa.Parse(c.VAA); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	_, v, _ := benchmarkVAA(b)
	b.ReportAllocs()
	for b.Loop() {
		v.Digest()
	}
}

func BenchmarkVerify13(b *testing.B) {
	_, v, sets := benchmarkVAA(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := sets.Verify(v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkKnownGuardianSets(b *testing.B) {
	for b.Loop() {
		if _, err := vaa.KnownGuardianSets(vaa.Mainnet); err != nil {
			b.Fatal(err)
		}
	}
}
