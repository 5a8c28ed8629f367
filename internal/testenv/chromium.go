package testenv

import (
	"os/exec"
	"testing"
)

// Chromium returns the path of a Chromium that runs without a display. The name for
// ATTESTRY_REQUIRE is "chromium".
func Chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, "chromium", "install the package chromium")
	return ""
}
