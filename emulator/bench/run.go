package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"
)

// config is what the measurement is told.
type config struct {
	rows        int
	cbtemulator string
	only        *regexp.Regexp
	dir         string
	each        time.Duration
	servers     string
	out, errs   io.Writer
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	if len(args) == 2 && args[0] == serveOurs {
		return serve(ctx, args[1], out)
	}
	if len(args) == 2 && args[0] == serveCanned {
		rows, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return serveCannedRows(ctx, rows, out)
	}
	c, err := parse(args)
	if err != nil {
		return err
	}
	c.out, c.errs = out, errs
	return compare(ctx, c)
}

func parse(args []string) (config, error) {
	var c config
	var only string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&c.rows, "rows", 200_000, "rows of the table, at least 1,000")
	flags.StringVar(&c.cbtemulator, "cbtemulator", defaultEmulator, "Google's emulator; left out when there is none")
	flags.StringVar(&only, "only", ".", "regular expression of the workloads to run; bulk writes always are")
	flags.StringVar(&c.dir, "dir", "", "directory of the data; empty: a temporary one")
	flags.StringVar(&c.servers, "servers", "ours,cbtemulator,canned", "the servers to measure")
	flags.DurationVar(&c.each, "each", 3*time.Second, "time for each workload")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	var err error
	if c.only, err = regexp.Compile(only); err != nil {
		return c, fmt.Errorf("-only: %w", err)
	}
	if c.rows < 1000 || flags.NArg() > 0 {
		return c, errors.New("want at least 1,000 -rows and no arguments")
	}
	return c, nil
}

// compare loads the same table into each server and runs each workload on all of
// them in turn, so that what else the machine does falls on all.
func compare(ctx context.Context, c config) (err error) {
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "bench"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	}
	servers, err := startAll(ctx, c)
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.stop())
		}
	}()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%d rows of 10 cells, %d bytes of values a row, %d emitters\n\n", c.rows, cells*valueBytes, emitters)
	printHead(c.out, servers)
	for _, w := range workloads(c.rows) {
		if w.name != bulkName && !c.only.MatchString(w.name) {
			continue
		}
		results := make([]result, len(servers))
		for i, s := range servers {
			if results[i], err = measure(ctx, s, w, c.each); err != nil {
				return fmt.Errorf("%s on %s: %w", w.name, s.name, err)
			}
		}
		printLine(c.out, w, servers, results)
		if w.name == bulkName {
			if err := printPebble(ctx, c, servers, results); err != nil {
				return err
			}
		}
	}
	return printEnd(ctx, c.out, servers)
}
