package admin

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// defaultProfile is the app profile that every instance has, and that requests use
// which name none.
const defaultProfile = "default"

// CreateAppProfile keeps an app profile.
func (s *Instances) CreateAppProfile(_ context.Context, req *adminpb.CreateAppProfileRequest) (*adminpb.AppProfile, error) {
	name := req.GetParent() + "/appProfiles/" + req.GetAppProfileId()
	if !parentName.MatchString(req.GetParent()) || !resourceID.MatchString(req.GetAppProfileId()) {
		return nil, invalid("Invalid parent %q or app profile id %q", req.GetParent(), req.GetAppProfileId())
	}
	p := proto.CloneOf(req.GetAppProfile())
	if p == nil {
		p = &adminpb.AppProfile{}
	}
	p.Name = name
	if err := s.checkProfile(p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, err := load(s.engine, recordProfile+name, &adminpb.AppProfile{}); err != nil {
		return nil, err
	} else if found || req.GetAppProfileId() == defaultProfile {
		return nil, status.Errorf(codes.AlreadyExists, "App profile already exists: %s", name)
	}
	return p, put(s.engine, recordProfile+name, p)
}

// checkProfile refuses a profile that makes no sense, and fills in the isolation
// that production gives.
func (s *Instances) checkProfile(p *adminpb.AppProfile) error {
	instance, _, _ := strings.Cut(p.GetName(), "/appProfiles/")
	var clusters []string
	switch r := p.GetRoutingPolicy().(type) {
	case *adminpb.AppProfile_SingleClusterRouting_:
		if clusters = []string{r.SingleClusterRouting.GetClusterId()}; clusters[0] == "" {
			return invalid("The app profile's single_cluster_routing names no cluster")
		}
	case *adminpb.AppProfile_MultiClusterRoutingUseAny_:
		clusters = r.MultiClusterRoutingUseAny.GetClusterIds()
	default:
		return invalid("The app profile has no routing policy")
	}
	for _, id := range clusters {
		if _, err := clusterOf(s.engine, instance+"/clusters/"+id); err != nil {
			return err
		}
	}
	switch i := p.GetIsolation().(type) {
	case nil:
		setPriority(p, adminpb.AppProfile_PRIORITY_HIGH)
	case *adminpb.AppProfile_Priority_:
		//lint:ignore SA1019 clients of before standard_isolation set it
		setPriority(p, i.Priority)
	case *adminpb.AppProfile_DataBoostIsolationReadOnly_:
		if r := p.GetSingleClusterRouting(); r == nil || r.GetAllowTransactionalWrites() {
			return invalid("Data Boost needs single-cluster routing without transactional writes")
		}
	}
	return nil
}

func setPriority(p *adminpb.AppProfile, priority adminpb.AppProfile_Priority) {
	p.Isolation = &adminpb.AppProfile_StandardIsolation_{StandardIsolation: &adminpb.AppProfile_StandardIsolation{Priority: priority}}
}

// GetAppProfile returns an app profile.
func (s *Instances) GetAppProfile(_ context.Context, req *adminpb.GetAppProfileRequest) (*adminpb.AppProfile, error) {
	return s.profile(req.GetName())
}

func (s *Instances) profile(name string) (*adminpb.AppProfile, error) {
	p := &adminpb.AppProfile{}
	found, err := load(s.engine, recordProfile+name, p)
	if err != nil || found {
		return p, err
	}
	instance, id, ok := strings.Cut(name, "/appProfiles/")
	if !ok || !parentName.MatchString(instance) {
		return nil, invalid("Invalid app profile name %q", name)
	}
	if id != defaultProfile {
		return nil, status.Errorf(codes.NotFound, "App profile not found: %s", name)
	}
	clusters, err := clustersOf(s.engine, instance)
	if err != nil {
		return nil, err
	}
	p.Name = name
	p.RoutingPolicy = &adminpb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &adminpb.AppProfile_SingleClusterRouting{
		ClusterId: lastPart(clusters[0].GetName()), AllowTransactionalWrites: true,
	}}
	setPriority(p, adminpb.AppProfile_PRIORITY_HIGH)
	return p, nil
}

// ListAppProfiles lists the app profiles of an instance by name, page by page.
func (s *Instances) ListAppProfiles(_ context.Context, req *adminpb.ListAppProfilesRequest) (*adminpb.ListAppProfilesResponse, error) {
	if !parentName.MatchString(req.GetParent()) {
		return nil, invalid("Invalid parent %q: want projects/<project>/instances/<instance>", req.GetParent())
	}
	first, err := s.profile(req.GetParent() + "/appProfiles/" + defaultProfile)
	if err != nil {
		return nil, err
	}
	all, err := list[adminpb.AppProfile](s.engine, recordProfile+req.GetParent()+"/appProfiles/")
	if err != nil {
		return nil, err
	}
	byName := func(a, b *adminpb.AppProfile) int { return strings.Compare(a.GetName(), b.GetName()) }
	all = append(slices.DeleteFunc(all, func(p *adminpb.AppProfile) bool { return p.GetName() == first.GetName() }), first)
	slices.SortFunc(all, byName)
	res := &adminpb.ListAppProfilesResponse{}
	res.AppProfiles, res.NextPageToken, err = page(all, req.GetPageSize(), req.GetPageToken(), byName)
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
	if err := change(p, in, req.GetUpdateMask(), "description", "multi_cluster_routing_use_any", "single_cluster_routing",
		"priority", "standard_isolation", "data_boost_isolation_read_only"); err != nil {
		return nil, err
	}
	if err := s.checkProfile(p); err != nil {
		return nil, err
	}
	if err := put(s.engine, recordProfile+p.GetName(), p); err != nil {
		return nil, err
	}
	return s.operations.done(p.GetName(), p, &adminpb.UpdateAppProfileMetadata{})
}

// DeleteAppProfile drops an app profile. The default one stays.
func (s *Instances) DeleteAppProfile(_ context.Context, req *adminpb.DeleteAppProfileRequest) (*emptypb.Empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.profile(req.GetName()); err != nil {
		return nil, err
	}
	if lastPart(req.GetName()) == defaultProfile {
		return nil, status.Errorf(codes.FailedPrecondition, "The default app profile cannot be deleted: %s", req.GetName())
	}
	return &emptypb.Empty{}, drop(s.engine, recordProfile+req.GetName())
}

// AppProfile returns the app profile under which a request for a table is served, nil
// for one that nobody made: all data are in one place, and it allows everything.
func (s *Instances) AppProfile(table, id string) (*adminpb.AppProfile, error) {
	instance, _, _ := strings.Cut(table, "/tables/")
	p := &adminpb.AppProfile{}
	found, err := load(s.engine, recordProfile+instance+"/appProfiles/"+cmp.Or(id, defaultProfile), p)
	if err != nil || !found {
		return nil, err
	}
	return p, nil
}
