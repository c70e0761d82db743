package redeliver

import (
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// X18: a client that gives back the offset of a pending record gets no copy with the
// bookkeeping of that record, which would decide when and whether it is delivered.
func TestX18PendingRecordsGivenBack(t *testing.T) {
	t.Parallel()
	own := []string{
		mq.PropReceipt, mq.PropDue, mq.PropRecalled, mq.PropTxClient, mq.PropTxDue, mq.PropTimerDeleteKey, mq.PropTimerOutMs,
		mq.PropTimerRollTimes, mq.PropRealTopic, mq.PropRealQueueID, mq.PropDelayMillis,
	}
	var block []byte
	for _, name := range own {
		block = record.AppendProperty(block, name, "4711")
	}
	block = record.AppendProperty(block, "KEYS", "k")
	b := newBench(t)
	for i, topic := range []string{mq.TopicTimer, mq.TopicSchedule, mq.TopicTransHalf} {
		at := b.put(record.Message{Topic: topic, Body: []byte(topic), Properties: block})
		if err := b.SendBack(&Request{Group: "g", Offset: at, DelayLevel: -1, MaxReconsume: 16}); err != nil {
			t.Fatal(err)
		}
		m, n := b.last("%DLQ%g", 0)
		if n != i+1 || string(m.Body) != topic || property(m, "KEYS") != "k" {
			t.Fatalf("%s: %d dead letters, the last is %+v", topic, n, m)
		}
		for _, name := range own {
			if value := property(m, name); value != "" {
				t.Errorf("%s: %s=%s is kept", topic, name, value)
			}
		}
	}
}
