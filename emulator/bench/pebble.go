package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// printPebble measures bare Pebble with the same rows, a pair a cell, synced by
// four committers, and what the canned server and it allow together: a server that
// does what both do takes the time of both.
func printPebble(ctx context.Context, c config, servers []*server, results []result) error {
	rate, err := barePebble(ctx, filepath.Join(c.dir, "pebble"), min(c.rows, 200_000))
	if err != nil {
		return fmt.Errorf("bare pebble: %w", err)
	}
	fmt.Fprintf(c.out, "%-32s  %10.0f rows a second", "  bare pebble, 4 committers", rate)
	ours, canned := named(servers, "ours"), named(servers, "canned")
	if ours >= 0 && canned >= 0 {
		both := 1 / (1/rate + 1/results[canned].rate())
		fmt.Fprintf(c.out, "; with the canned server %.0f; ours is %.2fx of that", both, results[ours].rate()/both)
	}
	fmt.Fprintln(c.out)
	return nil
}

type quiet struct{ pebble.Logger }

func (quiet) Infof(string, ...any) {}

func barePebble(ctx context.Context, dir string, rows int) (rate float64, err error) {
	db, err := pebble.Open(dir, &pebble.Options{MemTableSize: 32 << 20, LBaseMaxBytes: 64 << 20, Logger: quiet{pebble.DefaultLogger}})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	start := time.Now()
	err = inParallel(4, func(n int) (bool, error) {
		if n*batchRows >= rows || ctx.Err() != nil {
			return false, ctx.Err()
		}
		b := db.NewBatch()
		defer b.Close() //nolint:errcheck // it was committed
		random := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)})
		value := make([]byte, valueBytes)
		for i := n * batchRows; i < (n+1)*batchRows; i++ {
			key := []byte(rowKey(i, rows) + "\x00\x01MessagePublication\x00\x01....column-")
			for j := range cells {
				random.Read(value) //nolint:errcheck // documented never to fail
				if err := b.Set(binary.BigEndian.AppendUint64(append(key, byte(j), 0, 1), uint64(cellTime)), value, nil); err != nil {
					return false, err
				}
			}
		}
		return true, b.Commit(pebble.Sync)
	})
	return float64(rows) / time.Since(start).Seconds(), err
}
