package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gcbigtable "cloud.google.com/go/bigtable"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

const (
	network  = vaa.Devnet
	messages = 20_000
	chain    = vaa.ChainID(2)
	startup  = 2 * time.Minute
)

// served is a running `attestry serve` on its embedded store, filled.
type served struct {
	pid   int
	http  *http.Client
	base  string // of URLs
	table *gcbigtable.Table
	ids   []vaa.MessageID
}

// serve builds and starts the program and fills its store. The process's CPU and the
// bare client's are those of this machine: figures mean something beside each other
// only.
func serve(b *testing.B) *served {
	b.Helper()
	dir := b.TempDir()
	binary := filepath.Join(dir, "attestry")
	ctx, cancel := context.WithTimeout(b.Context(), startup)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "../../cmd/attestry").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	data := filepath.Join(dir, "data")
	cmd := exec.Command(binary, "serve", "--network", network.String(), "--data-dir", data, "--http", "127.0.0.1:0")
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			b.Errorf("serve: %v\n%s", err, log.String())
		}
	})
	endpoints := awaitEndpoints(ctx, b, data)
	clients, err := bigtable.DialLocal(b.Context(), endpoints.Bigtable, bigtable.LocalInstance)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { clients.Close() }) //nolint:errcheck // nothing is written any more
	store, err := bigtable.Open(b.Context(), clients.Data, network)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	return &served{
		pid: cmd.Process.Pid, base: "http://" + endpoints.HTTP, http: &http.Client{Transport: transport},
		table: clients.Data.Open(schema.TableID(network.String(), store.Info().Generation, schema.Attestations)),
		ids:   fill(b, store),
	}
}

type endpoints struct{ Bigtable, HTTP string }

func awaitEndpoints(ctx context.Context, b *testing.B, data string) (e endpoints) {
	b.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(filepath.Join(data, "serve.json")); err == nil {
			if err := json.Unmarshal(text, &e); err != nil {
				b.Fatal(err)
			}
			return e
		}
		select {
		case <-ctx.Done():
			b.Fatal("serve does not come up")
		case <-tick.C:
		}
	}
}

// fill journals and applies messages of the size of real ones: a transfer under
// thirteen signatures, which nobody verifies here.
func fill(b *testing.B, store *bigtable.Store) []vaa.MessageID {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	random := rand.NewChaCha8([32]byte{1})
	var ids []vaa.MessageID
	for o := archive.Offset(1); len(ids) < messages; {
		batch := archive.Batch{Offset: o, ID: fmt.Sprint(o), Writer: "bench", WallTime: time.Now(), Class: archive.ClassHistory}
		for range 100 {
			v := vaa.VAA{Version: 1, Signatures: make([]vaa.Signature, 13), Body: vaa.Body{
				Timestamp: 1_700_000_000 + uint32(len(ids)), Nonce: r.Uint32(), EmitterChain: chain, EmitterAddress: vaa.Address{31: byte(len(ids) % 7)},
				Sequence: uint64(len(ids)), ConsistencyLevel: 1, Payload: make([]byte, 133),
			}}
			for i := range v.Signatures {
				v.Signatures[i].GuardianIndex = uint8(i)
				random.Read(v.Signatures[i].RSV[:64]) //nolint:errcheck // it does not fail
			}
			random.Read(v.Payload[1:]) //nolint:errcheck // it does not fail
			v.Payload[0] = 1
			set := uint32(0)
			digest := v.Digest()
			batch.Events = append(batch.Events, archive.Event{
				Offset: batch.End(), Kind: archive.KindQuorum, ID: v.MessageID(), Digest: digest, GuardianSetIndex: &set, Canonical: true,
				Time: v.Time(), Bytes: v.Append(nil), Source: "bench", RecordedAt: batch.WallTime,
			})
			ids = append(ids, v.MessageID())
		}
		ctx := b.Context()
		if err := errors.Join(store.Append(ctx, batch), store.Apply(ctx, batch), store.MarkApplied(ctx, o)); err != nil {
			b.Fatal(err)
		}
		o = batch.End()
	}
	return ids
}

// get reads a path to its end.
func (s *served) get(path string) ([]byte, error) {
	resp, err := s.http.Get(s.base + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, body)
	}
	return body, err
}

// cost is what a load took: user and system time of the serve and of this process.
type cost struct {
	wall, serve, own time.Duration
	p50              time.Duration
	n                int
}

func (c cost) each(d time.Duration) float64 { return float64(d.Microseconds()) / float64(c.n) }
func (c cost) rate() float64                { return float64(c.n) / c.wall.Seconds() }

