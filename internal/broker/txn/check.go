package txn

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/timer"
)

// Check asks a producer what became of its transaction (CHECK_TRANSACTION_STATE).
type Check struct {
	Group     string
	Topic     string         // the half topic
	Offset    mq.QueueOffset // of the half message
	Log       mq.LogOffset
	ID        string // unique key
	MessageID string // offset message id of the half message
	Body      []byte // the message as its topic would have it; the receiver's
}

// How a due check finds its producer:
//
// Each group has a line of halves whose check is due. A line moves when somebody
// of the group is here and has room: the client that sent the message, if it is
// here; else those that sent transactions to that topic; else anybody of the group.
// A request that was put on its way counts as a try, and the next check is due an
// interval later, from the moment it was sent; while nobody is here nothing counts
// and the line waits.
//
// A producer has only so many checks unanswered. When it lets some run into the
// next, it gets half as many at a time; with each answer one more again. So a slow
// one is asked slowly, and its tries are not used up while they wait in its queue.

// line is the due checks of a group. Guarded by Flow.mu.
type line struct {
	group  int32
	queue  []int64 // offsets, in the order they fell due; some may be ended since
	ready  bool    // in Flow.mu.ready
	turn   int     // round robin among producers of equal right
	failed bool    // the last try failed for a reason that passes: look again soon
}

// peer is a connection that sends transactions or is asked about them. Guarded by
// Flow.mu.
type peer struct {
	id     string // client id, empty when not known
	topics map[string]bool
	window int                // how many checks it may have unanswered
	cut    int64              // when that was made less, ms
	asked  map[int64]struct{} // those
}

// leastWindow is what a producer that answers nothing is still asked at a time, so
// that its transactions come to an end.
const leastWindow = 32

// maxTopics bounds what is remembered of where a connection sends to.
const maxTopics = 256

// peerOf returns what is known of a connection; mu is held. What is kept goes with
// the connection.
func (f *Flow) peerOf(conn any) *peer {
	p := f.mu.peers[conn]
	if p == nil {
		p = &peer{window: f.cfg.Window}
		f.mu.peers[conn] = p
		if c, ok := conn.(interface{ OnClose(fn func()) }); ok {
			go c.OnClose(func() { f.Forget(conn) }) // it may call at once
		}
	}
	return p
}

// sends notes that a connection sends transactions to a topic, and returns the id of
// its client, empty when that is not known.
func (f *Flow) sends(conn any, group, topic string) string {
	if conn == nil {
		return ""
	}
	f.mu.Lock()
	p := f.peerOf(conn)
	id := p.id
	if !p.topics[topic] && len(p.topics) < maxTopics {
		if p.topics == nil {
			p.topics = map[string]bool{}
		}
		p.topics[string([]byte(topic))] = true
	}
	f.mu.Unlock()
	if id != "" {
		return id
	}
	if id = f.p.Producers.ProducerID(group, conn); id == "" || len(id) > maxClientID {
		return ""
	}
	f.mu.Lock()
	p.id = id
	f.mu.Unlock()
	return id
}

// Forget drops what is known of a connection that is closed.
func (f *Flow) Forget(conn any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.mu.peers[conn]
	if p == nil {
		return
	}
	delete(f.mu.peers, conn)
	for off := range p.asked {
		delete(f.mu.asked, off)
		if h := f.mu.halves.find(off); h != nil {
			h.flags &^= asked
		}
	}
}

// Joined says that a producer of a group is here now: overdue checks go on.
func (f *Flow) Joined(group string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id, ok := f.mu.halves.groups.ids[group]; ok {
		f.moveLocked(f.mu.lines[id])
	}
}

// moveLocked has somebody look at a line.
func (f *Flow) moveLocked(l *line) {
	if l == nil || l.ready || len(l.queue) == 0 {
		return
	}
	l.ready = true
	f.mu.ready = append(f.mu.ready, l)
	select {
	case f.wakeChecks <- struct{}{}:
	default:
	}
}

// fire puts halves whose check is due into the lines of their groups.
func (f *Flow) fire(due []timer.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, it := range due {
		h := f.mu.halves.find(int64(it.Offset))
		if h == nil || !h.is(timed) || h.due != it.Due {
			continue // ended, or scheduled anew, while it was handed over
		}
		h.flags &^= timed
		if h.is(waiting) {
			f.moveLocked(f.mu.lines[h.group]) // too old now
			continue
		}
		f.releaseLocked(h, false)
		f.lineUpLocked(h)
	}
}

