package fetch

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/filter"
	"github.com/sundial-mq/sundial/internal/mq"
)

// parked is a pull that waits for news. It is in the lot (all three places
// are set), then on its way to a worker, and never in the lot again.
type parked struct {
	req      *Request
	done     func(Result, error)
	match    *filter.Filter
	key      mq.QueueKey
	deadline time.Time

	inQueue, inDue, inConn int // its index in each of the lot's three orders
}

// lot holds the parked pulls in three orders: by queue, for arrivals; by
// deadline, for time-outs; by connection, for clients that went away. A pull
// that leaves the lot is woken exactly once, because leaving happens under the
// lock and only who takes it out may hand it on.
//
// Arrivals find an empty lot without a lock. That is right because a pull is
// counted before it looks at the end of its queue for the last time, and a
// message is visible before its arrival is told: one of the two sees the other.
type lot struct {
	maxAll, maxQueue int
	count            atomic.Int64

	mu struct {
		sync.Mutex
		queues map[mq.QueueKey][]*parked
		conns  map[any][]*parked
		due    dueHeap
		timer  *time.Timer // fires at due[0].deadline; nil before the first pull
		ready  []*parked   // woken, oldest first
		closed bool
	}
	news *sync.Cond // of mu: ready or closed changed
}

func newLot(maxAll, maxQueue int) *lot {
	l := &lot{maxAll: maxAll, maxQueue: maxQueue}
	l.mu.queues = make(map[mq.QueueKey][]*parked)
	l.mu.conns = make(map[any][]*parked)
	l.news = sync.NewCond(&l.mu)
	return l
}

// park puts p into the lot. The error says which bound is reached.
func (l *lot) park(p *parked) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	inQueue := l.mu.queues[p.key]
	switch {
	case l.mu.closed:
		return fmt.Errorf("%w: the broker is shutting down", mq.ErrUnavailable)
	case len(l.mu.due) >= l.maxAll:
		return fmt.Errorf("%w: %d pulls are waiting for messages on this broker, the limit is %d", mq.ErrBusy, len(l.mu.due), l.maxAll)
	case len(inQueue) >= l.maxQueue:
		return fmt.Errorf("%w: %d pulls are waiting for messages of topic %s queue %d, the limit is %d",
			mq.ErrBusy, len(inQueue), p.key.Topic, p.key.ID, l.maxQueue)
	}
	p.inQueue = len(inQueue)
	l.mu.queues[p.key] = append(inQueue, p)
	p.inConn = len(l.mu.conns[p.req.Conn])
	l.mu.conns[p.req.Conn] = append(l.mu.conns[p.req.Conn], p)
	heap.Push(&l.mu.due, p)
	l.count.Store(int64(len(l.mu.due)))
	if p.inDue == 0 {
		l.setTimerLocked()
	}
	return nil
}

// arrived wakes the pulls of a queue that a message at off with this tags code
// may satisfy.
func (l *lot) arrived(key mq.QueueKey, off mq.QueueOffset, tagsCode int64) {
	if l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	woken := 0
	// wakeLocked moves the last pull into the place of the one that left.
	for i := 0; i < len(l.mu.queues[key]); {
		p := l.mu.queues[key][i]
		if off < p.req.Offset || !p.match.MatchCode(tagsCode) {
			i++
			continue
		}
		l.wakeLocked(p)
		woken++
	}
	l.tellLocked(woken)
}

// wakeQueue wakes all pulls of a queue.
func (l *lot) wakeQueue(key mq.QueueKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	woken := len(l.mu.queues[key])
	for len(l.mu.queues[key]) > 0 {
		l.wakeLocked(l.mu.queues[key][0])
	}
	l.tellLocked(woken)
}

// wake takes p out of the lot for another look, unless somebody else did.
func (l *lot) wake(p *parked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.inDue >= 0 {
		l.wakeLocked(p)
		l.tellLocked(1)
	}
}

// timeout wakes all whose time is over. The timer calls it.
func (l *lot) timeout() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, woken := time.Now(), 0
	for len(l.mu.due) > 0 && !l.mu.due[0].deadline.After(now) {
		l.wakeLocked(l.mu.due[0])
		woken++
	}
	l.tellLocked(woken)
	l.setTimerLocked()
}

// forget drops what a connection has parked.
func (l *lot) forget(conn any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.mu.conns[conn]) > 0 {
		l.takeLocked(l.mu.conns[conn][0])
	}
}

// next waits for a woken pull; nil when the lot is closed and empty.
func (l *lot) next() *parked {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.mu.ready) == 0 {
		if l.mu.closed {
			return nil
		}
		l.news.Wait()
	}
	p := l.mu.ready[0]
	l.mu.ready[0] = nil
	l.mu.ready = l.mu.ready[1:]
	if len(l.mu.ready) == 0 && cap(l.mu.ready) > 1024 {
		l.mu.ready = nil
	}
	return p
}

// close wakes everything and lets nothing in again.
func (l *lot) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.closed = true
	for len(l.mu.due) > 0 {
		l.wakeLocked(l.mu.due[0])
	}
	if l.mu.timer != nil {
		l.mu.timer.Stop()
	}
	l.news.Broadcast()
}

// closeWhenDone closes the lot when ctx is done; call the result to undo it.
func (l *lot) closeWhenDone(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, l.close)
}

func (l *lot) wakeLocked(p *parked) {
	l.takeLocked(p)
	l.mu.ready = append(l.mu.ready, p)
}

func (l *lot) tellLocked(woken int) {
	switch {
	case woken == 1:
		l.news.Signal()
	case woken > 1:
		l.news.Broadcast()
	}
}

// takeLocked removes p from all three orders.
func (l *lot) takeLocked(p *parked) {
	heap.Remove(&l.mu.due, p.inDue)
	l.count.Store(int64(len(l.mu.due)))

	q := l.mu.queues[p.key]
	last := len(q) - 1
	q[p.inQueue], q[last].inQueue = q[last], p.inQueue
	q[last] = nil
	if last == 0 {
		delete(l.mu.queues, p.key)
	} else {
		l.mu.queues[p.key] = q[:last]
	}

	c := l.mu.conns[p.req.Conn]
	last = len(c) - 1
	c[p.inConn], c[last].inConn = c[last], p.inConn
	c[last] = nil
	if last == 0 {
		delete(l.mu.conns, p.req.Conn)
	} else {
		l.mu.conns[p.req.Conn] = c[:last]
	}
	p.inQueue, p.inConn = -1, -1
}

// setTimerLocked points the timer at the first deadline. It is not set back
// when that pull leaves early: then it fires once for nothing and sets itself
// right.
func (l *lot) setTimerLocked() {
	if len(l.mu.due) == 0 || l.mu.closed {
		return
	}
	wait := time.Until(l.mu.due[0].deadline)
	if l.mu.timer == nil {
		l.mu.timer = time.AfterFunc(wait, l.timeout)
		return
	}
	l.mu.timer.Reset(wait)
}

// dueHeap orders parked pulls by deadline.
type dueHeap []*parked

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].deadline.Before(h[j].deadline) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].inDue, h[j].inDue = i, j
}

func (h *dueHeap) Push(x any) {
	p := x.(*parked)
	p.inDue = len(*h)
	*h = append(*h, p)
}

func (h *dueHeap) Pop() any {
	old := *h
	last := len(old) - 1
	p := old[last]
	old[last] = nil
	*h = old[:last]
	p.inDue = -1
	return p
}
