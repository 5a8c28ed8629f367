package web

import (
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/attestry/attestry/query"
)

// Bounds of settings.
const (
	MaxPerMinute      = 1_000_000 // of a limit of requests
	MaxTrustedProxies = 10
)

// maxBuckets bounds the clients that are known at once; the one that was away longest
// is forgotten, and finds its bucket full when it comes back.
const maxBuckets = 1 << 16

// siteBits is the part of an IPv6 address that a client cannot choose: a customer has
// a /64 or more (RFC 6177).
const siteBits = 64

// client is whose requests are counted together: the owner of a key, else whoever
// asks from an address.
type client struct {
	key     string
	address netip.Addr
}

// limiter counts the requests of clients in token buckets: of a limit a minute all may
// come at once, and they come back evenly. It may be used concurrently.
type limiter struct {
	mu      sync.Mutex
	buckets *simplelru.LRU[client, *rate.Limiter]
}

func newLimiter() (*limiter, error) {
	buckets, err := simplelru.NewLRU[client, *rate.Limiter](maxBuckets, nil)
	if err != nil {
		return nil, fmt.Errorf("make the limiter of requests: %w", err)
	}
	return &limiter{buckets: buckets}, nil
}

func (l *limiter) bucket(c client, perMinute int) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.buckets.Get(c)
	if !ok {
		b = rate.NewLimiter(rate.Limit(perMinute)/60, perMinute)
		l.buckets.Add(c, b)
	}
	return b
}

// take counts a request of a client, and tells how many it has left in the headers of
// draft-ietf-httpapi-ratelimit-headers-10: t is the seconds until all are back. The
// error says that none was left, and Retry-After when the next one is: in a minute at
// most.
func (l *limiter) take(h http.Header, c client, perMinute int) error {
	policy := "address"
	if c.key != "" {
		policy = "key"
	}
	now := time.Now()
	b := l.bucket(c, perMinute)
	ok := b.AllowN(now, 1)
	left := max(b.TokensAt(now), 0)
	perSecond := float64(perMinute) / 60
	full := seconds((float64(perMinute) - left) / perSecond)
	h.Set("RateLimit-Policy", `"`+policy+`";q=`+strconv.Itoa(perMinute)+`;w=60`)
	h.Set("RateLimit", `"`+policy+`";r=`+strconv.Itoa(int(left))+`;t=`+strconv.Itoa(full))
	if ok {
		return nil
	}
	wait := max(seconds((1-left)/perSecond), 1)
	h.Set("Retry-After", strconv.Itoa(wait))
	return &query.Error{
		Code:    query.ResourceExhausted,
		Message: fmt.Sprintf("more than %d requests a minute for one %s: ask again in %d s", perMinute, policy, wait),
	}
}

func seconds(s float64) int { return int(math.Ceil(s)) }

// addressOf returns the address that a request is from: that of the connection, or
// where there are proxies the one that the outermost of those trusted saw, in
// X-Forwarded-For, to which each adds the address that it was asked from. What stands
// before is anyone's word. IPv6 is cut to its /64; what is no address is the zero one.
func addressOf(r *http.Request, proxies int) netip.Addr {
	if proxies > 0 {
		seen := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		if addr := parseAddr(seen[max(len(seen)-proxies, 0)]); addr.IsValid() {
			return addr
		}
	}
	return parseAddr(r.RemoteAddr)
}

// parseAddr reads an address with or without a port.
func parseAddr(s string) netip.Addr {
	s = strings.TrimSpace(s)
	addr, err := netip.ParseAddr(s)
	if err != nil {
		withPort, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}
		}
		addr = withPort.Addr()
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		prefix, err := addr.Prefix(siteBits)
		if err != nil {
			return netip.Addr{}
		}
		return prefix.Addr()
	}
	return addr
}
