package consumequeue

import (
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/sundial-mq/sundial/internal/mq"
)

// readBatch is how many entries one read from a file takes at most.
const readBatch = 1024

var readBuffers = sync.Pool{New: func() any { return new([readBatch * EntrySize]byte) }}

// Read fills dst with the entries from number from on and returns how many there
// were: fewer than asked for at the end of the queue, none when from is outside
// Min..Max-1. With an error it returns the entries before the one that could
// not be read.
func (q *Queue) Read(from mq.QueueOffset, dst []Entry) (int, error) {
	n := 0
	for n < len(dst) {
		got, err := q.readSome(int64(from)+int64(n), dst[n:])
		n += got
		if err != nil {
			return n, err
		}
		if got == 0 {
			break
		}
	}
	return n, nil
}

// Entry returns the entry with number off, false when there is none or it cannot be read.
func (q *Queue) Entry(off mq.QueueOffset) (Entry, bool) {
	var one [1]Entry
	n, err := q.readSome(int64(off), one[:])
	return one[0], n == 1 && err == nil
}

// readSome reads from memory or from one file, whichever holds entry from.
func (q *Queue) readSome(from int64, dst []Entry) (int, error) {
	if from < q.min.Load() || from >= q.max.Load() {
		return 0, nil
	}
	q.mu.Lock()
	if from >= q.mu.flushed {
		n := q.copyTailLocked(from, dst)
		q.mu.Unlock()
		return n, nil
	}
	f := q.fileLocked(from)
	upTo := min(q.mu.flushed, from+int64(len(dst)))
	q.mu.Unlock()
	if f == nil {
		return 0, nil
	}
	upTo = min(upTo, f.base+q.set.perFile, from+readBatch)
	n, err := q.set.readFile(f, from, dst[:upTo-from])
	if err != nil && from < q.min.Load() {
		return 0, nil // deleted meanwhile
	}
	return n, err
}

func (q *Queue) copyTailLocked(from int64, dst []Entry) int {
	i := from - q.mu.base
	n := 0
	for b := i / blockLen; n < len(dst) && b < int64(len(q.mu.blocks)); b++ {
		block := q.mu.blocks[b]
		if skip := i - b*blockLen; skip > 0 {
			if skip >= int64(len(block)) {
				break
			}
			block = block[skip:]
		}
		n += copy(dst[n:], block)
	}
	return n
}

// fileLocked is the file that holds entry n, nil when there is none.
func (q *Queue) fileLocked(n int64) *file {
	if len(q.mu.files) == 0 || n < q.mu.files[0].base {
		return nil
	}
	i := (n - q.mu.files[0].base) / q.set.perFile
	if i >= int64(len(q.mu.files)) {
		return nil
	}
	return q.mu.files[i]
}

// readFile reads len(dst) entries, at most readBatch, that lie in f and are known to be written.
func (s *Set) readFile(f *file, from int64, dst []Entry) (int, error) {
	n, err := s.readSlots(f, from, dst)
	for i, e := range dst[:n] {
		if !e.valid() {
			at := (from + int64(i) - f.base) * EntrySize
			return i, &mq.CorruptionError{File: f.path, Offset: at, Err: fmt.Errorf("entry with position %d and size %d", e.Pos, e.Size)}
		}
	}
	return n, err
}

// readSlots reads len(dst) slots, at most readBatch, whatever they hold.
func (s *Set) readSlots(f *file, from int64, dst []Entry) (int, error) {
	h, err := s.handles.acquire(f)
	if err != nil {
		return 0, fmt.Errorf("read consume queue: %w", err)
	}
	defer s.handles.release(f)
	buf := readBuffers.Get().(*[readBatch * EntrySize]byte)
	defer readBuffers.Put(buf)
	b := buf[:len(dst)*EntrySize]
	if n, err := h.ReadAt(b, (from-f.base)*EntrySize); n < len(b) {
		if err == nil {
			err = errors.New("short read")
		}
		return 0, fmt.Errorf("read consume queue %s: %w", f.path, err)
	}
	for i := range dst {
		dst[i] = DecodeEntry(b[i*EntrySize:])
	}
	return len(dst), nil
}

// FindLog returns the number of the first entry whose record starts at or after
// pos, Max when there is none.
func (q *Queue) FindLog(pos mq.LogOffset) (mq.QueueOffset, error) {
	return q.find(func(e Entry) bool { return e.Pos >= pos })
}

// find returns the number of the first entry for which reached holds; reached
// must be false up to some entry and true from there on.
func (q *Queue) find(reached func(Entry) bool) (mq.QueueOffset, error) {
	lo, hi := q.min.Load(), q.max.Load()
	var failed error
	n := sort.Search(int(hi-lo), func(i int) bool {
		if failed != nil {
			return true
		}
		var one [1]Entry
		n, err := q.readSome(lo+int64(i), one[:])
		if err != nil {
			failed = err
		}
		return n == 1 && reached(one[0])
	})
	return mq.QueueOffset(lo + int64(n)), failed
}

// FindTime looks a message up by its store time as RocketMQ does. storeTime
// tells the time of an entry's record, false when the record is gone, which
// counts as older than all. Times do not decrease along a queue.
//
// The lower bound is the first entry not older than millis, Max when all are
// older. The upper bound is the last entry not younger than millis, 0 when all
// are younger.
func (q *Queue) FindTime(millis int64, upper bool, storeTime func(Entry) (int64, bool)) (mq.QueueOffset, error) {
	if !upper {
		return q.find(func(e Entry) bool {
			t, ok := storeTime(e)
			return ok && t >= millis
		})
	}
	lo := q.Min()
	n, err := q.find(func(e Entry) bool {
		t, ok := storeTime(e)
		return ok && t > millis
	})
	if err != nil || n <= lo {
		return 0, err
	}
	return n - 1, nil
}
