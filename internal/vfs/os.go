package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// OS is the disk of the machine.
//
// On Linux room is reserved with fallocate, Sync is fdatasync, and the lock is
// an open-file-description lock, which conflicts with a Java process's and with
// another Lock of this process. Elsewhere plain ways do the same slower. Where a
// system writes stored mappings only when told to (macOS, Windows), Sync tells
// it for the mappings made through the same File, and Unmap for its own.
func OS() FS { return osFS{} }

type osFS struct{}

const (
	filePerm = 0o644
	dirPerm  = 0o755
)

func (osFS) Open(name string) (File, error)     { return openFile(name, os.O_RDWR) }
func (osFS) OpenRead(name string) (File, error) { return openFile(name, os.O_RDONLY) }
func (osFS) Create(name string) (File, error) {
	return openFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func openFile(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, filePerm)
	if err != nil {
		return nil, err
	}
	return &osFile{f: f}, nil
}

func (osFS) ReadFile(name string) ([]byte, error)      { return os.ReadFile(name) }
func (osFS) MkdirAll(dir string) error                 { return os.MkdirAll(dir, dirPerm) }
func (osFS) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }
func (osFS) Stat(name string) (fs.FileInfo, error)     { return os.Stat(name) }
func (osFS) Remove(name string) error                  { return os.Remove(name) }
func (osFS) RemoveAll(name string) error               { return os.RemoveAll(name) }
func (osFS) Rename(oldName, newName string) error      { return os.Rename(oldName, newName) }
func (osFS) SetModTime(name string, t time.Time) error { return os.Chtimes(name, time.Time{}, t) }
func (osFS) Usage(name string) (Usage, error)          { return usage(name) }
func (osFS) SyncDir(dir string) error                  { return syncDir(dir) }

// Lock also writes the text RocketMQ keeps in its lock file, into an empty one.
func (osFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return nil, err
	}
	unlock, err := lockFile(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		_, _ = f.WriteAt([]byte("lock"), 0) // for the eyes only
	}
	return &osLock{f: f, unlock: unlock}, nil
}

type osLock struct {
	f      *os.File
	unlock func()
}

func (l *osLock) Close() error {
	if l.unlock != nil {
		l.unlock()
		l.unlock = nil
	}
	return l.f.Close()
}

// osFile is one open file. What the systems do differently is in os_*.go.
type osFile struct {
	f    *os.File
	maps mapList //lint:ignore U1000 what Sync has to flush; fdatasync on Linux needs no help
}

func (f *osFile) ReadAt(p []byte, off int64) (int, error)  { return f.f.ReadAt(p, off) }
func (f *osFile) WriteAt(p []byte, off int64) (int, error) { return f.f.WriteAt(p, off) }
func (f *osFile) Close() error                             { return f.f.Close() }
func (f *osFile) Name() string                             { return f.f.Name() }
func (f *osFile) Truncate(size int64) error                { return f.f.Truncate(size) }

func (f *osFile) Size() (int64, error) {
	info, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *osFile) Map(size int64, writable bool) (Mapping, error) {
	have, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size <= 0 || size > have || size != int64(int(size)) {
		return nil, fmt.Errorf("map %d bytes of %s, which has %d: %w", size, f.Name(), have, fs.ErrInvalid)
	}
	m, err := f.mapFile(int(size), writable)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of %s: %w", size, f.Name(), err)
	}
	return m, nil
}

// writeZeros writes zeros over [off, off+n): the plain way to reserve or clear.
func (f *osFile) writeZeros(off, n int64) error {
	zeros := make([]byte, min(n, 1<<20))
	for n > 0 {
		k, err := f.f.WriteAt(zeros[:min(n, int64(len(zeros)))], off)
		if err != nil {
			return err
		}
		off, n = off+int64(k), n-int64(k)
	}
	return nil
}

// allocatePlain grows the file by writing zeros.
func (f *osFile) allocatePlain(size int64) error {
	have, err := f.Size()
	if err != nil || have >= size {
		return err
	}
	return f.writeZeros(have, size-have)
}

// pages is [off, off+n) of a mapping of size bytes, widened to whole pages and
// cut to the mapping.
func pages(size int, off, n int64) (from, to int) {
	page := int64(os.Getpagesize())
	from = int(max(off, 0) / page * page)
	to = int(min((off+n+page-1)/page*page, int64(size)))
	return min(from, size), max(to, min(from, size))
}

// existing is the nearest ancestor of name that is there, so that the room for a
// file can be asked for before it is made.
func existing(name string) string {
	for {
		if _, err := os.Lstat(name); err == nil {
			return name
		}
		up := filepath.Dir(name)
		if up == name {
			return name
		}
		name = up
	}
}
