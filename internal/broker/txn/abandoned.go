package txn

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// decideAbandoned brings a verdict about a transaction that was given up.
func (f *Flow) decideAbandoned(off int64, v Verdict) (mq.LogOffset, error) {
	f.gate.RLock()
	defer f.gate.RUnlock()
	f.put.Lock()
	defer f.put.Unlock()
	x, err := f.abandonedOpen(off)
	if err != nil {
		return 0, err
	}
	receipt := record.Receipt{Store: f.p.Store.ID(), Queue: discardQueue, Offset: mq.QueueOffset(off)}
	var at storage.Appended
	if v == VerdictCommit {
		if at, err = f.commit(x.pos, receipt); err == nil {
			f.count.committed.Inc()
		}
	} else if at, err = f.dropMark(x, receipt); err == nil {
		f.count.rolledBack.Inc()
	}
	if err != nil {
		return 0, err
	}
	f.settleAbandoned(x, v.becomes())
	return at.End, nil
}

// dropMark appends a mark that says of one that was given up that it is rolled
// back; put is held. It names the half once more, or none, which RocketMQ passes
// over.
func (f *Flow) dropMark(x abandoned, receipt record.Receipt) (storage.Appended, error) {
	at, err := f.appendMark(append(strconv.AppendInt(nil, x.half, 10), ','), record.AppendReceipt(bytes.Clone(markProps), receipt))
	if err == nil {
		f.put.marks.written(int64(at.Queue), x.half)
	}
	return at, err
}

// resumeAbandoned makes a half message again of a transaction that was given up,
// with all its tries.
func (f *Flow) resumeAbandoned(off int64) (int64, error) {
	f.gate.RLock()
	defer f.gate.RUnlock()
	f.put.Lock()
	defer f.put.Unlock()
	x, err := f.abandonedOpen(off)
	if err != nil {
		return 0, err
	}
	v, release, err := f.record(x.pos)
	if err != nil {
		return 0, err
	}
	defer release()
	if _, err := destinationOf(v.Properties()); err != nil {
		return 0, fmt.Errorf("%w: message %d of %s cannot be a transaction again: %w", mq.ErrSystem, off, mq.TopicTransDiscard, err)
	}
	props := record.AppendProperty(halfAgain(v.Properties(), 0), mq.PropTxDue, fmt.Sprint(f.timer.Now()))
	at, m, err := f.putHalf(v, props, record.Receipt{Store: f.p.Store.ID(), Queue: discardQueue, Offset: mq.QueueOffset(off)})
	if err != nil {
		return 0, err
	}
	group, _ := v.Property(mq.PropProducerGroup)
	topic, _ := v.Property(mq.PropRealTopic)
	f.open(at, m, string(group), string(topic), 0)
	f.settleAbandoned(x, StateResumed)
	if x.half >= 0 {
		f.mu.Lock()
		f.mu.recent.add(x.half, ended{x.pos, StateResumed, int64(at.Queue)})
		f.mu.Unlock()
	}
	return int64(at.Queue), nil
}

// abandonedOpen returns one that nobody has decided; put is held.
func (f *Flow) abandonedOpen(off int64) (abandoned, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.mu.aside.find(off)
	if x == nil || x.state != StateGivenUp {
		return abandoned{}, errNotOpen
	}
	return *x, nil
}

func (f *Flow) settleAbandoned(x abandoned, s State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x.state, x.decided, x.dirty = s, time.Now().UnixMilli(), true
	f.mu.aside.put(x)
}

// abandonedAs is what became of a transaction that was given up.
func (f *Flow) abandonedAs(off int64) (State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.mu.aside.find(off)
	if x == nil {
		return 0, fmt.Errorf("%w: the transaction was given up, and its message is gone by now", mq.ErrIllegalOperation)
	}
	return x.state, nil
}
