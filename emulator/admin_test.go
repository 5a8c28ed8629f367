package emulator_test

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/attestry/attestry/emulator"
)

const created = "projects/p/instances/created"

func (w *world) createInstance(t *testing.T) {
	t.Helper()
	op, err := w.admin.CreateInstance(t.Context(), &adminpb.CreateInstanceRequest{
		Parent: "projects/p", InstanceId: "created",
		Instance: &adminpb.Instance{DisplayName: "a name", Labels: map[string]string{"a": "b"}, Edition: adminpb.Instance_ENTERPRISE},
		Clusters: map[string]*adminpb.Cluster{
			"c1": {Location: "projects/p/locations/l1", ServeNodes: 3},
			"c2": {Location: "projects/p/locations/l2", Config: &adminpb.Cluster_ClusterConfig_{ClusterConfig: &adminpb.Cluster_ClusterConfig{
				ClusterAutoscalingConfig: &adminpb.Cluster_ClusterAutoscalingConfig{AutoscalingLimits: &adminpb.AutoscalingLimits{MinServeNodes: 2, MaxServeNodes: 4}},
			}}},
		},
	})
	check(t, err)
	w.wantDone(t, op, &adminpb.Instance{}, &adminpb.CreateInstanceMetadata{})
}

func (w *world) clusters(t *testing.T, instance string) []string {
	t.Helper()
	res, err := w.admin.ListClusters(t.Context(), &adminpb.ListClustersRequest{Parent: instance})
	check(t, err)
	var out []string
	for _, c := range res.GetClusters() {
		out = append(out, strings.TrimPrefix(c.GetName(), "projects/p/instances/"))
	}
	return out
}

func TestInstances(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.createInstance(t)
	_, err := w.admin.CreateInstance(ctx, &adminpb.CreateInstanceRequest{Parent: "projects/p", InstanceId: "created"})
	wantCode(t, "again", err, codes.AlreadyExists, created)
	listed, err := w.admin.ListInstances(ctx, &adminpb.ListInstancesRequest{Parent: "projects/p"})
	check(t, err)
	var names []string
	for _, i := range listed.GetInstances() {
		names = append(names, i.GetName())
	}
	diff(t, "created, and with a table", names, created, parent)

	op, err := w.admin.PartialUpdateInstance(ctx, &adminpb.PartialUpdateInstanceRequest{
		Instance: &adminpb.Instance{Name: created, DisplayName: "another", Labels: map[string]string{"not": "asked"}}, UpdateMask: maskOf("display_name"),
	})
	check(t, err)
	w.wantDone(t, op, &adminpb.Instance{}, &adminpb.UpdateInstanceMetadata{})
	i, err := w.admin.GetInstance(ctx, &adminpb.GetInstanceRequest{Name: created})
	check(t, err)
	want := &adminpb.Instance{
		Name: created, DisplayName: "another", Labels: map[string]string{"a": "b"}, Edition: adminpb.Instance_ENTERPRISE,
		State: adminpb.Instance_READY, Type: adminpb.Instance_PRODUCTION, CreateTime: i.GetCreateTime(),
	}
	if d := cmp.Diff(want, i, protocmp.Transform()); d != "" {
		t.Errorf("only the name changed (-want +got):\n%s", d)
	}
	_, err = w.admin.PartialUpdateInstance(ctx, &adminpb.PartialUpdateInstanceRequest{Instance: i})
	wantCode(t, "no mask", err, codes.InvalidArgument, "update_mask")

	_, err = w.tables.CreateTable(ctx, &adminpb.CreateTableRequest{Parent: created, TableId: "t", Table: &adminpb.Table{DeletionProtection: true}})
	check(t, err)
	_, err = w.admin.DeleteInstance(ctx, &adminpb.DeleteInstanceRequest{Name: created})
	wantCode(t, "a protected table", err, codes.FailedPrecondition, "protected")
	_, err = w.tables.UpdateTable(ctx, &adminpb.UpdateTableRequest{Table: &adminpb.Table{Name: created + "/tables/t"}, UpdateMask: maskOf("deletion_protection")})
	check(t, err)
	_, err = w.admin.DeleteInstance(ctx, &adminpb.DeleteInstanceRequest{Name: created})
	check(t, err)
	_, err = w.tables.UndeleteTable(ctx, &adminpb.UndeleteTableRequest{Name: created + "/tables/t"})
	wantCode(t, "its tables are gone for good", err, codes.NotFound, "t")
	diff(t, "its clusters too", w.clusters(t, created), "created/clusters/local")
	_, err = w.admin.DeleteInstance(ctx, &adminpb.DeleteInstanceRequest{Name: created})
	wantCode(t, "twice", err, codes.NotFound, created)
}

