package consumequeue

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sundial-mq/sundial/internal/mq"
)

var errReadOnly = errors.New("consume queues are open for reading only")

// writeBatch is how many entries one write takes at most.
const writeBatch = 4096

// Flush writes the entries whose records end at or below upTo, the position up
// to which the log is durable. They are durable themselves after Sync. After an
// error the entries stay in memory and the next Flush tries again.
func (q *Queue) Flush(upTo mq.LogOffset) error {
	if q.set.readOnly {
		return errReadOnly
	}
	q.set.dirs.RLock()
	defer q.set.dirs.RUnlock()
	q.io.Lock()
	defer q.io.Unlock()
	return q.flushIO(upTo)
}

func (q *Queue) flushIO(upTo mq.LogOffset) error {
	// An entry once in a block never changes, so the blocks can be read without
	// the lock that appenders and readers want.
	q.mu.Lock()
	next, base := q.mu.flushed, q.mu.base
	blocks := append([][]Entry(nil), q.mu.blocks...)
	gone := q.mu.gone
	q.mu.Unlock()
	if gone || len(blocks) == 0 {
		return nil
	}

	var buf []byte
	start := next // number of the first entry in buf
	write := func() error {
		if len(buf) == 0 {
			return nil
		}
		if err := q.write(start, buf); err != nil {
			return fmt.Errorf("flush consume queue %s/%d: %w", q.key.Topic, q.key.ID, err)
		}
		buf = buf[:0]
		start = next
		q.advance(next)
		return nil
	}
	for _, block := range blocks {
		if skip := next - base; skip > 0 {
			block = block[min(skip, int64(len(block))):]
		}
		base += blockLen
		for _, e := range block {
			if e.End() > upTo {
				return write()
			}
			buf = AppendEntry(buf, e)
			next++
			if next%q.set.perFile == 0 || len(buf) == writeBatch*EntrySize {
				if err := write(); err != nil {
					return err
				}
			}
		}
	}
	return write()
}

// advance says that the entries below n are in files, and lets go of full blocks below.
func (q *Queue) advance(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.flushed = n
	if n == q.max.Load() {
		q.mu.base, q.mu.blocks = n, nil
		return
	}
	drop := (n - q.mu.base) / blockLen
	if drop > 0 {
		q.mu.blocks = append([][]Entry(nil), q.mu.blocks[drop:]...)
		q.mu.base += drop * blockLen
	}
}

// write puts entries, from number start on, into the file they belong to. They do not cross its end.
func (q *Queue) write(start int64, b []byte) error {
	f, err := q.fileFor(start)
	if err != nil {
		return err
	}
	h, err := q.set.handles.acquire(f)
	if err != nil {
		return err
	}
	defer q.set.handles.release(f)
	if _, err := h.WriteAt(b, (start-f.base)*EntrySize); err != nil {
		return err
	}
	q.markDirty(f)
	return nil
}

func (q *Queue) markDirty(f *file) {
	for _, d := range q.dirty {
		if d == f {
			return
		}
	}
	q.dirty = append(q.dirty, f)
	if len(q.dirty) == 1 {
		q.set.addUnsynced(q)
	}
}

// fileFor returns the file for entry n, which is the next to be written, and makes it when it is missing.
func (q *Queue) fileFor(n int64) (*file, error) {
	q.mu.Lock()
	f, fresh := q.fileLocked(n), q.mu.fresh
	stale := 0
	for fresh && stale < len(q.mu.files) && q.mu.files[stale] != f {
		stale++
	}
	q.mu.Unlock()
	// The queue begins here, and files before this one hold no entries.
	if err := q.removeFiles(stale); err != nil {
		return nil, err
	}
	if n == q.firstOf(n) {
		// The older file must not be the one that a power cut takes from.
		if err := q.syncIO(nil); err != nil {
			return nil, err
		}
	}
	if f == nil {
		var err error
		if f, err = q.create(q.firstOf(n)); err != nil {
			return nil, err
		}
	}
	if fresh {
		if err := q.fill(f, n); err != nil {
			return nil, err
		}
		q.mu.Lock()
		q.mu.fresh = false
		q.mu.Unlock()
	}
	return f, nil
}

// create makes the file that begins with entry base, at its full size; the room is taken as entries come.
func (q *Queue) create(base int64) (*file, error) {
	fsys := q.set.fs
	q.mu.Lock()
	first := len(q.mu.files) == 0
	q.mu.Unlock()
	if first {
		if err := fsys.MkdirAll(q.dir); err != nil {
			return nil, err
		}
		q.newDir = true
	}
	f := &file{path: q.path(base), base: base}
	h, err := fsys.Create(f.path)
	if err != nil {
		return nil, err
	}
	if err := h.Truncate(q.set.perFile * EntrySize); err != nil {
		_ = h.Close()
		return nil, err
	}
	q.newFiles = true
	q.set.handles.adopt(f, h)
	q.mu.Lock()
	q.mu.files = append(q.mu.files[:len(q.mu.files):len(q.mu.files)], f)
	q.mu.Unlock()
	q.markDirty(f)
	return f, nil
}

// fill writes fillers into the slots of f before entry n.
func (q *Queue) fill(f *file, n int64) error {
	h, err := q.set.handles.acquire(f)
	if err != nil {
		return err
	}
	defer q.set.handles.release(f)
	one := AppendEntry(nil, fillerEntry)
	var b []byte
	for i := f.base; i < n; {
		b = b[:0]
		at := i
		for ; i < n && len(b) < writeBatch*EntrySize; i++ {
			b = append(b, one...)
		}
		if _, err := h.WriteAt(b, (at-f.base)*EntrySize); err != nil {
			return err
		}
	}
	q.markDirty(f)
	return nil
}

// Sync makes what Flush wrote durable.
func (q *Queue) Sync() error {
	q.io.Lock()
	defer q.io.Unlock()
	return q.syncIO(nil)
}

// syncIO syncs what is dirty. Directories are added to dirs for the caller to
// sync, or synced here when dirs is nil.
func (q *Queue) syncIO(dirs map[string]bool) error {
	q.mu.Lock()
	gone := q.mu.gone
	q.mu.Unlock()
	if gone {
		q.dirty, q.newFiles, q.newDir = nil, false, false
		return nil
	}
	for len(q.dirty) > 0 {
		f := q.dirty[len(q.dirty)-1]
		h, err := q.set.handles.acquire(f)
		if err == nil {
			err = h.Sync()
			q.set.handles.release(f)
		}
		if err != nil {
			return fmt.Errorf("sync consume queue %s/%d: %w", q.key.Topic, q.key.ID, err)
		}
		q.dirty = q.dirty[:len(q.dirty)-1]
	}
	if !q.newFiles {
		return nil
	}
	todo := []string{q.dir}
	if q.newDir {
		todo = append(todo, filepath.Dir(q.dir), q.set.dir)
	}
	for _, dir := range todo {
		if dirs != nil {
			dirs[dir] = true
		} else if err := q.set.fs.SyncDir(dir); err != nil {
			return fmt.Errorf("sync consume queue %s/%d: %w", q.key.Topic, q.key.ID, err)
		}
	}
	q.newFiles, q.newDir = false, false
	return nil
}
