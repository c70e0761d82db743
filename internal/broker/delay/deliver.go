package delay

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
	"github.com/sundial-mq/sundial/internal/storage/timer"
)

// hands is what one delivering goroutine works with.
type hands struct {
	outcomes []outcome
	refused  []mq.QueueKey // destinations that failed in this slice

	// Messages that are made and not stored yet; the buffers are used again.
	batch  []made
	bytes  int
	ptrs   []*record.Message
	placed []storage.Appended
}

// made is a message ready to be stored, and whose outcome it is.
type made struct {
	m       record.Message
	o       *outcome
	release func() // gives the record back whose body it has
	props   []byte
}

// batchBytes is how much is stored in one step, so that others get their turn at the log.
const batchBytes = 128 << 10

// next is room for another message.
func (h *hands) next() *made {
	if n := len(h.batch); n < cap(h.batch) {
		h.batch = h.batch[:n+1]
	} else {
		h.batch = append(h.batch, made{})
	}
	return &h.batch[len(h.batch)-1]
}

// drop takes the last message off.
func (h *hands) drop() { h.batch = h.batch[:len(h.batch)-1] }

// outcome is what came of one message.
type outcome struct {
	from   origin
	stream *stream // of a level
	lane   int32   // in the due-time queue
	off    int64
	pos    mq.LogOffset
	kind   kind
	due    int64         // when it is due, 0 when that is not known
	dest   mq.QueueKey   // parked: where it should go
	first  bool          // parked: and nothing else was parked there
	wait   time.Duration // parked: until its topic's rate allows it
	err    error
}

type kind uint8

const (
	delivered kind = iota
	lost           // cannot be delivered: set aside
	parked         // its destination does not take it now
	early          // not due after all
	gone           // recalled, or delivered already
	nudged         // no message
)

// fire delivers a slice of due messages; then reads their streams ahead.
func (f *Flow) fire(h *hands, due []timer.Item) {
	h.outcomes, h.refused = h.outcomes[:0], h.refused[:0]
	f.mu.Lock()
	for _, it := range due {
		o := outcome{off: int64(it.Offset), pos: it.Pos, due: it.Due, lane: it.Lane}
		if it.Lane < 0 {
			o.from = f.timed
			f.timed.takenLocked(it.Lane, 1)
		} else if o.stream = f.mu.streams[it.Lane]; o.stream != nil {
			o.from = o.stream.lane
		} else {
			continue // a nudge for a run that is gone
		}
		if it.Offset == nudgeOffset {
			o.kind = nudged
		}
		h.outcomes = append(h.outcomes, o)
	}
	f.mu.Unlock()
	now := f.timer.Now()
	for i := range h.outcomes {
		if o := &h.outcomes[i]; o.kind != nudged {
			f.prepare(h, o, now, false)
			if h.bytes >= batchBytes {
				f.putBatch(h)
			}
		}
	}
	f.putBatch(h)
	f.settleOutcomes(h.outcomes)
}

// settleOutcomes notes what came of the messages of a slice.
func (f *Flow) settleOutcomes(outcomes []outcome) {
	now := f.timer.Now()
	var refill []*stream
	want := func(s *stream) {
		for _, r := range refill {
			if r == s {
				return
			}
		}
		refill = append(refill, s)
	}
	var again []timer.Item
	f.mu.Lock()
	for i := range outcomes {
		o := &outcomes[i]
		switch o.kind {
		case nudged:
			want(o.stream)
			continue
		case early:
			again = append(again, timer.Item{Due: o.due, Offset: mq.QueueOffset(o.off), Pos: o.pos, Lane: o.lane})
			if o.stream == nil {
				f.timed.takenLocked(o.lane, -1)
			}
			continue
		case parked:
			o.first = f.parkLocked(o)
		default:
			f.finalLocked(o, now)
		}
		s := o.stream
		if s == nil {
			continue
		}
		s.loaded--
		if len(s.unread) > 0 && s.loaded <= f.window(s.lane)/2 || s.empty() {
			want(s)
		}
	}
	f.mu.Unlock()
	for i := range outcomes {
		f.tell(&outcomes[i])
	}
	if len(again) > 0 {
		f.timer.Add(again...)
	}
	for _, s := range refill {
		f.refill(s)
	}
}