func TestClusters(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	diff(t, "of an instance that nobody created", w.clusters(t, parent), "i/clusters/local")
	w.createInstance(t)
	diff(t, "created", w.clusters(t, created), "created/clusters/c1", "created/clusters/c2")
	diff(t, "of all instances", w.clusters(t, "projects/p/instances/-"), "created/clusters/c1", "created/clusters/c2", "i/clusters/local")
	c2, err := w.admin.GetCluster(ctx, &adminpb.GetClusterRequest{Name: created + "/clusters/c2"})
	check(t, err)
	if c2.GetServeNodes() != 2 || c2.GetState() != adminpb.Cluster_READY || c2.GetDefaultStorageType() != adminpb.StorageType_SSD {
		t.Errorf("an autoscaling cluster begins as %v", c2)
	}
	op, err := w.admin.PartialUpdateCluster(ctx, &adminpb.PartialUpdateClusterRequest{
		Cluster: &adminpb.Cluster{Name: c2.GetName(), ServeNodes: 5}, UpdateMask: maskOf("serve_nodes", "cluster_config.cluster_autoscaling_config"),
	})
	check(t, err)
	w.wantDone(t, op, c2, &adminpb.PartialUpdateClusterMetadata{})
	if c2.GetServeNodes() != 5 || c2.GetClusterConfig() != nil {
		t.Errorf("scaled by hand it is %v", c2)
	}
	_, err = w.admin.UpdateCluster(ctx, &adminpb.Cluster{Name: c2.GetName()})
	wantCode(t, "no nodes", err, codes.InvalidArgument, "serve_nodes")
	_, err = w.admin.CreateCluster(ctx, &adminpb.CreateClusterRequest{Parent: created, ClusterId: "c2", Cluster: &adminpb.Cluster{}})
	wantCode(t, "again", err, codes.AlreadyExists, "c2")
	_, err = w.admin.CreateCluster(ctx, &adminpb.CreateClusterRequest{Parent: created, ClusterId: "c3", Cluster: &adminpb.Cluster{
		EncryptionConfig: &adminpb.Cluster_EncryptionConfig{KmsKeyName: "projects/p/keys/k"},
	}})
	wantCode(t, "own keys", err, codes.Unimplemented, "encryption")
	_, err = w.admin.GetCluster(ctx, &adminpb.GetClusterRequest{Name: created + "/clusters/c3"})
	wantCode(t, "one that was not created", err, codes.NotFound, "c3")

	_, err = w.tables.CreateTable(ctx, &adminpb.CreateTableRequest{Parent: created, TableId: "t"})
	check(t, err)
	def, err := w.tables.GetTable(ctx, &adminpb.GetTableRequest{Name: created + "/tables/t", View: adminpb.Table_REPLICATION_VIEW})
	check(t, err)
	if def.GetClusterStates()["c1"].GetReplicationState() != adminpb.Table_ClusterState_READY || len(def.GetClusterStates()) != 2 {
		t.Errorf("the table is replicated as %v", def.GetClusterStates())
	}
	_, err = w.admin.DeleteCluster(ctx, &adminpb.DeleteClusterRequest{Name: c2.GetName()})
	check(t, err)
	_, err = w.admin.DeleteCluster(ctx, &adminpb.DeleteClusterRequest{Name: created + "/clusters/c1"})
	wantCode(t, "the last one", err, codes.FailedPrecondition, "last")
}

