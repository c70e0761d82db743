package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// MaxCalls bounds the calls to one client that wait for its answer.
const MaxCalls = 256

// calls are requests of ours to the client. Their opaque numbers have nothing
// to do with those of the client's requests: an answer is known by its flag.
type calls struct {
	sync.Mutex
	last   int32
	closed bool
	wait   map[int32]chan *remoting.Command
}

var errClosed = errors.New("the connection is closed")

// Call asks the client and waits for its answer until ctx is done. The opaque
// number of cmd is chosen here. The error wraps [mq.ErrClientTimeout] when the
// answer did not come in time, and [mq.ErrConsumerOffline] when the connection
// is closed.
func (c *Conn) Call(ctx context.Context, cmd *remoting.Command) (*remoting.Command, error) {
	answer := make(chan *remoting.Command, 1)
	k := &c.calls
	k.Lock()
	if k.closed {
		k.Unlock()
		return nil, fmt.Errorf("call client %s: %w (%w)", c, mq.ErrConsumerOffline, errClosed)
	}
	if len(k.wait) >= MaxCalls {
		n := len(k.wait)
		k.Unlock()
		return nil, fmt.Errorf("call client %s: %w: %d calls wait for its answer (limit %d)", c, mq.ErrBusy, n, MaxCalls)
	}
	k.last++
	opaque := k.last
	if k.wait == nil {
		k.wait = make(map[int32]chan *remoting.Command)
	}
	k.wait[opaque] = answer
	k.Unlock()

	cmd.Opaque = opaque
	cmd.Flag &^= remoting.FlagResponse | remoting.FlagOneway
	c.post(cmd)
	select {
	case resp := <-answer:
		if resp == nil {
			return nil, fmt.Errorf("call client %s: %w (%w)", c, mq.ErrConsumerOffline, errClosed)
		}
		return resp, nil
	case <-ctx.Done():
		k.Lock()
		delete(k.wait, opaque)
		k.Unlock()
		return nil, fmt.Errorf("call client %s, code %d: %w: %w", c, cmd.Code, mq.ErrClientTimeout, context.Cause(ctx))
	}
}

// Oneway tells the client something it does not answer. It never waits: to a
// client that does not read what it was sent before, it is refused with
// [mq.ErrBusy].
func (c *Conn) Oneway(cmd *remoting.Command) error {
	c.out.Lock()
	closed, waiting := c.out.closed, c.out.bytes
	c.out.Unlock()
	if closed {
		return fmt.Errorf("tell client %s: %w (%w)", c, mq.ErrConsumerOffline, errClosed)
	}
	if waiting > c.srv.cfg.HighWater {
		return fmt.Errorf("tell client %s: %w: %d bytes wait to be written to it", c, mq.ErrBusy, waiting)
	}
	c.calls.Lock()
	c.calls.last++
	cmd.Opaque = c.calls.last
	c.calls.Unlock()
	cmd.Flag = cmd.Flag&^remoting.FlagResponse | remoting.FlagOneway
	c.post(cmd)
	return nil
}

// answered hands an answer of the client to whoever waits for it.
func (c *Conn) answered(resp *remoting.Command) {
	k := &c.calls
	k.Lock()
	answer := k.wait[resp.Opaque]
	delete(k.wait, resp.Opaque)
	k.Unlock()
	if answer == nil {
		c.srv.m.strays.Inc()
		return
	}
	answer <- resp.Clone()
}

// abandon ends all waiting calls.
func (k *calls) abandon() {
	k.Lock()
	defer k.Unlock()
	k.closed = true
	for _, answer := range k.wait {
		close(answer)
	}
	k.wait = nil
}
