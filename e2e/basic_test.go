package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

func TestSendAndReceive(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(4)
	b := newInbox()
	n.consume("g-"+topic, topic, "", b)
	p := n.producer()

	var want []string
	for i := range 100 {
		body := fmt.Sprintf("message %d %s", i, strings.Repeat("ü", i*40))
		want = append(want, body)
		m := primitive.NewMessage(topic, []byte(body)).WithTag("T").WithKeys([]string{fmt.Sprint("key", i)})
		m.WithProperty("color", "rot")
		send(t, p, m)
	}
	got := b.wait(t, 100, 30*time.Second)
	exactlyOnce(t, got, want)
	for _, m := range got {
		if m.GetTags() != "T" || m.GetProperty("color") != "rot" || !strings.HasPrefix(m.GetKeys(), "key") {
			t.Errorf("properties changed on the way: %v", m.GetProperties())
		}
		if len(m.OffsetMsgId) != 32 {
			t.Errorf("offset message id %q", m.OffsetMsgId)
		}
	}
	b.quiet(t, 100, time.Second)
}

func TestTopicIsMadeBySending(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := fmt.Sprint("made-by-sending-", time.Now().UnixNano())
	p := n.producer()
	send(t, p, primitive.NewMessage(topic, []byte("first")))
	b := newInbox()
	n.consume("g-"+topic, topic, "", b)
	exactlyOnce(t, b.wait(t, 1, 40*time.Second), []string{"first"})
}

func TestTagsAreFiltered(t *testing.T) {
	t.Parallel()
	n := shared(t)
	if n.cmd == nil {
		t.Skip("RocketMQ does not find tags outside ASCII that the Go client asks for: its hash differs from Java's")
	}
	topic := n.topic(2)
	b := newInbox()
	n.consume("g-"+topic, topic, "red || 青", b)
	p := n.producer()
	var want []string
	for i := range 60 {
		tag := []string{"red", "green", "青", "", "BBBB"}[i%5]
		m := primitive.NewMessage(topic, []byte(fmt.Sprint(tag, i)))
		if tag != "" {
			m.WithTag(tag)
		}
		if tag == "red" || tag == "青" {
			want = append(want, fmt.Sprint(tag, i))
		}
		send(t, p, m)
	}
	exactlyOnce(t, b.wait(t, len(want), 30*time.Second), want)
	b.quiet(t, len(want), time.Second)
}

func TestBatchOneWayAndAsync(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(3)
	b := newInbox()
	n.consume("g-"+topic, topic, "", b)
	p := n.producer()
	var want []string
	var batch []*primitive.Message
	for i := range 20 {
		body := fmt.Sprint("batch ", i)
		want = append(want, body)
		batch = append(batch, primitive.NewMessage(topic, []byte(body)).WithTag("b"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := p.SendSync(ctx, batch...)
	if err != nil || r.Status != primitive.SendOK {
		t.Fatalf("batch: %v %v", r, err)
	}
	if ids := strings.Split(r.OffsetMsgID, ","); len(ids) != 20 {
		t.Errorf("%d offset message ids for a batch of 20: %s", len(ids), r.OffsetMsgID)
	}
	var wg sync.WaitGroup
	for i := range 30 {
		body := fmt.Sprint("async ", i)
		want = append(want, body)
		wg.Add(1)
		if err := p.SendAsync(ctx, func(_ context.Context, r *primitive.SendResult, err error) {
			defer wg.Done()
			if err != nil || r.Status != primitive.SendOK {
				t.Errorf("async: %v %v", r, err)
			}
		}, primitive.NewMessage(topic, []byte(body))); err != nil {
			t.Fatal(err)
		}
		body = fmt.Sprint("one way ", i)
		want = append(want, body)
		if err := p.SendOneWay(ctx, primitive.NewMessage(topic, []byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	exactlyOnce(t, b.wait(t, len(want), 30*time.Second), want)
	b.quiet(t, len(want), time.Second)
}

func TestOrderWithinAQueueIsKept(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(4)
	p := n.producer(producer.WithQueueSelector(producer.NewHashQueueSelector()))
	b := newInbox()
	n.consume("g-"+topic, topic, "", b, consumer.WithConsumerOrder(true))
	for i := range 200 {
		m := primitive.NewMessage(topic, []byte(fmt.Sprint(i))).WithShardingKey(fmt.Sprint("k", i%7))
		m.WithProperty("seq", fmt.Sprint(i))
		send(t, p, m)
	}
	last := map[string]int{}
	for _, m := range b.wait(t, 200, 40*time.Second) {
		var i int
		fmt.Sscan(m.GetProperty("seq"), &i)
		key := fmt.Sprint("k", i%7)
		if before, ok := last[key]; ok && before >= i {
			t.Errorf("key %s: %d after %d", key, i, before)
		}
		last[key] = i
	}
}

func TestThreeConsumersShareTheQueues(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(6)
	b := newInbox()
	group := "g-" + topic
	for who := range 3 {
		n.listen(group, topic, "", func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			b.add(who, ms...)
			return consumer.ConsumeSuccess, nil
		})
	}
	p := n.producer()
	// Queues are shared out by now or within the clients' next rebalance; send until all three have had some.
	var want []string
	sharers := func() int {
		seen := map[int]bool{}
		for _, m := range b.all() {
			seen[m.by] = true
		}
		return len(seen)
	}
	for deadline := time.Now().Add(50 * time.Second); sharers() < 3; {
		if time.Now().After(deadline) {
			t.Fatalf("only %d of 3 consumers have got messages", sharers())
		}
		for range 12 {
			body := fmt.Sprint("m", len(want))
			want = append(want, body)
			send(t, p, primitive.NewMessage(topic, []byte(body)))
		}
		b.wait(t, len(want), 30*time.Second)
	}
	// What came twice while queues changed hands was counted above in place of what
	// is still under way.
	for deadline := time.Now().Add(30 * time.Second); ; {
		got, missing := bodies(b.all()), []string(nil)
		for _, w := range want {
			if got[w] == 0 {
				missing = append(missing, w)
			}
		}
		if missing == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("missing: %v", missing)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestPullConsumerFindsItsPlace(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(1)
	p := n.producer()
	for i := range 50 {
		send(t, p, primitive.NewMessage(topic, []byte(fmt.Sprint(i))))
	}
	b := newInbox()
	c := n.consume("g-"+topic, topic, "", b)
	b.wait(t, 50, 30*time.Second)
	if err := c.Shutdown(); err != nil { // persists the offsets
		t.Fatal(err)
	}
	for i := 50; i < 60; i++ {
		send(t, p, primitive.NewMessage(topic, []byte(fmt.Sprint(i))))
	}
	again := newInbox()
	n.consume("g-"+topic, topic, "", again)
	got := again.wait(t, 10, 40*time.Second)
	again.quiet(t, 10, time.Second)
	seen := map[int64]bool{}
	for _, m := range got {
		seen[m.QueueOffset] = true
	}
	for offset := int64(50); offset < 60; offset++ {
		if !seen[offset] {
			t.Errorf("the second consumer did not get queue offset %d", offset)
		}
	}
}
