package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// messageView is a message as the admin commands show it.
type messageView struct {
	ID         string            `json:"id"`
	Topic      string            `json:"topic"`
	Queue      mq.QueueID        `json:"queue"`
	Offset     mq.QueueOffset    `json:"queueOffset"`
	LogOffset  mq.LogOffset      `json:"commitLogOffset"`
	Born       int64             `json:"bornTimestamp"`
	BornHost   string            `json:"bornHost"`
	Stored     int64             `json:"storeTimestamp"`
	StoreHost  string            `json:"storeHost"`
	Retries    int32             `json:"reconsumeTimes"`
	SysFlag    mq.SysFlag        `json:"sysFlag"`
	Flag       int32             `json:"flag"`
	Properties map[string]string `json:"properties"`
	Size       int               `json:"bodySize"`             // as stored
	Compressed string            `json:"compressed,omitempty"` // how; body is as it was before
	Body       string            `json:"body,omitempty"`       // when it is text
	BodyHex    string            `json:"bodyHex,omitempty"`    // when it is not
}

func viewOf(v record.View) messageView {
	m := messageView{
		ID: v.MessageID(), Topic: string(v.Topic()), Queue: v.QueueID(), Offset: v.QueueOffset(), LogOffset: v.LogOffset(),
		Born: v.BornTime(), BornHost: v.BornHost().String(), Stored: v.StoreTime(), StoreHost: v.StoreHost().String(),
		Retries: v.ReconsumeTimes(), SysFlag: v.SysFlag(), Flag: v.Flag(), Properties: map[string]string{}, Size: len(v.Body()),
	}
	for name, value := range record.EachProperty(v.Properties()) {
		m.Properties[string(name)] = string(value)
	}
	body, how, err := inflate(v.Body(), v.SysFlag())
	if m.Compressed = how; err != nil {
		m.Compressed += ", damaged: " + err.Error()
	}
	if utf8.Valid(body) && err == nil {
		m.Body = string(body)
	} else {
		m.BodyHex = hex.EncodeToString(body)
	}
	return m
}

// viewsOf are the messages in the body of an answer.
func viewsOf(body []byte) ([]messageView, error) {
	var found []messageView
	err := records(body, func(v record.View) error {
		found = append(found, viewOf(v))
		return nil
	})
	return found, err
}

// records visits the records in the body of an answer.
func records(body []byte, visit func(record.View) error) error {
	for len(body) > 0 {
		v, _, err := record.Next(body)
		if err == nil {
			err = visit(v)
		}
		if err != nil {
			return err
		}
		body = body[len(v):]
	}
	return nil
}

