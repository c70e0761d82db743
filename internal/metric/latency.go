package metric

import (
	"sync"
	"time"
)

// Latency is a [Histogram] that also knows its last minute. Somebody has to call
// Sample about once a second: [Registry.Run] does for those it made. The zero
// Latency is ready; it must not be copied.
type Latency struct {
	Histogram
	mu struct {
		sync.Mutex
		past [6]Snapshot // one every ten seconds
		n    int         // snapshots ever taken
		at   time.Time   // of the last
	}
}

// Sample notes the content at now, ten seconds after the last time or later.
func (l *Latency) Sample(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.n > 0 && now.Sub(l.mu.at) < 10*time.Second-500*time.Millisecond {
		return
	}
	l.mu.past[l.mu.n%len(l.mu.past)] = l.Snapshot()
	l.mu.n++
	l.mu.at = now
}

// LastMinute is what was recorded in the last 50 to 60 seconds.
func (l *Latency) LastMinute() Snapshot {
	now := l.Snapshot()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.n < len(l.mu.past) {
		return now // the process is younger
	}
	return now.Since(&l.mu.past[l.mu.n%len(l.mu.past)])
}
