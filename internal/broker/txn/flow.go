package txn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
	"github.com/sundial-mq/sundial/internal/storage/timer"
)

// Store is what the flow needs of the engine; *storage.Store has it.
type Store interface {
	ID() string
	Append(m *record.Message) (storage.Appended, error)
	AppendInternal(m *record.Message) (storage.Appended, error)
	Record(at mq.LogOffset) (v record.View, release func(), err error)
	Entry(key mq.QueueKey, off mq.QueueOffset) (consumequeue.Entry, bool)
	Query(topic, key string, max int, begin, end int64) (storage.Hits, error)
	MinOffset(key mq.QueueKey) mq.QueueOffset
	MaxOffset(key mq.QueueKey) mq.QueueOffset
	MinLog() mq.LogOffset
	MaxLog() mq.LogOffset
	Durable() mq.LogOffset
	Foreign() bool
	Flush() error
	SyncFlush() bool
	WhenDurable(end mq.LogOffset, timeout time.Duration, fn func(error))
}

// Topics is the register of topics; *topics.Register has it.
type Topics interface {
	Get(name string) *mq.TopicConfig
	// Restore makes a topic with that many queues if there is none.
	Restore(name string, queues int32) bool
}

// Offsets is the register of progress, in which RocketMQ keeps how far halves and
// marks are done with; *offsets.Register has it.
type Offsets interface {
	Query(group, topic string, queue mq.QueueID) (off mq.QueueOffset, found bool)
	Commit(group, topic string, queue mq.QueueID, off mq.QueueOffset) error
}

// Producers knows who is here; *clients.Register has it.
type Producers interface {
	Producers(group string) []clients.Client
	// ProducerID is the client id of a connection in a producer group, empty when it
	// is not in it.
	ProducerID(group string, conn any) string
}

// Delayer sends a message that asks for a delay on its detour; delay.Levels is one.
type Delayer interface {
	// Retarget changes topic, queue and properties of m if it asks for a delay.
	Retarget(m *record.Message) error
}

// Parts are what a flow works with. All must be there.
type Parts struct {
	Store     Store
	Topics    Topics
	Offsets   Offsets
	Producers Producers
	Delay     Delayer
	// Ask sends a check to a producer and does not wait for the answer, which comes
	// as a verdict. It fails when the producer cannot be reached or takes nothing now.
	Ask func(to clients.Client, c *Check) error
}

// Flow keeps transactions. Its methods are safe for concurrent use.
//
// Locks: gate before put before mu; those of the store and the due-time queue
// come last.
type Flow struct {
	cfg   Config
	p     Parts
	note  *slog.Logger
	timer *timer.Queue
	count *metrics
	delay Delayer

	// gate is held shared by whoever appends a record that ends or begins a
	// transaction until that is noted, and alone by who takes a snapshot: it sees
	// all that the log holds, and nothing else.
	gate sync.RWMutex

	// put is held from the look whether a transaction is open to the note that it is
	// not: there is one first verdict.
	put struct {
		sync.Mutex
		marks marks
		props []byte
	}

	mu struct {
		sync.Mutex
		halves halves
		aside  abandons
		recent recents
		lines  map[int32]*line // by group
		ready  []*line         // lines that somebody should look at
		peers  map[any]*peer   // by connection
		asked  map[int64]*peer // who has not answered, by offset
		renew  mq.LogOffset    // halves below are to be appended again
	}
	wakeChecks chan struct{}
	wakeRenew  chan struct{}

	saving struct {
		sync.Mutex
		journal *journal
		mark    mark
		stale   bool // what is on disk must be written in any case
		metrics metricsFile
	}
}

// Open brings the state up to date and returns a flow that is ready to run. prior
// has seen the records that the store recovered; configDir is where RocketMQ's
// files are.
func Open(prior *Prior, p Parts, metricsDoc *MetricsDocument, cfg Config) (*Flow, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("transaction settings: %w", err)
	}
	if p.Store == nil || p.Topics == nil || p.Offsets == nil || p.Producers == nil || p.Delay == nil || p.Ask == nil {
		return nil, errors.New("BUG: transactions: a part is missing")
	}
	w := cfg.Waiter
	if w == nil {
		w = timer.Precise()
	}
	q, err := timer.New(w, cfg.Timer)
	if err != nil {
		return nil, err
	}
	f := &Flow{cfg: cfg, p: p, note: cfg.Log, timer: q, delay: p.Delay, wakeChecks: make(chan struct{}, 1), wakeRenew: make(chan struct{}, 1)}
	if f.note == nil {
		f.note = slog.New(slog.DiscardHandler)
	}
	f.mu.lines, f.mu.peers, f.mu.asked = map[int32]*line{}, map[any]*peer{}, map[int64]*peer{}
	f.saving.metrics.doc = metricsDoc
	f.restore(prior)
	f.count = newMetrics(cfg.Metrics, f)
	if !f.saving.stale {
		return f, nil
	}
	if err := f.save(); err != nil {
		return nil, fmt.Errorf("open transactions: %w", err)
	}
	return f, nil
}

