package brokerapi

import (
	"fmt"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/delay"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/storage"
)

// recall takes a timed message back (RECALL_MESSAGE). The checks come in
// RocketMQ's order; unlike there, the answer says what came of it.
func (a *API) recall(r *request, h *protocol.RecallHeader) (answer, error) {
	if a.p.Topics.Get(h.Topic) == nil {
		return answer{}, fmt.Errorf("%w: topic %s", mq.ErrNoTopic, h.Topic)
	}
	handle, err := protocol.ParseRecallHandle(h.Handle)
	if err != nil {
		return answer{}, err
	}
	switch {
	case handle.Topic != h.Topic:
		return answer{}, fmt.Errorf("%w: the recall handle is of a message for topic %s, the request says %s", mq.ErrIllegalOperation, handle.Topic, h.Topic)
	case handle.Broker != a.cfg.Broker:
		return answer{}, fmt.Errorf("%w: the recall handle is of broker %s, this is %s", mq.ErrIllegalOperation, handle.Broker, a.cfg.Broker)
	}
	at, err := a.p.Delay.Recall(delay.Name{Topic: handle.Topic, Unique: handle.Unique, Due: handle.Time, Seq: handle.Seq})
	if err != nil {
		return answer{}, err
	}
	if err := a.durable(at); err != nil {
		return answer{}, err
	}
	return answer{header: &protocol.RecallResponse{MsgID: handle.Unique}}, nil
}

// recallFlushTimeout is how long an answer waits for the disk, RocketMQ's syncFlushTimeout.
const recallFlushTimeout = 5 * time.Second

// durable waits, under synchronous flush, until a record is durable.
func (a *API) durable(at storage.Appended) error {
	if !a.p.Store.SyncFlush() {
		return nil
	}
	done := make(chan error, 1)
	a.p.Store.WhenDurable(at.End, recallFlushTimeout, func(err error) { done <- err })
	return <-done
}
