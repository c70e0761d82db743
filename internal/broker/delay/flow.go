package delay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
	"github.com/sundial-mq/sundial/internal/storage/timer"
)

// Store is what the flow needs of the engine; *storage.Store has it.
type Store interface {
	ID() string
	AppendInternal(m *record.Message) (storage.Appended, error)
	AppendAllInternal(ms []*record.Message, dst []storage.Appended) ([]storage.Appended, error)
	Record(at mq.LogOffset) (v record.View, release func(), err error)
	Entries(key mq.QueueKey, from mq.QueueOffset, dst []consumequeue.Entry) (int, error)
	MinOffset(key mq.QueueKey) mq.QueueOffset
	MaxOffset(key mq.QueueKey) mq.QueueOffset
	Queues(fn func(key mq.QueueKey, lo, hi mq.QueueOffset))
	Durable() mq.LogOffset
	Flush() error
	// Deleted says whether a message at this position was sent to a topic that is
	// deleted since.
	Deleted(topic string, at mq.LogOffset) bool
	Query(topic, key string, max int, begin, end int64) (storage.Hits, error)
}

// Flow delivers pending messages. Its methods are safe for concurrent use.
//
// Locks: load and files.mu before put before mu; the due-time queue's own comes last.
type Flow struct {
	cfg   Config
	store Store
	note  *slog.Logger
	told  teller
	timer *timer.Queue
	clock func() time.Time
	guard *timer.Guard
	count *metrics
	files *files
	timed *timed
	rates rates
	over  *handover

	// load is held by the one who reads queues ahead.
	load    sync.Mutex
	entries []consumequeue.Entry // guarded by load
	items   []timer.Item         // guarded by load

	// put is held from a delivery's append until it is noted, so that a snapshot
	// sees both or neither.
	put struct {
		sync.Mutex
		handed []handed     // in log order, not yet known durable
		last   mq.LogOffset // End of the last delivery
	}

	mu struct {
		sync.Mutex
		lanes       map[mq.QueueID]*lane
		streams     map[int32]*stream
		nextStream  int32
		parked      map[mq.QueueKey]*destination
		retries     retryHeap
		parkedItems int
		aside       asideList
	}
	parkedDestinations atomic.Int64
	retryWake          chan struct{}
}

// Open brings progress up to date, loads what is due next and returns a flow
// that is ready to run. prior has seen the records that the store recovered.
// Wrong progress is corrected, on disk too.
func Open(store Store, prior *Prior, cfg Config) (*Flow, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("delay settings: %w", err)
	}
	w := cfg.Waiter
	if w == nil {
		w = timer.Precise()
	}
	note := cfg.Log
	if note == nil {
		note = slog.New(slog.DiscardHandler)
	}
	cfg.Clock.Step = func(step time.Duration, held bool) { tellStep(note, step, held, cfg.Clock.Hold) }
	guard, err := timer.NewGuard(w, cfg.Clock)
	if err != nil {
		return nil, err
	}
	w = guard
	q, err := timer.New(w, cfg.Timer)
	if err != nil {
		return nil, err
	}
	f := &Flow{
		over:  prior.over,
		guard: guard,
		cfg:   cfg, store: store, note: note, timer: q, clock: w.Now, files: prior.files,
		entries: make([]consumequeue.Entry, 1024), retryWake: make(chan struct{}, 1),
	}
	reg := cfg.Metrics
	if reg == nil {
		reg = metric.NewRegistry()
	}
	f.mu.lanes = map[mq.QueueID]*lane{}
	f.mu.streams = map[int32]*stream{}
	f.mu.parked = map[mq.QueueKey]*destination{}
	f.rates.of = cfg.Rate
	f.timed = newTimed(prior.timed.index, cfg.Timers.Precision)
	f.count = newMetrics(reg, f)
	prior.timed.bind(f)
	if err := f.restore(prior); err != nil {
		return nil, fmt.Errorf("open delayed messages: %w", err)
	}
	if err := f.started(); err != nil {
		return nil, fmt.Errorf("open delayed messages: %w", err)
	}
	return f, nil
}

