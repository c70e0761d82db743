package redeliver

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/groups"
	"github.com/sundial-mq/sundial/internal/broker/topics"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// Delayer sends a message that asks for a delay level on its detour.
type Delayer interface {
	// Retarget changes topic, queue and properties of m, whose DELAY is above 0.
	Retarget(m *record.Message) error
	// RetargetAfter delays m by a number of milliseconds, whatever its properties
	// ask for, and returns by how many.
	RetargetAfter(m *record.Message, millis int64) (int64, error)
	// Count is how many levels there are, Millis how long one of them delays.
	Count() int
	Millis(level mq.DelayLevel) int64
}

// Names of properties that a dead letter carries besides those of RocketMQ.
const (
	propDLQTopic = "DLQ_ORIGIN_TOPIC"
	propDLQID    = "DLQ_ORIGIN_MESSAGE_ID"
	propReason   = "SUNDIAL_DEAD_REASON" // why the message is here, for people
)

// firstLevel begins the ladder: the n-th retry waits for level firstLevel+n.
const firstLevel = 3

// Flow takes messages back. Its methods are safe for concurrent use.
type Flow struct {
	cfg    Config
	perm   atomic.Int32 // cfg.Perm, or what it was changed to
	store  *storage.Store
	topics *topics.Register
	groups *groups.Register
	delay  Delayer
	locked func(group string) bool
	recent *recent
}

// New returns a working Flow. locked says whether members of a group hold
// order locks that have not expired.
func New(cfg Config, store *storage.Store, t *topics.Register, g *groups.Register, delay Delayer, locked func(group string) bool) (*Flow, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("redeliver: %w", err)
	}
	f := &Flow{cfg: cfg, store: store, topics: t, groups: g, delay: delay, locked: locked, recent: newRecent(cfg.MaxRemembered)}
	f.SetPerm(cfg.Perm)
	return f, nil
}

// SetPerm changes what the broker may do (Config.Perm).
func (f *Flow) SetPerm(p mq.Perm) { f.perm.Store(int32(p)) }

func (f *Flow) permission() mq.Perm { return mq.Perm(f.perm.Load()) }

// Dead reports whether a message that a client itself sends to the retry topic
// of a group goes to the dead letters: when it has had more tries than allowed,
// or when the group consumes in order, because such a consumer tries again on
// its own and sends only what it gives up.
func (f *Flow) Dead(group string, reconsume, maxReconsume int32) (bool, error) {
	g, err := f.group(group)
	if err != nil {
		return false, err
	}
	return reconsume > tries(g, maxReconsume) || f.locked(group), nil
}

// tries is how often a message is retried: what the client says, else the group.
func tries(g *mq.GroupConfig, said int32) int32 {
	switch {
	case said >= 0:
		return said
	case g.RetryMaxTimes >= 0:
		return g.RetryMaxTimes
	}
	return 16 // what RocketMQ's clients mean by -1
}

func (f *Flow) group(name string) (*mq.GroupConfig, error) {
	if err := mq.ValidGroup(name); err != nil {
		return nil, err
	}
	return f.groups.Ensure(name)
}

// SendBack stores the message at req.Offset for another try, or as a dead
// letter, and returns when that is done. It may read from the disk and wait for a
// flush.
func (f *Flow) SendBack(req *Request) error {
	group, err := f.group(req.Group)
	if err != nil {
		return err
	}
	if !f.permission().Writable() {
		return fmt.Errorf("%w: this broker does not take messages (brokerPermission is %d)", mq.ErrNoPermission, f.permission())
	}
	if group.RetryQueues <= 0 {
		return nil // the group does not want retries
	}
	return f.recent.once(attempt{req.Group, req.Offset}, func() (time.Duration, error) {
		return f.sendBack(req, group)
	})
}

// sendBack stores the message again and says how long another send-back of the
// same record means the same attempt.
func (f *Flow) sendBack(req *Request, group *mq.GroupConfig) (time.Duration, error) {
	v, release, err := f.store.Record(req.Offset)
	if err != nil {
		return 0, fmt.Errorf("%w: look up message by offset %d: %w", mq.ErrSystem, req.Offset, err)
	}
	defer release()
	old := v.Message()

	maxTries := tries(group, req.MaxReconsume)
	var m *record.Message
	window := settled
	switch {
	case req.DelayLevel < 0:
		m, err = f.deadLetter(req, &old, "the consumer rejected the message")
	case old.ReconsumeTimes >= maxTries:
		m, err = f.deadLetter(req, &old, fmt.Sprintf("failed %d times, %d retries are allowed", old.ReconsumeTimes+1, maxTries))
	default:
		var pause int64
		m, pause, err = f.retry(req, group, &old)
		window = max(window, time.Duration(pause)*time.Millisecond)
	}
	if err != nil {
		return 0, err
	}
	at, err := f.store.AppendInternal(m)
	if err != nil {
		return 0, fmt.Errorf("store for another try: %w", err)
	}
	if f.cfg.Stored != nil {
		topic, _ := record.Property(m.Properties, mq.PropRetryTopic)
		f.cfg.Stored(string(topic), req.Group, m.Topic == mq.DLQTopic(req.Group))
	}
	if f.store.SyncFlush() {
		if err := f.durable(at.End); err != nil {
			return 0, err
		}
	}
	return window, nil
}

