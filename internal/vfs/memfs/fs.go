package memfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/vfs"
)

// ErrPowerOff is what every operation returns once the disk was stopped.
var ErrPowerOff = errors.New("the disk has no power")

// errNotEmpty and its kin are causes inside a fs.PathError.
var (
	errNotEmpty = errors.New("directory not empty")
	errIsDir    = errors.New("is a directory")
	errNotDir   = errors.New("not a directory")
	errReadOnly = errors.New("opened for reading only")
)

// FS is a disk in memory; it implements vfs.FS. All methods are safe for
// concurrent use. Paths are taken from one root; "a/b" and "/a/b" are the same.
type FS struct {
	mu struct {
		sync.Mutex
		root    *dir
		pending []dirOp // directory operations not yet durable, oldest first
		locks   map[string]bool
		usage   *vfs.Usage
		limit   int64 // bytes that may be in use; 0 for no limit
		used    int64 // bytes in use by all files

		ops       int64
		stopAfter int64 // -1 for never
		image     *FS   // the disk as it was when the power went; nil while it is on

		rng *rand.Rand
	}
}

var _ vfs.FS = (*FS)(nil)

// New is an empty disk. The seed decides what crashes keep.
func New(seed uint64) *FS {
	d := new(FS)
	d.mu.root = newDir()
	d.mu.locks = make(map[string]bool)
	d.mu.stopAfter = -1
	d.mu.rng = rand.New(rand.NewPCG(seed, 0x5d1a1))
	return d
}

// SetUsage makes Usage answer u; by default it counts what files take of a
// terabyte, or of the limit.
func (d *FS) SetUsage(u vfs.Usage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.usage = &u
}

// SetLimit makes the disk full at n bytes: writes and reservations beyond fail
// with vfs.ErrNoSpace. Zero takes the limit away.
func (d *FS) SetLimit(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.limit = n
}

// Used is the room that files take, in whole pages.
func (d *FS) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.used
}

// OpCount is the number of operations so far that change the disk or what is
// durable on it: creating, writing, sizing, syncing, renaming, removing, making
// directories. Stores through mappings are not counted.
func (d *FS) OpCount() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.ops
}

// StopAfter lets n more such operations happen. The one after them finds the
// power off: it does nothing, and it and all later operations, reads included,
// return [ErrPowerOff]. What Crash and KillClone then give is the disk of that
// moment: later stores through mappings do not count. A negative n takes the
// stop away, if it has not happened.
func (d *FS) StopAfter(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n < 0 {
		d.mu.stopAfter = -1
		return
	}
	d.mu.stopAfter = d.mu.ops + n
}

// Stopped reports whether the stop has happened.
func (d *FS) Stopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.image != nil
}

// readLocked opens an operation that changes nothing.
func (d *FS) readLocked(op, name string) error {
	if d.mu.image != nil {
		return &fs.PathError{Op: op, Path: name, Err: ErrPowerOff}
	}
	return nil
}

// changeLocked opens an operation that is counted.
func (d *FS) changeLocked(op, name string) error {
	if d.mu.image == nil && d.mu.stopAfter >= 0 && d.mu.ops >= d.mu.stopAfter {
		d.mu.image = d.cloneLocked()
	}
	if err := d.readLocked(op, name); err != nil {
		return err
	}
	d.mu.ops++
	return nil
}

// split is the path as elements from the root.
func split(name string) []string {
	name = strings.Trim(filepath.ToSlash(filepath.Clean(name)), "/")
	if name == "" || name == "." {
		return nil
	}
	return strings.Split(name, "/")
}

// findLocked walks to name.
func (d *FS) findLocked(name string) (node, error) {
	var at node = d.mu.root
	for _, el := range split(name) {
		in, ok := at.(*dir)
		if !ok {
			return nil, errNotDir
		}
		if at, ok = in.live[el]; !ok {
			return nil, fs.ErrNotExist
		}
	}
	return at, nil
}

