package memfs

import (
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/vfs"
)

// file is one opening of an inode. It stays usable when the file is renamed or
// removed.
type file struct {
	disk     *FS
	node     *inode
	name     string
	writable bool
	mu       struct {
		sync.Mutex
		closed bool
	}
}

func (f *file) Name() string { return f.name }

func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.closed {
		return pathError("close", f.name, fs.ErrClosed)
	}
	f.mu.closed = true
	return nil
}

func (f *file) open(op string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.closed {
		return pathError(op, f.name, fs.ErrClosed)
	}
	return nil
}

// read opens an operation that changes nothing.
func (f *file) read(op string) error {
	if err := f.open(op); err != nil {
		return err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.disk.readLocked(op, f.name)
}

// changeLocked opens an operation that changes the file; the disk is locked.
func (f *file) changeLocked(op string) error {
	if err := f.open(op); err != nil {
		return err
	}
	if !f.writable {
		return pathError(op, f.name, errReadOnly)
	}
	return f.disk.changeLocked(op, f.name)
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if err := f.read("read"); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("read", f.name, fs.ErrInvalid)
	}
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	k := min(int64(len(p)), int64(len(n.mu.data))-off)
	if k < 0 || k == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	n.liveLocked(off, k, func(b []byte, at int64) { copy(p[at-off:], b) })
	if k < int64(len(p)) {
		return int(k), io.EOF
	}
	return int(k), nil
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := f.changeLocked("write"); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("write", f.name, fs.ErrInvalid)
	}
	k := d.reserveLocked(f.node, off, int64(len(p)))
	n := f.node
	n.modTime = time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if k > 0 {
		if off+k > int64(len(n.mu.data)) {
			n.resizeLocked(off + k)
		}
		n.liveLocked(off, k, func(b []byte, at int64) { copy(b, p[at-off:]) })
		n.touchLocked(off, k)
	}
	if k < int64(len(p)) {
		return int(k), pathError("write", f.name, vfs.ErrNoSpace)
	}
	return len(p), nil
}

// reserveLocked takes room for [off, off+k) and returns how much of it there is.
func (d *FS) reserveLocked(n *inode, off, k int64) int64 {
	if k <= 0 {
		return 0
	}
	for p := off / pageSize; p <= (off+k-1)/pageSize; p++ {
		if n.room.has(p) {
			continue
		}
		if !n.unlinked {
			if d.mu.limit > 0 && d.mu.used+pageSize > d.mu.limit {
				return max(p*pageSize-off, 0)
			}
			d.mu.used += pageSize
		}
		n.room.add(p)
		n.roomCount++
	}
	return k
}

// resizeLocked sets n's live size and gives back the room beyond it.
func (d *FS) resizeLocked(n *inode, size int64) {
	freed := n.room.cut((size + pageSize - 1) / pageSize)
	n.roomCount -= freed
	if !n.unlinked {
		d.mu.used -= freed * pageSize
	}
	n.modTime = time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.resizeLocked(size)
}

func (f *file) Size() (int64, error) {
	if err := f.read("stat"); err != nil {
		return 0, err
	}
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	return int64(len(f.node.mu.data)), nil
}

func (f *file) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.changeLocked("truncate"); err != nil {
		return err
	}
	if size < 0 {
		return pathError("truncate", f.name, fs.ErrInvalid)
	}
	f.disk.resizeLocked(f.node, size)
	return nil
}

func (f *file) Allocate(size int64) error {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := f.changeLocked("allocate"); err != nil {
		return err
	}
	if d.reserveLocked(f.node, 0, size) < size {
		return pathError("allocate", f.name, vfs.ErrNoSpace)
	}
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if size > int64(len(n.mu.data)) {
		n.resizeLocked(size)
	}
	return nil
}

func (f *file) Zero(off, k int64) error {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := f.changeLocked("zero"); err != nil {
		return err
	}
	if off < 0 || k < 0 {
		return pathError("zero", f.name, fs.ErrInvalid)
	}
	if k == 0 {
		return nil
	}
	if d.reserveLocked(f.node, off, k) < k {
		return pathError("zero", f.name, vfs.ErrNoSpace)
	}
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if off+k > int64(len(n.mu.data)) {
		n.resizeLocked(off + k)
	}
	n.liveLocked(off, k, func(b []byte, _ int64) { clear(b) })
	n.touchLocked(off, k)
	return nil
}

func (f *file) Sync() error {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := f.open("sync"); err != nil {
		return err
	}
	if err := d.changeLocked("sync", f.name); err != nil {
		return err
	}
	f.node.sync()
	return nil
}

func (f *file) Map(size int64, writable bool) (vfs.Mapping, error) {
	if err := f.read("map"); err != nil {
		return nil, err
	}
	if writable && !f.writable {
		return nil, pathError("map", f.name, errReadOnly)
	}
	n := f.node
	n.mu.Lock()
	defer n.mu.Unlock()
	have := int64(len(n.mu.data))
	if size <= 0 || size > have {
		return nil, fmt.Errorf("map %d bytes of %s, which has %d: %w", size, f.name, have, fs.ErrInvalid)
	}
	switch {
	case n.mu.maps == 0:
		n.mu.pin = n.mu.data[:size]
	case size <= int64(len(n.mu.pin)):
	case int64(cap(n.mu.pin)) >= size && &n.mu.pin[0] == &n.mu.data[0]:
		n.mu.pin = n.mu.data[:size]
	default:
		return nil, fmt.Errorf("map %d bytes of %s: it outgrew the memory under its earlier mappings, which this disk cannot move: %w", size, f.name, fs.ErrInvalid)
	}
	n.mu.maps++
	if writable {
		n.mu.storing++
		n.mu.stored = max(n.mu.stored, size)
	}
	return &mapping{node: n, b: n.mu.pin[:size:size], writable: writable}, nil
}

type mapping struct {
	node     *inode
	b        []byte
	writable bool
}

func (m *mapping) Bytes() []byte         { return m.b }
func (m *mapping) Populate(off, n int64) {}
func (m *mapping) Drop(off, n int64)     {}

func (m *mapping) Unmap() error {
	if m.b == nil {
		return nil
	}
	m.b = nil
	n := m.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if m.writable {
		n.mu.storing--
	}
	if n.mu.maps--; n.mu.maps == 0 {
		if len(n.mu.data) > 0 && &n.mu.pin[0] != &n.mu.data[0] {
			copy(n.mu.data, n.mu.pin)
		}
		n.mu.pin = nil
	}
	return nil
}
