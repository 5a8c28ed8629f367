// Package admin is the admin API of the server: tables, families, backups and rows
// to drop (google.bigtable.admin.v2.BigtableTableAdmin), instances, clusters and
// app profiles (BigtableInstanceAdmin), and the operations that some calls answer
// with.
package admin

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
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

	mu sync.Mutex // held over a change of a policy
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
	return internal(err)
}

// internal is the answer to a fault of the server itself. It is never a code that
// clients retry for ever.
func internal(err error) error {
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return status.Errorf(codes.DataLoss, "storage: %v", err)
}

// CreateTable makes a table with its families.
func (s *Tables) CreateTable(_ context.Context, req *adminpb.CreateTableRequest) (*adminpb.Table, error) {
	if err := checkTableID(req.GetParent(), req.GetTableId()); err != nil {
		return nil, err
	}
	def := proto.CloneOf(req.GetTable())
	if def == nil {
		def = &adminpb.Table{}
	}
	def.Name = req.GetParent() + "/tables/" + req.GetTableId()
	def.ClusterStates, def.RestoreInfo = nil, nil // are given out only
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
	return def, dropPolicies(s.engine, def.Name)
}

func checkTableID(parent, id string) error {
	switch {
	case !parentName.MatchString(parent):
		return invalid("Invalid parent %q: want projects/<project>/instances/<instance>", parent)
	case len(id) > maxTableID || !tableID.MatchString(id):
		return invalid("Invalid table id %q: want 1 to %d of [-_.a-zA-Z0-9], the first not - or .", id, maxTableID)
	}
	return nil
}

const day = 24 * time.Hour

func checkConfig(def *adminpb.Table) error {
	if err := wellFormed(def); err != nil {
		return invalid("The table's definition: %v", err)
	}
	if c := def.GetChangeStreamConfig(); c != nil {
		if d := c.GetRetentionPeriod().AsDuration(); d < day || d > 7*day {
			return invalid("The change stream's retention period is %s; want 1 to 7 days", d)
		}
	}
	if p := def.GetAutomatedBackupPolicy(); p != nil {
		if d := p.GetRetentionPeriod().AsDuration(); d != 0 && (d < 3*day || d > 90*day) {
			return invalid("The automated backups' retention period is %s; want 3 to 90 days", d)
		}
		if d := p.GetFrequency().AsDuration(); d != 0 && d != day {
			return invalid("The automated backups' frequency is %s; want 24 hours", d)
		}
	}
	return checkRowKeySchema(def)
}

const maxDelimiter = 50 // bytes between the fields of a row key

