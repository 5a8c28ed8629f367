// Package bigtable is the adapter from the archive's port to Cloud Bigtable. It
// speaks the same API to the cloud, to an emulator and to the embedded server.
//
// A store is the tables <network>.g<generation>.{attestations,index,journal,state};
// the table <network>.store says which generation is open. Package schema names
// everything that is in them, package rowkey builds their keys.
package bigtable

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// Store is an archive in Cloud Bigtable. Its methods may be called concurrently.
//
// The client's app profile must use single-cluster routing and allow
// transactional writes: appends are conditional, and what one call wrote the next
// must read.
type Store struct {
	info archive.StoreInfo

	attestations *bigtable.Table
	index        *bigtable.Table
	journal      *bigtable.Table
	state        *bigtable.Table
	store        *bigtable.Table

	// boundary is the end of a batch that was read or appended: there a batch
	// begins, or the journal ends, so that no look behind it is needed. Any value
	// ever set is right.
	boundary atomic.Uint64
}

var _ archive.Store = (*Store)(nil)

// Open opens the store of a network, in the generation that its store table
// names. Errors: archive.ErrNoStore when none was created, archive.ErrNewerSchema
// when the program is too old for it, archive.ErrSealed while it is being moved.
func Open(ctx context.Context, client *bigtable.Client, network vaa.Network) (*Store, error) {
	table := client.Open(schema.StoreTableID(network.String()))
	c, err := readCurrent(ctx, table)
	if err != nil {
		return nil, fmt.Errorf("open the store of %s: %w", network, err)
	}
	if c.schema > schema.Version {
		return nil, fmt.Errorf("open the store of %s: it has schema %d, this program knows up to %d; use a newer attestry: %w",
			network, c.schema, schema.Version, archive.ErrNewerSchema)
	}
	if c.state != stateOpen {
		return nil, fmt.Errorf("open the store of %s: generation %d is %q: %w", network, c.generation, c.state, archive.ErrSealed)
	}
	return newStore(client, network, c), nil
}

func newStore(client *bigtable.Client, network vaa.Network, c current) *Store {
	open := func(name string) *bigtable.Table {
		return client.Open(schema.TableID(network.String(), c.generation, name))
	}
	s := &Store{
		info:         archive.StoreInfo{Network: network, Generation: c.generation, Epoch: c.epoch},
		attestations: open(schema.Attestations),
		index:        open(schema.Index),
		journal:      open(schema.Journal),
		state:        open(schema.State),
		store:        client.Open(schema.StoreTableID(network.String())),
	}
	s.boundary.Store(1)
	return s
}

// Info tells which store this is.
func (s *Store) Info() archive.StoreInfo { return s.info }

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

// cellTime is the timestamp of cells that an event writes: its offset in
// milliseconds, so that a later event shadows an earlier one whatever order they
// are written in.
func cellTime(o archive.Offset) bigtable.Timestamp { return bigtable.Timestamp(o) * 1000 }

func offsetOf(t bigtable.Timestamp) archive.Offset { return archive.Offset(t / 1000) }

const timeFormat = "2006-01-02T15:04:05.000Z07:00" // RFC 3339 with milliseconds

func formatTime(t time.Time) string { return t.UTC().Format(timeFormat) }

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

// addTo sets the row's cells, each in place of the one before.
func (c current) addTo(m *bigtable.Mutation) {
	set := func(column, value string) {
		m.DeleteCellsInColumn(schema.Store, column)
		m.Set(schema.Store, column, 0, []byte(value))
	}
	set(schema.ColGeneration, strconv.FormatUint(c.generation, 10))
	set(schema.ColEpoch, strconv.FormatUint(c.epoch, 10))
	set(schema.ColState, c.state)
	set(schema.ColSchema, strconv.Itoa(c.schema))
}

// createCurrent writes the store row if there is none, and reports whether it
// did.
func createCurrent(ctx context.Context, table *bigtable.Table, c current) (bool, error) {
	m := bigtable.NewMutation()
	c.addTo(m)
	var exists bool
	err := table.Apply(ctx, schema.RowCurrent, bigtable.NewCondMutation(bigtable.PassAllFilter(), nil, m), bigtable.GetCondMutationResult(&exists))
	if err != nil {
		return false, fmt.Errorf("write the store row: %w", err)
	}
	return !exists, nil
}
