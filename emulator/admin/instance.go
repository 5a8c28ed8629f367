package admin

import (
	"context"
	"regexp"
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

// Instances serves the instance admin API. An instance is there when it was created
// or holds a table, and tables may be made in any. Clusters and app profiles are
// definitions that are kept: all data are in the one place, whatever the clusters
// are. App profiles are consulted for conditional writes. Its methods may be called
// concurrently.
type Instances struct {
	adminpb.UnimplementedBigtableInstanceAdminServer

	engine     *storage.Engine
	operations *Operations
	now        func() time.Time

	mu sync.Mutex // held over a change of a record
}

// NewInstances returns the service.
func NewInstances(e *storage.Engine, o *Operations, now func() time.Time) *Instances {
	return &Instances{engine: e, operations: o, now: now}
}

// projectName is a project with its slash; resourceID is the id of an instance, a
// cluster, or an app profile.
var (
	projectName = regexp.MustCompile(`^projects/[^/]+$`)
	resourceID  = regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$`)
)

// instance returns an instance as it was created, or one that holds a table as
// every one is that nobody created.
func (s *Instances) instance(name string) (*adminpb.Instance, error) {
	if !parentName.MatchString(name) {
		return nil, invalid("Invalid instance name %q: want projects/<project>/instances/<instance>", name)
	}
	i := &adminpb.Instance{}
	found, err := load(s.engine, recordInstance+name, i)
	if err != nil || found {
		return i, err
	}
	if len(s.engine.Tables(name+"/tables/")) == 0 {
		return nil, status.Errorf(codes.NotFound, "Instance not found: %s", name)
	}
	return &adminpb.Instance{
		Name: name, DisplayName: lastPart(name),
		State: adminpb.Instance_READY, Type: adminpb.Instance_PRODUCTION,
	}, nil
}

// CreateInstance keeps the definitions of an instance and its clusters. Without
// any it has the one that instances have which nobody created.
func (s *Instances) CreateInstance(_ context.Context, req *adminpb.CreateInstanceRequest) (*longrunningpb.Operation, error) {
	if !projectName.MatchString(req.GetParent()) || !resourceID.MatchString(req.GetInstanceId()) {
		return nil, invalid("Invalid parent %q or instance id %q", req.GetParent(), req.GetInstanceId())
	}
	name := req.GetParent() + "/instances/" + req.GetInstanceId()
	var clusters []*adminpb.Cluster
	for id, def := range req.GetClusters() {
		c, err := newCluster(name, id, def)
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, err := load(s.engine, recordInstance+name, &adminpb.Instance{}); err != nil {
		return nil, err
	} else if found {
		return nil, status.Errorf(codes.AlreadyExists, "Instance already exists: %s", name)
	}
	i := proto.CloneOf(req.GetInstance())
	if i == nil {
		i = &adminpb.Instance{}
	}
	i.Name, i.State, i.CreateTime = name, adminpb.Instance_READY, timestamppb.New(s.now())
	if i.GetType() == adminpb.Instance_TYPE_UNSPECIFIED {
		i.Type = adminpb.Instance_PRODUCTION
	}
	for _, c := range clusters {
		if err := put(s.engine, recordCluster+c.GetName(), c); err != nil {
			return nil, err
		}
	}
	if err := put(s.engine, recordInstance+name, i); err != nil {
		return nil, err
	}
	return s.operations.done(name, i, &adminpb.CreateInstanceMetadata{
		OriginalRequest: req, RequestTime: i.CreateTime, FinishTime: timestamppb.New(s.now()),
	})
}

// GetInstance returns an instance.
func (s *Instances) GetInstance(_ context.Context, req *adminpb.GetInstanceRequest) (*adminpb.Instance, error) {
	return s.instance(req.GetName())
}

// ListInstances lists the instances of a project that were created or hold a
// table.
func (s *Instances) ListInstances(_ context.Context, req *adminpb.ListInstancesRequest) (*adminpb.ListInstancesResponse, error) {
	if !projectName.MatchString(req.GetParent()) {
		return nil, invalid("Invalid parent %q: want projects/<project>", req.GetParent())
	}
	prefix := req.GetParent() + "/instances/"
	seen := map[string]bool{}
	res := &adminpb.ListInstancesResponse{}
	add := func(name string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		i, err := s.instance(name)
		res.Instances = append(res.Instances, i)
		return err
	}
	err := s.engine.Records(recordInstance+prefix, func(record string, _ []byte) error {
		return add(strings.TrimPrefix(record, recordInstance))
	})
	for _, t := range s.engine.Tables(prefix) {
		if err == nil {
			name, _, _ := strings.Cut(t.Name(), "/tables/")
			err = add(name)
		}
	}
	return res, err
}

// UpdateInstance replaces name, type and labels.
func (s *Instances) UpdateInstance(_ context.Context, in *adminpb.Instance) (*adminpb.Instance, error) {
	return s.changeInstance(in.GetName(), func(i *adminpb.Instance) error {
		i.DisplayName, i.Type, i.Labels = in.GetDisplayName(), in.GetType(), in.GetLabels()
		return nil
	})
}

// PartialUpdateInstance changes what the mask names.
func (s *Instances) PartialUpdateInstance(_ context.Context, req *adminpb.PartialUpdateInstanceRequest) (*longrunningpb.Operation, error) {
	i, err := s.changeInstance(req.GetInstance().GetName(), func(i *adminpb.Instance) error {
		return change(i, req.GetInstance(), req.GetUpdateMask(), "display_name", "type", "labels", "edition", "tags")
	})
	if err != nil {
		return nil, err
	}
	return s.operations.done(i.GetName(), i, &adminpb.UpdateInstanceMetadata{
		OriginalRequest: req, RequestTime: timestamppb.New(s.now()), FinishTime: timestamppb.New(s.now()),
	})
}

func (s *Instances) changeInstance(name string, f func(*adminpb.Instance) error) (*adminpb.Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := s.instance(name)
	if err != nil {
		return nil, err
	}
	if err := f(i); err != nil {
		return nil, err
	}
	return i, put(s.engine, recordInstance+name, i)
}

// DeleteInstance drops an instance with its tables, for good, unless one of them is
// protected or it has backups.
func (s *Instances) DeleteInstance(_ context.Context, req *adminpb.DeleteInstanceRequest) (*emptypb.Empty, error) {
	name := req.GetName()
	if !parentName.MatchString(name) {
		return nil, invalid("Invalid instance name %q: want projects/<project>/instances/<instance>", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tables := s.engine.Tables(name + "/tables/")
	found, err := load(s.engine, recordInstance+name, &adminpb.Instance{})
	if err != nil {
		return nil, err
	}
	if !found && len(tables) == 0 {
		return nil, status.Errorf(codes.NotFound, "Instance not found: %s", name)
	}
	backups, err := s.engine.Backups(name + "/clusters/")
	if err != nil {
		return nil, internal(err)
	}
	if len(backups) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "The instance %s has backups, among them %s; delete them first", name, backups[0].Def.GetName())
	}
	for _, t := range tables {
		if t.Def.GetDeletionProtection() {
			return nil, status.Errorf(codes.FailedPrecondition, "The table %s is protected against deletion", t.Name())
		}
	}
	for _, t := range tables {
		if err := s.engine.DropTable(t.Name()); err != nil {
			return nil, answer(t.Name(), err)
		}
	}
	if err := s.engine.PurgeTables(name + "/tables/"); err != nil {
		return nil, internal(err)
	}
	for _, prefix := range []string{recordProfile + name + "/", recordCluster + name + "/", recordPolicy + name + "/"} {
		if err := dropAll(s.engine, prefix); err != nil {
			return nil, err
		}
	}
	if err := dropPolicies(s.engine, name); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, drop(s.engine, recordInstance+name)
}
