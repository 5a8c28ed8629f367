// Package bench measures the program from outside, as its users meet it: by the
// process's own account of CPU time, and beside what it is built on.
package bench