// later sends a retry on its detour and returns how long that takes: the level that
// the consumer names; else what the group's plan says, to the millisecond; else a
// step of the ladder.
func (f *Flow) later(m *record.Message, level mq.DelayLevel, group *mq.GroupConfig, retries int32) (int64, error) {
	if level == 0 {
		if pause, ok := group.RetryPolicy.Pause(retries); ok {
			return f.delay.RetargetAfter(m, shortened(pause, group))
		}
		level = firstLevel + mq.DelayLevel(min(retries, math.MaxInt32-firstLevel))
	}
	level = min(level, mq.DelayLevel(f.delay.Count()))
	m.Properties = record.AppendProperty(m.Properties, mq.PropDelay, strconv.Itoa(int(level)))
	return f.delay.Millis(level), f.delay.Retarget(m)
}

// shortened takes a random part of an exponential pause away, up to what the
// group's attribute allows, so that messages that failed together do not come back
// together.
func shortened(pause int64, group *mq.GroupConfig) int64 {
	percent := groups.RetryJitter(group)
	if percent == 0 || group.RetryPolicy.Type != mq.RetryExponential {
		return pause
	}
	most := pause/100*percent + pause%100*percent/100
	return pause - rand.Int64N(most+1)
}

// durable waits for the flush; a time-out is no failure, because the message is
// stored and a second send-back would double it.
func (f *Flow) durable(end mq.LogOffset) error {
	done := make(chan error, 1)
	f.store.WhenDurable(end, f.cfg.SyncFlushTimeout, func(err error) { done <- err })
	if err := <-done; err != nil && !errors.Is(err, mq.ErrFlushTimeout) {
		return err
	}
	return nil
}

// again is the record that follows old: everything but topic, queue and
// properties.
func (f *Flow) again(old *record.Message) *record.Message {
	m := *old
	m.StoreHost = f.cfg.StoreHost
	m.ReconsumeTimes = old.ReconsumeTimes + 1
	m.PreparedOffset = 0
	m.SysFlag &^= mq.SysTxMask
	return &m
}

// retry is the message as it waits for its next try, and for how many ms.
func (f *Flow) retry(req *Request, group *mq.GroupConfig, old *record.Message) (*record.Message, int64, error) {
	topic := f.topics.Get(mq.RetryTopic(req.Group)) // as it is: its order flag is the consumers' to set
	if topic == nil {
		var err error
		if topic, err = f.topics.EnsureRetry(req.Group, group.RetryQueues, false, req.UnitMode); err != nil {
			return nil, 0, err
		}
		if err := f.topics.Save(); err != nil { // the message must not outlive its topic
			return nil, 0, err
		}
	}
	if !topic.Perm.Writable() {
		return nil, 0, fmt.Errorf("%w: topic %s is not writable (its perm is %d)", mq.ErrNoPermission, topic.Name, topic.Perm)
	}
	m := f.again(old)
	m.Topic = topic.Name
	m.QueueID = mq.QueueID(rand.Int32N(max(1, min(group.RetryQueues, topic.WriteQueues))))
	m.Properties = f.properties(req, old)
	pause, err := f.later(m, req.DelayLevel, group, old.ReconsumeTimes)
	return m, pause, err
}

// deadLetter is the message as it rests in the dead-letter topic, at once and
// without anything that would delay it (R01).
func (f *Flow) deadLetter(req *Request, old *record.Message, reason string) (*record.Message, error) {
	made := f.topics.Get(mq.DLQTopic(req.Group)) == nil
	topic, err := f.topics.EnsureDLQ(req.Group)
	if err != nil {
		return nil, err
	}
	if made {
		if err := f.topics.Save(); err != nil { // the message must not outlive its topic
			return nil, err
		}
	}
	m := f.again(old)
	m.Topic, m.QueueID = topic.Name, 0
	m.Properties = f.properties(req, old)
	origin, _ := record.Property(m.Properties, mq.PropRetryTopic)
	id, _ := record.Property(m.Properties, mq.PropOriginMessageID)
	m.Properties = record.AppendProperty(m.Properties, propDLQTopic, string(origin))
	m.Properties = record.AppendProperty(m.Properties, propDLQID, string(id))
	m.Properties = record.AppendProperty(m.Properties, propReason, reason)
	return m, nil
}

// properties is a new block: old's without the traces of its delay or transaction,
// which may be still to come when a client names the offset of a pending record, and
// with the names of the first life.
func (f *Flow) properties(req *Request, old *record.Message) []byte {
	b := record.AppendWithout(make([]byte, 0, len(old.Properties)+512), old.Properties,
		mq.PropDelay, mq.PropRealTopic, mq.PropRealQueueID, mq.PropReceipt, mq.PropDelayMillis, mq.PropWait,
		mq.PropTimerDelaySec, mq.PropTimerDelayMs, mq.PropTimerDeliverMs, mq.PropTimerOutMs,
		mq.PropTimerEnqueueMs, mq.PropTimerDequeueMs, mq.PropTimerRollTimes, mq.PropTimerDeleteKey,
		mq.PropDue, mq.PropRecalled, mq.PropTxClient, mq.PropTxDue,
		mq.PropMinOffset, mq.PropMaxOffset, propDLQTopic, propDLQID, propReason)
	if _, ok := record.Property(b, mq.PropRetryTopic); !ok {
		b = record.AppendProperty(b, mq.PropRetryTopic, old.Topic)
	}
	if _, ok := record.Property(b, mq.PropOriginMessageID); !ok {
		id := req.OriginID
		if id == "" {
			id = mq.MessageID(old.StoreHost, old.LogOffset)
		}
		b = record.AppendProperty(b, mq.PropOriginMessageID, id)
	}
	return record.AppendProperty(b, mq.PropWait, "false")
}
