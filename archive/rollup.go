package archive

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attestry/attestry/vaa"
)

// Standing is what counts of a message: where in time it stands, and what is known
// of it.
type Standing struct {
	Time     time.Time `json:"timestamp"` // VAA time of the digest that stands for it, UTC
	Signed   bool      `json:"signed"`    // a signed VAA is known
	Conflict bool      `json:"conflict"`  // more than one digest was seen of it
	Resigned bool      `json:"resigned"`  // its canonical digest was signed again by another guardian set
}

// Standing returns what counts of the message, nil when no body of it is known. It
// needs the record's Timestamp, VAAs and marks.
func (r *Record) Standing() *Standing {
	if r.Publication.Timestamp == nil {
		return nil
	}
	return &Standing{
		Time: r.Publication.Timestamp.UTC(), Signed: r.Signed() != nil, Conflict: len(r.Conflicts()) > 0, Resigned: r.resigned(),
	}
}

// resigned reports whether a VAA had the digest that was canonical when it came.
func (r *Record) resigned() bool {
	versions := slices.Clone(r.Versions)
	slices.SortFunc(versions, func(a, b Version) int { return cmp.Compare(a.Offset, b.Offset) })
	for i, canonical := 1, 0; i < len(versions); i++ {
		if versions[i].Digest == versions[canonical].Digest {
			return true
		}
		if versions[i].WasCanonical {
			canonical = i
		}
	}
	return false
}

// After returns what counts of the message after the event. Errors: Before is nil
// where something must have stood.
func (e *Event) After() (*Standing, error) {
	switch {
	case e.Before == nil && (e.Displaced != nil || e.Completes || e.Kind != KindObserved && e.Kind != KindQuorum):
		return nil, fmt.Errorf("%s event at offset %d does not say what stood before it", e.Kind, e.Offset)
	case e.Before == nil:
		return &Standing{Time: e.Time, Signed: e.Kind == KindQuorum}, nil
	}
	after := *e.Before
	switch e.Kind {
	case KindObserved, KindQuorum:
		after.Time, after.Signed = e.Time, e.Kind == KindQuorum
	case KindResigned:
		after.Resigned = true
	case KindConflict:
		after.Conflict = true
		if e.Canonical {
			after.Time = e.Time
		}
	}
	return &after, nil
}

// Counts are numbers of messages.
type Counts struct {
	Messages  int64 `json:"messages,string"`  // of which a body is known
	Quorum    int64 `json:"quorum,string"`    // of these, with a signed VAA
	Observed  int64 `json:"observed,string"`  // the others
	Conflicts int64 `json:"conflicts,string"` // of which more than one digest was seen
	Resigned  int64 `json:"resigned,string"`  // signed under more than one guardian set
}

// Add adds n times what counts.
func (c *Counts) Add(s *Standing, n int64) {
	c.Messages += n
	if s.Signed {
		c.Quorum += n
	} else {
		c.Observed += n
	}
	if s.Conflict {
		c.Conflicts += n
	}
	if s.Resigned {
		c.Resigned += n
	}
}

// Sum returns the sum of two counts.
func (c Counts) Sum(o Counts) Counts {
	return Counts{
		c.Messages + o.Messages, c.Quorum + o.Quorum, c.Observed + o.Observed, c.Conflicts + o.Conflicts, c.Resigned + o.Resigned,
	}
}

// Level says how much a scope holds.
type Level uint8

// The levels of scopes.
const (
	LevelNetwork Level = iota
	LevelChain
	LevelEmitter
)

var levelNames = [...]string{"network", "chain", "emitter"}

func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("unknown(%d)", uint8(l))
}

// Scope is what is counted together: the whole network (the zero value), a chain,
// or an emitter. Fields beyond the level are zero.
type Scope struct {
	Level   Level
	Chain   vaa.ChainID
	Emitter vaa.Address
}

// Scopes returns the scopes that count a message, widest first.
func Scopes(id vaa.MessageID) [3]Scope {
	return [3]Scope{{}, {LevelChain, id.EmitterChain, vaa.Address{}}, {LevelEmitter, id.EmitterChain, id.EmitterAddress}}
}

// String returns network, chain:<chain> or emitter:<chain>:<address>, as in keys.
func (s Scope) String() string {
	switch s.Level {
	case LevelNetwork:
		return s.Level.String()
	case LevelChain:
		return s.Level.String() + ":" + strconv.Itoa(int(s.Chain))
	}
	return s.Level.String() + ":" + strconv.Itoa(int(s.Chain)) + ":" + hex.EncodeToString(s.Emitter[:])
}

