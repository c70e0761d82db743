package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// reader reads the frames of one connection and hands them on. It is used by
// the connection's own goroutine only.
//
// An idle connection reads into a small buffer of its own. When a read fills
// it, a big one is borrowed; the server's sweep has it given back after a
// second without input. A frame that is larger than that gets a buffer that
// grows with what has arrived: a length alone takes no memory.
type reader struct {
	c     *Conn
	small []byte
	big   *buffer // borrowed; nil when small or large is in use
	large int     // size of the buffer for a large frame; 0: none
	buf   []byte  // the buffer in use
	start int     // buf[start:end] has been read and not handled
	end   int
	first bool             // no frame has been seen yet
	cmd   remoting.Command // reused for every frame
}

// serve reads until the connection or the server ends, and clears up.
func (c *Conn) serve(ctx context.Context) {
	r := &reader{c: c, small: make([]byte, smallSize), first: true}
	r.buf = r.small
	why, err := r.run(ctx)
	if why == byStop {
		c.settle() // Server.stop ends the wait
	}
	r.giveBack()
	c.close(why, err)
	c.calls.abandon()
	c.onClose.Lock()
	c.onClose.done = true
	fns := c.onClose.fns
	c.onClose.fns = nil
	c.onClose.Unlock()
	for _, fn := range fns {
		c.safely(fn)
	}
	c.srv.gone(c)
}

// safely calls what a front end registered.
func (c *Conn) safely(fn func()) {
	defer func() {
		if p := recover(); p != nil {
			c.panicked(&route{Route: Route{Name: "OnClose"}}, asker{}, p)
		}
	}()
	fn()
}

func (r *reader) run(ctx context.Context) (reason, error) {
	c := r.c
	for {
		n, err := c.nc.Read(r.buf[r.end:])
		if n > 0 {
			r.end += n
			c.lastUse.Store(c.srv.now())
			c.srv.m.received.Add(int64(n))
			c.srv.m.reads.Inc()
			c.hold()
			why, err := r.frames(ctx)
			c.flush()
			if err != nil {
				return why, err
			}
			if why, err := r.makeRoom(); err != nil {
				return why, err
			}
		}
		if err == nil {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// The sweep or the stop woke us. The deadline is lifted before stopping
			// is looked at: a stop after that sets it again.
			if err := c.nc.SetReadDeadline(time.Time{}); err != nil {
				return byPeer, err
			}
			if c.srv.stopping.Load() {
				return byStop, nil
			}
			r.shrink()
			continue
		}
		if errors.Is(err, io.EOF) {
			if r.end > r.start {
				return byPeer, fmt.Errorf("closed by the client within a frame, after %d bytes of it", r.end-r.start)
			}
			return byPeer, nil
		}
		return byPeer, err
	}
}

// frames handles all whole frames that have been read.
func (r *reader) frames(ctx context.Context) (reason, error) {
	c := r.c
	at := time.Now()
	for {
		rest := r.buf[r.start:r.end]
		if r.first && len(rest) > 0 {
			if rest[0] == 0x16 {
				return isTLS, errors.New("the client speaks TLS, this port does not")
			}
			if len(rest) >= 4 {
				r.first = false
			}
		}
		size, err := remoting.FrameSize(rest)
		if err != nil {
			return malformed, err
		}
		if size == 0 || size > len(rest) {
			if len(rest) == 0 {
				c.partialSince.Store(0)
			} else if c.partialSince.Load() == 0 {
				c.partialSince.Store(c.srv.now())
			}
			return 0, nil
		}
		if err := remoting.Decode(rest[:size], &r.cmd); err != nil {
			return malformed, err
		}
		r.start += size
		c.partialSince.Store(0)
		at = r.request(ctx, at, size)
	}
}

