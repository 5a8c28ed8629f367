package bigtable_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/attestry/attestry/internal/testenv"
)

// TestConformanceContainer runs the suite on Google's emulator in a container.
func TestConformanceContainer(t *testing.T) {
	image := testenv.NewDocker(t).BigtableImage()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const port = "8086/tcp"
	c, err := testcontainers.Run(ctx, image,
		testcontainers.WithCmd(strings.Fields(testenv.BigtableCommand)...),
		testcontainers.WithExposedPorts(port),
		testcontainers.WithWaitStrategyAndDeadline(2*time.Minute, wait.ForLog("emulator running on"), wait.ForListeningPort(port).SkipInternalCheck()),
	)
	testcontainers.CleanupContainer(t, c, testcontainers.StopTimeout(0))
	if err != nil {
		t.Fatal(err)
	}
	addr, err := c.PortEndpoint(ctx, port, "")
	if err != nil {
		t.Fatal(err)
	}
	conformance(t, addr)
}
