package vaa_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	good := vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), vaatest.NewGuardians(1, 0, 3)).Append(nil)
	headless := good[6+3*66:]
	unsigned := append([]byte{1, 0, 0, 0, 0, 0}, headless[:51]...)
	if _, err := vaa.Parse(unsigned); err != nil {
		t.Errorf("the shortest VAA, without signatures and payload: %v", err)
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"nothing", nil, "no bytes"},
		{"version only", good[:1], "too short"},
		{"header only", good[:6], "too short"},
		{"within the signatures", good[:100], "too short for 3 signatures"},
		{"one byte less than a body", good[:6+3*66+50], "too short for 3 signatures"},
		{"unsigned and one byte short", unsigned[:56], "too short"},
		{"too long", append(bytes.Clone(good), make([]byte, vaa.MaxBytes)...), "exceed the limit"},
		{"version 0", append([]byte{0}, good[1:]...), "version 0"},
		{"version 2", append([]byte{2}, good[1:]...), "version 2"},
		{"a lone version 2", []byte{2}, "version 2"},
	} {
		_, err := vaa.Parse(c.bytes)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
		version, ok := errors.AsType[*vaa.VersionError](err)
		if wrongVersion := strings.Contains(c.want, "version"); ok != wrongVersion || ok && version.Version != c.bytes[0] {
			t.Errorf("%s: version error %t with %v", c.name, ok, version)
		}
	}
	if _, err := vaa.ParseBody(headless[:50]); err == nil {
		t.Error("a body of 50 bytes is accepted")
	}
	if _, err := vaa.ParseBody(make([]byte, vaa.MaxBytes+1)); err == nil {
		t.Error("a body above the limit is accepted")
	}
}

func TestTimeIsUTC(t *testing.T) {
	t.Parallel()
	b := vaa.Body{Timestamp: 1<<32 - 1}
	if got := b.Time(); got.Location() != time.UTC || got.Format(time.RFC3339) != "2106-02-07T06:28:15Z" {
		t.Errorf("time %s", got)
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for _, network := range vaa.Networks() {
		got, err := vaa.ParseNetwork(" " + strings.ToUpper(network.String()) + "\n")
		if err != nil || got != network {
			t.Errorf("%s reads back as %s, %v", network, got, err)
		}
	}
	for _, s := range []string{"", "main", "invalid network 0"} {
		if got, err := vaa.ParseNetwork(s); err == nil {
			t.Errorf("%q is read as %s", s, got)
		}
	}
}

func TestParseDigest(t *testing.T) {
	t.Parallel()
	var want vaa.Digest
	for i := range want {
		want[i] = byte(i + 100)
	}
	for _, s := range []string{want.String(), "0x" + want.String(), " 0X" + strings.ToUpper(want.String()) + "\n"} {
		if got, err := vaa.ParseDigest(s); err != nil || got != want {
			t.Errorf("%q is read as %s, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "0x", want.String()[1:], want.String() + "00", strings.Repeat("g", 64)} {
		if got, err := vaa.ParseDigest(s); err == nil {
			t.Errorf("%q is read as %s", s, got)
		}
	}
}
