package server

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// Answers on their way out.
//
// The simple way is to write each answer as it comes: one system call an
// answer, and whoever gives it waits for the client. A goroutine per connection
// that writes what a channel brings frees the giver, but costs every idle
// connection its stack and every answer a hand-over.
//
// Here answers are appended to the connection's current batch, and
//
//   - at most one goroutine writes at a time. It takes the whole batch, writes
//     it with one system call, and looks again before it leaves;
//   - while the reader works through the requests of one read (held), nobody
//     else begins to write: the reader does when the input is drained, so the
//     answers to what came together leave together;
//   - otherwise whoever adds to a batch that nobody is writing starts a
//     goroutine for it, and so never waits itself.
//
// Small bodies are copied into the batch. Large ones stay where they are (in
// mapped files) until the kernel has them, and are released then.

const (
	copyUpTo  = 16 << 10 // chunks of up to so many bytes together are copied
	flushAt   = 64 << 10 // the reader writes when it collected more
	writeStep = 1 << 20  // bytes a WriteTimeout is for
)

var errSlowReader = errors.New("the client does not read what it asked for")

type outbox struct {
	sync.Mutex
	wake    sync.Cond // a batch was written, or the connection closed
	cur     batch     // what nobody has begun to write
	bytes   int64     // in cur and in the writer's hands
	writing bool      // a goroutine is writing; it looks at cur before it leaves
	held    bool      // the reader will flush
	closed  bool
	why     reason
	err     error
}

// batch is a run of frames. It is written in the order pieces, tail.
type batch struct {
	pieces  [][]byte  // full buffers and large chunks
	tail    *buffer   // copied bytes behind them; nil when empty
	full    []*buffer // buffers that pieces point into
	release []func()
	size    int64
}

// add appends the frame of cmd. It reports whether the chunks of cmd were copied,
// so that they may be released at once.
func (b *batch) add(cmd *remoting.Command, bodyLen int) (copied bool) {
	if b.tail == nil {
		b.tail = takeBuffer()
	}
	was := len(b.tail.b)
	if cmd.Chunks == nil || bodyLen <= copyUpTo {
		b.tail.b = remoting.AppendCommand(b.tail.b, cmd)
		b.size += int64(len(b.tail.b) - was)
		return true
	}
	b.tail.b = remoting.AppendHeader(b.tail.b, cmd, bodyLen)
	b.size += int64(len(b.tail.b) - was + bodyLen)
	b.pieces = append(b.pieces, b.tail.b)
	b.full = append(b.full, b.tail)
	b.tail = nil
	for _, c := range cmd.Chunks {
		if len(c) > 0 {
			b.pieces = append(b.pieces, c)
		}
	}
	if cmd.Release != nil {
		b.release = append(b.release, cmd.Release)
	}
	return false
}

// free gives back what the batch holds.
func (b *batch) free() {
	if b.tail != nil {
		b.tail.give()
	}
	for _, f := range b.full {
		f.give()
	}
	for _, f := range b.release {
		f()
	}
	*b = batch{}
}

func release(cmd *remoting.Command) {
	if f := cmd.Release; f != nil {
		cmd.Release = nil
		f()
	}
}

// post queues a frame and returns how many bytes wait to be written.
func (c *Conn) post(cmd *remoting.Command) (waiting int64) {
	touch(cmd.Chunks)
	bodyLen := cmd.BodyLen()
	o := &c.out
	o.Lock()
	if o.closed {
		o.Unlock()
		release(cmd)
		return 0
	}
	before := o.cur.size
	copied := o.cur.add(cmd, bodyLen)
	o.bytes += o.cur.size - before
	waiting = o.bytes
	tooMuch := waiting > c.srv.cfg.MaxOut
	start := !tooMuch && !o.writing && !o.held
	if start {
		o.writing = true
		c.srv.writers.Add(1)
	}
	o.Unlock()
	if copied {
		release(cmd)
	}
	if tooMuch {
		c.close(slowReader, fmt.Errorf("%w: %d bytes wait (limit %d)", errSlowReader, waiting, c.srv.cfg.MaxOut))
	}
	if start {
		go func() {
			defer c.srv.writers.Done()
			c.out.Lock()
			c.writeLocked()
			c.out.Unlock()
		}()
	}
	return waiting
}

// touch has cold pages of mapped memory read in before any lock is taken, as
// far as they will be copied.
func touch(chunks [][]byte) (sum byte) {
	n := 0
	for _, b := range chunks {
		if n += len(b); n > copyUpTo {
			return sum
		}
	}
	for _, b := range chunks {
		for i := 0; i < len(b); i += 4096 {
			sum += b[i]
		}
	}
	return sum
}

// hold keeps others from writing until flush.
func (c *Conn) hold() {
	c.out.Lock()
	c.out.held = true
	c.out.Unlock()
}

// flush writes what waits, unless somebody is at it already. It does not
// return while more than HighWater bytes wait.
func (c *Conn) flush() {
	o := &c.out
	o.Lock()
	defer o.Unlock()
	o.held = false
	if !o.writing {
		o.writing = true
		c.writeLocked()
	}
	for o.bytes > c.srv.cfg.HighWater && !o.closed {
		o.wake.Wait()
	}
}

// settled waits until everything has been written and all requests have been
// answered, or the connection is closed.
func (c *Conn) settle() {
	o := &c.out
	o.Lock()
	defer o.Unlock()
	o.held = false
	for !o.closed && (c.inFlight.Load() > 0 || o.bytes > 0) {
		if !o.writing && o.cur.size > 0 {
			o.writing = true
			c.writeLocked()
			continue
		}
		o.wake.Wait()
	}
}

// writeLocked writes batch after batch until none is left. The caller has set
// writing; it is cleared here. The lock is let go while the socket is written.
func (c *Conn) writeLocked() {
	o := &c.out
	for o.cur.size > 0 && !o.closed {
		b := o.cur
		o.cur = batch{}
		size := b.size
		o.Unlock()
		err := c.write(&b)
		b.free()
		if err != nil {
			c.close(byPeer, err)
		}
		o.Lock()
		o.bytes -= size
		o.wake.Broadcast()
	}
	o.writing = false
	o.wake.Broadcast()
}

// write puts a batch on the wire, in steps that a WriteTimeout is fair for.
func (c *Conn) write(b *batch) error {
	defer c.writeSince.Store(0)
	if len(b.pieces) == 0 && b.size <= writeStep {
		c.writeSince.Store(c.srv.now())
		_, err := c.nc.Write(b.tail.b)
		c.wrote(b.size)
		return err
	}
	pieces := b.pieces
	if b.tail != nil {
		pieces = append(pieces, b.tail.b)
	}
	step := make(net.Buffers, 0, len(pieces))
	for len(pieces) > 0 {
		n := 0
		step = step[:0]
		for len(pieces) > 0 && n < writeStep {
			p := pieces[0]
			if room := writeStep - n; len(p) > room {
				pieces[0] = p[room:]
				p = p[:room]
			} else {
				pieces = pieces[1:]
			}
			step = append(step, p)
			n += len(p)
		}
		c.writeSince.Store(c.srv.now())
		v := step
		if _, err := v.WriteTo(c.nc); err != nil {
			return err
		}
		c.wrote(int64(n))
	}
	return nil
}

func (c *Conn) wrote(n int64) {
	c.lastUse.Store(c.srv.now())
	c.srv.m.sent.Add(n)
	c.srv.m.writes.Inc()
}
