// Package querytest holds what the tests of the read service share: an archive
// filled with real VAAs, and a reader that counts and fails.
package querytest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/vaa"
)

// Now is the time at which everything in an Archive was recorded.
func Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Archive is a reference archive that is filled by hand, one event a batch.
type Archive struct {
	Store *memarchive.Store

	mu   sync.Mutex // guards next
	next archive.Offset
}

// New returns an empty archive.
func New(network vaa.Network) *Archive {
	return &Archive{Store: memarchive.New(network, Now), next: 1}
}

// Load returns an archive of all collected VAAs of a network; dir is that of the
// collected VAAs, as seen from the test.
func Load(network vaa.Network, dir string) (*Archive, error) {
	a := New(network)
	all, err := Collected(filepath.Join(dir, "vaas-"+network.String()+".ndjson"))
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if err := a.AddVAA(c.VAA, nil); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// VAA is one line of the collected VAAs.
type VAA struct {
	VAA              []byte `json:"vaa"`
	Network          string `json:"network"`
	Verified         bool   `json:"verified"`
	GuardianSetIndex uint32 `json:"guardian_set_index"`
	Digest           string `json:"digest"`
	EmitterChain     int    `json:"emitter_chain"`
	EmitterAddress   string `json:"emitter_address"`
	Sequence         string `json:"sequence"`
	Timestamp        int64  `json:"timestamp"`
	Nonce            uint32 `json:"nonce"`
	ConsistencyLevel uint8  `json:"consistency_level"`
	SignerIndices    []int  `json:"signer_indices"`
	PayloadKind      string `json:"payload_kind"`
	PayloadLen       int    `json:"payload_len"`
}

// ID returns chain/address/sequence.
func (v VAA) ID() string {
	return fmt.Sprintf("%d/%s/%s", v.EmitterChain, v.EmitterAddress, v.Sequence)
}

// Collected reads a file of collected VAAs.
func Collected(path string) ([]VAA, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read collected vaas: %w", err)
	}
	var all []VAA
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c VAA
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, c)
	}
	return all, lines.Err()
}

// AddVAA journals and applies a signed VAA by the rules of the design; one that is
// known already changes nothing.
func (a *Archive) AddVAA(raw []byte, link *archive.Link) error {
	v, err := vaa.Parse(raw)
	if err != nil {
		return err
	}
	id, digest := v.MessageID(), v.Digest()
	r, _ := a.Store.Record(id)
	if r.Known(digest, v.GuardianSetIndex) {
		return nil
	}
	e := archive.Event{
		Kind: archive.KindQuorum, ID: id, Digest: digest, GuardianSetIndex: &v.GuardianSetIndex,
		Canonical: true, Time: v.Time(), Bytes: raw,
	}
	if s := r.Signed(); s != nil {
		e.Kind, e.Canonical = archive.KindResigned, v.GuardianSetIndex > s.GuardianSetIndex
		if s.Digest != digest {
			e.Kind = archive.KindConflict
			if e.Canonical {
				e.Displaced = &s.Digest
			}
		}
	} else if d := r.Digest(); d != nil {
		e.Completes = *d == digest
	}
	return a.put(e, link)
}

// Observe journals and applies a publication without a signed VAA.
func (a *Archive) Observe(body vaa.Body, link *archive.Link) error {
	return a.put(archive.Event{
		Kind: archive.KindObserved, ID: body.MessageID(), Digest: body.Digest(), Canonical: true,
		Time: body.Time(), Bytes: body.Append(nil),
	}, link)
}

// Vanish journals and applies that the observed digest of a message is no more.
func (a *Archive) Vanish(id vaa.MessageID) error {
	r, _ := a.Store.Record(id)
	return a.put(archive.Event{Kind: archive.KindVanished, ID: id, Digest: *r.Digest()}, nil)
}

func (a *Archive) put(e archive.Event, link *archive.Link) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.Offset, e.Source, e.RecordedAt, e.Link = a.next, "test", Now(), link
	if link != nil {
		e.InitiatingTxID = &link.TxID
	}
	b := archive.Batch{
		Offset: a.next, ID: fmt.Sprint("batch ", a.next), Writer: "test", WallTime: Now(),
		Class: archive.ClassHistory, Events: []archive.Event{e},
	}
	ctx := context.Background()
	if err := a.Store.Append(ctx, b); err != nil {
		return err
	}
	if err := a.Store.Apply(ctx, b); err != nil {
		return err
	}
	a.next++
	return a.Store.MarkApplied(ctx, b.Offset)
}

// Reader counts the calls to a reader and, when Err is set, fails all of them. It may
// be called concurrently; its fields are for one goroutine, between calls.
type Reader struct {
	archive.Reader
	mu      sync.Mutex // guards Calls, Columns and Range while calls are under way
	Err     error
	Calls   []string // names of the called methods
	Columns archive.Columns
	Range   archive.Range
}

// note notes a call.
func (r *Reader) note(call string, c archive.Columns, in archive.Range) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Calls, r.Columns, r.Range = append(r.Calls, call), c, in
}

// Take returns the calls since the last Take.
func (r *Reader) Take() []string {
	calls := slices.Clone(r.Calls)
	r.Calls = nil
	return calls
}

// Get counts as "Get".
func (r *Reader) Get(ctx context.Context, id vaa.MessageID, c archive.Columns) (archive.Record, error) {
	r.note("Get", c, archive.Range{})
	if r.Err != nil {
		return archive.Record{}, r.Err
	}
	return r.Reader.Get(ctx, id, c)
}

// GetAll counts as "GetAll".
func (r *Reader) GetAll(ctx context.Context, ids []vaa.MessageID, c archive.Columns) (map[vaa.MessageID]archive.Record, error) {
	r.note("GetAll", c, archive.Range{})
	if r.Err != nil {
		return nil, r.Err
	}
	return r.Reader.GetAll(ctx, ids, c)
}

// Scan counts as "Scan".
func (r *Reader) Scan(ctx context.Context, in archive.Range, c archive.Columns) iter.Seq2[archive.Record, error] {
	r.note("Scan", c, in)
	if r.Err != nil {
		return func(yield func(archive.Record, error) bool) { yield(archive.Record{}, r.Err) }
	}
	return r.Reader.Scan(ctx, in, c)
}

// Lookup counts as "Lookup".
func (r *Reader) Lookup(ctx context.Context, l archive.Lookup) iter.Seq2[archive.Ref, error] {
	r.note("Lookup", archive.Columns{}, archive.Range{})
	if r.Err != nil {
		return func(yield func(archive.Ref, error) bool) { yield(archive.Ref{}, r.Err) }
	}
	return r.Reader.Lookup(ctx, l)
}
