// Package keyindex finds messages by key and time: RocketMQ's index files, byte
// for byte, one chain of entries per hash slot.
//
// It is derived from the commit log: one follower reads the log from [Index.End]
// on and calls [Index.Put] for every record. Put may be given what it has had
// already, and takes it once. Queries run beside it and give positions whose
// keys have the right hash, which is not yet the right key: look at the message.
//
// Files are made at the first key that needs one, mapped, their room reserved.
// When a file is full it is made durable before the next one is made; the
// last file is durable after [Index.Sync] or Close. So after a crash every file
// but the last can be trusted: [Open] takes the last back to where [Index.Mark]
// made it durable, or drops it, and the follower does that part again.
package keyindex

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// ErrClosed answers whoever comes after Close.
var ErrClosed = errors.New("key index is closed")

// Index is the key index of one store. All methods are safe for concurrent use;
// Put is meant for one caller.
type Index struct {
	fs  vfs.FS // immutable
	dir string // immutable
	cfg Config // immutable

	marking sync.Mutex // held before mu by Mark and by whoever closes or rewinds files
	marked  mark       // what the mark on disk says; guarded by marking

	mu struct {
		sync.RWMutex
		files  []*file      // oldest first
		last   mq.LogOffset // the last message in the index; -1 none
		keys   int          // how many of its keys are in: all, unless Put failed or was cut short
		closed bool
	}
}

// file is one open index file.
type file struct {
	table
	name string // digits
	f    vfs.File
	m    vfs.Mapping
}

// Open opens the index in dir, which need not exist. Unless the stop before was
// clean, the last file goes back to its mark or is dropped. Files of another size than cfg says are an
// error that names both sizes; a header that cannot be is a
// [*mq.CorruptionError]. Files whose names are not numbers are left alone.
func Open(fsys vfs.FS, dir string, cfg Config, clean bool) (*Index, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open key index %s: %w", dir, err)
	}
	x := &Index{fs: fsys, dir: dir, cfg: cfg}
	x.mu.last = -1
	names, err := x.list()
	if err != nil {
		return nil, err
	}
	var last *file
	if n := len(names); !clean && n > 0 {
		if last, err = x.restore(names[n-1]); err != nil {
			return nil, err
		}
		if last == nil {
			if err := x.remove(names[n-1]); err != nil {
				return nil, err
			}
		}
		names = names[:n-1]
	}
	for _, name := range names {
		f, err := x.open(name)
		if err != nil {
			if last != nil {
				x.mu.files = append(x.mu.files, last)
			}
			return nil, errors.Join(err, x.unmapAll())
		}
		x.mu.files = append(x.mu.files, f)
	}
	if last != nil {
		x.mu.files = append(x.mu.files, last)
	}
	x.recountLocked()
	return x, nil
}

// recountLocked finds the last message and how many entries it has.
func (x *Index) recountLocked() {
	x.mu.last, x.mu.keys = -1, 0
	for i := len(x.mu.files) - 1; i >= 0; i-- {
		f := x.mu.files[i]
		for n := f.next() - 1; n > 0; n-- {
			if at := f.entryOffset(n); x.mu.keys == 0 {
				x.mu.last = at
			} else if at != x.mu.last {
				return
			}
			x.mu.keys++
		}
	}
}

// list returns the names of the index files, oldest first.
func (x *Index) list() ([]string, error) {
	entries, err := x.fs.ReadDir(x.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list key index: %w", err)
	}
	var names []string
	for _, e := range entries {
		if _, err := strconv.ParseUint(e.Name(), 10, 63); err == nil && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// open opens a file whose header must be right.
func (x *Index) open(name string) (*file, error) {
	f, err := x.openFile(name)
	if err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, errors.Join(&mq.CorruptionError{File: filepath.Join(x.dir, name), Offset: 0, Err: err}, f.close())
	}
	return f, nil
}

func (x *Index) openFile(name string) (*file, error) {
	path := filepath.Join(x.dir, name)
	f, err := x.fs.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open index file: %w", err)
	}
	size, err := f.Size()
	if err == nil && size != fileSize(x.cfg) {
		err = fmt.Errorf("it has %d bytes, but maxHashSlotNum %d and maxIndexNum %d make %d: set them as they were when the file was made, or remove the directory to have it made anew from the log",
			size, x.cfg.Slots, x.cfg.Entries, fileSize(x.cfg))
	}
	var opened *file
	if err == nil {
		opened, err = x.mapped(name, f)
	}
	if err != nil {
		return nil, fmt.Errorf("open index file %s: %w", path, errors.Join(err, f.Close()))
	}
	return opened, nil
}

