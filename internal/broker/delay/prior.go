package delay

import (
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Prior is what is known of progress before the store is open. It is read first,
// because it says from where on the store has to show its records ([Prior.From],
// [Prior.See]).
type Prior struct {
	over *handover

	files *files
	note  *slog.Logger

	checkpoint *checkpoint     // nil: lost, or never was
	offsets    map[int64]int64 // delayOffset.json by level; nil: lost, or never was
	notes      []string        // corrections to tell of
	seed       maphash.Seed

	receipts []seen
	dests    []mq.QueueKey
	destIDs  map[mq.QueueKey]int32
	stores   map[string]int32

	// For levels about which neither file says anything: what was seen waiting and
	// what of it was seen delivered.
	waiting map[uint64][]place
	found   map[mq.QueueID]*spans
	end     mq.LogOffset // behind the last record seen

	timed timedPrior
}

// seen is a receipt in the log.
type seen struct {
	start mq.LogOffset // of the record that carries it
	end   mq.LogOffset
	off   int64
	queue mq.QueueID
	dest  int32
	store int32
}

type place struct {
	queue mq.QueueID
	off   int64
}

// ReadPrior reads RocketMQ's delayOffset.json in configDir and our delay.json in
// ownDir. A file that is damaged together with its .bak is set aside; then the
// other one counts, or both are made again from the log.
func ReadPrior(fsys vfs.FS, configDir, ownDir string, note *slog.Logger) (*Prior, error) {
	if note == nil {
		note = slog.New(slog.DiscardHandler)
	}
	p := &Prior{
		files: &files{}, note: note, seed: maphash.MakeSeed(),
		destIDs: map[mq.QueueKey]int32{}, stores: map[string]int32{},
		waiting: map[uint64][]place{}, found: map[mq.QueueID]*spans{},
	}
	own, c, ok, err := readDocument[checkpoint](p, fsys, filepath.Join(ownDir, "delay.json"))
	if err != nil {
		return nil, err
	}
	if ok && c.Format != checkpointFormat {
		return nil, fmt.Errorf("%s has format %d, this version knows %d: it was written by another version", own.Path(), c.Format, checkpointFormat)
	}
	p.files.own = own
	if ok && c.Log >= 0 {
		p.checkpoint, p.files.saved = &c, c
	}
	offsets, t, ok, err := readDocument[OffsetTable](p, fsys, filepath.Join(configDir, "delayOffset.json"))
	if err != nil {
		return nil, err
	}
	p.files.offsets, p.files.savedTable = offsets, t
	if ok {
		p.offsets = map[int64]int64{}
		for text, off := range t.Offsets {
			if level, err := strconv.ParseInt(text, 10, 32); err == nil && level > 0 {
				p.offsets[level] = off
			}
		}
	}
	p.files.stale = p.checkpoint == nil || p.offsets == nil
	if p.timed.check, err = ReadTimerCheck(fsys, filepath.Join(configDir, "timercheck")); err != nil {
		return nil, err
	}
	if p.over, err = openHandover(fsys, configDir, ownDir, p); err != nil {
		return nil, err
	}
	return p, p.openTimed(fsys, filepath.Join(ownDir, "timers"))
}

// readDocument reports with ok whether there was a readable one.
func readDocument[T any](p *Prior, fsys vfs.FS, path string) (d *table.Document[T], content T, ok bool, err error) {
	d, content, report, err := table.Open[T](fsys, path)
	if _, damaged := errors.AsType[*mq.CorruptionError](err); damaged {
		cause := err
		var aside []string
		var zero T
		if d, aside, err = table.Reset[T](fsys, path); err != nil {
			return nil, zero, false, err
		}
		p.notes = append(p.notes, fmt.Sprintf("%s: %v; kept as %s and made again", path, cause, strings.Join(aside, ", ")))
		return d, zero, false, nil
	}
	if err != nil {
		return nil, content, false, err
	}
	if s := report.String(); s != "" {
		p.notes = append(p.notes, path+": "+s)
		p.files.stale = true
	}
	return d, content, report.Source != table.Nothing, nil
}

// From is the log position from which on See wants records. It is for
// storage.Config.RecoverFrom.
func (p *Prior) From() mq.LogOffset {
	if p.checkpoint == nil {
		return 0
	}
	return min(p.checkpoint.Log, p.timed.state.Log)
}

// known reports whether a file says how far a queue is, and how far at least.
func (p *Prior) known(id mq.QueueID) (low int64, ok bool) {
	if p.checkpoint != nil {
		return p.checkpoint.Queues[id].Low, true
	}
	low, ok = p.offsets[int64(id)+1]
	return low, ok && low >= 0
}

// See takes in a record of the log. It is for storage.Config.Recovered.
func (p *Prior) See(v record.View) {
	end := v.LogOffset() + mq.LogOffset(len(v))
	p.end = max(p.end, end)
	if string(v.Topic()) == mq.TopicSchedule {
		if _, ok := p.known(v.QueueID()); !ok {
			p.seeWaiting(v)
		}
		return
	}
	if string(v.Topic()) == mq.TopicTimer {
		p.seeRecall(v)
		return
	}
	value, ok := v.Property(mq.PropReceipt)
	if r, parsed := record.ParseReceipt(bin.String(value)); ok && parsed && r.Queue == timedQueue {
		p.seeTimed(v, r)
		return
	} else if ok && parsed && r.Queue.Topic == mq.TopicSchedule {
		if low, ok := p.known(r.Queue.ID); ok {
			if int64(r.Offset) >= low {
				p.receipts = append(p.receipts, seen{v.LogOffset(), end, int64(r.Offset), r.Queue.ID, p.destID(v), p.storeID(r.Store)})
			}
			return
		}
	}
	if len(p.waiting) > 0 {
		p.seeDelivered(v)
	}
}

func (p *Prior) destID(v record.View) int32 {
	k := mq.QueueKey{Topic: bin.String(v.Topic()), ID: v.QueueID()}
	id, ok := p.destIDs[k]
	if !ok {
		k.Topic = strings.Clone(k.Topic)
		id = int32(len(p.dests))
		p.dests = append(p.dests, k)
		p.destIDs[k] = id
	}
	return id
}

func (p *Prior) storeID(name string) int32 {
	id, ok := p.stores[name]
	if !ok {
		id = int32(len(p.stores))
		p.stores[strings.Clone(name)] = id
	}
	return id
}

// A delivered message looks like its pending record but for topic, queue and
// store time, also when RocketMQ delivered it: same birth, same unique key, same
// body, and the bookkeeping properties still in it.

func (p *Prior) seeWaiting(v record.View) {
	topic, _ := v.Property(mq.PropRealTopic)
	queue, _ := v.Property(mq.PropRealQueueID)
	k := p.likeness(v, topic, queue)
	p.waiting[k] = append(p.waiting[k], place{v.QueueID(), int64(v.QueueOffset())})
}

func (p *Prior) seeDelivered(v record.View) {
	topic, ok := v.Property(mq.PropRealTopic)
	if !ok || string(topic) != string(v.Topic()) {
		return
	}
	queue, _ := v.Property(mq.PropRealQueueID)
	if string(queue) != strconv.Itoa(int(v.QueueID())) {
		return
	}
	k := p.likeness(v, topic, queue)
	list := p.waiting[k]
	if len(list) == 0 {
		return
	}
	at := list[0]
	if len(list) == 1 {
		delete(p.waiting, k)
	} else {
		p.waiting[k] = list[1:]
	}
	if p.found[at.queue] == nil {
		p.found[at.queue] = &spans{}
	}
	p.found[at.queue].add(at.off, at.off+1)
}

func (p *Prior) likeness(v record.View, topic, queue []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	part := func(b []byte) {
		_, _ = h.Write(b)
		_ = h.WriteByte(0)
	}
	part(topic)
	part(queue)
	unique, _ := v.Property(mq.PropUniqueKey)
	part(unique)
	level, _ := v.Property(mq.PropDelay)
	part(level)
	var b [16]byte
	part(strconv.AppendInt(b[:0], v.BornTime(), 10))
	part(strconv.AppendInt(b[:0], int64(v.BodyCRC()), 10))
	return h.Sum64()
}

// restore makes a lane of each schedule queue, in the state that prior and the
// receipts give. Nobody else knows the flow yet, so it takes no locks.
func (f *Flow) restore(p *Prior) error {
	for _, n := range p.notes {
		f.note.Warn("progress of delayed messages: " + n)
	}
	type bounds struct{ lo, hi int64 }
	queues := map[mq.QueueID]bounds{}
	f.store.Queues(func(key mq.QueueKey, lo, hi mq.QueueOffset) {
		if key.Topic == mq.TopicSchedule {
			queues[key.ID] = bounds{int64(lo), int64(hi)}
		}
	})
	if c := p.checkpoint; c != nil {
		f.mu.aside = asideList{c.AsideCount, c.Aside}
	}
	for id, q := range queues {
		l := f.newLane(id)
		l.end = q.hi
		l.done = restoreQueue(p, l, q.hi)
		f.missDeleted(p, l, q.lo)
		l.done.clip(q.lo, q.hi)
		l.durable = l.done.clone()
	}
	f.honour(p)
	for id, s := range p.found {
		if l := f.mu.lanes[id]; l != nil {
			f.found(l, 0, s.low, 0, p.end)
			for _, d := range s.done {
				f.found(l, d.lo, d.hi, 0, p.end)
			}
		}
	}
	for id, q := range queues {
		l := f.mu.lanes[id]
		l.done.clip(q.lo, q.hi)
		l.extra = l.done.count()
		if err := f.scan(l, q.hi); err != nil {
			return err
		}
	}
	for level, off := range p.offsets {
		q := queues[mq.QueueID(level-1)]
		if off < q.lo && (off < 0 || q.hi > 0) || off > q.hi {
			low := int64(0)
			if l := f.mu.lanes[mq.QueueID(level-1)]; l != nil {
				low = l.done.low
			}
			f.note.Warn("progress of a delay level was out of range and is corrected", "level", level, "saved", off, "min", q.lo, "max", q.hi, "corrected", low)
			p.files.stale = true
		}
	}
	for _, s := range f.mu.streams {
		f.refill(s)
	}
	if err := f.restoreTimed(p); err != nil {
		return err
	}
	if !p.files.stale {
		return nil
	}
	return f.save()
}

// missDeleted counts as set aside what was pending by our own account and is
// below the queue's lowest offset now: the log files were removed by somebody
// else, because the store keeps what is pending.
func (f *Flow) missDeleted(p *Prior, l *lane, lo int64) {
	if p.checkpoint == nil {
		return
	}
	if _, known := p.checkpoint.Queues[l.key.ID]; !known {
		return
	}
	first, now := l.done.next(0), f.timer.Now()
	if first >= lo {
		return
	}
	before := f.mu.aside.count
	for n := first; n < lo; n = l.done.next(n) {
		f.asideLocked(l, n, unknownPos, deletedReason, now)
	}
	f.note.Error("pending messages were deleted before they were due", "level", l.level, "from", first, "to", lo, "count", f.mu.aside.count-before)
	p.files.stale = true
}

// deletedReason is why a message is set aside whose record is gone.
const deletedReason = "deleted before it was due"

// restoreQueue is what the files say of a queue whose next offset is hi.
func restoreQueue(p *Prior, l *lane, hi int64) spans {
	var s spans
	if p.checkpoint != nil {
		s = p.checkpoint.Queues[l.key.ID].spans()
	}
	switch off, ok := p.offsets[int64(l.level)]; {
	case !ok || off < 0:
	case off <= hi:
		s.add(0, off)
	case p.checkpoint == nil:
		s.add(0, hi) // as RocketMQ does; nothing else is known
	}
	return s
}

// honour marks as done what the receipts name, if the pending record is there
// and has the destination that the receipt was found at.
func (f *Flow) honour(p *Prior) {
	honoured := map[int32]bool{}
	for name, id := range p.stores {
		honoured[id] = name == f.store.ID() || p.checkpoint != nil && name == p.checkpoint.Store
	}
	ignored := 0
	for _, r := range p.receipts {
		l := f.mu.lanes[r.queue]
		if l == nil || r.off >= l.end || l.done.has(r.off) {
			continue
		}
		if !honoured[r.store] || !f.destined(l, r.off, p.dests[r.dest]) {
			ignored++
			continue
		}
		f.found(l, r.off, r.off+1, r.start, r.end)
	}
	if ignored > 0 {
		f.note.Warn("receipts that match no pending message are ignored", "count", ignored)
	}
	p.receipts = nil
}

func (f *Flow) destined(l *lane, off int64, dest mq.QueueKey) bool {
	var one [1]consumequeue.Entry
	if n, _ := f.store.Entries(l.key, mq.QueueOffset(off), one[:]); n == 0 {
		return false
	}
	v, release, err := f.store.Record(one[0].Pos)
	if err != nil {
		return false
	}
	defer release()
	d, err := destinationOf(v, l.key, off)
	return err == nil && d == dest
}

// found marks messages as delivered by a record that stands at start and ends at
// end, and may not be durable yet.
func (f *Flow) found(l *lane, lo, hi int64, start, end mq.LogOffset) {
	hi = min(hi, l.end)
	if l.done.add(lo, hi) == 0 {
		return
	}
	f.put.last = max(f.put.last, end)
	f.hand(l, lo, hi, start)
}

// scan divides what is pending in a queue into runs and loads the first of each.
func (f *Flow) scan(l *lane, hi int64) error {
	for next := l.done.next(0); next < hi; {
		n, err := f.store.Entries(l.key, mq.QueueOffset(next), f.entries[:min(int64(len(f.entries)), hi-next)])
		if n == 0 {
			if err == nil {
				err = fmt.Errorf("no entry")
			}
			return fmt.Errorf("read schedule queue %d at %d: %w", l.key.ID, next, err)
		}
		for i, e := range f.entries[:n] {
			if off := next + int64(i); !l.done.has(off) {
				f.admit(l, off, e.TagsCode, false)
			}
		}
		next = l.done.next(next + int64(n))
	}
	l.end = hi
	return nil
}
