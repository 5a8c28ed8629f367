package fsck_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/internal/fsck"
	"github.com/attestry/attestry/vaa"
)

// damaged is the model with a hand between it and its readers.
type damaged struct {
	*memarchive.Store
	row   func(*archive.Record) bool // false: it is not there
	index func(*archive.IndexRow) bool
	batch func(*archive.Batch)
}

func (d *damaged) Scan(ctx context.Context, r archive.Range, c archive.Columns) iter.Seq2[archive.Record, error] {
	return filtered(d.Store.Scan(ctx, r, c), d.row)
}

func (d *damaged) Get(ctx context.Context, id vaa.MessageID, c archive.Columns) (archive.Record, error) {
	r, err := d.Store.Get(ctx, id, c)
	if err == nil && d.row != nil && !d.row(&r) {
		err = archive.ErrNotFound
	}
	return r, err
}

func (d *damaged) IndexRows(ctx context.Context) iter.Seq2[archive.IndexRow, error] {
	return filtered(d.Store.IndexRows(ctx), d.index)
}

func (d *damaged) Batches(ctx context.Context, from archive.Offset) iter.Seq2[archive.Batch, error] {
	return filtered(d.Store.Batches(ctx, from), func(b *archive.Batch) bool {
		if d.batch != nil {
			d.batch(b)
		}
		return true
	})
}

func filtered[T any](all iter.Seq2[T, error], keep func(*T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range all {
			if err == nil && keep != nil && !keep(&v) {
				continue
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// TestDamageOfTheModel plants in the reference model what can be seen through the
// port.
func TestDamageOfTheModel(t *testing.T) {
	w := onModel(t)
	of := func(v *vaa.VAA, change func(*archive.Record)) func(*archive.Record) bool {
		return func(r *archive.Record) bool {
			if r.ID == v.MessageID() {
				change(r)
			}
			return true
		}
	}
	for _, c := range []struct {
		name    string
		damaged damaged
		want    []fsck.Kind
	}{
		{"none", damaged{}, nil},
		{"a row is lost", damaged{row: func(r *archive.Record) bool { return r.ID != w.plain.MessageID() }}, []fsck.Kind{fsck.KindRowMissing}},
		{
			"a version is lost",
			damaged{row: of(w.resigned, func(r *archive.Record) { r.Versions = r.Versions[:1] })},
			[]fsck.Kind{fsck.KindVersionMissing},
		},
		{"the losing digest is canonical", damaged{row: of(w.contested, func(r *archive.Record) {
			for i := range r.Versions {
				r.Versions[i].Canonical = r.Versions[i].Digest == w.displaced
			}
			slices.SortFunc(r.Versions, func(a, b archive.Version) int {
				if a.Canonical {
					return -1
				}
				return 1
			})
		})}, []fsck.Kind{fsck.KindCanonicalWrong, fsck.KindDigestWrong, fsck.KindPublicationDiffers}},
		{"all links are lost", damaged{row: of(w.completed, func(r *archive.Record) { r.Links = nil })}, []fsck.Kind{fsck.KindLinkDiffers}},
		{"a mark is lost", damaged{row: of(w.vanished, func(r *archive.Record) { r.VanishedMarks = nil })}, []fsck.Kind{fsck.KindMarkDiffers}},
		{
			"an index row is lost",
			damaged{index: func(r *archive.IndexRow) bool { return r.Key != rowkey.Time(w.plain.Timestamp, w.plain.MessageID()) }},
			[]fsck.Kind{fsck.KindIndexRowMissing},
		},
		{"an index row names another transaction", damaged{index: func(r *archive.IndexRow) bool {
			r.Key = strings.Replace(r.Key, "tx:aa:", "tx:ab:", 1)
			return true
		}}, []fsck.Kind{fsck.KindIndexRowMissing, fsck.KindIndexRowWithoutMessage}},
		{
			"a batch is not applied",
			damaged{batch: func(b *archive.Batch) { b.Applied = b.Offset != w.live }},
			[]fsck.Kind{fsck.KindBatchNotApplied, fsck.KindStreamEntryWrong},
		},
		{"two batches of one id", damaged{batch: func(b *archive.Batch) { b.ID = "same" }}, []fsck.Kind{fsck.KindBatchRepeated}},
		{"a batch of no class", damaged{batch: func(b *archive.Batch) {
			if b.Offset == w.history {
				b.Writer = ""
			}
		}}, []fsck.Kind{fsck.KindEventInvalid}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.damaged.Store = w.store.(*memarchive.Store)
			cfg := w.config()
			cfg.Store = &c.damaged
			expect(t, run(t, cfg), c.want...)
		})
	}
}
