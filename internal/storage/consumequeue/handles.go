package consumequeue

import (
	"io/fs"
	"sync"

	"github.com/sundial-mq/sundial/internal/vfs"
)

// file is one file of a queue. path and base never change; the rest belongs to
// the set's handles and is guarded by their lock.
type file struct {
	path string
	base int64 // number of the first entry

	f          vfs.File // nil when closed
	refs       int
	gone       bool // removed: closed with the last use, never opened again
	prev, next *file
}

// handles keeps a bounded number of files open, least recently used closed
// first, so that tens of thousands of queues need no more descriptors than are
// in use.
type handles struct {
	fs       vfs.FS
	readOnly bool
	limit    int

	mu struct {
		sync.Mutex
		open int
		ring file // sentinel: next is the most recently used
	}
}

func newHandles(fsys vfs.FS, limit int, readOnly bool) *handles {
	h := &handles{fs: fsys, readOnly: readOnly, limit: limit}
	h.mu.ring.prev, h.mu.ring.next = &h.mu.ring, &h.mu.ring
	return h
}

// acquire returns f open; release must follow.
func (h *handles) acquire(f *file) (vfs.File, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.gone {
		return nil, &fs.PathError{Op: "open", Path: f.path, Err: fs.ErrClosed}
	}
	if f.f == nil {
		open := h.fs.Open
		if h.readOnly {
			open = h.fs.OpenRead
		}
		opened, err := open(f.path)
		if err != nil {
			return nil, err
		}
		h.putLocked(f, opened)
	} else {
		unlink(f)
		h.linkLocked(f)
	}
	f.refs++
	return f.f, nil
}

func (h *handles) release(f *file) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.refs--
	if f.gone && f.refs == 0 {
		h.closeLocked(f)
	}
}

// adopt takes over a file that was just made.
func (h *handles) adopt(f *file, opened vfs.File) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.putLocked(f, opened)
}

// drop forbids further use of f and closes it as soon as nobody uses it.
func (h *handles) drop(f *file) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.gone = true
	if f.refs == 0 {
		h.closeLocked(f)
	}
}

func (h *handles) putLocked(f *file, opened vfs.File) {
	f.f = opened
	h.mu.open++
	h.linkLocked(f)
	for v := h.mu.ring.prev; v != &h.mu.ring && h.mu.open > h.limit; {
		victim := v
		v = v.prev
		if victim.refs == 0 && victim != f {
			h.closeLocked(victim)
		}
	}
}

func (h *handles) linkLocked(f *file) {
	r := &h.mu.ring
	f.prev, f.next = r, r.next
	f.prev.next, f.next.prev = f, f
}

func unlink(f *file) {
	f.prev.next, f.next.prev = f.next, f.prev
	f.prev, f.next = nil, nil
}

// closeLocked closes a file nobody uses. What was written through it is in the
// system's hands and a later Sync through another handle still reaches it, so an
// error here loses nothing.
func (h *handles) closeLocked(f *file) {
	if f.f == nil {
		return
	}
	unlink(f)
	_ = f.f.Close()
	f.f = nil
	h.mu.open--
}
