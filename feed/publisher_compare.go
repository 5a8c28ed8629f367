//go:build !faults

package feed

// blind reports whether appends go without their comparison, which only builds
// with the tag faults can be told to.
func blind() bool { return false }
