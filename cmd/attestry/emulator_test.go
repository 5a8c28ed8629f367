package main_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEmulatorOutlivesKill takes VAAs into a Bigtable server that runs alone, ends it
// without warning, and finds them in the next one.
func TestEmulatorOutlivesKill(t *testing.T) {
	if testing.Short() {
		t.Skip("each start proves the guardian sets, which is slow under the race detector")
	}
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	attestry := func(host string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "attestry", args...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "BIGTABLE_EMULATOR_HOST="+host)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("attestry %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	server, host := startEmulator(t, dir)
	attestry(host, "ingest", root+"/testdata/vaas/vaas-devnet.ndjson", "--network", "devnet")
	before := attestry(host, "scan", "--network", "devnet", "-o", "json")
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	server.Wait() //nolint:errcheck // it was killed
	_, host = startEmulator(t, dir)
	if after := attestry(host, "scan", "--network", "devnet", "-o", "json"); after != before || strings.Count(after, "\n") < 100 {
		t.Errorf("after the kill:\n%.300s\nbefore:\n%.300s", after, before)
	}
	second := exec.CommandContext(t.Context(), "attestry", "emulator", "--data-dir", dir, "--listen", "127.0.0.1:0")
	out, err := second.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another command works on it") {
		t.Errorf("a second server on the same directory: %v: %s", err, out)
	}
}

// startEmulator starts attestry emulator on a free port and returns it and its
// address once it has said that.
func startEmulator(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "attestry", "emulator", "--data-dir", dir, "--listen", "127.0.0.1:0")
	cmd.WaitDelay = 10 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	host, ok := strings.CutPrefix(strings.TrimSpace(line), "export BIGTABLE_EMULATOR_HOST=")
	if !ok {
		t.Fatalf("the server's first line is %q: %v", line, err)
	}
	return cmd, host
}
