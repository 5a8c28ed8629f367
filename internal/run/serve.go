package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/query/guardian"
	"github.com/attestry/attestry/query/native"
	"github.com/attestry/attestry/query/web"
	"github.com/attestry/attestry/query/wormholescan"
)

const (
	openTimeout = 30 * time.Second // to open the store at the start
	// shutdownTimeout is for requests in flight at the end. Cloud Run kills a program
	// 10 s after its SIGTERM; the rest is for closing what is open.
	shutdownTimeout = 7 * time.Second
	sweepInterval   = 5 * time.Second
	sweepTimeout    = time.Minute
)

// ServeConfig is what a serve is made of.
type ServeConfig struct {
	Config
	HTTP   string // host:port to listen on; port 0 takes a free one
	Logger *zap.Logger
	Limits web.Limits // of the query service
	// StrictGuardian has the guardians' interface refuse what guardians refuse.
	StrictGuardian bool
	Version        string // of the program
	// TraceProject is the Google Cloud project of the traces of requests, for the log;
	// "" when it is not known.
	TraceProject string
	// Ready is called once, when everything answers, beside what serves. An error
	// of it ends the serve.
	Ready func(ctx context.Context, s *Server) error
}

// Server is a running archive.
type Server struct {
	*Archive
	Endpoints

	// Embedded: the store is in this process, on disk in its data directory.
	Embedded bool
	// EmbeddedRedis: the stream is in this process.
	EmbeddedRedis bool

	cfg       ServeConfig
	log       *zap.Logger
	registry  *prometheus.Registry
	store     *embedded // nil when the store is elsewhere
	writer    *ingest.Writer
	publisher *feed.Publisher
	redis     *redis.Client // of the publisher
	listener  net.Listener
	closers   []func() error // in the order of opening
}

// Serve runs the whole archive until ctx ends, and then stops it within a
// deadline and returns nil. What is named is used; a store or a Redis that is not
// is embedded, and then the data directory is held. Errors: ErrServed when
// another serve holds it; anything that ended a part, which ends all.
func Serve(ctx context.Context, c ServeConfig) (err error) {
	s := &Server{cfg: c, log: c.Logger, registry: prometheus.NewRegistry()}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	s.log.Info("serving", zap.String("http", s.HTTP), zap.Stringer("network", c.Network), zap.String("bigtable", s.Bigtable))
	defer context.AfterFunc(ctx, func() { s.log.Info("stopping") })()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.serveHTTP(ctx) })
	g.Go(func() error { return s.publisher.Run(ctx) })
	g.Go(func() error { s.sweep(ctx); return nil })
	g.Go(func() error { return s.count(ctx) })
	if s.store != nil {
		g.Go(func() error { return s.store.watch(ctx) })
	}
	g.Go(func() error {
		if err := c.Ready(ctx, s); err != nil && ctx.Err() == nil {
			return err
		}
		return nil
	})
	return g.Wait()
}

// open builds everything that serves, lowest first.
func (s *Server) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var dir *dataDir
	if s.cfg.embeds() {
		var err error
		if dir, err = holdDir(ctx, s.cfg.DataDir); err != nil {
			return err
		}
		s.closers = append(s.closers, dir.close)
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	s.closers, s.store = append(s.closers, conn.Close), conn.embedded
	if err := s.openRedis(conn); err != nil {
		return err
	}
	if s.Archive, err = conn.Open(ctx); err != nil {
		return err
	}
	s.writer = ingest.NewWriter(ingest.WriterConfig{Store: s.Store, Logger: s.log.Named("writer")})
	if s.publisher, s.redis, err = newPublisher(s.Archive, s.log, s.registry); err != nil {
		return err
	}
	s.closers = append(s.closers, s.redis.Close)
	if s.listener, err = net.Listen("tcp", s.cfg.HTTP); err != nil {
		return fmt.Errorf("listen for HTTP: %w; name another address by --http", err)
	}
	// Closed twice where the HTTP server got it; then the second finds it closed.
	s.closers = append(s.closers, func() error { s.listener.Close(); return nil }) //nolint:errcheck // nothing is lost with a listener
	s.Bigtable, s.HTTP = conn.Bigtable, loopback(s.listener.Addr())
	if dir != nil {
		return dir.publish(s.Endpoints)
	}
	return nil
}

