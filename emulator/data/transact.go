package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/emulator/filter"
	"github.com/attestry/attestry/emulator/storage"
)

// CheckAndMutateRow writes one of two lists of mutations, by whether a filter lets
// a cell of the row pass.
func (s *Server) CheckAndMutateRow(_ context.Context, req *btpb.CheckAndMutateRowRequest) (*btpb.CheckAndMutateRowResponse, error) {
	t, err := s.table(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return nil, err
	}
	if err := s.needTransactions(req.GetTableName(), req.GetAppProfileId()); err != nil {
		return nil, err
	}
	if len(req.GetTrueMutations())+len(req.GetFalseMutations()) == 0 {
		return nil, invalid("At least one of true_mutations and false_mutations must not be empty")
	}
	for _, list := range [][]*btpb.Mutation{req.GetTrueMutations(), req.GetFalseMutations()} {
		if len(list) > maxMutations {
			return nil, checkCount(len(list))
		}
		if err := checkMutations(t, req.GetRowKey(), list); err != nil {
			return nil, err
		}
	}
	f, err := filter.Compile(req.GetPredicateFilter(), hasFamily(t))
	if err != nil {
		return nil, err
	}
	row := string(req.GetRowKey())
	matched := false
	err = s.engine.Update(t, []string{row}, storage.ReadAndWrite, func(tx *storage.Tx) error {
		if matched, err = passes(tx, f, row); err != nil {
			return err
		}
		list := req.GetFalseMutations()
		if matched {
			list = req.GetTrueMutations()
		}
		return s.mutate(tx, t, row, list, s.micros())
	})
	if err != nil {
		return nil, internal(err)
	}
	return &btpb.CheckAndMutateRowResponse{PredicateMatched: matched}, nil
}

// passes reports whether a filter lets any cell of a row pass.
func passes(tx *storage.Tx, f *filter.Filter, row string) (ok bool, err error) {
	v, err := tx.View()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	cells, err := v.Row(row)
	if err != nil || cells == nil {
		return false, err
	}
	eval := f.NewEvaluator(nil)
	eval.Reset([]byte(row), cells)
	cell, err := eval.Next()
	return cell != nil, err
}

// ReadModifyWriteRow applies rules to the newest cells of columns, all or none of
// them, and answers with the cells that it wrote.
func (s *Server) ReadModifyWriteRow(_ context.Context, req *btpb.ReadModifyWriteRowRequest) (*btpb.ReadModifyWriteRowResponse, error) {
	t, err := s.table(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return nil, err
	}
	if err := s.needTransactions(req.GetTableName(), req.GetAppProfileId()); err != nil {
		return nil, err
	}
	if err := checkRules(t, req); err != nil {
		return nil, err
	}
	row := string(req.GetRowKey())
	var written *btpb.Row
	err = s.engine.Update(t, []string{row}, storage.ReadAndWrite, func(tx *storage.Tx) error {
		tx.Row(row)
		written = &btpb.Row{Key: req.GetRowKey()}
		for _, rule := range req.GetRules() {
			if err := s.apply(tx, t, rule, written); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, internal(err)
	}
	return &btpb.ReadModifyWriteRowResponse{Row: written}, nil
}

func checkRules(t *storage.Table, req *btpb.ReadModifyWriteRowRequest) error {
	if err := checkRowKey(req.GetRowKey()); err != nil {
		return err
	}
	switch n := len(req.GetRules()); {
	case n == 0:
		return invalid("No rules provided")
	case n > maxRules:
		return invalid("Too many rules: %d provided; limit %d", n, maxRules)
	}
	for i, rule := range req.GetRules() {
		f, err := familyOf(t, req.GetRowKey(), rule.GetFamilyName())
		if err != nil {
			return err
		}
		if f.Def.GetValueType().GetAggregateType() != nil {
			return invalid("Error in field 'rules' : Error in element #%d : family %q is an aggregate family", i, f.Name)
		}
		if err := checkQualifier(rule.GetColumnQualifier()); err != nil {
			return err
		}
		if rule.GetRule() == nil {
			return invalid("Error in field 'rules' : Error in element #%d : no rule is set", i)
		}
	}
	return nil
}

// apply applies one rule. The new cell is not older than the one it follows.
func (s *Server) apply(tx *storage.Tx, t *storage.Table, rule *btpb.ReadModifyWriteRule, written *btpb.Row) error {
	f, q := t.Family(rule.GetFamilyName()), rule.GetColumnQualifier()
	newest, value, ok, err := tx.Newest(f, q)
	if err != nil {
		return err
	}
	at := max(s.micros(), newest)
	switch rule := rule.GetRule().(type) {
	case *btpb.ReadModifyWriteRule_AppendValue:
		if value = append(value, rule.AppendValue...); len(value) > maxValue {
			return invalid("Cell value would be %d bytes long; the limit is %d", len(value), maxValue)
		}
	case *btpb.ReadModifyWriteRule_IncrementAmount:
		if ok && len(value) != 8 {
			return status.Errorf(codes.FailedPrecondition, "The cell of column %s:%s has %d bytes; only a 64-bit big-endian signed integer can be incremented", f.Name, q, len(value))
		}
		old := int64(0)
		if ok {
			old = int64(binary.BigEndian.Uint64(value))
		}
		value = binary.BigEndian.AppendUint64(nil, uint64(old+rule.IncrementAmount))
	}
	if err := tx.Set(f, q, at, value); err != nil {
		return err
	}
	putCell(written, f.Name, q, &btpb.Cell{TimestampMicros: at, Value: value})
	return nil
}

// putCell adds a cell to a row; a later rule on a column replaces what an earlier
// one wrote.
func putCell(row *btpb.Row, family string, qualifier []byte, cell *btpb.Cell) {
	var f *btpb.Family
	for _, o := range row.Families {
		if o.Name == family {
			f = o
		}
	}
	if f == nil {
		f = &btpb.Family{Name: family}
		row.Families = append(row.Families, f)
	}
	for _, c := range f.Columns {
		if bytes.Equal(c.Qualifier, qualifier) {
			c.Cells = []*btpb.Cell{cell}
			return
		}
	}
	f.Columns = append(f.Columns, &btpb.Column{Qualifier: qualifier, Cells: []*btpb.Cell{cell}})
}
