package client

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/sundial-mq/sundial/internal/remoting"
)

const readSize = 64 << 10

const systemError = 1 // response code

// read hands on what comes in, until the connection ends.
func (c *Conn) read(ctx context.Context, handlers *sync.WaitGroup) error {
	buf := make([]byte, readSize)
	end := 0
	var cmd remoting.Command
	for {
		n, err := c.nc.Read(buf[end:])
		if n > 0 {
			end += n
			c.hold(true)
			used, ferr := c.frames(ctx, buf[:end], &cmd, handlers)
			c.hold(false)
			if ferr != nil {
				return ferr
			}
			end = copy(buf, buf[used:end])
			if buf, err = fit(buf, end, err); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
	}
}

// fit returns a buffer with buf's first end bytes and room for more: larger while
// a large frame comes in, of the usual size again after it.
func fit(buf []byte, end int, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	want := len(buf)
	switch {
	case end == len(buf):
		size, err := remoting.FrameSize(buf)
		if err != nil {
			return nil, err
		}
		want = min(max(size, readSize), 2*len(buf))
	case len(buf) > readSize && end < 8:
		want = readSize
	}
	if want == len(buf) {
		return buf, nil
	}
	b := make([]byte, want)
	copy(b, buf[:end])
	return b, nil
}

// hold keeps the writer asleep while answers are handed on, so that requests
// that follow on them leave together.
func (c *Conn) hold(held bool) {
	c.mu.Lock()
	c.mu.held = held
	wake := !held && len(c.mu.out) > 0
	c.mu.Unlock()
	if wake {
		c.wakeWriter()
	}
}

// frames hands on the whole frames in b and returns their size together.
func (c *Conn) frames(ctx context.Context, b []byte, cmd *remoting.Command, handlers *sync.WaitGroup) (used int, err error) {
	for {
		size, err := remoting.FrameSize(b[used:])
		if err != nil {
			return used, err
		}
		if size == 0 || size > len(b)-used {
			return used, nil
		}
		if err := remoting.Decode(b[used:used+size], cmd); err != nil {
			return used, err
		}
		used += size
		if !cmd.IsResponse() {
			c.request(ctx, cmd, handlers)
			continue
		}
		c.mu.Lock()
		done := c.mu.calls[cmd.Opaque]
		delete(c.mu.calls, cmd.Opaque)
		c.mu.Unlock()
		if done != nil { // else its caller has given up, or sent it one-way
			done(cmd, nil)
		}
	}
}

// request has a request of the server handled.
func (c *Conn) request(ctx context.Context, req *remoting.Command, handlers *sync.WaitGroup) {
	const busy, notSupported = 2, 3
	if c.cfg.Handle == nil {
		c.reply(req, remoting.NewResponse(req, notSupported, fmt.Sprintf("request code %d is not supported by this client", req.Code)))
		return
	}
	select {
	case c.handlers <- struct{}{}:
	default:
		c.reply(req, remoting.NewResponse(req, busy, fmt.Sprintf("%d requests are being handled (limit %d)", len(c.handlers), MaxHandlers)))
		return
	}
	req = req.Clone()
	handlers.Go(func() {
		defer func() { <-c.handlers }()
		if resp := c.handle(ctx, req); resp != nil {
			c.reply(req, resp)
		}
	})
}

// handle calls the handler; a panic there becomes an answer.
func (c *Conn) handle(ctx context.Context, req *remoting.Command) (resp *remoting.Command) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("a handler panicked", "addr", c.addr, "code", req.Code, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			resp = remoting.NewResponse(req, systemError, fmt.Sprintf("BUG: code %d: %v", req.Code, p))
		}
	}()
	return c.cfg.Handle(ctx, c, req)
}

func (c *Conn) reply(req, resp *remoting.Command) {
	if !req.IsOneway() {
		resp.Opaque, resp.Serialize = req.Opaque, req.Serialize
		resp.Flag |= remoting.FlagResponse
		c.mu.Lock()
		if !c.mu.closed {
			if err := c.appendLocked(resp); err != nil {
				small := remoting.NewResponse(req, systemError, err.Error())
				small.Opaque, small.Serialize = req.Opaque, req.Serialize
				_ = c.appendLocked(small)
			}
		}
		c.mu.Unlock()
	}
	if resp.Release != nil {
		resp.Release()
	}
}
