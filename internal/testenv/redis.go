package testenv

import (
	"bufio"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Redis is a redis-server process of one test. Its methods are for the test's
// goroutine; Addr may be read from any.
type Redis struct {
	// Addr is host:port on the loopback interface, the same after Restart.
	Addr string

	t      testing.TB
	binary string
	args   []string
	dir    string
	proc   *process
}

// RedisServer starts a redis-server for t and returns its host:port. It holds
// nothing on disk and is killed when t ends.
func RedisServer(t testing.TB) string {
	t.Helper()
	return StartRedis(t).Addr
}

// StartRedis starts the redis-server of PATH on a free loopback port and
// returns when it answers. Persistence is off, so Kill and Restart give an
// empty server; args are appended to the command line and may turn it on
// ("--appendonly", "yes", "--appendfsync", "always"), with files that live as
// long as t. The server is killed when t ends.
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		missing(t, "redis", "install redis-server (Debian: apt-get install redis-server)")
	}
	r := &Redis{t: t, binary: binary, args: args, dir: t.TempDir()}
	t.Cleanup(r.Kill)
	// Between the choice of a port and its use another process may take it.
	for range 5 {
		r.Addr = freeAddr(t)
		if err = r.start(); err == nil {
			return r
		}
	}
	t.Fatalf("start redis-server on %s: %v", r.Addr, err)
	return nil
}

// Kill ends the server without warning (SIGKILL) and returns when it is gone.
// Killing a dead server does nothing.
func (r *Redis) Kill() {
	if r.proc != nil {
		r.proc.kill()
	}
}

// Restart kills the server if it runs and starts it again on the same address
// and files. It fails the test if the server does not answer.
func (r *Redis) Restart() {
	r.t.Helper()
	r.Kill()
	if err := r.start(); err != nil {
		r.t.Fatalf("restart redis-server on %s: %v", r.Addr, err)
	}
}

func (r *Redis) start() error {
	r.t.Helper()
	host, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return err
	}
	args := append([]string{
		"--bind", host, "--port", port, "--dir", r.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, r.args...)
	r.proc, err = started(r.t, r.dir, r.binary, func(p *process) bool {
		return servedBy(r.Addr, p.cmd.Process.Pid)
	}, args...)
	return err
}

// servedBy reports whether the Redis at addr answers PING and is the process
// pid: on a shared machine another test's server may sit on the port.
func servedBy(addr string, pid int) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	if _, err := fmt.Fprint(conn, "PING\r\nINFO server\r\nQUIT\r\n"); err != nil {
		return false
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != "+PONG" {
		return false
	}
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			return value == strconv.Itoa(pid)
		}
	}
	return false
}

// freeAddr returns a loopback address that nobody listened on a moment ago.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().String()
}
