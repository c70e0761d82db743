package pending

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Config is what an index is told.
type Config struct {
	// Durable is the log position below which everything survives a power loss;
	// Flush makes everything appended so far durable. Fence is Durable, taken at a
	// moment at which everything that the log says up to there is told to the index.
	Durable func() mq.LogOffset
	Fence   func() mq.LogOffset
	Flush   func() error

	// TableEntries is how many entries in memory make a run, from 1,024; 32 bytes
	// each, four times over while one is being written.
	TableEntries int

	// Fan is how many runs of about one size are merged into one, from 2.
	Fan int

	// HerdBlocks is how many blocks of 511 entries must be due in one millisecond
	// to be a herd, from 1.
	HerdBlocks int

	// Log hears what happens; nil is silent.
	Log *slog.Logger
}

// DefaultConfig is for tables of 8 MiB. Durable, Fence and Flush are for the caller to set.
func DefaultConfig() Config { return Config{TableEntries: 256 << 10, Fan: 16, HerdBlocks: 8} }

// Validate joins all complaints about c.
func (c Config) Validate() error {
	var errs []error
	if c.Durable == nil || c.Fence == nil || c.Flush == nil {
		errs = append(errs, errors.New("durable, fence and flush are needed"))
	}
	if c.TableEntries < 1024 {
		errs = append(errs, fmt.Errorf("table entries is %d, want at least 1024", c.TableEntries))
	}
	if c.Fan < 2 {
		errs = append(errs, fmt.Errorf("fan is %d, want at least 2", c.Fan))
	}
	if c.HerdBlocks < 1 {
		errs = append(errs, fmt.Errorf("herd blocks is %d, want at least 1", c.HerdBlocks))
	}
	return errors.Join(errs...)
}

// Index is the set of pending messages. Its methods are safe for concurrent use.
//
// Locks: save before load before mu. Files are read under load, never under mu,
// so that Add, Done and Cancel do not wait for a disk.
type Index struct {
	fs   vfs.FS
	dir  string
	cfg  Config
	note *slog.Logger

	// save is held by the one who makes a checkpoint or merges runs.
	save struct {
		sync.Mutex
		doc      *table.Document[manifest]
		now      manifest // on disk
		before   manifest // the generation before, to which a damaged file falls back
		nextFile int64
	}

	// load is held by the one who takes entries from runs.
	load struct {
		sync.Mutex
		heads  sourceHeap
		broken []*source // could not be read the last time
		herds  map[int32]*source
		herd   int32 // the last id given
		lost   error // damage met, which a rebuild mends
	}

	mu struct {
		sync.Mutex
		next    mq.QueueOffset // entries below are known
		horizon Entry          // entries before it are out or done, but for herds
		table   entryHeap
		frozen  entryHeap // being written as a run
		out     map[mq.QueueOffset]taken
		done    []mark // those of out that are done, oldest first
		gone    *roaring64.Bitmap
		recent  map[mq.QueueOffset]mq.LogOffset // those of gone whose mark may not be durable
		marks   []mark                          // likewise, oldest first
		topics  []TopicCount
		numbers map[string]uint32
		pending int64
		changes uint64
	}
	full chan struct{} // the table should be written
}

// taken is an entry that is out.
type taken struct {
	Entry
	by mq.LogOffset // position behind what makes it done, 0 while it is not
}

// mark says that an entry is done as soon as the log is durable up to by.
type mark struct {
	seq   mq.QueueOffset
	by    mq.LogOffset
	topic uint32
}

// TopicCount is how many messages are pending for a topic.
type TopicCount struct {
	Topic   string `json:"topic"`
	Pending int64  `json:"pending"`
}

// State is where the index stands; what follows must be added.
type State struct {
	Next  mq.QueueOffset // entries of the queue from here on
	Log   mq.LogOffset   // receipts and recalls from here on
	Store string         // whose checkpoint it is, empty when there was none
	Out   []Entry        // what was handed over and not done, and is handed over hereby

	// Rebuilt says that nothing usable was on disk, and why: nil when there was nothing at all.
	Rebuilt error
}

