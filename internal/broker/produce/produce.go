package produce

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/topics"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// Delayer sends a message that asks for a delay level on its detour.
type Delayer interface {
	// Retarget changes topic, queue and properties of m, whose DELAY is above 0.
	Retarget(m *record.Message) error
}

// Halves keeps transactional messages until their producers have decided.
type Halves interface {
	// Accept stores m, which is addressed to its real queue, as a half message.
	// group is its producer's, sender the connection it came from. m is changed.
	Accept(m *record.Message, group string, sender any) (storage.Appended, error)
}

// Retries knows when a group has failed a message often enough.
type Retries interface {
	// Dead reports whether a message that group failed reconsume times goes to its
	// dead-letter topic; maxReconsume below 0 means what the group's config says.
	Dead(group string, reconsume, maxReconsume int32) (bool, error)
}

// Flow accepts messages. Its methods are safe for concurrent use.
type Flow struct {
	cfg    Config
	perm   atomic.Int32 // cfg.Perm, or what it was changed to
	store  *storage.Store
	topics *topics.Register
	delay  Delayer
	retry  Retries
	halves Halves
	told   func(context.Context)
	keys   *keys
	tail   []byte // the properties set on every single message; immutable
}

// New returns a working Flow. told returns when the name servers know all topics
// there are, or when its context is done: who sent to a topic that was not there
// may look for it as soon as the send is answered. It may be nil; so may halves: then
// transactions are refused.
func New(cfg Config, store *storage.Store, register *topics.Register, delay Delayer, retry Retries, halves Halves, told func(context.Context)) (*Flow, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	f := &Flow{
		cfg: cfg, store: store, topics: register, delay: delay, retry: retry, halves: halves, told: told,
		keys: newKeys(cfg.StoreHost.Addr()), tail: tail(cfg.Cluster, cfg.Region, cfg.TraceOn),
	}
	f.SetPerm(cfg.Perm)
	return f, nil
}

// SetPerm changes what the broker may do (Config.Perm).
func (f *Flow) SetPerm(p mq.Perm) { f.perm.Store(int32(p)) }

func (f *Flow) permission() mq.Perm { return mq.Perm(f.perm.Load()) }

// toldWait is how long the answer to a send that made its topic waits for the name
// servers to know it.
const toldWait = time.Second

// Accept stores what req asks for and calls done exactly once: before it
// returns, or, when the store flushes synchronously or the topic is new, from
// another goroutine once the messages are durable and the topic is known. It never waits itself, so that the reader of a
// connection may call it and messages of one connection keep their order.
func (f *Flow) Accept(req *Request, done func(Result, error)) {
	res, wait, made, err := f.accept(req)
	if made {
		answer := done
		done = func(res Result, err error) {
			go func() {
				// The message must not outlive its topic. When this fails, the register
				// tries again by itself.
				_ = f.topics.Save()
				if f.told == nil {
					answer(res, err)
					return
				}
				ctx, cancel := context.WithTimeout(context.Background(), toldWait)
				defer cancel()
				f.told(ctx)
				answer(res, err)
			}()
		}
	}
	if err != nil || wait == 0 {
		done(res, err)
		return
	}
	f.store.WhenDurable(wait, f.cfg.SyncFlushTimeout, func(err error) { done(res, err) })
}

// accept stores, and returns the log offset whose durability the sender waits
// for, 0 when it does not, and whether the topic was made for it.
func (f *Flow) accept(req *Request) (res Result, wait mq.LogOffset, made bool, err error) {
	to, err := f.place(req)
	if err != nil {
		return Result{}, 0, false, err
	}
	if req.Batch {
		res, wait, err = f.acceptBatch(req, to)
	} else {
		res, wait, err = f.acceptOne(req, to)
	}
	return res, wait, to.made, err
}

// place is where a request's messages go.
type place struct {
	topic *mq.TopicConfig
	made  bool // the topic is new
	queue mq.QueueID
	retry bool // the request names a retry topic: limits for users do not apply
	dead  bool // and the group has had its tries
	tries int32
}

