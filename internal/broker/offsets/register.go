package offsets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Config says how often progress is saved.
type Config struct {
	// Interval is the time between two saves while there is something to save
	// (flushConsumerOffsetInterval). More than 0; longer means that more is consumed
	// again after a crash. With very many offsets saves are farther apart, so that
	// they take no more than a twentieth of the time.
	Interval time.Duration
	// VersionStep is after how many commits the data version steps
	// (consumerOffsetUpdateVersionStep). At least 1.
	VersionStep int64
	// End tells where a queue ends. A commit beyond it is refused: it is about
	// messages that are gone, of a topic that was deleted and made again, or lost
	// with the power. nil: nothing is refused for that.
	End func(topic string, queue mq.QueueID) mq.QueueOffset
}

// DefaultConfig is RocketMQ's.
func DefaultConfig() Config { return Config{Interval: 5 * time.Second, VersionStep: 500} }

// Validate names everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	if c.Interval <= 0 {
		errs = append(errs, fmt.Errorf("flushConsumerOffsetInterval is %v, it must be more than 0", c.Interval))
	}
	if c.VersionStep < 1 {
		errs = append(errs, fmt.Errorf("consumerOffsetUpdateVersionStep is %d, it must be at least 1", c.VersionStep))
	}
	return errors.Join(errs...)
}

// Table is progress by topic (or group) and queue.
type Table = map[string]map[mq.QueueID]mq.QueueOffset

// Register knows how far groups are. Its methods are safe for concurrent use.
type Register struct {
	cfg      Config
	file     *table.Document[document]
	loaded   table.Report
	rest     map[string]json.RawMessage // members of the file that we only keep
	consumed *pairs                     // offsetTable
	pulled   *pairs                     // pullOffsetTable: how far a group has read ahead

	commits atomic.Int64  // for the data version
	edits   atomic.Uint64 // steps after each change

	pending atomic.Int64 // resets that wait: 0 spares commits the lock
	resets  struct {
		sync.Mutex
		m map[resetKey]reset
	}
	saving struct {
		sync.Mutex // held while the file is written
		edits      uint64
		version    mq.DataVersion
		stepped    int64 // commits that the version counts
	}
}

type resetKey struct {
	key
	id mq.QueueID
}

// reset is where a group is to go on in a queue.
type reset struct {
	to    mq.QueueOffset
	until time.Time // when it ends though no pull came from there; zero before the first pull was led
}

// resetGrace is how long a reset stands after the first pull was led to it. That
// pull may be one of a consumer that has lost the queue to another, whose pull and
// commits come a moment later. Nobody is held up longer who does not go where he
// is led.
const resetGrace = 10 * time.Second

// Open reads dir/consumerOffset.json.
func Open(fs vfs.FS, dir string, cfg Config) (*Register, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Register{cfg: cfg}
	r.resets.m = map[resetKey]reset{}
	file, doc, report, err := table.Open[document](fs, filepath.Join(dir, fileName))
	if err != nil {
		return nil, err
	}
	r.file, r.loaded, r.rest, r.consumed, r.pulled = file, report, doc.rest, doc.consumed, doc.pulled
	if r.consumed == nil { // there was no file
		r.consumed, r.pulled = &pairs{}, &pairs{}
	}
	r.saving.version = doc.version
	return r, nil
}

// Loaded says what Open found on disk.
func (r *Register) Loaded() table.Report { return r.loaded }

// Commit notes that group has consumed everything before off. It is refused,
// with the reason, below 0, beyond the end of the queue, and while a reset of
// that queue waits to be taken.
func (r *Register) Commit(group, topic string, queue mq.QueueID, off mq.QueueOffset) error {
	return r.commit(group, topic, queue, off, false)
}

// Advance is Commit for an offset that comes along with a pull. It never takes
// progress back: pulls wait for a worker while commits do not, so a commit that was
// sent later may be here already.
func (r *Register) Advance(group, topic string, queue mq.QueueID, off mq.QueueOffset) error {
	return r.commit(group, topic, queue, off, true)
}

func (r *Register) commit(group, topic string, queue mq.QueueID, off mq.QueueOffset, forward bool) error {
	if off < 0 {
		return fmt.Errorf("%w: offset %d of group %s in queue %d of topic %s", mq.ErrInvalid, off, group, queue, topic)
	}
	if r.cfg.End != nil {
		if end := r.cfg.End(topic, queue); off > end {
			return fmt.Errorf("%w: offset %d of group %s lies beyond the end %d of queue %d of topic %s", mq.ErrIllegalOperation, off, group, end, queue, topic)
		}
	}
	k := key{topic, group}
	if r.pending.Load() > 0 {
		r.resets.Lock()
		wait, waits := r.resetLocked(resetKey{k, queue})
		r.resets.Unlock()
		if waits && off != wait.to {
			return fmt.Errorf("%w: the offset of group %s in queue %d of topic %s was reset to %d, and the next pull jumps there", mq.ErrIllegalOperation, group, queue, topic, wait.to)
		}
	}
	r.commits.Add(1)
	if r.consumed.put(k, queue, off, forward) {
		r.edits.Add(1)
	}
	return nil
}

