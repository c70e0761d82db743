package delay

import (
	"math"
	"sync"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
	"github.com/sundial-mq/sundial/internal/storage/pending"
)

// timedPin knows from where on timed messages need the log: from the record of the
// oldest one that is pending.
//
// It goes along the queue and past what is done. What makes a message done may
// yet be lost with the power; so a step counts only once the log is durable up to
// the last delivery or recall that was known when it was made.
type timedPin struct {
	sync.Mutex
	sure mq.QueueOffset // all below are done, durably
	next mq.QueueOffset // all below are done
	by   mq.LogOffset   // and durably so when the log is durable up to here
}

// pinStep bounds how far one look goes.
const pinStep = 256 << 10

// pinTimed is the lowest log position that timed messages need.
func (f *Flow) pinTimed() mq.LogOffset {
	t := f.timed
	p := &t.pin
	p.Lock()
	defer p.Unlock()
	lowest := f.store.MinOffset(timedQueue)
	p.sure = max(p.sure, lowest)
	if f.store.Durable() >= p.by {
		p.sure = max(p.sure, p.next)
		next, ok := f.passDone(p.sure)
		if !ok {
			return 0 // better keep everything than lose it
		}
		p.next, p.by = next, f.lastPut()
		if f.store.Durable() >= p.by {
			p.sure = next
		}
	}
	if p.sure >= f.store.MaxOffset(timedQueue) {
		return math.MaxInt64
	}
	var one [1]consumequeue.Entry
	if n, _ := f.store.Entries(timedQueue, p.sure, one[:]); n == 0 {
		return 0
	}
	// A start may have to fall back to the checkpoint before the last, and reads
	// receipts from there on.
	return min(one[0].Pos, t.index.Oldest())
}

// lastPut is where the last delivery or recall ends. A deliverer holds put until
// the index knows it.
func (f *Flow) lastPut() mq.LogOffset {
	f.put.Lock()
	defer f.put.Unlock()
	return f.put.last
}

// passDone returns the first message at or above from that is not done, or where
// it stopped looking.
func (f *Flow) passDone(from mq.QueueOffset) (mq.QueueOffset, bool) {
	if f.timed.index.Stats().Damaged != nil {
		return 0, false // what cannot be read of the index counts as done in it
	}
	entries := make([]consumequeue.Entry, 1024)
	for start := from; from < start+pinStep && from < f.timed.index.Next(); {
		n, err := f.store.Entries(timedQueue, from, entries)
		if err != nil {
			return 0, false
		}
		if n == 0 {
			break
		}
		for _, e := range entries[:n] {
			done, err := f.isDone(from, e.Pos)
			if err != nil {
				return 0, false
			}
			if !done || from >= f.timed.index.Next() {
				return from, true
			}
			from++
		}
	}
	return from, true
}

// isDone reports whether nobody waits for the record of the timer topic at a position.
func (f *Flow) isDone(seq mq.QueueOffset, at mq.LogOffset) (bool, error) {
	v, release, err := f.store.Record(at)
	if err != nil {
		return false, err
	}
	defer release()
	if at+mq.LogOffset(len(v)) > f.store.Durable() {
		return false, nil
	}
	if _, recall := v.Property(mq.PropTimerDeleteKey); recall {
		return true, nil
	}
	due, ok := f.timed.dueOf(v)
	if !ok {
		return true, nil // it was set aside
	}
	standing, err := f.timed.index.Standing(due, seq)
	return err == nil && standing != pending.Waiting, err
}
