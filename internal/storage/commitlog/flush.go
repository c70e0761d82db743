package commitlog

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Flush makes durable all that is appended when it is called. After a failure
// the log takes no more appends.
func (l *Log) Flush() error {
	l.flush <- struct{}{}
	defer func() { <-l.flush }()
	if err := l.Err(); err != nil {
		return err
	}
	from := l.durable.Load()
	mark := l.here()
	to := int64(mark.End)
	if from < to {
		began := time.Now()
		defer func() {
			l.flushes.Add(1)
			l.flushing.Add(int64(time.Since(began)))
		}()
	}
	for from < to {
		f := l.run.Acquire(from)
		if f == nil {
			return l.lost(from, fmt.Errorf("no file holds position %d", from))
		}
		err := f.Sync()
		end := min(f.End(), to)
		if err == nil && end == f.End() {
			// No more is written here. Stores through a mapping move the time on
			// some systems only, and retention goes by it.
			if err = f.SetModTime(time.Now()); err == nil {
				err = f.Rest()
			}
		}
		f.Release()
		if err != nil {
			return l.lost(from, err)
		}
		from = end
	}
	if l.cfg.OnDurable != nil {
		l.cfg.OnDurable(mq.LogOffset(to))
	}
	l.mark.Store(&mark)
	l.durable.Store(to)
	l.waits.settle(mq.LogOffset(to), nil)
	return nil
}

// Flushes is how many flushes found something to do since the log was opened,
// and how long they took together.
func (l *Log) Flushes() (n int64, took time.Duration) {
	return l.flushes.Load(), time.Duration(l.flushing.Load())
}

// Mark is a position in the log and the last record before it, by which it can
// be recognised later.
type Mark struct {
	End       mq.LogOffset
	Last      mq.LogOffset // start of the last record, -1 when there is none
	StoreTime int64        // of that record, ms
}

// here marks the end of the log. Everything before it has been told to its queue.
func (l *Log) here() Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Mark{End: l.End(), Last: l.mu.last, StoreTime: l.mu.lastTime}
}

// DurableMark marks the durable position.
func (l *Log) DurableMark() Mark { return *l.mark.Load() }

// lost is the end of a log whose flush failed at from.
func (l *Log) lost(from int64, err error) error {
	err = l.fail(fmt.Errorf("%w: the commit log could not be made durable from %d on (%w): no more messages are accepted until the broker is started again", mq.ErrUnavailable, from, err))
	l.waits.settle(l.Durable(), err)
	return err
}

// WhenDurable calls fn once: with nil when everything below end is durable,
// which may be before WhenDurable returns; with [mq.ErrFlushTimeout] when that
// took longer than timeout; with the cause when it cannot be any more.
func (l *Log) WhenDurable(end mq.LogOffset, timeout time.Duration, fn func(error)) {
	if end <= l.Durable() {
		fn(nil)
		return
	}
	l.waits.add(waiter{end: end, deadline: time.Now().Add(timeout), timeout: timeout, fn: fn})
	// The flush, or the failure, may have come between the look and the add.
	if d, err := l.Durable(), l.Err(); end <= d || err != nil {
		l.waits.settle(d, err)
		return
	}
	l.Kick()
}

// Kick asks for a flush soon.
func (l *Log) Kick() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// gather lets those who were told by the last flush, and at once append again,
// come along with the first of them. Otherwise every other flush would be for
// one or two. Whoever is alone waits for nobody.
func (l *Log) gather() {
	for range 8 {
		before := l.end.Load()
		runtime.Gosched()
		if l.end.Load() == before {
			return
		}
	}
}

// flushLoop flushes when asked, or at the interval, until ctx is done.
func (l *Log) flushLoop(ctx context.Context) error {
	tick := time.NewTicker(l.cfg.FlushInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return l.Flush()
		case <-l.kick:
			l.gather()
		case <-tick.C:
		}
		if l.Err() == nil {
			_ = l.Flush() // the failure stands in Err, and whoever waits hears it
		}
	}
}
