package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// Pool keeps one connection an address, made when it is first needed and made
// anew after it broke. Its methods are safe for concurrent use.
type Pool struct {
	cfg Config
	mu  struct {
		sync.Mutex
		closed bool
		links  map[string]*link
	}
}

// link is one address of a pool.
type link struct {
	turn chan struct{} // holds a token; who has it may use the fields
	conn *Conn
	err  error         // of the last attempt
	next time.Time     // no attempt before
	wait time.Duration // the pause after the next failure
}

var errPoolClosed = errors.New("the pool is closed")

// NewPool makes a pool without connections.
func NewPool(cfg Config) (*Pool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("remoting client: %w", err)
	}
	p := &Pool{cfg: cfg}
	p.mu.links = make(map[string]*link)
	return p, nil
}

// Conn returns the live connection to addr or makes one. After a failure nobody
// tries again before the pause is over: who has the time (by ctx) waits for that,
// who has not gets the last error at once.
func (p *Pool) Conn(ctx context.Context, addr string) (*Conn, error) {
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return nil, fmt.Errorf("connect to %s: %w", addr, errPoolClosed)
	}
	l := p.mu.links[addr]
	if l == nil {
		l = &link{turn: make(chan struct{}, 1), wait: p.cfg.BackoffMin}
		l.turn <- struct{}{}
		p.mu.links[addr] = l
	}
	p.mu.Unlock()

	select {
	case <-l.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("connect to %s: %w", addr, context.Cause(ctx))
	}
	defer func() { l.turn <- struct{}{} }()
	if l.conn != nil && l.conn.Err() == nil {
		return l.conn, nil
	}
	if pause := time.Until(l.next); pause > 0 {
		if end, ok := ctx.Deadline(); ok && end.Before(l.next) {
			return nil, fmt.Errorf("%w (next attempt in %v)", l.err, pause.Round(time.Millisecond))
		}
		t := time.NewTimer(pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%w)", l.err, context.Cause(ctx))
		}
	}
	conn, err := Dial(ctx, addr, p.cfg)
	if err != nil {
		l.conn, l.err, l.next = nil, err, time.Now().Add(l.wait)
		l.wait = min(2*l.wait, p.cfg.BackoffMax)
		return nil, err
	}
	p.mu.Lock()
	closed := p.mu.closed
	p.mu.Unlock()
	if closed {
		conn.Close()
		<-conn.Done()
		return nil, fmt.Errorf("connect to %s: %w", addr, errPoolClosed)
	}
	l.conn, l.err, l.wait = conn, nil, p.cfg.BackoffMin
	return conn, nil
}

// Call sends a request to addr and waits for its answer; see [Conn.Call].
func (p *Pool) Call(ctx context.Context, addr string, cmd *remoting.Command) (*remoting.Command, error) {
	c, err := p.Conn(ctx, addr)
	if err != nil {
		return nil, err
	}
	return c.Call(ctx, cmd)
}

// Oneway sends a request to addr that has no answer. ctx bounds the making of a
// connection.
func (p *Pool) Oneway(ctx context.Context, addr string, cmd *remoting.Command) error {
	c, err := p.Conn(ctx, addr)
	if err != nil {
		return err
	}
	return c.Oneway(cmd)
}

// Close closes all connections and waits until nothing of them runs. Attempts
// under way are waited for.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.mu.closed = true
	links := p.mu.links
	p.mu.links = nil
	p.mu.Unlock()
	for _, l := range links {
		<-l.turn
		if l.conn != nil {
			l.conn.Close()
			<-l.conn.Done()
		}
		l.turn <- struct{}{}
	}
	return nil
}