// parentLocked is the directory that holds name, and name's last element.
func (d *FS) parentLocked(name string) (*dir, string, error) {
	els := split(name)
	if len(els) == 0 {
		return nil, "", fs.ErrInvalid
	}
	last := len(els) - 1
	at, err := d.findLocked(strings.Join(els[:last], "/"))
	if err != nil {
		return nil, "", err
	}
	in, ok := at.(*dir)
	if !ok {
		return nil, "", errNotDir
	}
	return in, els[last], nil
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Open implements vfs.FS.
func (d *FS) Open(name string) (vfs.File, error) { return d.open(name, true) }

// OpenRead implements vfs.FS.
func (d *FS) OpenRead(name string) (vfs.File, error) { return d.open(name, false) }

func (d *FS) open(name string, writable bool) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.readLocked("open", name); err != nil {
		return nil, err
	}
	at, err := d.findLocked(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	n, ok := at.(*inode)
	if !ok {
		return nil, pathError("open", name, errIsDir)
	}
	return &file{disk: d, node: n, name: name, writable: writable}, nil
}

// Create implements vfs.FS.
func (d *FS) Create(name string) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.changeLocked("create", name); err != nil {
		return nil, err
	}
	n, err := d.createLocked(name)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	d.resizeLocked(n, 0)
	return &file{disk: d, node: n, name: name, writable: true}, nil
}

// createLocked is the file of that name, made when it is missing.
func (d *FS) createLocked(name string) (*inode, error) {
	in, last, err := d.parentLocked(name)
	if err != nil {
		return nil, err
	}
	switch at := in.live[last].(type) {
	case *dir:
		return nil, errIsDir
	case *inode:
		return at, nil
	}
	n := &inode{modTime: time.Now()}
	d.enterLocked(dirOp{node: n, to: in, toName: last})
	return n, nil
}

// ReadFile implements vfs.FS.
func (d *FS) ReadFile(name string) ([]byte, error) {
	f, err := d.OpenRead(name)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}

// MkdirAll implements vfs.FS.
func (d *FS) MkdirAll(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.changeLocked("mkdir", name); err != nil {
		return err
	}
	in := d.mu.root
	for _, el := range split(name) {
		at, ok := in.live[el]
		if !ok {
			at = newDir()
			d.enterLocked(dirOp{node: at, to: in, toName: el})
		}
		if in, ok = at.(*dir); !ok {
			return pathError("mkdir", name, errNotDir)
		}
	}
	return nil
}

// ReadDir implements vfs.FS.
func (d *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.readLocked("readdir", name); err != nil {
		return nil, err
	}
	at, err := d.findLocked(name)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	in, ok := at.(*dir)
	if !ok {
		return nil, pathError("readdir", name, errNotDir)
	}
	var list []fs.DirEntry
	for _, el := range sortedNames(in.live) {
		list = append(list, fs.FileInfoToDirEntry(in.live[el].info(el)))
	}
	return list, nil
}

// Stat implements vfs.FS.
func (d *FS) Stat(name string) (fs.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.readLocked("stat", name); err != nil {
		return nil, err
	}
	at, err := d.findLocked(name)
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return at.info(filepath.Base(name)), nil
}

// Remove implements vfs.FS.
func (d *FS) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.changeLocked("remove", name); err != nil {
		return err
	}
	in, last, err := d.parentLocked(name)
	if err != nil {
		return pathError("remove", name, err)
	}
	at, ok := in.live[last]
	if !ok {
		return pathError("remove", name, fs.ErrNotExist)
	}
	if sub, ok := at.(*dir); ok && len(sub.live) > 0 {
		return pathError("remove", name, errNotEmpty)
	}
	d.enterLocked(dirOp{node: at, from: in, fromName: last})
	return nil
}

