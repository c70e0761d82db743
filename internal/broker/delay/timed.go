package delay

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
	"github.com/sundial-mq/sundial/internal/storage/pending"
	"github.com/sundial-mq/sundial/internal/storage/timer"
)

// timed are the messages of the timer topic. Their index (internal/storage/pending)
// knows which are pending; one goroutine, the feeder, tells it what the queue
// got and takes from it what falls due in the next moments.
type timed struct {
	tally // guarded by Flow.mu

	index     *pending.Index
	precision int64
	foreign   *foreign // while the queue is read from its beginning
	pin       timedPin

	wake    chan struct{}        // there is something to feed or room to load
	entries []consumequeue.Entry // the feeder's
	loads   []pending.Entry      // the feeder's
	items   []timer.Item         // the feeder's
	tries   int                  // the feeder's: how often the next entry was not readable

	// Guarded by Flow.mu.
	loaded int             // in the due-time queue, without herds
	herds  map[int32]*herd // by lane
}

// herd is a great many messages that are due in one millisecond. They have a lane
// of their own in the due-time queue and take turns with everything else.
type herd struct {
	id     int32 // of the index
	loaded int
	drawn  bool // all of it is loaded
}

var timedQueue = mq.QueueKey{Topic: mq.TopicTimer}

const (
	timedLane   int32 = -1  // herds have the lanes below
	lookahead         = 500 // how much of the future is in the due-time queue, ms
	timedWindow       = 32 << 10
	herdWindow        = 8192
)

func (t *timed) queue() mq.QueueKey { return timedQueue }

func (t *timed) dueOf(v record.View) (int64, bool) { return timedDue(v.Properties(), t.precision) }

func (t *timed) alive(off int64) bool { return t.index.Alive(mq.QueueOffset(off)) }

func (t *timed) hand(f *Flow, off int64, _ mq.LogOffset) {
	t.index.Done(mq.QueueOffset(off), 0, f.put.last)
}

func (t *timed) finish(int64) {}

func (t *timed) unreadableAs() mq.QueueID { return -1 }

func (t *timed) appendProps(dst []byte, v record.View, now int64) []byte {
	dst = record.AppendWithout(dst, v.Properties(), mq.PropDue, mq.PropReceipt, mq.PropRecalled, mq.PropTimerEnqueueMs, mq.PropTimerDequeueMs)
	var b [20]byte
	dst = record.AppendProperty(dst, mq.PropTimerEnqueueMs, bin.String(strconv.AppendInt(b[:0], v.StoreTime(), 10)))
	return record.AppendProperty(dst, mq.PropTimerDequeueMs, bin.String(strconv.AppendInt(b[:0], now, 10)))
}

// takenLocked notes that n messages of a lane left the due-time queue, or came
// back when n is negative. Flow.mu is held.
func (t *timed) takenLocked(lane int32, n int) {
	if lane == timedLane {
		t.loaded -= n
		if t.loaded == timedWindow/2 {
			t.poke()
		}
		return
	}
	if h := t.herds[lane]; h != nil {
		h.loaded -= n
		if h.loaded == herdWindow/2 || h.loaded == 0 {
			t.poke()
		}
	}
}

// poke wakes the feeder.
func (t *timed) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// runTimed feeds and loads until ctx is done.
func (f *Flow) runTimed(ctx context.Context) {
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		f.feed()
		wait := f.loadTimed()
		if f.timed.tries > 0 {
			wait = min(wait, f.cfg.FirstPause)
		}
		alarm.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-f.timed.wake:
		case <-alarm.C:
		}
	}
}

// feed tells the index what is new in the queue.
func (f *Flow) feed() {
	t := f.timed
	for t.index.Room() {
		from := t.index.Next()
		n, err := f.store.Entries(timedQueue, from, t.entries)
		if n == 0 {
			if lowest := f.store.MinOffset(timedQueue); from < lowest {
				t.index.Pass(lowest - 1)
				continue
			}
			if err != nil {
				f.note.Error("the queue of timed messages cannot be read; trying again", "offset", from, "err", err)
			}
			break
		}
		t.items = t.items[:0]
		for i, e := range t.entries[:n] {
			if !f.feedOne(from+mq.QueueOffset(i), e) {
				n = 0
				break
			}
		}
		f.addTimed(timedLane, t.items)
		if n == 0 {
			break
		}
	}
}

