package commitlog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// waitList is who waits for a position to become durable.
type waitList struct {
	mu struct {
		sync.Mutex
		list   []waiter
		spare  []waiter // the list before the last settle, empty, for its memory
		asleep bool     // watch waits for the first waiter, without a timer
	}
	wake chan struct{}
}

type waiter struct {
	end      mq.LogOffset
	deadline time.Time
	timeout  time.Duration
	fn       func(error)
}

func (w *waitList) init() { w.wake = make(chan struct{}, 1) }

func (w *waitList) add(x waiter) {
	w.mu.Lock()
	w.mu.list = append(w.mu.list, x)
	wake := w.mu.asleep
	w.mu.asleep = false
	w.mu.Unlock()
	if wake {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// settle tells those whose position is below durable, or all when err is set.
func (w *waitList) settle(durable mq.LogOffset, err error) {
	w.take(func(x waiter) (error, bool) {
		if x.end <= durable {
			return nil, true
		}
		return err, err != nil
	})
}

// take calls and removes the waiters that pick chooses. They are called in the
// order in which they came and without the lock.
func (w *waitList) take(pick func(waiter) (error, bool)) {
	type call struct {
		fn  func(error)
		err error
	}
	var calls []call
	w.mu.Lock()
	if len(w.mu.list) == 0 {
		w.mu.Unlock()
		return
	}
	keep := w.mu.spare[:0]
	for _, x := range w.mu.list {
		if err, ok := pick(x); ok {
			calls = append(calls, call{x.fn, err})
		} else {
			keep = append(keep, x)
		}
	}
	clear(w.mu.list)
	w.mu.list, w.mu.spare = keep, w.mu.list[:0]
	w.mu.Unlock()
	for _, c := range calls {
		c.fn(c.err)
	}
}

// watch tells those whose time is over. While there is traffic it looks once per
// time-out, not once per waiter.
func (w *waitList) watch(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := time.Now()
		w.take(func(x waiter) (error, bool) {
			if now.Before(x.deadline) {
				return nil, false
			}
			return fmt.Errorf("%w: not on disk after %v (syncFlushTimeout)", mq.ErrFlushTimeout, x.timeout), true
		})
		w.mu.Lock()
		w.mu.asleep = len(w.mu.list) == 0
		next := time.Hour
		for _, x := range w.mu.list {
			next = min(next, time.Until(x.deadline))
		}
		w.mu.Unlock()
		timer.Reset(max(next, time.Millisecond))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.wake:
		}
	}
}