// Period is the length of time that a stored bucket counts.
type Period string

// The periods that are stored. PeriodAll is all time, in one bucket at 0.
const (
	Period1Min  Period = "1min"
	Period5Min  Period = "5min"
	Period60Min Period = "60min"
	Period1Day  Period = "1day"
	PeriodAll   Period = "all"
)

// Periods returns the stored periods, shortest first.
func Periods() []Period { return []Period{Period1Min, Period5Min, Period60Min, Period1Day, PeriodAll} }

// Seconds returns the period's length, 0 for PeriodAll.
func (p Period) Seconds() uint32 {
	switch p {
	case Period1Min:
		return 60
	case Period5Min:
		return 5 * 60
	case Period60Min:
		return 60 * 60
	case Period1Day:
		return 24 * 60 * 60
	}
	return 0
}

// BucketKey names a stored bucket.
type BucketKey struct {
	Period Period
	Scope  Scope
	Start  uint32 // Unix seconds, a multiple of the period
}

// KeyOf returns the key of the bucket that holds a time.
func KeyOf(p Period, s Scope, seconds uint32) BucketKey {
	if n := p.Seconds(); n > 0 {
		return BucketKey{p, s, seconds - seconds%n}
	}
	return BucketKey{p, s, 0}
}

// BucketPrefix begins the keys of one series, which sort by time.
func BucketPrefix(p Period, s Scope) string { return string(p) + ":" + s.String() + ":" }

// String returns <period>:<scope>:<start>, the start in ten digits.
func (k BucketKey) String() string {
	return BucketPrefix(k.Period, k.Scope) + fmt.Sprintf("%010d", k.Start)
}

// ParseBucketKey is the inverse of String.
func ParseBucketKey(text string) (BucketKey, error) {
	parts := strings.Split(text, ":")
	bad := fmt.Errorf("bucket key %q: want <period>:<scope>:<start>", text)
	if len(parts) < 3 {
		return BucketKey{}, bad
	}
	k := BucketKey{Period: Period(parts[0])}
	start, err := strconv.ParseUint(parts[len(parts)-1], 10, 32)
	level := slices.Index(levelNames[:], parts[1])
	if err != nil || level < 0 || len(parts) != 3+level {
		return BucketKey{}, bad
	}
	k.Start, k.Scope.Level = uint32(start), Level(level)
	if level >= int(LevelChain) {
		chain, err := strconv.ParseUint(parts[2], 10, 16)
		if err != nil {
			return BucketKey{}, bad
		}
		k.Scope.Chain = vaa.ChainID(chain)
	}
	if level == int(LevelEmitter) {
		if n, err := hex.Decode(k.Scope.Emitter[:], []byte(parts[3][:min(len(parts[3]), 64)])); err != nil || n != 32 {
			return BucketKey{}, bad
		}
	}
	if k.String() != text || !slices.Contains(Periods(), k.Period) || k != KeyOf(k.Period, k.Scope, k.Start) {
		return BucketKey{}, bad
	}
	return k, nil
}

// Bucket is what is counted under a key: the effect of all events of the journal up
// to Through.
type Bucket struct {
	BucketKey
	Through Offset // at least 1
	Counts
}

// RollupStore keeps buckets. A generation is a set of them that was counted
// together; which one is current is for their owner to keep. Methods may be called
// concurrently.
type RollupStore interface {
	// Buckets returns those of the keys that have a bucket. Their number is bounded
	// by the caller's memory only.
	Buckets(ctx context.Context, generation uint64, keys []BucketKey) (map[BucketKey]Bucket, error)

	// ScanBuckets yields the buckets whose keys' text is at least start and before
	// end, "" being no bound, in the order of that text, at most limit of them when
	// that is positive. It stops after the first error.
	ScanBuckets(ctx context.Context, generation uint64, start, end string, limit int) iter.Seq2[Bucket, error]

	// PutBuckets sets buckets whose keys differ. One whose Through is lower than
	// what is stored changes nothing, now or later. A nil error means that each of
	// them is durable.
	PutBuckets(ctx context.Context, generation uint64, buckets []Bucket) error

	// DropBuckets removes the buckets of all generations before one. What is put
	// meanwhile may stay.
	DropBuckets(ctx context.Context, before uint64) error
}
