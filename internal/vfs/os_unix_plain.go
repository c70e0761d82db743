//go:build unix && !linux

package vfs

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

func lockFile(f *os.File) (unlock func(), err error) { return lockPosix(f) }

func blockSize(s *unix.Statfs_t) uint64 { return uint64(s.Bsize) }

// Sync flushes the mappings first; the fsync of os.File is a real one on macOS too.
func (f *osFile) Sync() error {
	return errors.Join(f.maps.flush(), f.f.Sync())
}

func (f *osFile) Allocate(size int64) error { return f.allocatePlain(size) }
func (f *osFile) Zero(off, n int64) error   { return f.writeZeros(off, n) }

// mapList is the writable mappings of one file that are not unmapped yet.
type mapList struct {
	mu struct {
		sync.Mutex
		all map[*plainMapping]bool
	}
}

func (l *mapList) flush() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for m := range l.mu.all {
		err = errors.Join(err, unix.Msync(m.b, unix.MS_SYNC))
	}
	return err
}

func (f *osFile) mapFile(size int, writable bool) (Mapping, error) {
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	b, err := unix.Mmap(int(f.f.Fd()), 0, size, prot, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	m := &plainMapping{b: b}
	if writable {
		m.list = &f.maps
		m.list.mu.Lock()
		defer m.list.mu.Unlock()
		if m.list.mu.all == nil {
			m.list.mu.all = make(map[*plainMapping]bool)
		}
		m.list.mu.all[m] = true
	}
	return m, nil
}

type plainMapping struct {
	b    []byte
	list *mapList // nil when read-only
}

func (m *plainMapping) Bytes() []byte { return m.b }

func (m *plainMapping) Populate(off, n int64) {
	if from, to := pages(len(m.b), off, n); from < to {
		_ = unix.Madvise(m.b[from:to], unix.MADV_WILLNEED)
	}
}

func (m *plainMapping) Drop(off, n int64) {
	if from, to := pages(len(m.b), off, n); from < to {
		_ = unix.Madvise(m.b[from:to], unix.MADV_DONTNEED)
	}
}

func (m *plainMapping) Unmap() error {
	if m.b == nil {
		return nil
	}
	var err error
	if m.list != nil {
		m.list.mu.Lock()
		defer m.list.mu.Unlock()
		delete(m.list.mu.all, m)
		err = unix.Msync(m.b, unix.MS_ASYNC)
	}
	err = errors.Join(err, unix.Munmap(m.b))
	m.b = nil
	return err
}
