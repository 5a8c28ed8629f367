//go:build faults

package bigtable

import "os"

// blindAppend drops the condition of an append when asked to by the environment.
// Builds with the tag faults exist to show that the tests notice; they are never
// released.
func blindAppend() bool { return os.Getenv("ATTESTRY_FAULT") == "append-blind" }
