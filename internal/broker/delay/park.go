package delay

import (
	"container/heap"
	"context"
	"errors"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// destination is a queue that did not take a message. What is due for it waits
// here, in order, while everything else goes on. Guarded by Flow.mu.
//
// Records that cannot be read wait in a destination without topic.
type destination struct {
	key   mq.QueueKey
	items []parkedItem
	since time.Time
	pause time.Duration
	next  time.Time // of the next try
	at    int       // index in the heap, -1 while being tried
	err   error     // of the last try
}

type parkedItem struct {
	from  origin
	off   int64
	pos   mq.LogOffset
	tries int
}

// retryHeap orders destinations by their next try.
type retryHeap []*destination

func (h retryHeap) Len() int           { return len(h) }
func (h retryHeap) Less(i, j int) bool { return h[i].next.Before(h[j].next) }
func (h retryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *retryHeap) Push(x any) {
	d := x.(*destination)
	d.at = len(*h)
	*h = append(*h, d)
}

func (h *retryHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	d.at = -1
	return d
}

func (f *Flow) isParked(key mq.QueueKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.parked[key] != nil
}

// parkLocked keeps a message for its destination, and reports whether that took
// messages until now.
func (f *Flow) parkLocked(o *outcome) (first bool) {
	f.mu.parkedItems++
	o.from.tallied().parked++
	d := f.mu.parked[o.dest]
	if d == nil {
		d = &destination{key: o.dest, since: time.Now(), err: o.err}
		f.mu.parked[o.dest] = d
		f.parkedDestinations.Add(1)
		f.postpone(d, o)
		first = true
	}
	d.items = append(d.items, parkedItem{from: o.from, off: o.off, pos: o.pos})
	return first
}

// postpone sets the next try of a destination after what came of one; mu is held.
func (f *Flow) postpone(d *destination, o *outcome) {
	err := o.err
	d.pause = min(max(2*d.pause, f.cfg.FirstPause), f.cfg.LastPause)
	if o.wait > 0 {
		d.pause = 0
	} else if errors.Is(err, mq.ErrUnavailable) || errors.Is(err, mq.ErrBusy) {
		// Not this destination's fault: look soon whether the store is back.
		d.pause = min(d.pause, f.cfg.OutagePause)
	}
	d.err = err
	d.next = time.Now().Add(max(d.pause, o.wait))
	heap.Push(&f.mu.retries, d)
	if d.at == 0 {
		select {
		case f.retryWake <- struct{}{}:
		default:
		}
	}
}

// retryParked tries parked destinations until ctx is done.
func (f *Flow) retryParked(ctx context.Context) {
	h := &hands{}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait := time.Hour
		f.mu.Lock()
		if len(f.mu.retries) > 0 {
			wait = time.Until(f.mu.retries[0].next)
		}
		var d *destination
		if wait <= 0 {
			d = heap.Pop(&f.mu.retries).(*destination)
		}
		f.mu.Unlock()
		if d != nil {
			f.retry(ctx, h, d)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-f.retryWake:
		case <-timer.C:
		}
	}
}

// retry puts what waits for d, until that fails again or nothing is left.
func (f *Flow) retry(ctx context.Context, h *hands, d *destination) {
	for n := 0; ctx.Err() == nil; n++ {
		f.mu.Lock()
		if len(d.items) == 0 {
			delete(f.mu.parked, d.key)
			f.parkedDestinations.Add(-1)
			nudge := f.waitingLocked()
			f.mu.Unlock()
			if !errors.Is(d.err, errThrottled) {
				f.note.Info("a destination takes messages again", "topic", d.key.Topic, "queue", d.key.ID, "after", time.Since(d.since))
			}
			for _, s := range nudge {
				f.nudge(s)
			}
			return
		}
		it := &d.items[0]
		it.tries++
		tries := it.tries
		o := outcome{from: it.from, off: it.off, pos: it.pos}
		f.mu.Unlock()

		f.deliver(h, &o)
		if o.kind == parked && o.dest.Topic == "" && tries >= readTries {
			f.giveUp(&o, o.err)
		}
		now := f.timer.Now()
		f.mu.Lock()
		switch o.kind {
		case delivered, lost:
			f.finalLocked(&o, now)
		case gone:
		default:
			// Early: the clock was set back since it was parked. The next try is as good a time as any.
			if o.kind == early {
				o.err = d.err
			}
			f.postpone(d, &o)
			f.mu.Unlock()
			return
		}
		d.pause = 0
		d.items = d.items[1:]
		f.mu.parkedItems--
		o.from.tallied().parked--
		full := f.mu.parkedItems == f.cfg.MaxParked-1
		var nudge []*stream
		if full {
			nudge = f.waitingLocked()
		}
		f.mu.Unlock()
		f.tell(&o)
		for _, s := range nudge {
			f.nudge(s)
		}
	}
}

// waitingLocked returns the streams that could be read ahead.
func (f *Flow) waitingLocked() []*stream {
	var list []*stream
	for _, s := range f.mu.streams {
		if len(s.unread) > 0 {
			list = append(list, s)
		}
	}
	return list
}
