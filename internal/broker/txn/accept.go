package txn

import (
	"fmt"
	"strconv"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// room is what a half message must leave of its properties for what comes to them
// later: tries and due time when it is appended again, receipt and delay when it is
// committed.
const room = 384

// maxClientID bounds what is kept of a sender.
const maxClientID = 255

// Accept stores m, which is addressed to its real queue and complete but for what
// makes it a half message. group is its producer's, sender the connection it came
// from or nil. m is changed.
func (f *Flow) Accept(m *record.Message, group string, sender any) (storage.Appended, error) {
	if err := f.prepare(m, group, sender); err != nil {
		return storage.Appended{}, err
	}
	producers, _ := record.Property(m.Properties, mq.PropProducerGroup)
	real, _ := record.Property(m.Properties, mq.PropRealTopic)
	f.gate.RLock()
	defer f.gate.RUnlock()
	at, err := f.p.Store.Append(m)
	if err != nil {
		return at, err
	}
	f.open(at, m, bin.String(producers), bin.String(real), 0)
	f.count.prepared.Inc()
	return at, nil
}

// open notes a half message that was stored; gate is held.
func (f *Flow) open(at storage.Appended, m *record.Message, group, topic string, tries uint16) {
	h := half{off: int64(at.Queue), pos: at.Log, born: bornBy(m.BornTime, at.StoreTime), tries: tries}
	h.due = firstCheck(m.Properties, m.BornTime, at.StoreTime, tries, &f.cfg)
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.mu.halves.add(h, group, topic)
	f.mu.halves.touch(n)
	f.schedule(n)
}

// prepare makes a half message of m, as RocketMQ does.
func (f *Flow) prepare(m *record.Message, group string, sender any) error {
	props := make([]byte, 0, len(m.Properties)+len(m.Topic)+len(group)+maxClientID+256)
	props = record.AppendWithout(props, m.Properties, mq.PropRealTopic, mq.PropRealQueueID, mq.PropTransactionID,
		mq.PropCheckTimes, mq.PropPreparedOffset, mq.PropReceipt, mq.PropTxClient, mq.PropTxDue)
	if _, ok := record.Property(props, mq.PropProducerGroup); !ok {
		props = record.AppendProperty(props, mq.PropProducerGroup, group)
	}
	said, _ := record.Property(props, mq.PropProducerGroup)
	if len(said) == 0 {
		return fmt.Errorf("%w: a transactional message names no producer group (property %s)", mq.ErrIllegalMessage, mq.PropProducerGroup)
	}
	if id := f.sends(sender, string(said), m.Topic); id != "" {
		props = record.AppendProperty(props, mq.PropTxClient, id)
	}
	if unique, ok := record.Property(props, mq.PropUniqueKey); ok {
		props = record.AppendProperty(props, mq.PropTransactionID, string(unique))
	}
	props = record.AppendProperty(props, mq.PropRealTopic, m.Topic)
	props = record.AppendProperty(props, mq.PropRealQueueID, strconv.Itoa(int(m.QueueID)))
	if n := len(props) + room; n > record.MaxProperties {
		return fmt.Errorf("%w: the properties of a transactional message take %d bytes with those the broker adds, a record holds at most %d",
			mq.ErrIllegalMessage, n, record.MaxProperties)
	}
	m.Topic, m.QueueID, m.Properties = mq.TopicTransHalf, 0, props
	m.SysFlag &^= mq.SysTxMask
	return nil
}
