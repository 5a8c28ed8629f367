package run

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"

	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/ingest/source/file"
	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/vaa"
)

const mainnetFile = "../../testdata/vaas/vaas-mainnet.ndjson"

// start runs a serve until the test ends and returns it when it is ready.
func start(t *testing.T, c Config) *Server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan *Server, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, ServeConfig{Config: c, HTTP: "127.0.0.1:0", Logger: zap.NewNop(), Ready: func(_ context.Context, s *Server) error {
			ready <- s
			return nil
		}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the serve ended with %v", err)
		}
	})
	select {
	case s := <-ready:
		return s
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return nil
	}
}

func connect(t *testing.T, c Config) *Archive {
	t.Helper()
	conn, err := Connect(t.Context(), c)
	must(t, err)
	t.Cleanup(func() { must(t, conn.Close()) })
	a, err := conn.Open(t.Context())
	must(t, err)
	return a
}

// take ingests the collected VAAs of mainnet and waits for the stream.
func take(t *testing.T, a *Archive) {
	t.Helper()
	publishing, err := a.Publish(t.Context(), zap.NewNop())
	must(t, err)
	defer func() { must(t, publishing.Close()) }()
	source, err := file.Open(mainnetFile, nil)
	must(t, err)
	summary, err := ingest.NewRunner(ingest.RunnerConfig{
		Store: a.Store, Verifier: a.Verifier, Class: archive.ClassHistory, Wake: publishing.Wake,
		Writer: ingest.NewWriter(ingest.WriterConfig{Store: a.Store}),
	}).Run(t.Context(), source)
	must(t, err)
	if n := summary.Outcomes[archive.OutcomeAccepted]; n != 146 {
		t.Errorf("%d accepted, want 146", n)
	}
	must(t, publishing.CatchUp(t.Context()))
	end, err := a.End(t.Context())
	must(t, err)
	if end != 147 {
		t.Errorf("the journal ends at %d, want 147", end)
	}
}

// checkStream reads the entries that stand for the run of history.
func checkStream(t *testing.T, a *Archive) {
	t.Helper()
	reader, err := a.Reader(feed.ReaderConfig{})
	must(t, err)
	defer reader.Close()
	var last archive.Offset
	for e, err := range reader.Window(t.Context()) {
		must(t, err)
		if e.From != last+1 {
			t.Errorf("an entry from offset %d after offset %d", e.From, last)
		}
		last = e.ID.Offset
	}
	if last != 146 {
		t.Errorf("the stream ends at offset %d, want 146", last)
	}
}

func health(t *testing.T, s *Server) (status int, checks map[string]any) {
	t.Helper()
	res, err := http.Get("http://" + s.HTTP + "/health")
	must(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	var report struct{ Checks map[string]any }
	must(t, json.Unmarshal(body, &report))
	http.DefaultClient.CloseIdleConnections()
	return res.StatusCode, report.Checks
}

// TestServeEmbedded goes through a serve that embeds everything, as another
// process on its directory does.
func TestServeEmbedded(t *testing.T) {
	c := Config{Network: vaa.Mainnet, DataDir: t.TempDir()}
	if _, err := Connect(t.Context(), c); !errors.Is(err, ErrNoArchive) {
		t.Fatalf("before the start: %v", err)
	}
	s := start(t, c)
	if !s.Embedded || !s.EmbeddedRedis {
		t.Errorf("embedded store %t, embedded redis %t", s.Embedded, s.EmbeddedRedis)
	}
	a := connect(t, c)
	take(t, a)
	checkStream(t, a)
	if status, checks := health(t, s); status != http.StatusOK || len(checks) != 2 {
		t.Errorf("health is %d, %v", status, checks)
	}
	other := c
	other.Network = vaa.Devnet
	end, err := connect(t, other).End(t.Context())
	must(t, err)
	if end != 1 {
		t.Errorf("the journal of another network ends at %d, want 1", end)
	}
}

// TestForeignRedis does not publish a named store into the Redis that a serve has
// embedded for its own.
func TestForeignRedis(t *testing.T) {
	c := Config{Network: vaa.Mainnet, DataDir: t.TempDir()}
	s := start(t, c)
	other := testenv.BTTest(t)
	for _, test := range []struct {
		host string
		want bool
	}{{other, false}, {s.Bigtable, true}} {
		named := c
		named.EmulatorHost = test.host
		conn, err := Connect(t.Context(), named)
		must(t, err)
		if got := conn.HasRedis(); got != test.want {
			t.Errorf("store at %s, serve's at %s: a Redis is known: %t", test.host, s.Bigtable, got)
		}
		must(t, conn.Close())
	}
}

// TestServeNamed runs two serves on a store and a Redis that live elsewhere: they
// hold no directory, share the work, and go without Redis while it is down.
func TestServeNamed(t *testing.T) {
	redis := testenv.StartRedis(t)
	host := testenv.CBTEmulator(t)
	missing := t.TempDir() + "/data"
	c := Config{Network: vaa.Mainnet, DataDir: missing, EmulatorHost: host, RedisURL: redis.Addr}
	first, second := start(t, c), start(t, c)
	if first.Embedded || first.EmbeddedRedis || second.Embedded {
		t.Error("something is embedded that is named")
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a data directory is made that is not needed: %v", err)
	}
	a := connect(t, c)
	take(t, a)
	checkStream(t, a)
	redis.Kill()
	if status, _ := health(t, first); status != http.StatusServiceUnavailable {
		t.Errorf("without Redis health is %d", status)
	}
	if res, err := http.Get("http://" + first.HTTP + "/readyz"); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("without Redis the serve is not ready: %v %v", res, err)
	} else {
		must(t, res.Body.Close())
	}
	redis.Restart()
	publishing, err := a.Publish(t.Context(), zap.NewNop())
	must(t, err)
	must(t, publishing.CatchUp(t.Context()))
	must(t, publishing.Close())
	checkStream(t, a)
	http.DefaultClient.CloseIdleConnections()
}

// TestServeFails leaves nothing behind when a part cannot be started.
func TestServeFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	c := Config{Network: vaa.Mainnet, DataDir: t.TempDir()}
	serve := func(http string, ready func(context.Context, *Server) error) error {
		return Serve(t.Context(), ServeConfig{Config: c, HTTP: http, Logger: zap.NewNop(), Ready: ready})
	}
	if err := serve(taken.Addr().String(), nil); err == nil {
		t.Error("two listen on one address")
	}
	bad := errors.New("bad sample")
	if err := serve("127.0.0.1:0", func(context.Context, *Server) error { return bad }); !errors.Is(err, bad) {
		t.Errorf("an error of Ready ends the serve with %v", err)
	}
	if _, err := findServe(c.DataDir); !errors.Is(err, errNotServed) {
		t.Errorf("after the end: %v", err)
	}
}
