package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

func TestBroadcastReachesEveryConsumer(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(3)
	group := "g-" + topic
	boxes := []*inbox{newInbox(), newInbox()}
	for _, b := range boxes {
		n.consume(group, topic, "", b, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	t.Cleanup(func() { // where the client keeps the progress of a broadcast
		dirs, _ := filepath.Glob(filepath.Join(os.Getenv("HOME"), ".rocketmq_client_go", "*", group))
		for _, d := range dirs {
			os.RemoveAll(filepath.Dir(d))
		}
	})
	p := n.producer()
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprint("m", i))
		send(t, p, primitive.NewMessage(topic, []byte(want[i])))
	}
	for _, b := range boxes {
		exactlyOnce(t, b.wait(t, len(want), 60*time.Second), want)
	}
}

// A message that fails again and again is retried as often as allowed, with its
// keys and properties, becomes a dead letter, and is put back by an operator.
func TestRetriesEndAsDeadLettersAndComeBack(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(1)
	group := "g-" + topic
	b := newInbox()
	var good atomic.Bool
	n.listen(group, topic, "", func(ctx context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		b.add(0, ms...)
		if string(ms[0].Body) == "bad" && !good.Load() {
			c, _ := primitive.GetConcurrentlyCtx(ctx)
			c.DelayLevelWhenNextConsume = 1
			return consumer.ConsumeRetryLater, nil
		}
		return consumer.ConsumeSuccess, nil
	}, consumer.WithMaxReconsumeTimes(2))
	p := n.producer()
	m := primitive.NewMessage(topic, []byte("bad")).WithTag("t").WithKeys([]string{"k1"})
	m.WithProperty("color", "rot")
	send(t, p, m)
	send(t, p, primitive.NewMessage(topic, []byte("fine")))
	type letter struct {
		message
		OriginTopic string `json:"originTopic"`
		Attempts    int    `json:"attempts"`
		Reason      string `json:"reason"`
	}
	var letters []letter
	eventually(t, 90*time.Second, "a dead letter", func() bool {
		_, err := n.tryAdmin("dlq", "show", group)
		return err == nil
	})
	n.adminJSON(&letters, "dlq", "show", group)
	if len(letters) != 1 || letters[0].Body != "bad" || letters[0].OriginTopic != topic || letters[0].Attempts != 3 || letters[0].Properties["color"] != "rot" {
		t.Fatalf("dead letters: %+v", letters)
	}
	tries := 0
	for _, m := range b.all() {
		if string(m.Body) != "bad" {
			continue
		}
		if m.Topic != topic || m.GetKeys() != "k1" || int(m.ReconsumeTimes) != tries {
			t.Errorf("try %d: topic %s, keys %s, reconsumed %d times", tries, m.Topic, m.GetKeys(), m.ReconsumeTimes)
		}
		tries++
	}
	if tries != 3 {
		t.Errorf("it was tried %d times, 1 and 2 retries are allowed", tries)
	}
	good.Store(true)
	before := len(b.all())
	for range 2 { // the second time changes nothing
		n.admin("dlq", "redrive", group, "--all")
	}
	got := b.wait(t, before+1, 60*time.Second)
	if last := got[len(got)-1]; string(last.Body) != "bad" || last.ReconsumeTimes != 0 || last.GetProperty("REPLAY_OF") != letters[0].ID {
		t.Errorf("put back: %s, reconsumed %d, of %s", last.Body, last.ReconsumeTimes, last.GetProperty("REPLAY_OF"))
	}
	b.quiet(t, before+1, 2*time.Second)
}

func TestSQL92Filters(t *testing.T) {
	t.Parallel()
	n := start(t, "--set", "enablePropertyFilter=true")
	topic := n.topic(2)
	b := newInbox()
	opts := []consumer.Option{consumer.WithNsResolver(n.resolver()), consumer.WithInstance(instance()), consumer.WithGroupName("g-" + topic),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset)}
	c, err := rocketmq.NewPushConsumer(opts...)
	if err != nil {
		t.Fatal(err)
	}
	const expression = "price BETWEEN 10 AND 20 AND (color = 'red' OR TAGS = 'sale') AND weight IS NOT NULL"
	if err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.SQL92, Expression: expression}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		b.add(0, ms...)
		return consumer.ConsumeSuccess, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Shutdown() })
	p := n.producer()
	var want []string
	for i := range 120 {
		m := primitive.NewMessage(topic, []byte(fmt.Sprint("m", i)))
		m.WithProperty("price", fmt.Sprint(i%40))
		color, sale, weight := i%3 == 0, i%5 == 0, i%7 != 0
		if color {
			m.WithProperty("color", "red")
		}
		if sale {
			m.WithTag("sale")
		}
		if weight {
			m.WithProperty("weight", "1.5")
		}
		if price := i % 40; price >= 10 && price <= 20 && (color || sale) && weight {
			want = append(want, fmt.Sprint("m", i))
		}
		send(t, p, m)
	}
	exactlyOnce(t, b.wait(t, len(want), 60*time.Second), want)
	b.quiet(t, len(want), time.Second)
}

