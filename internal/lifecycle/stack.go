// Package lifecycle starts the floors of a node together and stops them from
// the top.
//
// A floor is a function that works until its context is done, puts its affairs
// in order and returns nil. An errgroup is wrong between floors: it cancels all
// at once, and the store would be gone while the last answers are being
// written. A [Stack] gives each floor a context of its own and cancels them one
// after the other, from the last added to the first, each when the one above
// has returned. Every error is kept, those on the way out too, because a failed
// last flush must not be lost.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrEnded says that a floor returned nil though nobody had stopped it.
var ErrEnded = errors.New("ended without being stopped")

// Stack is the floors of a node, from the ground up. Add them all, then Run
// once. The zero Stack is empty and ready.
type Stack struct {
	floors []floor
}

type floor struct {
	name string
	run  func(context.Context) error
}

// Add puts a floor on top. Run must block until its context is done and then
// return; an error it returns is wrapped with name.
func (s *Stack) Add(name string, run func(ctx context.Context) error) {
	s.floors = append(s.floors, floor{name, run})
}

// Run starts the floors from the ground up, without waiting between them (what
// a floor needs was made ready by its Open), and blocks. It stops them all when
// ctx is done, or when one of them ends by itself, which is an error even if
// the floor says nil; a panic in a floor becomes its error. The result joins
// the errors in the order in which the floors ended, or is nil.
func (s *Stack) Run(ctx context.Context) error {
	type running struct {
		cancel context.CancelFunc
		done   chan struct{}
		err    error // set before done is closed
	}
	// Floors do not see ctx's end, only its values: their own cancel is the sign.
	base := context.WithoutCancel(ctx)
	ended := make(chan int, len(s.floors))
	all := make([]*running, len(s.floors))
	for i, f := range s.floors {
		fctx, cancel := context.WithCancel(base)
		r := &running{cancel: cancel, done: make(chan struct{})}
		all[i] = r
		go func() {
			defer func() {
				cancel()
				ended <- i
				close(r.done)
			}()
			r.err = guard(fctx, f)
		}()
	}

	var errs []error
	first := -1
	select {
	case <-ctx.Done():
	case first = <-ended:
		<-all[first].done
		if all[first].err == nil && ctx.Err() == nil {
			all[first].err = ErrEnded
		}
		if err := all[first].err; err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.floors[first].name, err))
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		r := all[i]
		r.cancel()
		<-r.done
		if i != first && r.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.floors[i].name, r.err))
		}
	}
	return errors.Join(errs...)
}

// guard runs f and turns a panic into an error, so that the floors below still
// stop in order.
func guard(ctx context.Context, f floor) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f.run(ctx)
}
