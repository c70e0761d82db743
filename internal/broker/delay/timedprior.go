package delay

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
	"github.com/sundial-mq/sundial/internal/storage/pending"
	"github.com/sundial-mq/sundial/internal/storage/timer"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// How each timed message is delivered exactly once: as those of the levels, see
// progress.go, with the index's checkpoints in the place of delay.json.
//
//	pending = what is in the timer queue - receipts - recalls
//
// A recall is a record of the timer topic that names what it recalls.

// timedPrior is what is known of timed messages before the store is open.
type timedPrior struct {
	index *pending.Index
	state pending.State
	check TimerCheck
	flow  *Flow // once there is one

	ends []timedEnd // receipts and recalls, in the order of the log
}

// timedEnd is a record that says that a timed message is done.
type timedEnd struct {
	seq   mq.QueueOffset
	due   int64
	end   mq.LogOffset
	store int32
	dest  int32  // -1 for a recall
	topic string // of a recall
}

// bind gives the index the flow's view of the log.
func (p *timedPrior) bind(f *Flow) { p.flow = f }

func (p *Prior) openTimed(fsys vfs.FS, dir string) error {
	cfg := pending.DefaultConfig()
	cfg.Log = p.note
	t := &p.timed
	cfg.Durable = func() mq.LogOffset { return t.flow.store.Durable() }
	cfg.Flush = func() error { return t.flow.store.Flush() }
	cfg.Fence = func() mq.LogOffset {
		// Whoever appends a delivery or a recall holds put until the index knows it.
		t.flow.put.Lock()
		defer t.flow.put.Unlock()
		return t.flow.store.Durable()
	}
	var err error
	if t.index, t.state, err = pending.Open(fsys, dir, cfg); err != nil {
		return err
	}
	if t.state.Rebuilt != nil {
		p.notes = append(p.notes, fmt.Sprintf("the index of timed messages is built anew from the log: %v", t.state.Rebuilt))
	}
	return nil
}

// seeTimed takes in a delivered message.
func (p *Prior) seeTimed(v record.View, r record.Receipt) {
	if v.LogOffset() < p.timed.state.Log {
		return
	}
	p.timed.ends = append(p.timed.ends, timedEnd{
		seq: r.Offset, due: r.Due, end: v.LogOffset() + mq.LogOffset(len(v)), store: p.storeID(r.Store), dest: p.destID(v),
	})
}

// seeRecall takes in a record of the timer topic if it is a recall of ours.
func (p *Prior) seeRecall(v record.View) {
	if v.LogOffset() < p.timed.state.Log {
		return
	}
	value, ok := v.Property(mq.PropRecalled)
	if !ok {
		return
	}
	r, ok := record.ParseReceipt(bin.String(value))
	if !ok || r.Queue != timedQueue {
		return
	}
	topic, _ := v.Property(mq.PropRealTopic)
	p.timed.ends = append(p.timed.ends, timedEnd{
		seq: r.Offset, due: r.Due, end: v.LogOffset() + mq.LogOffset(len(v)), store: p.storeID(r.Store), dest: -1, topic: strings.Clone(string(topic)),
	})
}

func newTimed(index *pending.Index, precision int64) *timed {
	return &timed{
		index: index, precision: precision, wake: make(chan struct{}, 1),
		entries: make([]consumequeue.Entry, 1024), herds: map[int32]*herd{},
	}
}

// restoreTimed brings the index up to date. Nobody else knows the flow yet.
func (f *Flow) restoreTimed(p *Prior) error {
	t, st := f.timed, &p.timed.state
	if st.Store != "" && st.Store != f.store.ID() {
		return fmt.Errorf("the index of timed messages belongs to store %s, this is %s: remove DIR/sundial/timers and it is built anew from the log", st.Store, f.store.ID())
	}
	names := make([]string, len(p.stores))
	for name, id := range p.stores {
		names[id] = name
	}
	ignored := 0
	for _, e := range p.timed.ends {
		if e.seq >= t.index.Next() && e.seq < f.store.MinOffset(timedQueue) {
			continue // its record has left the log before it was indexed: nobody waits for it
		}
		topic, ok := e.topic, names[e.store] == f.store.ID()
		if ok && e.dest >= 0 {
			topic = p.dests[e.dest].Topic
			ok = f.timedFor(e.seq, p.dests[e.dest])
		}
		if !ok {
			ignored++
			continue
		}
		if e.seq < t.index.Next() {
			standing, err := t.index.Standing(e.due, e.seq)
			if err != nil {
				return err
			}
			if standing != pending.Waiting {
				continue
			}
		}
		t.index.Done(e.seq, t.index.Topic(topic), e.end)
		f.put.last = max(f.put.last, e.end)
	}
	if ignored > 0 {
		f.note.Warn("receipts that match no timed message are ignored", "count", ignored)
	}
	p.timed.ends = nil
	if f.store.MaxOffset(timedQueue) > t.index.Next() {
		// RocketMQ may have written what is new, long ago or between two of our lives; for
		// its records its own progress counts.
		var err error
		if t.foreign, err = f.readForeign(p.timed.check); err != nil {
			return err
		}
		defer func() { t.foreign = nil }()
	}
	var items []timer.Item
	for _, e := range st.Out {
		if t.index.Alive(e.Seq) {
			items = append(items, timer.Item{Due: e.Due, Offset: e.Seq, Pos: e.Log, Lane: timedLane})
		}
	}
	f.addTimed(timedLane, items)
	st.Out = nil
	for {
		before := t.index.Next()
		f.feed()
		if !t.index.Room() {
			if err := f.saveTimed(); err != nil {
				return err
			}
			continue
		}
		if t.index.Next() == before {
			break
		}
	}
	f.loadTimed()
	return f.saveTimed()
}

// timedFor reports whether the timed message at seq is for a destination. One
// whose record has left the log is believed to be.
func (f *Flow) timedFor(seq mq.QueueOffset, dest mq.QueueKey) bool {
	var one [1]consumequeue.Entry
	if n, _ := f.store.Entries(timedQueue, seq, one[:]); n == 0 {
		return seq < f.store.MinOffset(timedQueue)
	}
	v, release, err := f.store.Record(one[0].Pos)
	if err != nil {
		return false
	}
	defer release()
	d, err := destinationOf(v, timedQueue, int64(seq))
	return err == nil && d == dest
}

// saveTimed writes a checkpoint of the index, and merges its runs.
func (f *Flow) saveTimed() error {
	t := f.timed
	if err := t.index.Checkpoint(f.store.ID()); err != nil {
		return err
	}
	for {
		if more, err := t.index.Merge(); err != nil || !more {
			return err
		}
	}
}

// saveTimedRegularly saves when there is something new, and when memory is full.
func (f *Flow) saveTimedRegularly(ctx context.Context) {
	tick := time.NewTicker(f.cfg.FlushInterval)
	defer tick.Stop()
	var changes uint64
	var log mq.LogOffset
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.timed.index.Full():
		case <-tick.C:
			step := mq.LogOffset(logStep)
			st := f.timed.index.Stats()
			if st.Out == 0 && st.Table == 0 {
				step = 1 // it costs next to nothing
			}
			if st.Changes == changes && f.store.Durable()-log < step {
				continue
			}
		}
		changes, log = f.timed.index.Stats().Changes, f.store.Durable()
		if err := f.saveTimed(); err != nil {
			changes = 0
			f.note.Error("progress of timed messages could not be saved; trying again", "err", err)
		}
		f.timed.poke()
	}
}
