package consumequeue

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sundial-mq/sundial/internal/mq"
)

// blockLen is how many entries a block of the in-memory tail holds.
const blockLen = 256

// Queue is the index of one queue of one topic. Its methods are safe for
// concurrent use; Append must be called by one goroutine at a time to make sense.
type Queue struct {
	set *Set
	key mq.QueueKey
	dir string

	// Entries min..max-1 can be read. Written under mu, read without.
	min, max atomic.Int64

	// io is held by whoever writes, removes or syncs files; taken before mu.
	io sync.Mutex

	mu struct {
		sync.Mutex
		files   []*file   // on disk, oldest first, without gaps
		flushed int64     // entries below are in files; the rest is in blocks
		base    int64     // number of blocks[0][0]
		blocks  [][]Entry // all full but the last; an entry once there never changes
		end     mq.LogOffset
		blank   bool  // holds no entry, so the next may have any number from max on
		fresh   bool  // placed anew since anything was written
		suspect int64 // number of an entry that a power cut may have torn, -1 for none
		busy    bool  // on the set's list of queues with a tail
		gone    bool  // deleted
		broken  error // why what is in the files does not count, until Reset
	}

	// Guarded by io.
	dirty    []*file // written since the last sync
	newFiles bool    // files made since the last sync of the directory
	newDir   bool    // the directory itself is new
	removed  bool    // a file was removed since the last sync of the directory
}

func newQueue(s *Set, key mq.QueueKey) *Queue {
	q := &Queue{set: s, key: key, dir: filepath.Join(s.dir, key.Topic, strconv.Itoa(int(key.ID)))}
	q.mu.blank = true
	q.mu.suspect = -1
	return q
}

// Key names the queue.
func (q *Queue) Key() mq.QueueKey { return q.key }

// Min is the number of the oldest entry, equal to Max when there is none.
func (q *Queue) Min() mq.QueueOffset { return mq.QueueOffset(q.min.Load()) }

// Max is the number the next entry gets.
func (q *Queue) Max() mq.QueueOffset { return mq.QueueOffset(q.max.Load()) }

// End is the log position after the record of the last entry, 0 when none is known.
func (q *Queue) End() mq.LogOffset {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.end
}

// Broken is why the queue's files cannot be read, nil for almost all queues. It
// holds no entries then, and must be Reset before anything is appended.
func (q *Queue) Broken() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.broken
}

// Append adds the entry with number off, which must be Max. The first entry of
// a queue that holds none may have any number from Max on. The record must lie
// behind that of the entry before.
func (q *Queue) Append(off mq.QueueOffset, e Entry) error {
	if !e.valid() {
		return fmt.Errorf("append to consume queue %s/%d: entry %d has position %d and size %d", q.key.Topic, q.key.ID, off, e.Pos, e.Size)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.gone {
		return fmt.Errorf("append to consume queue %s/%d: %w: it was deleted", q.key.Topic, q.key.ID, mq.ErrNoTopic)
	}
	n := int64(off)
	next := q.max.Load()
	if n != next {
		if !q.mu.blank || n < next {
			return fmt.Errorf("append to consume queue %s/%d: entry has number %d, the next is %d", q.key.Topic, q.key.ID, n, next)
		}
		q.placeLocked(n)
	}
	if e.Pos < q.mu.end {
		return fmt.Errorf("append to consume queue %s/%d: entry %d has position %d inside or before the last record, which ends at %d", q.key.Topic, q.key.ID, n, e.Pos, q.mu.end)
	}
	q.mu.blank = false
	q.mu.end = e.End()
	last := len(q.mu.blocks) - 1
	if last < 0 || len(q.mu.blocks[last]) == blockLen {
		var block []Entry
		if last >= 0 { // a busy queue: no growing in steps
			block = make([]Entry, 0, blockLen)
		}
		q.mu.blocks = append(q.mu.blocks, block)
		last++
	}
	q.mu.blocks[last] = append(q.mu.blocks[last], e)
	q.max.Store(n + 1)
	if !q.mu.busy {
		q.mu.busy = true
		q.set.addBusy(q)
	}
	return nil
}

// Place makes n the number of the next entry of a queue that holds none: for a
// queue whose files are lost and whose messages have expired, and of which it
// is known how far it went. A lower n than Max changes nothing.
func (q *Queue) Place(n mq.QueueOffset) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.mu.blank {
		return fmt.Errorf("place consume queue %s/%d at %d: it holds entries", q.key.Topic, q.key.ID, n)
	}
	if int64(n) > q.max.Load() {
		q.placeLocked(int64(n))
	}
	return nil
}

// Confirm tells what entry off should be, as its record in the log says. It
// matters for the last entry that Open found: an entry that straddles two disk
// sectors may have lost its second part in a power cut, and looks whole all the
// same. Recovery confirms what it finds in the log above [Config.Covered]; for
// any other entry nothing happens.
func (q *Queue) Confirm(off mq.QueueOffset, e Entry) error {
	q.mu.Lock()
	suspect := q.mu.suspect == int64(off)
	if suspect {
		q.mu.suspect = -1
	}
	q.mu.Unlock()
	if !suspect || q.set.readOnly {
		return nil
	}
	if have, ok := q.Entry(off); ok && have == e {
		return nil
	}
	if err := q.Truncate(off); err != nil {
		return err
	}
	return q.Append(off, e)
}

// Suspect reports whether entry off is the one to confirm.
func (q *Queue) Suspect(off mq.QueueOffset) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.suspect == int64(off)
}

// placeLocked makes n the number of the next entry of a queue without entries.
func (q *Queue) placeLocked(n int64) {
	q.min.Store(n)
	q.max.Store(n)
	q.mu.flushed, q.mu.base, q.mu.blocks = n, n, nil
	q.mu.fresh = true
}

// firstOf is the number of the first entry in the file that holds entry n.
func (q *Queue) firstOf(n int64) int64 { return n - n%q.set.perFile }

func (q *Queue) path(base int64) string { return filepath.Join(q.dir, fileName(base*EntrySize)) }
