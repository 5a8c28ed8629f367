package testenv

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// startTimeout bounds the wait for a server's first answer; it is generous
// because test machines are shared.
const startTimeout = 30 * time.Second

// errExited is the cause when a server ended before it answered.
var errExited = errors.New("process exited")

// process is one running server. Its output goes to a file and not to a pipe,
// so that no goroutine outlives it and no orphan holds the test's own output.
type process struct {
	cmd  *exec.Cmd
	log  string        // path of the combined output
	done chan struct{} // closed when the process has been waited for
}

// spawn starts the command with its output in dir. The caller kills it.
func spawn(dir, binary string, args ...string) (*process, error) {
	out, err := os.CreateTemp(dir, filepath.Base(binary)+"-*.log")
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own descriptor
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, log: out.Name(), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // a killed server has no other end than an error
	}()
	return p, nil
}

// kill ends the process without warning (SIGKILL) and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it is gone already
	<-p.done
}

// output returns what the process has printed so far.
func (p *process) output() []byte {
	b, _ := os.ReadFile(p.log)
	return bytes.TrimSpace(b)
}

// await polls ready until it reports true. It returns errExited if the
// process ended first, or the context's error at the deadline.
func (p *process) await(ctx context.Context, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-p.done:
			return errExited
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// started spawns and awaits in one; a server that does not come up is killed
// and its output is in t's log.
func started(t testing.TB, dir, binary string, ready func(*process) bool, args ...string) (*process, error) {
	t.Helper()
	p, err := spawn(dir, binary, args...)
	if err != nil {
		return nil, err
	}
	if err := p.await(t.Context(), func() bool { return ready(p) }); err != nil {
		p.kill()
		t.Logf("%s:\n%s", binary, p.output())
		return nil, err
	}
	return p, nil
}
