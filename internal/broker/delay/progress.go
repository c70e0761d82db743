package delay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
)

// How each message is delivered exactly once.
//
// The simple way, RocketMQ's, is a number for each level, saved now and then:
// all below it is delivered. After a crash the number is old, and what was
// delivered since comes again. Saving it with each delivery would cost a sync
// each, and still the delivery or the number would be first.
//
// Here the delivered message itself is the mark. It carries a receipt that names
// the pending record, in one append: it is in the log, or it is not. So
//
//	pending = what is in the schedule queues - what the log has receipts for
//
// holds at any moment and after any crash. To not read the whole log at each
// start, delay.json says what was done up to a log position:
//
//  1. It is taken while no delivery is between its append and its note, so that
//     all receipts below the position are in it.
//  2. The position is one the log is durable up to, and only deliveries that are
//     durable count. So a power cut takes nothing back of what it says.
//  3. At a start, receipts found from the position on are added. One counts only
//     when the pending record it names is there and has that destination.
//
// RocketMQ's delayOffset.json is written from the same state, for its tools and
// for the way back: the lowest offset not delivered of each level. When it says
// more than delay.json, another broker has delivered meanwhile, and it is
// believed, within what the queue holds.

// checkpoint is DIR/sundial/delay.json.
type checkpoint struct {
	Format     int                       `json:"format"` // 1
	Store      string                    `json:"store"`  // id, as in receipts
	Log        mq.LogOffset              `json:"log"`    // receipts below are counted in
	Queues     map[mq.QueueID]queueState `json:"queues"`
	AsideCount int64                     `json:"setAside"`
	Aside      []Aside                   `json:"setAsideLatest,omitempty"`
}

// queueState is what is done in one schedule queue.
type queueState struct {
	Low  int64      `json:"low"`            // all below
	Done [][2]int64 `json:"done,omitempty"` // and these: from, to (exclusive)
}

const checkpointFormat = 1

func stateOf(s spans) queueState {
	q := queueState{Low: s.low}
	for _, d := range s.done {
		q.Done = append(q.Done, [2]int64{d.lo, d.hi})
	}
	return q
}

func (q queueState) spans() spans {
	s := spans{low: max(q.Low, 0)}
	for _, d := range q.Done {
		s.add(d[0], d[1])
	}
	return s
}

func (q queueState) equal(o queueState) bool { return q.Low == o.Low && slices.Equal(q.Done, o.Done) }

// OffsetTable is delayOffset.json: by level the lowest offset that is not delivered.
type OffsetTable struct {
	Version mq.DataVersion   `json:"dataVersion"`
	Offsets map[string]int64 `json:"offsetTable"`
}

// files are the two documents and what they hold.
type files struct {
	own     *table.Document[checkpoint]
	offsets *table.Document[OffsetTable]

	mu         sync.Mutex // guards what follows
	saved      checkpoint
	savedTable OffsetTable
	stale      bool // what is on disk must be written again in any case
}

func (fl *files) version() mq.DataVersion {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	return fl.savedTable.Version
}

// logStep is how much log may pass before delay.json is saved although nothing
// was delivered, so that the next start need not read it.
const logStep = 64 << 20

// handed is a delivery, or several in a row: the first begins and the last ends
// at these log positions.
type handed struct {
	start  mq.LogOffset
	end    mq.LogOffset
	lane   *lane
	lo, hi int64
}

// settleEvery is after how many deliveries those that have become durable are
// taken off the list; at most that many share an entry of it.
const settleEvery = 256

// hand notes that lo..hi-1 are done, by a delivery that begins at start, once the
// log is durable up to the last delivery. put is held.
func (f *Flow) hand(l *lane, lo, hi int64, start mq.LogOffset) {
	p := &f.put
	if n := len(p.handed); n > 0 {
		if h := &p.handed[n-1]; h.lane == l && h.hi == lo && h.hi-h.lo < settleEvery {
			h.hi, h.end = hi, p.last
			return
		}
		if n%settleEvery == 0 {
			f.settle()
		}
	}
	p.handed = append(p.handed, handed{start, p.last, l, lo, hi})
}

// settle moves what has become durable from the list to the lanes, and returns
// the position below which every delivery is moved: short of the first that is
// not, which may share an entry with one that is not durable. put is held.
func (f *Flow) settle() mq.LogOffset {
	durable := f.store.Durable()
	p := &f.put
	n := 0
	for n < len(p.handed) && p.handed[n].end <= durable {
		h := p.handed[n]
		h.lane.durable.add(h.lo, h.hi)
		n++
	}
	rest := copy(p.handed, p.handed[n:])
	clear(p.handed[rest:])
	p.handed = p.handed[:rest]
	if rest > 0 {
		return min(durable, p.handed[0].start)
	}
	return durable
}

// snapshot is the durable state.
func (f *Flow) snapshot() checkpoint {
	f.put.Lock()
	defer f.put.Unlock()
	c := checkpoint{Format: checkpointFormat, Store: f.store.ID(), Queues: map[mq.QueueID]queueState{}}
	c.Log = f.settle()
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, l := range f.mu.lanes {
		c.Queues[id] = stateOf(l.durable)
	}
	c.AsideCount, c.Aside = f.mu.aside.count, slices.Clone(f.mu.aside.list)
	return c
}

// save writes both files if there is something new.
func (f *Flow) save() error {
	fl := f.files
	fl.mu.Lock()
	defer fl.mu.Unlock()
	c := f.snapshot()
	if fl.stale || !maps.EqualFunc(c.Queues, fl.saved.Queues, queueState.equal) ||
		c.AsideCount != fl.saved.AsideCount || c.Log-fl.saved.Log >= logStep {
		if err := fl.own.Save(c); err != nil {
			return err
		}
		fl.saved = c
	}
	// Written second: a crash between the two leaves it behind, which does no harm.
	t := f.table(c)
	if !fl.stale && maps.Equal(t, fl.savedTable.Offsets) {
		return nil
	}
	next := OffsetTable{Version: fl.savedTable.Version.Next(time.Now().UnixMilli()), Offsets: t}
	if err := fl.offsets.Save(next); err != nil {
		return err
	}
	fl.savedTable, fl.stale = next, false
	return nil
}

// table is what delayOffset.json says of a state: all levels of the table and
// all that have a queue.
func (f *Flow) table(c checkpoint) map[string]int64 {
	t := map[string]int64{}
	for level := 1; level <= f.cfg.Levels.Count(); level++ {
		t[strconv.Itoa(level)] = 0
	}
	for id, q := range c.Queues {
		t[strconv.Itoa(int(id)+1)] = q.Low
	}
	return t
}

func (f *Flow) saveRegularly(ctx context.Context) {
	tick := time.NewTicker(f.cfg.FlushInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := f.save(); err != nil {
			f.note.Error("progress of delayed messages could not be saved; trying again", "err", err)
		}
	}
}

// stop saves what was delivered, which must have become durable first.
func (f *Flow) stop() error {
	if err := f.store.Flush(); err != nil {
		f.note.Error("last deliveries are not durable; the next start finds them by their receipts", "err", err)
	}
	defer f.timed.index.Close()
	if err := errors.Join(f.save(), f.saveTimed()); err != nil {
		return fmt.Errorf("save progress of delayed messages: %w", err)
	}
	return f.handOver()
}
