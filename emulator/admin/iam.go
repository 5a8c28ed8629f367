package admin

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attestry/attestry/emulator/storage"
)

// Policies are kept and given back; they allow and forbid nothing. Everyone who
// reaches the server has every permission.

// policy returns the policy of a resource, an empty one when none was set.
func policy(e *storage.Engine, resource string) (*iampb.Policy, error) {
	if err := checkResource(e, resource); err != nil {
		return nil, err
	}
	p := &iampb.Policy{Etag: []byte("0")}
	_, err := load(e, recordPolicy+resource, p)
	return p, err
}

// checkResource returns an error when there is no such instance, table or backup.
func checkResource(e *storage.Engine, resource string) error {
	instance, rest, nested := strings.Cut(resource, "/tables/")
	if !nested {
		instance, rest, nested = strings.Cut(resource, "/clusters/")
	}
	switch {
	case !parentName.MatchString(instance):
		return invalid("Invalid resource %q: want an instance, a table or a backup", resource)
	case !nested:
		return nil
	case strings.Contains(rest, "/backups/"):
		b, err := e.Backup(resource)
		if err != nil {
			return internal(err)
		}
		if b == nil {
			return backupNotFound(resource)
		}
		return nil
	case strings.Contains(rest, "/"):
		return status.Errorf(codes.Unimplemented, "Policies are kept of instances, tables and backups, not of %s", resource)
	}
	if e.Table(resource) == nil {
		return notFound(resource)
	}
	return nil
}

func setPolicy(e *storage.Engine, req *iampb.SetIamPolicyRequest) (*iampb.Policy, error) {
	old, err := policy(e, req.GetResource())
	if err != nil {
		return nil, err
	}
	if etag := req.GetPolicy().GetEtag(); len(etag) > 0 && !bytes.Equal(etag, old.GetEtag()) {
		return nil, status.Errorf(codes.Aborted, "The policy of %s was changed meanwhile: etag %q is not %q; read it again", req.GetResource(), etag, old.GetEtag())
	}
	p := proto.CloneOf(req.GetPolicy())
	if p == nil {
		return nil, invalid("No policy is given")
	}
	var n int
	if _, err := fmt.Sscan(string(old.GetEtag()), &n); err != nil {
		return nil, internal(fmt.Errorf("read the policy's etag %q: %w", old.GetEtag(), err))
	}
	p.Etag = fmt.Append(nil, n+1)
	return p, put(e, recordPolicy+req.GetResource(), p)
}

func testPermissions(e *storage.Engine, req *iampb.TestIamPermissionsRequest) (*iampb.TestIamPermissionsResponse, error) {
	if err := checkResource(e, req.GetResource()); err != nil {
		return nil, err
	}
	return &iampb.TestIamPermissionsResponse{Permissions: req.GetPermissions()}, nil
}

// dropPolicies forgets the policy of a resource that begins or ends.
func dropPolicies(e *storage.Engine, resource string) error {
	return drop(e, recordPolicy+resource)
}

// GetIamPolicy returns the policy that was set on a table or a backup.
func (s *Tables) GetIamPolicy(_ context.Context, req *iampb.GetIamPolicyRequest) (*iampb.Policy, error) {
	return policy(s.engine, req.GetResource())
}

// SetIamPolicy keeps a policy of a table or a backup.
func (s *Tables) SetIamPolicy(_ context.Context, req *iampb.SetIamPolicyRequest) (*iampb.Policy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return setPolicy(s.engine, req)
}

// TestIamPermissions returns all permissions that it is asked for.
func (s *Tables) TestIamPermissions(_ context.Context, req *iampb.TestIamPermissionsRequest) (*iampb.TestIamPermissionsResponse, error) {
	return testPermissions(s.engine, req)
}

// GetIamPolicy returns the policy that was set on an instance.
func (s *Instances) GetIamPolicy(_ context.Context, req *iampb.GetIamPolicyRequest) (*iampb.Policy, error) {
	return policy(s.engine, req.GetResource())
}

// SetIamPolicy keeps a policy of an instance.
func (s *Instances) SetIamPolicy(_ context.Context, req *iampb.SetIamPolicyRequest) (*iampb.Policy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return setPolicy(s.engine, req)
}

// TestIamPermissions returns all permissions that it is asked for.
func (s *Instances) TestIamPermissions(_ context.Context, req *iampb.TestIamPermissionsRequest) (*iampb.TestIamPermissionsResponse, error) {
	return testPermissions(s.engine, req)
}

var (
	_ adminpb.BigtableTableAdminServer    = (*Tables)(nil)
	_ adminpb.BigtableInstanceAdminServer = (*Instances)(nil)
)
