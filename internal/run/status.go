package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	statusTimeout  = 6 * time.Second // longer than a serve takes for its checks
	maxStatusBytes = 1 << 20
)

// Status is what a running serve says of itself at /readyz.
type Status struct {
	Status string                 `json:"status"`
	Checks map[string]StatusCheck `json:"checks"` // by the name of the part
}

// StatusCheck is how a part of a serve is.
type StatusCheck struct {
	OK    bool    `json:"ok"`
	Error *string `json:"error"`
}

// AskStatus asks the serve at an address, host:port, whether it is ready. An address
// of all interfaces is asked for on the loopback one. Without an address, the serve
// that holds the data directory is asked, else the one at fallback. Errors: nobody
// answers there, or it is no serve.
func AskStatus(ctx context.Context, dataDir, addr, fallback string) (s Status, ready bool, err error) {
	if addr == "" {
		addr = fallback
		if served, err := findServe(dataDir); err == nil {
			addr = served.HTTP
		}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return s, false, fmt.Errorf("ask attestry serve: %w", err)
	}
	url := "http://" + net.JoinHostPort(reachable(host), port) + "/readyz"
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return s, false, fmt.Errorf("ask attestry serve: %w", err)
	}
	// No proxy of the environment stands before one's own serve.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return s, false, fmt.Errorf("ask attestry serve: %w; start it, or say by --http or --data-dir where it is", err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	if err := json.NewDecoder(io.LimitReader(res.Body, maxStatusBytes)).Decode(&s); err != nil || s.Status == "" {
		return s, false, fmt.Errorf("ask attestry serve: what answers %s with %s is none", url, res.Status)
	}
	return s, res.StatusCode == http.StatusOK, nil
}