// tell logs what somebody should know of; without locks, because a log may be slow.
func (f *Flow) tell(o *outcome) {
	switch {
	case o.kind == lost:
		if unsaid, say := f.told.next(f.clock()); say {
			f.note.Error("a pending message cannot be delivered and is set aside", "queue", o.from.queue(), "offset", o.off, "position", o.pos, "err", o.err, "unsaid", unsaid)
		}
	case o.first && o.wait == 0:
		f.note.Warn("a destination takes no messages; trying again", "topic", o.dest.Topic, "queue", o.dest.ID, "err", o.err)
	}
}

// A topic that is deleted may leave a million messages to set aside. So many of them
// are logged in such a time; the next that is says how many were not. All are counted.
const (
	lossesTold   = 20
	lossesPeriod = 10 * time.Second
)

// teller decides which losses are logged.
type teller struct {
	sync.Mutex
	since  time.Time
	said   int
	unsaid int
}

// next reports whether the loss at hand is logged, and how many before it were not.
func (t *teller) next(now time.Time) (unsaid int, say bool) {
	t.Lock()
	defer t.Unlock()
	if gone := now.Sub(t.since); gone >= lossesPeriod || gone < 0 {
		t.since, t.said = now, 0
	}
	if t.said == lossesTold {
		t.unsaid++
		return 0, false
	}
	t.said++
	unsaid, t.unsaid = t.unsaid, 0
	return unsaid, true
}

// finalLocked books an item that is through: delivered, or lost and set aside.
func (f *Flow) finalLocked(o *outcome, now int64) {
	switch o.kind {
	case delivered:
		o.from.finish(o.off)
		t := o.from.tallied()
		t.delivered++
		t.rate.add(now, 1)
	case lost:
		f.asideLocked(o.from, o.off, o.pos, o.err.Error(), now)
	}
}

// deliver puts one message where it belongs and fills in what came of it, also if
// its destination is parked.
func (f *Flow) deliver(h *hands, o *outcome) {
	h.refused = h.refused[:0]
	f.prepare(h, o, f.timer.Now(), true)
	f.putBatch(h)
}

// prepare reads a pending message and adds what is to be stored to the batch, or
// fills in what came of it. A destination that is parked gets nothing unless retry is set.
func (f *Flow) prepare(h *hands, o *outcome, now int64, retry bool) {
	key := o.from.queue()
	if o.pos == unknownPos {
		var one [1]consumequeue.Entry
		n, err := f.store.Entries(key, mq.QueueOffset(o.off), one[:])
		if n == 0 {
			f.readFailed(o, fmt.Errorf("read queue %d of %s: %w", key.ID, key.Topic, err))
			return
		}
		o.pos = one[0].Pos
	}
	v, release, err := f.store.Record(o.pos)
	if err != nil {
		f.readFailed(o, err)
		return
	}
	p := h.next()
	p.o, p.release = o, release
	if !f.make(h, p, v, now, retry) {
		release()
		h.drop()
		return
	}
	h.bytes += len(p.m.Body) + len(p.m.Properties)
}

