package txn

import (
	"errors"
	"fmt"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// Verdict is what a producer says of its transaction, as on the wire.
type Verdict int32

// Verdicts.
const (
	VerdictUnknown  Verdict = 0
	VerdictCommit   Verdict = Verdict(mq.SysTxCommit)
	VerdictRollback Verdict = Verdict(mq.SysTxRollback)
)

// becomes is the state that a verdict leads to.
func (v Verdict) becomes() State {
	if v == VerdictCommit {
		return StateCommitted
	}
	return StateRolledBack
}

// EndRequest is a producer's word (END_TRANSACTION).
type EndRequest struct {
	Group     string
	Offset    mq.QueueOffset // in the half topic
	Log       mq.LogOffset   // of the half message
	Verdict   Verdict
	FromCheck bool   // it answers a check
	ID        string // transaction id, as the client knows it; may be empty
}

// End takes a verdict and calls done exactly once: before it returns, or when the
// store flushes synchronously, from another goroutine once what follows from it is
// durable.
//
// The error wraps [mq.ErrSystem] when no such half message is known or it is not
// that group's, [mq.ErrIllegalOperation] when another verdict came first,
// [mq.ErrNoTopic] when the topic of a commit is gone; after that one the transaction
// is still open, as after any error of the store.
func (f *Flow) End(req *EndRequest, done func(error)) {
	end, err := f.end(req)
	if err != nil || end == 0 || !f.p.Store.SyncFlush() {
		done(err)
		return
	}
	f.p.Store.WhenDurable(end, f.cfg.SyncFlushTimeout, done)
}

// errNotOpen says that a half is not, or no longer, open.
var errNotOpen = errors.New("not open")

// end returns the log position whose durability proves the verdict, 0 when there
// is nothing to wait for.
func (f *Flow) end(req *EndRequest) (mq.LogOffset, error) {
	switch req.Verdict {
	case VerdictUnknown:
		f.count.unknown.Inc()
		f.answered(int64(req.Offset))
		return 0, nil
	case VerdictCommit, VerdictRollback:
	default:
		return 0, fmt.Errorf("%w: commitOrRollback is %d, want 0 (unknown), 8 (commit) or 12 (rollback)", mq.ErrInvalid, req.Verdict)
	}
	err := f.verify(req)
	if err == nil {
		var end mq.LogOffset
		if end, err = f.decide(int64(req.Offset), req.Verdict); err == nil {
			return end, nil
		}
	}
	if !errors.Is(err, errNotOpen) {
		return 0, err
	}
	return f.late(req)
}

// verify checks that an open half is the one that is meant, as RocketMQ does.
func (f *Flow) verify(req *EndRequest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.mu.halves.find(int64(req.Offset))
	switch {
	case h == nil:
		return errNotOpen
	case h.pos != req.Log:
		return fmt.Errorf("%w: the commit log offset wrong: half message %d is at %d, not at %d", mq.ErrSystem, req.Offset, h.pos, req.Log)
	case f.mu.halves.groups.text(h.group) != req.Group:
		return fmt.Errorf("%w: the producer group wrong: half message %d was not sent by group %q", mq.ErrSystem, req.Offset, req.Group)
	}
	return nil
}

// decide ends an open half, if it still is.
func (f *Flow) decide(off int64, v Verdict) (mq.LogOffset, error) {
	f.gate.RLock()
	defer f.gate.RUnlock()
	f.put.Lock()
	defer f.put.Unlock()
	f.mu.Lock()
	h := f.mu.halves.find(off)
	if h == nil {
		f.mu.Unlock()
		return 0, errNotOpen
	}
	pos := h.pos
	f.mu.Unlock()
	var at storage.Appended
	var err error
	if v == VerdictCommit {
		at, err = f.commit(pos, record.Receipt{Store: f.p.Store.ID(), Queue: halfQueue, Offset: mq.QueueOffset(off)})
	} else {
		before := len(f.put.marks.body)
		f.put.marks.add(off, time.Now())
		if at, err = f.writeMark(); err != nil {
			f.put.marks.body = f.put.marks.body[:before] // it is not said yet
		}
	}
	if err != nil {
		return 0, err
	}
	if v == VerdictCommit {
		f.markSoon(off)
		f.count.committed.Inc()
	} else {
		f.count.rolledBack.Inc()
	}
	f.close(off, v.becomes(), 0)
	return at.End, nil
}

// markSoon has a mark written with others; put is held.
func (f *Flow) markSoon(off int64) {
	m := &f.put.marks
	m.add(off, time.Now())
	if len(m.body) >= f.cfg.MarkBytes {
		if _, err := f.writeMark(); err != nil {
			f.note.Warn("marks of ended transactions could not be written; trying again", "err", err)
		}
	}
}

// close notes how a half ended; put is held.
func (f *Flow) close(off int64, s State, to int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.mu.halves.find(off)
	f.unschedule(h)
	f.releaseLocked(h, true)
	f.mu.recent.add(off, ended{h.pos, s, to})
	if h.is(waiting) {
		f.moveLocked(f.mu.lines[h.group]) // it leaves the line
	}
	f.mu.halves.close(h)
}

// halfOnly are the properties that only a half message has.
var halfOnly = []string{mq.PropRealTopic, mq.PropRealQueueID, mq.PropReceipt, mq.PropTxClient, mq.PropTxDue, mq.PropDelayMillis}

// crcTailSize is what the engine adds to the properties when it writes checksums.
const crcTailSize = 20

// commit appends the message of a half record to its topic; put is held.
func (f *Flow) commit(pos mq.LogOffset, receipt record.Receipt) (storage.Appended, error) {
	v, release, err := f.record(pos)
	if err != nil {
		return storage.Appended{}, fmt.Errorf("%w: the half message cannot be read: %w", mq.ErrSystem, err)
	}
	defer release()
	dest, err := destinationOf(v.Properties())
	if err != nil {
		return storage.Appended{}, fmt.Errorf("%w: the half message cannot be committed: %w", mq.ErrSystem, err)
	}
	if f.p.Topics.Get(dest.Topic) == nil {
		return storage.Appended{}, fmt.Errorf("%w: topic %s of the half message does not exist any more; the transaction stays open", mq.ErrNoTopic, dest.Topic)
	}
	f.put.props = record.AppendWithout(f.put.props[:0], v.Properties(), halfOnly...)
	m := record.Message{
		Topic: dest.Topic, QueueID: dest.ID, Flag: v.Flag(), SysFlag: v.SysFlag()&^mq.SysTxMask | mq.SysTxCommit,
		BornTime: v.BornTime(), BornHost: v.BornHost(), StoreHost: v.StoreHost(), ReconsumeTimes: v.ReconsumeTimes(),
		PreparedOffset: pos, Body: v.Body(), Properties: f.put.props,
	}
	if err := f.delay.Retarget(&m); err != nil {
		return storage.Appended{}, err
	}
	f.withReceipt(&m, receipt)
	return f.p.Store.AppendInternal(&m)
}

// withReceipt adds a receipt if there is room. Only a message that RocketMQ took
// may lack it; its place in the log tells then.
func (f *Flow) withReceipt(m *record.Message, receipt record.Receipt) {
	plain := len(m.Properties)
	props := record.AppendReceipt(m.Properties, receipt)
	if len(props) > record.MaxProperties-crcTailSize {
		props = props[:plain]
	}
	m.Properties = props
}

// record reads a half message. One that was appended again or given up a moment
// ago may not be durable yet, and not visible for that.
func (f *Flow) record(pos mq.LogOffset) (record.View, func(), error) {
	v, release, err := f.p.Store.Record(pos)
	if err == nil || !f.p.Store.SyncFlush() || pos < f.p.Store.Durable() {
		return v, release, err
	}
	if err := f.p.Store.Flush(); err != nil {
		return nil, nil, err
	}
	return f.p.Store.Record(pos)
}
