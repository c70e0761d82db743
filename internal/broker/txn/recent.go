package txn

import (
	"github.com/sundial-mq/sundial/internal/mq"
)

// recents remembers how the latest halves ended, so that a second verdict is
// answered without a search. What it has forgotten is found in the log.
type recents struct {
	ended map[int64]ended
	order []int64 // a ring
	next  int
}

// ended is the end of a half.
type ended struct {
	pos   mq.LogOffset
	state State // StateCommitted, StateRolledBack, StateGivenUp; or StateResumed: it is another half now
	to    int64 // that half, or the offset of the one given up
}

// copied is the state of a half that RocketMQ has stored again, without a mark: a
// mark of it ends the copy.
const copied State = 0x80

// maxRecent bounds the memory: some 5 MB.
const maxRecent = 1 << 16

func (r *recents) add(off int64, e ended) {
	if r.ended == nil {
		r.ended = map[int64]ended{}
	}
	if _, again := r.ended[off]; !again {
		if len(r.order) < maxRecent {
			r.order = append(r.order, off)
		} else {
			delete(r.ended, r.order[r.next])
			r.order[r.next] = off
			r.next = (r.next + 1) % maxRecent
		}
	}
	r.ended[off] = e
}

func (r *recents) get(off int64) (ended, bool) {
	e, ok := r.ended[off]
	return e, ok
}
