// Package archtest keeps the architecture of docs/design.md by tests: which
// package may import which, and the few rules of the house that a machine can
// check in the source. Every rule carries its reason and every finding prints
// it. The tables to edit are in rules_test.go.
package archtest
