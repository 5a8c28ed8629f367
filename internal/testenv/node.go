package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// NodeClient returns the directory in which the npm packages of a client are
// installed: <ATTESTRY_CLIENTS>/<name>, with node_modules in it. The name for
// ATTESTRY_REQUIRE is "clients".
func NodeClient(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(os.Getenv(clientsVar), name)
	if _, err := exec.LookPath("node"); err != nil || os.Getenv(clientsVar) == "" {
		missing(t, "clients", "run `make test/clients`, which needs Node 20 and npm")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		missing(t, "clients", "run `make test/clients`, which installs "+name)
	}
	return dir
}
