// Package testenv gives tests the real servers that Attestry talks to, and
// one seed a test to draw randomness from.
//
// A server whose binary is not installed skips the test and says how to get
// it. Where the environment variable ATTESTRY_REQUIRE (a comma list of the names of
// [Redis], [CBTEmulator], [CBT], [Terraform], [Docker], [Compose] and [Chromium]:
// "redis", "cbtemulator", "cbt", "terraform", "docker", "compose", "chromium") names it, the test fails
// instead: a machine that promises a server cannot pass by lacking it.
package testenv

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Environment variables that this package reads.
const (
	requireVar = "ATTESTRY_REQUIRE"
	seedVar    = "ATTESTRY_SEED"
	cbtVar     = "CBTEMULATOR"
	clientsVar = "ATTESTRY_CLIENTS"
)

// Seed returns the seed for the random choices of t: the value of
// ATTESTRY_SEED (decimal, or hex with 0x) or a fresh one. It is logged, so
// that a failure tells how to repeat it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(seedVar); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 0, 64); err != nil {
			t.Fatalf("%s must be an unsigned 64-bit number: %v", seedVar, err)
		}
	}
	t.Logf("seed %d (repeat with %s=%d)", seed, seedVar, seed)
	return seed
}

// missing ends t because the server called name is not to be had: a skip, or
// a failure where ATTESTRY_REQUIRE lists name.
func missing(t testing.TB, name, remedy string) {
	t.Helper()
	if required(os.Getenv(requireVar), name) {
		t.Fatalf("%s is required (%s) but not installed: %s", name, requireVar, remedy)
	}
	t.Skipf("SKIPPED, %s is not installed: %s", name, remedy)
}

// required reports whether the comma list names name.
func required(list, name string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(s string) bool {
		return strings.TrimSpace(s) == name
	})
}
