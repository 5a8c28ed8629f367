package storage

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system that the engine's own files are on. What cannot be
// written ends the engine: after its first error nothing is changed on the disk any
// more, for what a log lost in its middle, no later write makes good, and what is
// in memory alone must not be taken for kept.
type disk struct {
	vfs.FS
	// noSync leaves it to the operating system when the log is on disk. It is written
	// to it before the write is acknowledged all the same.
	noSync  bool
	spare   string      // directory of copies, whose making may fail
	onError func(error) // called once

	once   sync.Once
	failed atomic.Pointer[error]
}

// err is the error that ended the engine, nil while it lives.
func (d *disk) err() error {
	if e := d.failed.Load(); e != nil {
		return *e
	}
	return nil
}

// fail ends the engine.
func (d *disk) fail(err error) {
	d.once.Do(func() {
		err = fmt.Errorf("the data directory cannot be written and nothing more is answered from it: %w", err)
		d.failed.Store(&err)
		d.onError(err)
	})
}

// change does something to the disk, unless that has failed before.
func (d *disk) change(f func() error) error {
	if err := d.err(); err != nil {
		return err
	}
	err := f()
	if err != nil {
		d.fail(err)
	}
	return err
}

func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// open makes a file that will be written to.
func (d *disk) open(name string, f func() (vfs.File, error)) (vfs.File, error) {
	if strings.HasPrefix(name, d.spare) {
		return f()
	}
	var file vfs.File
	err := d.change(func() (err error) {
		file, err = f()
		return err
	})
	switch {
	case err == nil:
		return &diskFile{File: file, disk: d, log: isLog(name)}, nil
	case isLog(name):
		// A log that cannot be made lets the storage engine end the process in a way
		// that no one can recover from. Whoever waits for it, waits for the process.
		select {}
	}
	return nil, err
}

func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open(name, func() (vfs.File, error) {
		f, err := d.FS.Create(name, category)
		if err == nil && strings.HasPrefix(d.PathBase(name), "MANIFEST-") {
			// The marker that names it must not outlive it.
			err = d.syncDir(d.PathDir(name))
		}
		return f, err
	})
}

func (d *disk) syncDir(name string) error {
	dir, err := d.FS.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (d *disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.open(name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, opts...) })
}

func (d *disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open(newname, func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, category) })
}

// OpenDir opens a directory, to be synced.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil || strings.HasPrefix(name, d.spare) {
		return f, err
	}
	return &diskFile{File: f, disk: d}, nil
}

func (d *disk) Rename(oldname, newname string) error {
	if strings.HasPrefix(newname, d.spare) {
		return d.FS.Rename(oldname, newname)
	}
	return d.change(func() error { return d.FS.Rename(oldname, newname) })
}

// Remove is no matter of the engine's life: what is left behind is only too much.
func (d *disk) Remove(name string) error {
	if err := d.err(); err != nil {
		return err
	}
	return d.FS.Remove(name)
}

func (d *disk) Unwrap() vfs.FS { return d.FS }

// diskFile is a file of the engine.
type diskFile struct {
	vfs.File
	disk *disk
	log  bool
}

func (f *diskFile) Write(p []byte) (n int, err error) {
	err = f.disk.change(func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *diskFile) WriteAt(p []byte, offset int64) (n int, err error) {
	err = f.disk.change(func() (err error) {
		n, err = f.File.WriteAt(p, offset)
		return err
	})
	return n, err
}

func (f *diskFile) Preallocate(offset, length int64) error {
	return f.disk.change(func() error { return f.File.Preallocate(offset, length) })
}

func (f *diskFile) Sync() error { return f.sync(f.File.Sync) }

func (f *diskFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *diskFile) SyncTo(length int64) (full bool, err error) {
	err = f.sync(func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

func (f *diskFile) sync(sync func() error) error {
	if f.log && f.disk.noSync {
		return f.disk.err()
	}
	return f.disk.change(sync)
}
