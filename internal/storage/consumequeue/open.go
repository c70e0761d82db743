package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"sort"
	"strconv"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// OpenSet opens all queues under dir, which is made when missing, and finds the end of each.
func OpenSet(fsys vfs.FS, dir string, cfg Config) (*Set, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open consume queues %s: %w", dir, err)
	}
	s := &Set{
		fs: fsys, dir: dir, perFile: cfg.FileSize / EntrySize, readOnly: cfg.ReadOnly,
		handles: newHandles(fsys, cfg.OpenFiles, cfg.ReadOnly),
	}
	s.mu.queues = map[mq.QueueKey]*Queue{}
	s.mu.topics = map[string][]*Queue{}
	s.mu.dying = map[string][]*Queue{}
	if err := s.load(cfg.Covered); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open consume queues %s: %w", dir, err)
	}
	return s, nil
}

func (s *Set) load(covered mq.LogOffset) error {
	if !s.readOnly {
		if err := s.fs.MkdirAll(s.dir); err != nil {
			return err
		}
		if err := s.fs.SyncDir(filepath.Dir(s.dir)); err != nil {
			return err
		}
	}
	var otherSize error
	rightSize := false
	topics, err := s.fs.ReadDir(s.dir)
	if s.readOnly && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, topic := range topics {
		if !topic.IsDir() {
			if topic.Name() == "CURRENT" {
				return fmt.Errorf("the queues are kept in RocksDB (storeType=defaultRocksDB), which is not supported")
			}
			continue
		}
		ids, err := s.fs.ReadDir(filepath.Join(s.dir, topic.Name()))
		if err != nil {
			return err
		}
		for _, entry := range ids {
			id, err := strconv.ParseInt(entry.Name(), 10, 32)
			if !entry.IsDir() || err != nil || id < 0 {
				continue
			}
			q := newQueue(s, mq.QueueKey{Topic: topic.Name(), ID: mq.QueueID(id)})
			s.addLocked(q)
			if err := q.load(covered); err != nil {
				return err
			}
			size, wrong := errors.AsType[*sizeError](q.mu.broken)
			switch {
			case wrong && s.readOnly:
				return size
			case wrong && size.maybeSetting():
				otherSize = size
			case !wrong && len(q.mu.files) > 0:
				rightSize = true
			}
		}
	}
	if otherSize != nil && !rightSize {
		return otherSize // all of them: it is the setting that is wrong
	}
	return nil
}

// sizeError says that a file has not the size of all the others.
type sizeError struct {
	path      string
	got, want int64
}

func (e *sizeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, and mappedFileSizeConsumeQueue says %d: set it to the size the store was made with", e.path, e.got, e.want)
}

// maybeSetting reports whether files may have been made with this size.
func (e *sizeError) maybeSetting() bool { return e.got > 0 && e.got%EntrySize == 0 }

func (q *Queue) load(covered mq.LogOffset) error {
	files, err := q.listFiles()
	_, wrongSize := errors.AsType[*sizeError](err)
	if err != nil && !wrongSize {
		return err
	}
	q.mu.files = files
	if len(files) == 0 {
		return nil
	}
	// Unless everything was synced, nobody knows whether the files' names were.
	unsure := covered < math.MaxInt64
	q.newFiles, q.newDir, q.removed = unsure, unsure, unsure
	if wrongSize {
		q.mu.broken = err
		return nil
	}
	first := files[0].base
	end, err := q.findEnd(covered)
	if err != nil {
		return err
	}
	// Fillers come before all entries.
	start, err := q.search(first, end, func(e Entry) bool { return !e.filler() })
	if err != nil {
		return err
	}
	if err := q.dropGarbage(end, covered); err != nil {
		return err
	}
	q.min.Store(start)
	q.max.Store(end)
	q.mu.flushed, q.mu.base = end, end
	if start == end {
		return nil
	}
	q.mu.blank = false
	last, err := q.slot(end - 1)
	q.mu.end = last.End()
	if last.End() > covered && !q.set.readOnly {
		q.doubt(covered)
		if at := end * EntrySize; (at-1)/sector != (at-EntrySize)/sector {
			q.mu.suspect = end - 1
		}
	}
	return err
}

// sector is what a disk writes whole or not at all.
const sector = 512

// doubt marks as not synced what a process wrote that did not live to sync it:
// the kernel has it still, but who says that it is on disk.
func (q *Queue) doubt(covered mq.LogOffset) {
	for i := len(q.mu.files) - 1; i >= 0; i-- {
		f := q.mu.files[i]
		q.markDirty(f)
		if e, err := q.slot(f.base); err == nil && e.valid() && e.Pos < covered {
			break
		}
	}
}