// request hands one request on. at is when it was seen; the time when it was
// handled is returned, so that the clock is read once a request.
func (r *reader) request(ctx context.Context, at time.Time, size int) time.Time {
	c, req := r.c, &r.cmd
	if req.IsResponse() {
		c.answered(req)
		return at
	}
	ask := askerOf(req)
	rt := c.srv.routes.of(req.Code)
	if rt == nil {
		c.srv.m.unknown.Inc()
		c.srv.log.Debug("a request with a code that is not served", "code", req.Code, "conn", c.String())
		r.refuse(ask, codeNotSupported, fmt.Sprintf("request code %d is not supported", req.Code))
		return at
	}
	rt.requests.Inc()
	if !ask.oneway {
		if n := c.inFlight.Add(1); int(n) > c.srv.cfg.MaxInFlight {
			c.inFlight.Add(-1)
			c.srv.m.tooMany.Inc()
			r.refuse(ask, codeBusy, fmt.Sprintf("[OVERLOAD] %d requests of this connection wait for their answers (limit %d)", n-1, c.srv.cfg.MaxInFlight))
			return at
		}
	}
	if rt.Class.inline {
		c.seen = at
		resp := c.handle(ctx, rt, req, ask)
		done := time.Now()
		rt.Class.handled.Record(done.Sub(at))
		if resp != nil {
			r.answer(ask, resp)
		}
		return done
	}
	c.srv.jobs.Add(1)
	refusal := rt.Class.submit(job{ctx: ctx, conn: c, rt: rt, req: req.Clone(), ask: ask, at: at, size: int64(size)})
	if refusal != "" {
		c.srv.jobs.Done()
		r.answer(ask, remoting.NewResponse(req, codeBusy, refusal))
	}
	return at
}

// answer gives an answer from the reader itself, which writes when much has come
// together, and stops reading when the client does not take it.
func (r *reader) answer(ask asker, resp *remoting.Command) {
	if r.c.answer(ask, resp) > flushAt {
		r.c.flush()
		r.c.hold()
	}
}

// refuse answers a request that was not counted as in flight.
func (r *reader) refuse(ask asker, code int32, remark string) {
	if ask.oneway {
		return
	}
	r.c.inFlight.Add(1)
	r.answer(ask, Later{r.c, ask}.Response(code, remark))
}

// makeRoom sees to it that the next read has room: for the rest of a frame
// that has begun, and for more at a time when the client is busy.
func (r *reader) makeRoom() (reason, error) {
	full := r.end == len(r.buf) // there may be more than the buffer took
	if r.start == r.end {
		r.start, r.end = 0, 0
		switch {
		case r.large > 0: // the large frame has been handled
			r.swap(takeBuffer())
		case full && r.big == nil:
			r.swap(takeBuffer())
		}
		return 0, nil
	}
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	if r.large > 0 && r.end <= smallSize {
		// The large frame has been handled and another has begun.
		if size, _ := remoting.FrameSize(r.buf[:r.end]); size <= bigSize {
			r.swap(takeBuffer())
		}
	}
	if full && r.big == nil && r.large == 0 {
		r.swap(takeBuffer())
		return 0, nil
	}
	if r.end < len(r.buf) {
		return 0, nil
	}
	// A frame larger than the buffer, or the end of several: double up to its size.
	size, err := remoting.FrameSize(r.buf)
	if err != nil {
		return malformed, err
	}
	want := min(max(size, bigSize), 2*len(r.buf))
	srv := r.c.srv
	if n := srv.large.Add(int64(want - r.large)); n > srv.cfg.MaxLargeFrames {
		srv.large.Add(int64(r.large - want))
		return noMemory, fmt.Errorf("a frame of %d bytes: large frames under way take %d bytes (MaxLargeFrames is %d)", size, n, srv.cfg.MaxLargeFrames)
	}
	grown := make([]byte, want)
	copy(grown, r.buf)
	if r.big != nil {
		r.big.give()
		r.big = nil
	}
	r.buf, r.large = grown, want
	return 0, nil
}

// swap goes over to a borrowed buffer.
func (r *reader) swap(b *buffer) {
	whole := b.b[:cap(b.b)]
	copy(whole, r.buf[:r.end])
	r.drop()
	r.big, r.buf = b, whole
	r.c.busy.Store(true)
}

// drop lets go of the buffer in use, unless it is the small one.
func (r *reader) drop() {
	if r.big != nil {
		r.big.give()
		r.big = nil
	}
	if r.large > 0 {
		r.c.srv.large.Add(int64(-r.large))
		r.large = 0
	}
}

// shrink goes back to the small buffer when what is there fits.
func (r *reader) shrink() {
	if r.big != nil && r.end <= len(r.small) {
		r.end = copy(r.small, r.buf[r.start:r.end])
		r.start = 0
		r.drop()
		r.buf = r.small
	}
	r.cmd = remoting.Command{} // its fields and scratch space
	r.c.busy.Store(false)
}

func (r *reader) giveBack() { r.drop(); r.buf = nil }