// restore takes over what prior knows, corrected by what is there. Nobody else
// knows the flow yet, so it takes no locks.
func (f *Flow) restore(p *Prior) {
	for _, n := range p.notes {
		f.note.Warn("transactions: " + n)
	}
	f.mu.halves, f.mu.aside, f.mu.recent = p.im.table, p.im.aside, p.recent
	f.saving.journal, f.saving.mark = p.journal, p.im.mark
	f.saving.stale = !p.im.written || p.journal.file == nil
	t := &f.mu.halves

	// RocketMQ says by its progress what it is done with, and makes a new copy
	// instead of a mark.
	foreign := f.p.Store.Foreign() || !p.im.written
	f.saving.stale = f.saving.stale || foreign
	if low, ok := f.p.Offsets.Query(mq.GroupTrans, mq.TopicTransHalf, 0); ok && foreign && int64(low) > p.im.mark.lowHalf {
		for i := t.head; i < len(t.list) && t.list[i].off < int64(low); i++ {
			if h := &t.list[i]; !h.is(closed) {
				f.mu.recent.add(h.off, ended{h.pos, StateRolledBack, 0})
				t.close(h)
			}
		}
	}
	// What lies below the log's beginning was taken away by hand: the store keeps
	// what is open.
	gone := 0
	for i := t.head; i < len(t.list) && t.list[i].pos < f.p.Store.MinLog(); i++ {
		if h := &t.list[i]; !h.is(closed) {
			t.close(h)
			gone++
		}
	}
	if gone > 0 {
		f.note.Error("open transactions are gone with the files of the log that held them", "count", gone)
	}
	f.mu.aside.forget(int64(f.p.Store.MinOffset(discardQueue)))
	for off := range p.unmarked {
		f.put.marks.add(off, time.Time{})
	}
	f.put.marks.restore(f.p.Offsets, t, f.nextHalf())
	for i := range t.list {
		if h := &t.list[i]; !h.is(closed) {
			f.schedule(h)
		}
	}
	if p.odd > 0 || t.open > 0 {
		f.note.Info("open transactions", "count", t.open, "givenUp", f.mu.aside.open, "noHalfMessages", p.odd)
	}
}

// nextHalf is the offset of the next half message.
func (f *Flow) nextHalf() int64 {
	next := int64(f.p.Store.MaxOffset(halfQueue))
	if n := len(f.mu.halves.list); n > 0 {
		next = max(next, f.mu.halves.list[n-1].off+1)
	}
	return next
}

// schedule puts the next check of a half into the due-time queue; mu is held.
func (f *Flow) schedule(h *half) {
	h.flags |= timed
	f.timer.Add(item(h))
}

// unschedule takes it out; mu is held.
func (f *Flow) unschedule(h *half) {
	if h.is(timed) {
		h.flags &^= timed
		f.timer.Remove(item(h))
	}
}

// timerLanes is how many lanes of the due-time queue halves are spread over, so
// that one is taken out again by looking at a few.
const timerLanes = 1024

func item(h *half) timer.Item {
	return timer.Item{Due: h.due, Offset: mq.QueueOffset(h.off), Pos: h.pos, Lane: int32(h.off % timerLanes)}
}

// Run checks, writes marks and saves until ctx is done, then saves once more.
func (f *Flow) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	var sweepErr error
	inner, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() {
		defer stop()
		sweepErr = f.timer.Run(inner, f.fire)
	})
	wg.Go(func() { f.sendChecks(inner) })
	wg.Go(func() { f.appendAgain(inner) })
	wg.Go(func() { f.keep(inner) })
	wg.Wait()
	err := f.save()
	if err != nil {
		err = fmt.Errorf("save transactions: %w", err)
	}
	f.saving.Lock()
	defer f.saving.Unlock()
	if err == nil {
		f.tellProgress(f.saving.mark) // whatever somebody made of it
		f.saving.metrics.saved = time.Time{}
		err = f.saveMetrics()
	}
	return errors.Join(sweepErr, err, f.saving.journal.close())
}

