package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/query/web"
)

func limited(t testing.TB, l web.Limits) *fixture {
	return newConfigured(t, web.Ops{}, spellings, func(c *web.Config) { c.Limits = l })
}

// from asks for a path from an address, with headers.
func (f *fixture) from(addr, target string, header http.Header) *http.Response {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.RemoteAddr = addr
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Result()
}

func forwarded(lines ...string) http.Header { return http.Header{"X-Forwarded-For": lines} }

// TestWhoIsCounted finds who shares a bucket: the second request of the same client is
// one too many.
func TestWhoIsCounted(t *testing.T) {
	type ask struct {
		addr string
		xff  []string
	}
	for name, c := range map[string]struct {
		proxies int
		a, b    ask
		same    bool
	}{
		"same":                      {0, ask{"192.0.2.1:1", nil}, ask{"192.0.2.1:2", nil}, true},
		"other":                     {0, ask{"192.0.2.1:1", nil}, ask{"192.0.2.2:1", nil}, false},
		"same /64":                  {0, ask{"[2001:db8::1]:1", nil}, ask{"[2001:db8::ffff:0:0:2]:1", nil}, true},
		"other /64":                 {0, ask{"[2001:db8::1]:1", nil}, ask{"[2001:db8:0:1::1]:1", nil}, false},
		"IPv4 in IPv6":              {0, ask{"192.0.2.1:1", nil}, ask{"[::ffff:192.0.2.1]:1", nil}, true},
		"other IPv4 in IPv6":        {0, ask{"[::ffff:192.0.2.1]:1", nil}, ask{"[::ffff:192.0.2.2]:1", nil}, false},
		"zones":                     {0, ask{"[fe80::1%eth0]:1", nil}, ask{"[fe80::1%eth1]:1", nil}, true},
		"untrusted header":          {0, ask{"192.0.2.1:1", []string{"198.51.100.1"}}, ask{"192.0.2.1:1", []string{"198.51.100.2"}}, true},
		"one proxy":                 {1, ask{"10.0.0.1:1", []string{"198.51.100.1"}}, ask{"10.0.0.1:1", []string{"198.51.100.2"}}, false},
		"two ways":                  {1, ask{"10.0.0.1:1", []string{"198.51.100.1"}}, ask{"10.0.0.2:1", []string{"198.51.100.1"}}, true},
		"forged before":             {1, ask{"10.0.0.1:1", []string{"1.1.1.1, 198.51.100.1"}}, ask{"10.0.0.1:1", []string{"2.2.2.2,198.51.100.1"}}, true},
		"forged in a line before":   {1, ask{"10.0.0.1:1", []string{"1.1.1.1", "198.51.100.1"}}, ask{"10.0.0.1:1", []string{"2.2.2.2", "198.51.100.1"}}, true},
		"two proxies":               {2, ask{"10.0.0.1:1", []string{"9.9.9.9, 198.51.100.1, 203.0.113.1"}}, ask{"10.0.0.1:1", []string{"198.51.100.1, 203.0.113.2"}}, true},
		"two proxies, other":        {2, ask{"10.0.0.1:1", []string{"198.51.100.1, 203.0.113.1"}}, ask{"10.0.0.1:1", []string{"198.51.100.2, 203.0.113.1"}}, false},
		"fewer than trusted":        {3, ask{"10.0.0.1:1", []string{"198.51.100.1"}}, ask{"10.0.0.1:1", []string{"198.51.100.2"}}, false},
		"none although trusted":     {1, ask{"10.0.0.1:1", nil}, ask{"10.0.0.2:1", nil}, false},
		"nonsense":                  {1, ask{"10.0.0.1:1", []string{"unknown"}}, ask{"10.0.0.1:1", []string{"_x"}}, true},
		"with a port":               {1, ask{"10.0.0.1:1", []string{"198.51.100.1:5"}}, ask{"10.0.0.1:1", []string{"198.51.100.1"}}, true},
		"with a port, IPv6":         {1, ask{"10.0.0.1:1", []string{"[2001:db8::1]:5"}}, ask{"10.0.0.1:1", []string{"2001:db8::2"}}, true},
		"connections of no address": {0, ask{"@", nil}, ask{"pipe", nil}, true},
	} {
		f := limited(t, web.Limits{PerMinute: 1, TrustedProxies: c.proxies})
		if res := f.from(c.a.addr, "/item/1", forwarded(c.a.xff...)); res.StatusCode != 200 {
			t.Errorf("%s: first %d", name, res.StatusCode)
		}
		if res := f.from(c.b.addr, "/item/1", forwarded(c.b.xff...)); (res.StatusCode == 429) != c.same {
			t.Errorf("%s: second %d", name, res.StatusCode)
		}
	}
}

