package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// parcel is a message of the demonstration that was sent.
type parcel struct {
	number int
	level  int
	queue  mq.QueueID
	body   string
	stored int64     // ms: when the broker stored it
	due    time.Time // stored, plus the level's delay
}

// levelDelays are the delays of the levels that the demonstration uses.
var levelDelays = []time.Duration{0, time.Second, 5 * time.Second, 10 * time.Second}

// producer sends messages one by one.
type producer struct {
	remote       *remote
	broker       string
	topic, group string
}

// send sends message number and asks the broker when it stored it, which is when
// its delay begins.
func (p *producer) send(ctx context.Context, number, level int) (parcel, error) {
	sent := parcel{number: number, level: level, queue: mq.QueueID(number % quickQueues), body: fmt.Sprintf("message %d, level %d", number, level)}
	props := record.AppendProperty(nil, mq.PropKeys, "quick-"+strconv.Itoa(number))
	props = record.AppendProperty(props, mq.PropTags, "level"+strconv.Itoa(level))
	if level > 0 {
		props = record.AppendProperty(props, mq.PropDelay, strconv.Itoa(level))
	}
	h := protocol.SendHeader{
		ProducerGroup: p.group, Topic: p.topic, DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: quickQueues, QueueID: sent.queue,
		BornTime: time.Now().UnixMilli(), Properties: bin.String(props),
	}
	cmd := remoting.NewRequest(int32(protocol.SendMessageV2), h.Encode()...)
	resp, err := p.remote.send(ctx, p.broker, cmd, []byte(sent.body))
	if err != nil {
		return sent, err
	}
	var at protocol.SendResponse
	if err := protocol.DecodeSendResponse(resp, &at); err != nil {
		return sent, err
	}
	_, pos, err := mq.ParseMessageID(at.MsgID)
	if err != nil {
		return sent, err
	}
	if resp, err = p.remote.ask(ctx, p.broker, protocol.ViewMessageByID, &protocol.ViewMessageHeader{Offset: int64(pos)}, nil); err != nil {
		return sent, err
	}
	v, _, err := record.Next(resp.Body)
	if err != nil {
		return sent, fmt.Errorf("look at message %d: %w", number, err)
	}
	sent.stored = v.StoreTime()
	sent.due = time.UnixMilli(sent.stored).Add(levelDelays[level])
	return sent, nil
}

// consumer reads all queues of a topic with pulls that wait for news.
type consumer struct {
	remote       *remote
	broker       string
	topic, group string
	arrived      func(v record.View, at time.Time)

	failed  chan struct{} // closed after the first failure
	failure error         // it; read after failed is closed or done is over
	once    sync.Once
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// start reads queues 0 to queues-1 from their ends on.
func (c *consumer) start(ctx context.Context, queues int) error {
	ctx, c.cancel = context.WithCancel(ctx)
	c.failed = make(chan struct{})
	for id := range mq.QueueID(queues) {
		var end protocol.OffsetResponse
		if err := c.remote.askFields(ctx, c.broker, protocol.GetMaxOffset, &protocol.QueueHeader{Topic: c.topic, QueueID: int32(id)}, &end); err != nil {
			return err
		}
		c.done.Go(func() {
			if err := c.read(ctx, id, mq.QueueOffset(end.Offset)); err != nil && ctx.Err() == nil {
				c.once.Do(func() {
					c.failure = err
					close(c.failed)
				})
			}
		})
	}
	return nil
}

// stop ends the reading and returns what went wrong.
func (c *consumer) stop() error {
	c.cancel()
	c.done.Wait()
	return c.failure
}

const pullWait = 15 * time.Second

func (c *consumer) read(ctx context.Context, id mq.QueueID, from mq.QueueOffset) error {
	for ctx.Err() == nil {
		h := protocol.PullHeader{
			ConsumerGroup: c.group, Topic: c.topic, QueueID: id, QueueOffset: from, MaxMsgNums: 32, SysFlag: mq.PullSuspend | mq.PullSubscription,
			SuspendMillis: pullWait.Milliseconds(), Subscription: "*", ExpressionType: "TAG",
		}
		call, cancel := context.WithTimeout(ctx, pullWait+callTimeout)
		resp, err := c.remote.send(call, c.broker, remoting.NewRequest(int32(protocol.PullMessage), h.Encode()...), nil)
		cancel()
		now := time.Now()
		if refused, ok := errors.AsType[*protocol.ResponseError](err); ok {
			switch refused.Code {
			case protocol.PullNotFound, protocol.PullRetryImmediately, protocol.PullOffsetMoved:
				err = nil
			}
		}
		if err != nil {
			return err
		}
		var got protocol.PullResponse
		if err := protocol.DecodePullResponse(resp, &got); err != nil {
			return err
		}
		from = got.Next
		for b := resp.Body; len(b) > 0 && resp.Code == int32(protocol.Success); {
			v, _, err := record.Next(b)
			if err != nil {
				return fmt.Errorf("read from queue %d: %w", id, err)
			}
			c.arrived(v, now)
			b = b[len(v):]
		}
	}
	return nil
}

// numberOf reads the number out of a demonstration's key, 0 when it is none.
func numberOf(v record.View) int {
	keys, _ := v.Property(mq.PropKeys)
	n, err := strconv.Atoi(strings.TrimPrefix(string(keys), "quick-"))
	if err != nil {
		return 0
	}
	return n
}
