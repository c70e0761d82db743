package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// instances numbers clients: the Go client shares everything between clients of one instance name.
var instances = struct {
	sync.Mutex
	n int
}{}

func instance() string {
	instances.Lock()
	defer instances.Unlock()
	instances.n++
	return fmt.Sprintf("i%d", instances.n)
}

func (n *node) producer(opts ...producer.Option) rocketmq.Producer {
	n.t.Helper()
	opts = append([]producer.Option{producer.WithNsResolver(n.resolver()), producer.WithInstanceName(instance()),
		producer.WithGroupName("p-" + instance()), producer.WithRetry(1), producer.WithSendMsgTimeout(3 * time.Second)}, opts...)
	p, err := rocketmq.NewProducer(opts...)
	if err != nil {
		n.t.Fatalf("producer: %v", err)
	}
	if err := p.Start(); err != nil {
		n.t.Fatalf("start producer: %v", err)
	}
	n.t.Cleanup(func() { p.Shutdown() })
	return p
}

// send sends one message and fails the test unless it was stored.
func send(t *testing.T, p rocketmq.Producer, m *primitive.Message) *primitive.SendResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := p.SendSync(ctx, m)
	if err != nil {
		t.Fatalf("send to %s: %v", m.Topic, err)
	}
	if r.Status != primitive.SendOK {
		t.Fatalf("send to %s: status %v", m.Topic, r.Status)
	}
	return r
}

// inbox collects what push consumers were given.
type inbox struct {
	mu   sync.Mutex
	got  []received
	more chan struct{}
}

type received struct {
	*primitive.MessageExt
	at time.Time
	by int
}

func newInbox() *inbox { return &inbox{more: make(chan struct{}, 1)} }

func (b *inbox) add(by int, ms ...*primitive.MessageExt) {
	now := time.Now()
	b.mu.Lock()
	for _, m := range ms {
		b.got = append(b.got, received{m, now, by})
	}
	b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
}

func (b *inbox) all() []received {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// wait blocks until n messages are there.
func (b *inbox) wait(t *testing.T, n int, within time.Duration) []received {
	t.Helper()
	timeout := time.After(within)
	for {
		if got := b.all(); len(got) >= n {
			return got
		}
		select {
		case <-b.more:
		case <-timeout:
			t.Fatalf("%d of %d messages within %v", len(b.all()), n, within)
		}
	}
}

// quiet fails the test if more than n messages arrive within d.
func (b *inbox) quiet(t *testing.T, n int, d time.Duration) {
	t.Helper()
	timeout := time.After(d)
	for {
		if got := b.all(); len(got) > n {
			last := got[len(got)-1]
			t.Fatalf("%d messages where %d were sent; the last is %s from queue %d offset %d", len(got), n, last.Body, last.Queue.QueueId, last.QueueOffset)
		}
		select {
		case <-b.more:
		case <-timeout:
			return
		}
	}
}

// consume starts a push consumer that puts everything into b.
func (n *node) consume(group, topic, tags string, b *inbox, opts ...consumer.Option) rocketmq.PushConsumer {
	n.t.Helper()
	return n.listen(group, topic, tags, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		b.add(0, ms...)
		return consumer.ConsumeSuccess, nil
	}, opts...)
}

func (n *node) listen(group, topic, tags string, f func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error), opts ...consumer.Option) rocketmq.PushConsumer {
	n.t.Helper()
	opts = append([]consumer.Option{consumer.WithNsResolver(n.resolver()), consumer.WithInstance(instance()), consumer.WithGroupName(group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset)}, opts...)
	c, err := rocketmq.NewPushConsumer(opts...)
	if err != nil {
		n.t.Fatalf("consumer: %v", err)
	}
	selector := consumer.MessageSelector{}
	if tags != "" {
		selector = consumer.MessageSelector{Type: consumer.TAG, Expression: tags}
	}
	if err := c.Subscribe(topic, selector, f); err != nil {
		n.t.Fatalf("subscribe: %v", err)
	}
	if err := c.Start(); err != nil {
		n.t.Fatalf("start consumer: %v", err)
	}
	n.t.Cleanup(func() { c.Shutdown() })
	return c
}

// bodies counts messages by body.
func bodies(got []received) map[string]int {
	count := map[string]int{}
	for _, m := range got {
		count[string(m.Body)]++
	}
	return count
}

// exactlyOnce checks that each of want came once and nothing else.
func exactlyOnce(t *testing.T, got []received, want []string) {
	t.Helper()
	count := bodies(got)
	for _, w := range want {
		if count[w] != 1 {
			t.Errorf("%q came %d times", w, count[w])
		}
		delete(count, w)
	}
	for b, c := range count {
		t.Errorf("%q came %d times and was not sent", b, c)
	}
}
