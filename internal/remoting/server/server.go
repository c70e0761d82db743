package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Server serves one listener.
type Server struct {
	cfg    Config
	routes *routes
	log    *slog.Logger
	m      *metrics

	clock    atomic.Int64 // milliseconds, advanced by sweep; never 0
	large    atomic.Int64 // bytes of buffers for large frames
	stopping atomic.Bool
	nextID   atomic.Uint64

	readers sync.WaitGroup // one each connection
	jobs    sync.WaitGroup // requests handed to classes
	writers sync.WaitGroup // goroutines that write batches

	mu struct {
		sync.Mutex
		conns    map[*Conn]struct{}
		lastWarn [numReasons]time.Time
	}
}

// New makes a server that hands requests on as table says.
func New(cfg Config, table Table) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("remoting server: %w", err)
	}
	rs, err := newRoutes(table, cfg.Name, cfg.Metrics)
	if err != nil {
		return nil, fmt.Errorf("remoting server %s: %w", cfg.Name, err)
	}
	s := &Server{cfg: cfg, routes: rs, log: cfg.Log, m: newMetrics(cfg.Name, cfg.Metrics)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.log = s.log.With("server", cfg.Name)
	s.clock.Store(1)
	s.mu.conns = make(map[*Conn]struct{})
	return s, nil
}

// now is the server's clock. It is as fine as its users need and costs one load.
func (s *Server) now() int64 { return s.clock.Load() }

// Serve accepts connections on ln until ctx is done, then stops: it accepts no
// more, reads no more, waits up to Grace for the answers under way, writes them,
// and closes. It returns nil after that, and an error when ln fails for good. It
// is called once; ln is closed when it returns.
//
// The context of handlers outlives ctx by Grace.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	hctx, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	stopListening := context.AfterFunc(ctx, func() { ln.Close() })
	defer stopListening()
	sweeping := make(chan struct{})
	sctx, endSweep := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(sweeping)
		s.sweep(sctx)
	}()

	err := s.accept(ctx, hctx, ln)
	ln.Close()
	s.stop(giveUp)
	endSweep()
	<-sweeping
	return err
}