// query looks messages up by key on all brokers that have the topic. Hits of
// another key with the same hash are left out. None at all is no error.
func (a *admin) query(ctx context.Context, masters []member, topic, key string, unique bool, most int32, begin, end int64) ([]messageView, error) {
	found := []messageView{}
	err := each(masters, func(m member) error {
		resp, err := a.ask(ctx, m.Addr, protocol.QueryMessage, &protocol.QueryMessageHeader{
			Topic: topic, Key: key, Max: most, Begin: begin, End: end, Unique: unique,
		}, nil)
		if errors.Is(err, mq.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		hits, err := viewsOf(resp.Body)
		for _, h := range hits {
			if unique && h.Properties[mq.PropUniqueKey] == key || !unique && hasKey(h, key) {
				found = append(found, h)
			}
		}
		return err
	})
	return found, err
}

// hasKey reports whether a message is found under a key: one of its own or its
// unique one.
func hasKey(m messageView, key string) bool {
	return m.Properties[mq.PropUniqueKey] == key || slices.Contains(strings.Fields(m.Properties[mq.PropKeys]), key)
}

// window is the part of a topic that a command looks at, and which messages.
type window struct {
	since, until string // as said on the command line
	tag, key     string
	queue        int32
	begin, end   int64 // since and until in ms; end is after the last
}

func (w *window) register(cmd *cobra.Command, a *admin) {
	cmd.Flags().StringVar(&w.since, "since", "", "only what was stored from this `TIME` on: 2025-01-31T12:00:00+01:00, ms, or how long ago, such as -15m")
	cmd.Flags().StringVar(&w.until, "until", "", "only what was stored before this `TIME`")
	cmd.Flags().StringVar(&w.tag, "tag", "", "only with this tag")
	cmd.Flags().StringVar(&w.key, "key", "", "only with this key")
}

// open reads the times.
func (w *window) open() (err error) {
	now := time.Now()
	w.begin, w.end = 0, 1<<62
	if w.since != "" {
		if w.begin, err = parseTime("--since", w.since, now); err != nil {
			return err
		}
	}
	if w.until != "" {
		if w.end, err = parseTime("--until", w.until, now); err != nil {
			return err
		}
	}
	if w.begin >= w.end {
		return &usageError{fmt.Errorf("nothing lies between --since %s and --until %s", w.since, w.until)}
	}
	return nil
}

// narrow reports whether not every message of a queue is wanted.
func (w *window) narrow() bool { return w.since != "" || w.until != "" || w.tag != "" || w.key != "" }

// takes reports whether a message is in the window.
func (w *window) takes(v record.View) bool {
	if t := v.StoreTime(); t < w.begin || t >= w.end {
		return false
	}
	if w.tag != "" {
		if tag, _ := v.Property(mq.PropTags); string(tag) != w.tag {
			return false
		}
	}
	if w.key == "" {
		return true
	}
	keys, _ := v.Property(mq.PropKeys)
	return slices.Contains(strings.Fields(string(keys)), w.key)
}

// start is where in a queue the window begins.
func (w *window) start(ctx context.Context, a *admin, m member, topic string, id mq.QueueID, least mq.QueueOffset) (mq.QueueOffset, error) {
	if w.begin == 0 {
		return least, nil
	}
	var at protocol.OffsetResponse
	err := a.askFields(ctx, m.Addr, protocol.SearchOffsetByTimestamp, &protocol.SearchOffsetHeader{Topic: topic, QueueID: int32(id), Timestamp: w.begin}, &at)
	return max(least, mq.QueueOffset(at.Offset)), err
}

// errEnough ends a scan early.
var errEnough = errors.New("enough")

// scan visits the messages of a queue from an offset on, up to and without the
// offset end, as a tool that keeps no progress. It returns where it stopped.
func (a *admin) scan(ctx context.Context, addr, topic string, queue mq.QueueID, from, end mq.QueueOffset, visit func(record.View) error) (mq.QueueOffset, error) {
	for from < end {
		next, err := a.pull(ctx, addr, topic, queue, from, int32(min(32, end-from)), 0, func(v record.View) error {
			if v.QueueOffset() >= end {
				return errEnough
			}
			return visit(v)
		})
		if errors.Is(err, errEnough) {
			return next, nil
		}
		if err != nil || next <= from {
			return from, err
		}
		from = next
	}
	return from, nil
}

// pull visits up to most messages of a queue from an offset on, waiting for the
// first if there is none yet, and returns where to go on.
func (a *admin) pull(ctx context.Context, addr, topic string, queue mq.QueueID, from mq.QueueOffset, most int32, wait time.Duration, visit func(record.View) error) (mq.QueueOffset, error) {
	h := protocol.PullHeader{
		ConsumerGroup: mq.GroupTools, Topic: topic, QueueID: queue, QueueOffset: from, MaxMsgNums: most,
		SysFlag: mq.PullSubscription, Subscription: "*", ExpressionType: "TAG",
	}
	if wait > 0 {
		h.SysFlag |= mq.PullSuspend
		h.SuspendMillis = wait.Milliseconds()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait+a.timeout)
		defer cancel()
	}
	resp, err := a.send(ctx, addr, remoting.NewRequest(int32(protocol.PullMessage), h.Encode()...), nil)
	no, refused := errors.AsType[*protocol.ResponseError](err)
	if err != nil && (!refused || no.Code != protocol.PullNotFound && no.Code != protocol.PullRetryImmediately && no.Code != protocol.PullOffsetMoved) {
		return from, err
	}
	var at protocol.PullResponse
	if err := protocol.DecodePullResponse(resp, &at); err != nil {
		return from, err
	}
	if refused {
		return at.Next, nil
	}
	last := from
	err = records(resp.Body, func(v record.View) error {
		last = v.QueueOffset()
		return visit(v)
	})
	if err != nil {
		return last + 1, err
	}
	return at.Next, nil
}

// queueRange is the part of a queue that holds messages, on one broker.
type queueRange struct {
	id       mq.QueueID
	min, max mq.QueueOffset
}

// ranges lists the queues of a topic on one broker; queue ≥ 0 picks one.
func (a *admin) ranges(ctx context.Context, m member, topic string, queue int32) ([]queueRange, error) {
	stats, err := a.topicStats(ctx, m, topic)
	if err != nil {
		return nil, err
	}
	var all []queueRange
	for _, k := range slices.SortedFunc(maps.Keys(stats.Queues), protocol.MessageQueue.Compare) {
		if queue < 0 || k.QueueID == mq.QueueID(queue) {
			all = append(all, queueRange{k.QueueID, stats.Queues[k].Min, stats.Queues[k].Max})
		}
	}
	if len(all) == 0 && queue >= 0 {
		return nil, notFound("topic %s has no queue %d on %s, it has %d", topic, queue, m.Name, len(stats.Queues))
	}
	return all, nil
}

// scanWindow visits what a window holds of a topic on one broker, queue after
// queue.
func (a *admin) scanWindow(ctx context.Context, m member, topic string, w *window, visit func(record.View) error) error {
	all, err := a.ranges(ctx, m, topic, w.queue)
	if err != nil {
		return err
	}
	for _, q := range all {
		from, err := w.start(ctx, a, m, topic, q.id, q.min)
		if err != nil {
			return err
		}
		_, err = a.scan(ctx, m.Addr, topic, q.id, from, q.max, func(v record.View) error {
			if v.StoreTime() >= w.end {
				return errEnough
			}
			if !w.takes(v) {
				return nil
			}
			return visit(v)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