func TestAppProfiles(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	single := func(transactions bool) *adminpb.AppProfile_SingleClusterRouting_ {
		return &adminpb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &adminpb.AppProfile_SingleClusterRouting{ClusterId: "local", AllowTransactionalWrites: transactions}}
	}
	everywhere := &adminpb.AppProfile_MultiClusterRoutingUseAny_{MultiClusterRoutingUseAny: &adminpb.AppProfile_MultiClusterRoutingUseAny{}}
	create := func(id string, p *adminpb.AppProfile) error {
		_, err := w.admin.CreateAppProfile(ctx, &adminpb.CreateAppProfileRequest{Parent: parent, AppProfileId: id, AppProfile: p})
		return err
	}
	check(t, create("a", &adminpb.AppProfile{Description: "d", RoutingPolicy: single(false)}))
	check(t, create("z", &adminpb.AppProfile{RoutingPolicy: everywhere}))
	wantCode(t, "again", create("a", &adminpb.AppProfile{RoutingPolicy: everywhere}), codes.AlreadyExists, "a")
	wantCode(t, "the default", create("default", &adminpb.AppProfile{RoutingPolicy: everywhere}), codes.AlreadyExists, "default")
	wantCode(t, "no routing", create("b", &adminpb.AppProfile{}), codes.InvalidArgument, "routing")
	wantCode(t, "Data Boost over all clusters", create("b", &adminpb.AppProfile{RoutingPolicy: everywhere, Isolation: &adminpb.AppProfile_DataBoostIsolationReadOnly_{
		DataBoostIsolationReadOnly: &adminpb.AppProfile_DataBoostIsolationReadOnly{},
	}}), codes.InvalidArgument, "Data Boost")

	var names []string
	req := &adminpb.ListAppProfilesRequest{Parent: parent, PageSize: 2}
	for {
		res, err := w.admin.ListAppProfiles(ctx, req)
		check(t, err)
		for _, p := range res.GetAppProfiles() {
			names = append(names, strings.TrimPrefix(p.GetName(), parent+"/appProfiles/"))
		}
		if req.PageToken = res.GetNextPageToken(); req.PageToken == "" {
			break
		}
		names = append(names, "page")
	}
	diff(t, "listed", names, "a", "default", "page", "z")

	update := func(p *adminpb.AppProfile, paths ...string) error {
		p.Name = parent + "/appProfiles/a"
		op, err := w.admin.UpdateAppProfile(ctx, &adminpb.UpdateAppProfileRequest{AppProfile: p, UpdateMask: maskOf(paths...)})
		if err == nil {
			w.wantDone(t, op, &adminpb.AppProfile{}, &adminpb.UpdateAppProfileMetadata{})
		}
		return err
	}
	wantCode(t, "no mask", update(&adminpb.AppProfile{}), codes.InvalidArgument, "A non-empty 'update_mask' must be specified")
	wantCode(t, "what cannot be changed", update(&adminpb.AppProfile{}, "name"), codes.InvalidArgument, "name")
	conditional := func(profile string) error {
		_, err := w.data.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{
			TableName: table, AppProfileId: profile, RowKey: []byte("r"), FalseMutations: []*btpb.Mutation{set("f", "q", 0, "x")},
		})
		return err
	}
	wantCode(t, "a conditional write", conditional("a"), codes.FailedPrecondition, "transactional")
	check(t, update(&adminpb.AppProfile{RoutingPolicy: single(true), Description: "not asked"}, "single_cluster_routing"))
	check(t, conditional("a"))
	check(t, conditional("default"))
	got, err := w.admin.GetAppProfile(ctx, &adminpb.GetAppProfileRequest{Name: parent + "/appProfiles/a"})
	check(t, err)
	want := &adminpb.AppProfile{
		Name: parent + "/appProfiles/a", Description: "d", RoutingPolicy: single(true),
		Isolation: &adminpb.AppProfile_StandardIsolation_{StandardIsolation: &adminpb.AppProfile_StandardIsolation{Priority: adminpb.AppProfile_PRIORITY_HIGH}},
	}
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		t.Errorf("only the routing changed (-want +got):\n%s", d)
	}
	remove := func(id string) error {
		_, err := w.admin.DeleteAppProfile(ctx, &adminpb.DeleteAppProfileRequest{Name: parent + "/appProfiles/" + id})
		return err
	}
	check(t, remove("a"))
	wantCode(t, "twice", remove("a"), codes.NotFound, "a")
	wantCode(t, "the default", remove("default"), codes.FailedPrecondition, "default")
}

