// Package containertest runs the archive in containers, as the platform does: from
// the image of the Dockerfile, in the services of compose.yaml. Its tests need a
// Docker engine and take what images they cannot have from the machine's own
// binaries (internal/testenv).
package containertest
