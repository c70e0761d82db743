package timer

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Guard is a waiter that does not believe every clock. It compares the wall clock
// with the time that has passed, and tells of steps. After a step back the new
// clock counts at once: what is due waits for it. After a step forward by more than
// Limit it goes on as if the clock had not been set, for Hold, or until
// [Guard.Confirm]: a clock that is set a year ahead by mistake would hand over a
// year of messages.
type Guard struct {
	Waiter
	cfg GuardConfig

	mu struct {
		sync.Mutex
		wall  time.Time     // at the last look
		mono  time.Duration // likewise
		ahead time.Duration // by how much the clock was ahead before it was set back
		state GuardState
		until time.Duration // while holding
	}
}

// GuardConfig is what a guard is told.
type GuardConfig struct {
	// Limit is the largest step forward that counts at once; 0 is any.
	Limit time.Duration
	// Hold is how long a larger one is held, from 0.
	Hold time.Duration
	// Mono is the time that has passed since some moment, suspended or not; nil is
	// the machine's.
	Mono func() time.Duration
	// Step is told of each step, and whether it is held; it may be nil, and is called
	// without locks.
	Step func(step time.Duration, held bool)
}

// DefaultGuardConfig holds steps of more than a minute for a minute.
func DefaultGuardConfig() GuardConfig { return GuardConfig{Limit: time.Minute, Hold: time.Minute} }

// Validate joins all complaints about c.
func (c GuardConfig) Validate() error {
	var errs []error
	if c.Limit < 0 {
		errs = append(errs, fmt.Errorf("clock step limit is %v (clockStepLimit), want at least 0", c.Limit))
	}
	if c.Hold < 0 {
		errs = append(errs, fmt.Errorf("clock steps are held %v (clockStepHold), want at least 0", c.Hold))
	}
	return errors.Join(errs...)
}

// GuardState is what a guard knows of the clock.
type GuardState struct {
	Forward, Back int64         // steps seen
	Last          time.Duration // the latest, forward above 0
	Holding       bool          // it is not believed yet
}

// tolerance is by how much clocks may differ after a time without counting as a step.
func tolerance(passed time.Duration) time.Duration { return 500*time.Millisecond + passed/1000 }

// NewGuard watches the clock of w.
func NewGuard(w Waiter, cfg GuardConfig) (*Guard, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Mono == nil {
		cfg.Mono = monotonic()
	}
	g := &Guard{Waiter: w, cfg: cfg}
	g.mu.wall, g.mu.mono = w.Now(), cfg.Mono()
	return g, nil
}

// Now is the wall clock, or what it would show had it not been set.
func (g *Guard) Now() time.Time {
	wall, mono := g.Waiter.Now(), g.cfg.Mono()
	g.mu.Lock()
	m := &g.mu
	passed := mono - m.mono
	expected := m.wall.Add(passed)
	step := wall.Sub(expected)
	if m.state.Holding {
		if mono >= m.until || step < tolerance(passed) {
			m.state.Holding = false // waited long enough, or set right again
			m.wall, m.mono = wall, mono
			g.mu.Unlock()
			return wall
		}
		g.mu.Unlock()
		return expected
	}
	far := tolerance(passed)
	if step < far && step > -far {
		m.wall, m.mono = wall, mono
		g.mu.Unlock()
		return wall
	}
	m.state.Last = step
	before := m.ahead
	m.ahead = max(0, before-step)
	if step > 0 {
		m.state.Forward++
	} else {
		m.state.Back++
	}
	// What only undoes a step back is none to wonder at.
	held := g.cfg.Limit > 0 && step-before > g.cfg.Limit && g.cfg.Hold > 0
	if held {
		m.state.Holding, m.until = true, mono+g.cfg.Hold
		m.wall, m.mono = expected, mono
		wall = expected
	} else {
		m.wall, m.mono = wall, mono
	}
	g.mu.Unlock()
	if g.cfg.Step != nil {
		g.cfg.Step(step, held)
	}
	return wall
}

// State tells what was seen of the clock.
func (g *Guard) State() GuardState {
	g.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.state
}

// Confirm believes a step that is held, and reports whether there was one.
func (g *Guard) Confirm() bool {
	g.mu.Lock()
	was := g.mu.state.Holding
	g.mu.until = 0
	g.mu.Unlock()
	if was {
		g.Now()
		g.Wake()
	}
	return was
}
