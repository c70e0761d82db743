package segment

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/vfs"
)

// File is one mapped file of a run. Between Acquire and Release its bytes may be
// read; only the writer of the run changes them, and only where nobody reads yet.
type File struct {
	fs      vfs.FS
	path    string
	start   int64
	data    []byte
	mapping vfs.Mapping

	// refs counts the run, until the file is dropped, and every reader. At 0 the
	// mapping is gone and nobody gets another reference.
	refs atomic.Int32

	droppedAt time.Time // guarded by the run's dropped lock

	handle struct {
		sync.Mutex
		f      vfs.File // open while the file is written and synced, else nil
		closed bool     // no more handles: the file is dropped
	}
}

// Start is the position of the file's first byte in the run.
func (f *File) Start() int64 { return f.start }

// End is the position after the file's last byte.
func (f *File) End() int64 { return f.start + int64(len(f.data)) }

// Path names the file.
func (f *File) Path() string { return f.path }

// Bytes is the whole file. It must not be touched after Release.
func (f *File) Bytes() []byte { return f.data }

// ModTime is when the file was last changed: RocketMQ's retention clock.
func (f *File) ModTime() (time.Time, error) {
	info, err := f.fs.Stat(f.path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// SetModTime sets what ModTime says.
func (f *File) SetModTime(t time.Time) error { return f.fs.SetModTime(f.path, t) }

// Acquire takes a further reference and reports whether that was possible.
func (f *File) Acquire() bool {
	for {
		n := f.refs.Load()
		if n <= 0 {
			return false
		}
		if f.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives one reference back.
func (f *File) Release() {
	if f.refs.Add(-1) == 0 {
		f.data = nil
		_ = f.mapping.Unmap() // nothing is lost: what was stored is the system's by now
	}
}

// Sync makes everything stored in the file durable.
func (f *File) Sync() error {
	return f.withHandle(func(h vfs.File) error { return h.Sync() })
}

func (f *File) withHandle(do func(vfs.File) error) error {
	f.handle.Lock()
	defer f.handle.Unlock()
	if f.handle.closed {
		return fmt.Errorf("%s was dropped", f.path)
	}
	if f.handle.f == nil {
		h, err := f.fs.Open(f.path)
		if err != nil {
			return err
		}
		f.handle.f = h
	}
	return do(f.handle.f)
}

// Rest closes the handle of a file that is written no more.
func (f *File) Rest() error { return f.closeHandle(false) }

func (f *File) closeHandle(forGood bool) error {
	f.handle.Lock()
	defer f.handle.Unlock()
	f.handle.closed = f.handle.closed || forGood
	h := f.handle.f
	f.handle.f = nil
	if h == nil {
		return nil
	}
	return h.Close()
}
