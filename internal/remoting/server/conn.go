package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// Conn is one client's connection. All its methods are safe for concurrent use.
type Conn struct {
	srv    *Server
	nc     net.Conn
	id     uint64
	remote netip.AddrPort

	attached atomic.Value
	inFlight atomic.Int32 // requests not answered yet

	// Times on the server's clock, for its sweep.
	lastUse      atomic.Int64 // last read or write
	partialSince atomic.Int64 // when an unfinished frame was first seen; 0: none
	writeSince   atomic.Int64 // when the write under way began; 0: none
	busy         atomic.Bool  // the reader holds a big buffer

	seen time.Time // when the request came that is handled inline; the reader's own

	out   outbox
	calls calls

	onClose struct {
		sync.Mutex
		done bool
		fns  []func()
	}
}

// ID is unique in the life of the server.
func (c *Conn) ID() uint64 { return c.id }

// RemoteAddr is the client's address, IPv4 where it is one; the zero value when
// the connection is no TCP connection.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// String names the connection in logs.
func (c *Conn) String() string {
	if c.remote.IsValid() {
		return c.remote.String()
	}
	return fmt.Sprintf("conn#%d", c.id)
}

// Seen is when the request that is being handled came. Only handlers of inline
// classes may ask, before they return.
func (c *Conn) Seen() time.Time { return c.seen }

// Attach keeps what a front end knows about the client; one type of value per
// server. Attached returns it, nil if there is none.
func (c *Conn) Attach(v any) { c.attached.Store(v) }

// Attached returns what was attached last.
func (c *Conn) Attached() any { return c.attached.Load() }

// OnClose has fn called once when the connection is closed, on a goroutine that
// holds no lock; at once when it is closed already. It is meant for what lives
// as long as the connection: there is no way to take fn back.
func (c *Conn) OnClose(fn func()) {
	c.onClose.Lock()
	done := c.onClose.done
	if !done {
		c.onClose.fns = append(c.onClose.fns, fn)
	}
	c.onClose.Unlock()
	if done {
		fn()
	}
}

// Closed reports whether the connection is closed. It may be so a moment later.
func (c *Conn) Closed() bool {
	c.out.Lock()
	defer c.out.Unlock()
	return c.out.closed
}

// Close closes the connection; cause goes to the log. Answers that were not
// written yet are lost.
func (c *Conn) Close(cause string) { c.close(byHandler, errors.New(cause)) }

// close closes the connection once; the first reason counts. The rest is done
// by the reader when it finds out.
func (c *Conn) close(why reason, err error) {
	o := &c.out
	o.Lock()
	if o.closed {
		o.Unlock()
		return
	}
	o.closed, o.why, o.err = true, why, err
	b := o.cur
	o.cur = batch{}
	o.bytes -= b.size
	o.wake.Broadcast()
	o.Unlock()
	c.nc.Close()
	b.free()
}

// asker is what an answer takes from its request.
type asker struct {
	opaque int32
	form   remoting.Serialize
	oneway bool
}

func askerOf(req *remoting.Command) asker {
	return asker{req.Opaque, req.Serialize, req.IsOneway()}
}

// Later is the promise of an answer. It is a small value; keep it in place of
// the request.
type Later struct {
	conn *Conn
	ask  asker
}

// Later promises to answer req after its handler has returned nil. Every promise
// must be kept, with an answer or with [NoAnswer]: what is promised counts
// against MaxInFlight, and stopping waits for it.
func (c *Conn) Later(req *remoting.Command) Later { return Later{c, askerOf(req)} }

// Reply gives the promised answer. It never waits, and does nothing when the
// connection is gone (but call Release).
func (l Later) Reply(resp *remoting.Command) { l.conn.answer(l.ask, resp) }

// Conn returns the connection of the request.
func (l Later) Conn() *Conn { return l.conn }

// Response begins the answer.
func (l Later) Response(code int32, remark string) *remoting.Command {
	return &remoting.Command{
		Code: code, Language: remoting.Go, Version: remoting.Version,
		Opaque: l.ask.opaque, Flag: remoting.FlagResponse, Serialize: l.ask.form, Remark: remark,
	}
}

// Reply answers req, whose handler has returned nil. It never waits. Only the
// opaque number, flag and header form of req are used.
func (c *Conn) Reply(req, resp *remoting.Command) { c.answer(askerOf(req), resp) }

// answer queues an answer and returns how many bytes wait.
func (c *Conn) answer(ask asker, resp *remoting.Command) (waiting int64) {
	if ask.oneway {
		if resp != NoAnswer {
			release(resp)
		}
		return 0
	}
	if resp != NoAnswer {
		resp.Opaque = ask.opaque
		resp.Serialize = ask.form
		resp.Flag = resp.Flag&^remoting.FlagOneway | remoting.FlagResponse
		if resp.Version == 0 {
			resp.Version = remoting.Version
		}
		if n := resp.BodyLen(); n > remoting.MaxFrame-maxHeader {
			release(resp)
			was := resp.Code
			resp = &remoting.Command{Code: codeSystemError, Language: remoting.Go, Version: remoting.Version,
				Opaque: ask.opaque, Flag: remoting.FlagResponse, Serialize: ask.form,
				Remark: fmt.Sprintf("the answer (code %d) has a body of %d bytes, more than a frame of %d can carry", was, n, remoting.MaxFrame)}
			c.srv.log.Error("an answer is too large to send", "conn", c.String(), "code", was, "bytes", n)
		}
		waiting = c.post(resp)
	}
	if c.inFlight.Add(-1) <= 0 && c.srv.stopping.Load() {
		c.out.Lock()
		c.out.wake.Broadcast()
		c.out.Unlock()
	}
	return waiting
}

// maxHeader is set aside for the header when the body of an answer is checked.
const maxHeader = 64 << 10

// handle calls the handler of a request. A panic there becomes SYSTEM_ERROR.
func (c *Conn) handle(ctx context.Context, rt *route, req *remoting.Command, ask asker) (resp *remoting.Command) {
	defer func() {
		if p := recover(); p != nil {
			resp = c.panicked(rt, ask, p)
		}
	}()
	return rt.Handle(ctx, c, req)
}

func (c *Conn) panicked(rt *route, ask asker, p any) *remoting.Command {
	c.srv.m.panics.Inc()
	c.srv.log.Error("a handler panicked; the request is answered SYSTEM_ERROR", "request", rt.Name, "conn", c.String(),
		"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return &remoting.Command{Code: codeSystemError, Language: remoting.Go, Version: remoting.Version,
		Opaque: ask.opaque, Flag: remoting.FlagResponse, Serialize: ask.form,
		Remark: fmt.Sprintf("BUG: %s: %v", rt.Name, p)}
}
