package bigtable

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
)

// States of a store.
const (
	stateOpen    = "open"
	stateSealing = "sealing" // a move or restore is under way: nothing may be settled
)

// current is the row of the store table: which generation is the one to write to.
type current struct {
	generation uint64
	epoch      uint64
	state      string
	schema     int
}

func readCurrent(ctx context.Context, table *bigtable.Table) (current, error) {
	row, err := table.ReadRow(ctx, schema.RowCurrent, bigtable.RowFilter(bigtable.LatestNFilter(1)))
	if status.Code(errors.Unwrap(err)) == codes.NotFound || status.Code(err) == codes.NotFound || err == nil && row == nil {
		return current{}, fmt.Errorf("no table or row says which generation is open; create it with `attestry schema create`: %w", archive.ErrNoStore)
	}
	if err != nil {
		return current{}, fmt.Errorf("read the store row: %w", err)
	}
	cells := map[string]string{}
	for _, item := range row[schema.Store] {
		cells[qualifier(item)] = string(item.Value)
	}
	var c current
	var errs [3]error
	c.generation, errs[0] = strconv.ParseUint(cells[schema.ColGeneration], 10, 64)
	c.epoch, errs[1] = strconv.ParseUint(cells[schema.ColEpoch], 10, 64)
	c.schema, errs[2] = strconv.Atoi(cells[schema.ColSchema])
	c.state = cells[schema.ColState]
	if err := errors.Join(errs[:]...); err != nil {
		return current{}, fmt.Errorf("the store row cannot be read: %w", err)
	}
	return c, nil
}

// createCurrent writes the store row if there is none, and reports whether it
// did.
func createCurrent(ctx context.Context, table *bigtable.Table, c current) (bool, error) {
	m := bigtable.NewMutation()
	set := func(column, value string) { m.Set(schema.Store, column, 0, []byte(value)) }
	set(schema.ColGeneration, strconv.FormatUint(c.generation, 10))
	set(schema.ColEpoch, strconv.FormatUint(c.epoch, 10))
	set(schema.ColState, c.state)
	set(schema.ColSchema, strconv.Itoa(c.schema))
	var exists bool
	err := table.Apply(ctx, schema.RowCurrent, bigtable.NewCondMutation(bigtable.PassAllFilter(), nil, m), bigtable.GetCondMutationResult(&exists))
	if err != nil {
		return false, fmt.Errorf("write the store row: %w", err)
	}
	return !exists, nil
}

// CheckOpen reports whether the store row still names this generation as open.
func (s *Store) CheckOpen(ctx context.Context) error {
	c, err := readCurrent(ctx, s.store)
	if err != nil {
		return err
	}
	if c.generation != s.info.Generation || c.state != stateOpen {
		return fmt.Errorf("generation %d was opened, but generation %d is %q: %w", s.info.Generation, c.generation, c.state, archive.ErrSealed)
	}
	return nil
}
