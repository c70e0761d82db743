package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// Three consumers that read in order come and go while messages flow: nothing is
// lost, and of each key nothing is seen before what was sent before it.
func TestClientsComeAndGoWhileMessagesFlow(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(6)
	group := "g-" + topic
	const keys = 12
	var mu sync.Mutex
	next := map[int]int{} // by key, the sequence number that is to be seen next
	seen := 0
	listen := func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range ms {
			var key, seq int
			if _, err := fmt.Sscanf(string(m.Body), "%d %d", &key, &seq); err != nil {
				t.Errorf("body %q", m.Body)
			}
			switch {
			case seq > next[key]:
				t.Errorf("key %d: %d was seen before %d", key, seq, next[key])
				next[key] = seq + 1
			case seq == next[key]:
				next[key]++
				seen++
			} // else it comes again, because its reader left before it said how far it was
		}
		return consumer.ConsumeSuccess, nil
	}
	open := func() rocketmq.PushConsumer {
		c, err := rocketmq.NewPushConsumer(consumer.WithNsResolver(n.resolver()), consumer.WithInstance(instance()), consumer.WithGroupName(group),
			consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithConsumerOrder(true))
		if err == nil {
			err = c.Subscribe(topic, consumer.MessageSelector{}, listen)
		}
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	clients := []rocketmq.PushConsumer{open(), open(), open()}
	defer func() {
		for _, c := range clients {
			c.Shutdown()
		}
	}()

	ctx, cancel := context.WithCancel(t.Context())
	sent := make([]int, keys)
	var senders sync.WaitGroup
	for s := range 3 { // each has its own keys, so that their order is known
		p := n.producer(producer.WithQueueSelector(producer.NewHashQueueSelector()))
		senders.Go(func() {
			for ctx.Err() == nil {
				for key := s; key < keys; key += 3 {
					m := primitive.NewMessage(topic, []byte(fmt.Sprint(key, " ", sent[key]))).WithShardingKey(fmt.Sprint("key", key))
					send(t, p, m)
					sent[key]++
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	for range 6 {
		time.Sleep(time.Duration(500+rand.IntN(1500)) * time.Millisecond)
		i := rand.IntN(len(clients))
		clients[i].Shutdown()
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
		clients[i] = open()
	}
	cancel()
	senders.Wait()
	total := 0
	for _, n := range sent {
		total += n
	}
	// A queue whose reader left without a word is free when its lock has expired.
	eventually(t, 120*time.Second, fmt.Sprintf("all of %d messages", total), func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen >= total
	})
	t.Logf("%d messages, each seen, in order of their keys", total)
}