// keep writes marks and saves now and then until ctx is done.
func (f *Flow) keep(ctx context.Context) {
	marks := time.NewTicker(max(time.Millisecond, f.cfg.MarkInterval/4))
	defer marks.Stop()
	saves := time.NewTicker(f.cfg.SaveInterval)
	defer saves.Stop()
	markFails, saveFails := false, false // told once until it works again
	tell := func(was *bool, err error, text string) {
		if err != nil && !*was {
			f.note.Error(text, "err", err)
		}
		*was = err != nil
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-marks.C:
			tell(&markFails, f.writeMarks(false), "marks of ended transactions could not be written; trying again")
		case <-saves.C:
			tell(&saveFails, f.save(), "the state of transactions could not be saved; trying again")
		}
	}
}

// logStep is how much log may pass before the journal is written although nothing
// changed, so that the next start need not read it.
const logStep = 64 << 20

// save brings the journal up to date, and RocketMQ's progress.
func (f *Flow) save() error {
	s := &f.saving
	s.Lock()
	defer s.Unlock()

	f.gate.Lock()
	if err := f.writeMarksGated(); err != nil {
		f.gate.Unlock()
		return err
	}
	m := mark{log: f.p.Store.MaxLog()}
	f.mu.Lock()
	t, a := &f.mu.halves, &f.mu.aside
	a.forget(int64(f.p.Store.MinOffset(discardQueue)))
	m.lowHalf = int64(f.p.Store.MaxOffset(halfQueue))
	if h := t.lowest(); h != nil {
		m.lowHalf = min(m.lowHalf, h.off)
	}
	m.lowMark = f.put.marks.low(m.lowHalf, int64(f.p.Store.MaxOffset(markQueue)))
	same := len(t.dirty) == 0 && a.dirty == 0 && m.lowHalf == s.mark.lowHalf && m.lowMark == s.mark.lowMark && m.log-s.mark.log < logStep
	anew := s.journal.anew() || s.stale
	var content []byte
	switch {
	case same && !anew:
		f.mu.Unlock()
		f.gate.Unlock()
		return f.saveMetrics()
	case anew:
		content = whole(t, a, m)
		for i := range t.list {
			t.list[i].flags &^= saved
			if !t.list[i].is(closed) {
				t.touch(&t.list[i])
			}
		}
	default:
		content = changes(t, a, m)
	}
	t.settled()
	a.settled()
	f.mu.Unlock()
	f.gate.Unlock()

	// What is in the journal must not be taken back by a power cut: first the log,
	// then what is said of it.
	err := f.p.Store.Flush()
	if err == nil {
		if anew {
			err = s.journal.write(content)
		} else {
			err = s.journal.append(content)
		}
	}
	if err != nil {
		s.stale = true // dirty marks are gone: next time all is written
		return err
	}
	s.mark, s.stale = m, false
	f.tellProgress(m)
	return f.saveMetrics()
}

// tellProgress sets the progress of RocketMQ's own group, never beyond what the
// journal says.
func (f *Flow) tellProgress(m mark) {
	for _, p := range []struct {
		topic string
		off   int64
	}{{mq.TopicTransHalf, m.lowHalf}, {mq.TopicTransOp, m.lowMark}} {
		if err := f.p.Offsets.Commit(mq.GroupTrans, p.topic, 0, mq.QueueOffset(p.off)); err != nil {
			f.note.Error("progress of transactions could not be noted", "topic", p.topic, "offset", p.off, "err", err)
		}
	}
}

// Pin is the lowest log position of an open half, math.MaxInt64 when there is
// none. It is for storage.Store.Pin: who asks wants to delete the oldest file, so
// the halves in it are appended again.
func (f *Flow) Pin() mq.LogOffset {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.mu.halves.lowest()
	if h == nil {
		return math.MaxInt64
	}
	size := mq.LogOffset(f.cfg.LogFileSize)
	if end := (f.p.Store.MinLog()/size + 1) * size; h.pos < end {
		f.mu.renew = end
		select {
		case f.wakeRenew <- struct{}{}:
		default:
		}
	}
	return h.pos
}

// Counts tells how many are open by destination topic.
func (f *Flow) Counts() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.halves.topics.counts()
}
