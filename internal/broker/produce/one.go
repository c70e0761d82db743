package produce

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// scratch is what one send needs besides its request.
type scratch struct {
	props []byte
	one   record.Message
	many  []record.Message
	refs  []*record.Message
}

// scratches keeps no property buffers above twice the largest block.
var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) free() {
	if cap(s.props) > 2*record.MaxProperties {
		s.props = nil
	}
	s.one = record.Message{}
	clear(s.many)
	clear(s.refs)
	if cap(s.many) > 1024 {
		s.many, s.refs = nil, nil
	}
	scratches.Put(s)
}

// acceptOne stores a single message.
//
// Budget, without a delay: the message id and the unique key in the answer are
// the only allocations; the properties are copied twice, here and into the log.
func (f *Flow) acceptOne(req *Request, to place) (Result, mq.LogOffset, error) {
	if err := f.checkSizes(req, to); err != nil {
		return Result{}, 0, err
	}
	s := scratches.Get().(*scratch)
	defer s.free()

	var r read
	props := copyProperties(s.props[:0], req.Properties, &r, true)
	level, err := r.level()
	if err != nil {
		return Result{}, 0, err
	}
	switch {
	case to.dead:
		// A dead letter is there at once, whatever the message once asked for (R01).
		level = 0
		props = record.AppendWithout(nil, props, mq.PropDelay, mq.PropTimerDelaySec, mq.PropTimerDelayMs, mq.PropTimerDeliverMs)
	case level > 0 && r.timed != "":
		props = withoutTimers(props)
	}
	again := to.retry && to.tries > 0
	if err := f.refuse(req, &r, to.dead || level > 0 || again, again); err != nil {
		return Result{}, 0, err
	}

	props = append(props, f.tail...)
	var unique string
	if len(r.unique) > 0 {
		unique = string(r.unique)
	} else {
		var key [2 * 28]byte
		unique = string(f.keys.next(key[:0], time.Now()))
		props = record.AppendProperty(props, mq.PropUniqueKey, unique)
	}
	if cap(props) > cap(s.props) {
		s.props = props
	}

	if r.priority != nil && !to.retry && level == 0 {
		if n, err := strconv.ParseInt(bin.String(r.priority), 10, 32); err == nil && n >= 0 {
			to.queue = mq.QueueID(min(n, int64(to.topic.WriteQueues)-1))
		}
	}
	m := &s.one
	f.fill(m, req, to)
	m.Body, m.Properties = req.Body, props
	timed := r.timed != "" && !to.dead && !again
	at, err := f.put(m, req, level > 0 || timed, r.half && !again)
	if err != nil {
		return Result{}, 0, err
	}
	res := Result{MessageID: mq.MessageID(f.cfg.StoreHost, at.Log), Queue: to.queue, Offset: at.Queue, TransactionID: unique, Messages: 1, Tally: at.Tally}
	if m.Topic == mq.TopicTimer && !to.retry {
		if out, ok := record.Property(m.Properties, mq.PropTimerOutMs); ok {
			res.TimerOut, _ = strconv.ParseInt(bin.String(out), 10, 64)
			res.Topic = to.topic.Name
		}
	}
	if f.store.SyncFlush() && !r.noWait {
		return res, at.End, nil
	}
	return res, 0, nil
}

// put stores a message where it belongs now: a half message waits for its
// producer's verdict, and its delay begins with that; another one that asks for a
// delay waits for that.
func (f *Flow) put(m *record.Message, req *Request, delayed, half bool) (storage.Appended, error) {
	if half && delayed {
		// What could not be delayed then is not taken now.
		then := *m
		then.SysFlag = then.SysFlag&^mq.SysTxMask | mq.SysTxCommit
		if err := f.delay.Retarget(&then); err != nil {
			return storage.Appended{}, err
		}
	}
	if half {
		return f.halves.Accept(m, req.Group, req.Sender)
	}
	if delayed {
		if err := f.delay.Retarget(m); err != nil {
			return storage.Appended{}, err
		}
	}
	return f.store.Append(m)
}

// fill sets what all messages of a request have in common.
func (f *Flow) fill(m *record.Message, req *Request, to place) {
	*m = record.Message{
		Topic: to.topic.Name, QueueID: to.queue, Flag: req.Flag, SysFlag: req.SysFlag,
		BornTime: req.BornTime, BornHost: req.BornHost, StoreHost: f.cfg.StoreHost, ReconsumeTimes: to.tries,
	}
	if to.topic.Filter == "MULTI_TAG" {
		m.SysFlag |= mq.SysMultiTags
	}
	if to.dead || to.retry {
		m.SysFlag &^= mq.SysTxMask
	}
}

// checkSizes holds a request against the limits for users.
func (f *Flow) checkSizes(req *Request, to place) error {
	const maxProps = record.MaxProperties - PropertyReserve
	switch {
	case len(req.Body) == 0:
		return fmt.Errorf("%w: the message has no body", mq.ErrIllegalMessage)
	case req.SysFlag&mq.SysInnerBatch != 0:
		return fmt.Errorf("%w: sysFlag %#x says that the message is a batch within; batches are sent as such (SEND_BATCH_MESSAGE)", mq.ErrIllegalMessage, int32(req.SysFlag))
	case to.retry:
		return nil // it was within the limits when it was new
	case len(req.Body) > f.cfg.MaxBody:
		return fmt.Errorf("%w: the body has %d bytes, the limit is %d (maxMessageSize)", mq.ErrIllegalMessage, len(req.Body), f.cfg.MaxBody)
	case len(req.Properties) > maxProps:
		return fmt.Errorf("%w: the properties have %d bytes, the limit is %d", mq.ErrIllegalMessage, len(req.Properties), maxProps)
	}
	return nil
}

// refuse says no to what this broker does not do, or not with this message. A
// level or a life behind the message (inherited) outweighs a timer; a retried
// message (again) may have been a half one once.
func (f *Flow) refuse(req *Request, r *read, inherited, again bool) error {
	tx := req.SysFlag.Tx()
	half := r.half && !again
	switch {
	case half && (f.cfg.RejectTransactions || f.halves == nil):
		return fmt.Errorf("%w: this broker does not take transactional messages (rejectTransactionMessage)", mq.ErrNoPermission)
	case !r.half && (tx == mq.SysTxPrepared || tx == mq.SysTxRollback) && !again:
		return fmt.Errorf("%w: the system flag %#x says that the message is part of a transaction, and its properties do not (%s); nobody would ever see it",
			mq.ErrIllegalMessage, int32(req.SysFlag), mq.PropTransaction)
	case r.timed == mq.PropTimerDeleteKey && !inherited:
		return fmt.Errorf("%w: a message with property %s would recall another one; send a recall request with its handle instead", mq.ErrIllegalMessage, r.timed)
	}
	return nil
}

func intProperty(props []byte, name string) (int32, bool) {
	value, ok := record.Property(props, name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(string(value), 10, 32)
	return int32(n), err == nil
}