// An operator sends a running group back, to the beginning and to a time, and it
// goes on from there.
func TestResetWhileRunning(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(2)
	group := "g-" + topic
	b := newInbox()
	n.consume(group, topic, "", b)
	p := n.producer()
	var first, second []string
	for i := range 20 {
		first = append(first, fmt.Sprint("first ", i))
		send(t, p, primitive.NewMessage(topic, []byte(first[i])))
	}
	b.wait(t, 20, 60*time.Second)
	time.Sleep(50 * time.Millisecond)
	between := time.Now().UnixMilli()
	time.Sleep(50 * time.Millisecond)
	for i := range 10 {
		second = append(second, fmt.Sprint("second ", i))
		send(t, p, primitive.NewMessage(topic, []byte(second[i])))
	}
	b.wait(t, 30, 60*time.Second)
	again := func(times map[string]int) func() bool {
		return func() bool {
			count := bodies(b.all())
			for body, n := range times {
				if count[body] < n {
					return false
				}
			}
			return true
		}
	}
	expect := map[string]int{}
	for _, body := range first {
		expect[body] = 2
	}
	for _, body := range second {
		expect[body] = 2
	}
	n.admin("group", "reset", group, topic, "--to", "earliest", "--yes")
	eventually(t, 90*time.Second, "everything again", again(expect))
	for _, body := range second {
		expect[body] = 3
	}
	n.admin("group", "reset", group, topic, "--to", fmt.Sprint(between), "--yes")
	eventually(t, 90*time.Second, "the second half once more", again(expect))
	count := bodies(b.all())
	for _, body := range first {
		if count[body] > 2 {
			t.Errorf("%s came %d times: it lies before the time", body, count[body])
		}
	}
}

// A pull consumer reads by queue and offset, one that polls gets its share, and
// acknowledgements are progress.
func TestPullConsumers(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(2)
	group := "g-" + topic
	p := n.producer()
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprint("m", i))
		send(t, p, primitive.NewMessage(topic, []byte(want[i])))
	}
	newConsumer := func(group string) rocketmq.PullConsumer {
		c, err := rocketmq.NewPullConsumer(consumer.WithNsResolver(n.resolver()), consumer.WithInstance(instance()), consumer.WithGroupName(group),
			consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithMaxReconsumeTimes(2))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}); err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := newConsumer(group + "-from")
	queues, err := c.GetTopicRouteInfo(topic)
	if err != nil || len(queues) != 2 {
		t.Fatalf("queues: %v, %v", queues, err)
	}
	read := map[string]int{}
	for _, q := range queues {
		for at := int64(0); ; {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			r, err := c.PullFrom(ctx, q, at, 7)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != primitive.PullFound {
				break
			}
			for _, m := range r.GetMessageExts() {
				read[string(m.Body)]++
			}
			at = r.NextBeginOffset
			if at >= r.MaxOffset {
				break
			}
		}
	}
	for _, w := range want {
		if read[w] != 1 {
			t.Errorf("%s was pulled %d times", w, read[w])
		}
	}
	c.Shutdown()

	b := newInbox()
	poller := newConsumer(group)
	eventually(t, 60*time.Second, "everything polled", func() bool {
		cr, err := poller.Poll(t.Context(), time.Second)
		if err != nil {
			if !consumer.IsNoNewMsgError(err) {
				t.Fatal(err)
			}
			return len(b.all()) >= len(want)
		}
		b.add(0, cr.GetMsgList()...)
		poller.ACK(t.Context(), cr, consumer.ConsumeSuccess)
		return len(b.all()) >= len(want)
	})
	exactlyOnce(t, b.all(), want)
	if err := poller.PersistOffset(t.Context(), topic); err != nil {
		t.Error(err)
	}
	poller.Shutdown()
	eventually(t, 30*time.Second, "progress of what was acknowledged", func() bool {
		var queues []struct {
			Topic string
			Lag   int64
		}
		n.adminJSON(&queues, "group", "progress", group, "--topic", topic)
		lag := int64(0)
		for _, q := range queues {
			lag += q.Lag
		}
		return len(queues) == 2 && lag == 0
	})
}
