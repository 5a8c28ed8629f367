package sim

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/attestry/attestry/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// schedulesVar asks for a long run of the simulation.
const schedulesVar = "ATTESTRY_SIM_SCHEDULES"

// simulate runs one schedule and returns what is wrong at its end, and the steps
// that led there.
func simulate(o options) (problems []error, history string) {
	w, err := newWorld(o, theUniverse())
	if err != nil {
		return []error{err}, ""
	}
	defer func() {
		for _, a := range w.actors {
			a.end()
		}
		for _, g := range w.generations {
			if err := g.close(); err != nil {
				problems = append(problems, err)
			}
		}
	}()
	w.run()
	if err := w.quiesce(); err != nil {
		w.problem("quiesce: %w", err)
	}
	return w.check(), w.history(60)
}

// schedules returns how many schedules to run, of which few in the short form.
func schedules(t *testing.T, usual, short int) int {
	t.Helper()
	text := os.Getenv(schedulesVar)
	switch {
	case text != "":
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s must be a number: %v", schedulesVar, err)
		}
		return n
	case testing.Short():
		return short
	}
	return usual
}

func TestSimulation(t *testing.T) {
	o := options{seed: testenv.Seed(t), moves: true, backend: inMemory}
	n := schedules(t, 400, 60)
	for o.schedule = range uint64(n) {
		if problems, history := simulate(o); len(problems) > 0 {
			t.Fatalf("schedule %d of seed %d:\n%s\nlast steps:\n%s", o.schedule, o.seed, errors.Join(problems...), history)
		}
	}
}

func TestSimulationOnBigtable(t *testing.T) {
	if testing.Short() {
		// The race detector runs the short form. The client library's test server
		// reads a row without its lock while it streams it to a client that has
		// stopped to listen, which is a race of its own.
		t.Skip("not in the short form")
	}
	addr := testenv.BTTest(t)
	o := options{seed: testenv.Seed(t), backend: onServer(t, addr)}
	n := min(schedules(t, 12, 12), 1000)
	for o.schedule = range uint64(n) {
		if problems, history := simulate(o); len(problems) > 0 {
			t.Fatalf("schedule %d of seed %d:\n%s\nlast steps:\n%s", o.schedule, o.seed, errors.Join(problems...), history)
		}
	}
}

// TestRepeats holds the simulation to its word: a seed says it all.
func TestRepeats(t *testing.T) {
	o := options{seed: testenv.Seed(t), moves: true, backend: inMemory}
	for o.schedule = range uint64(5) {
		_, a := simulate(o)
		_, b := simulate(o)
		if a != b || a == "" {
			t.Fatalf("schedule %d of seed %d went two ways:\n%s\nand\n%s", o.schedule, o.seed, a, b)
		}
	}
}
