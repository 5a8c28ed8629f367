package bigtable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
)

// bulkSize bounds the rows of one bulk request.
const bulkSize = 200

// Apply puts the cells of a batch's events and their index rows, each in one bulk
// of idempotent mutations.
func (s *Store) Apply(ctx context.Context, b archive.Batch) error {
	rows := map[string]*bigtable.Mutation{}
	index := map[string]*bigtable.Mutation{}
	for i := range b.Events {
		e := &b.Events[i]
		if err := addEvent(mutationOf(rows, rowkey.Of(e.ID)), e); err != nil {
			return err
		}
		cells, err := archive.IndexCells(s.info.Network, e)
		if err != nil {
			return err
		}
		for _, c := range cells {
			mutationOf(index, c.Key).Set(schema.Digests, c.Digest.String(), cellTime(e.Offset), nil)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return applyBulk(ctx, s.attestations, rows) })
	g.Go(func() error { return applyBulk(ctx, s.index, index) })
	if err := g.Wait(); err != nil {
		return fmt.Errorf("apply the batch at offset %d: %w", b.Offset, err)
	}
	return nil
}

// PutEvidence keeps signatures at timestamp 0: they are facts, not decisions, and
// no event shadows them.
func (s *Store) PutEvidence(ctx context.Context, evidence []archive.Evidence) error {
	rows := map[string]*bigtable.Mutation{}
	for i := range evidence {
		addEvidence(mutationOf(rows, rowkey.Of(evidence[i].ID)), &evidence[i])
	}
	if err := applyBulk(ctx, s.attestations, rows); err != nil {
		return fmt.Errorf("keep signatures: %w", err)
	}
	return nil
}

func mutationOf(rows map[string]*bigtable.Mutation, key string) *bigtable.Mutation {
	m := rows[key]
	if m == nil {
		m = bigtable.NewMutation()
		rows[key] = m
	}
	return m
}

// applyBulk writes rows in the order of their keys. Nil means that each of them
// has a definite OK.
func applyBulk(ctx context.Context, table *bigtable.Table, rows map[string]*bigtable.Mutation) error {
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(rows)), bulkSize) {
		muts := make([]*bigtable.Mutation, len(keys))
		for i, key := range keys {
			muts[i] = rows[key]
		}
		errs, err := table.ApplyBulk(ctx, keys, muts)
		if err != nil {
			return err
		}
		for i, err := range errs {
			if err != nil {
				return fmt.Errorf("%d of %d rows were refused, among them %s: %w", countErrors(errs), len(keys), keys[i], err)
			}
		}
	}
	return nil
}

func countErrors(errs []error) int {
	return len(slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return errors.Is(err, nil) }))
}
