package delay

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
	"github.com/sundial-mq/sundial/internal/storage/pending"
)

// UnknownSeq is the sequence of a timed message that is known by its unique key only.
const UnknownSeq mq.QueueOffset = -1

// Name names a timed message.
type Name struct {
	Topic  string // where it is to go
	Unique string // its unique key
	Due    int64  // epoch ms as its handle says, 0 when that is not known
	// Seq is its offset in the timer topic, UnknownSeq when that is not known; then the
	// key index must find it.
	Seq mq.QueueOffset
}

func (n Name) String() string {
	if n.Seq == UnknownSeq {
		return fmt.Sprintf("timed message %s for topic %s", n.Unique, n.Topic)
	}
	return fmt.Sprintf("timed message %s (sequence %d) for topic %s", n.Unique, n.Seq, n.Topic)
}

// Each of the following is decided at one moment against deliveries: what is
// recalled is never delivered, what is delivered cannot be recalled. Errors wrap
// [mq.ErrIllegalOperation] and say which it is: there is no such message, it was
// recalled before, or it was delivered. at is the record that is to be durable
// before the caller is told, when the store flushes synchronously.

// Recall takes a timed message back.
func (f *Flow) Recall(n Name) (at storage.Appended, err error) {
	p, err := f.find(n)
	if err != nil {
		return at, err
	}
	m := &record.Message{Topic: mq.TopicTimer, BornTime: f.timer.Now(), BornHost: p.bornHost, StoreHost: p.storeHost, Body: []byte("0")}
	props := record.AppendProperty(nil, mq.PropTags, "_RECALL_TAG_")
	props = record.AppendProperty(props, mq.PropUniqueKey, p.unique)
	props = record.AppendProperty(props, mq.PropTimerDeleteKey, p.unique)
	props = record.AppendProperty(props, mq.PropTimerDeliverMs, strconv.FormatInt(p.Due, 10))
	props = record.AppendProperty(props, mq.PropTimerOutMs, strconv.FormatInt(p.out, 10))
	props = record.AppendProperty(props, mq.PropRealTopic, p.topic)
	props = record.AppendProperty(props, mq.PropRealQueueID, "0")
	m.Properties = f.appendRecalled(props, &p.Entry)
	return f.end(n, p, m)
}

// Reschedule gives a timed message another due time, by a record that is the new
// message and takes the old one back at once. Its sequence is at.Queue.
func (f *Flow) Reschedule(n Name, due int64) (at storage.Appended, err error) {
	p, err := f.find(n)
	if err != nil {
		return at, err
	}
	if now := f.timer.Now(); due <= now {
		return f.fireNow(n, p)
	} else if limit := f.cfg.Timers.MaxDelay; limit > 0 && due-now > limit.Milliseconds() {
		return at, fmt.Errorf("%w: the new due time is %s ahead; messages may be due %v ahead at most (timerMaxDelaySec)", mq.ErrInvalid, ahead(due, now), limit)
	}
	v, release, err := f.timedRecord(&p.Entry)
	if err != nil {
		return at, err
	}
	defer release()
	dest, err := destinationOf(v, timedQueue, int64(p.Seq))
	if err != nil {
		return at, fmt.Errorf("%w: %v", mq.ErrIllegalOperation, err)
	}
	m := copyOf(v)
	m.Topic, m.QueueID = dest.Topic, dest.ID
	m.Properties = record.AppendWithout(nil, v.Properties(), mq.PropTimerDelaySec, mq.PropTimerDelayMs, mq.PropTimerDeliverMs, mq.PropRecalled)
	m.Properties = record.AppendProperty(m.Properties, mq.PropTimerDeliverMs, strconv.FormatInt(due, 10))
	m.Properties = f.appendRecalled(m.Properties, &p.Entry)
	if err := (Rules{Timers: f.cfg.Timers}).retargetTo(&m, due); err != nil {
		return at, err
	}
	return f.end(n, p, &m)
}

// FireNow delivers a timed message before its time.
func (f *Flow) FireNow(n Name) (at storage.Appended, err error) {
	p, err := f.find(n)
	if err != nil {
		return at, err
	}
	return f.fireNow(n, p)
}

func (f *Flow) fireNow(n Name, p *found) (at storage.Appended, err error) {
	v, release, err := f.timedRecord(&p.Entry)
	if err != nil {
		return at, err
	}
	defer release()
	dest, err := destinationOf(v, timedQueue, int64(p.Seq))
	if err != nil {
		return at, fmt.Errorf("%w: %v", mq.ErrIllegalOperation, err)
	}
	m := copyOf(v)
	m.Topic, m.QueueID = dest.Topic, dest.ID
	m.Properties = f.timed.appendProps(nil, v, f.timer.Now())
	m.Properties = record.AppendReceipt(m.Properties, receiptOf(f.store.ID(), timedQueue, p.Seq, p.Due))
	at, err = f.end(n, p, &m)
	if err == nil {
		f.count.delivered.Inc()
	}
	return at, err
}

