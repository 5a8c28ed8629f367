package web_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attestry/attestry/query/web"
)

// countingListener gives out connections that count what is written to them and of
// which each takes so many bytes.
type countingListener struct {
	net.Listener
	takes  int64
	writes atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &countingConn{Conn: c, of: l, left: l.takes}, err
}

type countingConn struct {
	net.Conn
	of   *countingListener
	left int64
}

func (c *countingConn) Write(b []byte) (int, error) {
	c.of.writes.Add(1)
	if int64(len(b)) > c.left {
		n, _ := c.Conn.Write(b[:c.left])
		c.left = 0
		return n, errors.New("cut")
	}
	c.left -= int64(len(b))
	return c.Conn.Write(b)
}

// serveCounted serves /short, of 8 KiB, by connections that take so many bytes.
func serveCounted(t *testing.T, takes int64) *countingListener {
	t.Helper()
	f := newFixture(t, web.Ops{}, func(mux *http.ServeMux) {
		mux.Handle("/short", web.Get(func(w http.ResponseWriter, r *http.Request) error {
			web.WriteBytes(w, r, "application/octet-stream", []byte(strings.Repeat("s", 8<<10)))
			return nil
		}))
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counted := &countingListener{Listener: ln, takes: takes}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, counted) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return counted
}

// TestShortAnswerIsOneWrite asks twice on one connection.
func TestShortAnswerIsOneWrite(t *testing.T) {
	t.Parallel()
	ln := serveCounted(t, 1<<20)
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test
	in := bufio.NewReader(conn)
	for n := int64(1); n <= 2; n++ {
		if _, err := conn.Write([]byte("GET /short HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Discard(int(res.ContentLength)); err != nil || res.ContentLength != 8<<10 {
			t.Fatalf("%d bytes, %v", res.ContentLength, err)
		}
		if got := ln.writes.Load(); got != n {
			t.Errorf("%d answers by %d writes", n, got)
		}
	}
}

// TestCutAnswerEndsTheConnection cuts a short answer: nothing follows it, and above all
// not the next answer.
func TestCutAnswerEndsTheConnection(t *testing.T) {
	t.Parallel()
	const takes = 4000
	ln := serveCounted(t, takes)
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test
	request := []byte("GET /short HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := conn.Write(append(request, request...)); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) || len(got) != takes {
		t.Errorf("%d bytes of %d, %v", len(got), takes, err)
	}
}
