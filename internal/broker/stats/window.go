package stats

import "time"

// Window is a span of time up to now.
type Window int

// Windows.
const (
	Minute Window = iota
	Hour
	Day
	windows
)

// Step is the time between two samples. Everything is sampled at once.
const Step = 10 * time.Second

// slots is how many samples of a window are kept, every how many steps of a
// window takes one.
var (
	slots = [windows]int{6, 6, 24}
	every = [windows]int{1, 60, 360}
)

// minSpan is what a rate is measured over at least: ten messages in the first
// second of a topic's life are no ten a second.
const minSpan = Step

// idleFor is how long nothing may happen before the samples are dropped: then
// all windows are empty.
const idleFor = 25 * time.Hour

// clock counts the samples and knows when they were taken.
type clock struct {
	taken [windows]int // samples ever taken
	at    [windows][24]time.Time
	begin time.Time
}

// tick notes that a sample is being taken and tells of which windows.
func (c *clock) tick(now time.Time) (due [windows]bool) {
	step := c.taken[Minute] + 1
	for w := range windows {
		if step%every[w] == 0 {
			due[w] = true
			c.at[w][c.taken[w]%slots[w]] = now
			c.taken[w]++
		}
	}
	return due
}

// slot is where the last sample of a window is, and where the oldest.
func (c *clock) slot(w Window) (last, oldest int) {
	n := c.taken[w]
	if n < slots[w] {
		return n - 1, -1
	}
	return (n - 1) % slots[w], n % slots[w]
}

// since is when a window begins.
func (c *clock) since(w Window) time.Time {
	if _, oldest := c.slot(w); oldest >= 0 {
		return c.at[w][oldest]
	}
	return c.begin
}

// past is what a number of counters were at the samples of the windows. A
// window without memory begins where the counters began. It is guarded by the
// register's lock.
type past struct {
	floor   []int64          // what they were when past began
	samples [windows][]int64 // len(floor) a slot
	born    time.Time        // when past began
	active  time.Time        // the last sample that differs from the one before
	last    []int64          // that sample
}

func newPast(values []int64, now time.Time) *past {
	p := &past{floor: values, born: now, active: now}
	p.last = append([]int64(nil), values...)
	return p
}

// sample notes the counters. c has counted this sample already.
func (p *past) sample(c *clock, due [windows]bool, values []int64, now time.Time) {
	k := len(values)
	for w := range windows {
		if !due[w] {
			continue
		}
		if p.samples[w] == nil {
			p.samples[w] = make([]int64, k*slots[w])
			for i := range slots[w] {
				copy(p.samples[w][i*k:], p.floor)
			}
		}
		last, _ := c.slot(w)
		copy(p.samples[w][last*k:], values)
	}
	for i, v := range values {
		if v != p.last[i] {
			p.active = now
			copy(p.last, values)
			return
		}
	}
}

func (p *past) idle(now time.Time) bool { return now.Sub(p.active) >= idleFor }

// grown is how much the counters have grown within a window.
func (p *past) grown(c *clock, w Window, values []int64) []int64 {
	k := len(values)
	base := p.floor
	if _, oldest := c.slot(w); oldest >= 0 && p.samples[w] != nil {
		base = p.samples[w][oldest*k : oldest*k+k]
	}
	out := make([]int64, k)
	for i := range out {
		out[i] = values[i] - base[i]
	}
	return out
}
