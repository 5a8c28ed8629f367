package feed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
)

const (
	readCount = 256
	// readBlock bounds a blocking read. It is also how long the end of a context
	// may go unnoticed, for nothing interrupts such a read.
	readBlock = time.Second
	// Every Tail pins a connection while it blocks.
	readerPoolSize = 16
)

// ReaderConfig is what a reader is made of.
type ReaderConfig struct {
	// Redis are the options of the connections, which the reader makes for itself:
	// a blocking read pins one. At most 16 calls of Tail run at a time.
	Redis *redis.Options
	// Store is the store that the stream is to be of. Epoch 0 takes that of the
	// first entry.
	Store archive.StoreInfo
	// Journal fills holes and serves what is older than the window. It may be nil.
	Journal Journal
	Logger  *zap.Logger // nil: none
}

// Reader reads the stream of a network. Its methods may be called concurrently.
type Reader struct {
	cfg    ReaderConfig
	log    *zap.Logger
	client *redis.Client
	key    string
}

// NewReader returns a reader, which does not connect before it is asked. The
// caller closes it.
func NewReader(cfg ReaderConfig) (*Reader, error) {
	switch {
	case cfg.Redis == nil || cfg.Store.Network == 0:
		return nil, fmt.Errorf("new reader: needs the options of a redis and a network")
	case cfg.Journal != nil && cfg.Store.Epoch == 0:
		return nil, fmt.Errorf("new reader: the journal's epoch is missing")
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	options := *cfg.Redis
	options.PoolSize, options.MaxActiveConns = readerPoolSize, readerPoolSize
	return &Reader{cfg: cfg, log: cfg.Logger, client: redis.NewClient(&options), key: Events(cfg.Store.Network)}, nil
}

// Close ends the reader's connections.
func (r *Reader) Close() error { return r.client.Close() }

// Window yields the stream's entries from the oldest to the newest, and ends. An
// entry that cannot be read is yielded as an error, with its id in the Entry, and
// the next follows; an error of Redis is the last thing yielded.
func (r *Reader) Window(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var from ID
		for {
			items, err := r.between(ctx, from, readCount)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, item := range items {
				e, err := ParseEntry(item)
				if err != nil {
					e = Entry{ID: item.ID}
				}
				if !yield(e, err) {
					return
				}
			}
			if len(items) < readCount {
				return
			}
			from = items[len(items)-1].ID.next()
		}
	}
}

// between returns the first n items from an id on, inclusive.
func (r *Reader) between(ctx context.Context, from ID, n int64) ([]Item, error) {
	messages, err := r.client.XRangeN(ctx, r.key, from.String(), "+", n).Result()
	if err != nil {
		return nil, fmt.Errorf("read redis stream %s: %w", r.key, err)
	}
	return itemsOf(messages)
}