// tellStep logs that the clock was set.
func tellStep(note *slog.Logger, step time.Duration, held bool, hold time.Duration) {
	switch {
	case held:
		note.Error("the clock was set far ahead; what became due by that is held until the clock is confirmed or set right, or the time is over", "by", step, "held", hold)
	case step > 0:
		note.Warn("the clock was set ahead; what became due by that is delivered", "by", step)
	default:
		note.Warn("the clock was set back; what is pending waits for its time by the new clock", "by", -step)
	}
}

// Clock tells what was seen of the clock.
func (f *Flow) Clock() timer.GuardState { return f.guard.State() }

// ConfirmClock believes a clock that was set far ahead, and reports whether one was held.
func (f *Flow) ConfirmClock() bool { return f.guard.Confirm() }

// Run delivers until ctx is done, then saves progress.
func (f *Flow) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	var sweepErr error
	inner, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() {
		defer stop()
		hands := &hands{}
		sweepErr = f.timer.Run(inner, func(due []timer.Item) { f.fire(hands, due) })
	})
	wg.Go(func() { f.retryParked(inner) })
	wg.Go(func() { f.saveRegularly(inner) })
	wg.Go(func() { f.runTimed(inner) })
	wg.Go(func() { f.saveTimedRegularly(inner) })
	wg.Wait()
	return errors.Join(sweepErr, f.stop())
}

// Arrived says that a message became visible; it is for storage.Config.OnArrival.
func (f *Flow) Arrived(key mq.QueueKey, off mq.QueueOffset, due int64) {
	if key == timedQueue {
		f.timed.poke()
		return
	}
	if key.Topic != mq.TopicSchedule {
		return
	}
	f.mu.Lock()
	n := int64(off)
	l := f.mu.lanes[key.ID]
	if l == nil {
		l = f.newLane(key.ID)
		l.end = int64(f.store.MinOffset(key))
		l.done.low, l.durable.low = l.end, l.end
	}
	if n < l.end {
		f.mu.Unlock()
		return
	}
	add := timer.Item{Due: due, Offset: off, Pos: unknownPos}
	if n > l.end {
		// Announcements overtook each other. What is between can be read.
		missed := l.end
		s, _ := f.admit(l, n, due, false)
		s.unread[len(s.unread)-1].lo = missed
		f.mu.Unlock()
		f.nudge(s)
		return
	}
	s, direct := f.admit(l, n, due, true)
	add.Lane = s.id
	f.mu.Unlock()
	if direct {
		f.timer.Add(add)
	}
}

// unknownPos is the position of an item that has to be looked up in its queue;
// nudgeOffset is the offset of an item that only asks to read ahead.
const (
	unknownPos  mq.LogOffset   = -1
	nudgeOffset mq.QueueOffset = -1
)

// nudge has the sweeper read s ahead.
func (f *Flow) nudge(s *stream) {
	f.timer.Add(timer.Item{Due: math.MinInt64, Offset: nudgeOffset, Lane: s.id})
}

// refill reads s ahead, as far as its window allows.
func (f *Flow) refill(s *stream) {
	f.load.Lock()
	defer f.load.Unlock()
	for f.refillSome(s) {
	}
}

