package crashtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/internal/fsck"
	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	network = vaa.Devnet
	// commandTimeout bounds one run of the program; machines are shared.
	commandTimeout = 3 * time.Minute
	pollInterval   = 2 * time.Millisecond
)

// drill is a program and the stores that it works on.
type drill struct {
	t      *testing.T
	binary string
	env    []string
	dir    string // for files, and the program's working directory
	redis  *testenv.Redis
	addr   string // of the Bigtable server
	rand   *rand.Rand
	faulty bool // runs may fail
	files  int
	seen   map[version]bool // all that was ever written to a file
}

// version is what the journal may hold once.
type version struct {
	id     vaa.MessageID
	digest vaa.Digest
	set    uint32
}

// newDrill builds the program, with build tags if there are any, and starts the
// stores.
func newDrill(t *testing.T, fault string, tags ...string) *drill {
	t.Helper()
	d := &drill{t: t, dir: t.TempDir(), seen: map[version]bool{}}
	seed := testenv.Seed(t)
	d.rand = rand.New(rand.NewPCG(seed, 0))
	d.redis = testenv.StartRedis(t)
	d.addr = testenv.StartCBTEmulator(t).Addr
	d.binary = filepath.Join(d.dir, "attestry")
	args := append([]string{"build", "-tags", strings.Join(tags, ","), "-o", d.binary}, "../../cmd/attestry")
	ctx, cancel := context.WithTimeout(t.Context(), 2*commandTimeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ATTESTRY_") && !strings.HasPrefix(v, "PORT=") {
			d.env = append(d.env, v)
		}
	}
	d.env = append(d.env, "ATTESTRY_NETWORK="+network.String(), "BIGTABLE_EMULATOR_HOST="+d.addr, "ATTESTRY_REDIS_URL=redis://"+d.redis.Addr)
	if fault != "" {
		d.env, d.faulty = append(d.env, "ATTESTRY_FAULT="+fault), true
	}
	return d
}

// command is a run of the program.
type command struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	done           chan struct{} // closed when it has ended
	err            error         // then how
}

// start starts the program. Its owner waits for it.
func (d *drill) start(args ...string) *command {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), commandTimeout)
	c := &command{cmd: exec.CommandContext(ctx, d.binary, args...), done: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = d.dir, d.env, &c.stdout, &c.stderr
	if err := c.cmd.Start(); err != nil {
		cancel()
		d.t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		defer cancel()
		c.err = c.cmd.Wait()
	}()
	return c
}

// kill ends the program without warning and reports whether it was still running.
func (c *command) kill() bool {
	_ = c.cmd.Process.Kill() // an error means that it is gone already
	<-c.done
	return c.err != nil && !c.cmd.ProcessState.Exited()
}

func (c *command) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// must waits for the program and fails the test if it failed.
func (d *drill) must(c *command) {
	d.t.Helper()
	if <-c.done; c.err != nil {
		d.t.Fatalf("%s: %v\n%s%s", strings.Join(c.cmd.Args[1:], " "), c.err, c.stdout.Bytes(), c.stderr.Bytes())
	}
}

// ingest runs an ingest to its end and returns its summary.
func (d *drill) ingest(class archive.Class, files ...string) map[string]any {
	d.t.Helper()
	c := d.start(append([]string{"ingest", "-o", "json", "--class", class.String()}, files...)...)
	d.must(c)
	var summary map[string]any
	if err := json.Unmarshal(c.stdout.Bytes(), &summary); err != nil {
		d.t.Fatalf("summary %q: %v", c.stdout.String(), err)
	}
	return summary
}

// fsck runs the check.
func (d *drill) fsck() fsck.Report {
	d.t.Helper()
	c := d.start("fsck", "-o", "json", "--wait", "30s")
	<-c.done
	var r fsck.Report
	if err := json.Unmarshal(c.stdout.Bytes(), &r); err != nil {
		d.t.Fatalf("report %q: %v\n%s", c.stdout.String(), err, c.stderr.Bytes())
	}
	if failed := c.err != nil; failed != (r.FindingsTotal > 0) {
		d.t.Fatalf("%d findings, but the program ended with %v\n%s", r.FindingsTotal, c.err, c.stderr.Bytes())
	}
	d.t.Logf("fsck: %d batches, %d events, %d rows, %d index rows, %d findings", r.Batches, r.Events, r.Rows, r.IndexRows, r.FindingsTotal)
	return r
}

