package testenv

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Bigtable is a cbtemulator process of one test: Google's Bigtable emulator,
// which holds its tables in memory and loses them when it ends.
type Bigtable struct {
	// Addr is host:port on the loopback interface, as BIGTABLE_EMULATOR_HOST
	// wants it.
	Addr string

	proc *process
}

// CBTEmulator starts Google's Bigtable emulator for t and returns its
// host:port. It is killed when t ends.
func CBTEmulator(t testing.TB) string {
	t.Helper()
	return StartCBTEmulator(t).Addr
}

// StartCBTEmulator starts Google's Bigtable emulator on a free loopback port
// and returns when it serves. The binary is the one that $CBTEMULATOR names,
// else cbtemulator in PATH, else that of an installed gcloud CLI. The emulator
// is killed when t ends.
func StartCBTEmulator(t testing.TB) *Bigtable {
	t.Helper()
	binary := findCBTEmulator()
	if binary == "" {
		missing(t, "cbtemulator", "install the gcloud CLI's component bigtable "+
			"(Debian: google-cloud-cli-bigtable-emulator) or set "+cbtVar+" to the binary")
	}
	b := &Bigtable{}
	proc, err := started(t, t.TempDir(), binary, func(p *process) bool {
		match := cbtServing.FindSubmatch(p.output())
		if match == nil {
			return false
		}
		b.Addr = string(match[1])
		return true
	}, "-host", "127.0.0.1", "-port", "0")
	if err != nil {
		t.Fatalf("start %s: %v", binary, err)
	}
	b.proc = proc
	t.Cleanup(b.Kill)
	return b
}

// Kill ends the emulator without warning (SIGKILL) and returns when it is
// gone, and its tables with it. Killing a dead one does nothing.
func (b *Bigtable) Kill() { b.proc.kill() }

// cbtServing is the line that the emulator prints once it listens.
var cbtServing = regexp.MustCompile(`(?m)^Cloud Bigtable emulator running on (\S+:\d+)$`)

// findCBTEmulator returns the path of the emulator, or "" if there is none. It
// looks once a process, since asking gcloud takes seconds.
var findCBTEmulator = sync.OnceValue(func() string {
	if binary := os.Getenv(cbtVar); binary != "" {
		return binary
	}
	if binary, err := exec.LookPath("cbtemulator"); err == nil {
		return binary
	}
	for _, root := range sdkRoots() {
		if binary := emulatorOf(root); binary != "" {
			return binary
		}
	}
	return emulatorOf(askedSDKRoot())
})

// emulatorOf returns the emulator's path under a gcloud installation, or "".
func emulatorOf(root string) string {
	if root == "" {
		return ""
	}
	binary, err := exec.LookPath(filepath.Join(root, "platform", "bigtable-emulator", "cbtemulator"))
	if err != nil {
		return ""
	}
	return binary
}

// sdkRoots lists the places where gcloud is usually installed.
func sdkRoots() []string {
	roots := []string{
		"/usr/lib/google-cloud-sdk",
		"/usr/local/google-cloud-sdk",
		"/opt/google-cloud-sdk",
		"/opt/homebrew/share/google-cloud-sdk",
		"/snap/google-cloud-cli/current",
	}
	if home, err := os.UserHomeDir(); err == nil {
		roots = append(roots, filepath.Join(home, "google-cloud-sdk"))
	}
	return roots
}

// askedSDKRoot is the installation root that gcloud itself reports, or "".
func askedSDKRoot() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "gcloud", "info", "--format=value(installation.sdk_root)").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
