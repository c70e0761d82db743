package produce

import "github.com/sundial-mq/sundial/internal/mq"

// Flow accepts messages. Its methods are safe for concurrent use.
type Flow struct{}

// Accept stores what req asks for and calls done exactly once: before it
// returns, or, when the store flushes synchronously, from another goroutine once
// the messages are durable. It never waits itself, so that the reader of a
// connection may call it and messages of one connection keep their order.
func (f *Flow) Accept(req *Request, done func(Result, error)) {
	done(Result{}, mq.ErrUnavailable)
}