// end returns the offset behind the journal's last event as a reader sees it, 1
// while there is no store yet.
func (d *drill) end() archive.Offset {
	end := archive.Offset(1)
	d.read(func(b *archive.Batch) { end = b.End() })
	return end
}

// read calls f with each batch of the journal.
func (d *drill) read(f func(*archive.Batch)) {
	d.t.Helper()
	clients, err := bigtable.DialLocal(d.t.Context(), d.addr, bigtable.LocalInstance)
	if err != nil {
		d.t.Fatal(err)
	}
	defer clients.Close()
	store, err := bigtable.Open(d.t.Context(), clients.Data, network)
	if errors.Is(err, archive.ErrNoStore) {
		return
	}
	if err != nil {
		d.t.Fatal(err)
	}
	for b, err := range store.Batches(d.t.Context(), 1) {
		if err != nil {
			d.t.Fatal(err)
		}
		f(&b)
	}
}

// reached waits until the journal ends at or behind an offset, and reports false
// if the program ended before.
func (d *drill) reached(c *command, o archive.Offset) bool {
	d.t.Helper()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for d.end() < o {
		select {
		case <-c.done:
			return d.end() >= o
		case <-d.t.Context().Done():
			d.t.Fatal(d.t.Context().Err())
		case <-tick.C:
		}
	}
	return true
}

// intact checks that the archive has all that was in the files, and nothing twice.
func (d *drill) intact() {
	d.t.Helper()
	for _, f := range d.fsck().Findings {
		d.t.Error(f)
	}
	got := map[version]archive.Offset{}
	d.read(func(b *archive.Batch) {
		for i := range b.Events {
			e := &b.Events[i]
			if !e.Signed() {
				continue
			}
			v := version{e.ID, e.Digest, *e.GuardianSetIndex}
			if o, ok := got[v]; ok {
				d.t.Errorf("journalled at offsets %d and %d: %v", o, e.Offset, v)
			}
			got[v] = e.Offset
		}
	})
	for v := range d.seen {
		if _, ok := got[v]; !ok {
			d.t.Errorf("never journalled: %v", v)
		}
	}
	if len(got) != len(d.seen) {
		d.t.Errorf("%d VAAs are journalled, %d were delivered", len(got), len(d.seen))
	}
}

// vaas makes n verified VAAs: mostly new messages, among them messages signed again
// by another set, and other messages under an id that was used.
func (d *drill) vaas(n int) []*vaa.VAA {
	var all []*vaa.VAA
	for len(all) < n {
		guardian := vaatest.DevnetGuardian(uint32(d.rand.IntN(3)))
		v := vaatest.NewVAA(d.rand, guardian)
		if len(all) > 0 {
			switch earlier := all[d.rand.IntN(len(all))]; d.rand.IntN(10) {
			case 0:
				v = vaatest.Resign(earlier, guardian)
			case 1:
				v = vaatest.Equivocate(earlier, guardian)
			}
		}
		all = append(all, v)
	}
	return all
}

// file writes VAAs to a file of NDJSON, some with a transaction, and returns its
// name.
func (d *drill) file(all []*vaa.VAA) string {
	d.t.Helper()
	var text bytes.Buffer
	for _, v := range all {
		d.seen[version{v.MessageID(), v.Digest(), v.GuardianSetIndex}] = true
		digest := v.Digest()
		line := map[string]string{"vaa": base64.StdEncoding.EncodeToString(v.Append(nil))}
		if digest[0]%3 == 0 {
			line["txId"] = "0x" + hex.EncodeToString(digest[:])
		}
		b, err := json.Marshal(line)
		if err != nil {
			d.t.Fatal(err)
		}
		text.Write(append(b, '\n'))
	}
	d.files++
	name := filepath.Join(d.dir, fmt.Sprintf("vaas-%d.ndjson", d.files))
	if err := os.WriteFile(name, text.Bytes(), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return name
}

// shuffled returns the VAAs in another order.
func (d *drill) shuffled(all []*vaa.VAA) []*vaa.VAA {
	all = slices.Clone(all)
	d.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (d *drill) class() archive.Class {
	return []archive.Class{archive.ClassLive, archive.ClassHistory}[d.rand.IntN(2)]
}
