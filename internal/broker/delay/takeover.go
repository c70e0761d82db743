package delay

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// A store that RocketMQ wrote has its timed messages in the same queue, but what
// became of them stands elsewhere: in its wheel, of which config/timercheck
// says how far it was read and filled (TimerCheckpoint). So of RocketMQ's records
//
//	pending = due at or after what was read, or not yet put into the wheel
//	          - recalled: another record names the unique key and the same time
//	          - rolled: a later copy has the same key and time and rolled more often

// TimerCheck is what RocketMQ noted last of its wheel.
type TimerCheck struct {
	readTime int64          // the slot that is read next, ms
	enqueued mq.QueueOffset // entries from here on are not in the wheel yet
}

// Passed reports whether RocketMQ is through with the record at seq of the timer
// topic, whose TIMER_OUT_MS is out.
func (c TimerCheck) Passed(out int64, seq mq.QueueOffset) bool {
	return out < c.readTime && seq < c.enqueued
}

// ReadTimerCheck reads RocketMQ's config/timercheck at path; one that is not there is zero.
func ReadTimerCheck(disk vfs.FS, path string) (TimerCheck, error) {
	b, err := disk.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return TimerCheck{}, nil
	}
	if err != nil {
		return TimerCheck{}, err
	}
	r := bin.NewReader(b)
	read := r.Int64()
	r.Int64() // flushed position of the timer log
	c := TimerCheck{read, mq.QueueOffset(r.Int64())}
	if err := r.Err(); err != nil {
		return TimerCheck{}, fmt.Errorf("read %s: %w", path, err)
	}
	return c, nil
}

// TimerID names a timed message of RocketMQ's: a rolled copy has the same.
type TimerID struct {
	Unique string
	Out    int64 // TIMER_OUT_MS
}

// RecalledBy is the message that v, whose TIMER_OUT_MS is out, takes back, false
// when v is no recall of RocketMQ's.
func RecalledBy(v record.View, out int64) (TimerID, bool) {
	target, ok := v.Property(mq.PropTimerDeleteKey)
	// With or without the topic before the key.
	key := string(target)
	return TimerID{key[strings.LastIndexByte(key, '+')+1:], out}, ok
}

// foreign are the timed messages in the queue that RocketMQ wrote and that are
// still pending.
type foreign struct {
	check   TimerCheck
	end     mq.QueueOffset // below it records without our due time are looked up here
	waiting map[TimerID]foreignTimer
	unread  map[mq.QueueOffset]bool // not readable now; better once too often than never
}

type foreignTimer struct {
	seq   mq.QueueOffset
	rolls int64
}

// readForeign goes over what the index does not know of the queue.
func (f *Flow) readForeign(check TimerCheck) (*foreign, error) {
	fo := &foreign{check: check, end: f.store.MaxOffset(timedQueue), waiting: map[TimerID]foreignTimer{}, unread: map[mq.QueueOffset]bool{}}
	recalled := map[TimerID]bool{}
	for seq := max(f.store.MinOffset(timedQueue), f.timed.index.Next()); seq < fo.end; {
		n, err := f.store.Entries(timedQueue, seq, f.entries)
		if n == 0 {
			return nil, fmt.Errorf("read queue of timed messages at %d: %w", seq, errors.Join(err, mq.ErrNotFound))
		}
		for i, e := range f.entries[:n] {
			f.seeForeign(fo, recalled, seq+mq.QueueOffset(i), e)
		}
		seq += mq.QueueOffset(n)
	}
	for id := range recalled {
		delete(fo.waiting, id)
	}
	if len(fo.waiting) > 0 || len(recalled) > 0 {
		f.note.Info("timed messages of RocketMQ are taken over", "pending", len(fo.waiting), "recalled", len(recalled))
	}
	return fo, nil
}

func (f *Flow) seeForeign(fo *foreign, recalled map[TimerID]bool, seq mq.QueueOffset, e consumequeue.Entry) {
	v, release, err := f.store.Record(e.Pos)
	if err != nil {
		fo.unread[seq] = true
		return
	}
	defer release()
	if _, ours := v.Property(mq.PropDue); ours {
		return
	}
	out, ok := millisProperty(v.Properties(), mq.PropTimerOutMs)
	if !ok || fo.check.Passed(out, seq) {
		return
	}
	if target, ok := RecalledBy(v, out); ok {
		recalled[target] = true
		return
	}
	unique, _ := v.Property(mq.PropUniqueKey)
	id := TimerID{string(unique), out}
	var rolls int64
	if value, ok := v.Property(mq.PropTimerRollTimes); ok {
		rolls, _ = strconv.ParseInt(bin.String(value), 10, 64)
	}
	switch have, ok := fo.waiting[id]; {
	case ok && have.rolls > rolls:
		return
	case ok && have.rolls == rolls, len(unique) == 0:
		// Two messages with one key, or without: all are delivered.
		id.Unique += "\x00" + strconv.FormatInt(int64(seq), 10)
	}
	fo.waiting[id] = foreignTimer{seq, rolls}
}

// has reports whether the record v at seq, which RocketMQ wrote, is pending.
func (fo *foreign) has(v record.View, seq mq.QueueOffset) bool {
	if fo == nil || seq >= fo.end || fo.unread[seq] {
		return true
	}
	out, _ := millisProperty(v.Properties(), mq.PropTimerOutMs)
	unique, _ := v.Property(mq.PropUniqueKey)
	id := TimerID{string(unique), out}
	if t, ok := fo.waiting[id]; ok && t.seq == seq {
		return true
	}
	id.Unique += "\x00" + strconv.FormatInt(int64(seq), 10)
	_, ok := fo.waiting[id]
	return ok
}