// Query returns how far group is; found is false when it never committed there,
// and the offset then means nothing.
func (r *Register) Query(group, topic string, queue mq.QueueID) (off mq.QueueOffset, found bool) {
	return r.consumed.query(key{topic, group}, queue)
}

// CommitPull notes how far group has read, whether it consumed that or not.
func (r *Register) CommitPull(group, topic string, queue mq.QueueID, off mq.QueueOffset) {
	if off >= 0 && r.pulled.set(key{topic, group}, queue, off) {
		r.edits.Add(1)
	}
}

// QueryPull returns how far group has read.
func (r *Register) QueryPull(group, topic string, queue mq.QueueID) (off mq.QueueOffset, found bool) {
	return r.pulled.query(key{topic, group}, queue)
}

// Queues returns the progress of group in one topic, nil when there is none.
func (r *Register) Queues(group, topic string) map[mq.QueueID]mq.QueueOffset {
	return r.consumed.queues(key{topic, group})
}

// OfGroup returns the progress of group by topic.
func (r *Register) OfGroup(group string) Table {
	t := Table{}
	r.consumed.each(func(k key, p *progress) {
		if k.group == group {
			t[k.topic] = p.copy()
		}
	})
	return t
}

// TopicsOf lists the topics that group has progress in, GroupsOf the groups that
// have progress in topic, each in no order. Neither copies the progress itself,
// which may be a million numbers.
func (r *Register) TopicsOf(group string) []string {
	var list []string
	r.consumed.each(func(k key, _ *progress) {
		if k.group == group {
			list = append(list, k.topic)
		}
	})
	return list
}

// GroupsOf is described at TopicsOf.
func (r *Register) GroupsOf(topic string) []string {
	var list []string
	r.consumed.each(func(k key, _ *progress) {
		if k.topic == topic {
			list = append(list, k.group)
		}
	})
	return list
}

// Pairs is TopicsOf for all groups, in one pass.
func (r *Register) Pairs() map[string][]string {
	all := map[string][]string{}
	r.consumed.each(func(k key, _ *progress) { all[k.group] = append(all[k.group], k.topic) })
	return all
}

// OfTopic returns the progress in topic by group.
func (r *Register) OfTopic(topic string) Table {
	t := Table{}
	r.consumed.each(func(k key, p *progress) {
		if k.topic == topic {
			t[k.group] = p.copy()
		}
	})
	return t
}

// All returns all progress by "topic@group", with its version.
func (r *Register) All() (Table, mq.DataVersion) {
	t := Table{}
	r.consumed.each(func(k key, p *progress) { t[k.join()] = p.copy() })
	r.saving.Lock()
	defer r.saving.Unlock()
	return t, r.versionLocked()
}

// Slowest returns for each queue of topic how far the slowest group is, without
// the groups in except.
func (r *Register) Slowest(topic string, except []string) map[mq.QueueID]mq.QueueOffset {
	slowest := map[mq.QueueID]mq.QueueOffset{}
	for group, queues := range r.OfTopic(topic) {
		if slices.Contains(except, group) {
			continue
		}
		for id, off := range queues {
			if had, ok := slowest[id]; !ok || off < had {
				slowest[id] = off
			}
		}
	}
	return slowest
}

// Clone gives group to the progress that group from has in topic, or in all its
// topics when topic is empty. It returns when that is on disk.
func (r *Register) Clone(from, to, topic string) error {
	for t, queues := range r.OfGroup(from) {
		if topic != "" && t != topic {
			continue
		}
		for id, off := range queues {
			if r.consumed.set(key{t, to}, id, off) {
				r.edits.Add(1)
			}
		}
	}
	return r.Save()
}

// DeleteTopic forgets all progress in topic and returns when that is on disk. A
// topic of that name that comes later starts with none.
func (r *Register) DeleteTopic(topic string) error {
	return r.delete(func(k key) bool { return k.topic == topic })
}

// DeleteGroup forgets all progress of group and returns when that is on disk.
func (r *Register) DeleteGroup(group string) error {
	return r.delete(func(k key) bool { return k.group == group || k.group == group+broadcastSuffix })
}

