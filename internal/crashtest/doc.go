// Package crashtest drives the built program from outside, against stores that
// survive it: it is killed, doubled and cut off from Redis, and afterwards the
// archive must be as if nothing had happened. It holds tests only.
package crashtest
