package lifecycle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// diary records what happened in which order.
type diary struct {
	mu struct {
		sync.Mutex
		lines []string
	}
}

func (d *diary) write(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.lines = append(d.mu.lines, line)
}

func (d *diary) lines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.mu.lines)
}

// floor works until stopped, takes a while to put its affairs in order, and
// returns err.
func (d *diary) floor(name string, tidying time.Duration, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		d.write(name + " told")
		<-time.After(tidying)
		d.write(name + " gone")
		return err
	}
}

func TestFloorsStopFromTheTopEachAfterTheOneAbove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		var s Stack
		s.Add("store", d.floor("store", time.Second, nil))
		s.Add("flows", d.floor("flows", 3*time.Second, nil))
		s.Add("servers", d.floor("servers", 2*time.Second, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Fatalf("a plain stop gave %v", err)
		}
		want := []string{"servers told", "servers gone", "flows told", "flows gone", "store told", "store gone"}
		if got := d.lines(); !slices.Equal(got, want) {
			t.Errorf("order was %q, want %q", got, want)
		}
	})
}

func TestEveryErrorOnTheWayOutIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		flush, reply := errors.New("last flush"), errors.New("last reply")
		var s Stack
		s.Add("store", d.floor("store", 0, flush))
		s.Add("servers", d.floor("servers", 0, reply))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := s.Run(ctx)
		if !errors.Is(err, flush) || !errors.Is(err, reply) {
			t.Fatalf("errors were lost: %v", err)
		}
		if got, want := err.Error(), "servers: last reply\nstore: last flush"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAFloorThatEndsByItselfStopsTheWhole(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk gone")
	for _, c := range []struct {
		name string
		run  func(context.Context) error
		want error
		text string
	}{
		{"with an error", func(context.Context) error { return broken }, broken, "flows: disk gone"},
		{"with nil", func(context.Context) error { return nil }, ErrEnded, "flows: ended"},
		{"with a panic", func(context.Context) error { panic("oh") }, nil, "flows: panic: oh"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var d diary
			var s Stack
			s.Add("store", d.floor("store", time.Second, nil))
			s.Add("flows", c.run)
			s.Add("servers", d.floor("servers", time.Second, nil))
			err := s.Run(t.Context())
			if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.HasPrefix(err.Error(), c.text) {
				t.Errorf("%s: got %v, want it to begin %q", c.name, err, c.text)
			}
			want := []string{"servers told", "servers gone", "store told", "store gone"}
			if got := d.lines(); !slices.Equal(got, want) {
				t.Errorf("%s: order was %q, want %q", c.name, got, want)
			}
		})
	}
}

func TestAnEmptyStackWaitsForItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var s Stack
		if err := s.Run(ctx); err != nil || ctx.Err() == nil {
			t.Errorf("Run gave %v, context %v", err, ctx.Err())
		}
	})
}
