package file_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/ingest/source/file"
	"github.com/attestry/attestry/vaa/vaatest"
)

func deliveries(t *testing.T, s *file.Source) ([]ingest.Delivery, error) {
	t.Helper()
	var all []ingest.Delivery
	err := s.Deliver(t.Context(), 0, func(d ingest.Delivery) error {
		all = append(all, d)
		return nil
	})
	return all, err
}

func TestFormats(t *testing.T) {
	v := vaatest.NewVAA(rand.New(rand.NewPCG(1, 1)), vaatest.NewGuardians(1, 0, 1))
	raw := v.Append(nil)
	h, b := hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw)
	id := v.MessageID()
	other := id
	other.Sequence++
	for _, c := range []struct {
		name, line, reason, txID string
	}{
		{"hex", h, "", ""},
		{"hex in capitals", strings.ToUpper(h), "", ""},
		{"hex with 0x", "0x" + h, "", ""},
		{"base64", b, "", ""},
		{"base64 without padding", strings.TrimRight(b, "="), "", ""},
		{"base64 for URLs", base64.URLEncoding.EncodeToString(raw), "", ""},
		{"white space around", "  \t" + h + "  ", "", ""},
		{"json", fmt.Sprintf(`{"vaa":%q}`, b), "", ""},
		{"json with hex", fmt.Sprintf(`{"vaa":%q,"other":[1]}`, h), "", ""},
		{"json with a transaction", fmt.Sprintf(`{"txId":"0xAB","vaa":%q}`, b), "", "0xAB"},
		{"json with no transaction", fmt.Sprintf(`{"txId":null,"vaa":%q}`, b), "", ""},
		{"csv", fmt.Sprintf("%d:%s:%d,%s", id.EmitterChain, id.EmitterAddress, id.Sequence, h), "", ""},
		{"csv, quoted", fmt.Sprintf("%q,%q", id, h), "", ""},
		{"csv of another message", fmt.Sprintf("%s,%s", other, h), "id_mismatch", ""},
		{"csv with a bad id", "1:2," + h, "malformed_id", ""},
		{"json that is not", `{"vaa":`, "malformed_json", ""},
		{"json without a VAA", `{"v":1}`, "no_vaa", ""},
		{"json with a number", `{"vaa":1}`, "malformed_json", ""},
		{"neither", "what is this?", "malformed_encoding", ""},
		{"0x and no hex", "0xzz", "malformed_encoding", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := deliveries(t, file.New("f", strings.NewReader("\n\n"+c.line+"\r\n\n")))
			if err != nil || len(got) != 1 {
				t.Fatalf("%d deliveries, %v", len(got), err)
			}
			d := got[0]
			if d.Where != "line 3" || d.TxID != c.txID || d.Position != 0 {
				t.Errorf("at %q, transaction %q, position %d", d.Where, d.TxID, d.Position)
			}
			if c.reason != "" {
				if d.Fault == nil || d.Fault.Reason != c.reason || d.Fault.Detail == "" || len(d.Raw) == 0 {
					t.Errorf("fault %+v with %d bytes, want %s", d.Fault, len(d.Raw), c.reason)
				}
				return
			}
			if d.Fault != nil || !bytes.Equal(d.Raw, raw) {
				t.Errorf("fault %+v, or other bytes", d.Fault)
			}
		})
	}
}

// TestCompression reads the same lines plain, in gzip and in zstd, and a binary
// VAA, from a stream without a name.
func TestCompression(t *testing.T) {
	raw := vaatest.NewVAA(rand.New(rand.NewPCG(2, 2)), vaatest.NewGuardians(2, 0, 3)).Append(nil)
	lines := bytes.Repeat([]byte(hex.EncodeToString(raw)+"\n"), 3000)
	var gz, zst bytes.Buffer
	g := gzip.NewWriter(&gz)
	z, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{g, z} {
		if _, err := w.Write(lines); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		data []byte
		n    int
	}{{"plain", lines, 3000}, {"gzip", gz.Bytes(), 3000}, {"zstd", zst.Bytes(), 3000}, {"binary", raw, 1}, {"empty", nil, 0}, {"no newline at the end", lines[:len(lines)-1], 3000}} {
		t.Run(c.name, func(t *testing.T) {
			read := 0
			src := file.New("-", bytes.NewReader(c.data))
			src.OnRead(func(n int) { read += n })
			got, err := deliveries(t, src)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != c.n || read != len(c.data) {
				t.Fatalf("%d deliveries of %d bytes, want %d of %d", len(got), read, c.n, len(c.data))
			}
			for _, d := range got {
				if d.Fault != nil || !bytes.Equal(d.Raw, raw) {
					t.Fatalf("%s: fault %+v, or other bytes", d.Where, d.Fault)
				}
			}
		})
	}
	for _, damaged := range [][]byte{gz.Bytes()[:gz.Len()-9], zst.Bytes()[:zst.Len()/2]} {
		if _, err := deliveries(t, file.New("-", bytes.NewReader(damaged))); err == nil {
			t.Error("a damaged stream gave no error")
		}
	}
}

func TestLongLine(t *testing.T) {
	long := strings.Repeat("a", 9<<20)
	got, err := deliveries(t, file.New("f", strings.NewReader(long+"\n00\n"+long)))
	if err != nil {
		t.Fatal(err)
	}
	type seen struct{ where, reason string }
	var all []seen
	for _, d := range got {
		s := seen{where: d.Where}
		if d.Fault != nil {
			s.reason = d.Fault.Reason
		}
		if len(d.Raw) > 64<<10 {
			t.Errorf("%s keeps %d bytes", d.Where, len(d.Raw))
		}
		all = append(all, s)
	}
	want := []seen{{"line 1", "line_too_long"}, {"line 2", ""}, {"line 3", "line_too_long"}}
	if d := cmp.Diff(want, all, cmp.AllowUnexported(seen{})); d != "" {
		t.Error(d)
	}
}

func TestStopsWhenToldTo(t *testing.T) {
	stop := errors.New("enough")
	n := 0
	err := file.New("f", strings.NewReader("00\n00\n00\n")).Deliver(t.Context(), 0, func(ingest.Delivery) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n != 2 {
		t.Errorf("got %v after %d", err, n)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := file.Open(filepath.Join(dir, "none"), nil); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := file.Open(dir, nil); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a directory: %v", err)
	}
	path := filepath.Join(dir, "my vaas\u202e.txt")
	if err := os.WriteFile(path, []byte("00"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := file.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name() != "file:my_vaas_.txt" {
		t.Errorf("name %q", s.Name())
	}
	if s, err := file.Open("-", strings.NewReader("00")); err != nil || s.Name() != "file:stdin" {
		t.Errorf("standard input: %v", err)
	}
}

// FuzzLine: whatever a line holds, it is one delivery with bytes or a fault.
func FuzzLine(f *testing.F) {
	for _, s := range []string{`{"vaa":"AQ=="}`, "1:00:1,00", "0x01", "AQ==", "{", ",", "\x01"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		err := file.New("f", bytes.NewReader(line)).Deliver(t.Context(), 0, func(d ingest.Delivery) error {
			if len(d.Raw) == 0 && d.Fault == nil {
				t.Errorf("%q: neither bytes nor a fault", line)
			}
			return nil
		})
		if err != nil && !bytes.HasPrefix(line, []byte{0x1f, 0x8b}) && !bytes.HasPrefix(line, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
			t.Errorf("%q: %v", line, err)
		}
	})
}
