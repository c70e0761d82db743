package delay

import (
	"errors"
	"strings"
	"sync"
	"time"
)

// rates hold deliveries to what topics want in a second ([Config.Rate]).
type rates struct {
	of func(topic string) int64
	mu struct {
		sync.Mutex
		next map[string]time.Time // when the next delivery would be on time, by topic
	}
}

// burst is for how long a rate may be exceeded: deliveries come in handfuls then, and
// not each with a wake-up of its own.
const burst = 10 * time.Millisecond

// maxRates bounds the topics that are remembered.
const maxRates = 4096

// errThrottled is why messages of a topic with a rate wait.
var errThrottled = errors.New("its topic has had what its rate allows (topic attribute delay.rate)")

// wait takes a delivery to topic into account and returns 0, or says how long it has
// to wait, and then it does not count.
func (r *rates) wait(topic string, now time.Time) time.Duration {
	if r.of == nil {
		return 0
	}
	rate := r.of(topic)
	if rate <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.mu.next[topic]
	if ahead := next.Sub(now); ahead > burst && ahead <= time.Second+burst {
		return ahead - burst
	} else if ahead < 0 || ahead > burst {
		next = now // long ago; or the clock, or the rate, was changed
	}
	if r.mu.next == nil {
		r.mu.next = map[string]time.Time{}
	}
	if len(r.mu.next) >= maxRates {
		for t, at := range r.mu.next {
			if at.Before(now) {
				delete(r.mu.next, t)
			}
		}
	}
	r.mu.next[strings.Clone(topic)] = next.Add(time.Second / time.Duration(min(rate, int64(time.Second))))
	return 0
}
