package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes an open-file-description lock; a file system that has none
// gets the POSIX kind.
func lockFile(f *os.File) (unlock func(), err error) {
	err = setLock(f, unix.F_OFD_SETLK)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return lockPosix(f)
	}
	return nil, err
}

func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// control calls do with the descriptor, which cannot be closed meanwhile.
func (f *osFile) control(do func(fd int) error) error {
	c, err := f.f.SyscallConn()
	if err != nil {
		return err
	}
	var derr error
	if err := c.Control(func(fd uintptr) { derr = retry(func() error { return do(int(fd)) }) }); err != nil {
		return err
	}
	return derr
}

func blockSize(s *unix.Statfs_t) uint64 {
	if s.Frsize > 0 {
		return uint64(s.Frsize)
	}
	return uint64(s.Bsize)
}

// cannot reports that the file system does not know the operation.
func cannot(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL)
}

func (f *osFile) Sync() error {
	if err := f.control(unix.Fdatasync); err != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

func (f *osFile) Allocate(size int64) error {
	if size <= 0 {
		return nil
	}
	err := f.control(func(fd int) error { return unix.Fallocate(fd, 0, 0, size) })
	if err != nil && cannot(err) {
		return f.allocatePlain(size)
	}
	if err != nil {
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
	}
	return nil
}

func (f *osFile) Zero(off, n int64) error {
	if n <= 0 {
		return nil
	}
	err := f.control(func(fd int) error { return unix.Fallocate(fd, unix.FALLOC_FL_ZERO_RANGE, off, n) })
	if err != nil && cannot(err) {
		return f.writeZeros(off, n)
	}
	if err != nil {
		return &os.PathError{Op: "zero", Path: f.Name(), Err: err}
	}
	return nil
}

// mapList has nothing to hold: fdatasync writes what was stored through mappings.
type mapList struct{} //lint:ignore U1000 the field is shared with systems that need it

func (f *osFile) mapFile(size int, writable bool) (Mapping, error) {
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	b, err := unix.Mmap(int(f.f.Fd()), 0, size, prot, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &linuxMapping{b: b, writable: writable}, nil
}

type linuxMapping struct {
	b        []byte
	writable bool
}

func (m *linuxMapping) Bytes() []byte { return m.b }

func (m *linuxMapping) Populate(off, n int64) {
	from, to := pages(len(m.b), off, n)
	if from == to {
		return
	}
	advice := unix.MADV_POPULATE_READ
	if m.writable {
		advice = unix.MADV_POPULATE_WRITE
	}
	if retry(func() error { return unix.Madvise(m.b[from:to], advice) }) != nil { // before Linux 5.14
		_ = unix.Madvise(m.b[from:to], unix.MADV_WILLNEED)
	}
}

// Drop gives the pages back to the page cache, which keeps or writes them as it
// sees fit; nothing stored is lost, as the mapping is a shared one.
func (m *linuxMapping) Drop(off, n int64) {
	from, to := pages(len(m.b), off, n)
	if from < to {
		_ = unix.Madvise(m.b[from:to], unix.MADV_DONTNEED)
	}
}

func (m *linuxMapping) Unmap() error {
	if m.b == nil {
		return nil
	}
	err := unix.Munmap(m.b)
	m.b = nil
	return err
}
