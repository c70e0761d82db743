package fetch

import (
	"context"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Flow serves pulls. Its methods are safe for concurrent use.
type Flow struct{}

// Pull looks once and calls done before it returns, or parks the request and
// calls done exactly once later, from a goroutine of Run. It may read from the
// disk: call it where waiting is allowed. Chunks are handed to done together
// with the duty to call Release.
func (f *Flow) Pull(req *Request, done func(Result, error)) {
	done(Result{}, mq.ErrUnavailable)
}

// Arrived wakes the pulls that are parked on a queue and may want the message
// at off. The store calls it for every message that became visible; it does not
// block.
func (f *Flow) Arrived(key mq.QueueKey, off mq.QueueOffset, tagsCode int64) {}

// Forget drops what a closed connection has parked, without calling done.
func (f *Flow) Forget(conn uint64) {}

// Run serves woken and timed-out pulls until ctx is done; then it answers those
// still parked with NoNew.
func (f *Flow) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
