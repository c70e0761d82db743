package delay

import (
	"math"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// lane is one queue of the schedule topic. Guarded by Flow.mu, but for durable.
//
// Its messages reach the due-time queue through streams. One stream would do if
// due times never went back along the queue; but clocks are set, level tables
// are changed, and a later message may be due long before those ahead of it. So
// a lane has as many runs as it takes for due times not to go back within each.
// Reading only the next few thousand of each run then misses nothing.
//
// What is overdue in bulk, after a stop or when a herd falls due, is moved to
// the backlog stream and delivered from there, turn by turn with what falls due
// meanwhile.
type lane struct {
	key     mq.QueueKey
	level   mq.DelayLevel
	end     int64 // messages below are known
	done    spans // delivered or set aside
	extra   int64 // how many of done are above its low
	durable spans // the part of done that survives a power loss; guarded by Flow.put

	backlog *stream
	runs    []*stream // at least one
	current *stream   // the run that took the last message

	tally
}

// tally is what is counted of each origin. Guarded by Flow.mu.
type tally struct {
	delivered int64
	rate      rate
	parked    int
}

func (t *tally) tallied() *tally { return t }

// origin is where pending messages come from: the lane of a level or the timed
// messages. An offset is that of the pending record in its queue.
type origin interface {
	queue() mq.QueueKey
	// dueOf is when a record is due by what it says itself.
	dueOf(v record.View) (millis int64, ok bool)
	// alive reports whether a message is still to be delivered, hand notes that it is
	// delivered or given up by a record that stands at start and ends at
	// Flow.put.last. put is held for both.
	alive(off int64) bool
	hand(f *Flow, off int64, start mq.LogOffset)
	// finish notes for those who look that a message is done; mu is held.
	finish(off int64)
	tallied() *tally
	// appendProps appends the properties of the delivered message to dst.
	appendProps(dst []byte, v record.View, now int64) []byte
	// unreadableAs tells destinations of unreadable records apart.
	unreadableAs() mq.QueueID
}

func (l *lane) queue() mq.QueueKey { return l.key }

func (l *lane) dueOf(v record.View) (int64, bool) {
	ms, ok := ownDelay(v.Properties())
	return v.StoreTime() + ms, ok
}

func (l *lane) alive(int64) bool { return true }

func (l *lane) hand(f *Flow, off int64, start mq.LogOffset) { f.hand(l, off, off+1, start) }

func (l *lane) appendProps(dst []byte, v record.View, _ int64) []byte {
	return record.AppendWithout(dst, v.Properties(), mq.PropReceipt)
}

func (l *lane) unreadableAs() mq.QueueID { return l.key.ID }

// pending is how many messages are not delivered.
func (l *lane) pending() int64 { return l.end - l.done.low - l.extra }

// finish marks a message as done.
func (l *lane) finish(off int64) {
	low := l.done.low
	l.extra += l.done.add(off, off+1)
	l.extra -= l.done.low - low
}

// stream is a part of a lane that is read in order, a window at a time. Guarded by Flow.mu.
type stream struct {
	id     int32 // its lane in the due-time queue
	lane   *lane
	unread []span // in the order to be read; Flow.load is held to take from it
	loaded int    // in the due-time queue or being delivered
	maxDue int64  // no message in the stream is due later
}

// empty reports whether the stream has nothing and waits for nothing.
func (s *stream) empty() bool { return s.loaded == 0 && len(s.unread) == 0 }

// extend adds a message behind what is unread.
func (s *stream) extend(lo, hi int64) {
	if n := len(s.unread); n > 0 && s.unread[n-1].hi == lo {
		s.unread[n-1].hi = hi
		return
	}
	s.unread = append(s.unread, span{lo, hi})
}

// maxRuns bounds the runs of a lane. Messages that would need more join the last
// one and may be late by as much as due times go back.
const maxRuns = 64

// window is how many messages a stream of the lane may have loaded.
func (f *Flow) window(l *lane) int {
	n := len(l.runs)
	if n <= 4 {
		return f.cfg.Window
	}
	return max(16, 4*f.cfg.Window/n)
}

// runFor chooses the run for the message behind the last, due at due. direct
// says that it may go straight into the due-time queue.
func (f *Flow) runFor(l *lane, due int64) (s *stream, direct bool) {
	window := f.window(l)
	fits := func(s *stream) bool { return len(s.unread) == 0 && s.loaded < window }
	s = l.current
	if fits(s) {
		return s, true
	}
	if due >= s.maxDue {
		return s, false
	}
	s = nil
	for _, r := range l.runs {
		if fits(r) {
			return r, true
		}
		if r.maxDue <= due && (s == nil || r.maxDue > s.maxDue) {
			s = r
		}
	}
	if s != nil {
		return s, false
	}
	if len(l.runs) == maxRuns {
		return l.current, false
	}
	s = f.newStream(l)
	l.runs = append(l.runs, s)
	return s, true
}

// admit takes in the message behind the last one of the lane, and reports
// whether the caller has to put it into the due-time queue.
func (f *Flow) admit(l *lane, off, due int64, mayDirect bool) (s *stream, direct bool) {
	s, direct = f.runFor(l, due)
	if s.empty() {
		s.maxDue = math.MinInt64
	}
	s.maxDue = max(s.maxDue, due)
	l.current = s
	l.end = off + 1
	if direct && mayDirect {
		s.loaded++
		return s, true
	}
	s.extend(off, off+1)
	return s, false
}

// newStream is called with mu held.
func (f *Flow) newStream(l *lane) *stream {
	f.mu.nextStream++
	s := &stream{id: f.mu.nextStream, lane: l, maxDue: math.MinInt64}
	f.mu.streams[s.id] = s
	return s
}

// prune forgets a run that has become empty, unless it is the current one.
func (f *Flow) prune(s *stream) {
	l := s.lane
	if !s.empty() || s == l.current || s == l.backlog {
		return
	}
	for i, r := range l.runs {
		if r == s {
			l.runs = append(l.runs[:i], l.runs[i+1:]...)
			delete(f.mu.streams, s.id)
			return
		}
	}
}

// newLane is called with mu held.
func (f *Flow) newLane(id mq.QueueID) *lane {
	l := &lane{key: mq.QueueKey{Topic: mq.TopicSchedule, ID: id}, level: mq.DelayLevel(id + 1)}
	l.backlog, l.current = f.newStream(l), f.newStream(l)
	l.runs = []*stream{l.current}
	f.mu.lanes[id] = l
	return l
}

// rate counts events of the last seconds.
type rate struct {
	second int64
	counts [11]int64 // of the second, the one before, ...
}

func (r *rate) turn(nowMillis int64) {
	now := nowMillis / 1000
	for n := min(now-r.second, int64(len(r.counts))); n > 0; n-- {
		copy(r.counts[1:], r.counts[:])
		r.counts[0] = 0
	}
	r.second = max(r.second, now)
}

func (r *rate) add(nowMillis, n int64) {
	r.turn(nowMillis)
	r.counts[0] += n
}

// perSecond is the mean of the last ten whole seconds.
func (r *rate) perSecond(nowMillis int64) float64 {
	r.turn(nowMillis)
	var sum int64
	for _, n := range r.counts[1:] {
		sum += n
	}
	return float64(sum) / float64(len(r.counts)-1)
}