// copyOf is v as a message to be stored again.
func copyOf(v record.View) record.Message {
	return record.Message{
		Flag: v.Flag(), SysFlag: v.SysFlag(), BornTime: v.BornTime(), BornHost: v.BornHost(), StoreHost: v.StoreHost(),
		ReconsumeTimes: v.ReconsumeTimes(), PreparedOffset: v.PreparedOffset(), Body: v.Body(),
	}
}

func (f *Flow) appendRecalled(props []byte, e *pending.Entry) []byte {
	return record.AppendProperty(props, mq.PropRecalled, receiptOf(f.store.ID(), timedQueue, e.Seq, e.Due).String())
}

// end stores m, by which the message p is done, if it is still pending.
func (f *Flow) end(n Name, p *found, m *record.Message) (at storage.Appended, err error) {
	t := f.timed
	f.put.Lock()
	defer f.put.Unlock()
	standing, err := t.index.Standing(p.Due, p.Seq)
	if err != nil {
		return at, fmt.Errorf("look up %v: %w", n, err)
	}
	switch standing {
	case pending.Cancelled:
		return at, fmt.Errorf("%w: already done: %v was recalled, moved or fired before", mq.ErrIllegalOperation, n)
	case pending.Passed:
		return at, fmt.Errorf("%w: too late: %v, due %s, was delivered or recalled", mq.ErrIllegalOperation, n, instant(p.Due))
	}
	if at, err = f.store.AppendInternal(m); err != nil {
		return at, err
	}
	f.put.last = at.End
	t.index.Done(p.Seq, t.index.Topic(p.topic), at.End)
	return at, nil
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// found is a timed message, pending or not.
type found struct {
	pending.Entry
	topic, unique       string
	out                 int64 // TIMER_OUT_MS
	bornHost, storeHost netip.AddrPort
}

// find looks a message up in the log.
func (f *Flow) find(n Name) (*found, error) {
	if n.Seq == UnknownSeq {
		return f.findByKey(n)
	}
	p, err := f.findBySeq(n.Seq)
	if errors.Is(err, mq.ErrNotFound) || err == nil && (p.topic != n.Topic || n.Unique != "" && p.unique != n.Unique) {
		return nil, fmt.Errorf("%w: not found: there is no %v", mq.ErrIllegalOperation, n)
	}
	return p, err
}

// findByKey takes the youngest message that is pending, else the youngest.
func (f *Flow) findByKey(n Name) (*found, error) {
	hits, err := f.store.Query(mq.TopicTimer, n.Unique, 64, 0, 1<<62)
	if err != nil {
		return nil, fmt.Errorf("look up %v: %w", n, err)
	}
	defer hits.Release()
	var best *found
	for _, v := range hits.Records {
		p, err := f.foundOf(v)
		if err != nil || p.topic != n.Topic || p.unique != n.Unique || n.Due != 0 && p.Due != n.Due && p.out+1 != n.Due {
			continue
		}
		standing, err := f.timed.index.Standing(p.Due, p.Seq)
		if err != nil {
			return nil, fmt.Errorf("look up %v: %w", n, err)
		}
		if standing == pending.Waiting {
			return p, nil
		}
		if best == nil {
			best = p
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w: not found: there is no %v", mq.ErrIllegalOperation, n)
	}
	return best, nil
}

func (f *Flow) findBySeq(seq mq.QueueOffset) (*found, error) {
	var one [1]consumequeue.Entry
	if n, err := f.store.Entries(timedQueue, seq, one[:]); n == 0 {
		return nil, errors.Join(mq.ErrNotFound, err)
	}
	v, release, err := f.store.Record(one[0].Pos)
	if err != nil {
		return nil, err
	}
	defer release()
	return f.foundOf(v)
}

// foundOf reads what v says of itself; recalls and what cannot be due is not found.
func (f *Flow) foundOf(v record.View) (*found, error) {
	if _, recall := v.Property(mq.PropTimerDeleteKey); recall || string(v.Topic()) != mq.TopicTimer {
		return nil, mq.ErrNotFound
	}
	due, ok := f.timed.dueOf(v)
	topic, _ := v.Property(mq.PropRealTopic)
	if !ok || len(topic) == 0 {
		return nil, mq.ErrNotFound
	}
	unique, _ := v.Property(mq.PropUniqueKey)
	out, _ := millisProperty(v.Properties(), mq.PropTimerOutMs)
	return &found{
		Entry:  pending.Entry{Due: due, Seq: v.QueueOffset(), Log: v.LogOffset(), Size: int32(len(v))},
		topic:  strings.Clone(string(topic)),
		unique: strings.Clone(string(unique)), out: out, bornHost: v.BornHost(), storeHost: v.StoreHost(),
	}, nil
}

// timedRecord is the record of a timed message.
func (f *Flow) timedRecord(e *pending.Entry) (record.View, func(), error) {
	return f.store.Record(e.Log)
}
