package stats

import (
	"slices"
	"strings"
	"time"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
)

// writing is one queue as messages are stored in it. There is one for each queue
// of the store that was written to, so the store bounds them.
type writing struct {
	tally metric.Tally
	past  *past // nil while idle; guarded by the register's lock
	floor []int64
}

// The counters of a writing.
const (
	wMessages = iota
	wBytes
	wCalls
	wNanos
	wCount
)

// values appends the counters to dst.
func (w *writing) values(dst []int64) []int64 {
	v := w.tally.Values()
	return append(dst, v.Things, v.Bytes, v.Calls, int64(v.Time))
}

// Tally is what counts the messages of a queue; see [storage.Config].
func (r *Register) Tally(key mq.QueueKey) *metric.Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	queues := r.mu.topics[key.Topic]
	if queues == nil {
		queues = map[mq.QueueID]*writing{}
		r.mu.topics[strings.Clone(key.Topic)] = queues
	}
	w := queues[key.ID]
	if w == nil {
		w = &writing{floor: make([]int64, wCount)}
		w.past = newPast(w.floor, time.Now())
		if mq.SystemTopic(key.Topic) {
			w.tally.CountIn(&r.putOwn)
		} else {
			w.tally.CountIn(&r.putUser)
		}
		queues[key.ID] = w
	}
	return &w.tally
}

func (r *Register) sampleWritingLocked(due [windows]bool, now time.Time) {
	var space [wCount]int64
	for _, queues := range r.mu.topics {
		for _, w := range queues {
			values := w.values(space[:0])
			if w.past == nil {
				if values[wMessages] == w.floor[wMessages] {
					continue
				}
				w.past = newPast(w.floor, now.Add(-Step))
			}
			w.past.sample(&r.mu.clock, due, values, now)
			if w.past.idle(now) {
				w.floor, w.past = slices.Clone(values), nil
			}
		}
	}
}

// history is the past of a queue, made up when it is idle.
func (w *writing) history(now time.Time) *past {
	if w.past != nil {
		return w.past
	}
	return newPast(w.floor, now.Add(-Step))
}

// DeleteTopic forgets a topic, before the store does.
func (r *Register) DeleteTopic(topic string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.topics, topic)
	r.forgetLocked(func(p pair) bool { return p.topic == topic })
}

// DeleteGroup forgets a group.
func (r *Register) DeleteGroup(group string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetLocked(func(p pair) bool { return p.group == group })
}
