package feed_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/attestry/attestry/feed"
	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/vaa"
)

func TestKeys(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{feed.Events(vaa.Mainnet), "attestry:{mainnet}:events"},
		{feed.Sync(vaa.Testnet), "attestry:{testnet}:sync"},
		{feed.PublisherLock(vaa.Devnet), "attestry:{devnet}:publisher:lock"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		server, addr, user, password string
		db                           int
		tls                          bool
	}{
		{server: "127.0.0.1:6380", addr: "127.0.0.1:6380"},
		{server: "cache", addr: "cache:6379"},
		{server: "[::1]:7000", addr: "[::1]:7000"},
		{server: "redis://cache:7000/3", addr: "cache:7000", db: 3},
		{server: "redis://:secret@cache", addr: "cache:6379", password: "secret"},
		{server: "rediss://me:secret@cache:6378", addr: "cache:6378", user: "me", password: "secret", tls: true},
	} {
		o, err := feed.Options(c.server)
		if err != nil {
			t.Errorf("%s: %v", c.server, err)
			continue
		}
		if o.Addr != c.addr || o.Username != c.user || o.Password != c.password || o.DB != c.db || (o.TLSConfig != nil) != c.tls {
			t.Errorf("%s: got address %s, user %q, password %q, database %d", c.server, o.Addr, o.Username, o.Password, o.DB)
		}
		if !o.DisableIdentity || o.MaintNotificationsConfig.Mode != maintnotifications.ModeDisabled || o.PoolSize == 0 {
			t.Errorf("%s: the connections send what managed servers refuse, or are not bounded", c.server)
		}
	}
	for _, server := range []string{"", "redis://", "http://:secret@cache", "redis://:secret@cache:port", "redis://:secret@cache/x", "redis://:secret@cache/1/2", "redis://:secret@cache/\x7f", "redis://:secret@cache?secret=1"} {
		_, err := feed.Options(server)
		if err == nil {
			t.Errorf("%q: accepted", server)
		} else if strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "host:port") {
			t.Errorf("%q: the error tells the password or not the way out: %v", server, err)
		}
	}
}

func TestEmbeddedRefuses(t *testing.T) {
	for _, addr := range []string{"", "127.0.0.1", "0.0.0.0:0", ":0", "example.org:0", "127.0.0.1:99999"} {
		if e, err := feed.NewEmbedded(addr); err == nil {
			e.Close()
			t.Errorf("%q: started", addr)
		}
	}
	e, err := feed.NewEmbedded("localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if again, err := feed.NewEmbedded(e.Addr()); err == nil {
		again.Close()
		t.Error("two on one port")
	}
}

func TestLock(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		key := feed.PublisherLock(network)
		a, b := feed.NewRedisLock(s.client, key), feed.NewRedisLock(s.client, key)
		hold := func(l *feed.RedisLock, want bool) {
			t.Helper()
			held, err := l.Hold(t.Context())
			if err != nil || held != want {
				t.Fatalf("held is %t: %v", held, err)
			}
		}
		release := func(l *feed.RedisLock) {
			t.Helper()
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		release(a) // what is not held
		hold(a, true)
		hold(a, true)
		hold(b, false)
		release(b) // what another holds
		hold(b, false)
		ttl, err := s.client.PTTL(t.Context(), key).Result()
		if err != nil || ttl <= 0 || ttl > 10*time.Second {
			t.Errorf("expires in %s: %v", ttl, err)
		}
		// It expires by the server's own clock, which runs in the embedded one too.
		if err := s.client.PExpire(t.Context(), key, 20*time.Millisecond).Err(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for held := false; !held; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatal("the lock does not expire")
			}
			if held, err = b.Hold(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		hold(a, false)
		release(b)
		hold(a, true)
	})
}

// TestServerRestartsEmpty kills a real server in the middle of the publisher's and a
// reader's work.
func TestServerRestartsEmpty(t *testing.T) {
	r := testenv.StartRedis(t)
	s := connect(t, r.Addr)
	h := newHistory(t, 60)
	p := h.publisher(s.stream(), 1, func(cfg *feed.PublisherConfig) {
		cfg.Lock = feed.NewRedisLock(s.client, feed.PublisherLock(network))
	})
	stop := start(t, p)
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	f := follow(t, s.reader(t, 1, nil), feed.After(0))
	h.live(20)
	within(t, p, patience, 20)
	got := f.next(20)
	r.Kill()
	h.live(5)
	h.old(5)
	r.Restart()
	got = append(got, f.next(6)...)
	h.check(1, 1, 30, got)
	within(t, p, patience, 30)
	h.check(1, 1, 30, s.window(t))
}

// TestServerRestartsOlder restores a real server to what it held before.
func TestServerRestartsOlder(t *testing.T) {
	r := testenv.StartRedis(t, "--dbfilename", "dump.rdb")
	s := connect(t, r.Addr)
	h := newHistory(t, 61)
	p := h.publisher(s.stream(), 1)
	h.live(10)
	publish(t, p)
	if err := s.client.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	h.live(10)
	publish(t, p)
	r.Restart() // killed, so what came after Save is lost
	if last, err := s.stream().Last(t.Context()); err != nil || last.ID.Offset != 10 {
		t.Fatalf("restarted with offset %d: %v", last.ID.Offset, err)
	}
	publish(t, p)
	h.check(1, 1, 20, s.window(t))
}
