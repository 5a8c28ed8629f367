package bigtable

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// ErrMove says that a move cannot be made as asked; the text says why.
var ErrMove = errors.New("the store cannot be moved so")

// Moved counts what a move has brought over.
type Moved struct {
	Events   uint64 // of the journal, all of which are applied
	State    int    // rows of the table state
	Evidence int    // signatures beyond those of stored VAAs
}

// Move makes a new generation of a network's store and opens it as a new epoch.
// from is the generation whose journal it takes: the open one, or one whose tables
// were restored from a backup; to must be the next after the open one. Tables of the
// new generation that are missing are made.
//
// Only the journal up to its first hole, the state that does not follow from it, and
// signatures are copied; rows and index are made from the journal. So it does not
// matter if the tables of from do not agree with each other, as those of a backup or
// of a replica that lags do not. Positions of sources are not taken over: what they
// deliver again is a duplicate.
//
// The store is sealed first: writers settle nothing until it is open again
// (docs/protocol.md, rules 25 to 27). A move that was interrupted is finished by the
// same call; once it is done, that call does nothing. Errors: ErrMove,
// archive.ErrNoStore.
func Move(ctx context.Context, admin *bigtable.AdminClient, client *bigtable.Client, network vaa.Network, from, to uint64) (Moved, error) {
	table := client.Open(schema.StoreTableID(network.String()))
	c, err := readCurrent(ctx, table)
	switch {
	case err != nil:
		return Moved{}, fmt.Errorf("move the store of %s: %w", network, err)
	case c.generation == to && c.state == stateOpen:
		return Moved{}, nil
	case to != c.generation+1:
		return Moved{}, fmt.Errorf("%w: generation %d of %s is current, so the next is %d, not %d", ErrMove, c.generation, network, c.generation+1, to)
	case from == to:
		return Moved{}, fmt.Errorf("%w: from generation %d to itself", ErrMove, to)
	case c.schema > schema.Version:
		return Moved{}, fmt.Errorf("move the store of %s with schema %d: %w", network, c.schema, archive.ErrNewerSchema)
	}
	sealed := c
	sealed.state = stateSealing
	if err := replaceCurrent(ctx, table, c, sealed); err != nil {
		return Moved{}, err
	}
	for id, t := range tables(network, to) {
		if err := createTable(ctx, admin, id, t); err != nil {
			return Moved{}, err
		}
	}
	switch diffs, err := Diff(ctx, admin, network, to); {
	case err != nil:
		return Moved{}, err
	case len(diffs) > 0:
		return Moved{}, fmt.Errorf("%w: generation %d differs from the schema: %s", ErrMove, to, strings.Join(diffs, "; "))
	}
	opened := current{generation: to, epoch: c.epoch + 1, state: stateOpen, schema: schema.Version}
	source := newStore(client, network, current{generation: from, epoch: c.epoch})
	m := mover{from: source, to: newStore(client, network, opened)}
	if err := m.run(ctx); err != nil {
		return m.moved, fmt.Errorf("move generation %d of %s to %d: %w; the store is sealed, repeat the command to go on", from, network, to, err)
	}
	return m.moved, replaceCurrent(ctx, table, sealed, opened)
}

// replaceCurrent sets the store row if it is what it was. A reply that was lost shows
// as no error: then it is what it should be.
func replaceCurrent(ctx context.Context, table *bigtable.Table, was, is current) error {
	if was == is {
		return nil
	}
	m := bigtable.NewMutation()
	is.addTo(m)
	cell := func(column, value string, then bigtable.Filter) bigtable.Filter {
		condition := bigtable.ChainFilters(bigtable.FamilyFilter(schema.Store), bigtable.ColumnFilter(column), bigtable.LatestNFilter(1), bigtable.ValueFilter(value))
		return bigtable.ConditionFilter(condition, then, bigtable.BlockAllFilter())
	}
	same := cell(schema.ColGeneration, strconv.FormatUint(was.generation, 10),
		cell(schema.ColEpoch, strconv.FormatUint(was.epoch, 10), cell(schema.ColState, was.state, bigtable.PassAllFilter())))
	if err := table.Apply(ctx, schema.RowCurrent, bigtable.NewCondMutation(same, m, nil)); err != nil {
		return fmt.Errorf("write the store row: %w", err)
	}
	now, err := readCurrent(ctx, table)
	if err == nil && now != is {
		err = fmt.Errorf("%w: another moves it, generation %d is %q now", ErrMove, now.generation, now.state)
	}
	return err
}

