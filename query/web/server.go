package web

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Limits of a connection and a request.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second // of header and body
	idleTimeout       = 2 * time.Minute
	pingTimeout       = 30 * time.Second // silence on HTTP/2 after which the client is asked whether it lives
	maxHeaderBytes    = 32 << 10
	maxBodyBytes      = 1 << 20

	defaultInWork       = 256
	defaultWriteTimeout = 30 * time.Second
	defaultShutdown     = 15 * time.Second
)

// Limits are who may ask, and how much. The zero value lets any page of any origin and
// anybody ask without a limit.
type Limits struct {
	// Origins are those whose pages may read answers, as ParseOrigins returns them; nil
	// is any.
	Origins []string
	// Keys are the API keys that X-Api-Key may hold; without any it is not looked at.
	Keys []Key
	// PerMinute is how many requests an address may make in a minute, an IPv6 /64
	// counting as one; 0 is any number. One with a key has the key's limit instead.
	PerMinute int
	// TrustedProxies is the number of addresses at the end of X-Forwarded-For that
	// proxies of ours have put there; 0 goes by the connection.
	TrustedProxies int
}

// Config is what a Server is made of.
type Config struct {
	Routes     *http.ServeMux        // its patterns label the metrics
	Logger     *zap.Logger           // faults of the server at error level, requests at debug level
	Registerer prometheus.Registerer // gets the metrics of requests; nil for none
	Limits     Limits
	// TraceProject is the Google Cloud project that the traces of requests are in; ""
	// keeps traces out of the log.
	TraceProject string
	// InWork bounds the requests in work at once, streams and the state of the program
	// apart; those beyond get 503. 0 is 256.
	InWork int
	// WriteTimeout bounds the time from a request's header to when the client has taken
	// the answer, and of a stream that of each write; then the connection, or the HTTP/2
	// stream, is cut. 0 is 30 s.
	WriteTimeout time.Duration
	// ShutdownTimeout bounds how long Run waits for requests in flight at its end;
	// 0 is 15 s.
	ShutdownTimeout time.Duration
}

// Server answers HTTP requests. It may be run once.
type Server struct {
	routes       *http.ServeMux
	logger       *zap.Logger
	metrics      *metrics
	traceProject string
	limits       Limits
	cors         cors
	limiter      *limiter
	work         chan struct{} // one for each request in work
	writeTimeout time.Duration
	shutdown     time.Duration
}

// NewServer returns a server. Errors: metrics of these names are registered
// already.
func NewServer(c Config) (*Server, error) {
	m, err := newMetrics(c.Registerer)
	if err != nil {
		return nil, err
	}
	limiter, err := newLimiter()
	if err != nil {
		return nil, err
	}
	return &Server{
		routes:       c.Routes,
		logger:       c.Logger,
		metrics:      m,
		traceProject: c.TraceProject,
		limits:       c.Limits,
		cors:         newCORS(c.Limits.Origins),
		limiter:      limiter,
		work:         make(chan struct{}, cmp.Or(c.InWork, defaultInWork)),
		writeTimeout: cmp.Or(c.WriteTimeout, defaultWriteTimeout),
		shutdown:     cmp.Or(c.ShutdownTimeout, defaultShutdown),
	}, nil
}

// Run answers requests on ln, of HTTP/1 and of HTTP/2 without TLS, until ctx ends;
// then it takes no new ones, waits for those in flight, and returns nil. It owns
// and closes ln. Errors: the listener
// failed; requests were still in flight after ShutdownTimeout and were cut off.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	errorLog, err := zap.NewStdLogAt(s.logger, zap.WarnLevel)
	if err != nil {
		return fmt.Errorf("serve http on %s: %w", ln.Addr(), err)
	}
	// What ends TLS before the program speaks either; gRPC needs HTTP/2.
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler:           s,
		Protocols:         protocols,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:          errorLog,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      s.writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{SendPingTimeout: pingTimeout, WriteByteTimeout: s.writeTimeout},
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener{ln}) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve http on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	deadline, cancel := context.WithTimeout(base, s.shutdown)
	defer cancel()
	err = server.Shutdown(deadline)
	<-served
	if err != nil {
		cut()
		server.Close() //nolint:errcheck // what matters is that the connections are gone
		return fmt.Errorf("stop http on %s: requests still in flight after %s were cut off: %w", ln.Addr(), s.shutdown, err)
	}
	return nil
}

// maxGathered is the longest body that goes out in one piece with its header. A
// connection keeps so much memory while it is open.
const maxGathered = 16 << 10

type connKey struct{}

// listener gives out connections that can gather what is written.
type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn can gather what is written to it: the HTTP server writes a short answer in two
// pieces, and each costs both sides a call of the kernel. One goroutine writes.
type conn struct {
	net.Conn
	gathering bool
	gathered  []byte
}

func (c *conn) Write(b []byte) (int, error) {
	if !c.gathering {
		return c.Conn.Write(b)
	}
	c.gathered = append(c.gathered, b...)
	return len(b), nil
}

func (c *conn) gather() { c.gathering = true }

// release writes what was gathered. The HTTP server has taken it for written, so that a
// connection which did not take all of it is closed: a next answer would go on within
// the one that was cut.
func (c *conn) release() {
	c.gathering = false
	if _, err := c.Conn.Write(c.gathered); err != nil {
		c.Close() //nolint:errcheck // the next use tells that it is closed
	}
	c.gathered = c.gathered[:0]
}
