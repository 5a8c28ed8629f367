package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

func printHead(out io.Writer, servers []*server) {
	fmt.Fprintf(out, "%-32s", "rate a second; µs of processor an operation, server+client")
	fmt.Fprintln(out)
	fmt.Fprintf(out, "%-32s", "")
	for _, s := range servers {
		fmt.Fprintf(out, "  %26s", s.name)
	}
	fmt.Fprintf(out, "  %12s  %8s  %12s\n", "ours/google", "asked", "server CPU")
}

func printLine(out io.Writer, w workload, servers []*server, results []result) {
	fmt.Fprintf(out, "%-32s", w.name)
	for _, r := range results {
		fmt.Fprintf(out, "  %10.0f %7.1f+%7.1f", r.rate(), micros(r.per(r.server)), micros(r.per(r.client)))
	}
	ours, google := named(servers, "ours"), named(servers, "cbtemulator")
	if ours >= 0 && google >= 0 {
		a, b := results[ours], results[google]
		fmt.Fprintf(out, "  %11.2fx", a.rate()/b.rate())
		if w.atLeast > 0 {
			fmt.Fprintf(out, "  %7.1fx", w.atLeast)
		}
		fmt.Fprintf(out, "  %11.2fx", float64(a.per(a.server))/float64(max(b.per(b.server), 1)))
	}
	fmt.Fprintln(out)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func named(servers []*server, name string) int {
	return slices.IndexFunc(servers, func(s *server) bool { return s.name == name })
}

// printEnd prints the memory of each server, and how long ours takes to answer
// again after it was killed.
func printEnd(ctx context.Context, out io.Writer, servers []*server) error {
	fmt.Fprintf(out, "\n%-32s", "resident memory, MiB")
	for _, s := range servers {
		n, err := s.resident()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  %26.0f", float64(n)/(1<<20))
	}
	fmt.Fprintln(out)
	i := named(servers, "ours")
	if i < 0 {
		return nil
	}
	s := servers[i]
	if err := s.stop(); err != nil {
		return err
	}
	start := time.Now()
	if err := s.start(ctx); err != nil {
		return err
	}
	_, err := first(ctx, s.table, 0)
	fmt.Fprintf(out, "%-32s  %23.0f ms\n", "killed and opened, first row", float64(time.Since(start))/float64(time.Millisecond))
	if err != nil {
		return err
	}
	n, err := s.resident()
	fmt.Fprintf(out, "%-32s  %26.0f\n", "resident memory then, MiB", float64(n)/(1<<20))
	return err
}
