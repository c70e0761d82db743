package redeliver

import (
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// attempt is one failed try of one message: every try is a record of its own.
type attempt struct {
	group string
	at    mq.LogOffset
}

// settled is how long a send-back is remembered at least.
const settled = 10 * time.Second

// recent remembers send-backs for as long as a second one of the same attempt
// would only double what is under way: two clients with one id both get a
// message, both fail it, both send it back. The window ends when the retry is
// due; a consumer that was reset and fails the old record again after that is
// served anew. A dead letter is remembered for settled.
type recent struct {
	max int
	mu  struct {
		sync.Mutex
		calls map[attempt]*call
		order []*call // in the order of their start; ended ones are dropped from the front
	}
}

// call is one attempt's send-back. done is closed when err and until are set.
type call struct {
	attempt attempt
	done    chan struct{}
	err     error
	until   time.Time
}

func newRecent(max int) *recent {
	r := &recent{max: max}
	r.mu.calls = make(map[attempt]*call)
	return r
}

// once runs fn for an attempt that is not remembered and keeps the success for
// as long as fn says. Who comes meanwhile gets the same outcome, after it.
func (r *recent) once(a attempt, fn func() (time.Duration, error)) error {
	r.mu.Lock()
	if c := r.mu.calls[a]; c != nil && c.validLocked() {
		r.mu.Unlock()
		<-c.done
		return c.err
	}
	c := &call{attempt: a, done: make(chan struct{})}
	r.mu.calls[a] = c
	r.mu.order = append(r.mu.order, c)
	r.shrinkLocked()
	r.mu.Unlock()

	keep, err := fn()
	r.mu.Lock()
	c.err, c.until = err, time.Now().Add(keep)
	if err != nil && r.mu.calls[a] == c {
		delete(r.mu.calls, a)
	}
	close(c.done)
	r.mu.Unlock()
	return err
}

// validLocked: still under way, or remembered.
func (c *call) validLocked() bool {
	select {
	case <-c.done:
		return time.Now().Before(c.until)
	default:
		return true
	}
}

// shrinkLocked drops from the front what is over, and what is too much.
func (r *recent) shrinkLocked() {
	for len(r.mu.order) > 0 {
		c := r.mu.order[0]
		if len(r.mu.order) <= r.max && c.validLocked() {
			return
		}
		if r.mu.calls[c.attempt] == c {
			delete(r.mu.calls, c.attempt)
		}
		r.mu.order[0] = nil
		r.mu.order = r.mu.order[1:]
	}
}
