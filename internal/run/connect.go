// Package run puts the parts of the archive together: it finds the store and the
// Redis that a command talks to, and runs them, with publisher, sweeper and query
// service, as one program that starts and stops as a whole.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/vaa"
)

// Config says where the archive is. Empty fields name nothing.
type Config struct {
	Network vaa.Network
	DataDir string // of a serve

	EmulatorHost                  string // host:port of a Bigtable server without credentials; wins over Project
	Project, Instance, AppProfile string // of Cloud Bigtable

	RedisURL, RedisPassword string // the password wins over one in the URL
}

// ErrNoArchive says that no store is named and no serve runs.
var ErrNoArchive = errors.New("no archive to talk to")

// Connection is a connection to a Bigtable, and what is known of the Redis beside
// it. Its owner closes it.
type Connection struct {
	Clients *bigtable.Clients
	// Bigtable names the server, as Endpoints.Bigtable does.
	Bigtable string
	// Local: tables are made when they are missing. Those of the cloud are made on
	// demand only.
	Local bool

	network  vaa.Network
	redis    *redis.Options // nil when none is known
	embedded *embedded
}

// Connect connects to the store that is named, else through the serve that holds
// the data directory, else to the store that an earlier command left in it.
// Nothing is asked of the store yet. Errors: ErrNoArchive when there is none of
// them, ErrServed when another command has the store of the directory open.
func Connect(ctx context.Context, c Config) (*Connection, error) {
	redisOptions, err := redisOptions(c)
	if err != nil {
		return nil, err
	}
	conn, err := c.named(ctx)
	if err != nil {
		return nil, err
	}
	served, err := findServe(c.DataDir)
	switch {
	case conn == nil && errors.Is(err, errNotServed):
		conn, err := connectEmbedded(ctx, c, false)
		if !errors.Is(err, ErrNoArchive) {
			return conn, err
		}
		return nil, fmt.Errorf("no store is named, none is in %s and no attestry serve runs on it: %w; start `attestry serve --data-dir %s`, "+
			"set BIGTABLE_EMULATOR_HOST, or give --project and --instance", c.DataDir, ErrNoArchive, c.DataDir)
	case conn == nil && err != nil:
		return nil, err
	case conn == nil && strings.HasPrefix(served.Bigtable, "projects/"):
		return nil, fmt.Errorf("attestry serve on %s keeps its data in %s: %w; give the same --project and --instance", c.DataDir, served.Bigtable, ErrNoArchive)
	case conn == nil:
		if conn, err = local(ctx, served.Bigtable); err != nil {
			return nil, err
		}
	}
	conn.network, conn.redis = c.Network, redisOptions
	// The embedded Redis of a serve is the stream of that serve's store and of no
	// other.
	if err == nil && conn.redis == nil && served.Redis != nil && served.Bigtable == conn.Bigtable {
		if conn.redis, err = feed.Options(*served.Redis); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// ConnectEmbedded opens the store in the data directory, which it makes where
// there is none, and connects to it. It belongs to this process until the
// connection is closed. Errors: ErrServed.
func ConnectEmbedded(ctx context.Context, c Config) (*Connection, error) {
	return connectEmbedded(ctx, c, true)
}

func connectEmbedded(ctx context.Context, c Config, create bool) (*Connection, error) {
	redisOptions, err := redisOptions(c)
	if err != nil {
		return nil, err
	}
	embedded, err := startEmbedded(c.DataDir, create)
	if err != nil {
		return nil, err
	}
	conn, err := embedded.connect(ctx)
	if err != nil {
		return nil, errors.Join(err, embedded.close())
	}
	conn.network, conn.redis, conn.embedded = c.Network, redisOptions, embedded
	return conn, nil
}

// named connects to the store that the configuration names, nil if it names none.
func (c Config) named(ctx context.Context) (*Connection, error) {
	switch {
	case c.EmulatorHost != "":
		return local(ctx, c.EmulatorHost)
	case c.Project != "":
		clients, err := bigtable.DialCloud(ctx, c.Project, c.Instance, c.AppProfile)
		if err != nil {
			return nil, err
		}
		return &Connection{Clients: clients, Bigtable: "projects/" + c.Project + "/instances/" + c.Instance}, nil
	}
	return nil, nil
}

func local(ctx context.Context, addr string) (*Connection, error) {
	clients, err := bigtable.DialLocal(ctx, addr, bigtable.LocalInstance)
	if err != nil {
		return nil, err
	}
	return &Connection{Clients: clients, Bigtable: addr, Local: true}, nil
}

// redisOptions returns those of the Redis that the configuration names, nil if it
// names none.
func redisOptions(c Config) (*redis.Options, error) {
	if c.RedisURL == "" {
		return nil, nil
	}
	o, err := feed.Options(c.RedisURL)
	if err != nil {
		return nil, err
	}
	o.Password = cmp.Or(c.RedisPassword, o.Password)
	return o, nil
}

// Close ends the connection, and the server if it is in this process.
func (c *Connection) Close() error {
	err := c.Clients.Close()
	if c.embedded != nil {
		err = errors.Join(err, c.embedded.close())
	}
	return err
}

// HasRedis reports whether a Redis is known.
func (c *Connection) HasRedis() bool { return c.redis != nil }

// Open opens the network's store. A missing one is created first if the server
// is local. Errors: archive.ErrNoStore, archive.ErrNewerSchema,
// archive.ErrSealed.
func (c *Connection) Open(ctx context.Context) (*Archive, error) {
	store, err := bigtable.Open(ctx, c.Clients.Data, c.network)
	if errors.Is(err, archive.ErrNoStore) && c.Local {
		if _, err := c.Create(ctx); err != nil {
			return nil, err
		}
		store, err = bigtable.Open(ctx, c.Clients.Data, c.network)
	}
	if err != nil {
		return nil, err
	}
	known, err := vaa.KnownGuardianSets(c.network)
	if err != nil {
		return nil, err
	}
	verifier, err := ingest.NewVerifier(ctx, store, known, now)
	if err != nil {
		return nil, err
	}
	return &Archive{Store: store, Verifier: verifier, conn: c}, nil
}

// Create makes the network's tables and opens the store. It reports whether it
// did; false means that the store existed.
func (c *Connection) Create(ctx context.Context) (bool, error) {
	return bigtable.Create(ctx, c.Clients.Admin, c.Clients.Data, c.network)
}

// Move makes the next generation of the network's store from the journal of one, and
// opens it; see bigtable.Move.
func (c *Connection) Move(ctx context.Context, from, to uint64) (bigtable.Moved, error) {
	return bigtable.Move(ctx, c.Clients.Admin, c.Clients.Data, c.network, from, to)
}

// Diff returns how the network's tables differ from the schema, each difference
// in a sentence. A store that was not created lacks everything.
func (c *Connection) Diff(ctx context.Context) ([]string, error) {
	generation := uint64(1)
	store, err := bigtable.Open(ctx, c.Clients.Data, c.network)
	switch {
	case err == nil:
		generation = store.Info().Generation
	case !errors.Is(err, archive.ErrNoStore):
		return nil, err
	}
	diffs, diffErr := bigtable.Diff(ctx, c.Clients.Admin, c.network, generation)
	if diffErr == nil && len(diffs) == 0 && err != nil {
		diffs = append(diffs, "no row says which generation is open")
	}
	return diffs, diffErr
}

// Archive is an open store with the guardian sets that it knows. It lives as long
// as its connection.
type Archive struct {
	Store    archive.Store
	Verifier *ingest.Verifier

	conn *Connection
}

// ErrNoRedis says that no Redis is known.
var ErrNoRedis = errors.New("no Redis to talk to")

// Reader returns a reader of the stream, which its caller closes. What the stream
// lacks it takes from the journal. Errors: ErrNoRedis.
func (a *Archive) Reader(c feed.ReaderConfig) (*feed.Reader, error) {
	if a.conn.redis == nil {
		return nil, fmt.Errorf("%w: give --redis-url or set ATTESTRY_REDIS_URL to the one that the archive publishes to", ErrNoRedis)
	}
	c.Redis, c.Store, c.Journal = a.conn.redis, a.Store.Info(), a.Store
	return feed.NewReader(c)
}

// End returns the offset behind the journal's last event.
func (a *Archive) End(ctx context.Context) (archive.Offset, error) {
	end, err := a.Store.Watermark(ctx)
	if err != nil {
		return 0, err
	}
	for b, err := range a.Store.Batches(ctx, end) {
		if err != nil {
			return 0, err
		}
		end = b.End()
	}
	return end, nil
}