// checkRowKeySchema refuses a schema whose row keys could not be taken apart.
func checkRowKeySchema(def *adminpb.Table) error {
	schema := def.GetRowKeySchema()
	if schema == nil {
		return nil
	}
	if len(schema.GetFields()) == 0 {
		return invalid("row_key_schema has no fields")
	}
	names := map[string]bool{}
	for _, f := range schema.GetFields() {
		switch name := f.GetFieldName(); {
		case name == "" || f.GetType() == nil:
			return invalid("row_key_schema: every field needs a name and a type")
		case def.GetColumnFamilies()[name] != nil:
			return invalid("row_key_schema: the field %q has the name of a column family", name)
		case names[name]:
			return invalid("row_key_schema: there are two fields %q", name)
		default:
			names[name] = true
		}
	}
	switch e := schema.GetEncoding().GetEncoding().(type) {
	case nil:
		return invalid("row_key_schema has no encoding")
	case *adminpb.Type_Struct_Encoding_Singleton_:
		if n := len(schema.GetFields()); n != 1 {
			return invalid("row_key_schema: the singleton encoding takes one field, not %d", n)
		}
	case *adminpb.Type_Struct_Encoding_DelimitedBytes_:
		if n := len(e.DelimitedBytes.GetDelimiter()); n < 1 || n > maxDelimiter {
			return invalid("row_key_schema: the delimiter is %d bytes long; want 1 to %d", n, maxDelimiter)
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
		view, err := s.viewOf(t.Def, req.GetView(), adminpb.Table_NAME_ONLY)
		if err != nil {
			return nil, err
		}
		res.Tables = append(res.Tables, view)
	}
	return res, nil
}

// GetTable returns a table's definition.
func (s *Tables) GetTable(_ context.Context, req *adminpb.GetTableRequest) (*adminpb.Table, error) {
	t := s.engine.Table(req.GetName())
	if t == nil {
		return nil, notFound(req.GetName())
	}
	return s.viewOf(t.Def, req.GetView(), adminpb.Table_SCHEMA_VIEW)
}

// viewOf returns what a view shows of a definition.
func (s *Tables) viewOf(def *adminpb.Table, view, unspecified adminpb.Table_View) (*adminpb.Table, error) {
	if view == adminpb.Table_VIEW_UNSPECIFIED {
		view = unspecified
	}
	switch view {
	case adminpb.Table_NAME_ONLY:
		return &adminpb.Table{Name: def.GetName()}, nil
	case adminpb.Table_REPLICATION_VIEW, adminpb.Table_ENCRYPTION_VIEW, adminpb.Table_FULL:
	default:
		return def, nil
	}
	instance, _, _ := strings.Cut(def.GetName(), "/tables/")
	clusters, err := clustersOf(s.engine, instance)
	if err != nil {
		return nil, err
	}
	out := &adminpb.Table{Name: def.GetName()}
	if view == adminpb.Table_FULL {
		out = proto.CloneOf(def)
	}
	out.ClusterStates = map[string]*adminpb.Table_ClusterState{}
	for _, c := range clusters {
		state := &adminpb.Table_ClusterState{ReplicationState: adminpb.Table_ClusterState_READY}
		if view != adminpb.Table_REPLICATION_VIEW {
			state.EncryptionInfo = []*adminpb.EncryptionInfo{googleEncryption()}
		}
		out.ClusterStates[lastPart(c.GetName())] = state
	}
	return out, nil
}

// googleEncryption is what production says of data that it encrypts with its own
// keys. This server leaves encryption to the disk that it is on.
func googleEncryption() *adminpb.EncryptionInfo {
	return &adminpb.EncryptionInfo{EncryptionType: adminpb.EncryptionInfo_GOOGLE_DEFAULT_ENCRYPTION}
}

// UpdateTable changes what the mask names, and nothing else.
func (s *Tables) UpdateTable(_ context.Context, req *adminpb.UpdateTableRequest) (*longrunningpb.Operation, error) {
	in := req.GetTable()
	if slices.Contains(req.GetUpdateMask().GetPaths(), "column_families") {
		return nil, status.Errorf(codes.Unimplemented, "update_mask: column_families are changed with ModifyColumnFamilies")
	}
	start := timestamppb.New(s.now())
	var out *adminpb.Table
	err := s.engine.ChangeTable(in.GetName(), func(def *adminpb.Table) error {
		schema := def.GetRowKeySchema()
		if err := change(def, in, req.GetUpdateMask(), "deletion_protection", "change_stream_config",
			"automated_backup_policy", "row_key_schema", "tiered_storage_config"); err != nil {
			return err
		}
		if schema != nil && def.GetRowKeySchema() != nil && !proto.Equal(schema, def.GetRowKeySchema()) {
			return invalid("row_key_schema is set and cannot be changed; clear it first")
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

// UndeleteTable brings back a table that was deleted within the last seven days.
func (s *Tables) UndeleteTable(_ context.Context, req *adminpb.UndeleteTableRequest) (*longrunningpb.Operation, error) {
	start := timestamppb.New(s.now())
	if err := s.engine.UndeleteTable(req.GetName()); err != nil {
		return nil, answer(req.GetName(), err)
	}
	t := s.engine.Table(req.GetName())
	if t == nil { // dropped again meanwhile
		return nil, notFound(req.GetName())
	}
	return s.operations.done(req.GetName(), t.Def, &adminpb.UndeleteTableMetadata{
		Name: req.GetName(), StartTime: start, EndTime: timestamppb.New(s.now()),
	})
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