// lineUpLocked puts a half into the line of its group.
func (f *Flow) lineUpLocked(h *half) {
	l := f.mu.lines[h.group]
	if l == nil {
		l = &line{group: h.group}
		f.mu.lines[h.group] = l
	}
	h.flags |= waiting
	l.queue = append(l.queue, h.off)
	f.moveLocked(l)
}

// answered notes that a producer spoke about a half.
func (f *Flow) answered(off int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.mu.halves.find(off); h != nil {
		f.releaseLocked(h, true)
	}
}

// releaseLocked gives the producer that was asked about h room for another check.
func (f *Flow) releaseLocked(h *half, answered bool) {
	if h == nil || !h.is(asked) {
		return
	}
	h.flags &^= asked
	p := f.mu.asked[h.off]
	delete(f.mu.asked, h.off)
	if p == nil {
		return
	}
	delete(p.asked, h.off)
	if answered {
		p.window = min(p.window+1, f.cfg.Window)
	} else if now := f.timer.Now(); now-p.cut >= f.cfg.Interval.Milliseconds() {
		p.window, p.cut = max(min(leastWindow, f.cfg.Window), min(p.window, len(p.asked)+1)/2), now
	}
	f.moveLocked(f.mu.lines[h.group])
}

// checkTurn is how many halves of a line are dealt with before the next line.
const checkTurn = 64

// checkAgain is how soon a line is looked at again that failed for a reason that
// passes.
const checkAgain = time.Second

// sendChecks moves lines until ctx is done.
func (f *Flow) sendChecks(ctx context.Context) {
	tick := time.NewTicker(checkAgain)
	defer tick.Stop()
	for {
		f.mu.Lock()
		var l *line
		if len(f.mu.ready) > 0 {
			l = f.mu.ready[0]
			f.mu.ready = f.mu.ready[1:]
			l.ready = false
		} else {
			f.mu.ready = nil
		}
		f.mu.Unlock()
		if l != nil {
			f.move(l)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-f.wakeChecks:
		case <-tick.C:
			f.mu.Lock()
			for _, l := range f.mu.lines {
				if l.failed {
					l.failed = false
					f.moveLocked(l)
				}
			}
			f.mu.Unlock()
		}
	}
}

// move deals with a few halves of a line.
func (f *Flow) move(l *line) {
	f.mu.Lock()
	group := ""
	if len(l.queue) > 0 {
		group = f.mu.halves.groups.text(l.group)
	}
	f.mu.Unlock()
	here := f.p.Producers.Producers(group)
	for range checkTurn {
		h, ok := f.front(l)
		if !ok {
			return
		}
		now := f.timer.Now()
		old := f.cfg.MaxAge > 0 && now >= h.born+f.cfg.MaxAge.Milliseconds()
		switch {
		case int(h.tries) >= f.cfg.MaxChecks || old:
			if err := f.abandon(h.off); err != nil {
				f.hold(l, true)
				f.note.Warn("a transaction that nobody answers for could not be given up; trying again", "group", group, "halfOffset", h.off, "err", err)
				return
			}
		case len(here) == 0:
			f.hold(l, false)
			return
		default:
			sent, err := f.ask(l, h, group, here)
			if err != nil {
				f.hold(l, true)
				f.note.Warn("a transaction could not be asked about; trying again", "group", group, "halfOffset", h.off, "err", err)
				return
			}
			if !sent {
				f.hold(l, false) // an answer, or the next check of those asked, moves it
				return
			}
		}
	}
	f.mu.Lock()
	f.moveLocked(l)
	f.mu.Unlock()
}

// front returns the first half of a line that still waits.
func (f *Flow) front(l *line) (half, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(l.queue) > 0 {
		if h := f.mu.halves.find(l.queue[0]); h != nil && h.is(waiting) && h.group == l.group {
			return *h, true
		}
		l.queue = l.queue[1:]
	}
	l.queue = nil
	if f.mu.lines[l.group] == l {
		delete(f.mu.lines, l.group)
	}
	return half{}, false
}

// hold leaves a line as it is; failed says that time heals it.
func (f *Flow) hold(l *line, failed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.failed = failed
	if f.cfg.MaxAge == 0 || failed || len(l.queue) == 0 {
		return
	}
	// The first is given up when it is too old; then the next one is the first.
	if h := f.mu.halves.find(l.queue[0]); h != nil && !h.is(timed) {
		h.due = max(h.born+f.cfg.MaxAge.Milliseconds(), f.timer.Now()+1)
		f.schedule(h)
	}
}

