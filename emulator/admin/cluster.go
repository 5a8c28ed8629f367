package admin

import (
	"context"
	"regexp"
	"strings"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/attestry/attestry/emulator/storage"
)

// ClusterID is the cluster of every instance for which none was created.
const ClusterID = "local"

var clusterName = regexp.MustCompile(`^projects/[^/]+/instances/[^/]+/clusters/[^/]+$`)

// clustersOf returns the clusters of an instance by name, at least one.
func clustersOf(e *storage.Engine, instance string) ([]*adminpb.Cluster, error) {
	clusters, err := list[adminpb.Cluster](e, recordCluster+instance+"/clusters/")
	if err == nil && len(clusters) == 0 {
		clusters = []*adminpb.Cluster{localCluster(instance + "/clusters/" + ClusterID)}
	}
	return clusters, err
}

// clusterOf returns a cluster. An instance for which none was created has every
// one that is named.
func clusterOf(e *storage.Engine, name string) (*adminpb.Cluster, error) {
	if !clusterName.MatchString(name) {
		return nil, invalid("Invalid cluster name %q: want projects/<project>/instances/<instance>/clusters/<cluster>", name)
	}
	c := &adminpb.Cluster{}
	found, err := load(e, recordCluster+name, c)
	if err != nil || found {
		return c, err
	}
	instance, _, _ := strings.Cut(name, "/clusters/")
	created, err := list[adminpb.Cluster](e, recordCluster+instance+"/clusters/")
	if err != nil {
		return nil, err
	}
	if len(created) > 0 {
		return nil, status.Errorf(codes.NotFound, "Cluster not found: %s", name)
	}
	return localCluster(name), nil
}

func localCluster(name string) *adminpb.Cluster {
	project, _, _ := strings.Cut(name, "/instances/")
	return &adminpb.Cluster{
		Name: name, Location: project + "/locations/local", State: adminpb.Cluster_READY,
		ServeNodes:         1,
		DefaultStorageType: adminpb.StorageType_SSD,
		EncryptionConfig:   &adminpb.Cluster_EncryptionConfig{},
	}
}

// newCluster checks the definition of a cluster and fills in what production does.
func newCluster(instance, id string, def *adminpb.Cluster) (*adminpb.Cluster, error) {
	if !parentName.MatchString(instance) || !resourceID.MatchString(id) {
		return nil, invalid("Invalid parent %q or cluster id %q", instance, id)
	}
	if key := def.GetEncryptionConfig().GetKmsKeyName(); key != "" {
		return nil, status.Errorf(codes.Unimplemented, "Cluster %q: customer-managed encryption keys are not offered by this server (%s)", id, key)
	}
	c := proto.CloneOf(def)
	if c == nil {
		c = &adminpb.Cluster{}
	}
	c.Name, c.State = instance+"/clusters/"+id, adminpb.Cluster_READY
	if c.GetDefaultStorageType() == adminpb.StorageType_STORAGE_TYPE_UNSPECIFIED {
		c.DefaultStorageType = adminpb.StorageType_SSD
	}
	if c.GetEncryptionConfig() == nil {
		c.EncryptionConfig = &adminpb.Cluster_EncryptionConfig{}
	}
	if c.GetServeNodes() == 0 {
		c.ServeNodes = max(1, c.GetClusterConfig().GetClusterAutoscalingConfig().GetAutoscalingLimits().GetMinServeNodes())
	}
	return c, checkScaling(c)
}

func checkScaling(c *adminpb.Cluster) error {
	if a := c.GetClusterConfig().GetClusterAutoscalingConfig(); a != nil {
		if least := a.GetAutoscalingLimits().GetMinServeNodes(); least < 1 || a.GetAutoscalingLimits().GetMaxServeNodes() < least {
			return invalid("The autoscaling limits of cluster %q must be 1 <= min_serve_nodes <= max_serve_nodes", c.GetName())
		}
	}
	if c.GetServeNodes() < 1 {
		return invalid("serve_nodes of cluster %q is %d; at least 1", c.GetName(), c.GetServeNodes())
	}
	return nil
}

// CreateCluster keeps a cluster's definition.
func (s *Instances) CreateCluster(_ context.Context, req *adminpb.CreateClusterRequest) (*longrunningpb.Operation, error) {
	start := timestamppb.New(s.now())
	c, err := newCluster(req.GetParent(), req.GetClusterId(), req.GetCluster())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, err := load(s.engine, recordCluster+c.GetName(), &adminpb.Cluster{}); err != nil {
		return nil, err
	} else if found {
		return nil, status.Errorf(codes.AlreadyExists, "Cluster already exists: %s", c.GetName())
	}
	if err := put(s.engine, recordCluster+c.GetName(), c); err != nil {
		return nil, err
	}
	return s.operations.done(c.GetName(), c, &adminpb.CreateClusterMetadata{
		OriginalRequest: req, RequestTime: start, FinishTime: timestamppb.New(s.now()),
	})
}

