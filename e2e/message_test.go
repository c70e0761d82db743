package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// What a producer compresses, and what is too noisy for it, comes back as it was,
// and an operator sees it as it was.
func TestLargeAndCompressedBodies(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(1)
	b := newInbox()
	n.consume("g-"+topic, topic, "", b)
	p := n.producer(producer.WithSendMsgTimeout(20 * time.Second))
	noise := make([]byte, 3<<20)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	sent := [][]byte{
		[]byte(strings.Repeat("the same again and again ", 40_000)), noise, bytes.Repeat([]byte{'x'}, 4095), bytes.Repeat([]byte{'y'}, 4096), {0xff}, []byte("small"),
	}
	ids := make([]string, len(sent))
	for i, body := range sent {
		ids[i] = send(t, p, primitive.NewMessage(topic, body).WithKeys([]string{fmt.Sprint("k", i)})).OffsetMsgID
	}
	got := b.wait(t, len(sent), 90*time.Second)
	for _, m := range got {
		var i int
		fmt.Sscanf(m.GetKeys(), "k%d", &i)
		if !bytes.Equal(m.Body, sent[i]) {
			t.Errorf("body %d of %d bytes came as %d bytes", i, len(sent[i]), len(m.Body))
		}
	}
	for i, id := range ids {
		if body := n.admin("message", "get", id, "--body"); !bytes.Equal(body, sent[i]) {
			t.Errorf("admin shows body %d of %d bytes as %d bytes", i, len(sent[i]), len(body))
		}
	}
	var first message
	n.adminJSON(&first, "message", "get", ids[0])
	if first.Compressed != "zlib" || first.Size >= len(sent[0])/10 {
		t.Errorf("the first body is stored as %d bytes, compressed %q", first.Size, first.Compressed)
	}
}

func TestRequestAndReply(t *testing.T) {
	t.Parallel()
	n := shared(t)
	topic := n.topic(2)
	asker, answerer := n.producer(), n.producer()
	n.listen("g-"+topic, topic, "", func(ctx context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range ms {
			reply, err := consumer.CreateReplyMessage(m, nil)
			if err != nil {
				t.Errorf("make a reply: %v", err)
				continue
			}
			reply.Body = append([]byte("reply to "), m.Body...)
			// A request that nobody waits for any more is refused.
			if _, err := answerer.SendSync(ctx, reply); err != nil {
				t.Logf("reply: %v", err)
			}
		}
		return consumer.ConsumeSuccess, nil
	})
	// The broker knows the asker only from its next heartbeat on.
	eventually(t, 90*time.Second, "a reply", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r, err := asker.Request(ctx, 4*time.Second, primitive.NewMessage(topic, []byte("first")))
		return err == nil && string(r.Body) == "reply to first"
	})
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		question := fmt.Sprint("question ", i)
		r, err := asker.Request(ctx, 20*time.Second, primitive.NewMessage(topic, []byte(question)))
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		if string(r.Body) != "reply to "+question {
			t.Errorf("%s was answered with %q", question, r.Body)
		}
	}
}

// What clients trace is found by an operator: the send and its consumption.
func TestTrace(t *testing.T) {
	t.Parallel()
	n := start(t, "--set", "traceTopicEnable=true")
	topic := n.topic(1)
	trace := func() *primitive.TraceConfig {
		return &primitive.TraceConfig{Access: primitive.Local, Resolver: n.resolver(), TraceTopic: "RMQ_SYS_TRACE_TOPIC", GroupName: "trace-" + instance()}
	}
	b := newInbox()
	n.consume("g-"+topic, topic, "", b, consumer.WithTrace(trace()))
	p := n.producer(producer.WithTrace(trace()))
	sent := send(t, p, primitive.NewMessage(topic, []byte("traced")).WithKeys([]string{"order-1"}))
	b.wait(t, 1, 60*time.Second)
	var events []struct {
		Event, ID, Topic, Keys, Group string
		Success                       bool
	}
	eventually(t, 60*time.Second, "traces of send and consumption", func() bool {
		if _, err := n.tryAdmin("message", "trace", sent.MsgID); err != nil {
			return false
		}
		events = nil
		n.adminJSON(&events, "message", "trace", sent.MsgID)
		seen := map[string]bool{}
		for _, e := range events {
			seen[e.Event] = e.Success
		}
		return seen["send"] && seen["consumed"]
	})
	for _, e := range events {
		if e.Event == "send" && (e.Topic != topic || e.Keys != "order-1" || e.ID != sent.MsgID) {
			t.Errorf("the send was traced as %+v", e)
		}
	}
	n.admin("message", "trace", "order-1")
}
