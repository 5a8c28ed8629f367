package testenv

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

const (
	// BigtableImage is Google's image of its emulators, and BigtableCommand what
	// starts that of Bigtable in it.
	BigtableImage   = "gcr.io/google.com/cloudsdktool/google-cloud-cli:emulators"
	BigtableCommand = "gcloud beta emulators bigtable start --host-port=0.0.0.0:8086"

	engineTimeout = 10 * time.Second // for an engine to answer
	imageTimeout  = 3 * time.Minute  // to build an image or fetch one
	standInTag    = "stand-in"
)

// Docker is a Docker engine that answers.
type Docker struct {
	t        testing.TB
	provider *testcontainers.DockerProvider
}

// NewDocker returns the engine that the environment names (DOCKER_HOST, or the usual
// socket), for containers that t starts by testcontainers-go. The name for
// ATTESTRY_REQUIRE is "docker".
func NewDocker(t testing.TB) *Docker {
	t.Helper()
	provider, err := findEngine()
	if err != nil {
		missing(t, "docker", fmt.Sprintf("start a Docker engine, or set DOCKER_HOST (%v)", err))
	}
	t.Cleanup(func() { provider.Client().Close() }) //nolint:errcheck // idle connections, which the next use opens anew
	d := &Docker{t: t, provider: provider}
	version, err := provider.Client().ServerVersion(t.Context(), client.ServerVersionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("Docker engine %s", version.Version)
	return d
}

// Compose returns the command of Docker Compose and its first arguments. The name for
// ATTESTRY_REQUIRE is "compose".
func Compose(t testing.TB) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), engineTimeout)
	defer cancel()
	for _, command := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		if exec.CommandContext(ctx, command[0], append(command[1:], "version")...).Run() == nil {
			return command
		}
	}
	missing(t, "compose", "install Docker Compose 2")
	return nil
}

// findEngine looks once a process, as the library does.
var findEngine = sync.OnceValues(func() (provider *testcontainers.DockerProvider, err error) {
	defer func() { // the library panics where it finds no engine at all
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	// Tests end their containers themselves. The library's container that ends what a
	// killed test has left needs an image of its own, which not every machine can get.
	if _, set := os.LookupEnv("TESTCONTAINERS_RYUK_DISABLED"); !set {
		if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), engineTimeout)
	defer cancel()
	if provider, err = testcontainers.NewDockerProvider(); err != nil {
		return nil, err
	}
	return provider, provider.Health(ctx)
})

// BigtableImage returns the name of an image in which BigtableCommand starts Google's
// Bigtable emulator on port 8086: Google's own where the engine has it, else one made
// of the emulator of this machine, else Google's, fetched.
func (d *Docker) BigtableImage() string {
	d.t.Helper()
	return d.image("bigtable", BigtableImage, func() (map[string]string, error) {
		emulator := findCBTEmulator()
		if emulator == "" {
			return nil, errors.New("cbtemulator is not installed")
		}
		script := filepath.Join(d.t.TempDir(), "gcloud")
		text := "#!/bin/bash\nfor arg; do case $arg in --host-port=*) at=${arg#*=} ;; esac; done\n" +
			"exec /cbtemulator -host \"${at%:*}\" -port \"${at##*:}\"\n"
		if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
			return nil, err
		}
		files, err := withLibraries("bash")
		if err != nil {
			return nil, err
		}
		files["/bin/bash"], files["/usr/bin/gcloud"], files["/cbtemulator"] = files["/usr/bin/bash"], script, emulator
		return files, nil
	})
}

// RedisImage returns the name of an image of Redis, whose binaries redis-server and
// redis-cli are in PATH: name where the engine has it, else one made of the binaries
// of this machine, else name, fetched.
func (d *Docker) RedisImage(name string) string {
	d.t.Helper()
	return d.image("redis", name, func() (map[string]string, error) { return withLibraries("redis-server", "redis-cli") })
}

