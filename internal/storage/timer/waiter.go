package timer

import (
	"time"
)

// Waiter tells the time and sleeps for one queue. Wait is called by one
// goroutine only, between Start and the call of what Start returned; the other
// methods may be called at any time.
type Waiter interface {
	// Now is the wall clock.
	Now() time.Time
	// Start prepares the calling goroutine for waiting.
	Start() (done func(), err error)
	// Wait returns after d, never when d is negative, or as soon as Wake is called.
	// A Wake that came when nobody waited ends the next Wait. It may return early.
	Wait(d time.Duration)
	// Wake ends a Wait.
	Wake()
}

// Plain returns a waiter on Go's own timers, good to about a millisecond.
func Plain() Waiter { return &plain{now: time.Now, wake: make(chan struct{}, 1)} }

// PlainWall returns a waiter like [Plain] on a wall clock of its own, for tests of clocks that are set.
func PlainWall(now func() time.Time) Waiter { return &plain{now: now, wake: make(chan struct{}, 1)} }

type plain struct {
	now   func() time.Time
	wake  chan struct{}
	timer *time.Timer
}

func (p *plain) Now() time.Time { return p.now() }

func (p *plain) Start() (done func(), err error) {
	return func() {
		if p.timer != nil {
			p.timer.Stop()
		}
	}, nil
}

func (p *plain) Wait(d time.Duration) {
	if d < 0 {
		<-p.wake
		return
	}
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	select {
	case <-p.wake:
	case <-p.timer.C:
	}
}

func (p *plain) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
