// Package data is the service google.bigtable.v2.Bigtable on the storage engine:
// it checks requests, evaluates filters, and answers with the codes and texts
// that clients branch on.
package data

import (
	"context"
	"errors"
	"sync"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/emulator/storage"
)

// Server serves the data API. Its methods may be called concurrently.
type Server struct {
	btpb.UnimplementedBigtableServer

	engine     *storage.Engine
	now        func() time.Time
	appProfile func(table, id string) (*adminpb.AppProfile, error)
	buffers    sync.Pool // of *[]byte, for responses
}

// Config is what a server is made of.
type Config struct {
	Engine *storage.Engine
	Now    func() time.Time // nil: time.Now
	// AppProfile returns the app profile under which a request for a table is served;
	// a nil profile allows everything. Nil: there are no profiles.
	AppProfile func(table, id string) (*adminpb.AppProfile, error)
}

// New returns a server.
func New(c Config) *Server {
	s := &Server{engine: c.Engine, now: c.Now, appProfile: c.AppProfile}
	s.buffers.New = func() any { b := make([]byte, 0, 8<<10); return &b }
	if s.now == nil {
		s.now = time.Now
	}
	if s.appProfile == nil {
		s.appProfile = func(string, string) (*adminpb.AppProfile, error) { return nil, nil }
	}
	return s
}

// micros is the server's time as cells have it: to the millisecond.
func (s *Server) micros() int64 { return s.now().UnixMilli() * 1000 }

func (s *Server) table(name, authorizedView string) (*storage.Table, error) {
	if authorizedView != "" {
		return nil, unimplemented("authorized views")
	}
	if name == "" {
		return nil, invalid("No table name is given")
	}
	t := s.engine.Table(name)
	if t == nil {
		return nil, status.Errorf(codes.NotFound, "Table not found: %s", name)
	}
	return t, nil
}

// needTransactions returns an error under an app profile that does not allow writes
// which depend on what is read.
func (s *Server) needTransactions(table, appProfile string) error {
	p, err := s.appProfile(table, appProfile)
	if err == nil && p != nil && !p.GetSingleClusterRouting().GetAllowTransactionalWrites() {
		err = status.Errorf(codes.FailedPrecondition,
			"App profile %q does not allow conditional and read-modify-write requests: it needs single-cluster routing with transactional writes", appProfile)
	}
	return err
}

// needSingleCluster returns an error under an app profile that routes to any cluster.
func (s *Server) needSingleCluster(table, appProfile string) error {
	p, err := s.appProfile(table, appProfile)
	if err == nil && p != nil && p.GetSingleClusterRouting() == nil {
		err = status.Errorf(codes.FailedPrecondition, "App profile %q does not allow change streams: it needs single-cluster routing", appProfile)
	}
	return err
}

// internal is the answer to a fault of the server itself. It is never a code that
// clients retry for ever.
func internal(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return status.Errorf(codes.DataLoss, "storage: %v", err)
}

func unimplemented(what string) error {
	return status.Errorf(codes.Unimplemented, "%s are not offered by this server", what)
}

// PingAndWarm answers at once: there is nothing to warm.
func (s *Server) PingAndWarm(context.Context, *btpb.PingAndWarmRequest) (*btpb.PingAndWarmResponse, error) {
	return &btpb.PingAndWarmResponse{}, nil
}
