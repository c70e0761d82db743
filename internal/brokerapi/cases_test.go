package brokerapi

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// await pulls from an offset until a message is there.
func (p *peer) await(group, topic string, from mq.QueueOffset) record.View {
	p.t.Helper()
	h := pullOf(group, topic, from)
	h.SysFlag |= mq.PullSuspend
	h.SuspendMillis = 15_000
	resp := p.pull(h)
	if resp.Code != 0 {
		p.t.Fatalf("pull: %d %s", resp.Code, resp.Remark)
	}
	return records(p.t, resp.Body)[0]
}

func (p *peer) runtime() map[string]string {
	p.t.Helper()
	return body[protocol.KVTable](p.t, p.ok(protocol.GetBrokerRuntimeInfo, nil, nil)).Table
}

// D01, D31: on defaults, delayed messages, with a level and timed, arrive once and
// are counted: pending, then among the messages put.
func TestD01DelayedMessagesArriveOnDefaults(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	p.ok(protocol.UpdateAndCreateTopic, &protocol.CreateTopicHeader{Topic: "D", DefaultTopic: "TBW102", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: "+message.type=DELAY"}, nil)
	sent := time.Now()
	p.sendOK("D", "in a second", "DELAY\x011\x02")
	p.sendOK("D", "timed", "TIMER_DELIVER_MS\x01"+fmt.Sprint(sent.Add(1700*time.Millisecond).UnixMilli())+"\x02")
	eventually(t, "two are pending", func() bool { return p.runtime()["delayPending"] == "2" })
	v := p.await("g", "D", 0)
	if string(v.Body()) != "in a second" || time.Since(sent) < time.Second {
		t.Errorf("got %s after %v", v.Body(), time.Since(sent))
	}
	v = p.await("g", "D", 1)
	if string(v.Body()) != "timed" || time.Since(sent) < 1700*time.Millisecond {
		t.Errorf("got %s after %v", v.Body(), time.Since(sent))
	}
	eventually(t, "nothing is pending and four are put", func() bool {
		got := p.runtime()
		return got["delayPending"] == "0" && got["putMessageTimesTotal"] == "4" && got["scheduleMessageOffset_1"] == "1,1"
	})
	if top := b.parts.Store.MaxOffset(mq.QueueKey{Topic: "D"}); top != 2 {
		t.Errorf("%d messages arrived", top)
	}
}

// D10, D11, D32: whatever delay a message asks for, it is never "now": what the
// broker cannot do is refused, each cause with its own code and text.
func TestD10NoDelayIsTakenForNow(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	microseconds := fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())
	codes := map[int32]bool{}
	for _, value := range []string{"9223372036854775807", "9223372036854776", "92233720368547758070", "-1", "soon", "", "1.5", microseconds} {
		for _, name := range []string{"TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS"} {
			resp := p.ask(message("T", "x", name+"\x01"+value+"\x02"))
			if value == "" {
				continue // no value is no property
			}
			if resp.Code == 0 || !strings.Contains(resp.Remark, name) || strings.Contains(resp.Remark, "disk") {
				t.Errorf("%s=%s: %d %q", name, value, resp.Code, resp.Remark)
			}
			codes[resp.Code] = true
		}
	}
	if len(codes) != 1 {
		t.Errorf("one cause, and %d codes: %v", len(codes), codes)
	}
	before := b.parts.Store.MaxOffset(mq.QueueKey{Topic: "T"})
	for _, level := range []string{"soon", "1.5", "99999999999999999999", "0x3"} {
		if resp := p.ask(message("T", "x", "DELAY\x01"+level+"\x02")); resp.Code != int32(protocol.MessageIllegal) || !strings.Contains(resp.Remark, level) {
			t.Errorf("level %s: %d %q", level, resp.Code, resp.Remark)
		}
	}
	p.sendOK("T", "x", "DELAY\x012147483647\x02") // above the last is the last
	if got := p.runtime(); got["delayPending_18"] != "1" {
		t.Errorf("level 18 has %s pending", got["delayPending_18"])
	}
	if after := b.parts.Store.MaxOffset(mq.QueueKey{Topic: "T"}); after != before {
		t.Errorf("%d messages came at once", after-before)
	}
}

