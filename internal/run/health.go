package run

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/query/web"
)

// readyTimeout bounds the check of one call.
const readyTimeout = 5 * time.Second

// healthServer answers grpc.health.v1 for the whole program, the service "", as /readyz
// does: it looks when it is asked. Watch is not implemented, which its clients take
// for healthy.
type healthServer struct {
	grpc_health_v1.UnimplementedHealthServer
	ready func(ctx context.Context) error
}

func (h *healthServer) Check(ctx context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if r.GetService() != "" {
		return nil, status.Errorf(codes.NotFound, "no service %q here: ask for the empty one, which is the whole program", r.GetService())
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	serving := grpc_health_v1.HealthCheckResponse_SERVING
	if h.ready(ctx) != nil { // /readyz tells why
		serving = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return &grpc_health_v1.HealthCheckResponse{Status: serving}, nil
}

// registerGRPC adds the gRPC services to the routes, on which they share the port
// with HTTP.
func registerGRPC(mux *http.ServeMux, ready func(ctx context.Context) error) {
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, &healthServer{ready: ready})
	for name := range server.GetServiceInfo() {
		mux.Handle("/"+name+"/", web.Endpoint{Handler: server, Methods: http.MethodPost, Exempt: true})
	}
}
