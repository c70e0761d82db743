package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/commitlog"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
)

// recovery is what Open finds out before the store is ready. The plain story:
// read what the store said of itself, walk the log from there to its end, give
// every record its place in its queue, cut what is behind the end. Then the
// exceptions: a log that ends too early, queues that are not what they were.
type recovery struct {
	store *Store

	aborted  bool // nobody stopped the store clean
	stranger bool // another broker wrote here since we did, or we never did
	trusted  bool // state is ours and speaks of this log

	from    mq.LogOffset // the walk begins here
	durable mq.LogOffset // records before it were known to be on disk
	witness string       // the queue that knows it, empty if it is the state

	doubt map[mq.QueueKey]mq.QueueOffset // queues to be built anew, and at least how far they went
	told  time.Time
	known map[*consumequeue.Queue]*window
}

// window is a stretch of a queue's entries as they are on disk, so that a walk
// over records that are all in their queues reads those in stretches too.
type window struct {
	from    mq.QueueOffset
	n       int
	entries [64]consumequeue.Entry
}

// entry is q.Entry through the window. Whoever changes the queue forgets it.
func (r *recovery) entry(q *consumequeue.Queue, off mq.QueueOffset) (consumequeue.Entry, bool) {
	w := r.known[q]
	if w == nil {
		w = &window{}
		r.known[q] = w
	}
	if off < w.from || off >= w.from+mq.QueueOffset(w.n) {
		w.from = off
		w.n, _ = q.Read(off, w.entries[:]) // what cannot be read is not there
	}
	if w.n == 0 {
		return consumequeue.Entry{}, false
	}
	return w.entries[off-w.from], true
}

// recover makes the store ready from whatever is on disk.
func (s *Store) recover() error {
	r := &recovery{store: s, doubt: map[mq.QueueKey]mq.QueueOffset{}, known: map[*consumequeue.Queue]*window{}}
	if err := s.refuseForeign(); err != nil {
		return err
	}
	if err := r.readMarks(); err != nil {
		return err
	}
	if err := s.openQueues(r); err != nil {
		return err
	}
	if err := r.checkQueues(); err != nil {
		return err
	}
	clean := r.cleanStop()
	r.findDurable()
	if err := r.checkHeads(); err != nil {
		return err
	}
	if err := r.replayOld(); err != nil {
		return err
	}
	tail, err := r.walk()
	if err != nil {
		return err
	}
	if err := r.checkEnd(tail); err != nil {
		return err
	}
	if s.cfg.ReadOnly {
		return s.log.StartReadOnly(tail)
	}
	r.report(tail)
	if err := s.log.Start(tail); err != nil {
		return err
	}
	if err := s.sets.TruncateAt(tail.End); err != nil {
		return err
	}
	if err := r.rebuild(tail.End); err != nil {
		return err
	}
	if err := s.sets.RaiseMin(s.log.First()); err != nil {
		return err
	}
	if clean {
		r.reportGone()
	}
	return r.open(tail)
}

// reportGone tells of messages that were there at the clean stop before and that
// the log does not hold any more, because somebody took its oldest files away.
func (r *recovery) reportGone() {
	s := r.store
	var gone mq.QueueOffset
	s.sets.Each(func(q *consumequeue.Queue) bool {
		if b, ok := s.manifest.Topics[q.Key().Topic][strconv.Itoa(int(q.Key().ID))]; ok {
			gone += max(0, min(q.Min(), b.Max)-b.Min)
		}
		return true
	})
	if gone > 0 {
		s.note.Warn("the oldest files of the commit log were removed while no broker ran: their messages are gone", "dir", s.cfg.logDirs()[0], "logBegins", int64(s.log.First()), "messages", int64(gone))
	}
}

// foreign are directories in which RocketMQ keeps queues of kinds that we do not
// have: opening such a store would serve other messages than it holds.
var foreign = []struct{ dir, what string }{
	{"batchconsumequeue", "queues of topics with queue.type=BatchCQ"},
	{"consumequeue_ext", "queue entries with filter bits (enableConsumeQueueExt)"},
}

