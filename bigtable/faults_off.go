//go:build !faults

package bigtable

// blindAppend is true only in builds that show what the condition of an append
// prevents.
func blindAppend() bool { return false }
