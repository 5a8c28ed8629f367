package cli

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/query/web"
)

// TestLimits reads who may ask the query service, and how much.
func TestLimits(t *testing.T) {
	hash := sha256.Sum256([]byte("abc"))
	good, bad := filepath.Join(t.TempDir(), "keys"), filepath.Join(t.TempDir(), "clear")
	for name, text := range map[string]string{good: fmt.Sprintf("a %x 7\n", hash), bad: "a abc\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		env     map[string]string
		want    web.Limits
		problem string
	}{
		{nil, web.Limits{Origins: []string{"*"}}, ""},
		{
			map[string]string{"RATE_LIMIT": "60", "TRUSTED_PROXIES": "2", "API_KEYS_FILE": good, "CORS_ORIGINS": "https://a.b"},
			web.Limits{Origins: []string{"https://a.b"}, Keys: []web.Key{{Name: "a", Hash: hash, PerMinute: 7}}, PerMinute: 60, TrustedProxies: 2},
			"",
		},
		{map[string]string{"RATE_LIMIT": "1000001"}, web.Limits{}, "rate-limit"},
		{map[string]string{"RATE_LIMIT": "1/s"}, web.Limits{}, "rate-limit"},
		{map[string]string{"TRUSTED_PROXIES": "11"}, web.Limits{}, "trusted-proxies"},
		{map[string]string{"TRUSTED_PROXIES": "10.0.0.0/8"}, web.Limits{}, "trusted-proxies"},
		{map[string]string{"API_KEYS_FILE": good + "x"}, web.Limits{}, "api-keys-file"},
		{map[string]string{"API_KEYS_FILE": bad}, web.Limits{}, "api-keys-file"},
		{map[string]string{"CORS_ORIGINS": "a.b"}, web.Limits{}, "cors-origins"},
	} {
		env := map[string]string{}
		for name, value := range c.env {
			env["ATTESTRY_"+name] = value
		}
		a, _, _ := newApp(env)
		got, err := a.config(a.serveCmd())
		if c.problem != "" {
			if err == nil || !strings.HasPrefix(err.Error(), "configuration: "+c.problem+": ") || strings.Contains(err.Error(), "abc") {
				t.Errorf("%v: %v", c.env, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", c.env, err)
		} else if diff := cmp.Diff(c.want, got.limits); diff != "" {
			t.Errorf("%v: %s", c.env, diff)
		}
	}
}
