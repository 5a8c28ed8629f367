package bigtable

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// Project and instance that are given to servers which have only one of each.
const (
	LocalProject  = "attestry"
	LocalInstance = "local"
)

// maxMessage bounds a message on the wire to a local server: the largest row that
// production lets grow.
const maxMessage = 256 << 20

// Clients are the connections to one Bigtable.
type Clients struct {
	Data  *bigtable.Client
	Admin *bigtable.AdminClient

	close []func() error
}

// DialCloud connects to Cloud Bigtable with application default credentials.
// Nothing is asked of the network before the first call.
func DialCloud(ctx context.Context, project, instance, appProfile string) (*Clients, error) {
	data, err := bigtable.NewClientWithConfig(ctx, project, instance, bigtable.ClientConfig{
		AppProfile: appProfile, DisableDirectAccess: true,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to bigtable instance %s/%s: %w", project, instance, err)
	}
	admin, err := bigtable.NewAdminClient(ctx, project, instance)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the admin API of %s/%s: %w", project, instance, err), data.Close())
	}
	return &Clients{Data: data, Admin: admin, close: []func() error{data.Close, admin.Close}}, nil
}

// DialLocal connects to an emulator or another server without transport security
// and credentials. Nothing is asked of the network before the first call. More
// options are for tests.
func DialLocal(ctx context.Context, addr, instance string, opts ...grpc.DialOption) (*Clients, error) {
	opts = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	}, opts...)
	conn, err := grpc.NewClient("passthrough:///"+addr, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to the bigtable server at %s: %w", addr, err)
	}
	return NewLocal(ctx, conn, instance)
}

// NewLocal uses a connection to a server without credentials, which it owns: it is
// closed with the clients, or when they cannot be made.
func NewLocal(ctx context.Context, conn *grpc.ClientConn, instance string) (*Clients, error) {
	data, err := bigtable.NewClientWithConfig(ctx, LocalProject, instance,
		bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the bigtable server at %s: %w", conn.Target(), err), conn.Close())
	}
	admin, err := bigtable.NewAdminClient(ctx, LocalProject, instance, option.WithGRPCConn(conn))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the bigtable server at %s: %w", conn.Target(), err), data.Close(), conn.Close())
	}
	return &Clients{Data: data, Admin: admin, close: []func() error{data.Close, admin.Close, conn.Close}}, nil
}

// Close closes the connections.
func (c *Clients) Close() error {
	var errs []error
	for _, f := range c.close {
		if err := f(); err != nil && status.Code(err) != codes.Canceled { // the clients share one connection
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