func (x *Index) mapped(name string, f vfs.File) (*file, error) {
	m, err := f.Map(fileSize(x.cfg), true)
	if err != nil {
		return nil, err
	}
	return &file{name: name, f: f, m: m, table: table{b: m.Bytes(), slots: int32(x.cfg.Slots), limit: int32(x.cfg.Entries)}}, nil
}

// End is where the follower goes on: the log offset of the last message in the
// index, 0 for none.
func (x *Index) End() mq.LogOffset {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return max(x.mu.last, 0)
}

// SealedTime is the store time up to which the index is durable in full files,
// 0 for none (indexMsgTimestamp of the checkpoint).
func (x *Index) SealedTime() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for i := len(x.mu.files) - 1; i >= 0; i-- {
		if f := x.mu.files[i]; f.full() {
			return f.i64(atEndTime)
		}
	}
	return 0
}

// Put adds the keys of a record: its UNIQ_KEY, each of its KEYS, its tags. Records
// must come in the order of the log; what is in already, be it a part of the last
// message, and records rolled back are passed over. After an error Put may be
// called with the same record again.
func (x *Index) Put(v record.View) error {
	if v.SysFlag().Tx() == mq.SysTxRollback {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	at := v.LogOffset()
	switch {
	case x.mu.closed:
		return ErrClosed
	case at < x.mu.last:
		return nil
	}
	p := putter{x: x, at: at, storeTime: v.StoreTime()}
	if at == x.mu.last {
		p.skip = x.mu.keys
	}
	var uniq, keys, tags []byte
	for name, value := range record.EachProperty(v.Properties()) {
		switch string(name) {
		case mq.PropUniqueKey:
			uniq = value
		case mq.PropKeys:
			keys = value
		case mq.PropTags:
			tags = value
		}
	}
	topic := v.Topic()
	if uniq != nil {
		p.put(keyHash(topic, uniq))
	}
	for len(keys) > 0 {
		key := keys
		if i := bytes.IndexByte(keys, ' '); i >= 0 {
			key, keys = keys[:i], keys[i+1:]
		} else {
			keys = nil
		}
		if len(key) > 0 {
			p.put(keyHash(topic, key))
		}
	}
	if tags != nil && x.cfg.Tags {
		p.put(tagHash(topic, tags))
	}
	return p.err
}

// putter puts the keys of one message and keeps its first error.
type putter struct {
	x         *Index // whose lock is held
	at        mq.LogOffset
	storeTime int64
	skip      int // so many keys are in
	err       error
}

func (p *putter) put(hash int32) {
	x := p.x
	switch {
	case p.err != nil:
		return
	case p.skip > 0:
		p.skip--
		return
	}
	n := len(x.mu.files)
	if n == 0 || x.mu.files[n-1].full() {
		if p.err = x.addLocked(); p.err != nil {
			return
		}
		n++
	}
	x.mu.files[n-1].put(hash, p.at, p.storeTime)
	if x.mu.last != p.at {
		x.mu.last, x.mu.keys = p.at, 0
	}
	x.mu.keys++
}

// addLocked makes the next file, after making the last one durable.
func (x *Index) addLocked() error {
	var last *file
	if n := len(x.mu.files); n > 0 {
		last = x.mu.files[n-1]
		if err := last.f.Sync(); err != nil {
			return fmt.Errorf("sync full index file %s: %w", last.name, err)
		}
	}
	if err := x.fs.MkdirAll(x.dir); err != nil {
		return fmt.Errorf("make index directory: %w", err)
	}
	name := x.newName(last)
	path := filepath.Join(x.dir, name)
	f, err := x.create(name)
	if err != nil {
		if rm := x.fs.Remove(path); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
			err = errors.Join(err, rm)
		}
		return fmt.Errorf("make index file %s: %w", path, err)
	}
	if last != nil {
		f.seed(last.i64(atEndTime), last.endOffset())
	} else {
		f.seed(0, 0)
	}
	x.mu.files = append(x.mu.files, f)
	return nil
}

func (x *Index) create(name string) (*file, error) {
	f, err := x.fs.Create(filepath.Join(x.dir, name))
	if err != nil {
		return nil, err
	}
	if err = f.Allocate(fileSize(x.cfg)); err == nil {
		var made *file
		if made, err = x.mapped(name, f); err == nil {
			if err = x.fs.SyncDir(x.dir); err == nil {
				return made, nil
			}
			return nil, errors.Join(err, made.close())
		}
	}
	return nil, errors.Join(err, f.Close())
}