// make makes of the pending record v the message to be stored. It reports false
// when there is none, and fills in what came of it.
func (f *Flow) make(h *hands, p *made, v record.View, now int64, retry bool) bool {
	o, key := p.o, p.o.from.queue()
	dest, err := destinationOf(v, key, o.off)
	if err != nil {
		f.giveUp(o, err)
		return false
	}
	if f.store.Deleted(dest.Topic, o.pos) {
		f.giveUp(o, fmt.Errorf("topic %s was deleted after the message had been sent", dest.Topic))
		return false
	}
	if due, ok := o.from.dueOf(v); ok {
		if o.due = due; due > now {
			o.kind = early
			return false
		}
	}
	o.dest = dest
	if !retry && (slices.Contains(h.refused, dest) || f.parkedDestinations.Load() > 0 && f.isParked(dest)) {
		o.kind, o.dest.Topic = parked, strings.Clone(dest.Topic)
		h.refused = append(h.refused, o.dest) // so that the next of this slice stays behind it
		return false
	}
	if wait := f.rates.wait(dest.Topic, f.clock()); wait > 0 {
		o.kind, o.err, o.wait = parked, errThrottled, wait
		o.dest.Topic = strings.Clone(dest.Topic)
		h.refused = append(h.refused, o.dest)
		return false
	}
	p.props = o.from.appendProps(p.props[:0], v, now)
	plain := len(p.props)
	p.props = record.AppendReceipt(p.props, receiptOf(f.store.ID(), key, mq.QueueOffset(o.off), o.due))
	if len(p.props) > record.MaxProperties-crcTailSize {
		// RocketMQ took it without room to spare. It is delivered as it is, and
		// might come twice if the process is killed in the next seconds.
		p.props = p.props[:plain]
	}
	p.m = record.Message{
		Topic: dest.Topic, QueueID: dest.ID, Flag: v.Flag(), SysFlag: v.SysFlag(),
		BornTime: v.BornTime(), BornHost: v.BornHost(), StoreHost: v.StoreHost(), ReconsumeTimes: v.ReconsumeTimes(),
		PreparedOffset: v.PreparedOffset(), Body: v.Body(), Properties: p.props,
	}
	return true
}

// putBatch stores the messages of the batch and notes that they are delivered, in
// one step for snapshots and recalls. If that fails it stores one after the other,
// so that only the destinations that cannot take theirs are parked.
func (f *Flow) putBatch(h *hands) {
	if len(h.batch) == 0 {
		return
	}
	if len(h.batch) == 1 || !f.putAll(h) {
		for i := range h.batch {
			f.putOne(h, &h.batch[i])
		}
	}
	var done int64
	var when time.Time
	for i := range h.batch {
		p := &h.batch[i]
		if o := p.o; o.kind == delivered {
			if done == 0 {
				when = f.clock()
			}
			done++
			if o.due > 0 {
				f.count.late.Record(when.Sub(time.UnixMilli(o.due)))
			}
		} else if o.kind == parked {
			o.dest.Topic = strings.Clone(o.dest.Topic)
		}
		p.release()
		p.m, p.o, p.release = record.Message{}, nil, nil
	}
	f.count.delivered.Add(done)
	h.batch, h.bytes = h.batch[:0], 0
}

// putAll stores all of the batch in one append; false when it could not.
func (f *Flow) putAll(h *hands) bool {
	f.put.Lock()
	defer f.put.Unlock()
	h.ptrs = h.ptrs[:0]
	for i := range h.batch {
		p := &h.batch[i]
		if !p.o.from.alive(p.o.off) {
			p.o.kind = gone
			continue
		}
		p.o.kind = delivered
		h.ptrs = append(h.ptrs, &p.m)
	}
	var err error
	if h.placed, err = f.store.AppendAllInternal(h.ptrs, h.placed[:0]); err != nil {
		return false
	}
	n := 0
	for i := range h.batch {
		if o := h.batch[i].o; o.kind == delivered {
			f.put.last = h.placed[n].End
			o.from.hand(f, o.off, h.placed[n].Log)
			n++
		}
	}
	return true
}