// D25: a DELAY topic takes delay levels; and so does any other, as in RocketMQ.
func TestD25DelayTopicsTakeDelayLevels(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	for i, kind := range []string{"DELAY", "NORMAL", "UNSPECIFIED"} {
		h := &protocol.CreateTopicHeader{Topic: kind + "Topic", DefaultTopic: "TBW102", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: "+message.type=" + kind}
		p.ok(protocol.UpdateAndCreateTopic, h, nil)
		p.sendOK(h.Topic, "x", "DELAY\x0118\x02")
		if got := p.runtime(); got["delayPending_18"] != fmt.Sprint(i+1) {
			t.Errorf("%s: %s pending", kind, got["delayPending_18"])
		}
	}
}

// D28: the level table is not cut while the broker runs: settings cannot be
// changed then, and the answer says so.
func TestD28LevelTableIsNotChangedWhileRunning(t *testing.T) {
	t.Parallel()
	const table = "1s 5s 10s"
	p := newBench(t, options{api: func(c *Config) { c.Properties = [][2]string{{"messageDelayLevel", table}} }}).connect()
	resp := p.do(25, nil, []byte("messageDelayLevel=2s 4s 8s\n"))
	if resp.Code != int32(protocol.RequestCodeNotSupported) || !strings.Contains(resp.Remark, "messageDelayLevel needs a restart") {
		t.Errorf("answered %d %q", resp.Code, resp.Remark)
	}
	if got := string(p.ok(protocol.GetBrokerConfig, nil, nil).Body); got != "messageDelayLevel="+table+"\n" {
		t.Errorf("the table reads %q", got)
	}
}

// A01: a group that never had a retry topic can be looked at.
func TestA01GroupsWithoutRetryTopicCanBeLookedAt(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	p.sendOK("T", "x", "")
	p.ok(protocol.UpdateAndCreateSubscriptionGroup, nil, []byte(`{"groupName":"g"}`))
	p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 0}, nil)
	if b.parts.Topics.Get("%RETRY%g") != nil {
		t.Fatal("there is a retry topic")
	}
	for _, topic := range []string{"", "T"} {
		got := body[protocol.ConsumeStats](t, p.ok(protocol.GetConsumeStats, &protocol.ConsumeStatsHeader{ConsumerGroup: "g", Topic: topic}, nil))
		if q := got.Queues[protocol.MessageQueue{BrokerName: "broker-a", Topic: "T"}]; q.Broker != 1 || q.Consumer != 0 {
			t.Errorf("progress %+v", got)
		}
	}
	if resp := p.do(protocol.GetConsumerConnectionList, &protocol.ConsumerGroupHeader{ConsumerGroup: "g"}, nil); resp.Code != int32(protocol.ConsumerNotOnline) {
		t.Errorf("connections: %d %q", resp.Code, resp.Remark)
	}
	p.ok(protocol.QueryTopicsByConsumer, &protocol.GroupHeader{Group: "g"}, nil)
	p.ok(protocol.GetBrokerConsumeStats, &protocol.BrokerConsumeStatsHeader{}, nil)
}

// A04: a topic's type is taken, changed, removed and shown; a bad one is named.
func TestA04TopicTypes(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	set := func(attributes string) *remoting.Command {
		return p.do(protocol.UpdateAndCreateTopic, &protocol.CreateTopicHeader{Topic: "T", DefaultTopic: "TBW102", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: attributes}, nil)
	}
	shown := func() string {
		return body[mq.TopicConfig](t, p.ok(protocol.GetTopicConfig, &protocol.TopicHeader{Topic: "T"}, nil)).Attributes["message.type"]
	}
	for _, step := range []struct{ set, want string }{{"+message.type=DELAY", "DELAY"}, {"+message.type=NORMAL", "NORMAL"}, {"+message.type=DELAY", "DELAY"}} {
		if resp := set(step.set); resp.Code != 0 || shown() != step.want {
			t.Errorf("%s: %d %q, shown %q", step.set, resp.Code, resp.Remark, shown())
		}
	}
	if resp := set("+message.type=LATER"); resp.Code == 0 || !strings.Contains(resp.Remark, "LATER") || !strings.Contains(resp.Remark, "message.type") || shown() != "DELAY" {
		t.Errorf("a type that is none: %d %q, shown %q", resp.Code, resp.Remark, shown())
	}
}

