// Package faultfs is a disk that fails, stalls or writes short where a test says.
//
// [Wrap] puts a [Hook] before every operation of another disk. What the hook
// returns is what the operation returns, and the operation does not happen; nil
// lets it through. A hook that blocks stalls the operation. Two kinds of errors
// mean more: [Short] does a part of a read or write first, and [After] does the
// whole operation and then reports the error, as a disk that lost only its answer.
//
// Mappings are those of the disk below: what is stored through them does not
// pass here, and only making them can fail.
package faultfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/vfs"
)

// Op is a kind of operation.
type Op uint8

// Operations of a disk, then those of a file.
const (
	OpOpen Op = iota
	OpOpenRead
	OpCreate
	OpReadFile
	OpMkdirAll
	OpReadDir
	OpStat
	OpRemove
	OpRemoveAll
	OpRename
	OpSyncDir
	OpSetModTime
	OpLock
	OpUsage
	OpReadAt
	OpWriteAt
	OpClose
	OpSize
	OpTruncate
	OpAllocate
	OpZero
	OpSync
	OpMap
	opCount
)

var opNames = [opCount]string{
	"open", "openread", "create", "readfile", "mkdirall", "readdir", "stat", "remove", "removeall", "rename", "syncdir",
	"setmodtime", "lock", "usage", "readat", "writeat", "close", "size", "truncate", "allocate", "zero", "sync", "map",
}

// changes are the operations that change the disk or what is durable on it.
var changes = []Op{OpCreate, OpMkdirAll, OpRemove, OpRemoveAll, OpRename, OpSyncDir, OpSetModTime, OpLock,
	OpWriteAt, OpTruncate, OpAllocate, OpZero, OpSync}

func (op Op) String() string {
	if op < opCount {
		return opNames[op]
	}
	return fmt.Sprintf("Op(%d)", uint8(op))
}

// Changes reports whether the operation changes the disk or what is durable on it.
func (op Op) Changes() bool { return slices.Contains(changes, op) }

// Hook decides about one operation on the file or directory called name. It is
// called from many goroutines at once.
type Hook func(op Op, name string) error

// ErrInjected is a cause for hooks that need none of their own.
var ErrInjected = errors.New("injected fault")

// Short makes a read or write do only n bytes and then return err.
func Short(n int, err error) error { return &partial{n: n, err: err} }

// After does the operation and then returns err all the same.
func After(err error) error { return &partial{n: -1, err: err} }

type partial struct {
	n   int // bytes to do; -1 for all of the operation
	err error
}

func (p *partial) Error() string { return p.err.Error() }
func (p *partial) Unwrap() error { return p.err }

// Nth fails the n-th operation, from 1, of those named (of all that change the
// disk when none is named) with err, and no other.
func Nth(n int64, err error, ops ...Op) Hook {
	return counted(func(i int64) bool { return i == n }, err, ops)
}

// From is Nth for the n-th and all after it: a disk that broke for good.
func From(n int64, err error, ops ...Op) Hook {
	return counted(func(i int64) bool { return i >= n }, err, ops)
}

func counted(hit func(int64) bool, err error, ops []Op) Hook {
	if len(ops) == 0 {
		ops = changes
	}
	var count atomic.Int64
	return func(op Op, _ string) error {
		if slices.Contains(ops, op) && hit(count.Add(1)) {
			return err
		}
		return nil
	}
}

// Wrap is below with hook before every operation.
func Wrap(below vfs.FS, hook Hook) vfs.FS { return &faulty{below: below, hook: hook} }

type faulty struct {
	below vfs.FS
	hook  Hook
}

// do asks the hook and does the operation.
func do(hook Hook, op Op, name string, f func() error) error {
	err := hook(op, name)
	if err == nil {
		return f()
	}
	if p, ok := errors.AsType[*partial](err); ok {
		if p.n >= 0 {
			return pathError(op, name, p.err)
		}
		if ferr := f(); ferr != nil {
			return ferr
		}
		return pathError(op, name, p.err)
	}
	return pathError(op, name, err)
}

// get is do for operations with a result, which an injected error takes away.
func get[T any](hook Hook, op Op, name string, f func() (T, error), undo func(T)) (T, error) {
	var got T
	err := do(hook, op, name, func() (err error) {
		got, err = f()
		return err
	})
	if err != nil {
		var none T
		if undo != nil && any(got) != nil {
			undo(got)
		}
		return none, err
	}
	return got, nil
}

func pathError(op Op, name string, err error) error {
	return &fs.PathError{Op: op.String(), Path: name, Err: err}
}