func newIndex(fsys vfs.FS, dir string, cfg Config) *Index {
	x := &Index{fs: fsys, dir: dir, cfg: cfg, note: cfg.Log, full: make(chan struct{}, 1)}
	if x.note == nil {
		x.note = slog.New(slog.DiscardHandler)
	}
	x.load.herds = map[int32]*source{}
	m := &x.mu
	m.horizon = Entry{Due: math.MinInt64}
	m.out = map[mq.QueueOffset]taken{}
	m.gone = roaring64.New()
	m.recent = map[mq.QueueOffset]mq.LogOffset{}
	m.numbers = map[string]uint32{}
	return x
}

// Topic returns the number of a destination, for entries.
func (x *Index) Topic(name string) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, ok := x.mu.numbers[name]
	if !ok {
		n = uint32(len(x.mu.topics))
		x.mu.topics = append(x.mu.topics, TopicCount{Topic: name})
		x.mu.numbers[name] = n
	}
	return n
}

// TopicName is the destination with a number, empty when there is none.
func (x *Index) TopicName(n uint32) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if int(n) < len(x.mu.topics) {
		return x.mu.topics[n].Topic
	}
	return ""
}

// Add takes in the next entry of the queue. One that is known is passed over.
// direct says that the entry is out: it falls due before what Load has handed
// over already.
func (x *Index) Add(e Entry) (direct bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := &x.mu
	if e.Seq < m.next {
		return false
	}
	m.next = e.Seq + 1
	x.countLocked(e.Topic, 1)
	if e.before(&m.horizon) {
		return x.takeLocked(e)
	}
	m.table.push(e)
	if len(m.table) >= x.cfg.TableEntries {
		select {
		case x.full <- struct{}{}:
		default:
		}
	}
	return false
}

// Pass says that what stands at the next offset of the queue is no entry.
func (x *Index) Pass(seq mq.QueueOffset) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.next = max(x.mu.next, seq+1)
}

// NextDue is when the earliest entry that is not out is due, MaxInt64 when there is none.
func (x *Index) NextDue() int64 {
	x.load.Lock()
	defer x.load.Unlock()
	due := int64(math.MaxInt64)
	if h := x.load.heads; len(h) > 0 {
		due = h[0].buffered().Due
	}
	if len(x.load.broken) > 0 {
		due = math.MinInt64
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, h := range []entryHeap{x.mu.table, x.mu.frozen} {
		if len(h) > 0 {
			due = min(due, h[0].Due)
		}
	}
	return due
}

// Full is told when a checkpoint should be made because memory holds enough.
func (x *Index) Full() <-chan struct{} { return x.full }

// Room reports whether memory has room for more entries; it has none when the
// disk does not take what is in memory already.
func (x *Index) Room() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.mu.table) < 3*x.cfg.TableEntries
}

// Next is the lowest offset of the queue that was not added.
func (x *Index) Next() mq.QueueOffset {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.mu.next
}

func (x *Index) countLocked(topic uint32, n int64) {
	x.mu.pending += n
	x.mu.changes++
	if int(topic) < len(x.mu.topics) {
		x.mu.topics[topic].Pending += n
	}
}

// takeLocked makes an entry out, and reports false when it is gone.
func (x *Index) takeLocked(e Entry) bool {
	m := &x.mu
	m.changes++
	if !m.gone.Contains(uint64(e.Seq)) {
		m.out[e.Seq] = taken{Entry: e}
		return true
	}
	m.gone.Remove(uint64(e.Seq))
	if by, ok := m.recent[e.Seq]; ok {
		// What makes it gone may yet be lost, and then it is pending again.
		delete(m.recent, e.Seq)
		m.out[e.Seq] = taken{e, by}
		m.done = append(m.done, mark{e.Seq, by, e.Topic})
	}
	return false
}

// Done says that an entry is done, delivered or recalled, by a record that ends
// at a log position. It reports false when that was known. topic counts for an entry
// that is not out.
func (x *Index) Done(seq mq.QueueOffset, topic uint32, by mq.LogOffset) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := &x.mu
	by = max(by, 1)
	if t, ok := m.out[seq]; ok {
		if t.by != 0 {
			return false
		}
		t.by = by
		m.out[seq] = t
		m.done = append(m.done, mark{seq, by, t.Topic})
		x.countLocked(t.Topic, -1)
		if len(m.done)%1024 == 0 {
			x.settleLocked(x.cfg.Durable())
		}
		return true
	}
	if !m.gone.CheckedAdd(uint64(seq)) {
		return false
	}
	m.recent[seq] = by
	m.marks = append(m.marks, mark{seq, by, topic})
	x.countLocked(topic, -1)
	if len(m.marks)%1024 == 0 {
		x.settleLocked(x.cfg.Durable())
	}
	return true
}

