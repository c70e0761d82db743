package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// TestMixedCluster uses a topic on a Sundial and on a RocketMQ broker; compat/mixed/run starts them, and names two name
// servers, one of each kind.
func TestMixedCluster(t *testing.T) {
	names, topic := os.Getenv("MIXED_NAMESRV"), os.Getenv("MIXED_TOPIC")
	if names == "" {
		t.Skip("MIXED_NAMESRV names no cluster: compat/mixed/run does")
	}
	resolver := primitive.NewPassthroughResolver(strings.Split(names, ";"))
	n := &node{t: t, namesrv: strings.Split(names, ";")[0]}
	b := newInbox()
	n.consume("g-"+topic, topic, "", b, consumer.WithNsResolver(resolver))
	p := n.producer(producer.WithNsResolver(resolver))
	brokers := map[string]int{}
	var want []string
	for i := range 200 {
		body := fmt.Sprint("m", i)
		want = append(want, body)
		brokers[send(t, p, primitive.NewMessage(topic, []byte(body))).MessageQueue.BrokerName]++
	}
	if len(brokers) != 2 {
		t.Errorf("messages went to %v, not to both brokers", brokers)
	}
	exactlyOnce(t, b.wait(t, len(want), 60*time.Second), want)
}
