package admin

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func checkFamily(name string, f *adminpb.ColumnFamily) error {
	if len(name) > maxFamilyID || !familyID.MatchString(name) {
		return invalid("Invalid column family id %q: want 1 to %d of [-_.a-zA-Z0-9]", name, maxFamilyID)
	}
	if err := wellFormed(f); err != nil {
		return invalid("Family %q: %v", name, err)
	}
	if n := proto.Size(f.GetGcRule()); n > maxGCRule {
		return invalid("The garbage-collection rule of family %q takes %d bytes; the limit is %d", name, n, maxGCRule)
	}
	if err := checkRule(f.GetGcRule()); err != nil {
		return invalid("The garbage-collection rule of family %q: %v", name, err)
	}
	if a := f.GetValueType().GetAggregateType(); a != nil {
		switch a.GetAggregator().(type) {
		case *adminpb.Type_Aggregate_Sum_, *adminpb.Type_Aggregate_Min_, *adminpb.Type_Aggregate_Max_:
		default:
			return status.Errorf(codes.Unimplemented, "Family %q: only the aggregators sum, min and max are offered by this server", name)
		}
	}
	return nil
}

func checkRule(r *adminpb.GcRule) error {
	var parts []*adminpb.GcRule
	switch rule := r.GetRule().(type) {
	case nil:
		return nil
	case *adminpb.GcRule_MaxNumVersions:
		if rule.MaxNumVersions < 1 {
			return fmt.Errorf("max_num_versions is %d; at least 1", rule.MaxNumVersions)
		}
		return nil
	case *adminpb.GcRule_MaxAge:
		if rule.MaxAge.AsDuration() < time.Millisecond {
			return fmt.Errorf("max_age is %s; at least a millisecond", rule.MaxAge.AsDuration())
		}
		return nil
	case *adminpb.GcRule_Union_:
		parts = rule.Union.GetRules()
	case *adminpb.GcRule_Intersection_:
		parts = rule.Intersection.GetRules()
	}
	if len(parts) == 0 {
		return fmt.Errorf("a union or intersection of no rules")
	}
	for _, part := range parts {
		if err := checkRule(part); err != nil {
			return err
		}
	}
	return nil
}

// ModifyColumnFamilies changes families, all as asked or none.
func (s *Tables) ModifyColumnFamilies(_ context.Context, req *adminpb.ModifyColumnFamiliesRequest) (*adminpb.Table, error) {
	if len(req.GetModifications()) == 0 {
		return nil, invalid("No modifications provided")
	}
	var out *adminpb.Table
	err := s.engine.ChangeFamilies(req.GetName(), func(def *adminpb.Table) (dropped []string, err error) {
		if def.ColumnFamilies == nil {
			def.ColumnFamilies = map[string]*adminpb.ColumnFamily{}
		}
		for _, m := range req.GetModifications() {
			if err := modify(def, m); err != nil {
				return nil, err
			}
			if m.GetDrop() {
				dropped = append(dropped, m.GetId())
			}
		}
		out = def
		return dropped, checkRowKeySchema(def)
	})
	if err != nil {
		return nil, answer(req.GetName(), err)
	}
	return out, nil
}

func modify(def *adminpb.Table, m *adminpb.ModifyColumnFamiliesRequest_Modification) error {
	id := m.GetId()
	old, exists := def.ColumnFamilies[id]
	if m.GetCreate() == nil && !exists {
		return status.Errorf(codes.NotFound, "Column family not found: %s in table %s", id, def.GetName())
	}
	switch change := m.GetMod().(type) {
	case *adminpb.ModifyColumnFamiliesRequest_Modification_Create:
		if exists {
			return status.Errorf(codes.AlreadyExists, "Column family already exists: %s in table %s", id, def.GetName())
		}
		if err := checkFamily(id, change.Create); err != nil {
			return err
		}
		def.ColumnFamilies[id] = change.Create
	case *adminpb.ModifyColumnFamiliesRequest_Modification_Update:
		return updateFamily(def, id, old, change.Update, m.GetUpdateMask().GetPaths())
	case *adminpb.ModifyColumnFamiliesRequest_Modification_Drop:
		if !change.Drop {
			return invalid("Family %q: drop must be true", id)
		}
		if def.GetDeletionProtection() {
			return status.Errorf(codes.FailedPrecondition, "The table %s is protected against deletion; its families cannot be dropped", def.GetName())
		}
		delete(def.ColumnFamilies, id)
	default:
		return invalid("Family %q: no modification is set", id)
	}
	return nil
}

// updateFamily changes what the mask names; without a mask only the
// garbage-collection rule.
func updateFamily(def *adminpb.Table, id string, old, in *adminpb.ColumnFamily, paths []string) error {
	if err := checkFamily(id, in); err != nil {
		return err
	}
	if len(paths) == 0 {
		paths = []string{"gc_rule"}
	}
	next := proto.CloneOf(old)
	for _, path := range paths {
		switch path {
		case "gc_rule":
			next.GcRule = in.GetGcRule()
		case "value_type":
			if old.GetValueType().GetAggregateType() != nil && !proto.Equal(old.GetValueType(), in.GetValueType()) ||
				old.GetValueType().GetAggregateType() == nil && in.GetValueType().GetAggregateType() != nil {
				return invalid("Immutable fields 'value_type.aggregate_type.*' cannot be updated (family %q)", id)
			}
			next.ValueType = in.GetValueType()
		default:
			return invalid("update_mask: %q of a family cannot be changed", path)
		}
	}
	def.ColumnFamilies[id] = next
	return nil
}