// StoreDir is where the embedded store keeps its data.
func (s *Server) StoreDir() string { return storeDir(s.cfg.DataDir) }

// embeds reports whether a part of the serve is in its own process.
func (c Config) embeds() bool { return c.EmulatorHost == "" && c.Project == "" || c.RedisURL == "" }

func (s *Server) connect(ctx context.Context) (*Connection, error) {
	if s.cfg.EmulatorHost == "" && s.cfg.Project == "" {
		s.Embedded = true
		return ConnectEmbedded(ctx, s.cfg.Config)
	}
	options, err := redisOptions(s.cfg.Config)
	if err != nil {
		return nil, err
	}
	conn, err := s.cfg.named(ctx)
	if err == nil {
		conn.network, conn.redis = s.cfg.Network, options
	}
	return conn, err
}

// openRedis starts the embedded Redis unless another is named.
func (s *Server) openRedis(conn *Connection) error {
	if conn.redis != nil {
		return nil
	}
	embedded, err := feed.NewEmbedded("127.0.0.1:0")
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { embedded.Close(); return nil })
	addr := embedded.Addr()
	s.Redis, s.EmbeddedRedis = &addr, true
	conn.redis, err = feed.Options(addr)
	return err
}

func (s *Server) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	return errors.Join(errs...)
}

func (s *Server) serveHTTP(ctx context.Context) error {
	mux := http.NewServeMux()
	service := s.service()
	native.Register(mux, service)
	guardian.Register(mux, guardian.Config{Service: service, Sets: s.Verifier.Sets, Strict: s.cfg.StrictGuardian})
	wormholescan.Register(mux, wormholescan.Config{Service: service, Ready: s.Store.CheckOpen, Version: s.cfg.Version})
	web.Register(mux, web.Ops{
		Ready:    map[string]web.Check{"store": s.Store.CheckOpen},
		Health:   map[string]web.Check{"redis": func(ctx context.Context) error { return s.redis.Ping(ctx).Err() }},
		Gatherer: s.registry,
	})
	registerGRPC(mux, s.Store.CheckOpen)
	server, err := web.NewServer(web.Config{
		Routes: mux, Logger: s.log.Named("http"), Registerer: s.registry,
		Limits: s.cfg.Limits, TraceProject: s.cfg.TraceProject, ShutdownTimeout: shutdownTimeout,
	})
	if err != nil {
		return err
	}
	return server.Run(ctx, s.listener)
}

// sweep applies what dead writers have left unapplied and learns the guardian sets that
// others have learnt, at once and then again and again, until ctx ends.
func (s *Server) sweep(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		turn, cancel := context.WithTimeout(ctx, sweepTimeout)
		err := errors.Join(s.writer.Sweep(turn), s.Verifier.Refresh(turn))
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			s.log.Warn("what others left in the store cannot be taken up, retrying", zap.Error(err))
		}
		failing = err != nil
		pause(ctx, sweepInterval)
	}
}

// Runner returns a runner of sources into the serve's archive, whose events are
// published at once. It is to be called once.
func (s *Server) Runner(class archive.Class) *ingest.Runner {
	return ingest.NewRunner(ingest.RunnerConfig{
		Store: s.Store, Writer: s.writer, Verifier: s.Verifier, Class: class,
		Logger: s.log.Named("ingest"), Registerer: s.registry, Wake: s.publisher.Wake,
	})
}

// loopback is where a listener is reached from its own machine.
func loopback(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return net.JoinHostPort(reachable(host), port)
}

// reachable is a host on which one that listens on host is reached.
func reachable(host string) string {
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "127.0.0.1"
	}
	return host
}
