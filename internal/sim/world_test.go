package sim

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/attestry/attestry/vaa"
)

// errFault is what a call returns that the simulation lets fail, with or without
// effect: its caller cannot tell.
var errFault = errors.New("injected fault")

// died is what a process that crashes panics with.
type died struct{}

// fault is what becomes of one durable call.
type fault uint8

const (
	none       fault = iota
	crashFirst       // the process dies, the call has no effect
	crashAfter       // the call has its effect, the process dies
	failed           // no effect, and an error
	replyLost        // the effect, and an error
	late             // an error, and the effect at some later step
	crashLate        // the process dies, and the effect comes at some later step
)

var faultNames = [...]string{"", "crash before", "crash after", "failed", "reply lost", "late", "crash, late"}

// options are what a schedule is drawn from.
type options struct {
	seed, schedule uint64
	off            rule // the rule that is switched off, "" for none
	moves          bool // generations may be moved
	backend        backend
}

// world is one schedule: processes as coroutines of which exactly one runs at a
// time, the stores that they share, and the random source that decides all.
type world struct {
	options
	r       *rand.Rand
	step    int
	now     time.Time
	ids     int
	calm    bool // no more faults, crashes or waits
	calls   int  // since then
	rate    float64
	storm   int // step until which nearly every durable call has one of trouble
	trouble []fault

	actors  []*actor
	pending []pendingCall
	trace   []traced

	universe    *universe
	sources     []*source
	generations []*generation
	moving      bool
	redis       *redisModel
	readers     []*reader
	problems    []error
}

// pendingCall is a request whose sender has given up or died.
type pendingCall struct {
	what   string
	by     *actor
	effect func() error
}

type traced struct {
	step  int
	by    *actor
	what  string
	fault fault
}

// actor is a process: it is started anew when it has crashed, until its work is
// done. run returns when the process ends in peace.
type actor struct {
	w          *world
	name       string
	run        func(*actor)
	background bool // has no work of its own that the schedule would wait for
	skew       time.Duration

	weight int
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	done   bool
}

func (w *world) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Errorf(format, args...))
}

func (w *world) chance(p float64) bool { return w.r.Float64() < p }

func (w *world) add(name string, background bool, run func(*actor)) {
	w.actors = append(w.actors, &actor{
		w: w, name: name, run: run, background: background, weight: 1,
		skew: time.Duration(w.r.Int64N(int64(6*time.Second))) - 3*time.Second,
	})
}

// start makes a coroutine of the actor.
func (a *actor) start() {
	a.next, a.stop = iter.Pull(func(yield func(struct{}) bool) {
		a.yield = yield
		defer func() {
			switch e := recover().(type) {
			case nil:
				a.done = true
			case died:
			default:
				panic(e)
			}
		}()
		a.run(a)
	})
}

// park gives the turn away. It does not return in a process that is stopped.
func (a *actor) park() {
	if !a.w.calm && !a.yield(struct{}{}) {
		panic(died{})
	}
}

func (a *actor) now() time.Time { return a.w.now.Add(a.skew) }

func (a *actor) newID() string {
	a.w.ids++
	return fmt.Sprintf("%s-%d", a.name, a.w.ids)
}

// call is a durable step with an effect.
func (a *actor) call(what string, effect func() error) error {
	a.park()
	if a.w.spent() {
		return errFault
	}
	f := a.w.draw(false)
	a.note(what, f)
	switch f {
	case crashFirst:
		panic(died{})
	case crashAfter:
		_ = effect()
		panic(died{})
	case failed:
		return errFault
	case replyLost:
		_ = effect()
		return errFault
	case late, crashLate:
		a.w.pending = append(a.w.pending, pendingCall{what, a, effect})
		if f == crashLate {
			panic(died{})
		}
		return errFault
	}
	return effect()
}

// look is a step that only reads.
func (a *actor) look(what string) error {
	a.park()
	if a.w.spent() {
		return errFault
	}
	switch a.w.draw(true) {
	case crashFirst, crashAfter, crashLate:
		a.note(what, crashFirst)
		panic(died{})
	case failed, replyLost, late:
		a.note(what, failed)
		return errFault
	case none:
	}
	a.note(what, none)
	return nil
}

