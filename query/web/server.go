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

// Limits of a connection and a request. A handler that streams lifts the write
// timeout for itself, by http.ResponseController.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	maxBodyBytes      = 1 << 20
	defaultShutdown   = 15 * time.Second
)

// Config is what a Server is made of.
type Config struct {
	Routes     *http.ServeMux        // its patterns label the metrics
	Logger     *zap.Logger           // faults of the server at error level, requests at debug level
	Registerer prometheus.Registerer // gets the metrics of requests; nil for none
	// TraceProject is the Google Cloud project that the traces of requests are in; ""
	// keeps traces out of the log.
	TraceProject string
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
	shutdown     time.Duration
}

// NewServer returns a server. Errors: metrics of these names are registered
// already.
func NewServer(c Config) (*Server, error) {
	m, err := newMetrics(c.Registerer)
	if err != nil {
		return nil, err
	}
	return &Server{
		routes:       c.Routes,
		logger:       c.Logger,
		metrics:      m,
		traceProject: c.TraceProject,
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
		ErrorLog:          errorLog,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
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