func TestPolicies(t *testing.T) {
	w := newTimed(t)
	ctx := t.Context()
	check(t, w.backup(t, "b", &adminpb.Backup{ExpireTime: w.in(6 * hour)}))
	for _, resource := range []string{table, cluster + "/backups/b"} {
		p, err := w.tables.GetIamPolicy(ctx, &iampb.GetIamPolicyRequest{Resource: resource})
		check(t, err)
		if len(p.GetBindings()) > 0 {
			t.Errorf("the policy of %s begins as %v", resource, p)
		}
		old := proto.CloneOf(p)
		p.Bindings = []*iampb.Binding{{Role: "roles/viewer", Members: []string{"domain:example.com"}}}
		_, err = w.tables.SetIamPolicy(ctx, &iampb.SetIamPolicyRequest{Resource: resource, Policy: p})
		check(t, err)
		_, err = w.tables.SetIamPolicy(ctx, &iampb.SetIamPolicyRequest{Resource: resource, Policy: old})
		wantCode(t, "over a newer one", err, codes.Aborted, "changed")
		got, err := w.tables.GetIamPolicy(ctx, &iampb.GetIamPolicyRequest{Resource: resource})
		check(t, err)
		if d := cmp.Diff(p.GetBindings(), got.GetBindings(), protocmp.Transform()); d != "" {
			t.Errorf("the policy of %s (-want +got):\n%s", resource, d)
		}
	}
	res, err := w.admin.TestIamPermissions(ctx, &iampb.TestIamPermissionsRequest{Resource: parent, Permissions: []string{"a", "b"}})
	check(t, err)
	diff(t, "everything is permitted", res.GetPermissions(), "a", "b")
	_, err = w.tables.GetIamPolicy(ctx, &iampb.GetIamPolicyRequest{Resource: table + "x"})
	wantCode(t, "of no table", err, codes.NotFound, "x")
	check(t, deletingTable(t, w.world))
	w.createTable(t)
	p, err := w.tables.GetIamPolicy(ctx, &iampb.GetIamPolicyRequest{Resource: table})
	check(t, err)
	if len(p.GetBindings()) > 0 {
		t.Errorf("a new table has the policy of an old one: %v", p)
	}
}

// TestDefinitionsAreKept: what a table is created with comes back, also after a
// restart, but for what is given out only.
func TestDefinitionsAreKept(t *testing.T) {
	w := newTimed(t)
	text := &adminpb.Type{Kind: &adminpb.Type_StringType{StringType: &adminpb.Type_String{Encoding: &adminpb.Type_String_Encoding{
		Encoding: &adminpb.Type_String_Encoding_Utf8Bytes_{Utf8Bytes: &adminpb.Type_String_Encoding_Utf8Bytes{}},
	}}}}
	days := func(n int) *durationpb.Duration { return durationpb.New(time.Duration(n) * 24 * time.Hour) }
	want := &adminpb.Table{
		Granularity: adminpb.Table_MILLIS, DeletionProtection: true,
		ColumnFamilies:        map[string]*adminpb.ColumnFamily{"f": {GcRule: &adminpb.GcRule{Rule: &adminpb.GcRule_MaxAge{MaxAge: days(1)}}, ValueType: text}},
		ChangeStreamConfig:    &adminpb.ChangeStreamConfig{RetentionPeriod: days(2)},
		AutomatedBackupConfig: &adminpb.Table_AutomatedBackupPolicy_{AutomatedBackupPolicy: &adminpb.Table_AutomatedBackupPolicy{RetentionPeriod: days(3), Frequency: days(1)}},
		TieredStorageConfig: &adminpb.TieredStorageConfig{InfrequentAccess: &adminpb.TieredStorageRule{
			Rule: &adminpb.TieredStorageRule_IncludeIfOlderThan{IncludeIfOlderThan: days(30)},
		}},
		RowKeySchema: &adminpb.Type_Struct{
			Fields:   []*adminpb.Type_Struct_Field{{FieldName: "key", Type: text}},
			Encoding: &adminpb.Type_Struct_Encoding{Encoding: &adminpb.Type_Struct_Encoding_Singleton_{Singleton: &adminpb.Type_Struct_Encoding_Singleton{}}},
		},
	}
	asked := proto.CloneOf(want)
	asked.RestoreInfo = &adminpb.RestoreInfo{SourceType: adminpb.RestoreSourceType_BACKUP}
	_, err := w.tables.CreateTable(t.Context(), &adminpb.CreateTableRequest{Parent: parent, TableId: "kept", Table: asked})
	check(t, err)
	want.Name = parent + "/tables/kept"
	w.stop(t)
	w.world = start(t, w.fs, "data", emulator.Options{Now: w.now})
	got, err := w.tables.GetTable(t.Context(), &adminpb.GetTableRequest{Name: want.GetName()})
	check(t, err)
	if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
