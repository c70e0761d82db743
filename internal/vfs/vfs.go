// Package vfs is the only door to the disk: files, directories, durability,
// mappings, locks and room left. [OS] is the real disk;
// internal/vfs/memfs is a disk in memory that can lose power and
// internal/vfs/faultfs one that fails where a test says.
//
// Durability is as on Linux: bytes written or stored through a mapping are
// durable after File.Sync; a file that was made, renamed or removed is so after
// FS.SyncDir of its directory. Before that a power cut keeps any part of it.
// The end of the process (kill -9) loses nothing that was written or mapped.
package vfs

import (
	"io"
	"io/fs"
	"time"
)

// FS is a file system. Paths are slash or OS separated as in package os.
// Errors satisfy errors.Is with fs.ErrNotExist and fs.ErrExist as in package os.
// All methods are safe for concurrent use.
type FS interface {
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// OpenRead opens an existing file for reading only.
	OpenRead(name string) (File, error)
	// Create makes a file or truncates the one there to zero length.
	Create(name string) (File, error)
	// ReadFile reads the whole file.
	ReadFile(name string) ([]byte, error)
	MkdirAll(dir string) error
	// ReadDir lists dir sorted by name.
	ReadDir(dir string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	Remove(name string) error
	RemoveAll(name string) error
	// Rename replaces newName atomically.
	Rename(oldName, newName string) error
	// SyncDir makes the entries of dir durable.
	SyncDir(dir string) error
	// SetModTime sets a file's modification time, which is RocketMQ's retention clock.
	SetModTime(name string, t time.Time) error
	// Lock takes the lock a Java process would take: an exclusive fcntl lock on
	// byte 0 of the file, which is made when missing. It fails at once with
	// ErrLocked when another process or another Lock of this process has it.
	Lock(name string) (io.Closer, error)
	// Usage is the state of the file system that holds name.
	Usage(name string) (Usage, error)
}

// Usage is the room of a file system in bytes, as df counts it.
type Usage struct {
	Total     uint64
	Used      uint64
	Available uint64 // to an ordinary user
}

// Ratio is used/(used+available) in 0..1, as RocketMQ measures disks.
func (u Usage) Ratio() float64 {
	if u.Used+u.Available == 0 {
		return 0
	}
	return float64(u.Used) / float64(u.Used+u.Available)
}

// File is an open file. ReadAt and WriteAt may run concurrently.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	Size() (int64, error)
	// Truncate sets the size; growth reads as zeros and takes no room.
	Truncate(size int64) error
	// Allocate grows the file to at least size and reserves the room, so that a
	// later write or mapped store there does not fail for want of disk. On systems
	// that cannot reserve, it writes zeros to what is new.
	Allocate(size int64) error
	// Zero makes [off, off+n) read as zeros, without giving up the room.
	Zero(off, n int64) error
	// Sync makes content and size durable, stores through mappings included.
	Sync() error
	// Map maps the first size bytes; the file must be at least that long. Stores to
	// a writable mapping are seen by ReadAt and by other mappings. Unmap before Close is not
	// required; the mapping outlives the file handle.
	Map(size int64, writable bool) (Mapping, error)
}

// Mapping is a file in memory.
type Mapping interface {
	// Bytes is the mapped memory; it must not be touched after Unmap.
	Bytes() []byte
	// Populate faults in [off, off+n) ready for writing where the system can; a hint.
	Populate(off, n int64)
	// Drop tells the system that [off, off+n) will not be read soon; a hint.
	Drop(off, n int64)
	Unmap() error
}
