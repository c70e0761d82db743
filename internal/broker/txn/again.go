package txn

import (
	"context"
	"strconv"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// appendAgain moves open halves out of log files that are to go, until ctx is done.
func (f *Flow) appendAgain(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wakeRenew:
		}
		moved := 0
		for ctx.Err() == nil {
			f.mu.Lock()
			h, below := f.mu.halves.lowest(), f.mu.renew
			if h == nil || h.pos >= below {
				f.mu.Unlock()
				break
			}
			off := h.off
			f.mu.Unlock()
			if err := f.renew(off); err != nil {
				f.note.Warn("an open transaction in a log file that is to go could not be stored again; the file stays", "halfOffset", off, "err", err)
				break // whoever wants the file asks again
			}
			moved++
		}
		if moved > 0 {
			f.note.Info("open transactions were stored again, as their log file is to go", "count", moved)
		}
	}
}

// renew appends an open half again and ends the old one.
func (f *Flow) renew(off int64) error {
	f.gate.RLock()
	defer f.gate.RUnlock()
	f.put.Lock()
	defer f.put.Unlock()
	f.mu.Lock()
	h := f.mu.halves.find(off)
	if h == nil {
		f.mu.Unlock()
		return nil
	}
	old := *h
	group, topic := f.mu.halves.groups.text(h.group), f.mu.halves.topics.text(h.topic)
	f.mu.Unlock()

	v, release, err := f.record(old.pos)
	if err != nil {
		return err
	}
	defer release()
	props := halfAgain(v.Properties(), old.tries)
	props = record.AppendProperty(props, mq.PropTxDue, strconv.FormatInt(old.due, 10))
	at, m, err := f.putHalf(v, props, record.Receipt{Store: f.p.Store.ID(), Queue: halfQueue, Offset: mq.QueueOffset(off)})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old.off, old.pos = int64(at.Queue), at.Log
	was := old.flags
	h = f.mu.halves.find(off)
	f.unschedule(h)
	f.mu.recent.add(off, ended{h.pos, StateResumed, old.off})
	next := old
	next.flags = 0
	// The new one first, so that the names stay in use.
	n := f.mu.halves.add(next, group, topic)
	f.mu.halves.touch(n)
	f.releaseLocked(f.mu.halves.find(off), true)
	f.mu.halves.close(f.mu.halves.find(off))
	f.put.marks.add(off, time.Now())
	n = f.mu.halves.find(next.off)
	if was&waiting != 0 {
		f.lineUpLocked(n)
	} else {
		f.schedule(n)
	}
	f.count.renewed.Inc()
	_ = m
	return nil
}

// halfAgain is the property block of a half that is appended again: without what
// only the old copy had. RocketMQ's reference to a first copy must go, because that
// one is ended, and RocketMQ would take this one as ended with it.
func halfAgain(props []byte, tries uint16) []byte {
	out := record.AppendWithout(make([]byte, 0, len(props)+256), props, mq.PropReceipt, mq.PropTxDue, mq.PropPreparedOffset, mq.PropCheckTimes)
	if tries > 0 {
		out = record.AppendProperty(out, mq.PropCheckTimes, strconv.Itoa(int(tries)))
	}
	return out
}

// putHalf appends the message of v to the half topic; put is held.
func (f *Flow) putHalf(v record.View, props []byte, receipt record.Receipt) (storage.Appended, *record.Message, error) {
	m := &record.Message{
		Topic: mq.TopicTransHalf, Flag: v.Flag(), SysFlag: v.SysFlag() &^ mq.SysTxMask,
		BornTime: v.BornTime(), BornHost: v.BornHost(), StoreHost: v.StoreHost(), ReconsumeTimes: v.ReconsumeTimes(),
		Body: v.Body(), Properties: props,
	}
	f.withReceipt(m, receipt)
	at, err := f.p.Store.AppendInternal(m)
	return at, m, err
}

// abandon moves a half that nobody answered for to TRANS_CHECK_MAX_TIME_TOPIC, as
// RocketMQ does.
func (f *Flow) abandon(off int64) error {
	f.gate.RLock()
	defer f.gate.RUnlock()
	f.put.Lock()
	defer f.put.Unlock()
	f.mu.Lock()
	h := f.mu.halves.find(off)
	if h == nil {
		f.mu.Unlock()
		return nil
	}
	old := *h
	f.mu.Unlock()
	v, release, err := f.record(old.pos)
	if err != nil {
		return err
	}
	defer release()
	f.p.Topics.Restore(mq.TopicTransDiscard, 1)
	m := &record.Message{
		Topic: mq.TopicTransDiscard, Flag: v.Flag(), SysFlag: v.SysFlag() &^ mq.SysTxMask,
		BornTime: v.BornTime(), BornHost: v.BornHost(), StoreHost: v.StoreHost(), ReconsumeTimes: v.ReconsumeTimes(),
		Body: v.Body(), Properties: halfAgain(v.Properties(), old.tries),
	}
	f.withReceipt(m, record.Receipt{Store: f.p.Store.ID(), Queue: halfQueue, Offset: mq.QueueOffset(off)})
	at, err := f.p.Store.AppendInternal(m)
	if err != nil {
		return err
	}
	f.markSoon(off)
	f.close(off, StateGivenUp, int64(at.Queue))
	f.mu.Lock()
	f.mu.aside.put(abandoned{off: int64(at.Queue), pos: at.Log, half: off, state: StateGivenUp, dirty: true})
	f.mu.Unlock()
	f.count.givenUp.Inc()
	group, _ := v.Property(mq.PropProducerGroup)
	topic, _ := v.Property(mq.PropRealTopic)
	unique, _ := v.Property(mq.PropUniqueKey)
	f.note.Warn("a transaction is given up: nobody said what became of it", "group", string(group), "topic", string(topic), "transaction", string(unique),
		"checks", old.tries, "in", mq.TopicTransDiscard, "offset", int64(at.Queue))
	return nil
}
