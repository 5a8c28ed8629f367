package testenv

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRedisServer(t *testing.T) {
	if got := redis(t, RedisServer(t), "PING"); got != "+PONG" {
		t.Errorf("PING = %q, want +PONG", got)
	}
}

func TestRedisRestart(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string // the reply to EXISTS after a kill and a restart
	}{
		"without persistence all is lost":   {want: ":0"},
		"an fsynced append-only file keeps": {args: []string{"--appendonly", "yes", "--appendfsync", "always"}, want: ":1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := StartRedis(t, tc.args...)
			addr := r.Addr
			if got := redis(t, addr, "SET k v"); got != "+OK" {
				t.Fatalf("SET = %q, want +OK", got)
			}
			r.Kill()
			if conn, err := net.Dial("tcp", addr); err == nil {
				conn.Close()
				t.Fatalf("%s still answers after Kill", addr)
			}
			r.Restart()
			if r.Addr != addr {
				t.Errorf("address after Restart = %s, want %s", r.Addr, addr)
			}
			if got := redis(t, addr, "EXISTS k"); got != tc.want {
				t.Errorf("EXISTS after Restart = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestServersEndWithTheirTest(t *testing.T) {
	for name, start := range map[string]func(testing.TB) string{
		"redis":       RedisServer,
		"cbtemulator": CBTEmulator,
	} {
		t.Run(name, func(t *testing.T) {
			var addr string
			t.Run("while it runs", func(t *testing.T) {
				addr = start(t)
				conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				conn.Close()
			})
			if addr == "" {
				return // the server is not installed, which the inner test said
			}
			if conn, err := net.Dial("tcp", addr); err == nil {
				conn.Close()
				t.Errorf("%s still answers after its test", addr)
			}
		})
	}
}

func TestMissingServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, tc := range []struct{ require, want string }{
		{"", "skip"},
		{"cbtemulator", "skip"},
		{"redis", "fatal"},
		{"cbtemulator, redis", "fatal"},
	} {
		t.Setenv(requireVar, tc.require)
		end := outcome(t, func(t testing.TB) { RedisServer(t) })
		if !strings.HasPrefix(end, tc.want+": ") || !strings.Contains(end, "apt-get install redis-server") {
			t.Errorf("%s=%q: %q, want a %s that tells how to install it", requireVar, tc.require, end, tc.want)
		}
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\necho no room\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "redis-server"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	want := "fatal: start redis-server on "
	if got := outcome(t, func(t testing.TB) { RedisServer(t) }); !strings.HasPrefix(got, want) {
		t.Errorf("outcome = %q, want it to begin with %q", got, want)
	}
}

func TestSeed(t *testing.T) {
	for text, want := range map[string]uint64{"7": 7, "0xff": 255, "18446744073709551615": 1<<64 - 1} {
		t.Setenv(seedVar, text)
		if got := Seed(t); got != want {
			t.Errorf("Seed with %s=%s = %d, want %d", seedVar, text, got, want)
		}
	}
	t.Setenv(seedVar, "-1")
	if got := outcome(t, func(t testing.TB) { Seed(t) }); !strings.HasPrefix(got, "fatal: "+seedVar) {
		t.Errorf("Seed with %s=-1: %q, want a failure that names the variable", seedVar, got)
	}
	t.Setenv(seedVar, "")
	if a, b := Seed(t), Seed(t); a == b {
		t.Errorf("two fresh seeds are both %d", a)
	}
}

// redis sends one inline command and returns the first line of the reply.
func redis(t *testing.T, addr, command string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "%s\r\n", command)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// outcome runs f against a stand-in for t and returns how f ended it:
// "skip: …", "fatal: …", or "" if it did not.
func outcome(t *testing.T, f func(testing.TB)) string {
	rec := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(rec)
	}()
	<-done
	return rec.end
}

// recorder is a testing.TB that notes a skip or a failure in place of
// suffering it.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Skipf(format string, args ...any) {
	r.end = "skip: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.end = "fatal: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}
