package txn

import (
	"cmp"
	"slices"

	"github.com/sundial-mq/sundial/internal/mq"
)

// abandoned is a transaction that was given up: a message in
// TRANS_CHECK_MAX_TIME_TOPIC, for as long as the log keeps it.
type abandoned struct {
	off     int64 // in that topic
	pos     mq.LogOffset
	half    int64 // what it was, -1 when not known
	decided int64 // ms, 0: by nobody yet
	state   State // StateGivenUp, or what became of it
	dirty   bool
}

// abandons is all of them, by offset.
type abandons struct {
	list   []abandoned
	byHalf map[int64]int64 // offset by that of the half; nobody decided yet
	open   int
	dirty  int
}

func (a *abandons) index(off int64) (int, bool) {
	return slices.BinarySearchFunc(a.list, off, func(x abandoned, off int64) int { return cmp.Compare(x.off, off) })
}

func (a *abandons) find(off int64) *abandoned {
	if i, ok := a.index(off); ok {
		return &a.list[i]
	}
	return nil
}

// put takes one in, or replaces what is known of it.
func (a *abandons) put(x abandoned) {
	i, ok := a.index(x.off)
	if !ok {
		a.list = slices.Insert(a.list, i, abandoned{state: StateCommitted})
	}
	was := &a.list[i]
	a.count(was, -1)
	if x.dirty && !was.dirty {
		a.dirty++
	}
	x.dirty = x.dirty || was.dirty
	*was = x
	a.count(was, 1)
}

func (a *abandons) count(x *abandoned, n int) {
	if x.state != StateGivenUp {
		return
	}
	a.open += n
	if x.half < 0 {
		return
	}
	if a.byHalf == nil {
		a.byHalf = map[int64]int64{}
	}
	if n > 0 {
		a.byHalf[x.half] = x.off
	} else {
		delete(a.byHalf, x.half)
	}
}

// forget drops those whose record is gone.
func (a *abandons) forget(below int64) {
	n := 0
	for n < len(a.list) && a.list[n].off < below {
		if a.list[n].dirty {
			a.dirty--
		}
		a.count(&a.list[n], -1)
		n++
	}
	a.list = slices.Delete(a.list, 0, n)
}

func (a *abandons) settled() {
	if a.dirty == 0 {
		return
	}
	for i := range a.list {
		a.list[i].dirty = false
	}
	a.dirty = 0
}
