package timer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Item is something due at a point in time.
type Item struct {
	Due    int64          // epoch milliseconds
	Offset mq.QueueOffset // with Lane the name of the item
	Pos    mq.LogOffset   // for the caller
	Lane   int32
}

func (a Item) before(b Item) bool {
	return a.Due < b.Due || a.Due == b.Due && a.Offset < b.Offset
}

// Config bounds what a queue does at a time.
type Config struct {
	// Slice is how many items are handed over in one call at most, from 1.
	Slice int
	// Turn is how many items of one lane are taken before the next lane that has
	// due items gets its turn, from 1.
	Turn int
	// Stretch is how long the queue waits at most before it looks at the wall
	// clock again, from 1 ms. A clock that is set forward is noticed that late.
	Stretch time.Duration
}

// DefaultConfig is a slice of 128 items, a turn of 16, a look at the clock each second.
func DefaultConfig() Config { return Config{Slice: 128, Turn: 16, Stretch: time.Second} }

// Validate joins all complaints about c.
func (c Config) Validate() error {
	var errs []error
	if c.Slice < 1 {
		errs = append(errs, fmt.Errorf("slice is %d, want at least 1", c.Slice))
	}
	if c.Turn < 1 {
		errs = append(errs, fmt.Errorf("turn is %d, want at least 1", c.Turn))
	}
	if c.Stretch < time.Millisecond {
		errs = append(errs, fmt.Errorf("stretch is %v, want at least 1ms", c.Stretch))
	}
	return errors.Join(errs...)
}

// Queue is a set of items in order of time. Its methods are safe for concurrent use.
type Queue struct {
	cfg    Config
	waiter Waiter

	mu struct {
		sync.Mutex
		lanes   map[int32]*lane
		heads   laneHeap // lanes that have items, earliest head first
		due     []*lane  // lanes whose head is due, in the order of their turns
		len     int
		sleepTo int64 // the time Run sleeps to, MaxInt64 when it waits for an item, MinInt64 when it is awake
	}
}

// New returns an empty queue that sleeps with w.
func New(w Waiter, cfg Config) (*Queue, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("timer queue: %w", err)
	}
	q := &Queue{cfg: cfg, waiter: w}
	q.mu.lanes = map[int32]*lane{}
	q.mu.sleepTo = math.MinInt64
	return q, nil
}

// Now is the wall clock in milliseconds, as the queue sees it.
func (q *Queue) Now() int64 { return q.waiter.Now().UnixMilli() }

// Add adds items; one that is already due is handed over at once. The same item must not be in the queue twice.
func (q *Queue) Add(items ...Item) {
	q.mu.Lock()
	earliest := int64(math.MaxInt64)
	for _, it := range items {
		q.addLocked(it)
		earliest = min(earliest, it.Due)
	}
	wake := earliest < q.mu.sleepTo
	if wake {
		q.mu.sleepTo = math.MinInt64 // one wake-up is enough
	}
	q.mu.Unlock()
	if wake {
		q.waiter.Wake()
	}
}

func (q *Queue) addLocked(it Item) {
	l := q.mu.lanes[it.Lane]
	if l == nil {
		l = &lane{id: it.Lane, at: -1}
		q.mu.lanes[it.Lane] = l
	}
	l.push(it)
	q.mu.len++
	switch {
	case l.inTurn:
	case l.at < 0:
		q.mu.heads.add(l)
	default:
		q.mu.heads.fix(l)
	}
}

// Remove takes an item out and reports whether it was there. It looks at no more
// than the items of its lane that are due no later.
func (q *Queue) Remove(it Item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.mu.lanes[it.Lane]
	if l == nil || !l.remove(it) {
		return false
	}
	q.mu.len--
	if l.inTurn {
		return true // the next turn finds out
	}
	if len(l.items) == 0 {
		q.mu.heads.drop(l)
		delete(q.mu.lanes, l.id)
	} else {
		q.mu.heads.fix(l)
	}
	return true
}

// Len is how many items there are.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.len
}

// Next is when the earliest item is due, false when there is none.
func (q *Queue) Next() (due int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.nextLocked()
}

func (q *Queue) nextLocked() (due int64, ok bool) {
	due = math.MaxInt64
	for _, l := range q.mu.due {
		if len(l.items) > 0 {
			due, ok = min(due, l.items[0].Due), true
		}
	}
	if len(q.mu.heads) > 0 {
		due, ok = min(due, q.mu.heads[0].items[0].Due), true
	}
	return due, ok
}

// LaneNext is when the earliest item of a lane is due, false when there is none.
func (q *Queue) LaneNext(id int32) (due int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.mu.lanes[id]; l != nil && len(l.items) > 0 {
		return l.items[0].Due, true
	}
	return 0, false
}

// Run hands over what is due, until ctx is done. fire is called from one
// goroutine, with 1 to Config.Slice items that have left the queue; the slice is
// valid until fire returns. fire may add items.
func (q *Queue) Run(ctx context.Context, fire func(due []Item)) error {
	done, err := q.waiter.Start()
	if err != nil {
		return fmt.Errorf("run timer queue: %w", err)
	}
	defer done()
	stop := context.AfterFunc(ctx, q.waiter.Wake)
	defer stop()
	slice := make([]Item, 0, q.cfg.Slice)
	for ctx.Err() == nil {
		now := q.waiter.Now()
		var next int64
		slice, next = q.take(slice[:0], now.UnixMilli())
		if len(slice) > 0 {
			fire(slice)
			continue
		}
		wait := time.Duration(-1)
		if next < math.MaxInt64 {
			wait = q.cfg.Stretch
			if ms := next - now.UnixMilli(); ms <= int64(wait/time.Millisecond) {
				wait = min(wait, time.UnixMilli(next).Sub(now))
			}
		}
		q.waiter.Wait(wait)
		q.mu.Lock()
		q.mu.sleepTo = math.MinInt64
		q.mu.Unlock()
	}
	return nil
}

// take moves up to a slice of due items to dst, a turn of each lane after the
// other. When nothing is due it returns the time to sleep to and notes that Run
// sleeps.
func (q *Queue) take(dst []Item, now int64) (due []Item, next int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.mu.heads) > 0 && q.mu.heads[0].items[0].Due <= now {
		l := q.mu.heads[0]
		q.mu.heads.drop(l)
		l.inTurn = true
		q.mu.due = append(q.mu.due, l)
	}
	for len(dst) < cap(dst) && len(q.mu.due) > 0 {
		l := q.mu.due[0]
		n := min(q.cfg.Turn, cap(dst)-len(dst))
		for n > 0 && len(l.items) > 0 && l.items[0].Due <= now {
			dst = append(dst, l.pop())
			q.mu.len--
			n--
		}
		copy(q.mu.due, q.mu.due[1:])
		q.mu.due = q.mu.due[:len(q.mu.due)-1]
		switch {
		case len(l.items) == 0:
			delete(q.mu.lanes, l.id)
		case l.items[0].Due <= now:
			q.mu.due = append(q.mu.due, l)
		default:
			l.inTurn = false
			q.mu.heads.add(l)
		}
	}
	if len(dst) > 0 {
		return dst, 0
	}
	next = math.MaxInt64
	if len(q.mu.heads) > 0 {
		next = q.mu.heads[0].items[0].Due
	}
	q.mu.sleepTo = next
	return dst, next
}
