package testenv

import (
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// terraformTimeout bounds one command; the machine may be shared.
const terraformTimeout = 5 * time.Minute

// Terraform runs terraform against the stand-in provider of the repository, and
// against no network.
type Terraform struct {
	binary, config string
}

// NewTerraform returns the terraform of PATH with a mirror that holds the stand-in
// provider built from source, a module of its own, and nothing else. version is
// what the provider calls itself. The name for ATTESTRY_REQUIRE is "terraform".
func NewTerraform(t testing.TB, source, version string) *Terraform {
	t.Helper()
	binary, err := exec.LookPath("terraform")
	if err != nil {
		missing(t, "terraform", "install terraform 1.11 or newer")
	}
	source, err = filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	provider, err := buildProvider(source)
	if err != nil {
		t.Fatal(err)
	}
	mirror := t.TempDir()
	platform := runtime.GOOS + "_" + runtime.GOARCH
	dir := filepath.Join(mirror, "registry.terraform.io", "hashicorp", "google", version, platform)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(provider, filepath.Join(dir, "terraform-provider-google_v"+version)); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(mirror, "terraform.rc")
	text := fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &Terraform{binary: binary, config: config}
}

// Run runs terraform in dir and returns its combined output. The error is that of
// the command.
func (tf *Terraform) Run(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, terraformTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, tf.binary, args...)
	cmd.Dir = dir
	// Settings of the machine's user, variables' values among them, are no part of a test.
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "TF_") })
	cmd.Env = append(env, "TF_CLI_CONFIG_FILE="+tf.config, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_INPUT=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// buildProvider builds the provider of source and returns its path, which is the
// same for the same source: go build does nothing when the files are unchanged.
func buildProvider(source string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the provider: %w", err)
	}
	out := filepath.Join(cache, "attestry", fmt.Sprintf("terraform-provider-google-%08x", crc32.ChecksumIEEE([]byte(source))))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the stand-in provider: %w\n%s", err, text)
	}
	return out, nil
}
