package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

func TestRestartKeepsMessagesAndOffsets(t *testing.T) {
	t.Parallel()
	if os.Getenv("E2E_NAMESRV") != "" {
		t.Skip("needs a server of its own")
	}
	n := start(t)
	topic := n.topic(3)
	p := n.producer()
	for i := range 60 {
		send(t, p, primitive.NewMessage(topic, []byte(fmt.Sprint("before ", i))))
	}
	b := newInbox()
	c := n.consume("g-"+topic, topic, "", b)
	b.wait(t, 60, 30*time.Second)
	b.quiet(t, 60, time.Second) // the client notes its progress some time after the listener returned
	if err := c.Shutdown(); err != nil {
		t.Fatal(err)
	}
	n.stop()
	n.up()
	var want []string
	for i := range 30 {
		body := fmt.Sprint("after ", i)
		want = append(want, body)
		for deadline := time.Now().Add(20 * time.Second); ; {
			m := primitive.NewMessage(topic, []byte(body))
			if r, err := p.SendSync(t.Context(), m); err == nil && r.Status == primitive.SendOK {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("no send succeeds after the restart")
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	again := newInbox()
	n.consume("g-"+topic, topic, "", again)
	exactlyOnce(t, again.wait(t, 30, 40*time.Second), want)
	again.quiet(t, 30, time.Second)
}

func TestConsumersLiveThroughARestart(t *testing.T) {
	t.Parallel()
	if os.Getenv("E2E_NAMESRV") != "" {
		t.Skip("needs a server of its own")
	}
	n := start(t)
	topic := n.topic(3)
	p := n.producer()
	b := newInbox()
	n.consume("g-"+topic, topic, "", b)
	send(t, p, primitive.NewMessage(topic, []byte("one")))
	b.wait(t, 1, 30*time.Second)
	n.stop()
	n.up()
	for deadline := time.Now().Add(20 * time.Second); ; {
		if r, err := p.SendSync(t.Context(), primitive.NewMessage(topic, []byte("two"))); err == nil && r.Status == primitive.SendOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no send succeeds after the restart")
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.wait(t, 2, 60*time.Second)
	if bodies(b.all())["two"] == 0 {
		t.Errorf("the running consumer did not get the message sent after the restart: %v", bodies(b.all()))
	}
}

func TestQueuesSpreadOverTwoBrokers(t *testing.T) {
	t.Parallel()
	if os.Getenv("E2E_NAMESRV") != "" {
		t.Skip("needs servers of its own")
	}
	a := start(t, "--set", "brokerName=broker-a")
	b2 := start(t, "--roles", "broker", "--namesrv", a.namesrv, "--set", "brokerName=broker-b")
	topic := "spread"
	a.makeTopic(topic, 3, a.broker, b2.broker)
	p := a.producer()
	b := newInbox()
	a.consume("g-"+topic, topic, "", b)
	var want []string
	brokers := map[string]int{}
	for i := range 60 {
		body := fmt.Sprint("m", i)
		want = append(want, body)
		r := send(t, p, primitive.NewMessage(topic, []byte(body)))
		brokers[r.MessageQueue.BrokerName]++
	}
	if len(brokers) != 2 {
		t.Errorf("messages went to %v, not to both brokers", brokers)
	}
	exactlyOnce(t, b.wait(t, 60, 60*time.Second), want)
	b.quiet(t, 60, time.Second)
}