func (d *faulty) file(op Op, name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	f, err := get(d.hook, op, name, func() (vfs.File, error) { return open(name) }, func(f vfs.File) { f.Close() })
	if err != nil {
		return nil, err
	}
	return &file{below: f, hook: d.hook}, nil
}

func (d *faulty) Open(name string) (vfs.File, error) { return d.file(OpOpen, name, d.below.Open) }
func (d *faulty) OpenRead(name string) (vfs.File, error) {
	return d.file(OpOpenRead, name, d.below.OpenRead)
}
func (d *faulty) Create(name string) (vfs.File, error) { return d.file(OpCreate, name, d.below.Create) }

func (d *faulty) ReadFile(name string) ([]byte, error) {
	return get(d.hook, OpReadFile, name, func() ([]byte, error) { return d.below.ReadFile(name) }, nil)
}

func (d *faulty) MkdirAll(dir string) error {
	return do(d.hook, OpMkdirAll, dir, func() error { return d.below.MkdirAll(dir) })
}

func (d *faulty) ReadDir(dir string) ([]fs.DirEntry, error) {
	return get(d.hook, OpReadDir, dir, func() ([]fs.DirEntry, error) { return d.below.ReadDir(dir) }, nil)
}

func (d *faulty) Stat(name string) (fs.FileInfo, error) {
	return get(d.hook, OpStat, name, func() (fs.FileInfo, error) { return d.below.Stat(name) }, nil)
}

func (d *faulty) Remove(name string) error {
	return do(d.hook, OpRemove, name, func() error { return d.below.Remove(name) })
}

func (d *faulty) RemoveAll(name string) error {
	return do(d.hook, OpRemoveAll, name, func() error { return d.below.RemoveAll(name) })
}

func (d *faulty) Rename(oldName, newName string) error {
	return do(d.hook, OpRename, oldName, func() error { return d.below.Rename(oldName, newName) })
}

func (d *faulty) SyncDir(dir string) error {
	return do(d.hook, OpSyncDir, dir, func() error { return d.below.SyncDir(dir) })
}

func (d *faulty) SetModTime(name string, t time.Time) error {
	return do(d.hook, OpSetModTime, name, func() error { return d.below.SetModTime(name, t) })
}

func (d *faulty) Lock(name string) (io.Closer, error) {
	return get(d.hook, OpLock, name, func() (io.Closer, error) { return d.below.Lock(name) }, func(c io.Closer) { c.Close() })
}

func (d *faulty) Usage(name string) (vfs.Usage, error) {
	return get(d.hook, OpUsage, name, func() (vfs.Usage, error) { return d.below.Usage(name) }, nil)
}

// file is a file whose operations ask the hook.
type file struct {
	below vfs.File
	hook  Hook
}

// io does a read or write, or the part of it that the hook allows.
func (f *file) io(op Op, p []byte, off int64, do func([]byte, int64) (int, error)) (int, error) {
	err := f.hook(op, f.Name())
	if err == nil {
		return do(p, off)
	}
	n := 0
	if part, ok := errors.AsType[*partial](err); ok {
		err = part.err
		if part.n >= 0 {
			p = p[:min(part.n, len(p))]
		}
		var berr error
		if n, berr = do(p, off); berr != nil {
			return n, berr
		}
	}
	return n, pathError(op, f.Name(), err)
}

func (f *file) Name() string { return f.below.Name() }

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	return f.io(OpReadAt, p, off, f.below.ReadAt)
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	return f.io(OpWriteAt, p, off, f.below.WriteAt)
}

// Close gives back the file below whatever the hook says.
func (f *file) Close() error {
	err := f.hook(OpClose, f.Name())
	if cerr := f.below.Close(); cerr != nil {
		return cerr
	}
	if err != nil {
		return pathError(OpClose, f.Name(), err)
	}
	return nil
}

func (f *file) Size() (int64, error) {
	return get(f.hook, OpSize, f.Name(), f.below.Size, nil)
}

func (f *file) Truncate(size int64) error {
	return do(f.hook, OpTruncate, f.Name(), func() error { return f.below.Truncate(size) })
}

func (f *file) Allocate(size int64) error {
	return do(f.hook, OpAllocate, f.Name(), func() error { return f.below.Allocate(size) })
}

func (f *file) Zero(off, n int64) error {
	return do(f.hook, OpZero, f.Name(), func() error { return f.below.Zero(off, n) })
}

func (f *file) Sync() error { return do(f.hook, OpSync, f.Name(), f.below.Sync) }

func (f *file) Map(size int64, writable bool) (vfs.Mapping, error) {
	return get(f.hook, OpMap, f.Name(), func() (vfs.Mapping, error) { return f.below.Map(size, writable) }, func(m vfs.Mapping) { m.Unmap() })
}