// TestRate lets a minute's requests come at once and then as they come back.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const addr = "192.0.2.1:1"
		f := limited(t, web.Limits{PerMinute: 3})
		ask := func(status int, limit, retry string) {
			t.Helper()
			res := f.from(addr, "/item/1", nil)
			got := []string{strconv.Itoa(res.StatusCode), res.Header.Get("RateLimit"), res.Header.Get("Retry-After"), res.Header.Get("RateLimit-Policy")}
			if diff := cmp.Diff([]string{strconv.Itoa(status), `"address";` + limit, retry, `"address";q=3;w=60`}, got); diff != "" {
				t.Errorf("after %s: %s", time.Now(), diff)
			}
		}
		ask(200, "r=2;t=20", "")
		ask(200, "r=1;t=40", "")
		ask(200, "r=0;t=60", "")
		ask(429, "r=0;t=60", "20")
		time.Sleep(15 * time.Second)
		ask(429, "r=0;t=45", "5")
		time.Sleep(5 * time.Second)
		ask(200, "r=0;t=60", "")
		time.Sleep(time.Hour)
		ask(200, "r=2;t=20", "")
		slow := limited(t, web.Limits{PerMinute: 1})
		slow.from(addr, "/item/1", nil)
		if res := slow.from(addr, "/item/1", nil); res.Header.Get("Retry-After") != "60" {
			t.Errorf("Retry-After %s: clients take none beyond a minute", res.Header.Get("Retry-After"))
		}
	})
}

// TestTooMany answers in the form of the path, and never refuses the state of the
// program or a preflight.
func TestTooMany(t *testing.T) {
	f := limited(t, web.Limits{PerMinute: 1})
	for _, target := range []string{"/livez", "/readyz", "/health", "/metrics"} {
		for range 3 {
			if res := f.do(http.MethodGet, target); res.Code != 200 || res.Header().Get("RateLimit") != "" {
				t.Errorf("%s: %d %v", target, res.Code, res.Header())
			}
		}
	}
	for range 3 {
		if res := f.do(http.MethodOptions, "/item/1"); res.Code != 204 {
			t.Errorf("OPTIONS: %d", res.Code)
		}
	}
	f.do(http.MethodGet, "/item/1")
	for _, target := range []string{"/item/1", "/nothing", "//item//1"} {
		res := f.do(http.MethodGet, target)
		got := problemOf(t, res.Result(), res.Body.String())
		if res.Code != 429 || got["code"] != "resource_exhausted" || !strings.Contains(got["message"].(string), "ask again in 60 s") || res.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %s", target, res.Code, res.Header(), res.Body)
		}
	}
	res := f.do(http.MethodGet, "/theirs/1")
	if res.Code != 429 || strings.TrimSpace(res.Body.String()) != `{"theirs":"resource_exhausted"}` || res.Header().Get("Retry-After") == "" {
		t.Errorf("another's form: %d %v %s", res.Code, res.Header(), res.Body)
	}
	if logged := f.errorLogs(); len(logged) != 0 {
		t.Errorf("logged %v", logged)
	}
}

func sum(key string) string {
	h := sha256.Sum256([]byte(key))
	return hex.EncodeToString(h[:])
}