// RemoveAll implements vfs.FS.
func (d *FS) RemoveAll(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.changeLocked("removeall", name); err != nil {
		return err
	}
	in, last, err := d.parentLocked(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return pathError("removeall", name, err)
	}
	if at, ok := in.live[last]; ok {
		d.removeTreeLocked(in, last, at)
	}
	return nil
}

func (d *FS) removeTreeLocked(in *dir, name string, at node) {
	if sub, ok := at.(*dir); ok {
		for _, el := range sortedNames(sub.live) {
			d.removeTreeLocked(sub, el, sub.live[el])
		}
	}
	d.enterLocked(dirOp{node: at, from: in, fromName: name})
}

// Rename implements vfs.FS.
func (d *FS) Rename(oldName, newName string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.changeLocked("rename", oldName); err != nil {
		return err
	}
	from, fromName, err := d.parentLocked(oldName)
	if err != nil {
		return pathError("rename", oldName, err)
	}
	at, ok := from.live[fromName]
	if !ok {
		return pathError("rename", oldName, fs.ErrNotExist)
	}
	to, toName, err := d.parentLocked(newName)
	if err != nil {
		return pathError("rename", newName, err)
	}
	if from == to && fromName == toName {
		return nil
	}
	if there, ok := to.live[toName]; ok {
		_, fromDir := at.(*dir)
		toDir, isDir := there.(*dir)
		switch {
		case isDir && (!fromDir || len(toDir.live) > 0):
			return pathError("rename", newName, fs.ErrExist)
		case !isDir && fromDir:
			return pathError("rename", newName, errNotDir)
		}
	}
	for up := to; up != nil; up = up.parent {
		if node(up) == at {
			return pathError("rename", newName, fs.ErrInvalid)
		}
	}
	d.enterLocked(dirOp{node: at, from: from, fromName: fromName, to: to, toName: toName})
	return nil
}

// SyncDir implements vfs.FS.
func (d *FS) SyncDir(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.changeLocked("syncdir", name); err != nil {
		return err
	}
	at, err := d.findLocked(name)
	if err != nil {
		return pathError("syncdir", name, err)
	}
	in, ok := at.(*dir)
	if !ok {
		return pathError("syncdir", name, errNotDir)
	}
	d.syncDirLocked(in)
	return nil
}

// SetModTime implements vfs.FS.
func (d *FS) SetModTime(name string, t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.changeLocked("setmodtime", name); err != nil {
		return err
	}
	at, err := d.findLocked(name)
	if err != nil {
		return pathError("setmodtime", name, err)
	}
	at.setModTime(t)
	return nil
}

// Lock implements vfs.FS.
func (d *FS) Lock(name string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.changeLocked("lock", name); err != nil {
		return nil, err
	}
	if _, err := d.createLocked(name); err != nil {
		return nil, pathError("lock", name, err)
	}
	key := strings.Join(split(name), "/")
	if d.mu.locks[key] {
		return nil, fmt.Errorf("lock %s: %w", name, vfs.ErrLocked)
	}
	d.mu.locks[key] = true
	return &lock{disk: d, key: key}, nil
}

type lock struct {
	disk *FS
	key  string
	once sync.Once
}

func (l *lock) Close() error {
	l.once.Do(func() {
		l.disk.mu.Lock()
		defer l.disk.mu.Unlock()
		delete(l.disk.mu.locks, l.key)
	})
	return nil
}

// Usage implements vfs.FS.
func (d *FS) Usage(name string) (vfs.Usage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.readLocked("usage", name); err != nil {
		return vfs.Usage{}, err
	}
	if d.mu.usage != nil {
		return *d.mu.usage, nil
	}
	total := int64(1 << 40)
	if d.mu.limit > 0 {
		total = d.mu.limit
	}
	return vfs.Usage{Total: uint64(total), Used: uint64(d.mu.used), Available: uint64(max(total-d.mu.used, 0))}, nil
}

func sortedNames(m map[string]node) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