// newName is a name behind that of last even if the clock was set back.
func (x *Index) newName(last *file) string {
	now := time.Now()
	name := now.Format("20060102150405") + fmt.Sprintf("%03d", now.Nanosecond()/1e6)
	if last != nil && name <= last.name {
		n, _ := strconv.ParseUint(last.name, 10, 63)
		name = fmt.Sprintf("%017d", n+1)
	}
	return name
}

// TagKey is the key by which Query finds messages with these tags.
func TagKey(tags string) string { return "T#" + tags }

// Query returns the log offsets of at most max messages whose key may be this
// one, newest first, stored within [begin, end] ms or less than a second beside
// it. The caller compares the keys. A chain can be as long as a file, so Put gets
// its turn in between.
func (x *Index) Query(topic, key string, max int, begin, end int64) ([]mq.LogOffset, error) {
	const steps = 4096
	if max <= 0 {
		return nil, nil
	}
	hash := keyHash(topic, key)
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.mu.closed {
		return nil, ErrClosed
	}
	var found []mq.LogOffset
	for i := len(x.mu.files) - 1; i >= 0 && len(found) < max; i-- {
		f := x.mu.files[i]
		if f.empty() || !f.overlaps(begin, end) {
			continue
		}
		for n := f.newest(hash); n > 0; {
			if found, n = f.find(found, hash, n, max, steps, begin, end); n == 0 {
				break
			}
			x.mu.RUnlock()
			x.mu.RLock()
			if x.mu.closed {
				return nil, ErrClosed
			}
			if i = slices.Index(x.mu.files, f); i < 0 {
				return found, nil // expired, and so are those before it
			}
		}
	}
	return found, nil
}

// Cut takes out messages at or behind logEnd, which a power loss took from the
// log.
func (x *Index) Cut(logEnd mq.LogOffset) error {
	x.marking.Lock()
	defer x.marking.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	n := len(x.mu.files)
	if n == 0 || x.mu.files[n-1].endOffset() < logEnd {
		return nil
	}
	if err := x.dropMark(); err != nil {
		return err
	}
	for ; n > 0 && x.mu.files[n-1].endOffset() >= logEnd; n-- {
		f := x.mu.files[n-1]
		if next := f.firstBehind(logEnd); next > 1 && f.rewind(next, f.entryTime(next-1)+999) == nil {
			break
		}
		x.mu.files = x.mu.files[:n-1]
		if err := errors.Join(f.close(), x.remove(f.name)); err != nil {
			return err
		}
	}
	x.recountLocked()
	return nil
}

// Expire removes the oldest files that know nothing at or behind minLog, where
// the log begins now. The last file stays.
func (x *Index) Expire(minLog mq.LogOffset) (removed int, err error) {
	x.marking.Lock()
	defer x.marking.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.mu.files) > 1 && x.mu.files[0].endOffset() < minLog {
		f := x.mu.files[0]
		x.mu.files = x.mu.files[1:]
		if err := errors.Join(f.close(), x.remove(f.name)); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

func (x *Index) remove(name string) error {
	if err := x.fs.Remove(filepath.Join(x.dir, name)); err != nil {
		return fmt.Errorf("remove index file: %w", err)
	}
	if err := x.fs.SyncDir(x.dir); err != nil {
		return fmt.Errorf("sync index directory: %w", err)
	}
	return nil
}

// Sync makes the last file durable; the others are.
func (x *Index) Sync() error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := len(x.mu.files)
	if n == 0 || x.mu.closed {
		return nil
	}
	f := x.mu.files[n-1]
	if err := f.f.Sync(); err != nil {
		return fmt.Errorf("sync index file %s: %w", f.name, err)
	}
	return nil
}

// Close syncs and closes the index. If it fails the stop is not clean: the next
// Open must be told so.
func (x *Index) Close() error {
	x.marking.Lock()
	defer x.marking.Unlock()
	err := x.Sync()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.closed = true
	return errors.Join(err, x.unmapAll())
}

func (x *Index) unmapAll() error {
	var errs []error
	for _, f := range x.mu.files {
		errs = append(errs, f.close())
	}
	x.mu.files = nil
	return errors.Join(errs...)
}

// Check visits every entry of every file.
func (x *Index) Check() error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for i, f := range x.mu.files {
		err := f.checkAll()
		if err == nil && i < len(x.mu.files)-1 && !f.full() {
			err = fmt.Errorf("not full, but not the last either")
		}
		if err == nil && i > 0 && f.endOffset() < x.mu.files[i-1].endOffset() {
			err = fmt.Errorf("ends at log offset %d, before the file in front of it", f.endOffset())
		}
		if err != nil {
			return &mq.CorruptionError{File: filepath.Join(x.dir, f.name), Err: err}
		}
	}
	return nil
}

func (f *file) close() error { return errors.Join(f.m.Unmap(), f.f.Close()) }