// place finds topic and queue, in the order of RocketMQ's checks.
func (f *Flow) place(req *Request) (place, error) {
	if now := time.Now().UnixMilli(); now < f.cfg.AcceptFrom {
		return place{}, fmt.Errorf("%w: sends are accepted from %s on (startAcceptSendRequestTimeStamp)",
			mq.ErrSystem, time.UnixMilli(f.cfg.AcceptFrom).Format(time.RFC3339))
	}
	if !f.permission().Writable() {
		return place{}, fmt.Errorf("%w: this broker does not take messages (brokerPermission is %d)", mq.ErrNoPermission, f.permission())
	}
	if mq.SendForbidden(req.Topic) {
		return place{}, fmt.Errorf("%w: topic %s is written by the broker alone", mq.ErrNoPermission, req.Topic)
	}
	topic, made, err := f.topic(req)
	if err != nil {
		return place{}, err
	}
	to := place{topic: topic, made: made, queue: req.Queue, retry: mq.IsRetryTopic(req.Topic), tries: req.Reconsume}
	switch queues := max(topic.WriteQueues, topic.ReadQueues); {
	case !topic.Perm.Writable():
		return place{}, fmt.Errorf("%w: topic %s is not writable (its perm is %d)", mq.ErrNoPermission, topic.Name, topic.Perm)
	case topic.WriteQueues <= 0:
		return place{}, fmt.Errorf("%w: topic %s has no queues to write to", mq.ErrNoPermission, topic.Name)
	case int32(req.Queue) >= queues:
		return place{}, fmt.Errorf("%w: queue %d of topic %s does not exist, it has %d", mq.ErrInvalid, req.Queue, topic.Name, queues)
	case req.Queue < 0:
		to.queue = mq.QueueID(rand.Int32N(topic.WriteQueues))
	}
	if to.retry {
		return f.placeRetry(req, to)
	}
	return to, nil
}

// topic looks the topic up or makes it.
func (f *Flow) topic(req *Request) (topic *mq.TopicConfig, made bool, err error) {
	if t := f.topics.Get(req.Topic); t != nil {
		return t, false, nil
	}
	if err := mq.ValidTopic(req.Topic); err != nil {
		return nil, false, err
	}
	name := strings.Clone(req.Topic)
	if group, ok := strings.CutPrefix(name, mq.RetryPrefix); ok {
		// A group that is not there, and is not made, gets no topic either.
		if _, err := f.retry.Dead(group, 0, 0); err != nil {
			return nil, false, err
		}
		topic, err = f.topics.EnsureRetry(group, 1, false, req.UnitMode)
		return topic, true, err
	}
	var sysFlag int32
	if req.UnitMode {
		sysFlag = 1
	}
	topic, err = f.topics.AutoCreate(name, strings.Clone(req.DefaultTopic), req.DefaultQueues, sysFlag)
	return topic, true, err
}

// placeRetry decides between one more try and the dead letters.
func (f *Flow) placeRetry(req *Request, to place) (place, error) {
	group := strings.Clone(strings.TrimPrefix(req.Topic, mq.RetryPrefix))
	maxTries := req.MaxReconsume
	// The Go client leaves the numbers in the properties and sends zeros.
	if to.tries == 0 {
		if n, ok := intProperty(req.Properties, mq.PropReconsumeTime); ok {
			to.tries = n
			maxTries = -1
		}
		if n, ok := intProperty(req.Properties, mq.PropMaxReconsume); ok {
			maxTries = n
		}
	}
	dead, err := f.retry.Dead(group, to.tries, maxTries)
	if err != nil || !dead {
		return to, err
	}
	to.dead, to.queue = true, 0
	to.topic, err = f.topics.EnsureDLQ(group)
	return to, err
}

// AcceptFrom is the time before which sends are refused, ms, 0 for none.
func (f *Flow) AcceptFrom() int64 { return f.cfg.AcceptFrom }