// accept takes connections. Errors that may pass (no more file descriptors, a
// connection that was gone before we took it) are waited out.
func (s *Server) accept(ctx, hctx context.Context, ln net.Listener) error {
	var pause time.Duration
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			pause = 0
			s.admit(hctx, nc)
			continue
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("remoting server %s: accept on %v: %w", s.cfg.Name, ln.Addr(), err)
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.log.Warn("cannot accept connections; trying again", "error", err, "pause", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (s *Server) admit(hctx context.Context, nc net.Conn) {
	s.m.accepted.Inc()
	c := &Conn{srv: s, nc: nc, id: s.nextID.Add(1)}
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		p := a.AddrPort()
		c.remote = netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	c.out.wake.L = &c.out
	c.lastUse.Store(s.now())
	s.mu.Lock()
	n := len(s.mu.conns)
	full := n >= s.cfg.MaxConns
	if !full {
		s.mu.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	if full {
		nc.Close()
		s.m.closed[overLimit].Inc()
		s.warn(overLimit, "a connection was closed: too many are open", "conn", c.String(), "open", n, "limit", s.cfg.MaxConns)
		return
	}
	s.m.connections.Add(1)
	s.readers.Go(func() { c.serve(hctx) })
}

// gone takes a connection off the books, the last thing its reader does.
func (s *Server) gone(c *Conn) {
	s.mu.Lock()
	delete(s.mu.conns, c)
	s.mu.Unlock()
	s.m.connections.Add(-1)
	s.m.closed[c.out.why].Inc()
	if c.out.why == isTLS {
		s.warn(isTLS, "a client speaks TLS, this port serves plain text only: its connection was closed. Turn TLS off in the client (useTLS, tls.enable)", "conn", c.String())
	}
	s.log.Debug("connection closed", "conn", c.String(), "reason", reasonNames[c.out.why], "cause", c.out.err)
}

// warn logs at most once a minute for each reason: a client that comes again
// and again must not fill the disk.
func (s *Server) warn(why reason, msg string, args ...any) {
	now := time.Now()
	s.mu.Lock()
	quiet := now.Sub(s.mu.lastWarn[why]) < time.Minute && !s.mu.lastWarn[why].IsZero()
	if !quiet {
		s.mu.lastWarn[why] = now
	}
	s.mu.Unlock()
	if !quiet {
		s.log.Warn(msg, args...)
	}
}

// sweep advances the clock and closes connections that broke a time limit. One
// goroutine looking at all connections now and then is cheaper than deadlines
// set and lifted around every read and write.
func (s *Server) sweep(ctx context.Context) {
	step := min(s.cfg.IdleTimeout, s.cfg.FrameTimeout, s.cfg.WriteTimeout) / 8
	step = min(max(step, time.Millisecond), time.Second)
	t := time.NewTicker(step)
	defer t.Stop()
	begin := time.Now()
	type verdict struct {
		c   *Conn
		why reason
	}
	var late []verdict
	var drowsy []*Conn
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now := 1 + time.Since(begin).Milliseconds()
		s.clock.Store(now)
		longer := func(since int64, limit time.Duration) bool { return since != 0 && now-since > limit.Milliseconds() }
		s.mu.Lock()
		for c := range s.mu.conns {
			last := c.lastUse.Load()
			switch {
			case longer(c.writeSince.Load(), s.cfg.WriteTimeout):
				late = append(late, verdict{c, slowReader})
			case longer(c.partialSince.Load(), s.cfg.FrameTimeout):
				late = append(late, verdict{c, halfFrame})
			case longer(last, s.cfg.IdleTimeout):
				late = append(late, verdict{c, idle})
			case c.busy.Load() && longer(last, step):
				drowsy = append(drowsy, c)
			}
		}
		s.mu.Unlock()
		for _, v := range late {
			switch v.why {
			case slowReader:
				v.c.close(v.why, fmt.Errorf("%w: a write has not ended in %v", errSlowReader, s.cfg.WriteTimeout))
			case halfFrame:
				v.c.close(v.why, fmt.Errorf("a frame was not complete after %v", s.cfg.FrameTimeout))
			default:
				v.c.close(v.why, fmt.Errorf("nothing was read or written for %v", s.cfg.IdleTimeout))
			}
		}
		for _, c := range drowsy {
			c.wake()
		}
		clear(late)
		clear(drowsy)
		late, drowsy = late[:0], drowsy[:0]
	}
}

// wake ends the read that is under way, or else the next one.
func (c *Conn) wake() { c.nc.SetReadDeadline(time.Unix(1, 0)) }

// stop ends all connections, in peace while the grace period lasts.
func (s *Server) stop(giveUp func()) {
	s.stopping.Store(true)
	if s.cfg.OnStop != nil {
		s.cfg.OnStop()
	}
	for _, c := range s.list() {
		c.wake()
		c.out.Lock()
		c.out.wake.Broadcast()
		c.out.Unlock()
	}
	grace := time.AfterFunc(s.cfg.Grace, func() {
		giveUp()
		for _, c := range s.list() {
			s.log.Warn("stopping: a connection still had requests without an answer", "conn", c.String(), "requests", c.inFlight.Load())
			c.close(byStop, fmt.Errorf("not all was answered within %v", s.cfg.Grace))
		}
	})
	// Readers submit jobs, and readers and jobs start writers: so in this order.
	s.readers.Wait()
	grace.Stop()
	giveUp()
	s.jobs.Wait()
	s.writers.Wait()
}

func (s *Server) list() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Conn, 0, len(s.mu.conns))
	for c := range s.mu.conns {
		all = append(all, c)
	}
	return all
}

// Conns returns the number of open connections.
func (s *Server) Conns() int { return int(s.m.connections.Value()) }