// after waits a bounded time for items after an id.
func (r *Reader) after(ctx context.Context, id ID) ([]Item, error) {
	streams, err := r.client.XRead(ctx, &redis.XReadArgs{
		Streams: []string{r.key, id.String()}, Count: readCount, Block: readBlock,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read redis stream %s: %w", r.key, err)
	}
	return itemsOf(streams[0].Messages)
}

func itemsOf(messages []redis.XMessage) ([]Item, error) {
	items := make([]Item, len(messages))
	for i, m := range messages {
		var err error
		if items[i], err = itemOf(m); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// Position says where Tail begins. The zero value is Latest.
type Position struct {
	place  place
	offset archive.Offset
}

type place uint8

const (
	latest place = iota
	earliest
	after
)

// Latest begins behind the stream's newest entry. When the stream is empty, that
// is with the first entry that it then gets.
func Latest() Position { return Position{} }

// Earliest begins with the oldest entry that the stream holds.
func Earliest() Position { return Position{place: earliest} }

// After begins behind an offset, 0 being before the first. One beyond the head is
// waited for.
func After(o archive.Offset) Position { return Position{place: after, offset: o} }

// GapError says that offsets are neither in the stream nor in the journal (or that
// there is no journal to ask). Tail may be called again with After(To).
type GapError struct {
	From, To archive.Offset // both missing
}

func (e *GapError) Error() string {
	return fmt.Sprintf("offsets %d to %d are not to be had: the stream no longer holds them, and no journal that does was given", e.From, e.To)
}

// Tail calls fn with each entry from a position on, in order and without a hole:
// what a stream that is never trimmed would hold. What the stream lacks is read
// from the journal. It goes on until ctx ends or fn returns an error, which it
// returns as it is. While Redis or the store is down it tries again, but an error
// of the first contact is returned.
//
// Other errors: GapError; NewerEpochError when the stream is of a later history
// than the reader's store or the entries before. Entries of an earlier history are
// not delivered: a publisher is about to replace them.
func (r *Reader) Tail(ctx context.Context, from Position, fn func(Entry) error) error {
	t := &tail{Reader: r, fn: fn, epoch: r.cfg.Store.Epoch}
	if err := t.begin(ctx, from); err != nil {
		return cause(ctx, err)
	}
	var retry backoff
	failing := false
	for {
		err := t.step(ctx)
		if final(ctx, err) {
			return cause(ctx, err)
		}
		if err == nil {
			if failing {
				r.log.Info("stream is read again")
			}
			failing, retry = false, backoff{}
			continue
		}
		if !failing {
			r.log.Warn("stream cannot be read, retrying", zap.Error(err))
		}
		failing, t.lost = true, true
		sleep(ctx, retry.next(), nil)
	}
}

// callbackError carries an error of the caller's function to the caller.
type callbackError struct{ error }

// final reports whether Tail ends with err rather than trying again.
func final(ctx context.Context, err error) bool {
	switch err.(type) {
	case *callbackError, *GapError, *NewerEpochError:
		return true
	}
	return ctx.Err() != nil
}

func cause(ctx context.Context, err error) error {
	switch err := err.(type) {
	case *callbackError:
		return err.error
	case *GapError, *NewerEpochError:
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// errStale says that the stream ends with what a publisher is about to replace.
var errStale = errors.New("the stream ends with an entry that is not of this history")

// tail is the state of one call of Tail.
type tail struct {
	*Reader
	fn    func(Entry) error
	epoch uint64         // 0: not known yet
	known bool           // last is known
	last  archive.Offset // delivered, with all before it
	id    ID             // to read after
	lost  bool           // id is to be looked up anew
}

// begin finds the position.
func (t *tail) begin(ctx context.Context, from Position) error {
	switch from.place {
	case after:
		t.last, t.known = from.offset, true
		return t.seek(ctx)
	case earliest:
		_, err := t.between(ctx, ID{}, 1) // first contact
		return err
	}
	last, err := lastItem(ctx, t.client, t.key)
	if err != nil || last == (Item{}) {
		return err
	}
	switch err := t.checkEpoch(epochOf(last)); {
	case errors.Is(err, errStale):
		return nil // to be replaced: as if empty
	case err != nil:
		return err
	}
	t.id, t.last, t.known = last.ID, last.ID.Offset, true
	return nil
}

// seek sets id so that all entries behind last come after it. Offsets ascend with
// the ids, whose milliseconds are searched. When the stream is empty, it serves
// what the journal has.
func (t *tail) seek(ctx context.Context) error {
	t.id = ID{}
	if !t.known {
		return nil
	}
	first, err := t.between(ctx, ID{}, 1)
	if err != nil {
		return err
	}
	newest, err := lastItem(ctx, t.client, t.key)
	if err != nil {
		return err
	}
	if len(first) == 0 || newest == (Item{}) {
		return t.serve(ctx, 0)
	}
	if first[0].ID.Offset > t.last {
		return nil
	}
	// The entry at or after low is not behind last; that of high is, or is none.
	low, high := first[0].ID.Millis, newest.ID.Millis+1
	for high-low > 1 {
		mid := low + (high-low)/2
		items, err := t.between(ctx, ID{Millis: mid}, 1)
		if err != nil {
			return err
		}
		if len(items) > 0 && items[0].ID.Offset <= t.last {
			low = mid
		} else {
			high = mid
		}
	}
	t.id = ID{Millis: low}
	return nil
}

// step reads once and delivers what came.
func (t *tail) step(ctx context.Context) error {
	if t.lost {
		if err := t.seek(ctx); err != nil {
			return err
		}
		t.lost = false
	}
	items, err := t.after(ctx, t.id)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return t.idle(ctx)
	}
	for _, item := range items {
		// An entry that is not of this history does not move the position: what
		// replaces it may come before it. If good ones follow, density tells what is
		// missing.
		if err = t.take(ctx, item); err == nil {
			t.id = item.ID
		} else if !errors.Is(err, errStale) {
			return err
		}
	}
	return err // errStale if the last one was
}

// idle looks at the end of a stream that has nothing after the position: it may
// have been replaced by one whose ids come before it.
func (t *tail) idle(ctx context.Context) error {
	last, err := lastItem(ctx, t.client, t.key)
	if err != nil || last == (Item{}) {
		return err
	}
	return t.checkEpoch(epochOf(last))
}

func (t *tail) checkEpoch(epoch uint64) error {
	switch {
	case t.epoch == 0 || epoch == t.epoch:
		return nil
	case epoch > t.epoch:
		return &NewerEpochError{Stream: epoch, Store: t.epoch}
	}
	return errStale
}

// take delivers an item of the stream, after what is missing before it.
func (t *tail) take(ctx context.Context, item Item) error {
	if err := t.checkEpoch(epochOf(item)); err != nil {
		return err
	}
	e, err := ParseEntry(item)
	if err != nil || e.Event != nil && e.Network != t.cfg.Store.Network {
		return errStale
	}
	t.epoch = e.Epoch
	if !t.known {
		t.last, t.known = e.From-1, true
	}
	if e.ID.Offset <= t.last {
		return nil
	}
	if e.From > t.last+1 {
		if err := t.serve(ctx, e.From-1); err != nil {
			return err
		}
		if t.last < e.From-1 {
			return &GapError{From: t.last + 1, To: e.From - 1}
		}
	}
	return t.deliver(e)
}

// serve delivers from the journal what comes after last, up to an offset; with 0,
// up to the first batch that is not applied.
func (t *tail) serve(ctx context.Context, upTo archive.Offset) error {
	if t.cfg.Journal == nil {
		return nil
	}
	for b, err := range t.cfg.Journal.Batches(ctx, t.last+1) {
		if err != nil {
			return fmt.Errorf("read the journal from offset %d: %w", t.last+1, err)
		}
		if b.Offset > t.last+1 || b.End() <= t.last+1 || upTo == 0 && !b.Applied {
			return nil
		}
		entries, err := appendEntries(nil, &b, t.last+1, t.cfg.Store)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := t.deliver(e); err != nil {
				return err
			}
			if upTo != 0 && t.last >= upTo {
				return nil
			}
		}
	}
	return nil
}

func (t *tail) deliver(e Entry) error {
	// An overlap of skipped runs, or of one with what was delivered, is cut off.
	if e.From <= t.last {
		e.From = t.last + 1
	}
	if e.ID.Offset <= t.last {
		return nil
	}
	if err := t.fn(e); err != nil {
		return &callbackError{err}
	}
	t.last = e.ID.Offset
	return nil
}