func (a *actor) note(what string, f fault) {
	a.w.trace = append(a.w.trace, traced{a.w.step, a, what, f})
}

// spent reports whether a process goes round in circles where nothing disturbs
// it any more.
func (w *world) spent() bool {
	if w.calm {
		w.calls++
	}
	return w.calls > 20_000
}

func (w *world) draw(reads bool) fault {
	if w.calm {
		return none
	}
	if w.step < w.storm && (!reads || len(w.trouble) > 1) {
		if w.chance(0.9) {
			return w.trouble[w.r.IntN(len(w.trouble))]
		}
		return none
	}
	if !w.chance(w.rate) {
		return none
	}
	return fault(1 + w.r.IntN(int(crashLate)))
}

// run lets the actors work until the work is done or the steps are used up.
func (w *world) run() {
	const maxSteps = 2500
	for ; w.step < maxSteps && w.working(); w.step++ {
		w.advance()
		switch {
		case len(w.pending) > 0 && w.chance(0.01):
			w.land(w.r.IntN(len(w.pending)))
		case w.chance(0.002 + w.rate/40):
			w.redis.accident(w)
		default:
			w.turn(w.pick())
		}
	}
	for w.moving { // a move that has begun is brought to its end
		w.turn(w.actors[len(w.actors)-1])
	}
	for _, a := range w.actors {
		a.end()
	}
}

// turn lets an actor run until its next durable call.
func (w *world) turn(a *actor) {
	if a.next == nil {
		a.start()
	}
	if _, ok := a.next(); !ok {
		a.next = nil
	}
}

func (a *actor) end() {
	if a.next != nil {
		a.stop()
		a.next = nil
	}
}

func (w *world) working() bool {
	return slices.ContainsFunc(w.actors, func(a *actor) bool { return !a.background && !a.done })
}

// pick draws the next actor. Now and then it draws anew how often each gets its
// turn, so that some stand still while others do much.
func (w *world) pick() *actor {
	if w.step%40 == 0 {
		for _, a := range w.actors {
			a.weight = []int{0, 1, 4, 30}[w.r.IntN(4)]
		}
	}
	sum := 0
	for _, a := range w.actors {
		if !a.done {
			sum += a.weight + 1
		}
	}
	n := w.r.IntN(sum)
	for _, a := range w.actors {
		if !a.done {
			if n -= a.weight + 1; n < 0 {
				return a
			}
		}
	}
	panic("unreachable: n is below the sum")
}

func (w *world) advance() {
	w.now = w.now.Add(time.Duration(w.r.Int64N(int64(200 * time.Millisecond))))
	if w.chance(0.003) {
		w.now = w.now.Add(15 * time.Second)
	}
	if w.rate > 0 && w.chance(0.0015) {
		w.storm = w.step + 50 + w.r.IntN(400)
		w.trouble = [][]fault{{failed}, {replyLost}, {late}, {failed, replyLost, late}}[w.r.IntN(4)]
	}
	if w.chance(0.0002) {
		w.now = w.now.Add(25 * time.Hour)
	}
}

// land lets a late request have its effect.
func (w *world) land(i int) {
	p := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	w.trace = append(w.trace, traced{w.step, p.by, p.what + " lands late", none})
	_ = p.effect() // nobody waits for its reply
}

// history renders the last steps, for a schedule that went wrong.
func (w *world) history(n int) string {
	var b strings.Builder
	for _, t := range w.trace[max(len(w.trace)-n, 0):] {
		fmt.Fprintf(&b, "%5d %-12s %s %s\n", t.step, t.by.name, t.what, faultNames[t.fault])
	}
	return b.String()
}

// newWorld draws a schedule.
func newWorld(o options, u *universe) (*world, error) {
	w := &world{
		options: o, universe: u, r: rand.New(rand.NewPCG(o.seed, o.schedule)),
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	w.rate = []float64{0, 0.01, 0.03, 0.1}[w.r.IntN(4)]
	w.redis = newRedisModel(w)
	if err := w.open(1); err != nil {
		return nil, err
	}
	w.cast()
	return w, nil
}

const network = vaa.Mainnet
