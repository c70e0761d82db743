package e2e

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

var levels = []time.Duration{time.Second, 5 * time.Second, 10 * time.Second}

func TestDelayLevelsAreExact(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(4)
	b := newInbox()
	n.consume("g-"+topic, topic, "", b)
	p := n.producer()
	send(t, p, primitive.NewMessage(topic, []byte("warm"))) // the consumer has its queues when this has come
	b.wait(t, 1, 30*time.Second)
	sent := map[string]time.Time{}
	want := []string{"warm"}
	due := map[string]time.Time{}
	for i := range 30 {
		level := i%3 + 1
		body := fmt.Sprint("level ", level, " number ", i)
		before := time.Now()
		send(t, p, primitive.NewMessage(topic, []byte(body)).WithDelayTimeLevel(level).WithTag("late"))
		sent[body], due[body] = before, before.Add(levels[level-1])
		want = append(want, body)
	}
	got := b.wait(t, 31, 30*time.Second)
	exactlyOnce(t, got, want)
	var worst time.Duration
	for _, m := range got {
		body := string(m.Body)
		if body == "warm" {
			continue
		}
		late := m.at.Sub(due[body])
		if late < -time.Millisecond { // store stamps are whole milliseconds
			t.Errorf("%s came %v early", body, -late)
		}
		worst = max(worst, late)
		if m.Topic != topic || m.GetTags() != "late" {
			t.Errorf("%s: topic %s, tags %s", body, m.Topic, m.GetTags())
		}
	}
	t.Logf("worst lateness, client and queueing included: %v", worst)
	b.quiet(t, 31, time.Second)
}

func TestFailedMessagesComeBackAndEndAsDeadLetters(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(2)
	group := "g-" + topic
	var tries atomic.Int32
	first := newInbox()
	n.listen(group, topic, "", func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		tries.Add(int32(len(ms)))
		first.add(0, ms...)
		return consumer.ConsumeRetryLater, nil
	}, consumer.WithMaxReconsumeTimes(1))
	p := n.producer()
	send(t, p, primitive.NewMessage(topic, []byte("poison")).WithTag("x").WithKeys([]string{"k1"}))
	got := first.wait(t, 2, 60*time.Second)
	if gap := got[1].at.Sub(got[0].at); gap < 9900*time.Millisecond || gap > 12*time.Second {
		t.Errorf("the first retry came %v after the first try; level 3 is 10 s", gap)
	}
	if got[1].ReconsumeTimes != 1 || got[1].Topic != topic {
		t.Errorf("retry: reconsume times %d, topic %s", got[1].ReconsumeTimes, got[1].Topic)
	}
	n.awaitRoute("%DLQ%" + group) // the broker makes it for the first dead letter
	dead := newInbox()
	n.consume("dlq-reader-"+group, "%DLQ%"+group, "", dead)
	d := dead.wait(t, 1, 60*time.Second)[0]
	if string(d.Body) != "poison" || d.GetTags() != "x" || d.GetKeys() != "k1" {
		t.Errorf("dead letter: %s", d)
	}
	if tries.Load() != 2 {
		t.Errorf("%d tries where 2 were allowed", tries.Load())
	}
}
