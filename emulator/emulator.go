// Package emulator is a durable Bigtable server for one machine: the gRPC services
// google.bigtable.v2 and google.bigtable.admin.v2 on Pebble. It knows nothing of
// what is kept in it.
//
// README.md says what it supports, refuses and does otherwise than production.
package emulator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/attestry/attestry/emulator/admin"
	"github.com/attestry/attestry/emulator/data"
	"github.com/attestry/attestry/emulator/storage"
)

// Errors of Open that callers branch on.
var (
	ErrLocked  = storage.ErrLocked  // another process has the directory open
	ErrNoStore = storage.ErrNoStore // nothing was created in the directory
	ErrFormat  = storage.ErrFormat  // the directory is of another format version
)

// Options of a server. The zero value is the safest.
type Options struct {
	// FS is the file system that the directory is on; nil is the operating system's.
	FS vfs.FS
	// NoSync acknowledges writes before they are on disk: they survive the death of
	// the process, but not a loss of power.
	NoSync bool
	// CacheBytes bounds the cache of blocks read from disk, with the writes that are
	// still in memory. 0: 192 MiB.
	CacheBytes int64
	// GCOnRead hides garbage from reads at once. Production, and the default, lets
	// it be seen until it is collected.
	GCOnRead bool
	// Now is the server's clock; nil is the machine's.
	Now func() time.Time
}

// maxMessage bounds a request, as Google's emulator does.
const maxMessage = 256 << 20

// Server is an open data directory and the services on it. Its methods may be
// called concurrently.
type Server struct {
	engine *storage.Engine
	grpc   *grpc.Server
	local  *localReads
	failed chan struct{} // closed when the disk has failed

	mu      sync.Mutex
	memory  *bufconn.Listener // made by the first Dial
	serving sync.WaitGroup
	closed  bool
}

// Create makes a data directory and opens it; one that exists is opened. Errors:
// ErrLocked, ErrFormat.
func Create(dir string, o Options) (*Server, error) { return open(dir, true, o) }

// Open opens a data directory. Errors: ErrLocked, ErrNoStore, ErrFormat.
func Open(dir string, o Options) (*Server, error) { return open(dir, false, o) }

func open(dir string, create bool, o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	healthy, failed := health.NewServer(), make(chan struct{})
	s := &Server{local: newLocalReads(), failed: failed}
	s.grpc = grpc.NewServer(
		grpc.ForceServerCodecV2(data.Codec()), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(s.aliveUnary, recoverUnary), grpc.ChainStreamInterceptor(s.aliveStream, recoverStream),
		grpc.ReadBufferSize(128<<10), grpc.WriteBufferSize(128<<10),
		// Goroutines that live on keep the stacks that they grew.
		grpc.NumStreamWorkers(uint32(4*runtime.GOMAXPROCS(0))),
	)
	engine, err := storage.Open(dir, create, storage.Options{
		FS: o.FS, NoSync: o.NoSync, CacheBytes: o.CacheBytes, GCOnRead: o.GCOnRead, Now: o.Now,
		OnDiskError: func(error) { healthy.Shutdown(); close(failed); time.AfterFunc(failedGrace, s.stop) },
	})
	if err != nil {
		s.grpc.Stop()
		return nil, err
	}
	s.engine = engine
	operations := admin.NewOperations()
	instances := admin.NewInstances(engine, operations, o.Now)
	bigtable := data.New(data.Config{Engine: engine, Now: o.Now, AppProfile: instances.AppProfile})
	s.local.serve = func(req *btpb.ReadRowsRequest, stream btpb.Bigtable_ReadRowsServer) (err error) {
		defer recovered(btpb.Bigtable_ReadRows_FullMethodName, &err)
		if err := s.alive(btpb.Bigtable_ReadRows_FullMethodName); err != nil {
			return err
		}
		return bigtable.ReadRows(req, stream)
	}
	btpb.RegisterBigtableServer(s.grpc, bigtable)
	adminpb.RegisterBigtableTableAdminServer(s.grpc, admin.NewTables(engine, operations, o.Now))
	adminpb.RegisterBigtableInstanceAdminServer(s.grpc, instances)
	longrunningpb.RegisterOperationsServer(s.grpc, operations)
	healthpb.RegisterHealthServer(s.grpc, healthy)
	reflection.Register(s.grpc)
	return s, nil
}

// Serve answers on a listener, which it owns, until Close. When the data directory
// cannot be written it returns that error: every request is refused with DATA_LOSS,
// after a second all connections are closed, and the server is to be closed. What
// was acknowledged is there when the directory is opened again.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errors.Join(errors.New("the server is closed"), l.Close())
	}
	ended := make(chan error, 1)
	s.serving.Go(func() { ended <- s.grpc.Serve(l) })
	s.mu.Unlock()
	select {
	case <-s.failed:
		return s.engine.Err()
	case err := <-ended:
		if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("serve bigtable on %s: %w", l.Addr(), err)
		}
		return nil
	}
}

// Dial returns a connection to the server within the process. It belongs to the
// caller.
func (s *Server) Dial(opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the server is closed")
	}
	if s.memory == nil {
		s.memory = bufconn.Listen(1 << 20)
		s.serving.Go(func() { _ = s.grpc.Serve(s.memory) }) // ends with Close
	}
	memory := s.memory
	opts = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return memory.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithChainStreamInterceptor(s.local.intercept),
	}, opts...)
	return grpc.NewClient("passthrough:///memory", opts...)
}

// failedGrace is how long requests are refused with the reason when the disk has
// failed, before the connections of those that wait for it are closed too.
const failedGrace = time.Second

// closeGrace is how long requests under way may take to end.
const closeGrace = 5 * time.Second

// Close ends the services, with a little time for requests under way, and closes
// the data directory. What was acknowledged is durable with or without it.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.engine.EndChangeStreams()
	s.local.refuse()
	if s.engine.Err() != nil {
		s.stop() // a request that waits for the disk does not end
	} else {
		late := time.AfterFunc(closeGrace, s.stop)
		s.grpc.GracefulStop()
		s.local.workers.Wait()
		late.Stop()
	}
	s.serving.Wait()
	return s.engine.Close()
}

// stop ends requests under way.
func (s *Server) stop() {
	s.grpc.Stop()
	s.local.stop()
}

// alive refuses a request when the disk has failed.
func (s *Server) alive(method string) error {
	if err := s.engine.Err(); err != nil && !strings.HasPrefix(method, "/grpc.health.") {
		return status.Error(codes.DataLoss, err.Error())
	}
	return nil
}

func (s *Server) aliveUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := s.alive(info.FullMethod); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (s *Server) aliveStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := s.alive(info.FullMethod); err != nil {
		return err
	}
	return next(srv, stream)
}

// A fault in one request must not end the process and with it all others.
func recovered(method string, err *error) {
	if r := recover(); r != nil {
		*err = status.Errorf(codes.DataLoss, "%s: fault in the server: %v", method, r)
	}
}

func recoverUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (res any, err error) {
	defer recovered(info.FullMethod, &err)
	return next(ctx, req)
}

func recoverStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer recovered(info.FullMethod, &err)
	return next(srv, stream)
}
