package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/attestry/attestry/emulator/storage"
)

// ClusterID is the one cluster of every instance.
const ClusterID = "local"

var profileID = regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$`)

// Instances serves the instance admin API. Every instance that is named exists,
// with one cluster; those that were created are also listed. App profiles are kept
// and consulted for conditional writes. Its methods may be called concurrently.
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

const (
	recordInstance = "instance/"
	recordProfile  = "profile/"
)

func (s *Instances) put(record string, m proto.Message) error {
	text, err := protojson.Marshal(m)
	if err == nil {
		err = s.engine.PutRecord(record, text)
	}
	if err != nil {
		return status.Errorf(codes.DataLoss, "storage: %v", err)
	}
	return nil
}

// load reads a record into m and reports whether there is one.
func (s *Instances) load(record string, m proto.Message) (bool, error) {
	text, err := s.engine.Record(record)
	if err == nil && text != nil {
		err = protojson.Unmarshal(text, m)
	}
	if err != nil {
		return false, status.Errorf(codes.DataLoss, "storage: %v", err)
	}
	return text != nil, nil
}

// instance returns an instance as it was created, or as every one is.
func (s *Instances) instance(name string) (*adminpb.Instance, error) {
	if !parentName.MatchString(name) {
		return nil, invalid("Invalid instance name %q: want projects/<project>/instances/<instance>", name)
	}
	i := &adminpb.Instance{}
	found, err := s.load(recordInstance+name, i)
	if err != nil || found {
		return i, err
	}
	return &adminpb.Instance{
		Name: name, DisplayName: name[strings.LastIndexByte(name, '/')+1:],
		State: adminpb.Instance_READY, Type: adminpb.Instance_PRODUCTION,
	}, nil
}

// CreateInstance keeps an instance's definition. Its clusters become the one.
func (s *Instances) CreateInstance(_ context.Context, req *adminpb.CreateInstanceRequest) (*longrunningpb.Operation, error) {
	name := req.GetParent() + "/instances/" + req.GetInstanceId()
	if !parentName.MatchString(name) {
		return nil, invalid("Invalid parent %q or instance id %q", req.GetParent(), req.GetInstanceId())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, err := s.load(recordInstance+name, &adminpb.Instance{}); err != nil {
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
	if err := s.put(recordInstance+name, i); err != nil {
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
	return s.change(in.GetName(), func(i *adminpb.Instance) error {
		i.DisplayName, i.Type, i.Labels = in.GetDisplayName(), in.GetType(), in.GetLabels()
		return nil
	})
}

// PartialUpdateInstance changes what the mask names.
func (s *Instances) PartialUpdateInstance(_ context.Context, req *adminpb.PartialUpdateInstanceRequest) (*longrunningpb.Operation, error) {
	in := req.GetInstance()
	i, err := s.change(in.GetName(), func(i *adminpb.Instance) error {
		for _, path := range req.GetUpdateMask().GetPaths() {
			switch path {
			case "display_name":
				i.DisplayName = in.GetDisplayName()
			case "type":
				i.Type = in.GetType()
			case "labels":
				i.Labels = in.GetLabels()
			default:
				return invalid("update_mask: %q cannot be changed", path)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.operations.done(i.GetName(), i, &adminpb.UpdateInstanceMetadata{
		OriginalRequest: req, RequestTime: timestamppb.New(s.now()), FinishTime: timestamppb.New(s.now()),
	})
}

func (s *Instances) change(name string, f func(*adminpb.Instance) error) (*adminpb.Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := s.instance(name)
	if err != nil {
		return nil, err
	}
	if err := f(i); err != nil {
		return nil, err
	}
	return i, s.put(recordInstance+name, i)
}

// DeleteInstance drops an instance with its tables, unless one of them is
// protected.
func (s *Instances) DeleteInstance(_ context.Context, req *adminpb.DeleteInstanceRequest) (*emptypb.Empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tables := s.engine.Tables(req.GetName() + "/tables/")
	found, err := s.load(recordInstance+req.GetName(), &adminpb.Instance{})
	if err != nil {
		return nil, err
	}
	if !found && len(tables) == 0 {
		return nil, status.Errorf(codes.NotFound, "Instance not found: %s", req.GetName())
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
	if err := s.engine.DropRecord(recordInstance + req.GetName()); err != nil {
		return nil, status.Errorf(codes.DataLoss, "storage: %v", err)
	}
	return &emptypb.Empty{}, nil
}

// GetCluster returns the one cluster under whichever name it is asked for.
func (s *Instances) GetCluster(_ context.Context, req *adminpb.GetClusterRequest) (*adminpb.Cluster, error) {
	if !strings.Contains(req.GetName(), "/clusters/") {
		return nil, invalid("Invalid cluster name %q", req.GetName())
	}
	return clusterOf(req.GetName()), nil
}

// ListClusters lists the one cluster.
func (s *Instances) ListClusters(_ context.Context, req *adminpb.ListClustersRequest) (*adminpb.ListClustersResponse, error) {
	parent := req.GetParent()
	if strings.HasSuffix(parent, "/-") {
		parent = strings.TrimSuffix(parent, "-") + "local"
	}
	return &adminpb.ListClustersResponse{Clusters: []*adminpb.Cluster{clusterOf(parent + "/clusters/" + ClusterID)}}, nil
}

func clusterOf(name string) *adminpb.Cluster {
	project, _, _ := strings.Cut(name, "/instances/")
	return &adminpb.Cluster{
		Name: name, Location: project + "/locations/local", State: adminpb.Cluster_READY,
		ServeNodes:         1,
		DefaultStorageType: adminpb.StorageType_SSD,
		EncryptionConfig:   &adminpb.Cluster_EncryptionConfig{},
	}
}

// CreateAppProfile keeps an app profile.
func (s *Instances) CreateAppProfile(_ context.Context, req *adminpb.CreateAppProfileRequest) (*adminpb.AppProfile, error) {
	name := req.GetParent() + "/appProfiles/" + req.GetAppProfileId()
	if !parentName.MatchString(req.GetParent()) || !profileID.MatchString(req.GetAppProfileId()) {
		return nil, invalid("Invalid parent %q or app profile id %q", req.GetParent(), req.GetAppProfileId())
	}
	if req.GetAppProfile().GetRoutingPolicy() == nil {
		return nil, invalid("The app profile has no routing policy")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, err := s.load(recordProfile+name, &adminpb.AppProfile{}); err != nil {
		return nil, err
	} else if found {
		return nil, status.Errorf(codes.AlreadyExists, "App profile already exists: %s", name)
	}
	p := proto.CloneOf(req.GetAppProfile())
	p.Name = name
	p.Etag = fmt.Sprint(s.now().UnixNano())
	return p, s.put(recordProfile+name, p)
}

// GetAppProfile returns an app profile.
func (s *Instances) GetAppProfile(_ context.Context, req *adminpb.GetAppProfileRequest) (*adminpb.AppProfile, error) {
	return s.profile(req.GetName())
}

func (s *Instances) profile(name string) (*adminpb.AppProfile, error) {
	p := &adminpb.AppProfile{}
	found, err := s.load(recordProfile+name, p)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, status.Errorf(codes.NotFound, "App profile not found: %s", name)
	}
	return p, nil
}

// ListAppProfiles lists the app profiles of an instance by name.
func (s *Instances) ListAppProfiles(_ context.Context, req *adminpb.ListAppProfilesRequest) (*adminpb.ListAppProfilesResponse, error) {
	res := &adminpb.ListAppProfilesResponse{}
	err := s.engine.Records(recordProfile+req.GetParent()+"/appProfiles/", func(_ string, value []byte) error {
		if !json.Valid(value) {
			return status.Errorf(codes.DataLoss, "storage: an app profile cannot be read")
		}
		p := &adminpb.AppProfile{}
		res.AppProfiles = append(res.AppProfiles, p)
		return protojson.Unmarshal(value, p)
	})
	return res, err
}

// UpdateAppProfile changes what the mask names.
func (s *Instances) UpdateAppProfile(_ context.Context, req *adminpb.UpdateAppProfileRequest) (*longrunningpb.Operation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := req.GetAppProfile()
	p, err := s.profile(in.GetName())
	if err != nil {
		return nil, err
	}
	if len(req.GetUpdateMask().GetPaths()) == 0 {
		return nil, invalid("update_mask names nothing to change")
	}
	for _, path := range req.GetUpdateMask().GetPaths() {
		switch path {
		case "description":
			p.Description = in.GetDescription()
		case "multi_cluster_routing_use_any", "single_cluster_routing", "routing_policy":
			p.RoutingPolicy = in.GetRoutingPolicy()
		case "priority", "standard_isolation", "data_boost_isolation_read_only", "isolation":
			p.Isolation = in.GetIsolation()
		default:
			return nil, invalid("update_mask: %q cannot be changed", path)
		}
	}
	if err := s.put(recordProfile+p.GetName(), p); err != nil {
		return nil, err
	}
	return s.operations.done(p.GetName(), p, &adminpb.UpdateAppProfileMetadata{})
}

// DeleteAppProfile drops an app profile.
func (s *Instances) DeleteAppProfile(_ context.Context, req *adminpb.DeleteAppProfileRequest) (*emptypb.Empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.profile(req.GetName()); err != nil {
		return nil, err
	}
	if err := s.engine.DropRecord(recordProfile + req.GetName()); err != nil {
		return nil, status.Errorf(codes.DataLoss, "storage: %v", err)
	}
	return &emptypb.Empty{}, nil
}

// Transactions returns an error when an app profile of a table's instance does not
// allow writes that depend on what is read. A profile that nobody made allows
// them: there is one cluster.
func (s *Instances) Transactions(table, appProfile string) error {
	if appProfile == "" {
		appProfile = "default"
	}
	instance, _, _ := strings.Cut(table, "/tables/")
	p, err := s.profile(instance + "/appProfiles/" + appProfile)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if !p.GetSingleClusterRouting().GetAllowTransactionalWrites() {
		return status.Errorf(codes.FailedPrecondition,
			"App profile %q does not allow conditional and read-modify-write requests: it needs single-cluster routing with transactional writes", appProfile)
	}
	return nil
}
