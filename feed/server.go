package feed

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options returns a client's options for a server given as
// redis://[[user]:password@]host[:port][/db], rediss:// for TLS, or host:port.
// Its errors do not repeat the text, which may hold a password.
func Options(server string) (*redis.Options, error) {
	text := server
	if !strings.Contains(text, "://") {
		text = "redis://" + text
	}
	const form = "write redis://[[user]:password@]host[:port][/db], rediss://… for TLS, or host:port"
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("redis URL cannot be read: %s", form)
	}
	if u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" {
		return nil, fmt.Errorf("redis URL has scheme %q and host %q: %s", u.Scheme, u.Hostname(), form)
	}
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, fmt.Errorf("redis URL has a database, path or parameter that is not understood: %s", form)
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = 5*time.Second, 5*time.Second, 5*time.Second
	o.DialerRetries = 1 // commands are repeated below, loops above
	o.ContextTimeoutEnabled = true
	// Commands are sent again after a lost reply. That is safe for all that this
	// package sends: reads, and scripts that compare before they write and answer
	// with what is then there. A bare XADD would be added twice.
	o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = 3, 10*time.Millisecond, 500*time.Millisecond
	o.PoolSize, o.MaxActiveConns, o.PoolTimeout = 10, 20, 6*time.Second
	o.PipelinePoolSize = -1 // nothing is pipelined
	o.ConnMaxIdleTime = 5 * time.Minute
	// Managed servers refuse what these would send on each connection.
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.DisableIdentity = true
	return o, nil
}

// Embedded is a Redis inside this process. It keeps nothing: after a restart the
// publisher fills the stream from the journal.
type Embedded struct {
	server *miniredis.Miniredis
}

// NewEmbedded starts a server on a loopback address, host:port; port 0 takes a
// free one. It has no password, so other addresses are refused.
func NewEmbedded(addr string) (*Embedded, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("start embedded redis on %q: write host:port: %w", addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("start embedded redis on %q: it has no password and takes loopback addresses only, as 127.0.0.1:0", addr)
	}
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	if err := server.StartAddr(addr); err != nil {
		return nil, fmt.Errorf("start embedded redis on %q: %w", addr, err)
	}
	return &Embedded{server: server}, nil
}

// Addr returns host:port.
func (e *Embedded) Addr() string { return e.server.Addr() }

// Close stops the server and waits for its connections to end.
func (e *Embedded) Close() { e.server.Close() }
