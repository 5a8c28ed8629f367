package emulator

import (
	"cmp"
	"context"
	"io"
	"runtime"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/emulator/data"
)

// localReads are the ReadRows calls of clients within the process. Such a call does
// not take the connection that all others take: its responses go encoded from one
// goroutine to another.
type localReads struct {
	serve func(*btpb.ReadRowsRequest, btpb.Bigtable_ReadRowsServer) error // set before the first call

	mu      sync.Mutex
	closed  bool
	running map[*localRead]struct{}
	calls   chan *localRead // to goroutines that wait for one
	idle    chan struct{}   // a place for each of these
	workers sync.WaitGroup
}

func newLocalReads() *localReads {
	return &localReads{running: map[*localRead]struct{}{}, calls: make(chan *localRead), idle: make(chan struct{}, 4*runtime.GOMAXPROCS(0))}
}

// errStopped is what a client is told by a server that has ended.
var errStopped = status.Error(codes.Unavailable, "the server is closed")

// localResponses is how many responses of a call may wait for the client.
const localResponses = 4

// localRead is one call. Who began it ends its context or reads it to its end.
type localRead struct {
	reads     *localReads
	ctx       context.Context // which both ends are asked for
	cancel    context.CancelCauseFunc
	req       *btpb.ReadRowsRequest // read, and not written to, until the end
	responses chan mem.BufferSlice
	err       error // why responses was closed; set before that
}

// intercept is a grpc.StreamClientInterceptor that answers ReadRows.
func (l *localReads) intercept(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if method != btpb.Bigtable_ReadRows_FullMethodName {
		return next(ctx, desc, conn, method, opts...)
	}
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if !ok {
		md = metadata.MD{}
	}
	md.Set("user-agent", "grpc-go/"+grpc.Version) // as the connection says
	ctx, cancel := context.WithCancelCause(metadata.NewIncomingContext(ctx, md))
	return (*clientEnd)(&localRead{reads: l, ctx: ctx, cancel: cancel, responses: make(chan mem.BufferSlice, localResponses)}), nil
}

// begin serves a call in a goroutine of its own, or in one that waits: those that
// live on keep the stacks that they grew.
func (l *localReads) begin(r *localRead) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		r.cancel(nil)
		return errStopped
	}
	l.running[r] = struct{}{}
	select {
	case l.calls <- r:
	default:
		l.workers.Go(func() { l.work(r) })
	}
	return nil
}

// work serves a call, and further ones while there are not enough that wait.
func (l *localReads) work(r *localRead) {
	for more := true; more; {
		l.run(r)
		select {
		case l.idle <- struct{}{}:
			r, more = <-l.calls
			<-l.idle
		default:
			return
		}
	}
}

func (l *localReads) run(r *localRead) {
	stream := &grpc.GenericServerStream[btpb.ReadRowsRequest, btpb.ReadRowsResponse]{ServerStream: (*serverEnd)(r)}
	r.err = status.Convert(l.serve(r.req, stream)).Err()
	close(r.responses)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, r)
}

// refuse lets no further call begin.
func (l *localReads) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	close(l.calls)
}

// stop ends the calls that run.
func (l *localReads) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.running {
		r.cancel(errStopped)
	}
}

// clientEnd is the grpc.ClientStream of a call, for one goroutine.
type clientEnd localRead

func (c *clientEnd) Context() context.Context     { return c.ctx }
func (c *clientEnd) Header() (metadata.MD, error) { return nil, nil }
func (c *clientEnd) Trailer() metadata.MD         { return nil }
func (c *clientEnd) CloseSend() error             { return nil }

// SendMsg begins the call.
func (c *clientEnd) SendMsg(m any) error {
	req, ok := m.(*btpb.ReadRowsRequest)
	if !ok { // a message of another make
		encoded, err := data.Codec().Marshal(m)
		if err != nil {
			return err
		}
		defer encoded.Free()
		req = &btpb.ReadRowsRequest{}
		if err := data.Codec().Unmarshal(encoded, req); err != nil {
			return err
		}
	}
	c.req = req
	return c.reads.begin((*localRead)(c))
}

func (c *clientEnd) RecvMsg(m any) error {
	select {
	case encoded, ok := <-c.responses:
		if ok {
			defer encoded.Free()
			return data.Codec().Unmarshal(encoded, m)
		}
		c.cancel(nil)
		return cmp.Or(c.err, io.EOF)
	case <-c.ctx.Done():
		return (*localRead)(c).stopped()
	}
}

// stopped returns why the context has ended.
func (r *localRead) stopped() error {
	if err := context.Cause(r.ctx); err == errStopped {
		return err
	}
	return status.FromContextError(r.ctx.Err()).Err()
}

// serverEnd is the grpc.ServerStream of a call, for one goroutine.
type serverEnd localRead

func (s *serverEnd) Context() context.Context     { return s.ctx }
func (s *serverEnd) SetHeader(metadata.MD) error  { return nil }
func (s *serverEnd) SendHeader(metadata.MD) error { return nil }
func (s *serverEnd) SetTrailer(metadata.MD)       {}
func (s *serverEnd) RecvMsg(any) error            { return io.EOF } // the one request was given

func (s *serverEnd) SendMsg(m any) error {
	encoded, err := data.Codec().Marshal(m)
	if err != nil {
		return err
	}
	select {
	case s.responses <- encoded:
		return nil
	case <-s.ctx.Done():
		encoded.Free()
		return (*localRead)(s).stopped()
	}
}
