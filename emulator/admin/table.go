// Package admin is the admin API of the server: tables, families and rows to drop
// (google.bigtable.admin.v2.BigtableTableAdmin), one instance and its cluster
// (BigtableInstanceAdmin), and the operations that some calls answer with.
package admin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/attestry/attestry/emulator/storage"
)

// Limits of production (google/bigtable/admin/v2/table.proto, and the
// documentation's page on quotas).
const (
	maxTableID  = 50
	maxFamilyID = 64
	maxGCRule   = 500 // bytes of a serialized rule
	maxSplitKey = 4 << 10
)

var (
	tableID    = regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]*$`)
	familyID   = regexp.MustCompile(`^[-_.a-zA-Z0-9]+$`)
	parentName = regexp.MustCompile(`^projects/[^/]+/instances/[^/]+$`)
)

// Tables serves the table admin API. Its methods may be called concurrently.
type Tables struct {
	adminpb.UnimplementedBigtableTableAdminServer

	engine     *storage.Engine
	operations *Operations
	now        func() time.Time
}

// NewTables returns the service.
func NewTables(e *storage.Engine, o *Operations, now func() time.Time) *Tables {
	return &Tables{engine: e, operations: o, now: now}
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func notFound(name string) error { return status.Errorf(codes.NotFound, "Table not found: %s", name) }

// answer turns what the engine says of a table into a status.
func answer(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrExists):
		return status.Errorf(codes.AlreadyExists, "Table already exists: %s", name)
	case errors.Is(err, storage.ErrMissing):
		return notFound(name)
	}
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	return status.Errorf(codes.DataLoss, "storage: %v", err)
}

// CreateTable makes a table with its families.
func (s *Tables) CreateTable(_ context.Context, req *adminpb.CreateTableRequest) (*adminpb.Table, error) {
	switch {
	case !parentName.MatchString(req.GetParent()):
		return nil, invalid("Invalid parent %q: want projects/<project>/instances/<instance>", req.GetParent())
	case len(req.GetTableId()) > maxTableID || !tableID.MatchString(req.GetTableId()):
		return nil, invalid("Invalid table id %q: want 1 to %d of [-_.a-zA-Z0-9], the first not - or .", req.GetTableId(), maxTableID)
	}
	def := proto.CloneOf(req.GetTable())
	if def == nil {
		def = &adminpb.Table{}
	}
	def.Name = req.GetParent() + "/tables/" + req.GetTableId()
	if def.GetGranularity() == adminpb.Table_TIMESTAMP_GRANULARITY_UNSPECIFIED {
		def.Granularity = adminpb.Table_MILLIS
	}
	for name, f := range def.GetColumnFamilies() {
		if err := checkFamily(name, f); err != nil {
			return nil, err
		}
	}
	if err := checkConfig(def); err != nil {
		return nil, err
	}
	var splits []string
	for _, split := range req.GetInitialSplits() {
		if len(split.GetKey()) == 0 || len(split.GetKey()) > maxSplitKey {
			return nil, invalid("A split key of %d bytes: want 1 to %d", len(split.GetKey()), maxSplitKey)
		}
		splits = append(splits, string(split.GetKey()))
	}
	if err := s.engine.CreateTable(def, splits); err != nil {
		return nil, answer(def.Name, err)
	}
	return def, nil
}

func checkFamily(name string, f *adminpb.ColumnFamily) error {
	if len(name) > maxFamilyID || !familyID.MatchString(name) {
		return invalid("Invalid column family id %q: want 1 to %d of [-_.a-zA-Z0-9]", name, maxFamilyID)
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

const day = 24 * time.Hour

func checkConfig(def *adminpb.Table) error {
	if c := def.GetChangeStreamConfig(); c != nil {
		if d := c.GetRetentionPeriod().AsDuration(); d < day || d > 7*day {
			return invalid("The change stream's retention period is %s; want 1 to 7 days", d)
		}
	}
	if p := def.GetAutomatedBackupPolicy(); p != nil {
		if d := p.GetRetentionPeriod().AsDuration(); d != 0 && (d < 3*day || d > 90*day) {
			return invalid("The automated backups' retention period is %s; want 3 to 90 days", d)
		}
	}
	return nil
}

// ListTables lists tables by name, page by page.
func (s *Tables) ListTables(_ context.Context, req *adminpb.ListTablesRequest) (*adminpb.ListTablesResponse, error) {
	if !parentName.MatchString(req.GetParent()) {
		return nil, invalid("Invalid parent %q: want projects/<project>/instances/<instance>", req.GetParent())
	}
	if req.GetPageSize() < 0 {
		return nil, invalid("page_size is %d; it must not be negative", req.GetPageSize())
	}
	res := &adminpb.ListTablesResponse{}
	for _, t := range s.engine.Tables(req.GetParent() + "/tables/") {
		if t.Name() <= req.GetPageToken() {
			continue
		}
		if n := len(res.Tables); req.GetPageSize() > 0 && n == int(req.GetPageSize()) {
			res.NextPageToken = res.Tables[n-1].GetName()
			break
		}
		res.Tables = append(res.Tables, viewOf(t.Def, req.GetView(), adminpb.Table_NAME_ONLY))
	}
	return res, nil
}

// GetTable returns a table's definition.
func (s *Tables) GetTable(_ context.Context, req *adminpb.GetTableRequest) (*adminpb.Table, error) {
	t := s.engine.Table(req.GetName())
	if t == nil {
		return nil, notFound(req.GetName())
	}
	return viewOf(t.Def, req.GetView(), adminpb.Table_SCHEMA_VIEW), nil
}

// viewOf returns what a view shows of a definition.
func viewOf(def *adminpb.Table, view, unspecified adminpb.Table_View) *adminpb.Table {
	if view == adminpb.Table_VIEW_UNSPECIFIED {
		view = unspecified
	}
	out := &adminpb.Table{Name: def.GetName()}
	clusters := map[string]*adminpb.Table_ClusterState{ClusterID: {
		ReplicationState: adminpb.Table_ClusterState_READY,
		EncryptionInfo:   []*adminpb.EncryptionInfo{{EncryptionType: adminpb.EncryptionInfo_GOOGLE_DEFAULT_ENCRYPTION}},
	}}
	switch view {
	case adminpb.Table_NAME_ONLY:
	case adminpb.Table_REPLICATION_VIEW:
		clusters[ClusterID].EncryptionInfo = nil
		out.ClusterStates = clusters
	case adminpb.Table_ENCRYPTION_VIEW:
		out.ClusterStates = clusters
	case adminpb.Table_FULL:
		out = proto.CloneOf(def)
		out.ClusterStates = clusters
	default:
		out = proto.CloneOf(def)
	}
	return out
}

// UpdateTable changes what the mask names, and nothing else.
func (s *Tables) UpdateTable(_ context.Context, req *adminpb.UpdateTableRequest) (*longrunningpb.Operation, error) {
	in := req.GetTable()
	if len(req.GetUpdateMask().GetPaths()) == 0 {
		return nil, invalid("update_mask names nothing to change")
	}
	start := timestamppb.New(s.now())
	var out *adminpb.Table
	err := s.engine.ChangeTable(in.GetName(), func(def *adminpb.Table) error {
		for _, path := range req.GetUpdateMask().GetPaths() {
			if err := setField(def, in, path); err != nil {
				return err
			}
		}
		out = def
		return checkConfig(def)
	})
	if err != nil {
		return nil, answer(in.GetName(), err)
	}
	return s.operations.done(in.GetName(), out, &adminpb.UpdateTableMetadata{
		Name: in.GetName(), StartTime: start, EndTime: timestamppb.New(s.now()),
	})
}

func setField(def, in *adminpb.Table, path string) error {
	switch path {
	case "deletion_protection":
		def.DeletionProtection = in.GetDeletionProtection()
	case "change_stream_config":
		def.ChangeStreamConfig = in.GetChangeStreamConfig()
	case "change_stream_config.retention_period":
		if def.ChangeStreamConfig == nil {
			def.ChangeStreamConfig = &adminpb.ChangeStreamConfig{}
		}
		def.ChangeStreamConfig.RetentionPeriod = in.GetChangeStreamConfig().GetRetentionPeriod()
	case "automated_backup_policy":
		def.AutomatedBackupConfig = in.GetAutomatedBackupConfig()
	case "automated_backup_policy.retention_period", "automated_backup_policy.frequency":
		return setBackupField(def, in, path)
	case "row_key_schema":
		def.RowKeySchema = in.GetRowKeySchema()
	case "tiered_storage_config":
		def.TieredStorageConfig = in.GetTieredStorageConfig()
	default:
		return invalid("update_mask: %q cannot be changed", path)
	}
	return nil
}

func setBackupField(def, in *adminpb.Table, path string) error {
	policy := def.GetAutomatedBackupPolicy()
	if policy == nil {
		policy = &adminpb.Table_AutomatedBackupPolicy{}
	}
	if strings.HasSuffix(path, "frequency") {
		policy.Frequency = in.GetAutomatedBackupPolicy().GetFrequency()
	} else {
		policy.RetentionPeriod = in.GetAutomatedBackupPolicy().GetRetentionPeriod()
	}
	def.AutomatedBackupConfig = &adminpb.Table_AutomatedBackupPolicy_{AutomatedBackupPolicy: policy}
	return nil
}

// DeleteTable drops a table unless it is protected.
func (s *Tables) DeleteTable(_ context.Context, req *adminpb.DeleteTableRequest) (*emptypb.Empty, error) {
	t := s.engine.Table(req.GetName())
	if t == nil {
		return nil, notFound(req.GetName())
	}
	if t.Def.GetDeletionProtection() {
		return nil, status.Errorf(codes.FailedPrecondition, "The table %s is protected against deletion", req.GetName())
	}
	if err := s.engine.DropTable(req.GetName()); err != nil {
		return nil, answer(req.GetName(), err)
	}
	return &emptypb.Empty{}, nil
}

// ModifyColumnFamilies changes families, all as asked or none.
func (s *Tables) ModifyColumnFamilies(_ context.Context, req *adminpb.ModifyColumnFamiliesRequest) (*adminpb.Table, error) {
	if len(req.GetModifications()) == 0 {
		return nil, invalid("No modifications provided")
	}
	var out *adminpb.Table
	err := s.engine.ChangeTable(req.GetName(), func(def *adminpb.Table) error {
		if def.ColumnFamilies == nil {
			def.ColumnFamilies = map[string]*adminpb.ColumnFamily{}
		}
		for _, m := range req.GetModifications() {
			if err := modify(def, m); err != nil {
				return err
			}
		}
		out = def
		return nil
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
				return invalid("Family %q: an aggregate type cannot be changed", id)
			}
			next.ValueType = in.GetValueType()
		default:
			return invalid("update_mask: %q of a family cannot be changed", path)
		}
	}
	def.ColumnFamilies[id] = next
	return nil
}

// DropRowRange deletes all rows, or those whose keys begin with a prefix.
func (s *Tables) DropRowRange(_ context.Context, req *adminpb.DropRowRangeRequest) (*emptypb.Empty, error) {
	t := s.engine.Table(req.GetName())
	if t == nil {
		return nil, notFound(req.GetName())
	}
	prefix := ""
	switch target := req.GetTarget().(type) {
	case *adminpb.DropRowRangeRequest_RowKeyPrefix:
		if prefix = string(target.RowKeyPrefix); prefix == "" {
			return nil, invalid("row_key_prefix is empty; use delete_all_data_from_table to delete all rows")
		}
	case *adminpb.DropRowRangeRequest_DeleteAllDataFromTable:
		if !target.DeleteAllDataFromTable {
			return nil, invalid("delete_all_data_from_table must be true")
		}
	default:
		return nil, invalid("Neither row_key_prefix nor delete_all_data_from_table is set")
	}
	if err := s.engine.DropRows(t, prefix); err != nil {
		return nil, answer(req.GetName(), err)
	}
	return &emptypb.Empty{}, nil
}

// GenerateConsistencyToken returns a token for CheckConsistency.
func (s *Tables) GenerateConsistencyToken(_ context.Context, req *adminpb.GenerateConsistencyTokenRequest) (*adminpb.GenerateConsistencyTokenResponse, error) {
	if s.engine.Table(req.GetName()) == nil {
		return nil, notFound(req.GetName())
	}
	return &adminpb.GenerateConsistencyTokenResponse{ConsistencyToken: consistencyToken + req.GetName()}, nil
}

const consistencyToken = "consistent:"

// CheckConsistency is true for every token of the table: there is one cluster.
func (s *Tables) CheckConsistency(_ context.Context, req *adminpb.CheckConsistencyRequest) (*adminpb.CheckConsistencyResponse, error) {
	if s.engine.Table(req.GetName()) == nil {
		return nil, notFound(req.GetName())
	}
	if req.GetConsistencyToken() != consistencyToken+req.GetName() {
		return nil, invalid("The consistency token is not one of this table")
	}
	return &adminpb.CheckConsistencyResponse{Consistent: true}, nil
}