// putOne stores one message.
func (f *Flow) putOne(h *hands, p *made) {
	f.put.Lock()
	defer f.put.Unlock()
	o := p.o
	if !o.from.alive(o.off) {
		o.kind = gone
		return
	}
	if slices.Contains(h.refused, o.dest) {
		o.kind = parked
		return
	}
	at, err := f.store.AppendInternal(&p.m)
	if err != nil {
		f.count.refused.Inc()
		o.kind, o.err = parked, err
		h.refused = append(h.refused, mq.QueueKey{Topic: strings.Clone(o.dest.Topic), ID: o.dest.ID})
		return
	}
	o.kind = delivered
	f.put.last = at.End
	o.from.hand(f, o.off, at.Log)
}

// readFailed tries a record that cannot be read again a few times.
func (f *Flow) readFailed(o *outcome, err error) {
	o.kind, o.err = parked, err
	o.dest = mq.QueueKey{ID: o.from.unreadableAs()} // no topic: what cannot be read
}

// crcTailSize is what the engine adds to the properties when it writes checksums.
const crcTailSize = 20

// giveUp sets a message aside.
func (f *Flow) giveUp(o *outcome, err error) {
	o.kind, o.err = lost, err
	f.put.Lock()
	defer f.put.Unlock()
	o.from.hand(f, o.off, f.put.last)
}

// readTries is how often a record is read before it is set aside.
const readTries = 4

// destinationOf checks that v is the pending record it should be and returns
// where it is to go. The topic's string lives as long as v.
func destinationOf(v record.View, key mq.QueueKey, off int64) (mq.QueueKey, error) {
	if string(v.Topic()) != key.Topic || v.QueueID() != key.ID || int64(v.QueueOffset()) != off {
		return mq.QueueKey{}, fmt.Errorf("the record there is message %d of %s/%d", v.QueueOffset(), v.Topic(), v.QueueID())
	}
	topic, ok := v.Property(mq.PropRealTopic)
	if !ok {
		return mq.QueueKey{}, errors.New("it has no destination (property REAL_TOPIC)")
	}
	if s := string(topic); s == mq.TopicSchedule || s == mq.TopicTimer || s == mq.TopicTransHalf {
		return mq.QueueKey{}, fmt.Errorf("its destination is %s", s)
	}
	value, _ := v.Property(mq.PropRealQueueID)
	queue, err := strconv.ParseInt(string(value), 10, 32)
	if err != nil || queue < 0 {
		return mq.QueueKey{}, fmt.Errorf("its destination queue (property REAL_QID) is %q", value)
	}
	return mq.QueueKey{Topic: bin.String(topic), ID: mq.QueueID(queue)}, nil
}

// asideMax is how many messages that were set aside are listed; all are counted.
const asideMax = 1000

// Aside is a pending message that could not be delivered.
type Aside struct {
	Topic  string         `json:"topic,omitempty"` // of the queue of pending messages; empty is the schedule topic
	Level  mq.DelayLevel  `json:"level"`
	Offset mq.QueueOffset `json:"offset"`
	Log    mq.LogOffset   `json:"log"` // where its record lies, -1 when not known
	Reason string         `json:"reason"`
	Time   int64          `json:"time"` // ms
}

type asideList struct {
	count int64
	list  []Aside // the latest
}

func (f *Flow) asideLocked(from origin, off int64, pos mq.LogOffset, reason string, now int64) {
	from.finish(off)
	a := &f.mu.aside
	a.count++
	if len(a.list) == asideMax {
		a.list = a.list[1:]
	}
	it := Aside{Offset: mq.QueueOffset(off), Log: pos, Reason: reason, Time: now}
	if key := from.queue(); key.Topic == mq.TopicSchedule {
		it.Level = mq.DelayLevel(key.ID + 1)
	} else {
		it.Topic = key.Topic
	}
	a.list = append(a.list, it)
}

// drop sets aside messages that are gone.
func (f *Flow) drop(l *lane, lo, hi int64, reason string) {
	f.put.Lock()
	f.hand(l, lo, hi, f.put.last)
	f.put.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.timer.Now()
	for n := l.done.next(lo); n < hi; n = l.done.next(n) {
		f.asideLocked(l, n, unknownPos, reason, now)
	}
}