// mover fills the tables of a generation from those of another. Each of its steps may
// be repeated.
type mover struct {
	from, to *Store
	moved    Moved
}

func (m *mover) run(ctx context.Context) error {
	if err := m.journal(ctx); err != nil {
		return err
	}
	if err := m.state(ctx); err != nil {
		return err
	}
	return m.evidence(ctx)
}

// journal copies the batches up to the first hole, applies them, and says so only
// then, as a writer does.
func (m *mover) journal(ctx context.Context) error {
	end := archive.Offset(1)
	for b, err := range m.from.Batches(ctx, 1) {
		if err != nil {
			return err
		}
		if err := missingBytes(&b); err != nil {
			return err
		}
		if err := m.append(ctx, b); err != nil {
			return err
		}
		if err := errors.Join(m.to.Apply(ctx, b), m.to.MarkApplied(ctx, b.Offset)); err != nil {
			return err
		}
		m.moved.Events += uint64(len(b.Events))
		end = b.End()
	}
	for b, err := range m.to.Batches(ctx, end) {
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: the new generation holds a batch at offset %d that the old one does not have; drop its tables", ErrMove, b.Offset)
	}
	return m.to.RaiseWatermark(ctx, end)
}

// append appends a batch, or finds that an earlier attempt did.
func (m *mover) append(ctx context.Context, b archive.Batch) error {
	err := m.to.Append(ctx, b)
	if !errors.Is(err, archive.ErrOffsetTaken) {
		return err
	}
	for there, err := range m.to.Batches(ctx, b.Offset) {
		if err == nil && (there.ID != b.ID || there.Offset != b.Offset) {
			err = fmt.Errorf("%w: the new generation holds another batch at offset %d; drop its tables", ErrMove, b.Offset)
		}
		return err
	}
	return err
}

// missingBytes refuses a batch whose bytes have been dropped: its rows cannot be made
// from the journal.
func missingBytes(b *archive.Batch) error {
	for i := range b.Events {
		if e := &b.Events[i]; e.Bytes == nil && (e.Signed() || e.Kind == archive.KindObserved) {
			return fmt.Errorf("%w: the journal has no bytes of the event at offset %d any more", ErrMove, e.Offset)
		}
	}
	return nil
}

// state copies the rows of the table state that do not follow from the journal.
func (m *mover) state(ctx context.Context) error {
	rows := map[string]*bigtable.Mutation{}
	put := func() error {
		m.moved.State += len(rows)
		err := applyBulk(ctx, m.to.state, rows)
		clear(rows)
		return err
	}
	err := m.from.readRows(ctx, m.from.state, bigtable.InfiniteRange(""), func(row bigtable.Row) (bool, error) {
		if follows(row.Key()) {
			return true, nil
		}
		for family, items := range row {
			for _, item := range items {
				mutationOf(rows, row.Key()).Set(family, qualifier(item), item.Timestamp, item.Value)
			}
		}
		if len(rows) < bulkSize {
			return true, nil
		}
		err := put()
		return err == nil, err
	}, bigtable.RowFilter(bigtable.LatestNFilter(1)))
	return errors.Join(err, put())
}

// follows reports whether a row of state is about the journal of its generation, or
// follows from it.
func follows(key string) bool {
	for _, prefix := range []string{rowWatermark, rowClock, prefixCursor, prefixRollup} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// evidence copies the signatures beyond those of stored VAAs, which no event tells,
// of the messages that are there.
func (m *mover) evidence(ctx context.Context) error {
	columns := archive.Columns{Families: []string{schema.QuorumState}, Qualifiers: []string{schema.PrefixSignature}}
	found := map[vaa.MessageID][]archive.Evidence{}
	put := func() error {
		var ids []vaa.MessageID
		for id := range found {
			ids = append(ids, id)
		}
		there, err := m.to.GetAll(ctx, ids, archive.Columns{Qualifiers: []string{schema.ColDigest}})
		if err != nil {
			return err
		}
		var all []archive.Evidence
		for id := range there {
			all = append(all, found[id]...)
		}
		clear(found)
		m.moved.Evidence += len(all)
		return m.to.PutEvidence(ctx, all)
	}
	for r, err := range m.from.Scan(ctx, archive.Range{}, columns) {
		if status.Code(err) == codes.NotFound {
			return nil // of a backup, journal and state may be all that was restored
		}
		if err != nil {
			return err
		}
		found[r.ID] = r.Evidence
		if len(found) == archive.MaxBatchItems {
			if err := put(); err != nil {
				return err
			}
		}
	}
	return put()
}