// GetCluster returns a cluster.
func (s *Instances) GetCluster(_ context.Context, req *adminpb.GetClusterRequest) (*adminpb.Cluster, error) {
	return clusterOf(s.engine, req.GetName())
}

// ListClusters lists the clusters of an instance, or with "-" those of all that
// ListInstances lists.
func (s *Instances) ListClusters(ctx context.Context, req *adminpb.ListClustersRequest) (*adminpb.ListClustersResponse, error) {
	if !parentName.MatchString(req.GetParent()) {
		return nil, invalid("Invalid parent %q: want projects/<project>/instances/<instance>", req.GetParent())
	}
	instances := []string{req.GetParent()}
	if project, all := strings.CutSuffix(req.GetParent(), "/instances/-"); all {
		listed, err := s.ListInstances(ctx, &adminpb.ListInstancesRequest{Parent: project})
		if err != nil {
			return nil, err
		}
		instances = nil
		for _, i := range listed.GetInstances() {
			instances = append(instances, i.GetName())
		}
	}
	res := &adminpb.ListClustersResponse{}
	for _, instance := range instances {
		clusters, err := clustersOf(s.engine, instance)
		if err != nil {
			return nil, err
		}
		res.Clusters = append(res.Clusters, clusters...)
	}
	return res, nil
}

// UpdateCluster replaces the number of nodes.
func (s *Instances) UpdateCluster(_ context.Context, in *adminpb.Cluster) (*longrunningpb.Operation, error) {
	start := timestamppb.New(s.now())
	c, err := s.changeCluster(in, &fieldmaskpb.FieldMask{Paths: []string{"serve_nodes"}})
	if err != nil {
		return nil, err
	}
	return s.operations.done(c.GetName(), c, &adminpb.UpdateClusterMetadata{
		OriginalRequest: in, RequestTime: start, FinishTime: timestamppb.New(s.now()),
	})
}

// PartialUpdateCluster changes what the mask names.
func (s *Instances) PartialUpdateCluster(_ context.Context, req *adminpb.PartialUpdateClusterRequest) (*longrunningpb.Operation, error) {
	start := timestamppb.New(s.now())
	c, err := s.changeCluster(req.GetCluster(), req.GetUpdateMask())
	if err != nil {
		return nil, err
	}
	return s.operations.done(c.GetName(), c, &adminpb.PartialUpdateClusterMetadata{
		OriginalRequest: req, RequestTime: start, FinishTime: timestamppb.New(s.now()),
	})
}

func (s *Instances) changeCluster(in *adminpb.Cluster, mask *fieldmaskpb.FieldMask) (*adminpb.Cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := clusterOf(s.engine, in.GetName())
	if err != nil {
		return nil, err
	}
	if err := change(c, in, mask, "serve_nodes", "cluster_config"); err != nil {
		return nil, err
	}
	if c.GetClusterConfig().GetClusterAutoscalingConfig() == nil {
		c.Config = nil // there is nothing else in it
	}
	if err := checkScaling(c); err != nil {
		return nil, err
	}
	return c, put(s.engine, recordCluster+c.GetName(), c)
}

// DeleteCluster drops a cluster's definition, unless it is the instance's last or
// has backups.
func (s *Instances) DeleteCluster(_ context.Context, req *adminpb.DeleteClusterRequest) (*emptypb.Empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := req.GetName()
	if _, err := clusterOf(s.engine, name); err != nil {
		return nil, err
	}
	instance, _, _ := strings.Cut(name, "/clusters/")
	clusters, err := clustersOf(s.engine, instance)
	if err != nil {
		return nil, err
	}
	if len(clusters) == 1 {
		return nil, status.Errorf(codes.FailedPrecondition, "The cluster %s is the last one of its instance; delete the instance", name)
	}
	backups, err := s.engine.Backups(name + "/backups/")
	if err != nil {
		return nil, internal(err)
	}
	if len(backups) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "The cluster %s has backups, among them %s; delete them first", name, backups[0].Def.GetName())
	}
	return &emptypb.Empty{}, drop(s.engine, recordCluster+name)
}