// listFiles returns the queue's files after looking at names and sizes; all of
// them with a [sizeError], when one has a wrong size.
func (q *Queue) listFiles() ([]*file, error) {
	entries, err := q.set.fs.ReadDir(q.dir)
	if err != nil {
		return nil, err
	}
	size := q.set.perFile * EntrySize
	var files []*file
	var wrongSize error
	for i, entry := range entries {
		path := filepath.Join(q.dir, entry.Name())
		if entry.IsDir() {
			continue
		}
		at, ok := parseFileName(entry.Name())
		if !ok {
			return nil, fmt.Errorf("%s is not the name of a consume queue file (20 digits)", path)
		}
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		if info.Size() == 0 && i == len(entries)-1 {
			// Made and not yet sized when the process or the power went.
			if !q.set.readOnly {
				if err := q.set.fs.Remove(path); err != nil {
					return nil, err
				}
			}
			continue
		}
		if info.Size() != size && wrongSize == nil {
			wrongSize = &sizeError{path, info.Size(), size}
		}
		if wrongSize != nil {
			files = append(files, &file{path: path, base: at / EntrySize})
			continue
		}
		if at%size != 0 {
			return nil, fmt.Errorf("%s does not begin at a multiple of mappedFileSizeConsumeQueue, %d", path, size)
		}
		f := &file{path: path, base: at / EntrySize}
		if n := len(files); n > 0 && files[n-1].base+q.set.perFile != f.base {
			return nil, &mq.CorruptionError{File: files[n-1].path, Offset: size, Err: fmt.Errorf("the next file should be %s, and is %s; "+
				"move %s away to have the queue rebuilt from the commit log", fileName((files[n-1].base+q.set.perFile)*EntrySize), entry.Name(), q.dir)}
		}
		files = append(files, f)
	}
	return files, wrongSize
}

// findEnd returns the number after the last entry or filler.
//
// The entries that covered speaks of are a prefix of the files, so their end is
// found by halving. From there on a power cut may have left any page out, so the
// rest is walked until the first slot that does not continue the row. Without
// covered the walk begins in the third last file, as RocketMQ's does.
func (q *Queue) findEnd(covered mq.LogOffset) (int64, error) {
	files := q.mu.files
	first, limit := files[0].base, files[len(files)-1].base+q.set.perFile
	next, err := q.search(first, limit, func(e Entry) bool {
		return !(e.filler() || e.valid() && e.End() <= covered)
	})
	if err != nil {
		return 0, err
	}
	if n := len(files); n > 2 {
		// Files before the last three are whole: each was synced before its
		// successor was made.
		next = max(next, files[n-3].base)
	}
	var end mq.LogOffset
	if next > first {
		e, err := q.slot(next - 1)
		if err != nil {
			return 0, err
		}
		if e.valid() {
			end = e.End()
		}
	}
	var buf [readBatch]Entry
	for next < limit {
		f := files[(next-first)/q.set.perFile]
		n := min(int64(len(buf)), f.base+q.set.perFile-next)
		if _, err := q.set.readSlots(f, next, buf[:n]); err != nil {
			return 0, err
		}
		for _, e := range buf[:n] {
			switch {
			case e.filler() && end == 0 && f == files[0]:
			case e.valid() && e.Pos >= end:
				end = e.End()
			default:
				return next, nil
			}
			next++
		}
	}
	return next, nil
}

// garbageWindow is how many slots behind the end of a strange queue are searched
// for leftovers that zeros hide.
const garbageWindow = 16 * readBatch

// dropGarbage zeroes what stands in the files behind the last entry, lest it is
// taken for entries once those before it are written: what RocketMQ's truncation
// leaves, and pages that a power cut spared behind one that it took. Our own
// leftovers of the second kind do no harm, because they speak of records that are
// durable: the same entries come before them again.
func (q *Queue) dropGarbage(end int64, covered mq.LogOffset) error {
	if q.set.readOnly {
		return nil
	}
	q.io.Lock()
	defer q.io.Unlock()
	look := int64(1)
	if covered == 0 {
		look = garbageWindow
	}
	var buf [readBatch]Entry
	for _, f := range q.mu.files {
		n := max(end, f.base)
		for dirty := false; n < f.base+q.set.perFile && n < end+look && !dirty; {
			part := buf[:min(int64(len(buf)), f.base+q.set.perFile-n, end+look-n)]
			if _, err := q.set.readSlots(f, n, part); err != nil {
				return err
			}
			for _, e := range part {
				dirty = dirty || e != Entry{}
			}
			if dirty {
				if err := q.zeroFrom(f, n); err != nil {
					return err
				}
			}
			n += int64(len(part))
		}
	}
	return nil
}

// slot reads one slot of a queue that is being loaded, whatever it holds.
func (q *Queue) slot(n int64) (Entry, error) {
	var one [1]Entry
	_, err := q.set.readSlots(q.fileLocked(n), n, one[:])
	return one[0], err
}

// search returns the first slot in [from, to) for which reached holds, by halving.
func (q *Queue) search(from, to int64, reached func(Entry) bool) (int64, error) {
	var failed error
	n := sort.Search(int(to-from), func(i int) bool {
		if failed != nil {
			return true
		}
		e, err := q.slot(from + int64(i))
		if err != nil {
			failed = err
		}
		return reached(e)
	})
	return from + int64(n), failed
}

// Check visits every entry: all valid, each record behind the one before.
func (q *Queue) Check() error {
	var buf [readBatch]Entry
	var end mq.LogOffset
	next := q.Min()
	for {
		n, err := q.Read(next, buf[:])
		if err != nil {
			return err
		}
		for i, e := range buf[:n] {
			if !e.valid() || e.Pos < end {
				return fmt.Errorf("consume queue %s/%d: entry %d has position %d and size %d, the one before ends at %d",
					q.key.Topic, q.key.ID, next+mq.QueueOffset(i), e.Pos, e.Size, end)
			}
			end = e.End()
		}
		next += mq.QueueOffset(n)
		if n == 0 {
			break
		}
	}
	if next < q.Max() {
		return fmt.Errorf("consume queue %s/%d: reading stops at entry %d of %d", q.key.Topic, q.key.ID, next, q.Max())
	}
	return nil
}
