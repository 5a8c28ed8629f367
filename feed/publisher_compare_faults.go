//go:build faults

package feed

import "os"

// blind reports whether appends go without their comparison, so that a test can
// show what it is for: they compare with whatever is there.
func blind() bool { return os.Getenv("ATTESTRY_FAULT") == "publisher-blind" }
