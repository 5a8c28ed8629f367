package run

import (
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/vaa"
)

// TestOnePort asks for health by gRPC and by HTTP on the one address, while the
// store is there and when it is gone.
func TestOnePort(t *testing.T) {
	redis, bigtable := testenv.RedisServer(t), testenv.StartCBTEmulator(t)
	c := Config{Network: vaa.Mainnet, DataDir: t.TempDir(), EmulatorHost: bigtable.Addr, RedisURL: redis}
	s := start(t, c)
	conn, err := grpc.NewClient(s.HTTP, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	check := func(service string) (grpc_health_v1.HealthCheckResponse_ServingStatus, codes.Code) {
		res, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		return res.GetStatus(), status.Code(err)
	}
	ask := func() (string, bool) {
		report, ready, err := AskStatus(t.Context(), c.DataDir, s.HTTP, "")
		must(t, err)
		return report.Status, ready
	}
	if got, code := check(""); got != grpc_health_v1.HealthCheckResponse_SERVING || code != codes.OK {
		t.Errorf("health is %v, %v", got, code)
	}
	if got, ready := ask(); got != "ok" || !ready {
		t.Errorf("status is %q, ready %t", got, ready)
	}
	if _, code := check("no.such.Service"); code != codes.NotFound {
		t.Errorf("a service that is not here: %v, want NotFound", code)
	}
	if _, err := grpc_health_v1.NewHealthClient(conn).List(t.Context(), &grpc_health_v1.HealthListRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("List: %v, want Unimplemented", err)
	}
	if err := conn.Invoke(t.Context(), "/no.such.Service/Method", &grpc_health_v1.HealthCheckRequest{}, &grpc_health_v1.HealthCheckResponse{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that is not here: %v, want Unimplemented", err)
	}
	bigtable.Kill()
	if got, code := check(""); got != grpc_health_v1.HealthCheckResponse_NOT_SERVING || code != codes.OK {
		t.Errorf("without its store health is %v, %v", got, code)
	}
	if got, ready := ask(); got != "not ready" || ready {
		t.Errorf("without its store status is %q, ready %t", got, ready)
	}
}

// TestAskStatus finds the serve of a data directory, and takes nobody else for one.
func TestAskStatus(t *testing.T) {
	c := Config{Network: vaa.Mainnet, DataDir: t.TempDir()}
	start(t, c)
	if _, ready, err := AskStatus(t.Context(), c.DataDir, "", "127.0.0.1:1"); err != nil || !ready {
		t.Errorf("the serve of the directory: ready %t, %v", ready, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	foreign := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	go foreign.Serve(l) //nolint:errcheck // it is closed below
	defer foreign.Close()
	for what, addr := range map[string]string{"another server": l.Addr().String(), "nobody": "127.0.0.1:1", "no address": "x"} {
		if _, ready, err := AskStatus(t.Context(), c.DataDir, addr, ""); err == nil || ready {
			t.Errorf("%s: ready %t, %v", what, ready, err)
		}
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	if _, _, err := AskStatus(t.Context(), c.DataDir, "0.0.0.0:"+port, ""); err == nil {
		t.Error("an address of all interfaces is not asked on the loopback one")
	}
}