// ask sends the check of a half to the best producer that has room, and reports
// whether there was one.
func (f *Flow) ask(l *line, h half, group string, here []clients.Client) (bool, error) {
	v, release, err := f.record(h.pos)
	if err != nil {
		return false, err
	}
	defer release()
	var check *Check
	for _, c := range f.candidates(l, v, here) {
		if !f.reserve(h.off, c) {
			continue
		}
		if check == nil {
			check = newCheck(v, group, h.tries+1)
		}
		if err := f.p.Ask(c, check); err != nil {
			f.unreserve(h.off, c)
			f.note.Debug("a producer takes no check", "group", group, "client", c.ID, "err", err)
			continue
		}
		f.sent(l, h.off)
		return true, nil
	}
	return false, nil
}

// candidates are the producers that have the first right to be asked: one of the
// three kinds, whoever of it has room.
func (f *Flow) candidates(l *line, v record.View, here []clients.Client) []clients.Client {
	id, _ := v.Property(mq.PropTxClient)
	var own, same []clients.Client
	topic, _ := v.Property(mq.PropRealTopic)
	f.mu.Lock()
	for _, c := range here {
		if len(id) > 0 && c.ID == string(id) || len(id) == 0 && c.Addr == v.BornHost() {
			own = append(own, c)
		}
		if p := f.mu.peers[c.Conn]; p != nil && p.topics[string(topic)] {
			same = append(same, c)
		}
	}
	l.turn++
	turn := l.turn
	f.mu.Unlock()
	best := here
	if len(own) > 0 {
		best = own
	} else if len(same) > 0 {
		best = same
	}
	rotated := make([]clients.Client, len(best))
	for i := range best {
		rotated[i] = best[(i+turn)%len(best)]
	}
	return rotated
}

// reserve takes a place among the unanswered checks of a producer.
func (f *Flow) reserve(off int64, c clients.Client) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.mu.halves.find(off)
	p := f.peerOf(c.Conn)
	if h == nil || len(p.asked) >= p.window {
		return false
	}
	if p.asked == nil {
		p.asked = map[int64]struct{}{}
	}
	p.asked[off] = struct{}{}
	f.mu.asked[off] = p
	h.flags |= asked
	return true
}

func (f *Flow) unreserve(off int64, c clients.Client) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.mu.asked[off]; p != nil {
		delete(p.asked, off)
		delete(f.mu.asked, off)
	}
	if h := f.mu.halves.find(off); h != nil {
		h.flags &^= asked
	}
}

// sent counts a try.
func (f *Flow) sent(l *line, off int64) {
	f.count.checks.Inc()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(l.queue) > 0 && l.queue[0] == off {
		l.queue = l.queue[1:]
	}
	h := f.mu.halves.find(off)
	if h == nil {
		return // the answer was faster
	}
	f.unschedule(h)
	now := f.timer.Now()
	f.count.checkLate.Record(max(0, time.Duration(now-h.due)*time.Millisecond))
	h.flags &^= waiting
	h.tries = min(h.tries+1, maxTries-1)
	h.due = now + f.cfg.Interval.Milliseconds()
	f.mu.halves.touch(h)
	f.schedule(h)
}

// newCheck makes the request of a half record, as RocketMQ does: the message is
// addressed to its topic, and stands where the half stands.
func newCheck(v record.View, group string, tries uint16) *Check {
	m := v.Message()
	if dest, err := destinationOf(v.Properties()); err == nil {
		m.Topic, m.QueueID = dest.Topic, dest.ID
	}
	m.Properties = record.AppendWithout(nil, v.Properties(), mq.PropCheckTimes, mq.PropReceipt, mq.PropTxClient, mq.PropTxDue)
	m.Properties = record.AppendProperty(m.Properties, mq.PropCheckTimes, strconv.Itoa(int(tries)))
	unique, _ := v.Property(mq.PropUniqueKey)
	c := &Check{Group: group, Topic: mq.TopicTransHalf, Offset: v.QueueOffset(), Log: v.LogOffset(), ID: string(unique), MessageID: v.MessageID()}
	body, err := m.Append(nil, false)
	if err != nil {
		// Too long by its tries alone: the record as it is says all but those.
		m.Properties = v.Properties()
		if body, err = m.Append(nil, false); err != nil {
			panic(fmt.Sprintf("BUG: a stored record cannot be written: %v", err))
		}
	}
	c.Body = body
	return c
}
