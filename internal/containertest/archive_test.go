package containertest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/redis/go-redis/v9"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/vaa"
)

// samples is the number of VAAs that the ingester takes in, and sample one of them.
const (
	samples = 146
	sample  = "1/0000000000000000000000000000000000000000000000000000000000000004/1337"
)

// TestArchive brings up what compose.yaml says, with a second query service and a
// second ingester against the one store, and looks for the samples: over HTTP, in the
// stream, and by a check of everything.
func TestArchive(t *testing.T) {
	s := newStack(t)
	s.up("query")
	query := s.running["query"]
	second := s.start("second", s.compose.Services["query"], wait.ForHealthCheck())
	other := s.start("other", s.compose.Services["ingester"], wait.ForNop(func(context.Context, wait.StrategyTarget) error { return nil }))
	s.up("ingester")
	if err := wait.ForExit().WaitUntilReady(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if code := s.exitCode(other); code != 0 {
		t.Fatalf("the second ingester ended with exit code %d:\n%s", code, s.logs(other))
	}
	checkSummaries(t, s.logs(s.running["ingester"]), s.logs(other))
	for _, c := range []*testcontainers.DockerContainer{query, second} {
		addr := s.address(c, "8080")
		checkLookup(t, "http://"+addr)
		checkHealth(t, addr)
	}
	checkStream(t, s.address(s.running["redis"], "6379"))
	if output, code := s.run("fsck", "-o", "json", "--wait", "30s"); code != 0 {
		t.Errorf("fsck ended with exit code %d:\n%s", code, output)
	}
	for name, c := range map[string]*testcontainers.DockerContainer{"query": query, "second": second} {
		if code := s.stop(c); code != 0 {
			t.Errorf("%s: exit code %d after SIGTERM:\n%s", name, code, s.logs(c))
		}
		checkLog(t, s.logs(c))
	}
}

// checkSummaries finds that each sample was new to one ingester and known to the other.
func checkSummaries(t *testing.T, logs ...string) {
	t.Helper()
	accepted := 0
	for _, text := range logs {
		var summary struct{ Accepted, Duplicate int }
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "{") {
				if err := json.Unmarshal([]byte(line), &summary); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
			}
		}
		if summary.Accepted+summary.Duplicate != samples {
			t.Errorf("an ingester has %+v of %d", summary, samples)
		}
		accepted += summary.Accepted
	}
	if accepted != samples {
		t.Errorf("%d are new to an ingester, want %d", accepted, samples)
	}
}

func checkLookup(t *testing.T, base string) {
	t.Helper()
	client := &http.Client{Timeout: startTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(base + "/v1/attestations/" + sample)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ ID, SignedVAA string }
	if err := json.Unmarshal(body, &found); err != nil || res.StatusCode != http.StatusOK || found.ID == "" {
		t.Errorf("look-up of %s: %s %s", sample, res.Status, body)
	}
}

// checkHealth asks for health by gRPC on the port that the look-ups were on.
func checkHealth(t *testing.T, addr string) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	res, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil || res.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health by gRPC: %v, %v", res.GetStatus(), err)
	}
}

// checkStream finds every offset in the stream once, in order, and events among them.
func checkStream(t *testing.T, addr string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last uint64
	kinds := map[string]int{}
	for last < samples { // one of four publishers works; it may be a moment behind
		entries, err := client.XRange(ctx, feed.Events(vaa.Mainnet), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		last, kinds = 0, map[string]int{}
		for _, e := range entries {
			var data struct {
				Kind   string
				Offset uint64 `json:",string"`
				From   uint64 `json:",string"`
				To     uint64 `json:",string"`
			}
			if err := json.Unmarshal([]byte(e.Values["data"].(string)), &data); err != nil {
				t.Fatalf("entry %v: %v", e, err)
			}
			kinds[data.Kind]++
			from, to := data.Offset, data.Offset
			if data.Kind == "skipped" {
				from, to = data.From, data.To
			}
			if from != last+1 {
				t.Fatalf("offset %d follows offset %d: %v", from, last, e)
			}
			last = to
		}
		if last < samples {
			<-tick.C
		}
	}
	if last != samples || kinds["quorum"] == 0 {
		t.Errorf("the stream ends at offset %d, want %d; entries by kind: %v", last, samples, kinds)
	}
	t.Logf("the stream's entries by kind: %v", kinds)
}

// checkLog finds no error in the log of a service, and its entries in the form that
// Cloud Logging parses.
func checkLog(t *testing.T, text string) {
	t.Helper()
	entries := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "{") {
			continue // where the service is, on standard output
		}
		entries++
		var entry struct {
			Severity, Message string
			Time              time.Time
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Message == "" || entry.Time.IsZero() {
			t.Errorf("entry %q: %v", line, err)
		}
		if entry.Severity != "INFO" && entry.Severity != "WARNING" {
			t.Errorf("a service that was well logged %q", line)
		}
	}
	if entries == 0 {
		t.Errorf("no entry in\n%s", text)
	}
}

// TestStop ends an ingest that waits for its standard input, and one more time takes
// in all: nothing was left half done.
func TestStop(t *testing.T) {
	s := newStack(t)
	s.up("schema", "redis")
	waiting := s.compose.Services["ingester"]
	waiting.Command = []string{"ingest", "/vaas/vaas-mainnet.ndjson", "-"}
	c := s.start("waiting", waiting, wait.ForLog("read file:vaas-mainnet.ndjson"),
		testcontainers.WithConfigModifier(func(config *container.Config) {
			config.OpenStdin, config.Healthcheck = true, &container.HealthConfig{Test: []string{"NONE"}}
		}))
	if code := s.stop(c); code != 1 || !strings.Contains(s.logs(c), "interrupted") {
		t.Errorf("exit code %d after SIGTERM:\n%s", code, s.logs(c))
	}
	s.up("ingester")
	checkSummaries(t, s.logs(c), s.logs(s.running["ingester"]))
	if output, code := s.run("fsck", "-o", "json", "--wait", "30s"); code != 0 {
		t.Errorf("fsck ended with exit code %d:\n%s", code, output)
	}
}

// TestImage holds the image to what the platform and a careful operator ask of it.
func TestImage(t *testing.T) {
	s := newStack(t)
	c := s.compose.Services["ingester"]
	c.Command, c.Environment = []string{"version"}, nil
	ended := s.start("version", c, wait.ForExit())
	if code := s.exitCode(ended); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.logs(ended))
	}
	inspected, err := ended.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{
		"user": inspected.Config.User, "entrypoint": []string(inspected.Config.Entrypoint), "volumes": inspected.Config.Volumes,
		"read-only root": inspected.HostConfig.ReadonlyRootfs, "version": inspected.Config.Labels["org.opencontainers.image.version"],
	}
	want := map[string]any{
		"user": "65532:65532", "entrypoint": []string{"/attestry"}, "volumes": map[string]struct{}{"/data": {}},
		"read-only root": true, "version": "test",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// The embedded store is the one thing that is written, and /data the one place.
	c.Command = []string{"ingest", "/vaas/vaas-mainnet.ndjson"}
	alone := s.start("alone", c, wait.ForExit())
	if code := s.exitCode(alone); code != 0 {
		t.Errorf("with a store of its own: exit code %d:\n%s", code, s.logs(alone))
	}
}
