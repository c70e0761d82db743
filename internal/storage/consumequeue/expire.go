package consumequeue

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sundial-mq/sundial/internal/mq"
)

// RaiseMin moves Min up to the first entry whose record starts at or after
// minLog, where the log now begins, and deletes the files all of whose entries
// lie below it; the last file stays.
func (q *Queue) RaiseMin(minLog mq.LogOffset) error {
	if q.set.readOnly {
		return q.raise(minLog)
	}
	q.io.Lock()
	defer q.io.Unlock()
	if err := q.raise(minLog); err != nil {
		return err
	}
	q.mu.Lock()
	n := 0
	for n < len(q.mu.files)-1 && q.mu.files[n+1].base <= q.min.Load() {
		n++
	}
	q.mu.Unlock()
	if n == 0 {
		return nil
	}
	if err := q.removeFiles(n); err != nil {
		return fmt.Errorf("expire consume queue %s/%d: %w", q.key.Topic, q.key.ID, err)
	}
	return nil
}

func (q *Queue) raise(minLog mq.LogOffset) error {
	if e, ok := q.Entry(q.Min()); ok && e.Pos >= minLog || q.Min() == q.Max() {
		return nil
	}
	n, err := q.FindLog(minLog)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if int64(n) > q.min.Load() {
		q.min.Store(min(int64(n), q.max.Load()))
	}
	return nil
}

// removeFiles removes the n oldest files, oldest first and each for good before
// the next, so that no crash leaves a gap. What could not be removed stays.
func (q *Queue) removeFiles(n int) error {
	for ; n > 0; n-- {
		if err := q.syncRemoved(); err != nil {
			return err
		}
		q.mu.Lock()
		f := q.mu.files[0]
		q.mu.files = q.mu.files[1:]
		q.mu.Unlock()
		if err := q.remove(f); err != nil {
			q.mu.Lock()
			q.mu.files = append([]*file{{path: f.path, base: f.base}}, q.mu.files...)
			q.mu.Unlock()
			return err
		}
	}
	return q.syncRemoved()
}

// remove removes a file that is not on the list any more.
func (q *Queue) remove(f *file) error {
	for i, d := range q.dirty {
		if d == f {
			q.dirty = append(q.dirty[:i], q.dirty[i+1:]...)
			break
		}
	}
	q.set.handles.drop(f)
	if err := q.set.fs.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	q.removed = true
	return nil
}

// syncRemoved makes durable that a file was removed.
func (q *Queue) syncRemoved() error {
	if !q.removed {
		return nil
	}
	if err := q.set.fs.SyncDir(q.dir); err != nil {
		return err
	}
	q.removed = false
	return nil
}

// TruncateAt drops the entries whose records do not end at or below logEnd,
// where the log was cut. It is for recovery, before the queue serves anybody.
func (q *Queue) TruncateAt(logEnd mq.LogOffset) error {
	if q.End() <= logEnd {
		return nil
	}
	n, err := q.find(func(e Entry) bool { return e.End() > logEnd })
	if err != nil {
		return err
	}
	return q.Truncate(n)
}

// Truncate drops the entries with number off and above. What follows in the
// file is zeroed for good, so that it is never taken for entries again. It is
// for recovery, before the queue serves anybody.
func (q *Queue) Truncate(off mq.QueueOffset) error {
	if q.set.readOnly {
		return errReadOnly
	}
	q.io.Lock()
	defer q.io.Unlock()
	if err := q.truncateIO(int64(off)); err != nil {
		return fmt.Errorf("truncate consume queue %s/%d at entry %d: %w", q.key.Topic, q.key.ID, off, err)
	}
	return nil
}

func (q *Queue) truncateIO(n int64) error {
	if n < 0 {
		n = 0
	}
	if n >= q.max.Load() {
		return nil
	}
	var end mq.LogOffset
	if n > q.min.Load() {
		var one [1]Entry
		if got, err := q.readSome(n-1, one[:]); err != nil {
			return err
		} else if got == 1 {
			end = one[0].End()
		}
	}
	q.mu.Lock()
	q.max.Store(n)
	if q.min.Load() > n {
		q.min.Store(n)
	}
	q.mu.end = end
	inFiles := n < q.mu.flushed
	if inFiles {
		q.mu.flushed, q.mu.base, q.mu.blocks = n, n, nil
	} else {
		keep := n - q.mu.base
		blocks := append([][]Entry(nil), q.mu.blocks[:(keep+blockLen-1)/blockLen]...)
		if rest := keep % blockLen; rest > 0 {
			last := len(blocks) - 1
			blocks[last] = append([]Entry(nil), blocks[last][:rest]...)
		}
		q.mu.blocks = blocks
	}
	q.mu.Unlock()
	if !inFiles {
		return nil
	}
	for {
		q.mu.Lock()
		i := len(q.mu.files) - 1
		if i < 0 || q.mu.files[i].base <= n {
			q.mu.Unlock()
			break
		}
		f := q.mu.files[i]
		q.mu.files = q.mu.files[:i]
		q.mu.Unlock()
		err := q.remove(f)
		if err == nil {
			err = q.syncRemoved()
		}
		if err != nil {
			return err
		}
	}
	q.mu.Lock()
	f := q.fileLocked(n)
	q.mu.Unlock()
	if f == nil {
		return nil
	}
	return q.zeroFrom(f, n)
}

// zeroFrom makes the slots of f from n on zero, and that durable. It writes only
// where something else stands, because the file is full of holes that must not
// take room.
func (q *Queue) zeroFrom(f *file, n int64) error {
	h, err := q.set.handles.acquire(f)
	if err != nil {
		return err
	}
	defer q.set.handles.release(f)
	const chunk = 64 << 10
	got, zeros := make([]byte, chunk), make([]byte, chunk)
	size := q.set.perFile * EntrySize
	for at := (n - f.base) * EntrySize; at < size; at += chunk {
		got = got[:min(chunk, size-at)]
		if k, err := h.ReadAt(got, at); k < len(got) {
			return err
		}
		if bytes.Equal(got, zeros[:len(got)]) {
			continue
		}
		if _, err := h.WriteAt(zeros[:len(got)], at); err != nil {
			return err
		}
	}
	return h.Sync()
}

// Reset removes all files and entries. The next entry may have any number.
func (q *Queue) Reset() error {
	if q.set.readOnly {
		return errReadOnly
	}
	q.io.Lock()
	defer q.io.Unlock()
	q.mu.Lock()
	n := len(q.mu.files)
	q.placeLocked(0)
	q.mu.end, q.mu.blank, q.mu.broken = 0, true, nil
	q.mu.Unlock()
	if err := q.removeFiles(n); err != nil {
		return fmt.Errorf("reset consume queue %s/%d: %w", q.key.Topic, q.key.ID, err)
	}
	return nil
}
