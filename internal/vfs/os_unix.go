//go:build unix

package vfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// syncDir makes the entries of dir durable by syncing the directory itself.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

func isDiskFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

func usage(name string) (Usage, error) {
	var s unix.Statfs_t
	name = existing(name)
	for {
		err := unix.Statfs(name, &s)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return Usage{}, &os.PathError{Op: "statfs", Path: name, Err: err}
		}
		block := blockSize(&s)
		return Usage{
			Total:     uint64(s.Blocks) * block,
			Used:      uint64(s.Blocks-s.Bfree) * block,
			Available: uint64(s.Bavail) * block,
		}, nil
	}
}

// posixLocks are the files that this process has locked the POSIX way, where a
// second lock by the same process would simply succeed. They are a property of
// the process, hence the package variable.
var posixLocks struct {
	sync.Mutex
	held map[string]bool // by absolute path, symbolic links resolved
}

// lockPosix takes an ordinary fcntl lock. It is lost when this process closes
// any other descriptor of the file, so nobody else should open it.
func lockPosix(f *os.File) (unlock func(), err error) {
	key, err := filepath.Abs(f.Name())
	if err != nil {
		return nil, err
	}
	if key, err = filepath.EvalSymlinks(key); err != nil {
		return nil, err
	}
	posixLocks.Lock()
	defer posixLocks.Unlock()
	if posixLocks.held[key] {
		return nil, fmt.Errorf("%w (by this very process)", ErrLocked)
	}
	if err := setLock(f, unix.F_SETLK); err != nil {
		return nil, err
	}
	if posixLocks.held == nil {
		posixLocks.held = make(map[string]bool)
	}
	posixLocks.held[key] = true
	return func() {
		posixLocks.Lock()
		defer posixLocks.Unlock()
		delete(posixLocks.held, key)
	}, nil
}

// setLock asks for the lock a Java FileLock of byte 0 is.
func setLock(f *os.File, cmd int) error {
	for {
		err := unix.FcntlFlock(f.Fd(), cmd, &unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: 0, Len: 1})
		switch err {
		case unix.EINTR:
			continue
		case unix.EAGAIN, unix.EACCES:
			return ErrLocked
		}
		return err
	}
}