// feedOne adds one entry of the queue. It reports false when that has to be tried again.
func (f *Flow) feedOne(seq mq.QueueOffset, e consumequeue.Entry) bool {
	t := f.timed
	v, release, err := f.store.Record(e.Pos)
	if err != nil {
		// Not durable yet, or a disk that fails; what stays unreadable is set aside.
		if t.tries++; e.Pos >= f.store.Durable() || t.tries < readTries {
			return false
		}
		t.tries = 0
		f.passTimed(seq, e.Pos, err.Error())
		return true
	}
	t.tries = 0
	defer release()
	if _, recall := v.Property(mq.PropTimerDeleteKey); recall {
		t.index.Pass(seq)
		return true
	}
	dest, err := destinationOf(v, timedQueue, int64(seq))
	if err != nil {
		f.passTimed(seq, e.Pos, err.Error())
		return true
	}
	if _, ours := v.Property(mq.PropDue); !ours && !t.foreign.has(v, seq) {
		t.index.Pass(seq)
		return true
	}
	due, ok := t.dueOf(v)
	if !ok {
		f.passTimed(seq, e.Pos, fmt.Sprintf("it has no due time (properties %s, %s)", mq.PropDue, mq.PropTimerOutMs))
		return true
	}
	p := pending.Entry{Due: due, Seq: seq, Log: e.Pos, Size: int32(len(v)), Topic: t.index.Topic(dest.Topic)}
	if t.index.Add(p) {
		t.items = append(t.items, timer.Item{Due: due, Offset: seq, Pos: e.Pos, Lane: timedLane})
	}
	return true
}

// passTimed sets a message aside that cannot become due.
func (f *Flow) passTimed(seq mq.QueueOffset, pos mq.LogOffset, reason string) {
	f.note.Error("a timed message cannot be delivered and is set aside", "offset", seq, "position", pos, "reason", reason)
	f.timed.index.Pass(seq)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asideLocked(f.timed, int64(seq), pos, reason, f.timer.Now())
}

// addTimed puts messages into the due-time queue.
func (f *Flow) addTimed(lane int32, items []timer.Item) {
	if len(items) == 0 {
		return
	}
	f.mu.Lock()
	f.timed.takenLocked(lane, -len(items))
	f.mu.Unlock()
	f.timer.Add(items...)
}

// loadTimed takes from the index what falls due soon and returns how long nothing
// more will have to be taken, if nothing new comes.
func (f *Flow) loadTimed() time.Duration {
	t := f.timed
	now := f.timer.Now()
	f.mu.Lock()
	room := timedWindow - t.loaded
	if f.mu.parkedItems >= f.cfg.MaxParked {
		room = 0
	}
	f.mu.Unlock()
	wait := f.cfg.Timer.Stretch
	if room >= timedWindow/2 {
		got, herds, err := t.index.Load(now+lookahead, room, t.loads[:0])
		if err != nil {
			f.note.Error("the index of timed messages cannot be read", "err", err)
		}
		f.addTimed(timedLane, t.itemsOf(got, timedLane))
		f.mu.Lock()
		for _, h := range herds {
			t.herds[timedLane-h.ID] = &herd{id: h.ID}
		}
		f.mu.Unlock()
		if len(got) < room {
			next := t.index.NextDue()
			switch {
			case next == math.MaxInt64:
				wait = time.Hour
			case next-now-lookahead < wait.Milliseconds():
				wait = time.Duration(max(next-now-lookahead, lookahead/2)) * time.Millisecond
			}
		}
	}
	f.loadHerds()
	return wait
}

// loadHerds takes the next of each herd.
func (f *Flow) loadHerds() {
	t := f.timed
	type want struct {
		lane int32
		herd *herd
		room int
	}
	var wants []want
	f.mu.Lock()
	for lane, h := range t.herds {
		switch {
		case h.drawn && h.loaded <= 0:
			delete(t.herds, lane)
		case !h.drawn && h.loaded <= herdWindow/2 && f.mu.parkedItems < f.cfg.MaxParked:
			wants = append(wants, want{lane, h, herdWindow - h.loaded})
		}
	}
	f.mu.Unlock()
	for _, w := range wants {
		got, more, err := t.index.LoadHerd(w.herd.id, w.room, t.loads[:0])
		if err != nil {
			f.note.Error("the index of timed messages cannot be read", "err", err)
		}
		f.mu.Lock()
		w.herd.drawn = !more
		f.mu.Unlock()
		f.addTimed(w.lane, t.itemsOf(got, w.lane))
		if len(got) == 0 && err == nil {
			t.poke()
		}
	}
}

// itemsOf keeps the buffers.
func (t *timed) itemsOf(entries []pending.Entry, lane int32) []timer.Item {
	t.loads = entries[:0]
	t.items = t.items[:0]
	for i := range entries {
		e := &entries[i]
		t.items = append(t.items, timer.Item{Due: e.Due, Offset: e.Seq, Pos: e.Log, Lane: lane})
	}
	return t.items
}
