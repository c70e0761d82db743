package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// syncDir does nothing: NTFS journals its directories and offers no sync of one.
func syncDir(dir string) error {
	_, err := os.Stat(dir)
	return err
}

func isDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

func usage(name string) (Usage, error) {
	dir := existing(name)
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Usage{}, &os.PathError{Op: "usage", Path: dir, Err: err}
	}
	var available, total, free uint64
	if err := windows.GetDiskFreeSpaceEx(p, &available, &total, &free); err != nil {
		return Usage{}, &os.PathError{Op: "usage", Path: dir, Err: err}
	}
	return Usage{Total: total, Used: total - free, Available: available}, nil
}

// lockFile locks byte 0, as Java's FileLock does here; the lock belongs to the
// handle, so a second one of this process conflicts too.
func lockFile(f *os.File) (unlock func(), err error) {
	h := windows.Handle(f.Fd())
	err = windows.LockFileEx(h, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = windows.UnlockFileEx(h, 0, 1, 0, new(windows.Overlapped)) }, nil
}

// Sync flushes the mappings first: FlushFileBuffers does not see them.
func (f *osFile) Sync() error {
	return errors.Join(f.maps.flush(), f.f.Sync())
}

// Allocate sets the size: NTFS gives a file that is not sparse its clusters then.
func (f *osFile) Allocate(size int64) error {
	have, err := f.Size()
	if err != nil || have >= size {
		return err
	}
	return f.f.Truncate(size)
}

func (f *osFile) Zero(off, n int64) error { return f.writeZeros(off, n) }

// mapList is the writable mappings of one file that are not unmapped yet.
type mapList struct {
	mu struct {
		sync.Mutex
		all map[*windowsMapping]bool
	}
}

func (l *mapList) flush() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for m := range l.mu.all {
		err = errors.Join(err, windows.FlushViewOfFile(m.addr, uintptr(len(m.b))))
	}
	return err
}

func (f *osFile) mapFile(size int, writable bool) (Mapping, error) {
	protect, access := uint32(windows.PAGE_READONLY), uint32(windows.FILE_MAP_READ)
	if writable {
		protect, access = windows.PAGE_READWRITE, windows.FILE_MAP_READ|windows.FILE_MAP_WRITE
	}
	section, err := windows.CreateFileMapping(windows.Handle(f.f.Fd()), nil, protect, uint32(uint64(size)>>32), uint32(size), nil)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(section) // the view keeps it
	addr, err := windows.MapViewOfFile(section, access, 0, 0, uintptr(size))
	if err != nil {
		return nil, err
	}
	// The address is not the Go heap's; read it as a pointer without arithmetic.
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	m := &windowsMapping{b: unsafe.Slice((*byte)(p), size), addr: addr}
	if writable {
		m.list = &f.maps
		m.list.mu.Lock()
		defer m.list.mu.Unlock()
		if m.list.mu.all == nil {
			m.list.mu.all = make(map[*windowsMapping]bool)
		}
		m.list.mu.all[m] = true
	}
	return m, nil
}

type windowsMapping struct {
	b    []byte
	addr uintptr
	list *mapList // nil when read-only
}

func (m *windowsMapping) Bytes() []byte { return m.b }

// Populate does nothing: the hint has no plain counterpart here.
func (m *windowsMapping) Populate(off, n int64) {}

// Drop does nothing, for the same reason.
func (m *windowsMapping) Drop(off, n int64) {}

func (m *windowsMapping) Unmap() error {
	if m.b == nil {
		return nil
	}
	var err error
	if m.list != nil {
		m.list.mu.Lock()
		defer m.list.mu.Unlock()
		delete(m.list.mu.all, m)
		err = windows.FlushViewOfFile(m.addr, uintptr(len(m.b)))
	}
	err = errors.Join(err, windows.UnmapViewOfFile(m.addr))
	m.b = nil
	return err
}
