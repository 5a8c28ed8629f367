// Package bigtable is the adapter from the archive's port to Cloud Bigtable. It
// speaks the same API to the cloud, to an emulator and to the embedded server.
//
// A store is the tables <network>.g<generation>.{attestations,index,journal,state};
// the table <network>.store says which generation is open. Package schema names
// everything that is in them, package rowkey builds their keys.
package bigtable

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"

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
	open := func(name string) *bigtable.Table {
		return client.Open(schema.TableID(network.String(), c.generation, name))
	}
	s := &Store{
		info:         archive.StoreInfo{Network: network, Generation: c.generation, Epoch: c.epoch},
		attestations: open(schema.Attestations),
		index:        open(schema.Index),
		journal:      open(schema.Journal),
		state:        open(schema.State),
		store:        table,
	}
	s.boundary.Store(1)
	return s, nil
}

// Info tells which store this is.
func (s *Store) Info() archive.StoreInfo { return s.info }

// cellTime is the timestamp of cells that an event writes: its offset in
// milliseconds, so that a later event shadows an earlier one whatever order they
// are written in.
func cellTime(o archive.Offset) bigtable.Timestamp { return bigtable.Timestamp(o) * 1000 }

func offsetOf(t bigtable.Timestamp) archive.Offset { return archive.Offset(t / 1000) }

const timeFormat = "2006-01-02T15:04:05.000Z07:00" // RFC 3339 with milliseconds

func formatTime(t time.Time) string { return t.UTC().Format(timeFormat) }
