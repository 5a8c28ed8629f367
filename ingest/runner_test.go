package ingest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/ingest/source/file"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type archiveUnderTest struct {
	store    *memarchive.Store
	verifier *ingest.Verifier
	runner   *ingest.Runner
	class    archive.Class
}

func newArchive(t *testing.T, store *memarchive.Store, sets vaa.GuardianSets, class archive.Class) *archiveUnderTest {
	t.Helper()
	v, err := ingest.NewVerifier(t.Context(), store, sets, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	r := ingest.NewRunner(ingest.RunnerConfig{
		Store: store, Writer: ingest.NewWriter(ingest.WriterConfig{Store: store}), Verifier: v, Class: class,
	})
	t.Cleanup(func() {
		for _, err := range store.Violations() {
			t.Error(err)
		}
	})
	return &archiveUnderTest{store, v, r, class}
}

func (a *archiveUnderTest) run(t *testing.T, src ingest.Source) map[string]uint64 {
	t.Helper()
	s, err := a.runner.Run(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes(s)
}

// outcomes are the counts that are not 0.
func outcomes(s ingest.Summary) map[string]uint64 {
	out := map[string]uint64{}
	for o, n := range s.Outcomes {
		if n > 0 {
			out[o.String()] = n
		}
	}
	return out
}

func known(t *testing.T, n vaa.Network) vaa.GuardianSets {
	t.Helper()
	sets, err := vaa.KnownGuardianSets(n)
	if err != nil {
		t.Fatal(err)
	}
	return sets
}

func open(t *testing.T, name string) *file.Source {
	t.Helper()
	s, err := file.Open(filepath.Join("..", "testdata", "vaas", name), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func want(t *testing.T, what string, got, want map[string]uint64) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// TestCollectedVAAs ingests every VAA that was collected, each file for its
// network. The counts are those of the data's own description.
func TestCollectedVAAs(t *testing.T) {
	for _, c := range []struct {
		network            vaa.Network
		accepted, conflict uint64
	}{{vaa.Mainnet, 146, 0}, {vaa.Testnet, 190, 5}, {vaa.Devnet, 142, 95}} {
		t.Run(c.network.String(), func(t *testing.T) {
			store := memarchive.New(c.network, time.Now)
			a := newArchive(t, store, known(t, c.network), archive.ClassHistory)
			name := fmt.Sprintf("vaas-%s.ndjson", c.network)
			first := map[string]uint64{"accepted": c.accepted}
			if c.conflict > 0 {
				first["conflict"] = c.conflict
			}
			want(t, "first run", a.run(t, open(t, name)), first)
			before := journal(t, store)
			want(t, "second run", a.run(t, open(t, name)), map[string]uint64{"duplicate": c.accepted + c.conflict})
			want(t, "unverifiable", a.run(t, open(t, "vaas-unverifiable.ndjson")), map[string]uint64{"invalid": 81})
			if d := cmp.Diff(before, journal(t, store)); d != "" {
				t.Errorf("the journal changed (-before +after):\n%s", d)
			}
			n := 0
			for r, err := range store.Rejects(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				if r.Reason == "" || !strings.HasPrefix(r.Detail, "line ") || len(r.Bytes) == 0 {
					t.Errorf("reject %q: %q, %d bytes", r.Reason, r.Detail, len(r.Bytes))
				}
				n++
			}
			if n == 0 {
				t.Error("no reject is kept")
			}
		})
	}
}

func journal(t *testing.T, s archive.Store) []string {
	t.Helper()
	var events []string
	for b, err := range s.Batches(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Events {
			events = append(events, fmt.Sprint(e.Offset, e.Kind, e.ID, e.Digest, e.Canonical, b.Class, b.Applied))
		}
	}
	return events
}

// TestVariants ingests other signature sets of the same digests. Which of them
// hold is the data's word, what becomes of them follows from the sets.
func TestVariants(t *testing.T) {
	raw, err := os.ReadFile("../testdata/vaas/vaa-variants.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	type variant struct {
		VAA      []byte `json:"vaa"`
		Network  string `json:"network"`
		Verified bool   `json:"verified"`
	}
	for _, network := range vaa.Networks() {
		t.Run(network.String(), func(t *testing.T) {
			store := memarchive.New(network, time.Now)
			a := newArchive(t, store, known(t, network), archive.ClassHistory)
			a.run(t, open(t, fmt.Sprintf("vaas-%s.ndjson", network)))
			n := 0
			for line := range strings.Lines(string(raw)) {
				var v variant
				if err := json.Unmarshal([]byte(line), &v); err != nil {
					t.Fatal(err)
				}
				if v.Network != network.String() {
					continue
				}
				n++
				checkVariant(t, a, v.VAA, v.Verified)
			}
			t.Logf("%d variants", n)
		})
	}
}

func checkVariant(t *testing.T, a *archiveUnderTest, raw []byte, verified bool) {
	t.Helper()
	line := base64.StdEncoding.EncodeToString(raw)
	v, err := vaa.Parse(raw)
	if !verified || err != nil {
		want(t, "a variant that does not hold", a.run(t, file.New("variant", strings.NewReader(line))), map[string]uint64{"invalid": 1})
		return
	}
	before, ok := a.store.Record(v.MessageID())
	got := a.run(t, file.New("variant", strings.NewReader(line)))
	after, _ := a.store.Record(v.MessageID())
	switch {
	case !ok:
		want(t, "a first VAA", got, map[string]uint64{"accepted": 1})
	case before.Known(v.Digest(), v.GuardianSetIndex):
		want(t, "other signatures of a stored set", got, map[string]uint64{"duplicate": 1})
		stored := map[uint8]bool{}
		for _, version := range after.Versions {
			if p, err := vaa.Parse(version.Bytes); err == nil && p.Digest() == v.Digest() && p.GuardianSetIndex == v.GuardianSetIndex {
				for _, s := range p.Signatures {
					stored[s.GuardianIndex] = true
				}
			}
		}
		for _, e := range after.Evidence {
			if e.Digest == v.Digest() && e.GuardianSetIndex == v.GuardianSetIndex {
				stored[e.Signature.GuardianIndex] = true
			}
		}
		for _, s := range v.Signatures {
			if !stored[s.GuardianIndex] {
				t.Errorf("the signature of guardian %d is not kept", s.GuardianIndex)
			}
		}
	case before.Signed().Digest == v.Digest():
		want(t, "another set", got, map[string]uint64{"resigned": 1})
		newest := max(before.Signed().GuardianSetIndex, v.GuardianSetIndex)
		if s := after.Signed(); s.GuardianSetIndex != newest || len(after.Versions) != len(before.Versions)+1 {
			t.Errorf("set %d stands first of %d versions, want %d", s.GuardianSetIndex, len(after.Versions), newest)
		}
	default:
		want(t, "another digest", got, map[string]uint64{"conflict": 1})
	}
}

// TestForgedByStolenOldKey: who holds the first set's single key signs a message
// before the guardians do.
func TestForgedByStolenOldKey(t *testing.T) {
	chain := vaatest.NewChain(vaa.Mainnet, 7, 1, 19, 19)
	store := memarchive.New(vaa.Mainnet, time.Now)
	a := newArchive(t, store, chain.Sets, archive.ClassLive)
	r := rand.New(rand.NewPCG(7, 7))
	first := vaatest.NewVAA(r, chain.Guardians[2])
	next := vaatest.NewVAA(r, chain.Guardians[2])
	next.EmitterChain, next.EmitterAddress, next.Sequence = first.EmitterChain, first.EmitterAddress, first.Sequence+1
	chain.Guardians[2].Sign(next)
	forged := vaatest.Equivocate(next, chain.Guardians[0])

	lines := func(vs ...*vaa.VAA) *file.Source {
		var b strings.Builder
		for _, v := range vs {
			fmt.Fprintf(&b, "%x\n", v.Append(nil))
		}
		return file.New("live", strings.NewReader(b.String()))
	}
	want(t, "the forgery comes first", a.run(t, lines(first, forged)), map[string]uint64{"accepted": 2})
	want(t, "then the true VAA", a.run(t, lines(next)), map[string]uint64{"conflict": 1})
	rec, _ := store.Record(next.MessageID())
	if s := rec.Signed(); s == nil || s.Digest != next.Digest() {
		t.Error("the true VAA is not canonical")
	}
	if len(rec.Versions) != 2 {
		t.Errorf("%d versions are kept, want 2", len(rec.Versions))
	}
	for b, err := range store.Batches(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Events {
			if forgery := e.Digest == forged.Digest(); forgery != (b.Class == archive.ClassHistory) || forgery != e.Expired {
				t.Errorf("event %d of %s: class %s, expired %t", e.Offset, e.ID, b.Class, e.Expired)
			}
		}
	}
}

// TestLearnsGuardianSets: VAAs of a set to come wait for the upgrade that proves
// it, and are stored when it comes. A restart knows the set, and another process when it
// looks.
func TestLearnsGuardianSets(t *testing.T) {
	first := vaatest.NewGuardians(9, 0, 7)
	second := first.Next(2)
	third := second.Next(2)
	stranger := vaatest.NewGuardians(10, 2, 7)
	genesis := vaatest.Sets(vaa.Mainnet, first, second)
	r := rand.New(rand.NewPCG(9, 9))
	store := memarchive.New(vaa.Mainnet, time.Now)
	a, beside := newArchive(t, store, genesis, archive.ClassLive), newArchive(t, store, genesis, archive.ClassLive)
	at := uint32(time.Now().Unix())
	early, late := vaatest.NewVAA(r, third), vaatest.NewVAA(r, third)
	forged := vaatest.Upgrade(first, third, at) // signed by a set that is not the newest
	upgrade := vaatest.Upgrade(second, third, at)

	line := func(vs ...*vaa.VAA) *file.Source {
		var b strings.Builder
		for _, v := range vs {
			fmt.Fprintf(&b, "%x\n", v.Append(nil))
		}
		return file.New("live", strings.NewReader(b.String()))
	}
	want(t, "an upgrade by an old set, and a VAA under the set that it would bring",
		a.run(t, line(forged, early)), map[string]uint64{"accepted": 1, "error": 1})
	if newest := a.verifier.Sets().Newest().Index; newest != 1 {
		t.Fatalf("newest set %d, want 1", newest)
	}
	want(t, "a set to come that no known guardian signed",
		a.run(t, line(vaatest.NewVAA(r, stranger))), map[string]uint64{"invalid": 1})
	// The upgrade carries another digest than the forgery only if it differs; it does
	// not, so that it is the same message signed by a newer set.
	want(t, "held until the upgrade comes", a.run(t, line(early, upgrade, late)), map[string]uint64{"accepted": 2, "resigned": 1})
	if newest := a.verifier.Sets().Newest().Index; newest != 2 {
		t.Fatalf("newest set %d, want 2", newest)
	}
	if newest := beside.verifier.Sets().Newest().Index; newest != 1 {
		t.Errorf("in another process: newest set %d before it looks", newest)
	}
	if err := beside.verifier.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if newest := beside.verifier.Sets().Newest().Index; newest != 2 {
		t.Errorf("in another process: newest set %d, want 2", newest)
	}
	again := newArchive(t, store, genesis, archive.ClassLive)
	if newest := again.verifier.Sets().Newest().Index; newest != 2 {
		t.Errorf("after a restart: newest set %d, want 2", newest)
	}
}

// positioned is a source with positions that ends at a given item.
type positioned struct {
	raws [][]byte
	stop int
	from uint64
}

func (*positioned) Name() string { return "positioned" }

func (s *positioned) Deliver(_ context.Context, from uint64, deliver func(ingest.Delivery) error) error {
	s.from = from
	for i := from; i < uint64(len(s.raws)); i++ {
		if int(i) == s.stop {
			return errors.New("the connection broke")
		}
		if err := deliver(ingest.Delivery{Raw: s.raws[i], Position: i + 1}); err != nil {
			return err
		}
	}
	return nil
}

func TestCursor(t *testing.T) {
	g := vaatest.NewGuardians(3, 0, 1)
	sets := vaatest.Sets(vaa.Testnet, g)
	r := rand.New(rand.NewPCG(3, 3))
	src := &positioned{stop: 450}
	for range 1000 {
		src.raws = append(src.raws, vaatest.NewVAA(r, g).Append(nil))
	}
	store := memarchive.New(vaa.Testnet, time.Now)
	a := newArchive(t, store, sets, archive.ClassLive)
	s, err := a.runner.Run(t.Context(), src)
	if err == nil || !strings.Contains(err.Error(), "the connection broke") {
		t.Fatalf("got %v, want what the source said", err)
	}
	want(t, "before the source broke", outcomes(s), map[string]uint64{"accepted": 450})
	if at, err := store.Cursor(t.Context(), "positioned"); err != nil || at != 450 {
		t.Fatalf("position %d, %v; want 450", at, err)
	}
	src.stop = -1
	want(t, "resumed", a.run(t, src), map[string]uint64{"accepted": 550})
	if src.from != 450 {
		t.Errorf("resumed from %d, want 450", src.from)
	}
}

func TestCancelled(t *testing.T) {
	g := vaatest.NewGuardians(4, 0, 1)
	store := memarchive.New(vaa.Testnet, time.Now)
	a := newArchive(t, store, vaatest.Sets(vaa.Testnet, g), archive.ClassLive)
	ctx, cancel := context.WithCancel(t.Context())
	src := &endless{raw: vaatest.NewVAA(rand.New(rand.NewPCG(4, 4)), g).Append(nil), cancel: cancel}
	if _, err := a.runner.Run(ctx, src); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

type endless struct {
	raw    []byte
	cancel func()
}

func (*endless) Name() string { return "endless" }

func (s *endless) Deliver(ctx context.Context, _ uint64, deliver func(ingest.Delivery) error) error {
	for n := 0; ; n++ {
		if n == 1000 {
			s.cancel()
		}
		if err := deliver(ingest.Delivery{Raw: s.raw}); err != nil {
			return err
		}
	}
}

func TestClockOff(t *testing.T) {
	store := memarchive.New(vaa.Testnet, func() time.Time { return time.Now().Add(-time.Minute) })
	a := newArchive(t, store, known(t, vaa.Testnet), archive.ClassLive)
	if _, err := a.runner.Run(t.Context(), file.New("x", strings.NewReader(""))); err == nil || !strings.Contains(err.Error(), "clock") {
		t.Errorf("got %v, want a word about the clock", err)
	}
}
