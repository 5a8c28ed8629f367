package main

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"time"
)

// result is what one workload gave on one server.
type result struct {
	units   int64
	elapsed time.Duration
	server  time.Duration // processor time
	client  time.Duration
}

func (r result) rate() float64 { return float64(r.units) / r.elapsed.Seconds() }

func (r result) per(cpu time.Duration) time.Duration {
	return cpu / time.Duration(max(r.units, 1))
}

// measure runs a workload on a server for some time, or its number of operations.
// What the server does for it afterwards, as merging files, counts as processor
// time.
func measure(ctx context.Context, s *server, w workload, each time.Duration) (result, error) {
	var r result
	serverBefore, err := s.cpu()
	if err != nil {
		return r, err
	}
	clientBefore := ownCPU()
	start := time.Now()
	var units atomic.Int64
	err = inParallel(w.inFlight, func(n int) (bool, error) {
		if w.total > 0 && n >= w.total || w.total == 0 && time.Since(start) > each {
			return false, nil
		}
		got, err := w.op(ctx, s.table, n)
		units.Add(int64(got))
		return err == nil, err
	})
	elapsed := time.Since(start)
	if err = errors.Join(err, s.settle(ctx)); err != nil {
		return r, err
	}
	r = result{units: units.Load(), elapsed: elapsed, client: ownCPU() - clientBefore}
	after, err := s.cpu()
	r.server = after - serverBefore
	return r, err
}

// ownCPU returns the processor time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const (
	settleLook = 500 * time.Millisecond
	settleMost = 30 * time.Second
)

// settle waits until the server does nothing any more, and not for ever.
func (s *server) settle(ctx context.Context) error {
	before, err := s.cpu()
	for waited := time.Duration(0); err == nil && waited < settleMost; waited += settleLook {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settleLook):
		}
		var now time.Duration
		now, err = s.cpu()
		if now-before <= settleLook/25 {
			break
		}
		before = now
	}
	return err
}
