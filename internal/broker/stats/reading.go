package stats

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// pair is a group and a topic that it reads.
type pair struct{ topic, group string }

// reading is a topic as a group reads it.
type reading struct {
	// queues by id, with gaps. It is replaced under the register's lock.
	queues atomic.Pointer[[]*reader]

	back [bCount]atomic.Int64
	past *past // of back; nil before the first; guarded by the register's lock
}

// reader is one queue as a group reads it.
type reader struct {
	counters [rCount]atomic.Int64
	past     *past // guarded by the register's lock
}

// The counters of a reader.
const (
	rMessages = iota
	rBytes
	rCalls
	rNanos
	rBehindBytes
	rBehindMillis
	rCount
)

// The counters of messages that came back.
const (
	bBack = iota
	bDead
	bCount
)

// load appends what counters hold to dst.
func load(dst []int64, counters []atomic.Int64) []int64 {
	for i := range counters {
		dst = append(dst, counters[i].Load())
	}
	return dst
}

// Read is a pull that found messages.
type Read struct {
	Topic, Group string
	Queue        mq.QueueID
	Messages     int64
	Bytes        int64
	Took         time.Duration // to find them
	BehindBytes  int64         // of the log, behind the last of them
	BehindMillis int64         // the age of the first of them
}

// Read counts a pull that found something. It keeps no string.
func (r *Register) Read(g *Read) {
	if mq.SystemTopic(g.Topic) {
		r.getOwn.Add(g.Messages)
	} else {
		r.getUser.Add(g.Messages)
	}
	q := r.reader(g)
	if q == nil {
		r.lost.Add(g.Messages)
		return
	}
	c := &q.counters
	c[rMessages].Add(g.Messages)
	c[rBytes].Add(g.Bytes)
	c[rCalls].Add(1)
	c[rNanos].Add(int64(max(g.Took, 0)))
	c[rBehindBytes].Add(max(g.BehindBytes, 0))
	c[rBehindMillis].Add(max(g.BehindMillis, 0))
}

// reader finds the counters of a queue as a group reads it, made when they are
// new; nil when there are too many.
func (r *Register) reader(g *Read) *reader {
	if v, ok := r.readers.Load(pair{g.Topic, g.Group}); ok {
		if q := v.(*reading).at(g.Queue); q != nil {
			return q
		}
	}
	if g.Queue < 0 || int(g.Queue) >= r.cfg.MaxReaders || r.count.Load() >= int64(r.cfg.MaxReaders) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rd := r.readingLocked(g.Topic, g.Group)
	if rd == nil {
		return nil
	}
	if q := rd.at(g.Queue); q != nil {
		return q
	}
	q := &reader{past: newPast(make([]int64, rCount), time.Now())}
	var list []*reader
	if old := rd.queues.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = append(list, make([]*reader, max(0, int(g.Queue)+1-len(list)))...)
	list[g.Queue] = q
	rd.queues.Store(&list)
	r.count.Add(1)
	return q
}

func (rd *reading) at(queue mq.QueueID) *reader {
	list := rd.queues.Load()
	if list == nil || queue < 0 || int(queue) >= len(*list) {
		return nil
	}
	return (*list)[queue]
}

func (r *Register) readingLocked(topic, group string) *reading {
	if v, ok := r.readers.Load(pair{topic, group}); ok {
		return v.(*reading)
	}
	if r.mu.pairs >= r.cfg.MaxPairs {
		return nil
	}
	rd := new(reading)
	r.readers.Store(pair{strings.Clone(topic), strings.Clone(group)}, rd)
	r.mu.pairs++
	return rd
}

// Back counts a message that a group gave back: it will be tried again, or it is
// dead.
func (r *Register) Back(topic, group string, dead bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rd := r.readingLocked(topic, group)
	if rd == nil {
		return
	}
	if rd.past == nil {
		rd.past = newPast(make([]int64, bCount), time.Now())
	}
	rd.back[bBack].Add(1)
	if dead {
		rd.back[bDead].Add(1)
	}
}

// sampleReadingLocked also lets go what was idle for a day. What is read at that
// very moment may then be counted for the broker only.
func (r *Register) sampleReadingLocked(due [windows]bool, now time.Time) {
	var space [rCount]int64
	full := r.count.Load() >= int64(r.cfg.MaxReaders) || r.mu.pairs >= r.cfg.MaxPairs
	r.readers.Range(func(key, v any) bool {
		rd := v.(*reading)
		busy := 0
		if rd.past != nil {
			rd.past.sample(&r.mu.clock, due, load(space[:0], rd.back[:]), now)
			if !over(rd.past, now, full) {
				busy++
			}
		}
		busy += r.sampleQueuesLocked(rd, due, now, full)
		if busy == 0 {
			r.readers.Delete(key)
			r.mu.pairs--
		}
		return true
	})
}

// over reports whether counters go: after a day, or after an hour when there is
// no room for others.
func over(p *past, now time.Time, full bool) bool {
	return p.idle(now) || full && now.Sub(p.active) > time.Hour
}

func (r *Register) sampleQueuesLocked(rd *reading, due [windows]bool, now time.Time, full bool) (busy int) {
	list := rd.queues.Load()
	if list == nil {
		return 0
	}
	var space [rCount]int64
	gone := false
	for _, q := range *list {
		if q == nil {
			continue
		}
		q.past.sample(&r.mu.clock, due, load(space[:0], q.counters[:]), now)
		if over(q.past, now, full) {
			gone = true
		} else {
			busy++
		}
	}
	if gone {
		kept := slices.Clone(*list)
		for i, q := range kept {
			if q != nil && over(q.past, now, full) {
				kept[i] = nil
				r.count.Add(-1)
			}
		}
		rd.queues.Store(&kept)
	}
	return busy
}

// forgetLocked lets go readings.
func (r *Register) forgetLocked(which func(pair) bool) {
	r.readers.Range(func(key, v any) bool {
		if !which(key.(pair)) {
			return true
		}
		if list := v.(*reading).queues.Load(); list != nil {
			for _, q := range *list {
				if q != nil {
					r.count.Add(-1)
				}
			}
		}
		r.readers.Delete(key)
		r.mu.pairs--
		return true
	})
}
