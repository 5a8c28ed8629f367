package crashtest

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/feed"
)

// kills returns how often the program is killed.
func kills(t *testing.T) int {
	text := os.Getenv("ATTESTRY_CRASH_KILLS")
	if text == "" {
		if testing.Short() {
			return 3
		}
		return 10
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("ATTESTRY_CRASH_KILLS=%s: want a number from 1 on", text)
	}
	return n
}

// TestKilled kills ingest at random points: after a random time, or when the
// journal has grown by a random number of events. Each run has new work, and some
// of the run before again.
func TestKilled(t *testing.T) {
	const share = 400
	d := newDrill(t, "")
	n := kills(t)
	all := d.vaas((n + 1) * share)
	began := time.Now()
	d.ingest(d.class(), d.file(all[:share]))
	whole := time.Since(began)
	killed := 0
	for i := range n {
		first := (i + 1) * share
		c := d.start("ingest", "--class", d.class().String(), d.file(all[first-share/2:first+share]))
		if i%2 == 0 {
			d.reached(c, d.end()+1+archive.Offset(d.rand.IntN(share)))
		} else {
			timer := time.NewTimer(time.Duration(d.rand.Int64N(int64(whole))))
			select {
			case <-timer.C:
			case <-c.done:
			}
			timer.Stop()
		}
		if c.kill() {
			killed++
		}
	}
	t.Logf("%d of %d runs were killed before their end; the journal ended at %d", killed, n, d.end())
	if killed == 0 {
		t.Error("no run was killed")
	}
	everything := d.file(all)
	d.ingest(archive.ClassHistory, everything)
	d.intact()
	end := d.end()
	if summary := d.ingest(archive.ClassLive, everything); summary["duplicate"] != float64(len(all)) || d.end() != end {
		t.Errorf("once more: %v, and the journal ends at %d, not %d", summary, d.end(), end)
	}
}

// TestTwoAtOnce runs two ingests on overlapping files, in different orders, with
// two publishers that both believe to be the active one and a Redis that forgets.
func TestTwoAtOnce(t *testing.T) {
	d := newDrill(t, "")
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		d.two()
	}
	d.intact()
}

// two runs two ingests on overlapping new files until both have ended, and one more.
func (d *drill) two() {
	d.t.Helper()
	const n = 900
	all := d.vaas(n)
	a := d.start("ingest", "--class", "live", d.file(d.shuffled(all[:n*2/3])))
	b := d.start("ingest", "--class", d.class().String(), d.file(d.shuffled(all[n/3:])))
	d.disturb(a, b)
	// The stream may have been dropped when neither had anything left to publish: a
	// run that finds nothing new makes it whole.
	c := d.start("ingest", "--class", "live", d.file(all[:1]))
	<-c.done
	if !d.faulty {
		d.must(a)
		d.must(b)
		d.must(c)
	}
}

// disturb takes the publisher's lock from its holder again and again, so that both
// programs publish, and once drops the whole stream while it grows. It returns when
// they have ended.
func (d *drill) disturb(commands ...*command) {
	d.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: d.redis.Addr})
	defer client.Close()
	ctx := d.t.Context()
	before, err := client.XLen(ctx, feed.Events(network)).Result()
	if err != nil {
		d.t.Fatal(err)
	}
	drop := before + 1 + d.rand.Int64N(300)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for _, c := range commands {
		for !c.ended() {
			if err := client.Del(ctx, feed.PublisherLock(network)).Err(); err != nil {
				d.t.Fatal(err)
			}
			n, err := client.XLen(ctx, feed.Events(network)).Result()
			if err == nil && drop > 0 && n >= drop {
				drop, err = 0, client.Del(ctx, feed.Events(network)).Err()
			}
			if err != nil {
				d.t.Fatal(err)
			}
			select {
			case <-tick.C:
			case <-c.done:
			}
		}
	}
}

// TestRedisStopped takes Redis away while ingest runs, and gives an empty one back.
func TestRedisStopped(t *testing.T) {
	const n = 3000
	d := newDrill(t, "")
	all := d.vaas(n)
	d.ingest(archive.ClassLive, d.file(all[:n/10]))
	start := d.end()
	c := d.start("ingest", "--class", "live", d.file(all))
	if !d.reached(c, start+archive.Offset(1+d.rand.IntN(n/3))) {
		t.Fatalf("ingest ended early: %v\n%s", c.err, c.stderr.Bytes())
	}
	d.redis.Kill()
	stopped := d.end()
	if !d.reached(c, stopped+archive.Offset(1+d.rand.IntN(n/4))) {
		t.Fatalf("ingest did not go on without Redis: %v\n%s", c.err, c.stderr.Bytes())
	}
	d.redis.Restart()
	d.must(c)
	d.intact()
}
