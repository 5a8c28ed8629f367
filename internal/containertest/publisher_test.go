package containertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

// TestPublishers has two publishers, each of which believes that it is the active one,
// copy a journal into the Redis of compose.yaml, which then loses everything.
func TestPublishers(t *testing.T) {
	const batches, size = 40, 5
	engine, service := testenv.NewDocker(t), readCompose(t).Services["redis"]
	c, err := testcontainers.Run(t.Context(), engine.RedisImage(service.Image),
		testcontainers.WithCmd(service.Command...), testcontainers.WithExposedPorts("6379/tcp"),
		testcontainers.WithWaitStrategyAndDeadline(startTimeout, wait.ForExec(service.Healthcheck.Test[1:])),
	)
	testcontainers.CleanupContainer(t, c, testcontainers.StopTimeout(0))
	if err != nil {
		t.Fatal(err)
	}
	addr, err := c.PortEndpoint(t.Context(), "6379/tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	journal := memarchive.New(vaa.Devnet, time.Now)
	var publishers []*feed.Publisher
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer running.Wait()
	defer stop()
	for range 2 {
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		p, err := feed.NewPublisher(feed.PublisherConfig{Journal: journal, Store: journal.Info(), Stream: feed.NewRedisStream(client, vaa.Devnet)})
		if err != nil {
			t.Fatal(err)
		}
		publishers = append(publishers, p)
		running.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Errorf("a publisher ended: %v", err)
			}
		})
	}
	random, by := rand.New(rand.NewPCG(testenv.Seed(t), 0)), vaatest.DevnetGuardian(0)
	for i := range batches {
		addBatch(t, journal, archive.Offset(i*size+1), size, random, by)
		for _, p := range publishers {
			p.Wake()
		}
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	awaitStream(t, client, batches*size)
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	addBatch(t, journal, batches*size+1, size, random, by)
	awaitStream(t, client, (batches+1)*size)
}

// addBatch appends and applies a batch of new VAAs.
func addBatch(t *testing.T, journal *memarchive.Store, from archive.Offset, n int, random *rand.Rand, by *vaatest.Guardians) {
	t.Helper()
	b := archive.Batch{Offset: from, ID: fmt.Sprint("batch ", from), Writer: "w", WallTime: time.Now(), Class: archive.ClassLive}
	for range n {
		v := vaatest.NewVAA(random, by)
		set := v.GuardianSetIndex
		b.Events = append(b.Events, archive.Event{
			Offset: b.End(), Kind: archive.KindQuorum, ID: v.MessageID(), Digest: v.Digest(), Canonical: true, Time: v.Time(),
			GuardianSetIndex: &set, Bytes: v.Append(nil), Source: "test",
		})
	}
	ctx := t.Context()
	if err := errors.Join(journal.Append(ctx, b), journal.Apply(ctx, b), journal.MarkApplied(ctx, b.Offset)); err != nil {
		t.Fatal(err)
	}
}

// awaitStream waits until the stream ends at an offset, and finds each offset up to it
// once and in order.
func awaitStream(t *testing.T, client *redis.Client, last archive.Offset) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		entries, err := client.XRange(ctx, feed.Events(vaa.Devnet), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range entries {
			if id, err := feed.ParseID(e.ID); err != nil || id.Offset != archive.Offset(i+1) {
				t.Fatalf("entry %d has the id %s, %v", i+1, e.ID, err)
			}
		}
		if archive.Offset(len(entries)) == last {
			return
		}
		<-tick.C
	}
}
