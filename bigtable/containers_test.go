package bigtable_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// emulatorImage is Google's image of its emulators.
const emulatorImage = "gcr.io/google.com/cloudsdktool/google-cloud-cli:emulators"

// TestConformanceContainer runs the suite on Google's emulator in its own image,
// where a Docker engine answers and has the image or can fetch it.
func TestConformanceContainer(t *testing.T) {
	if testing.Short() {
		t.Skip("the image has gigabytes")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := imageReady(ctx, emulatorImage); err != nil {
		t.Skipf("SKIPPED, no Docker engine runs %s: %v", emulatorImage, err)
	}
	const port = "8086/tcp"
	c, err := testcontainers.Run(ctx, emulatorImage,
		testcontainers.WithCmd("gcloud", "beta", "emulators", "bigtable", "start", "--host-port=0.0.0.0:8086"),
		testcontainers.WithExposedPorts(port),
		testcontainers.WithWaitStrategyAndDeadline(2*time.Minute, wait.ForLog("emulator running on"), wait.ForListeningPort(port).SkipInternalCheck()),
	)
	testcontainers.CleanupContainer(t, c)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := c.PortEndpoint(ctx, port, "")
	if err != nil {
		t.Fatal(err)
	}
	conformance(t, addr)
}

// imageReady returns why no engine can run an image: none answers, or it neither
// has the image nor gets it.
func imageReady(ctx context.Context, image string) (err error) {
	defer func() { // the library panics where it finds no engine at all
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	engine, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	defer engine.Close()
	if err := engine.Health(ctx); err != nil {
		return err
	}
	if _, err := engine.Client().ImageInspect(ctx, image); err == nil {
		return nil
	}
	return engine.PullImage(ctx, image)
}
