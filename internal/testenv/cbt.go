package testenv

import (
	"os/exec"
	"testing"
)

// CBT returns the path of cbt, Google's command line for Bigtable, from PATH. The
// name for ATTESTRY_REQUIRE is "cbt".
func CBT(t testing.TB) string {
	t.Helper()
	binary, err := exec.LookPath("cbt")
	if err != nil {
		missing(t, "cbt", "install the gcloud CLI's component cbt (Debian: google-cloud-cli-cbt)")
	}
	return binary
}
