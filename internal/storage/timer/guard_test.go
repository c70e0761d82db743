package timer

import (
	"testing"
	"time"
)

// hands moves a wall clock and the time that passes apart.
type hands struct {
	wall time.Time
	mono time.Duration
}

func (h *hands) pass(d time.Duration) {
	h.wall = h.wall.Add(d)
	h.mono += d
}

func TestGuard(t *testing.T) {
	t.Parallel()
	h := &hands{wall: time.Unix(1_800_000_000, 0)}
	var told []time.Duration
	g, err := NewGuard(PlainWall(func() time.Time { return h.wall }), GuardConfig{
		Limit: time.Minute, Hold: 30 * time.Second,
		Mono: func() time.Duration { return h.mono },
		Step: func(step time.Duration, held bool) {
			if held {
				step += 1 // a mark
			}
			told = append(told, step)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	shows := func(what string, want time.Time) {
		t.Helper()
		if got := g.Now(); !got.Equal(want) {
			t.Errorf("%s: it shows %v, want %v", what, got.UTC(), want.UTC())
		}
	}
	h.pass(time.Hour)
	shows("time passes", h.wall)
	h.pass(24 * time.Hour)
	h.wall = h.wall.Add(20 * time.Second) // slewed over a day
	shows("slewed", h.wall)

	h.wall = h.wall.Add(-2 * time.Hour)
	shows("a step back counts at once", h.wall)
	h.pass(time.Second)
	h.wall = h.wall.Add(50 * time.Second)
	shows("a small step forward too", h.wall)

	h.wall = h.wall.Add(2 * time.Hour)
	shows("the step back is undone", h.wall)

	right := h.wall
	h.wall = h.wall.Add(365 * 24 * time.Hour)
	shows("a year ahead is held", right)
	h.pass(29 * time.Second)
	shows("and still", right.Add(29*time.Second))
	if st := g.State(); !st.Holding || st.Forward != 3 || st.Back != 1 || st.Last != 365*24*time.Hour {
		t.Errorf("state %+v", st)
	}
	h.pass(time.Second)
	shows("until the hold is over", h.wall)

	right = h.wall
	h.wall = h.wall.Add(time.Hour)
	shows("an hour ahead", right)
	h.pass(time.Second)
	h.wall = h.wall.Add(-time.Hour)
	shows("set right again", h.wall)
	h.pass(time.Minute)
	shows("and no step is told", h.wall)

	right = h.wall
	h.wall = h.wall.Add(time.Hour)
	shows("an hour ahead", right)
	if !g.Confirm() || g.Confirm() {
		t.Error("there was one step to confirm")
	}
	shows("confirmed", h.wall)
	want := []time.Duration{-2 * time.Hour, 50 * time.Second, 2 * time.Hour, 365*24*time.Hour + 1, time.Hour + 1, time.Hour + 1}
	if len(told) != len(want) {
		t.Fatalf("told %v, want %v", told, want)
	}
	for i := range want {
		if told[i] != want[i] {
			t.Errorf("step %d is told as %v, want %v", i, told[i], want[i])
		}
	}
}

func TestMonotonicGoesOn(t *testing.T) {
	t.Parallel()
	m := monotonic()
	if a, b := m(), m(); b < a || a < 0 {
		t.Errorf("%v, then %v", a, b)
	}
}
