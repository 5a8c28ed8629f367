package data

import (
	"context"
	"encoding/binary"
	"strings"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/emulator/storage"
)

// MutateRow writes to one row, all of it or nothing.
func (s *Server) MutateRow(ctx context.Context, req *btpb.MutateRowRequest) (*btpb.MutateRowResponse, error) {
	t, err := s.table(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return nil, err
	}
	if err := checkCount(len(req.GetMutations())); err != nil {
		return nil, err
	}
	if err := checkMutations(t, req.GetRowKey(), req.GetMutations()); err != nil {
		return nil, err
	}
	row := string(req.GetRowKey())
	err = s.engine.Update(t, []string{row}, accessOf(req.GetMutations()), func(tx *storage.Tx) error {
		return s.mutate(tx, t, row, req.GetMutations(), s.micros())
	})
	if err != nil {
		return nil, internal(err)
	}
	return &btpb.MutateRowResponse{}, nil
}

func checkCount(n int) error {
	switch {
	case n == 0:
		return invalid("No mutations provided")
	case n > maxMutations:
		return invalid("Too many mutations: %d provided; limit %d", n, maxMutations)
	}
	return nil
}

// MutateRows writes to several rows, each of its entries all or nothing, and
// answers for each. Entries that are valid become durable together.
func (s *Server) MutateRows(req *btpb.MutateRowsRequest, stream btpb.Bigtable_MutateRowsServer) error {
	t, err := s.table(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return err
	}
	if len(req.GetEntries()) == 0 {
		return invalid("No entries provided")
	}
	n := 0
	for _, e := range req.GetEntries() {
		n += len(e.GetMutations())
	}
	if n > maxMutations {
		return checkCount(n)
	}
	res := &btpb.MutateRowsResponse{Entries: make([]*btpb.MutateRowsResponse_Entry, len(req.GetEntries()))}
	var good []*btpb.MutateRowsRequest_Entry
	var rows []string
	access := storage.SetOnly
	for i, e := range req.GetEntries() {
		err := checkMutations(t, e.GetRowKey(), e.GetMutations())
		if err == nil && len(e.GetMutations()) == 0 {
			err = checkCount(0)
		}
		res.Entries[i] = &btpb.MutateRowsResponse_Entry{Index: int64(i), Status: okStatus(err)}
		if err != nil {
			continue
		}
		good, rows = append(good, e), append(rows, string(e.GetRowKey()))
		access = access || accessOf(e.GetMutations())
	}
	if len(good) > 0 {
		now := s.micros()
		err := s.engine.Update(t, rows, access, func(tx *storage.Tx) error {
			for i, e := range good {
				if err := s.mutate(tx, t, rows[i], e.GetMutations(), now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return internal(err)
		}
	}
	return stream.Send(res)
}

func okStatus(err error) *statuspb.Status {
	if err == nil {
		return &statuspb.Status{Code: int32(codes.OK)}
	}
	p := status.Convert(err).Proto()
	p.Message = strings.ToValidUTF8(p.Message, "\uFFFD") // else the whole answer could not be sent
	return p
}

func accessOf(mutations []*btpb.Mutation) storage.Access {
	for _, m := range mutations {
		if _, ok := m.GetMutation().(*btpb.Mutation_SetCell_); !ok {
			return storage.ReadAndWrite
		}
	}
	return storage.SetOnly
}

// mutate writes mutations that were checked, in their order.
func (s *Server) mutate(tx *storage.Tx, t *storage.Table, row string, mutations []*btpb.Mutation, now int64) error {
	tx.Row(row)
	for _, m := range mutations {
		var err error
		switch m := m.GetMutation().(type) {
		case *btpb.Mutation_SetCell_:
			c := m.SetCell
			at := c.GetTimestampMicros()
			if at == serverTime {
				at = now
			}
			err = tx.Set(t.Family(c.GetFamilyName()), c.GetColumnQualifier(), at, c.GetValue())
		case *btpb.Mutation_AddToCell_:
			c := m.AddToCell
			tx.Record(&btpb.Mutation{Mutation: m})
			err = aggregate(tx, t, c.GetFamilyName(), c.GetColumnQualifier(), c.GetTimestamp(), c.GetInput().GetIntValue())
		case *btpb.Mutation_MergeToCell_:
			c := m.MergeToCell
			tx.Record(&btpb.Mutation{Mutation: m})
			state := int64(binary.BigEndian.Uint64(c.GetInput().GetRawValue()))
			err = aggregate(tx, t, c.GetFamilyName(), c.GetColumnQualifier(), c.GetTimestamp(), state)
		case *btpb.Mutation_DeleteFromColumn_:
			d := m.DeleteFromColumn
			r := d.GetTimeRange()
			err = tx.DeleteColumn(t.Family(d.GetFamilyName()), d.GetColumnQualifier(), r.GetStartTimestampMicros(), r.GetEndTimestampMicros())
		case *btpb.Mutation_DeleteFromFamily_:
			err = tx.DeleteFamily(t.Family(m.DeleteFromFamily.GetFamilyName()))
		case *btpb.Mutation_DeleteFromRow_:
			err = tx.DeleteRow()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// aggregate combines an input with a cell's state. A state of sum, min and max is
// an int64 in 8 bytes, big endian.
func aggregate(tx *storage.Tx, t *storage.Table, family string, qualifier, timestamp *btpb.Value, input int64) error {
	f := t.Family(family)
	q, at := qualifier.GetRawValue(), timestamp.GetRawTimestampMicros()
	state, err := tx.Get(f, q, at)
	if err != nil {
		return err
	}
	if len(state) == 8 {
		old := int64(binary.BigEndian.Uint64(state))
		switch aggregateOf(f).GetAggregator().(type) {
		case *adminpb.Type_Aggregate_Sum_:
			input += old
		case *adminpb.Type_Aggregate_Min_:
			input = min(input, old)
		case *adminpb.Type_Aggregate_Max_:
			input = max(input, old)
		}
	}
	return tx.Set(f, q, at, binary.BigEndian.AppendUint64(nil, uint64(input)))
}
