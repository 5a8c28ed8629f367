// Command bench measures the server beside Google's emulator and beside a server
// that stores nothing and answers canned rows, which is the ceiling that protocol
// and client set. Each runs as a process of its own; the client is Google's for Go,
// on one connection. It prints a table of ratios and of processor time.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