// settleLocked forgets marks that are durable.
func (x *Index) settleLocked(durable mq.LogOffset) {
	m := &x.mu
	n := 0
	for ; n < len(m.done) && m.done[n].by <= durable; n++ {
		delete(m.out, m.done[n].seq)
	}
	m.done = m.done[:copy(m.done, m.done[n:])]
	n = 0
	for ; n < len(m.marks) && m.marks[n].by <= durable; n++ {
		delete(m.recent, m.marks[n].seq)
	}
	m.marks = m.marks[:copy(m.marks, m.marks[n:])]
}

// Alive reports whether an entry is out and not done: to be asked before it is delivered.
func (x *Index) Alive(seq mq.QueueOffset) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	t, ok := x.mu.out[seq]
	return ok && t.by == 0
}

// Standing is how an entry stands.
type Standing uint8

// How an entry stands.
const (
	Passed    Standing = iota // it was delivered, or recalled and its time has passed
	Waiting                   // it is pending
	Cancelled                 // it is done before its time
)

// Standing tells how the entry that is due at due stands; the caller knows from
// its record that there is such an entry.
func (x *Index) Standing(due int64, seq mq.QueueOffset) (Standing, error) {
	key := Entry{Due: due, Seq: seq}
	known, st := x.standing(&key)
	if known {
		return st, nil
	}
	// It may be part of a herd.
	x.load.Lock()
	defer x.load.Unlock()
	if known, st = x.standing(&key); known {
		return st, nil // it was taken meanwhile
	}
	for _, s := range x.sourcesLocked() {
		if s.lo >= s.hi || s.run.dues[s.lo/perBlock] > due || s.run.lastDue < due {
			continue
		}
		i, err := s.run.find(due, seq)
		if err != nil {
			return Passed, err
		}
		if i >= s.lo && i < s.hi {
			at := newSource(s.run, i, i+1)
			if e, err := at.head(); err != nil {
				return Passed, err
			} else if e.Due == due && e.Seq == seq {
				return Waiting, nil
			}
		}
	}
	return Passed, nil
}

func (x *Index) standing(key *Entry) (known bool, st Standing) {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := &x.mu
	if t, ok := m.out[key.Seq]; ok {
		if t.by == 0 {
			return true, Waiting
		}
		return true, Passed
	}
	switch {
	case m.gone.Contains(uint64(key.Seq)):
		return true, Cancelled
	case key.Seq >= m.next || !key.before(&m.horizon):
		return true, Waiting
	}
	return false, Passed
}

// Stats is what an index tells of itself.
type Stats struct {
	Pending int64
	Out     int // handed over and not known to be durably done
	Table   int // in memory only
	Gone    uint64
	Runs    int
	Next    mq.QueueOffset
	Changes uint64 // grows with every entry added, taken or done
	Damaged error  // a part of a run cannot be read; the next start builds the index anew
}

// Stats looks at everything.
func (x *Index) Stats() Stats {
	x.load.Lock()
	defer x.load.Unlock()
	runs := map[*run]bool{}
	for _, s := range x.sourcesLocked() {
		runs[s.run] = true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	m := &x.mu
	return Stats{
		Pending: m.pending, Out: len(m.out), Table: len(m.table) + len(m.frozen), Gone: m.gone.GetCardinality(),
		Runs: len(runs), Next: m.next, Changes: m.changes, Damaged: x.load.lost,
	}
}

// Topics tells how many messages are pending for each topic that has any.
func (x *Index) Topics() []TopicCount {
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []TopicCount
	for _, t := range x.mu.topics {
		if t.Pending != 0 {
			list = append(list, t)
		}
	}
	return list
}

// sourcesLocked returns all that is not taken from runs; load is held.
func (x *Index) sourcesLocked() []*source {
	list := append([]*source(nil), x.load.heads...)
	list = append(list, x.load.broken...)
	for _, s := range x.load.herds {
		list = append(list, s)
	}
	return list
}
