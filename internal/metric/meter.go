package metric

import (
	"sync"
	"time"
)

// Meter is a counter that also knows its recent rates. Somebody has to call
// Sample about once a second: [Registry.Run] does for the meters it made. The
// zero Meter is ready; it must not be copied.
type Meter struct {
	Counter
	read func() int64 // nil: the Counter's value
	mu   struct {
		sync.Mutex
		seconds ring // a sample for each of the last 60 seconds
		tens    ring // a sample for each of the last 60 times ten seconds
	}
}

type sample struct {
	at    time.Time
	count int64
}

// ring is the last 61 samples: 60 spans.
type ring struct {
	samples [61]sample
	n       int // samples ever written
}

func (r *ring) add(s sample) {
	r.samples[r.n%len(r.samples)] = s
	r.n++
}

// back is the sample k before the last, or the oldest there is.
func (r *ring) back(k int) sample {
	k = min(k, r.n-1, len(r.samples)-1)
	return r.samples[(r.n-1-k)%len(r.samples)]
}

// Sample notes the count at now.
func (m *Meter) Sample(now time.Time) {
	count := m.Value()
	if m.read != nil {
		count = m.read()
	}
	s := sample{now, count}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.seconds.add(s)
	if t := &m.mu.tens; t.n == 0 || now.Sub(t.back(0).at) >= 10*time.Second-500*time.Millisecond {
		t.add(s)
	}
}

// Rates are events a second over the last 10 seconds, minute and ten minutes,
// as RocketMQ's runtime info has them. A process younger than a window is
// measured over its life.
type Rates struct{ Sec10, Min1, Min10 float64 }

// Rates are the rates at the last sample.
func (m *Meter) Rates() Rates {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.seconds.n == 0 {
		return Rates{}
	}
	last := m.mu.seconds.back(0)
	return Rates{
		Sec10: rate(m.mu.seconds.back(10), last),
		Min1:  rate(m.mu.seconds.back(60), last),
		Min10: rate(m.mu.tens.back(60), last),
	}
}

func rate(from, to sample) float64 {
	span := to.at.Sub(from.at).Seconds()
	if span <= 0 {
		return 0
	}
	return float64(to.count-from.count) / span
}
