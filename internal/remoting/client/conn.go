package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// ErrClosed is wrapped by the errors of calls whose connection ended before
// their answer came.
var ErrClosed = errors.New("the connection is closed")

// ErrTooLarge is wrapped by the errors of requests that no frame can carry. They
// are not sent: the other end would close the connection on them.
var ErrTooLarge = errors.New("too large to send")

// Conn is one connection to a server. Its methods are safe for concurrent use.
type Conn struct {
	cfg  Config
	nc   net.Conn
	addr string
	log  *slog.Logger

	wake     chan struct{} // there is something to write; capacity one
	done     chan struct{} // closed when all of the connection's goroutines have ended
	handlers chan struct{} // a token each handler at work

	mu struct {
		sync.Mutex
		out    []byte // frames nobody has begun to write
		held   bool   // the reader will wake the writer when it has read all there is
		calls  map[int32]func(*remoting.Command, error)
		last   int32
		closed bool
		err    error // why
	}
}

// Dial makes a connection to addr, "host:port".
func Dial(ctx context.Context, addr string, cfg Config) (*Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("remoting client: %w", err)
	}
	dctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	dial := cfg.Dial
	if dial == nil {
		dial = func(ctx context.Context, addr string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", addr)
		}
	}
	nc, err := dial(dctx, addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	c := &Conn{
		cfg: cfg, nc: nc, addr: addr, log: cfg.logger(),
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		handlers: make(chan struct{}, MaxHandlers),
	}
	c.mu.calls = make(map[int32]func(*remoting.Command, error))
	c.log.Debug("connected", "addr", addr)
	go c.run()
	return c, nil
}

// run is the life of a connection.
func (c *Conn) run() {
	defer close(c.done)
	ctx, cancel := context.WithCancel(context.Background())
	var writer, handlers sync.WaitGroup
	writer.Go(func() { c.write(ctx) })
	err := c.read(ctx, &handlers)
	c.fail(err)
	cancel()
	writer.Wait()
	handlers.Wait()
	c.log.Debug("connection ended", "addr", c.addr, "cause", err)
}

// Addr returns the address that was dialled.
func (c *Conn) Addr() string { return c.addr }

// LocalAddr returns this end of the connection.
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// Done is closed when the connection has ended and nothing of it runs any more.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err says why the connection ended, nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.err
}

// Close ends the connection; calls under way fail with [ErrClosed]. It does not
// wait: see Done.
func (c *Conn) Close() error {
	c.fail(nil)
	return nil
}

// fail ends the connection once and tells all who wait.
func (c *Conn) fail(cause error) {
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		return
	}
	c.mu.closed = true
	c.mu.err = fmt.Errorf("%s: %w", c.addr, ErrClosed)
	if cause != nil {
		c.mu.err = fmt.Errorf("%s: %w: %w", c.addr, ErrClosed, cause)
	}
	err, calls := c.mu.err, c.mu.calls
	c.mu.calls, c.mu.out = nil, nil
	c.mu.Unlock()
	c.nc.Close()
	for _, done := range calls {
		done(nil, err)
	}
}

// Call sends a request and waits for its answer, until ctx is done. The answer
// is the caller's. The opaque number of cmd is chosen here; cmd and what it
// refers to are not used after Call returns.
func (c *Conn) Call(ctx context.Context, cmd *remoting.Command) (*remoting.Command, error) {
	type result struct {
		resp *remoting.Command
		err  error
	}
	got := make(chan result, 1)
	opaque, err := c.send(cmd, func(resp *remoting.Command, err error) {
		if err != nil {
			got <- result{nil, err}
			return
		}
		got <- result{resp.Clone(), nil}
	})
	if err != nil {
		return nil, fmt.Errorf("call code %d: %w", cmd.Code, err)
	}
	select {
	case r := <-got:
		if r.err != nil {
			return nil, fmt.Errorf("call code %d: %w", cmd.Code, r.err)
		}
		return r.resp, nil
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.mu.calls, opaque)
		c.mu.Unlock()
		return nil, fmt.Errorf("call code %d at %s: %w", cmd.Code, c.addr, context.Cause(ctx))
	}
}

// Go sends a request and calls done once: with the answer, or with an error when
// the connection ended first. It never waits. done runs on the connection's
// reader: it must not wait, and the answer is gone when it returns. When Go
// itself returns an error, done is not called.
func (c *Conn) Go(cmd *remoting.Command, done func(resp *remoting.Command, err error)) error {
	_, err := c.send(cmd, done)
	return err
}

// Oneway sends a request that has no answer. It does not wait for the bytes to
// leave.
func (c *Conn) Oneway(cmd *remoting.Command) error {
	cmd.Flag |= remoting.FlagOneway
	if _, err := c.send(cmd, nil); err != nil {
		return fmt.Errorf("send code %d: %w", cmd.Code, err)
	}
	return nil
}

// maxOut bounds the bytes that wait to be written.
const maxOut = 256 << 20

func (c *Conn) send(cmd *remoting.Command, done func(*remoting.Command, error)) (opaque int32, err error) {
	cmd.Flag &^= remoting.FlagResponse
	if cmd.Serialize == remoting.JSON {
		cmd.Serialize = c.cfg.Serialize
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mu.closed:
		return 0, c.mu.err
	case len(c.mu.calls) >= c.cfg.MaxInFlight:
		return 0, fmt.Errorf("%s: %w: %d calls wait for their answers (MaxInFlight)", c.addr, mq.ErrBusy, len(c.mu.calls))
	case len(c.mu.out) > maxOut:
		return 0, fmt.Errorf("%s: %w: %d bytes wait to be written", c.addr, mq.ErrBusy, len(c.mu.out))
	}
	c.mu.last++
	if c.mu.last < 0 {
		c.mu.last = 1
	}
	cmd.Opaque = c.mu.last
	if err := c.appendLocked(cmd); err != nil {
		return 0, err
	}
	if done != nil {
		c.mu.calls[cmd.Opaque] = done
	}
	return cmd.Opaque, nil
}

// appendLocked puts a frame behind what waits to be written.
func (c *Conn) appendLocked(cmd *remoting.Command) error {
	body := cmd.BodyLen()
	out := remoting.AppendHeader(c.mu.out, cmd, body)
	if size := len(out) - len(c.mu.out) + body; size > remoting.MaxFrame {
		return fmt.Errorf("%s: %w: the frame would have %d bytes, the limit is %d", c.addr, ErrTooLarge, size, remoting.MaxFrame)
	}
	c.mu.out = remoting.AppendBody(out, cmd)
	if !c.mu.held {
		c.wakeWriter()
	}
	return nil
}

func (c *Conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes what is appended, all there is with one call. The reader does not
// do it: it must go on reading while the server does not, or both ends could
// wait for each other.
func (c *Conn) write(ctx context.Context) {
	const keep = 1 << 20
	var b []byte
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		if cap(b) > keep {
			b = nil
		}
		c.mu.Lock()
		b, c.mu.out = c.mu.out, b[:0]
		c.mu.Unlock()
		for rest := b; len(rest) > 0; {
			step := rest[:min(len(rest), 1<<20)]
			rest = rest[len(step):]
			if err := c.nc.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout)); err != nil {
				c.fail(err)
				return
			}
			if _, err := c.nc.Write(step); err != nil {
				c.fail(err)
				return
			}
		}
	}
}
