package fsck_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	cbt "cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/internal/fsck"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

func TestCleanStore(t *testing.T) {
	for name, build := range map[string]func(*testing.T) *world{"model": onModel, "bigtable": onBigtable} {
		t.Run(name, func(t *testing.T) {
			w := build(t)
			r := run(t, w.config())
			expect(t, r)
			entries := len(w.entries)
			// What the history consists of is counted here by hand.
			want := fsck.Report{
				Network: "testnet", Generation: 1, Epoch: 1, Batches: 9, Events: 21, End: 22, Rows: 13, Versions: 16, IndexRows: r.IndexRows,
				StreamEntries: &entries, Passes: 1, Findings: []fsck.Finding{},
			}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}

			cfg := w.config()
			cfg.MemoryBytes = 2000 // a few events
			many := run(t, cfg)
			if many.Passes < 4 {
				t.Errorf("%d passes with little memory", many.Passes)
			}
			many.Passes = 1
			if diff := cmp.Diff(want, many); diff != "" {
				t.Errorf("report of many passes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEmptyStore(t *testing.T) {
	r := run(t, fsck.Config{Store: memarchive.New(network, time.Now), Sets: vaatest.Sets(network, vaatest.NewGuardians(1, 0, 1)), Window: windowOf()})
	expect(t, r)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"network":"testnet","generation":"1","epoch":"1","batches":0,"events":0,"end":"1","rows":0,"versions":0,"indexRows":0,` +
		`"streamEntries":0,"passes":1,"findings":[],"findingsTotal":0}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// TestDamage plants one thing at a time in the tables and wants its finding, and
// no others.
func TestDamage(t *testing.T) {
	const attestations, index, journal = schema.Attestations, schema.Index, schema.Journal
	const publication, quorum = schema.MessagePublication, schema.QuorumState
	for i, c := range []struct {
		name   string
		damage func(w *world)
		want   []fsck.Kind
	}{
		{"a row is lost", func(w *world) { w.deleteRow(attestations, keyOf(w.plain)) }, []fsck.Kind{fsck.KindRowMissing}},
		{"a row of nobody", func(w *world) {
			id := w.plain.MessageID()
			id.Sequence++
			w.mutate(attestations, rowkey.Of(id), func(m *cbt.Mutation) {
				m.Set(quorum, schema.PrefixConflict+w.plain.Digest().String(), 1000, []byte("2026-01-01T00:00:00.000Z"))
			})
		}, []fsck.Kind{fsck.KindRowWithoutEvent}},
		{"a row under another key", func(w *world) {
			id := w.plain.MessageID()
			id.Sequence++
			w.mutate(attestations, rowkey.Of(id), func(m *cbt.Mutation) { m.Set(quorum, schema.ColSignedVAA, 1000, w.plain.Append(nil)) })
		}, []fsck.Kind{fsck.KindDigestWrong, fsck.KindPublicationDiffers, fsck.KindRowKeyWrong, fsck.KindRowWithoutEvent}},
		{"a key that is none", func(w *world) {
			w.mutate(attestations, "2:xyz:1", func(m *cbt.Mutation) { m.Set(quorum, schema.ColSignedVAA, 1000, w.plain.Append(nil)) })
		}, []fsck.Kind{fsck.KindRowUnreadable}},
		{"a cell that does not decode", func(w *world) { w.overwrite(attestations, keyOf(w.plain), publication, schema.ColNonce, to("x")) }, []fsck.Kind{fsck.KindRowUnreadable}},
		{"a column of nobody", func(w *world) {
			w.mutate(attestations, keyOf(w.plain), func(m *cbt.Mutation) { m.Set(publication, "Colour", 1000, nil) })
		}, []fsck.Kind{fsck.KindRowUnreadable}},
		{
			"another nonce", func(w *world) { w.overwrite(attestations, keyOf(w.plain), publication, schema.ColNonce, to("7")) },
			[]fsck.Kind{fsck.KindDigestWrong},
		},
		{"another payload", func(w *world) { w.overwrite(attestations, keyOf(w.plain), publication, schema.ColPayload, flip) }, []fsck.Kind{fsck.KindDigestWrong}},
		{"another emitter", func(w *world) {
			w.overwrite(attestations, keyOf(w.plain), publication, schema.ColEmitterAddress, to(strings.Repeat("ab", 32)))
		}, []fsck.Kind{fsck.KindRowKeyWrong}},
		{"another digest column", func(w *world) {
			w.overwrite(attestations, keyOf(w.plain), publication, schema.ColDigest, to(w.displaced.String()))
		}, []fsck.Kind{fsck.KindDigestWrong, fsck.KindPublicationDiffers}},
		{"another set column", func(w *world) {
			w.overwrite(attestations, keyOf(w.plain), publication, schema.ColGuardianSetIndex, to("2"))
		}, []fsck.Kind{fsck.KindPublicationDiffers}},
		{"another time of recording", func(w *world) {
			w.overwrite(attestations, keyOf(w.plain), publication, schema.ColRecordedAt, to("2026-01-01T00:00:00.000Z"))
		}, []fsck.Kind{fsck.KindPublicationDiffers}},
		{"a column is lost", func(w *world) { w.deleteColumn(attestations, keyOf(w.plain), publication, schema.ColConsistencyLevel) }, []fsck.Kind{fsck.KindPublicationDiffers}},
		{"another initiating transaction", func(w *world) {
			w.overwrite(attestations, keyOf(w.plain), publication, schema.ColInitiatingTxID, to("ee"))
		}, []fsck.Kind{fsck.KindPublicationDiffers}},
		{"a signature is damaged", func(w *world) {
			w.overwrite(attestations, keyOf(w.plain), quorum, schema.ColSignedVAA, func(b []byte) []byte { b[20] ^= 1; return b })
		}, []fsck.Kind{fsck.KindVAANotVerified, fsck.KindVersionDiffers}},
		{"other valid signatures", func(w *world) {
			w.overwrite(attestations, keyOf(w.evidenced), quorum, schema.ColSignedVAA, func([]byte) []byte {
				return vaatest.Resign(w.evidenced, w.guards[0], 0, 2, 3).Append(nil)
			})
		}, []fsck.Kind{fsck.KindVersionDiffers}},
		{"the canonical VAA is lost", func(w *world) { w.deleteColumn(attestations, keyOf(w.plain), quorum, schema.ColSignedVAA) }, []fsck.Kind{fsck.KindVersionMissing}},
		{"another VAA is lost", func(w *world) {
			key := keyOf(w.resigned)
			w.deleteColumn(attestations, key, quorum, w.columnWith(key, quorum, schema.PrefixOther))
		}, []fsck.Kind{fsck.KindVersionMissing}},
		{"an older set's VAA is made canonical", func(w *world) {
			w.mutate(attestations, keyOf(w.resigned), func(m *cbt.Mutation) {
				m.Set(quorum, schema.ColSignedVAA, 999_000, vaatest.Resign(w.resigned, w.guards[1]).Append(nil))
			})
		}, []fsck.Kind{fsck.KindCanonicalWrong, fsck.KindPublicationDiffers, fsck.KindVersionWithoutEvent}},
		{"a link is lost", func(w *world) {
			key := keyOf(w.completed)
			w.deleteColumn(attestations, key, publication, w.columnWith(key, publication, schema.PrefixTxID))
		}, []fsck.Kind{fsck.KindLinkDiffers}},
		{"a link is trusted more", func(w *world) {
			key := keyOf(w.completed)
			w.overwrite(attestations, key, publication, schema.PrefixTxID+w.completed.Digest().String()+".dd", to("chain test"))
		}, []fsck.Kind{fsck.KindLinkDiffers}},
		{"a mark is lost", func(w *world) {
			key := keyOf(w.contested)
			w.deleteColumn(attestations, key, quorum, w.columnWith(key, quorum, schema.PrefixConflict))
		}, []fsck.Kind{fsck.KindMarkDiffers}},
		{"a mark of nobody", func(w *world) {
			w.mutate(attestations, keyOf(w.plain), func(m *cbt.Mutation) {
				m.Set(publication, schema.PrefixVanished+w.displaced.String(), 1000, nil)
			})
		}, []fsck.Kind{fsck.KindMarkDiffers}},
		{"evidence is damaged", func(w *world) {
			key := keyOf(w.evidenced)
			w.overwrite(attestations, key, quorum, w.columnWith(key, quorum, schema.PrefixSignature), func(b []byte) []byte { b[9] ^= 1; return b })
		}, []fsck.Kind{fsck.KindEvidenceNotVerified}},
		{"evidence of a guardian that is not", func(w *world) {
			w.mutate(attestations, keyOf(w.plain), func(m *cbt.Mutation) {
				m.Set(quorum, schema.PrefixSignature+"0."+w.plain.Digest().String()+".4", 0, make([]byte, 65))
			})
		}, []fsck.Kind{fsck.KindEvidenceNotVerified}},
		{"evidence of another digest", func(w *world) {
			s := w.guards[0].Signature(w.displaced, 1)
			w.mutate(attestations, keyOf(w.plain), func(m *cbt.Mutation) {
				m.Set(quorum, schema.PrefixSignature+"0."+w.displaced.String()+".1", 0, s.RSV[:])
			})
		}, []fsck.Kind{fsck.KindEvidenceWithoutVersion}},

		{"a digest's index row is lost", func(w *world) { w.deleteRow(index, rowkey.Digest(w.plain.Digest().String(), w.plain.MessageID())) }, []fsck.Kind{fsck.KindIndexRowMissing}},
		{"that of a digest that vanished", func(w *world) { w.deleteRow(index, rowkey.Digest(w.observed.String(), w.vanished.MessageID())) }, []fsck.Kind{fsck.KindIndexRowMissing}},
		{"a time's index row is lost", func(w *world) { w.deleteRow(index, rowkey.Time(w.plain.Timestamp, w.plain.MessageID())) }, []fsck.Kind{fsck.KindIndexRowMissing}},
		{"a transaction's index row is lost", func(w *world) { w.deleteRow(index, rowkey.Tx("aa", w.plain.MessageID())) }, []fsck.Kind{fsck.KindIndexRowMissing}},
		{"an index row of another transaction", func(w *world) {
			w.mutate(index, rowkey.Tx("ff", w.plain.MessageID()), func(m *cbt.Mutation) { m.Set(schema.Digests, w.plain.Digest().String(), 1000, nil) })
		}, []fsck.Kind{fsck.KindIndexRowWithoutMessage}},
		{"an index row of another digest", func(w *world) {
			w.mutate(index, rowkey.Tx("aa", w.plain.MessageID()), func(m *cbt.Mutation) { m.Set(schema.Digests, w.displaced.String(), 1000, nil) })
		}, []fsck.Kind{fsck.KindIndexRowWithoutMessage}},
		{"an index row of no message", func(w *world) {
			id := w.plain.MessageID()
			id.Sequence++
			w.mutate(index, rowkey.Time(5, id), func(m *cbt.Mutation) { m.Set(schema.Digests, w.plain.Digest().String(), 1000, nil) })
		}, []fsck.Kind{fsck.KindIndexRowWithoutMessage}},
		{"an index key that is none", func(w *world) {
			w.mutate(index, "tx:aa", func(m *cbt.Mutation) { m.Set(schema.Digests, w.plain.Digest().String(), 1000, nil) })
		}, []fsck.Kind{fsck.KindIndexRowUnreadable}},
		{"an index cell that is none", func(w *world) {
			w.mutate(index, rowkey.Tx("ff", w.plain.MessageID()), func(m *cbt.Mutation) { m.Set(schema.Digests, "xyz", 1000, nil) })
		}, []fsck.Kind{fsck.KindIndexRowUnreadable}},

		{
			"a batch is not applied", func(w *world) { w.deleteColumn(journal, offset(w.live), schema.Batch, schema.ColApplied) },
			[]fsck.Kind{fsck.KindBatchNotApplied, fsck.KindStreamEntryWrong},
		},
		{"a batch without rows is not applied", func(w *world) {
			w.deleteColumn(journal, offset(1), schema.Batch, schema.ColApplied)
			w.deleteRow(attestations, keyOf(w.evidenced))
		}, []fsck.Kind{fsck.KindBatchNotApplied, fsck.KindStreamEntryWrong}},
		{"a batch below the watermark is not applied", func(w *world) {
			w.deleteColumn(journal, offset(w.live), schema.Batch, schema.ColApplied)
			if err := w.store.RaiseWatermark(w.t.Context(), w.end); err != nil {
				w.t.Fatal(err)
			}
		}, []fsck.Kind{fsck.KindBatchNotApplied, fsck.KindStreamEntryWrong, fsck.KindWatermarkAhead}},
		{"the watermark is beyond the end", func(w *world) {
			if err := w.store.RaiseWatermark(w.t.Context(), w.end+1); err != nil {
				w.t.Fatal(err)
			}
		}, []fsck.Kind{fsck.KindWatermarkAhead}},
		{
			"a batch of the journal is lost", func(w *world) { w.deleteRow(journal, offset(w.history)) },
			[]fsck.Kind{fsck.KindJournalHole, fsck.KindRowWithoutEvent, fsck.KindStreamAhead},
		},
		{
			"the last batch of the journal is lost", func(w *world) { w.deleteRow(journal, offset(w.live)) },
			[]fsck.Kind{fsck.KindRowWithoutEvent, fsck.KindStreamAhead},
		},
		{"two batches of the journal are lost", func(w *world) {
			for b, err := range w.store.Batches(w.t.Context(), w.history) {
				if err != nil {
					w.t.Fatal(err)
				}
				if b.Class == archive.ClassHistory {
					w.deleteRow(journal, offset(b.Offset))
				}
			}
		}, []fsck.Kind{fsck.KindJournalHole, fsck.KindRowWithoutEvent, fsck.KindStreamAhead}},
		{
			"an event in the middle of the journal is lost", func(w *world) { w.deleteColumn(journal, offset(w.history), schema.Event, offset(w.history)) },
			[]fsck.Kind{fsck.KindBatchUnreadable, fsck.KindRowWithoutEvent, fsck.KindStreamAhead},
		},
		{"a journal key that is none", func(w *world) {
			w.mutate(journal, "x", func(m *cbt.Mutation) { m.Set(schema.Batch, schema.ColCount, 0, []byte("1")) })
		}, []fsck.Kind{fsck.KindBatchUnreadable}},
		{
			"an event of the journal is lost", func(w *world) { w.deleteColumn(journal, offset(w.live), schema.Event, offset(w.live)) },
			[]fsck.Kind{fsck.KindBatchUnreadable, fsck.KindRowWithoutEvent, fsck.KindStreamAhead},
		},
		{"a batch inside another", func(w *world) {
			w.copyBatch(w.live, w.live+1, func(b *archive.Batch) { b.Events = b.Events[1:] })
		}, []fsck.Kind{fsck.KindJournalOverlap}},
		{
			"a batch twice", func(w *world) { w.copyBatch(w.live, w.end, func(*archive.Batch) {}) },
			[]fsck.Kind{fsck.KindBatchNotApplied, fsck.KindBatchRepeated, fsck.KindEventRepeated},
		},
		{"an event without its bytes", func(w *world) { w.deleteColumn(journal, offset(w.live), schema.Bytes, offset(w.live)) }, []fsck.Kind{fsck.KindEventBytesMissing}},
		{
			"other bytes in the journal", func(w *world) { w.overwrite(journal, offset(w.live), schema.Bytes, offset(w.live), flip) },
			[]fsck.Kind{fsck.KindEventInvalid, fsck.KindIndexRowMissing, fsck.KindStreamEntryWrong, fsck.KindVersionDiffers},
		},
		{"a decision against the rule", func(w *world) {
			w.overwrite(journal, offset(1), schema.Event, offset(1), func(b []byte) []byte {
				return []byte(strings.Replace(string(b), `"canonical":true`, `"canonical":false`, 1))
			})
		}, []fsck.Kind{fsck.KindDecisionWrong, fsck.KindPublicationDiffers, fsck.KindStreamEntryWrong, fsck.KindVersionDiffers}},
		{"a time before its predecessor's", func(w *world) {
			w.overwrite(journal, offset(w.live), schema.Batch, schema.ColWallTime, to("2026-01-01T00:00:00.000Z"))
		}, []fsck.Kind{fsck.KindPublicationDiffers, fsck.KindStreamEntryWrong, fsck.KindVersionDiffers, fsck.KindWallTimeDecreases}},
	} {
		if testing.Short() && i%5 != 0 {
			continue // each is a store of its own
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := onBigtable(t)
			c.damage(w)
			cfg := w.config()
			if i%2 == 0 {
				cfg.MemoryBytes = 4000 // in many passes
			}
			expect(t, run(t, cfg), c.want...)
		})
	}
}

// copyBatch puts a changed copy of a batch at another offset, as no writer may.
func (w *world) copyBatch(from, to archive.Offset, change func(*archive.Batch)) {
	w.t.Helper()
	for b, err := range w.store.Batches(w.t.Context(), from) {
		if err != nil {
			w.t.Fatal(err)
		}
		change(&b)
		b.Offset = to
		for i := range b.Events {
			b.Events[i].Offset = to + archive.Offset(i)
		}
		if err := w.store.Append(w.t.Context(), b); err != nil {
			w.t.Fatal(err)
		}
		return
	}
}

// TestBytesDropped: a journal that has dropped its bytes after their retention is
// in order, and what is wrong in a row is found all the same.
func TestBytesDropped(t *testing.T) {
	w := onBigtable(t)
	for o := archive.Offset(1); o < w.end; o++ {
		for b, err := range w.store.Batches(t.Context(), o) {
			if err != nil {
				t.Fatal(err)
			}
			w.deleteColumn(schema.Journal, offset(b.Offset), schema.Bytes, offset(o))
			break
		}
	}
	cfg := w.config()
	cfg.Now = func() time.Time { return time.Now().Add(8 * 24 * time.Hour) }
	expect(t, run(t, cfg))
	w.overwrite(schema.Attestations, keyOf(w.plain), schema.QuorumState, schema.ColSignedVAA, func([]byte) []byte {
		return vaatest.Equivocate(w.plain, w.guards[0]).Append(nil)
	})
	w.deleteRow(schema.Index, rowkey.Time(w.evidenced.Timestamp, w.evidenced.MessageID()))
	expect(t, run(t, cfg), fsck.KindDigestWrong, fsck.KindVersionMissing, fsck.KindVersionWithoutEvent, fsck.KindIndexRowMissing)
}

func TestFindingsAreBounded(t *testing.T) {
	w := onBigtable(t)
	lister := w.store.(interface {
		IndexRows(context.Context) iter.Seq2[archive.IndexRow, error]
	})
	for row, err := range lister.IndexRows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		w.deleteRow(schema.Index, row.Key)
	}
	all := run(t, w.config())
	cfg := w.config()
	cfg.MaxFindings = 3
	r := run(t, cfg)
	if len(r.Findings) != 3 || r.FindingsTotal != all.FindingsTotal || all.FindingsTotal != len(all.Findings) {
		t.Errorf("%d of %d findings are kept, want 3 of %d", len(r.Findings), r.FindingsTotal, len(all.Findings))
	}
}

func TestStoreFails(t *testing.T) {
	w := onBigtable(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fsck.Run(ctx, w.config()); !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("got %v, want that the context was cancelled", err)
	}
	cfg := w.config()
	cfg.Sets = vaatest.Sets(vaa.Mainnet, w.guards...)
	if _, err := fsck.Run(t.Context(), cfg); err == nil {
		t.Error("guardian sets of another network are taken")
	}
	cfg = w.config()
	cfg.Store = struct{ archive.Store }{w.store}
	if _, err := fsck.Run(t.Context(), cfg); err == nil {
		t.Error("a store that cannot list its index is taken")
	}
}