// Delete forgets the progress of group in topic and returns when that is on
// disk.
func (r *Register) Delete(group, topic string) error {
	return r.delete(func(k key) bool { return k.topic == topic && k.group == group })
}

// broadcastSuffix marks the progress of a broadcasting group.
const broadcastSuffix = "@broadcast"

func (r *Register) delete(match func(key) bool) error {
	r.resets.Lock()
	for k := range r.resets.m {
		if match(k.key) {
			delete(r.resets.m, k)
		}
	}
	r.pending.Store(int64(len(r.resets.m)))
	r.resets.Unlock()
	consumed, pulled := r.consumed.deleteIf(match), r.pulled.deleteIf(match)
	if consumed || pulled {
		r.edits.Add(1)
	}
	return r.Save()
}

// Reset sets the progress of group in one queue to off and has the next pull
// there jump to it, whatever the consumer believes. It is not saved at once.
func (r *Register) Reset(group, topic string, queue mq.QueueID, off mq.QueueOffset) {
	k := key{strings.Clone(topic), strings.Clone(group)}
	r.resets.Lock()
	defer r.resets.Unlock()
	r.resets.m[resetKey{k, queue}] = reset{to: off}
	r.pending.Store(int64(len(r.resets.m)))
	if r.consumed.set(k, queue, off) {
		r.edits.Add(1)
	}
	r.pulled.all.Delete(k)
}

// TakeReset returns the offset that a pull of group from an offset must jump to.
// A pull from that very offset takes the reset and need not jump; until one comes
// all others are led there, for resetGrace at most.
func (r *Register) TakeReset(group, topic string, queue mq.QueueID, from mq.QueueOffset) (off mq.QueueOffset, found bool) {
	if r.pending.Load() == 0 {
		return mq.UnknownOffset, false
	}
	k := resetKey{key{topic, group}, queue}
	r.resets.Lock()
	defer r.resets.Unlock()
	wait, waits := r.resetLocked(k)
	switch {
	case !waits:
		return mq.UnknownOffset, false
	case wait.to == from:
		r.endLocked(k)
		return wait.to, false
	case wait.until.IsZero():
		wait.until = time.Now().Add(resetGrace)
		k.key = key{strings.Clone(topic), strings.Clone(group)}
		r.resets.m[k] = wait
	}
	return wait.to, true
}

// WaitingReset returns the offset of a reset that no pull took yet.
func (r *Register) WaitingReset(group, topic string, queue mq.QueueID) (off mq.QueueOffset, waits bool) {
	if r.pending.Load() == 0 {
		return mq.UnknownOffset, false
	}
	r.resets.Lock()
	defer r.resets.Unlock()
	wait, waits := r.resetLocked(resetKey{key{topic, group}, queue})
	return wait.to, waits
}

// resetLocked returns the reset that waits, and ends it when its time is over.
func (r *Register) resetLocked(k resetKey) (wait reset, waits bool) {
	wait, waits = r.resets.m[k]
	if waits && !wait.until.IsZero() && time.Now().After(wait.until) {
		r.endLocked(k)
		return reset{}, false
	}
	return wait, waits
}

func (r *Register) endLocked(k resetKey) {
	delete(r.resets.m, k)
	r.pending.Store(int64(len(r.resets.m)))
}

// Save writes the file when something changed since it was written last.
func (r *Register) Save() error {
	r.saving.Lock()
	defer r.saving.Unlock()
	edits := r.edits.Load() // before the tables are read: what comes later is saved later
	if edits == r.saving.edits {
		return nil
	}
	if err := r.file.Save(document{r.versionLocked(), r.consumed, r.pulled, r.rest}); err != nil {
		return err
	}
	r.saving.edits = edits
	return nil
}

// versionLocked steps the data version when enough commits came.
func (r *Register) versionLocked() mq.DataVersion {
	if n := r.commits.Load(); n-r.saving.stepped >= r.cfg.VersionStep {
		r.saving.version = r.saving.version.Next(time.Now().UnixMilli())
		r.saving.stepped = n
	}
	return r.saving.version
}

// restFactor is how many times its own length a save rests before the next.
const restFactor = 20

// Run saves now and then until ctx is done, and once more then. failed hears of
// saves that did not work and are tried again.
func (r *Register) Run(ctx context.Context, failed func(error)) error {
	rest := r.cfg.Interval
	for {
		select {
		case <-ctx.Done():
			return r.Save()
		case <-time.After(rest):
		}
		began := time.Now()
		if err := r.Save(); err != nil {
			failed(err)
		}
		rest = max(r.cfg.Interval, restFactor*time.Since(began))
	}
}
