// Package storage keeps the tables of the server in Pebble: cells, the
// definitions of tables, and what is written to both.
//
// A row is a run of keys, one for each cell. What is written to one row is
// atomic, and so is all of one Write. Reads see a consistent state of everything
// at the moment at which they began.
package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// FormatVersion is the version of the key layout. A directory of another version
// is refused.
const FormatVersion = 1

// Errors that callers branch on.
var (
	// ErrLocked: another process has the directory open.
	ErrLocked = errors.New("the data directory is in use by another process")
	// ErrNoStore: nothing was created in the directory.
	ErrNoStore = errors.New("the directory holds no data of this server")
	// ErrFormat: the directory is of another version.
	ErrFormat = errors.New("the data directory is of another format version")
)

// Options of an engine. The zero value is the safest.
type Options struct {
	// FS is the file system; nil is the operating system's.
	FS vfs.FS
	// NoSync acknowledges writes once they are handed to the operating system: they
	// survive the death of the process, but not a loss of power.
	NoSync bool
	// OnDiskError is called once, with the first error of writing to the directory.
	// From then on the engine refuses everything, and what it has not acknowledged is
	// not kept; it is to be closed, which may leave goroutines behind. Nil does
	// nothing more.
	OnDiskError func(error)
	// CacheBytes bounds the block cache and the writes in memory. 0: 192 MiB.
	CacheBytes int64
	// MemTableBytes is the size at which writes in memory go to a file. 0: 32 MiB.
	MemTableBytes uint64
	// GCOnRead hides garbage from reads at once. Production, and the default, lets
	// it be seen until it is collected.
	GCOnRead bool
	// Now is the clock by which cells grow old; nil is the machine's.
	Now func() time.Time
	// Logger receives what the storage engine says; nil drops it.
	Logger pebble.Logger
}

const rowLocks = 1 << 10

// Engine is an open data directory. Its methods may be called concurrently.
type Engine struct {
	db   *pebble.DB
	lock *pebble.Lock
	seed maphash.Seed
	disk *disk
	rows [rowLocks]sync.Mutex // exclude read-modify-write on one row

	unsynced atomic.Int64 // writes that can be read and may not be durable

	now    func() time.Time
	logger pebble.Logger
	onRead bool // garbage is hidden from reads

	meta    meta
	backups backups
	streams streams
	dirty   dirty
	stop    context.CancelFunc
	swept   chan struct{} // closed when the collection of garbage has ended
}

// Open opens a data directory, and makes it when create is set and there is none.
// Errors: ErrLocked, ErrNoStore, ErrFormat.
func Open(dir string, create bool, o Options) (*Engine, error) {
	fs := o.FS
	if fs == nil {
		fs = vfs.Default
	}
	if create {
		if err := fs.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the data directory: %w", err)
		}
	} else if _, err := fs.Stat(dir); err != nil {
		return nil, fmt.Errorf("open %s: %w (%w)", dir, ErrNoStore, err)
	}
	lock, err := pebble.LockDirectory(dir, fs)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w (%w)", dir, ErrLocked, err)
	}
	cache := pebble.NewCache(cmp.Or(o.CacheBytes, 192<<20))
	defer cache.Unref()
	d := &disk{FS: fs, noSync: o.NoSync, spare: fs.PathJoin(dir, backupsDir), onError: func(error) {}}
	if o.OnDiskError != nil {
		d.onError = o.OnDiskError
	}
	opts := pebbleOptions(d, lock, cache, create, o)
	opts.Logger = diskLogger{opts.Logger, d}
	db, err := pebble.Open(dir, opts)
	if err != nil {
		err = errors.Join(err, lock.Close())
		if errors.Is(err, pebble.ErrDBDoesNotExist) {
			return nil, fmt.Errorf("open %s: %w", dir, ErrNoStore)
		}
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	e := &Engine{
		db: db, lock: lock, disk: d, seed: maphash.MakeSeed(),
		now: o.Now, logger: o.Logger, onRead: o.GCOnRead, swept: make(chan struct{}),
		backups: backups{fs: fs, dir: fs.PathJoin(dir, backupsDir)},
	}
	if e.now == nil {
		e.now = time.Now
	}
	if e.logger == nil {
		e.logger = silent{}
	}
	err = e.loadMeta()
	if err == nil {
		err = e.loadStreams()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", dir, err), db.Close(), lock.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	go e.collectGarbage(ctx)
	return e, nil
}

func pebbleOptions(fs vfs.FS, lock *pebble.Lock, cache *pebble.Cache, create bool, o Options) *pebble.Options {
	opts := &pebble.Options{
		FS: fs, Lock: lock, Cache: cache, Comparer: comparer(), Logger: silent{},
		ErrorIfNotExists:      !create,
		FormatMajorVersion:    pebble.FormatNewest,
		MemTableSize:          max(o.MemTableBytes, 32<<20),
		L0CompactionThreshold: 4,
		LBaseMaxBytes:         64 << 20,
		MaxOpenFiles:          1000,
	}
	if o.Logger != nil {
		opts.Logger = o.Logger
	}
	// A row's cells are read together; none is an old version to put elsewhere.
	opts.Experimental.SpanPolicyFunc = func([]byte) (pebble.SpanPolicy, []byte, error) {
		return pebble.SpanPolicy{DisableValueSeparationBySuffix: true}, nil, nil
	}
	for i := range opts.TargetFileSizes {
		opts.TargetFileSizes[i] = 16 << 20
	}
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		opts.Levels[i].BlockSize = 16 << 10
		opts.Levels[i].IndexBlockSize = 256 << 10 // one level of index in nearly every file
	}
	return opts
}

// comparer orders keys by their bytes and finds rows by their prefix.
func comparer() *pebble.Comparer {
	c := *pebble.DefaultComparer
	c.Name = "attestry.emulator.cells.v1"
	c.Split = split
	// Shortened keys would not split where whole ones do.
	c.Separator = func(dst, a, _ []byte) []byte { return append(dst, a...) }
	c.Successor = func(dst, a []byte) []byte { return append(dst, a...) }
	return &c
}

// Err returns the error of the disk that has ended the engine, nil while it lives.
func (e *Engine) Err() error { return e.disk.err() }

// durable returns why a write is not durable: its error, or that of the disk, which
// the storage engine tells its log alone.
func (e *Engine) durable(err error) error {
	if err != nil {
		return err
	}
	return e.disk.err()
}

// closeFailed is how long a storage engine may take to close whose disk has failed:
// it can wait for that for ever.
const closeFailed = 5 * time.Second

// Close ends background work and closes the directory. Every view must be closed
// before. Where the disk has failed it returns that error, and leaves alone what
// does not end.
func (e *Engine) Close() error {
	e.stop()
	if e.disk.err() == nil {
		<-e.swept
		// The next start then has no log to replay.
		return errors.Join(e.db.Flush(), e.db.Close(), e.lock.Close())
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-e.swept
		_ = e.db.Close() // the disk's error is told already
	}()
	select {
	case <-closed:
	case <-time.After(closeFailed):
		// The storage engine has a share of the lock, and nothing that it can do now
		// reaches the disk.
		_ = e.lock.Close()
	}
	return errors.Join(e.disk.err(), e.lock.Close())
}

// silent drops what the storage engine logs.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(string, ...any) {}

// diskLogger takes what is fatal to the storage engine for the end of the disk.
type diskLogger struct {
	pebble.Logger
	disk *disk
}

func (l diskLogger) Fatalf(format string, args ...any) { l.disk.fail(fmt.Errorf(format, args...)) }