// TestKeys counts a request with a key on the key.
func TestKeys(t *testing.T) {
	keys, err := web.ParseKeys(strings.NewReader("# keys\n\nunlimited " + sum("s1") + "\n  two\t" + strings.ToUpper(sum("s2")) + " 2\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	f := limited(t, web.Limits{PerMinute: 1, Keys: keys})
	const addr = "192.0.2.1:1"
	ask := func(key string, want int) *http.Response {
		t.Helper()
		res := f.from(addr, "/item/1", http.Header{"X-Api-Key": {key}})
		if res.StatusCode != want {
			t.Errorf("key %q: %d, want %d", key, res.StatusCode, want)
		}
		return res
	}
	for range 5 {
		if res := ask("s1", 200); res.Header.Get("RateLimit") != "" {
			t.Errorf("an unlimited key: %v", res.Header)
		}
	}
	if got := f.logs.TakeAll()[0].ContextMap()["apiKey"]; got != "unlimited" {
		t.Errorf("logged key %v", got)
	}
	if res := ask("s2", 200); res.Header.Get("RateLimit") != `"key";r=1;t=30` {
		t.Errorf("a limited key: %v", res.Header)
	}
	ask("s2", 200)
	ask("s2", 429)
	unknown := ask("s3", 401)
	if unknown.Header.Get("WWW-Authenticate") == "" || unknown.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("an unknown key: %v", unknown.Header)
	}
	ask("s3", 429) // it was counted on the address
	ask("", 429)
	ask("s1", 200)
	none := limited(t, web.Limits{})
	if res := none.from(addr, "/item/1", http.Header{"X-Api-Key": {"of another service"}}); res.StatusCode != 200 {
		t.Errorf("a key where none is in use: %d", res.StatusCode)
	}
}

func TestParseKeys(t *testing.T) {
	hash := sum("secret")
	for text, want := range map[string]string{
		"name":                                "line 1: want `name sha256hex`",
		"\n#\nname " + hash + " 1 2":          "line 3: want `name sha256hex`",
		"na/me " + hash:                       "line 1: a name",
		"name secret":                         "line 1: the key is given by its SHA-256",
		"name " + hash[2:]:                    "line 1: the key is given by its SHA-256",
		"name " + hash + " 0":                 "line 1: requests a minute",
		"name " + hash + " x":                 "line 1: requests a minute",
		"name " + hash + " 1000001":           "line 1: requests a minute",
		"a " + hash + "\na " + sum("b"):       "line 2: repeats the name or the key of a",
		"a " + hash + "\nb " + hash:           "line 2: repeats the name or the key of a",
		strings.Repeat("a", 1<<17):            "token too long",
		numbered(1000) + "one-more " + hash:   "line 1001: more than 1000 keys",
		"secret " + strings.Repeat("z", 64):   "line 1: the key is given by its SHA-256",
		"name\x00 " + hash:                    "line 1: a name",
		"name " + hash + " 99999999999999999": "line 1: requests a minute",
	} {
		_, err := web.ParseKeys(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%.80q: the error shows what may be a key: %v", text, err)
		}
	}
	if keys, err := web.ParseKeys(strings.NewReader(numbered(1000))); err != nil || len(keys) != 1000 || keys[7].Name != "k7" || hex.EncodeToString(keys[7].Hash[:]) != sum("7") {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d %s\n", i, sum(strconv.Itoa(i)))
	}
	return b.String()
}

// TestRefusedGRPC tells a client of gRPC in its own way what it was refused for.
func TestRefusedGRPC(t *testing.T) {
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, grpc_health_v1.UnimplementedHealthServer{})
	f := newConfigured(t, web.Ops{}, func(mux *http.ServeMux) {
		mux.Handle("/grpc.health.v1.Health/", web.Endpoint{Handler: server, Methods: "POST"})
		mux.HandleFunc("/panics.Service/", func(http.ResponseWriter, *http.Request) { panic("oh") })
	}, func(c *web.Config) {
		c.Limits = web.Limits{PerMinute: 4, Keys: []web.Key{{Name: "k", PerMinute: 1}}}
	})
	conn, err := grpc.NewClient(strings.TrimPrefix(f.serving(t), "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, c := range []struct {
		method, key string
		code        codes.Code
		message     string
	}{
		{"/grpc.health.v1.Health/Check", "", codes.Unimplemented, "Check"},
		{"/no.Such/Method", "", codes.Unimplemented, ""},
		{"/panics.Service/Method", "", codes.Internal, "internal error"},
		{"/grpc.health.v1.Health/Check", "unknown", codes.Unauthenticated, "the key is not known"},
		{"/grpc.health.v1.Health/Check", "", codes.ResourceExhausted, "more than 4 requests a minute"},
	} {
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "x-api-key", c.key), 20*time.Second)
		err := conn.Invoke(ctx, c.method, &grpc_health_v1.HealthCheckRequest{}, &grpc_health_v1.HealthCheckResponse{})
		cancel()
		if status.Code(err) != c.code || !strings.Contains(status.Convert(err).Message(), c.message) {
			t.Errorf("%s with key %q: %v", c.method, c.key, err)
		}
	}
}
