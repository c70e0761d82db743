package txn

import (
	"fmt"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
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
	end := f.p.Store.MaxLog()
	if v == VerdictCommit {
		at, err := f.commit(x.pos, record.Receipt{Store: f.p.Store.ID(), Queue: discardQueue, Offset: mq.QueueOffset(off)})
		if err != nil {
			return 0, err
		}
		f.count.committed.Inc()
		end = at.End
	} else {
		f.count.rolledBack.Inc()
	}
	f.settleAbandoned(x, v.becomes())
	return end, nil
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
	v, release, err := f.p.Store.Record(x.pos)
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