// G13: names with a namespace before them (instance%topic) are ordinary names:
// for topics, groups, retries, dead letters, traces and delays.
func TestG13NamesWithANamespace(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	const topic, group = "MQ_INST_1%Orders", "MQ_INST_1%g"
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", group, topic, "%RETRY%"+group))
	sent := p.sendOK(topic, "now", "")
	p.sendOK(topic, "later", "DELAY\x011\x02")
	p.sendOK("MQ_INST_1%RMQ_SYS_TRACE_TOPIC", "trace", "")
	for i, want := range []string{"now", "later"} {
		if v := p.await(group, topic, mq.QueueOffset(i)); string(v.Body()) != want || string(v.Topic()) != topic {
			t.Errorf("got %s of %s, want %s", v.Body(), v.Topic(), want)
		}
	}
	back := func(from mq.QueueOffset, level int32) {
		t.Helper()
		at := int64(p.await(group, topic, from).LogOffset())
		p.ok(protocol.ConsumerSendMsgBack, &protocol.SendBackHeader{Offset: at, Group: group, DelayLevel: level, MaxReconsumeTimes: new(int32(16)), OriginTopic: topic, OriginMsgID: sent.MsgID}, nil)
	}
	back(0, 1)
	if v := p.await(group, "%RETRY%"+group, 0); string(v.Body()) != "now" || v.ReconsumeTimes() != 1 {
		t.Errorf("retry: %s, %d", v.Body(), v.ReconsumeTimes())
	}
	back(1, -1)
	if v := p.await(group, "%DLQ%"+group, 0); string(v.Body()) != "later" {
		t.Errorf("dead letter: %s", v.Body())
	}
	list := body[protocol.ConsumerList](t, p.ok(protocol.GetConsumerListByGroup, &protocol.ConsumerGroupHeader{ConsumerGroup: group}, nil))
	if len(list.IDs) != 1 {
		t.Errorf("members %v", list.IDs)
	}
}

// G10, S22: clients that come and go by the hundred, and connections that say
// nothing or half a word, leave nothing behind.
func TestG10ClientsThatComeAndGoLeaveNothing(t *testing.T) {
	b := newBench(t, options{})
	p := b.connect()
	p.sendOK("T", "x", "")
	p.ok(protocol.HeartBeat, nil, heartbeat("stays", "g", "T"))
	go func() {
		for { // what the group is told of its members
			select {
			case <-p.asked:
			case <-t.Context().Done():
				return
			}
		}
	}()
	before := runtime.NumGoroutine()
	for i := range 500 {
		c := b.connect()
		switch i % 4 {
		case 0: // a probe
		case 1:
			if _, err := c.nc.Write([]byte{0, 0}); err != nil {
				t.Fatal(err)
			}
		default:
			c.ok(protocol.HeartBeat, nil, heartbeat(fmt.Sprint("c@", i), "g", "T"))
			c.ok(protocol.LockBatchMQ, nil, protocol.EncodeBody(&protocol.LockRequest{ClientID: fmt.Sprint("c@", i), Group: "g", Queues: []protocol.MessageQueue{{BrokerName: "broker-a", Topic: "T"}}}))
			h := pullOf("g", "T", 1)
			h.SysFlag |= mq.PullSuspend
			h.SuspendMillis = 15_000
			c.send(&remoting.Command{Code: int32(protocol.PullMessage), Fields: h.Encode()})
		}
		if i%4 == 3 {
			c.send(&remoting.Command{Code: int32(protocol.UnregisterClient), Fields: protocol.EncodeFields(&protocol.UnregisterClientHeader{ClientID: fmt.Sprint("c@", i), ConsumerGroup: "g", ProducerGroup: "pg"})})
		}
		c.nc.Close()
	}
	eventually(t, "only the one that stays is left", func() bool {
		conns, consumers, producers := b.parts.Clients.Count()
		return b.parts.Fetch.Parked() == 0 && conns == 1 && consumers == 1 && producers == 1 && !b.parts.Clients.Locked("g", time.Now())
	})
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+5 })
}