// load calls f from some goroutines for a time and returns what that took.
func (s *served) load(b *testing.B, goroutines int, f func(id vaa.MessageID) error) cost {
	b.Helper()
	const length = 4 * time.Second
	var next atomic.Int64
	took := make([][]time.Duration, goroutines)
	var failed atomic.Value
	serve, own, start := cpuOf(b, s.pid), cpuOf(b, os.Getpid()), time.Now()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for time.Since(start) < length && failed.Load() == nil {
				i := next.Add(1)
				began := time.Now()
				if err := f(s.ids[(i*7919)%int64(len(s.ids))]); err != nil {
					failed.Store(err)
				}
				took[g] = append(took[g], time.Since(began))
			}
		})
	}
	wg.Wait()
	c := cost{wall: time.Since(start), serve: cpuOf(b, s.pid) - serve, own: cpuOf(b, os.Getpid()) - own}
	if err, ok := failed.Load().(error); ok {
		b.Fatal(err)
	}
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	c.n, c.p50 = len(all), all[len(all)/2]
	return c
}

// cpuOf returns the CPU time of a process so far (proc(5): utime and stime, in
// hundredths of a second).
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatalf("needs /proc: %v", err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	var ticks uint64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// BenchmarkLookup compares lookups by HTTP with the bare client's ReadRow on the same
// store.
func BenchmarkLookup(b *testing.B) {
	s := serve(b)
	paths := map[string]string{"lookup": "/v1/attestations/%s", "lookup raw": "/v1/attestations/%s?format=raw", "signed_vaa": "/v1/signed_vaa/%s"}
	bare := func(id vaa.MessageID) error {
		row, err := s.table.ReadRow(context.Background(), rowkey.Of(id))
		if err == nil && row == nil {
			err = fmt.Errorf("no row of %s", id)
		}
		return err
	}
	s.load(b, 4, bare)
	for _, name := range []string{"lookup", "lookup raw", "signed_vaa"} {
		overHTTP := func(id vaa.MessageID) error {
			_, err := s.get(fmt.Sprintf(paths[name], id))
			return err
		}
		b.Run(name, func(b *testing.B) {
			s.load(b, 4, overHTTP)
			one, oneBare := s.load(b, 1, overHTTP), s.load(b, 1, bare)
			many, manyBare := s.load(b, 64, overHTTP), s.load(b, 64, bare)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(many.each(many.serve)-manyBare.each(manyBare.serve+manyBare.own), "added-cpu-µs/op")
			b.ReportMetric(float64((one.p50 - oneBare.p50).Microseconds()), "added-p50-µs")
			b.ReportMetric(many.rate(), "http/s")
			b.ReportMetric(manyBare.rate(), "bare/s")
			b.ReportMetric(many.rate()/manyBare.rate(), "rate-ratio")
		})
	}
}

// BenchmarkScan compares a walk through a chain by HTTP with the bare client's
// ReadRows of the same rows.
func BenchmarkScan(b *testing.B) {
	s := serve(b)
	for b.Loop() {
		start := time.Now()
		rows := 0
		err := s.table.ReadRows(b.Context(), gcbigtable.PrefixRange(rowkey.Chain(chain)), func(gcbigtable.Row) bool {
			rows++
			return true
		})
		if err != nil || rows != messages {
			b.Fatalf("%d rows, %v", rows, err)
		}
		bare := time.Since(start)
		start = time.Now()
		if walked := s.walk(b); walked != messages {
			b.Fatalf("%d messages, want %d", walked, messages)
		}
		over := time.Since(start)
		b.ReportMetric(messages/over.Seconds(), "http-rows/s")
		b.ReportMetric(messages/bare.Seconds(), "bare-rows/s")
		b.ReportMetric(bare.Seconds()/over.Seconds(), "rate-ratio")
	}
}

func (s *served) walk(b *testing.B) (n int) {
	b.Helper()
	path := fmt.Sprintf("/v1/attestations?chain=%d&limit=1000", chain)
	for cursor := ""; ; {
		body, err := s.get(path + cursor)
		if err != nil {
			b.Fatal(err)
		}
		// The tail alone tells how it goes on: this side is to cost little.
		tail := body[max(0, len(body)-400):]
		var page struct {
			Next *string `json:"next"`
		}
		i := strings.LastIndex(string(tail), `"pagination":`)
		if err := json.Unmarshal(tail[i+len(`"pagination":`):len(tail)-2], &page); err != nil {
			b.Fatalf("%v: %s", err, tail)
		}
		n += strings.Count(string(body), `"rowKey":`)
		if page.Next == nil {
			return n
		}
		cursor = "&cursor=" + *page.Next
	}
}
