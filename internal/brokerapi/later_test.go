package brokerapi

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// Items of a batch come each at its own time.
func TestItemsOfABatchComeAtTheirTimes(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	start := time.Now()
	var items []byte
	for _, it := range [][2]string{
		{"second", fmt.Sprintf("TIMER_DELIVER_MS\x01%d\x02", start.Add(600*time.Millisecond).UnixMilli())},
		{"now", ""},
		{"third", "DELAY\x011\x02"},
		{"first", "TIMER_DELAY_MS\x01300\x02"},
	} {
		text, props := it[0], it[1]
		items = binary.BigEndian.AppendUint32(items, uint32(22+len(text)+len(props)))
		items = append(items, make([]byte, 12)...)
		items = binary.BigEndian.AppendUint32(items, uint32(len(text)))
		items = append(items, text...)
		items = binary.BigEndian.AppendUint16(items, uint16(len(props)))
		items = append(items, props...)
	}
	m := message("T", string(items), "")
	m.Code = int32(protocol.SendBatchMessage)
	m.Set("m", "true")
	resp := p.ask(m)
	var sent protocol.SendResponse
	if err := protocol.DecodeSendResponse(resp, &sent); err != nil || resp.Code != 0 || strings.Count(sent.MsgID, ",") != 3 || sent.QueueID != 0 {
		t.Fatalf("batch: %d %q %+v %v", resp.Code, resp.Remark, sent, err)
	}
	for i, want := range []struct {
		body  string
		after time.Duration
	}{{"now", 0}, {"first", 300 * time.Millisecond}, {"second", 600 * time.Millisecond}, {"third", time.Second}} {
		if v := p.await("g", "T", mq.QueueOffset(i)); string(v.Body()) != want.body || v.StoreTime() < start.Add(want.after).UnixMilli() {
			t.Errorf("message %d is %q, stored %d ms after the send", i, v.Body(), v.StoreTime()-start.UnixMilli())
		}
	}
}

// What a consumer gives back comes after the pause of the group's plan, and the plan
// can be read.
func TestRetriesByTheGroupsPlan(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.ok(protocol.UpdateAndCreateSubscriptionGroup, nil, []byte(`{"groupName":"g","retryMaxTimes":3,"retryQueueNums":1,"attributes":{"+retry.jitter.percent":"0"},
		"groupRetryPolicy":{"type":"EXPONENTIAL","exponentialRetryPolicy":{"initial":170,"max":400,"multiplier":2}}}`))
	g := body[mq.GroupConfig](t, p.ok(protocol.GetSubscriptionGroupConfig, &protocol.GroupHeader{Group: "g"}, nil))
	if g.RetryPolicy == nil || g.RetryPolicy.Exponential == nil || g.RetryPolicy.Exponential.Initial != 170 || g.Attributes["retry.jitter.percent"] != "0" {
		t.Fatalf("the group is %+v", g)
	}
	sent := p.sendOK("T", "x", "")
	topic, from := "T", mq.QueueOffset(0)
	for i, pause := range []int64{170, 340, 400} {
		v := p.await("g", topic, from)
		before := time.Now().UnixMilli()
		p.ok(protocol.ConsumerSendMsgBack, &protocol.SendBackHeader{Offset: int64(v.LogOffset()), Group: "g", OriginTopic: "T", OriginMsgID: sent.MsgID}, nil)
		topic, from = mq.RetryTopic("g"), mq.QueueOffset(i)
		v = p.await("g", topic, from)
		origin, _ := v.Property(mq.PropOriginMessageID)
		if v.StoreTime() < before+pause || v.ReconsumeTimes() != int32(i+1) || string(origin) != sent.MsgID {
			t.Errorf("retry %d came after %d ms, want %d; %q", v.ReconsumeTimes(), v.StoreTime()-before, pause, v.Properties())
		}
	}
}

// A topic is given a jitter and a rate, and its delayed messages keep to them.
func TestRateOfATopicOverTheWire(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	create := &protocol.CreateTopicHeader{Topic: "T", DefaultTopic: "TBW102", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: "+delay.rate=20000000000"}
	if resp := p.do(protocol.UpdateAndCreateTopic, create, nil); resp.Code == 0 || !strings.Contains(resp.Remark, "delay.rate") {
		t.Errorf("a rate beyond the limit: %d %q", resp.Code, resp.Remark)
	}
	create.Attributes = "+delay.rate=20,+delay.jitter.ms=10"
	p.ok(protocol.UpdateAndCreateTopic, create, nil)
	for i := range 12 {
		p.sendOK("T", fmt.Sprint(i), "TIMER_DELAY_MS\x01300\x02")
	}
	first := int64(0)
	for i := range mq.QueueOffset(12) {
		v := p.await("g", "T", i)
		if i == 0 {
			first = v.StoreTime()
		}
		if i == 11 && v.StoreTime() < first+450 {
			t.Errorf("twelve messages at 20 a second took %d ms", v.StoreTime()-first)
		}
	}
}