// image returns name if the engine has it, else builds one of the files that standIn
// names, else fetches it. Where nothing helps, the test ends as for a missing engine.
func (d *Docker) image(short, name string, standIn func() (map[string]string, error)) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), imageTimeout)
	defer cancel()
	if _, err := d.provider.Client().ImageInspect(ctx, name); err == nil {
		return name
	}
	files, err := standIn()
	if err == nil {
		var dockerfile strings.Builder
		dockerfile.WriteString("FROM scratch\nCOPY rootfs /\n")
		context := map[string]string{}
		for path, file := range files {
			context["rootfs"+path] = file
		}
		d.t.Logf("the image of %s is a stand-in for %s, made of the binaries of this machine", short, name)
		return d.BuildImage("attestry.test/"+short, dockerfile.String(), context, nil)
	}
	if fetchErr := d.provider.PullImage(ctx, name); fetchErr != nil {
		missing(d.t, "docker", fmt.Sprintf("there is no image of %s, and none can be made or fetched: %v; %v", short, err, fetchErr))
	}
	return name
}

// BuildImage builds an image of a Dockerfile, and of files by their path in the build's
// context, and returns its name. It stays in the engine, so that the next build has
// little to do, and takes the place of the one before it.
func (d *Docker) BuildImage(repo, dockerfile string, files map[string]string, args map[string]string) string {
	d.t.Helper()
	archive, err := buildContext(dockerfile, files)
	if err != nil {
		d.t.Fatalf("build the image %s: %v", repo, err)
	}
	buildArgs := map[string]*string{}
	for name, value := range args {
		buildArgs[name] = &value
	}
	var log bytes.Buffer
	request := &testcontainers.ContainerRequest{FromDockerfile: testcontainers.FromDockerfile{
		ContextArchive: archive, Repo: repo, Tag: standInTag, KeepImage: true, BuildArgs: buildArgs, BuildLogWriter: &log,
	}}
	ctx, cancel := context.WithTimeout(d.t.Context(), imageTimeout)
	defer cancel()
	engine := d.provider.Client()
	before, _ := engine.ImageInspect(ctx, repo+":"+standInTag) // none, the first time
	name, err := d.provider.BuildImage(ctx, request)
	if err != nil {
		d.t.Fatalf("build the image %s: %v\n%s", repo, err, &log)
	}
	after, err := engine.ImageInspect(ctx, name)
	if err != nil {
		d.t.Fatalf("inspect the image %s: %v", repo, err)
	}
	if before.ID != "" && before.ID != after.ID {
		// Left without a name, one would stay for each change of the program. One in use by
		// another test is refused.
		_, err := engine.ImageRemove(ctx, before.ID, client.ImageRemoveOptions{PruneChildren: true})
		if err != nil {
			d.t.Logf("the image before this one stays: %v", err)
		}
	}
	return name
}

// buildContext is a tar archive of a Dockerfile and files. Files that can be executed
// stay so; all are for everyone to read.
func buildContext(dockerfile string, files map[string]string) (*bytes.Reader, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(name string, mode int64, data []byte) error {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	if err := add("Dockerfile", 0o644, []byte(dockerfile)); err != nil {
		return nil, err
	}
	for name, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			if err := w.WriteHeader(&tar.Header{Name: name + "/", Mode: 0o755, Typeflag: tar.TypeDir}); err != nil {
				return nil, err
			}
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		if err := add(name, mode, data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return bytes.NewReader(b.Bytes()), nil
}

// withLibraries returns binaries of PATH, by their path /usr/bin/<name> in an image,
// and the shared libraries that they need, by their own.
func withLibraries(names ...string) (map[string]string, error) {
	files := map[string]string{}
	for _, name := range names {
		binary, err := exec.LookPath(name)
		if err != nil {
			return nil, err
		}
		files["/usr/bin/"+name] = binary
		ctx, cancel := context.WithTimeout(context.Background(), engineTimeout)
		out, err := exec.CommandContext(ctx, "ldd", binary).Output()
		cancel()
		if err != nil {
			return nil, fmt.Errorf("list the libraries of %s: %w", binary, err)
		}
		for line := range strings.Lines(string(out)) {
			for _, word := range strings.Fields(line) {
				if filepath.IsAbs(word) {
					files[word] = word
				}
			}
		}
	}
	return files, nil
}