func (s *Store) refuseForeign() error {
	for _, f := range foreign {
		entries, err := s.fs.ReadDir(s.path(f.dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(entries) > 0 {
			return fmt.Errorf("%w: %s holds %s", mq.ErrUnsupported, s.path(f.dir), f.what)
		}
	}
	return nil
}

// readMarks reads what the last broker here wrote about itself.
func (r *recovery) readMarks() error {
	s := r.store
	_, err := s.fs.Stat(s.path("abort"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.aborted = err == nil
	st, found, err := readState(s.fs, s.cfg.own("state"))
	if err != nil {
		return err
	}
	if s.checkpoint, s.checkpointCRC, err = readCheckpoint(s.fs, s.path("checkpoint")); err != nil {
		return err
	}
	s.checkpointOld = r.aborted
	r.stranger = !found || s.checkpointCRC != st.checkpoint[0] && s.checkpointCRC != st.checkpoint[1]
	r.trusted = found && s.log.Holds(st.covered)
	s.foreign = r.stranger
	if found {
		s.state = st
	} else if s.docs.old && len(s.log.Segments().Files()) > 0 {
		s.note.Warn("there is no "+s.cfg.own("state")+" that says how far the log was on disk: all of the log is read and verified, which takes its time", "log", int64(s.log.First()))
	}
	r.from = s.log.First()
	if r.trusted {
		r.from = max(r.from, st.covered.End)
	}
	if found && !r.trusted && !r.stranger && st.covered.End >= s.log.First() {
		// Nobody else was here, and yet the log is not the one we wrote. (One that
		// begins behind what we wrote has only lost its oldest files.)
		err := fmt.Errorf("the log does not hold the record at %d that was known to be on disk", st.covered.Last)
		if !s.cfg.AcceptDamage {
			return &mq.CorruptionError{File: s.fileOf(st.covered.Last), Offset: int64(st.covered.Last) % s.cfg.LogFileSize, Err: err}
		}
		s.note.Warn("damage accepted", "err", err)
	}
	return nil
}

// fileOf is the path of the commit log file in which at lies, there or not.
func (s *Store) fileOf(at mq.LogOffset) string {
	for _, f := range s.log.Segments().Files() {
		if int64(at) >= f.Start() && int64(at) < f.End() {
			return f.Path()
		}
	}
	return filepath.Join(s.cfg.logDirs()[0], fmt.Sprintf("%020d", int64(at)/s.cfg.LogFileSize*s.cfg.LogFileSize))
}

func (s *Store) openQueues(r *recovery) error {
	cfg := s.cfg.queueConfig()
	if r.trusted {
		cfg.Covered = s.state.covered.End
	}
	var err error
	s.sets, err = consumequeue.OpenSet(s.fs, filepath.Join(s.cfg.Dir, "consumequeue"), cfg)
	return err
}

// checkQueues compares the queues on disk with the list of those there were.
// When a stranger was here, he may have deleted some rightly.
func (r *recovery) checkQueues() error {
	s := r.store
	if r.trusted && !r.stranger {
		for topic, ids := range s.manifest.Topics {
			for text, b := range ids {
				id, err := strconv.ParseInt(text, 10, 32)
				if err != nil {
					continue
				}
				key := mq.QueueKey{Topic: topic, ID: mq.QueueID(id)}
				q := s.sets.Get(key)
				if q == nil || q.Min() > b.Min || r.cleanStop() && q.Max() < b.Max {
					r.doubt[key] = b.Max
				}
			}
		}
	}
	// A topic deleted shortly before a crash.
	for topic, grave := range s.graves.Load().Topics {
		for _, q := range s.sets.TopicQueues(topic) {
			if e, ok := q.Entry(q.Min()); ok && e.Pos < grave {
				r.doubt[q.Key()] = 0
			}
		}
	}
	if s.cfg.ReadOnly {
		return nil
	}
	s.sets.Each(func(q *consumequeue.Queue) bool {
		if err := q.Broken(); err != nil {
			s.note.Warn("files of a queue are damaged", "topic", q.Key().Topic, "queue", q.Key().ID, "err", err)
		}
		if r.garbled(q) {
			r.doubt[q.Key()] = max(r.doubt[q.Key()], s.manifest.Topics[q.Key().Topic][strconv.Itoa(int(q.Key().ID))].Max)
		}
		return true
	})
	return nil
}

// garbled reports whether a queue has files of a strange size, begins with what no
// broker wrote, or goes on behind the log that a clean stop covered. Such a queue
// says nothing of the log, and the log can say what belongs into it.
func (r *recovery) garbled(q *consumequeue.Queue) bool {
	if q.Broken() != nil {
		return true
	}
	if q.Min() == q.Max() {
		return false
	}
	e, ok := q.Entry(q.Min())
	return !ok || e.Pos >= q.End() || r.cleanStop() && q.End() > r.store.state.covered.End
}

func (r *recovery) cleanStop() bool {
	return r.trusted && !r.stranger && r.store.state.clean && !r.aborted
}

// findDurable says how far the log is known to have been on disk: as far as the
// state says, and as far as there are queue entries in files, because we write
// those after the log is durable; RocketMQ does not, so its entries count only
// after a clean stop.
func (r *recovery) findDurable() {
	s := r.store
	if r.trusted {
		r.durable = s.state.covered.End
	}
	if r.aborted && r.stranger {
		return
	}
	s.sets.Each(func(q *consumequeue.Queue) bool {
		if _, doubted := r.doubt[q.Key()]; !doubted {
			if end := q.End(); end > r.durable {
				r.durable, r.witness = end, fmt.Sprintf("%s/%d", q.Key().Topic, q.Key().ID)
			}
		}
		return true
	})
}

// checkHeads looks at the first record of each log file that the walk does not
// come to, so that one that was overwritten or made empty is found by the start
// and not by a consumer. What was accepted is remembered in the manifest.
func (r *recovery) checkHeads() error {
	s := r.store
	for _, f := range s.log.Segments().Files() {
		start := mq.LogOffset(f.Start())
		if start >= r.from {
			break
		}
		_, file, err := s.log.Peek(start)
		if err == nil {
			file.Release()
			continue
		}
		if errors.Is(err, mq.ErrNotFound) {
			continue // a blank
		}
		err = &mq.CorruptionError{File: f.Path(), Err: fmt.Errorf("log position %d, and messages up to %d were known to be on disk: %w", start, r.durable, err)}
		if !s.cfg.AcceptDamage && !slices.Contains(s.manifest.Damaged, start) {
			return err
		}
		s.note.Warn("damage accepted: a log file does not begin with a message", "err", err)
		s.damaged = append(s.damaged, start)
	}
	return nil
}

// replayOld shows records that lie before the walk to whoever wants them.
func (r *recovery) replayOld() error {
	s := r.store
	want := s.cfg.RecoverFrom
	if s.cfg.Recovered == nil || want >= r.from {
		return nil
	}
	_, err := s.log.Walk(s.log.Boundary(want), r.from, func(v record.View) bool {
		if v.LogOffset() >= want {
			s.cfg.Recovered(v)
		}
		return true
	})
	return err
}

// walk goes through the log from r.from to its end.
func (r *recovery) walk() (commitlog.Tail, error) {
	s := r.store
	scan := commitlog.Scan{From: r.from, Seed: commitlog.Mark{Last: -1}, CRCFrom: math.MaxInt64, PropertyCRC: s.cfg.CheckPropertyCRC, Progress: r.progress, Visit: r.visit}
	if r.trusted {
		scan.Seed = s.state.covered
	}
	if s.cfg.CheckCRC {
		scan.CRCFrom = r.crcFrom()
	}
	if s.cfg.AcceptDamage {
		scan.SkipTo = max(r.durable, 1)
		scan.OnDamage = func(from, to mq.LogOffset, err error) {
			if int64(from)%s.cfg.LogFileSize == 0 {
				s.damaged = append(s.damaged, from)
			}
			s.note.Error("damage accepted: what stood there is lost", "from", from, "to", to, "err", err)
		}
	}
	if !r.trusted && !s.cfg.ReadOnly {
		// A long walk writes queues out as it goes, so the log must be durable.
		scan.OnFile = func(f *commitlog.File) error { return f.Sync() }
	}
	r.told = time.Now()
	return s.log.Scan(scan)
}

// crcFrom is where bodies are checked: in all that is not known durable. For a
// log that we did not write it is what RocketMQ would check: from the last file
// that its checkpoint vouches for, or the last file of all after a clean stop.
func (r *recovery) crcFrom() mq.LogOffset {
	s := r.store
	if r.trusted {
		return r.from
	}
	files := s.log.Segments().Files()
	limit := min(s.checkpoint.logTime, s.checkpoint.queueTime) - 3000
	for i := len(files) - 1; i >= 0; i-- {
		start := mq.LogOffset(files[i].Start())
		v, file, err := s.log.Peek(start)
		if err != nil {
			continue
		}
		ok := !r.aborted || v.StoreTime() <= limit
		file.Release()
		if ok {
			return start
		}
	}
	return s.log.First()
}

func (r *recovery) progress(at, of mq.LogOffset) {
	if now := time.Now(); now.Sub(r.told) >= time.Second {
		r.told = now
		r.store.note.Info("recovering", "log", int64(at), "of", int64(of), "percent", int64(at-r.from)*100/max(int64(of-r.from), 1))
	}
	if r.trusted || r.store.cfg.ReadOnly {
		return
	}
	// Only whole records were visited, and their files are durable.
	_ = r.store.sets.Flush(at) // what was not written stays in memory; the last flush tells
}

// visit gives one record its place in its queue.
func (r *recovery) visit(v record.View) error {
	s := r.store
	if s.cfg.Recovered != nil && (r.trusted || v.LogOffset() >= s.cfg.RecoverFrom) {
		s.cfg.Recovered(v)
	}
	if !s.queued(v) {
		return nil
	}
	topic := bin.String(v.Topic())
	key := mq.QueueKey{Topic: topic, ID: v.QueueID()}
	if len(r.doubt) > 0 {
		if _, ok := r.doubt[key]; ok {
			return nil // rebuild does it
		}
	}
	return r.enter(s.queueOf(key), v)
}

// queued reports whether a record has, or had, an entry in a queue.
func (s *Store) queued(v record.View) bool {
	if tx := v.SysFlag().Tx(); tx == mq.SysTxPrepared || tx == mq.SysTxRollback {
		return false
	}
	if g := s.graves.Load().Topics; len(g) > 0 {
		if grave, ok := g[bin.String(v.Topic())]; ok && v.LogOffset() < grave {
			return false
		}
	}
	return true
}

// queueOf returns the consume queue, made when it is missing. key may alias.
func (s *Store) queueOf(key mq.QueueKey) *consumequeue.Queue {
	if q := s.sets.Get(key); q != nil {
		return q
	}
	key.Topic = string([]byte(key.Topic))
	return s.sets.GetOrCreate(key)
}

func (s *Store) entryOf(v record.View) consumequeue.Entry {
	return consumequeue.Entry{
		Pos: v.LogOffset(), Size: int32(len(v)),
		TagsCode: s.tagsCode(bin.String(v.Topic()), v.Properties(), v.StoreTime()),
	}
}

// enter makes a queue agree with one record of the log. The later record wins an
// offset: RocketMQ keeps records of a deleted topic in the log and then counts
// from 0 again.
func (r *recovery) enter(q *consumequeue.Queue, v record.View) error {
	off := v.QueueOffset()
	if off >= q.Max() && v.LogOffset() < q.End() {
		return nil // of a former life of the topic, which had more messages
	}
	if off < q.Max() {
		if off < q.Min() {
			return nil
		}
		e, ok := r.entry(q, off)
		if ok && e.Pos == v.LogOffset() && q.Suspect(off) {
			return q.Confirm(off, r.store.entryOf(v))
		}
		if ok && e.Pos >= v.LogOffset() {
			return nil // the very one, or that of a later life of the topic
		}
		if r.store.cfg.ReadOnly {
			return nil
		}
		delete(r.known, q)
		r.store.note.Warn("queue disagrees with the log and is corrected", "topic", q.Key().Topic, "queue", q.Key().ID, "offset", off)
		if off == 0 || off == q.Min() {
			if err := q.Reset(); err != nil {
				return err
			}
		} else if err := q.Truncate(off); err != nil {
			return err
		}
	}
	if off > q.Max() && !r.whole() {
		r.doubt[q.Key()] = 0 // entries are missing: their records lie before the walk
		return nil
	}
	if off > q.Max() && q.Min() < q.Max() {
		if err := r.bridge(q, v); err != nil {
			return err
		}
	}
	return q.Append(off, r.store.entryOf(v))
}

// whole reports whether the walk sees all there is.
func (r *recovery) whole() bool { return r.from <= r.store.log.First() }

// maxBridge bounds how many lost records of one queue in a row are bridged.
const maxBridge = 1 << 20

// bridge fills a hole in a queue whose records are nowhere in the log, so that
// the messages behind it keep their offsets: with entries that cannot be read,
// each of which a reader passes over.
func (r *recovery) bridge(q *consumequeue.Queue, v record.View) error {
	missing := int64(v.QueueOffset() - q.Max())
	room := int64(v.LogOffset() - q.End())
	if missing > maxBridge || missing > room {
		r.store.note.Error("queue begins anew behind lost messages", "topic", q.Key().Topic, "queue", q.Key().ID, "from", q.Max(), "to", v.QueueOffset())
		return q.Reset()
	}
	r.store.note.Error("messages are lost", "topic", q.Key().Topic, "queue", q.Key().ID, "from", q.Max(), "to", v.QueueOffset())
	for range missing {
		if err := q.Append(q.Max(), consumequeue.Entry{Pos: q.End(), Size: 1}); err != nil {
			return err
		}
	}
	return nil
}

// checkEnd refuses a log that ends before what is known to have been on disk.
func (r *recovery) checkEnd(tail commitlog.Tail) error {
	s := r.store
	var err error
	switch {
	case tail.End < r.durable:
		if err = tail.Damage(r.durable); r.witness != "" {
			err = fmt.Errorf("consume queue %s has entries up to log position %d: %w", r.witness, r.durable, err)
		}
	case !r.trusted && r.stranger && r.aborted && r.whole() && s.checkpoint.logTime > tail.MaxStoreTime && tail.Records > 0:
		err = fmt.Errorf("the last message was stored at %d ms, and checkpoint says that one stored at %d ms was on disk: %w", tail.MaxStoreTime, s.checkpoint.logTime, tail.Damage(tail.End+1))
	case tail.Records == 0 && tail.End == s.log.First() && s.log.First() == 0 && s.sets.End() > 0:
		err = &mq.CorruptionError{File: s.cfg.logDirs()[0], Err: errors.New("there is no message in the commit log, and queues are full of them: is this the right directory (storePathCommitLog)?")}
	}
	if err == nil || s.cfg.ReadOnly {
		return err
	}
	if !s.cfg.AcceptDamage {
		return err
	}
	s.note.Error("damage accepted: the log ends here", "at", int64(tail.End), "err", err)
	return nil
}

func (r *recovery) report(tail commitlog.Tail) {
	if r.aborted {
		if n := r.store.log.Behind(tail); n > 0 {
			r.store.note.Warn("a damaged record ends the log, and whole records behind it are dropped with it", "file", tail.File, "offset", tail.FileOffset, "records", n, "err", tail.Why)
		}
	}
	if tail.Records > 0 || r.aborted || len(r.doubt) > 0 {
		r.store.note.Info("log recovered", "from", int64(tail.From), "end", int64(tail.End), "messages", tail.Records, "afterCleanStop", !r.aborted, "known", r.trusted)
	}
}

// rebuild builds queues anew that are not what they were, from all of the log.
func (r *recovery) rebuild(end mq.LogOffset) error {
	s := r.store
	if len(r.doubt) == 0 {
		return nil
	}
	// A crash meanwhile must not leave half a queue that the state vouches for.
	if s.state.covered.End > 0 {
		if err := s.writeState(state{seq: s.state.seq + 1, covered: commitlog.Mark{Last: -1}, checkpoint: s.state.checkpoint}); err != nil {
			return err
		}
	}
	for key := range r.doubt {
		s.note.Warn("queue is built anew from the log", "topic", key.Topic, "queue", key.ID)
		if err := s.queueOf(key).Reset(); err != nil {
			return err
		}
	}
	r.from = s.log.First()
	var failed error
	next := r.from + 64<<20
	_, err := s.log.Walk(r.from, end, func(v record.View) bool {
		if !s.queued(v) {
			return true
		}
		key := mq.QueueKey{Topic: bin.String(v.Topic()), ID: v.QueueID()}
		if _, ok := r.doubt[key]; !ok {
			return true
		}
		if failed = r.enter(s.queueOf(key), v); failed != nil {
			return false
		}
		if at := v.LogOffset(); at >= next {
			next = at + 64<<20
			r.progress(at, end)
			failed = s.sets.Flush(at)
		}
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("build queues anew: %w", err)
	}
	for key, reached := range r.doubt {
		if q := s.queueOf(key); q.Max() < reached && q.Min() == q.Max() {
			if err := q.Place(reached); err != nil {
				return err
			}
		}
	}
	return nil
}

// open writes down what was recovered, so that a crash right after does not
// have to do it again, and marks the store as running.
func (r *recovery) open(tail commitlog.Tail) error {
	s := r.store
	if err := s.openIndex(!r.aborted && (r.cleanStop() || r.stranger), tail.End); err != nil {
		return err
	}
	if err := s.pruneGraves(); err != nil {
		return err
	}
	if err := s.save(false); err != nil {
		return err
	}
	return s.markRunning()
}
