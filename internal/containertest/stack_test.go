package containertest

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/attestry/attestry/internal/testenv"
)

const (
	// startTimeout bounds the start of one container, or the run of one that ends.
	// Machines are shared.
	startTimeout = 2 * time.Minute
	// grace is what Cloud Run gives a program between SIGTERM and SIGKILL.
	grace = 10 * time.Second
)

// stack is the services of compose.yaml in a network of their own.
type stack struct {
	t       *testing.T
	compose composeFile
	images  map[string]string // of compose.yaml to those of this engine
	network *testcontainers.DockerNetwork
	running map[string]*testcontainers.DockerContainer
}

func newStack(t *testing.T) *stack {
	t.Helper()
	engine := testenv.NewDocker(t)
	c := readCompose(t)
	redis := c.Services["redis"].Image
	s := &stack{t: t, compose: c, running: map[string]*testcontainers.DockerContainer{}, images: map[string]string{
		testenv.BigtableImage: engine.BigtableImage(), redis: engine.RedisImage(redis), c.Services["query"].Image: archiveImage(t, engine),
	}}
	var err error
	if s.network, err = network.New(t.Context()); err != nil {
		t.Fatal(err)
	}
	testcontainers.CleanupNetwork(t, s.network)
	return s
}

// archiveImage builds the last stage of the Dockerfile, with the program built here in
// the place of the first one's: that needs an image of Go, and would leave an image of
// its own behind.
func archiveImage(t *testing.T, engine *testenv.Docker) string {
	t.Helper()
	text, err := os.ReadFile(root + "Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, final, ok := strings.Cut(string(text), "\nFROM ${BASE_IMAGE}\n")
	if !ok {
		t.Fatal("Dockerfile has no stage FROM ${BASE_IMAGE}")
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "attestry")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary, "./cmd/attestry")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	// No connection of the tests uses TLS: any file will do for the authorities.
	authorities := filepath.Join(dir, "ca-certificates.crt")
	if err := os.WriteFile(authorities, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	final = strings.NewReplacer("--from=build ", "", " /out/", " out/").Replace(final)
	dockerfile := "ARG BASE_IMAGE=scratch\nFROM ${BASE_IMAGE}\n" + final
	return engine.BuildImage("attestry.test/attestry", dockerfile, map[string]string{
		"out/attestry": binary, "out/data": t.TempDir(), "out/etc/ssl/certs/ca-certificates.crt": authorities,
	}, map[string]string{"VERSION": "test"})
}

// up starts services, each after those that it depends on.
func (s *stack) up(names ...string) {
	s.t.Helper()
	for _, name := range names {
		if s.running[name] != nil {
			continue
		}
		for on := range s.compose.Services[name].DependsOn {
			s.up(on)
		}
		var after wait.Strategy = wait.ForExit()
		if !s.ends(name) {
			after = wait.ForHealthCheck()
		}
		s.running[name] = s.start(name, s.compose.Services[name], after)
		if s.ends(name) {
			if code := s.exitCode(s.running[name]); code != 0 {
				s.t.Fatalf("%s ended with exit code %d:\n%s", name, code, s.logs(s.running[name]))
			}
		}
	}
}

// ends reports whether a service runs to its end: it is what nobody asks for health.
func (s *stack) ends(name string) bool {
	h := s.compose.Services[name].Healthcheck
	return h != nil && h.Disable
}

// start starts a container of a service and waits for it.
func (s *stack) start(name string, c service, after wait.Strategy, more ...testcontainers.ContainerCustomizer) *testcontainers.DockerContainer {
	s.t.Helper()
	var ports []string
	for _, p := range c.Ports {
		ports = append(ports, p[strings.LastIndex(p, ":")+1:]+"/tcp")
	}
	options := append([]testcontainers.ContainerCustomizer{
		network.WithNetwork([]string{name}, s.network),
		testcontainers.WithCmd(c.Command...),
		testcontainers.WithEnv(c.Environment),
		testcontainers.WithExposedPorts(ports...),
		testcontainers.WithConfigModifier(func(config *container.Config) { config.Healthcheck = c.health() }),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			host.ReadonlyRootfs, host.CapDrop, host.SecurityOpt = c.ReadOnly, c.CapDrop, c.SecurityOpt
			for _, v := range c.Volumes {
				from, to, _ := strings.Cut(v, ":")
				from, err := filepath.Abs(filepath.Join(root, from))
				if err != nil {
					s.t.Fatal(err)
				}
				host.Binds = append(host.Binds, from+":"+to)
			}
		}),
		testcontainers.WithWaitStrategyAndDeadline(startTimeout, after),
	}, more...)
	started, err := testcontainers.Run(s.t.Context(), s.images[c.Image], options...)
	testcontainers.CleanupContainer(s.t, started, testcontainers.StopTimeout(0))
	if err != nil {
		if started != nil {
			s.t.Log(s.logs(started))
		}
		s.t.Fatalf("start %s: %v", name, err)
	}
	return started
}

// health returns the service's health check; nil is that of its image.
func (c service) health() *container.HealthConfig {
	h := c.Healthcheck
	switch {
	case h == nil:
		return nil
	case h.Disable:
		return &container.HealthConfig{Test: []string{"NONE"}}
	}
	return &container.HealthConfig{Test: h.Test, Interval: h.Interval, Timeout: h.Timeout, Retries: h.Retries}
}

// run runs a command of the archive's image to its end, with the environment that the
// services have, and returns what it wrote and its exit code.
func (s *stack) run(command ...string) (output string, code int) {
	s.t.Helper()
	c := s.compose.Services["ingester"]
	c.Command = command
	ended := s.start(strings.Join(command, "-"), c, wait.ForExit())
	return s.logs(ended), s.exitCode(ended)
}

func (s *stack) exitCode(c *testcontainers.DockerContainer) int {
	s.t.Helper()
	state, err := c.State(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if state.Running {
		s.t.Fatal("a container runs that should have ended")
	}
	return state.ExitCode
}

// stop ends a container as the platform does and returns its exit code; 137 says that
// it had to be killed.
func (s *stack) stop(c *testcontainers.DockerContainer) int {
	s.t.Helper()
	within := grace
	if err := c.Stop(s.t.Context(), &within); err != nil {
		s.t.Fatal(err)
	}
	return s.exitCode(c)
}

func (s *stack) logs(c *testcontainers.DockerContainer) string {
	s.t.Helper()
	r, err := c.Logs(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// address is where a port of a container is reached from here, host:port.
func (s *stack) address(c *testcontainers.DockerContainer, port string) string {
	s.t.Helper()
	addr, err := c.PortEndpoint(s.t.Context(), port+"/tcp", "")
	if err != nil {
		s.t.Fatal(err)
	}
	return addr
}