// refillSome reads a part and reports whether to go on.
func (f *Flow) refillSome(s *stream) bool {
	l := s.lane
	f.mu.Lock()
	window := f.window(l)
	room := window - s.loaded
	if f.mu.parkedItems >= f.cfg.MaxParked {
		room = 0
	}
	var from, to int64
	for len(s.unread) > 0 {
		from, to = l.done.next(s.unread[0].lo), s.unread[0].hi
		if from < to {
			break
		}
		s.unread = s.unread[1:]
	}
	if len(s.unread) == 0 {
		s.unread = nil
		f.prune(s)
	}
	if len(s.unread) == 0 || room <= 0 {
		f.mu.Unlock()
		return false
	}
	f.mu.Unlock()

	want := min(int64(room), to-from, int64(len(f.entries)))
	got, err := f.store.Entries(l.key, mq.QueueOffset(from), f.entries[:want])
	if got == 0 {
		return f.unreadable(s, from, to, err)
	}
	f.items = f.items[:0]
	f.mu.Lock()
	for i, e := range f.entries[:got] {
		if n := from + int64(i); !l.done.has(n) {
			f.items = append(f.items, timer.Item{Due: e.TagsCode, Offset: mq.QueueOffset(n), Pos: e.Pos, Lane: s.id})
		}
	}
	s.loaded += len(f.items)
	s.unread[0].lo = from + int64(got)
	more := s.unread[0]
	full := s.loaded >= window
	f.mu.Unlock()
	f.timer.Add(f.items...)
	if now := f.timer.Now(); full && s != l.backlog && f.entries[got-1].TagsCode <= now && more.hi-more.lo >= int64(window) {
		f.setAside(s, more, now, int64(window))
	}
	return true
}

// setAside moves what is overdue at the head of a run to the backlog, if it is
// much. more is the run's first unread span.
func (f *Flow) setAside(s *stream, more span, now, least int64) {
	l := s.lane
	lo, hi := more.lo, more.hi
	for lo < hi {
		mid := lo + (hi-lo)/2
		if n, _ := f.store.Entries(l.key, mq.QueueOffset(mid), f.entries[:1]); n == 1 && f.entries[0].TagsCode > now {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo-more.lo < least {
		return
	}
	f.mu.Lock()
	s.unread[0].lo = lo
	l.backlog.extend(more.lo, lo)
	idle := l.backlog.loaded == 0
	f.mu.Unlock()
	if idle {
		f.nudge(l.backlog)
	}
}

// unreadable deals with entries that should be there and are not.
func (f *Flow) unreadable(s *stream, from, to int64, err error) bool {
	l := s.lane
	if lowest := int64(f.store.MinOffset(l.key)); from < lowest {
		upTo := min(lowest, to)
		f.note.Error("pending messages were deleted before they were due", "level", l.level, "from", from, "to", upTo)
		f.drop(l, from, upTo, deletedReason)
		return true
	}
	f.note.Error("schedule queue cannot be read; trying again", "level", l.level, "offset", from, "err", err)
	f.timer.Add(timer.Item{Due: f.timer.Now() + f.cfg.OutagePause.Milliseconds(), Offset: nudgeOffset, Lane: s.id})
	return false
}

// Pin is the lowest log position of a record that may still have to be
// delivered, math.MaxInt64 when there is none. It is for storage.Store.Pin.
func (f *Flow) Pin() mq.LogOffset {
	f.put.Lock()
	f.settle()
	f.mu.Lock()
	type place struct {
		key mq.QueueKey
		off mq.QueueOffset
	}
	var places []place
	for _, l := range f.mu.lanes {
		if l.durable.low < l.end {
			places = append(places, place{l.key, mq.QueueOffset(l.durable.low)})
		}
	}
	f.mu.Unlock()
	f.put.Unlock()
	pin := f.pinTimed()
	for _, p := range places {
		var one [1]consumequeue.Entry
		off := max(p.off, f.store.MinOffset(p.key))
		if n, _ := f.store.Entries(p.key, off, one[:]); n == 1 {
			pin = min(pin, one[0].Pos)
		} else {
			pin = 0 // better keep everything than lose it
		}
	}
	return pin
}

// lanes returns the lanes by queue id.
func (f *Flow) lanesLocked() []*lane {
	lanes := make([]*lane, 0, len(f.mu.lanes))
	for _, l := range f.mu.lanes {
		lanes = append(lanes, l)
	}
	slices.SortFunc(lanes, func(a, b *lane) int { return int(a.key.ID) - int(b.key.ID) })
	return lanes
}
