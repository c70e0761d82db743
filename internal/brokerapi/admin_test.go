package brokerapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

func TestTopicsComeChangeAndGo(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	create := &protocol.CreateTopicHeader{Topic: "T", DefaultTopic: "TBW102", ReadQueues: 3, WriteQueues: 2, Perm: 6, Filter: "SINGLE_TAG", Attributes: "+message.type=DELAY"}
	p.ok(protocol.UpdateAndCreateTopic, create, nil)
	c := body[mq.TopicConfig](t, p.ok(protocol.GetTopicConfig, &protocol.TopicHeader{Topic: "T"}, nil))
	if c.ReadQueues != 3 || c.WriteQueues != 2 || c.Perm != 6 || c.Attributes["message.type"] != "DELAY" {
		t.Errorf("made %+v", c)
	}
	p.sendOK("T", "x", "")
	p.pull(pullOf("g", "T", 0))
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 1}, nil)

	stats := body[protocol.TopicStats](t, p.ok(protocol.GetTopicStatsInfo, &protocol.TopicHeader{Topic: "T"}, nil))
	q0 := stats.Queues[protocol.MessageQueue{BrokerName: "broker-a", QueueID: 0, Topic: "T"}]
	if len(stats.Queues) != 3 || q0.Max != 1 || q0.Min != 0 || q0.LastUpdate == 0 {
		t.Errorf("stats %+v", stats)
	}
	progress := body[protocol.ConsumeStats](t, p.ok(protocol.GetConsumeStats, &protocol.ConsumeStatsHeader{ConsumerGroup: "g"}, nil))
	c0 := progress.Queues[protocol.MessageQueue{BrokerName: "broker-a", QueueID: 0, Topic: "T"}]
	if c0.Broker != 1 || c0.Consumer != 1 || c0.Pull != 1 || c0.LastTime == 0 {
		t.Errorf("progress %+v", progress)
	}
	topics := body[protocol.TopicList](t, p.ok(protocol.QueryTopicsByConsumer, &protocol.GroupHeader{Group: "g"}, nil))
	if !slices.Equal(topics.Topics, []string{"T"}) {
		t.Errorf("topics of the group: %v", topics.Topics)
	}
	offsets := body[protocol.ConsumerOffsets](t, p.ok(protocol.GetAllConsumerOffset, nil, nil))
	if offsets.Offsets["T@g"][0] != 1 || !slices.Equal(offsets.GroupTopics["g"], []string{"T"}) {
		t.Errorf("all offsets %+v", offsets)
	}

	p.ok(protocol.DeleteTopicInBroker, &protocol.TopicHeader{Topic: "T"}, nil)
	if resp := p.do(protocol.GetTopicConfig, &protocol.TopicHeader{Topic: "T"}, nil); resp.Code != int32(protocol.TopicNotExist) {
		t.Errorf("a deleted topic: %d %q", resp.Code, resp.Remark)
	}
	// A topic of the same name begins anew.
	p.ok(protocol.UpdateAndCreateTopic, create, nil)
	if off := fields[protocol.OffsetResponse](t, p.ok(protocol.GetMaxOffset, &protocol.QueueHeader{Topic: "T"}, nil)).Offset; off != 0 {
		t.Errorf("the new topic begins at %d", off)
	}
	q := &protocol.QueryConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", SetZeroIfNotFound: new(false)}
	if resp := p.do(protocol.QueryConsumerOffset, q, nil); resp.Code != int32(protocol.QueryNotFound) {
		t.Errorf("progress of the old topic counts for the new one: %d", resp.Code)
	}
}

func TestTopicsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	good := protocol.CreateTopicHeader{Topic: "T", ReadQueues: 1, WriteQueues: 1, Perm: 6}
	for _, c := range []struct {
		name   string
		change func(*protocol.CreateTopicHeader)
		code   protocol.Code
	}{
		{"blank name", func(h *protocol.CreateTopicHeader) { h.Topic = " " }, protocol.InvalidParameter},
		{"bad name", func(h *protocol.CreateTopicHeader) { h.Topic = "a b" }, protocol.InvalidParameter},
		{"long name", func(h *protocol.CreateTopicHeader) { h.Topic = strings.Repeat("x", 128) }, protocol.InvalidParameter},
		{"system topic", func(h *protocol.CreateTopicHeader) { h.Topic = "SCHEDULE_TOPIC_XXXX" }, protocol.InvalidParameter},
		{"topic of the cluster", func(h *protocol.CreateTopicHeader) { h.Topic = "DefaultCluster" }, protocol.InvalidParameter},
		{"attribute without sign", func(h *protocol.CreateTopicHeader) { h.Attributes = "a=b" }, protocol.InvalidParameter},
	} {
		h := good
		c.change(&h)
		if resp := p.do(protocol.UpdateAndCreateTopic, &h, nil); resp.Code != int32(c.code) {
			t.Errorf("%s: %d %q, want %d", c.name, resp.Code, resp.Remark, c.code)
		}
	}
	if resp := p.do(protocol.UpdateAndCreateTopicList, nil, []byte(`{"topicConfigList":[{"topicName":"ok","perm":6,"readQueueNums":1,"writeQueueNums":1},{"topicName":"a b"}]}`)); resp.Code != int32(protocol.InvalidParameter) {
		t.Errorf("a list with a bad topic: %d %q", resp.Code, resp.Remark)
	}
	if resp := p.do(protocol.GetTopicConfig, &protocol.TopicHeader{Topic: "ok"}, nil); resp.Code != int32(protocol.TopicNotExist) {
		t.Errorf("half of a list was made: %d", resp.Code)
	}
	p.ok(protocol.UpdateAndCreateTopicList, nil, []byte(`{"topicConfigList":[{"topicName":"l1","perm":6,"readQueueNums":1,"writeQueueNums":1},{"topicName":"l2","perm":6,"readQueueNums":2,"writeQueueNums":2}]}`))
	if c := body[mq.TopicConfig](t, p.ok(protocol.GetTopicConfig, &protocol.TopicHeader{Topic: "l2"}, nil)); c.ReadQueues != 2 || c.Filter != "SINGLE_TAG" || c.Attributes == nil {
		t.Errorf("made %+v", c)
	}
}

func TestListsComeInPages(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	whole := p.ok(protocol.GetAllTopicConfig, nil, nil)
	all := body[protocol.TopicTable](t, whole)
	total := int(fields[protocol.TopicPageResponse](t, whole).Total)
	if total < 10 || len(all.Topics) != total {
		t.Fatalf("%d topics, total %d", len(all.Topics), total)
	}
	got := map[string]bool{}
	version := string(protocol.EncodeBody(&all.DataVersion))
	for seq := int32(0); int(seq) < total; seq += 4 {
		resp := p.ok(protocol.GetAllTopicConfig, &protocol.TopicPageHeader{Seq: &seq, Max: new(int32(4)), DataVersion: &version}, nil)
		for name := range body[protocol.TopicTable](t, resp).Topics {
			if got[name] {
				t.Errorf("%s comes twice", name)
			}
			got[name] = true
		}
	}
	if len(got) != total {
		t.Errorf("%d of %d topics came", len(got), total)
	}
	// The list changed: from the start.
	old := `{"counter":999,"stateVersion":0,"timestamp":1}`
	resp := p.ok(protocol.GetAllTopicConfig, &protocol.TopicPageHeader{Seq: new(int32(4)), Max: new(int32(1)), DataVersion: &old}, nil)
	names := slices.Sorted(func(yield func(string) bool) {
		for n := range all.Topics {
			if !yield(n) {
				return
			}
		}
	})
	if page := body[protocol.TopicTable](t, resp).Topics; len(page) != 1 || page[names[0]] == nil {
		t.Errorf("after a change: %v, want %s", page, names[0])
	}

	g := p.ok(protocol.GetAllSubscriptionGroupConfig, &protocol.GroupPageHeader{Seq: new(int32(1)), Max: new(int32(2))}, nil)
	if n := len(body[protocol.GroupTable](t, g).Groups); n != 2 || fields[protocol.GroupPageResponse](t, g).Total < 8 {
		t.Errorf("%d groups in a page of 2", n)
	}
}

func TestGroupsComeChangeAndGo(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.ok(protocol.UpdateAndCreateSubscriptionGroup, nil, []byte(`{"groupName":"g","retryMaxTimes":3}`))
	g := body[mq.GroupConfig](t, p.ok(protocol.GetSubscriptionGroupConfig, &protocol.GroupHeader{Group: "g"}, nil))
	if g.RetryMaxTimes != 3 || !g.ConsumeEnable || g.RetryQueues != 1 {
		t.Errorf("made %+v", g)
	}
	p.ok(protocol.UpdateAndCreateSubscriptionGroupList, nil, []byte(`{"groupConfigList":[{"groupName":"g1"},{"groupName":"g2","consumeEnable":false}]}`))
	if g := body[mq.GroupConfig](t, p.ok(protocol.GetSubscriptionGroupConfig, &protocol.GroupHeader{Group: "g2"}, nil)); g.ConsumeEnable {
		t.Errorf("made %+v", g)
	}
	for _, bad := range []string{`{"groupName":"a b"}`, `{}`, ``, `[`} {
		if resp := p.do(protocol.UpdateAndCreateSubscriptionGroup, nil, []byte(bad)); resp.Code != int32(protocol.InvalidParameter) {
			t.Errorf("%s: %d %q", bad, resp.Code, resp.Remark)
		}
	}
	p.ok(protocol.DeleteSubscriptionGroup, &protocol.DeleteGroupHeader{Group: "g", CleanOffset: true}, nil)
	for range 2 { // asking does not make it
		if resp := p.do(protocol.GetSubscriptionGroupConfig, &protocol.GroupHeader{Group: "g"}, nil); resp.Code != int32(protocol.SubscriptionGroupNotExist) {
			t.Errorf("a deleted group: %d %q", resp.Code, resp.Remark)
		}
	}
}

// C05: a new group begins where it asked to, also on a topic with 100 recent
// messages; one that was there before the messages misses none.
func TestC05WhereNewGroupsBegin(t *testing.T) {
	t.Parallel()
	where := func(p *peer, group string, queue int32) int64 {
		resp := p.do(protocol.QueryConsumerOffset, &protocol.QueryConsumerOffsetHeader{ConsumerGroup: group, Topic: "T", QueueID: queue}, nil)
		if resp.Code == int32(protocol.QueryNotFound) {
			return -1
		}
		return fields[protocol.OffsetResponse](t, resp).Offset
	}
	b := newBench(t, options{})
	p := b.connect()
	p.ok(protocol.UpdateAndCreateTopic, &protocol.CreateTopicHeader{Topic: "T", ReadQueues: 2, WriteQueues: 2, Perm: 6}, nil)
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "early", "T"))
	for range 100 {
		p.sendOK("T", "x", "")
	}
	<-time.After(2 * time.Millisecond) // the times of messages have no more digits
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "new", "T"))
	if off := where(p, "new", 0); off != -1 {
		t.Errorf("a group that came after the messages begins at %d", off)
	}
	if off := where(p, "offline", 0); off != -1 {
		t.Errorf("a group that nobody knows begins at %d", off)
	}
	if off := where(p, "new", 1); off != 0 {
		t.Errorf("an empty queue begins at %d", off)
	}
	if off := where(p, "early", 0); off != 0 {
		t.Errorf("a group that was there before the messages begins at %d", off)
	}
	// A queue that a topic got while its group was away.
	p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "new", Topic: "T", QueueID: 1, CommitOffset: 0}, nil)
	if off := where(p, "new", 0); off != 0 {
		t.Errorf("a queue that is new to a group that has others begins at %d", off)
	}

	strict := newBench(t, options{api: func(c *Config) { c.YoungBytes = 1000 }}).connect()
	strict.sendOK("T", "x", "")
	if off := where(strict, "new", 0); off != 0 {
		t.Errorf("as in RocketMQ: a young queue begins at %d", off)
	}
	for range 10 {
		strict.sendOK("T", strings.Repeat("y", 1000), "")
	}
	if off := where(strict, "new", 0); off != -1 {
		t.Errorf("as in RocketMQ: a queue with a past begins at %d", off)
	}
}

func TestOffsetsThatCannotBe(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.sendOK("T", "x", "")
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	for _, c := range []struct {
		h    protocol.UpdateConsumerOffsetHeader
		code protocol.Code
	}{
		{protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "none", CommitOffset: 1}, protocol.TopicNotExist},
		{protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "none", Topic: "T", CommitOffset: 1}, protocol.SubscriptionGroupNotExist},
		{protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: -1}, protocol.InvalidParameter},
		{protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", QueueID: -1}, protocol.InvalidParameter},
		{protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", QueueID: 99}, protocol.InvalidParameter},
	} {
		if resp := p.do(protocol.UpdateConsumerOffset, &c.h, nil); resp.Code != int32(c.code) {
			t.Errorf("%+v: %d %q", c.h, resp.Code, resp.Remark)
		}
	}
}

// What RocketMQ stores or answers with 0: offsets of queues that do not exist,
// and such as lie beyond the end, by commit and by pull.
func TestOffsetsOfQueuesThatAreNot(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	p.sendOK("T", "x", "")
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	for _, id := range []int32{-1, 4, 99} {
		h := &protocol.QueueHeader{Topic: "T", QueueID: id}
		for _, code := range []protocol.Code{protocol.GetMaxOffset, protocol.GetMinOffset, protocol.GetEarliestMsgStoreTime} {
			if resp := p.do(code, h, nil); resp.Code != int32(protocol.InvalidParameter) || !strings.Contains(resp.Remark, fmt.Sprintf("queue %d of topic T does not exist, it has 4", id)) {
				t.Errorf("%d of queue %d: %d %q", code, id, resp.Code, resp.Remark)
			}
		}
		if resp := p.do(protocol.SearchOffsetByTimestamp, &protocol.SearchOffsetHeader{Topic: "T", QueueID: id}, nil); resp.Code != int32(protocol.InvalidParameter) {
			t.Errorf("search in queue %d: %d %q", id, resp.Code, resp.Remark)
		}
	}
	// Beyond the end: the client goes on, the group stays where it was.
	resp := p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 999}, nil)
	if !strings.Contains(resp.Remark, "not taken") || !strings.Contains(resp.Remark, "999") {
		t.Errorf("a commit beyond the end: %q", resp.Remark)
	}
	for _, off := range []mq.QueueOffset{999, -7} {
		h := pullOf("g", "T", 0)
		h.SysFlag |= mq.PullCommitOffset
		h.CommitOffset = off
		if resp := p.pull(h); resp.Code != 0 {
			t.Errorf("a pull that commits %d: %d %q", off, resp.Code, resp.Remark)
		}
	}
	if off, ok := b.parts.Offsets.Query("g", "T", 0); ok {
		t.Errorf("the group is at %d", off)
	}
	h := pullOf("g", "T", 0)
	h.MaxMsgNums = -1
	if resp := p.pull(h); resp.Code != int32(protocol.InvalidParameter) || !strings.Contains(resp.Remark, "maxMsgNums is -1") {
		t.Errorf("a pull of -1 messages: %d %q", resp.Code, resp.Remark)
	}
	// A queue with messages is one although its topic has fewer now.
	m := message("T", "y", "")
	for i := range m.Fields {
		if m.Fields[i].Key == "e" {
			m.Fields[i].Value = "3"
		}
	}
	if resp := p.ask(m); resp.Code != 0 {
		t.Fatal(resp.Remark)
	}
	if err := b.parts.Topics.Put(&mq.TopicConfig{Name: "T", Perm: mq.PermRead | mq.PermWrite, ReadQueues: 2, WriteQueues: 2, Filter: "SINGLE_TAG"}, ""); err != nil {
		t.Fatal(err)
	}
	p.ok(protocol.GetMaxOffset, &protocol.QueueHeader{Topic: "T", QueueID: 3}, nil)
	p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", QueueID: 3, CommitOffset: 1}, nil)
}

func TestPeek(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	for i := range 3 {
		p.sendOK("T", fmt.Sprint(i), "")
	}
	peek := func(topic string, queue mq.QueueID, most int32) (string, int64, *remoting.Command) {
		resp := p.do(protocol.PeekMessage, &protocol.PeekHeader{ConsumerGroup: "g", Topic: topic, QueueID: queue, MaxMsgNums: most}, nil)
		return bodies(t, resp), fields[protocol.PeekResponse](t, resp).Rest, resp
	}
	for range 2 {
		if got, rest, resp := peek("T", 0, 2); got != "0 1" || rest != 3 || resp.Code != 0 || resp.Remark != "FOUND" {
			t.Errorf("%q, rest %d, %d %q", got, rest, resp.Code, resp.Remark)
		}
	}
	if _, rest, resp := peek("T", 1, 2); rest != 0 || resp.Code != int32(protocol.PullNotFound) || resp.Remark != "NO_MESSAGE_IN_QUEUE" {
		t.Errorf("rest %d, %d %q", rest, resp.Code, resp.Remark)
	}
	if _, _, resp := peek("T", 4, 2); resp.Code != int32(protocol.InvalidParameter) {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
	if _, _, resp := peek("none", 0, 2); resp.Code != int32(protocol.TopicNotExist) {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
}

func TestResetLeadsTheNextPull(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	for range 5 {
		p.sendOK("T", "x", "")
	}
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 5}, nil)

	reset := &protocol.ResetOffsetHeader{Topic: "T", Group: "g", Timestamp: 0, QueueID: new(int32(0)), Offset: new(int64(2))}
	got := body[protocol.ResetOffsetBody](t, p.ok(protocol.InvokeBrokerToResetOffset, reset, nil))
	if len(got.Offsets) != 1 || got.Offsets[protocol.MessageQueue{BrokerName: "broker-a", Topic: "T"}] != 2 {
		t.Errorf("told %+v", got)
	}
	// The consumer does not know yet.
	resp := p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 5}, nil)
	if !strings.Contains(resp.Remark, "not taken") {
		t.Errorf("a commit while a reset waits: %q", resp.Remark)
	}
	pulled := p.pull(pullOf("g", "T", 5))
	if next := fields[struct {
		N int64 `h:"nextBeginOffset"`
	}](t, pulled).N; pulled.Code != int32(protocol.PullOffsetMoved) || next != 2 || pulled.Remark != "OFFSET_RESET" {
		t.Errorf("the next pull: %d %q, next %d", pulled.Code, pulled.Remark, next)
	}
	if resp := p.pull(pullOf("g", "T", 2)); resp.Code != 0 {
		t.Errorf("the pull after: %d %q", resp.Code, resp.Remark)
	}
	p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 3}, nil)

	// To the end of all queues.
	got = body[protocol.ResetOffsetBody](t, p.ok(protocol.InvokeBrokerToResetOffset, &protocol.ResetOffsetHeader{Topic: "T", Group: "g", Timestamp: -1}, nil))
	if len(got.Offsets) != 4 || got.Offsets[protocol.MessageQueue{BrokerName: "broker-a", Topic: "T"}] != 5 {
		t.Errorf("told %+v", got)
	}
	for _, c := range []struct {
		h    protocol.ResetOffsetHeader
		code protocol.Code
	}{
		{protocol.ResetOffsetHeader{Topic: "none", Group: "g"}, protocol.TopicNotExist},
		{protocol.ResetOffsetHeader{Topic: "T", Group: "none"}, protocol.SubscriptionGroupNotExist},
		{protocol.ResetOffsetHeader{Topic: "T", Group: "g", QueueID: new(int32(9))}, protocol.InvalidParameter},
		{protocol.ResetOffsetHeader{Topic: "T", Group: "g", QueueID: new(int32(0)), Offset: new(int64(6))}, protocol.SystemError},
	} {
		if resp := p.do(protocol.InvokeBrokerToResetOffset, &c.h, nil); resp.Code != int32(c.code) {
			t.Errorf("%+v: %d %q", c.h, resp.Code, resp.Remark)
		}
	}
}

func TestOffsetsByTime(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.sendOK("T", "x", "")
	p.sendOK("T", "y", "")
	search := func(millis int64, boundary string) int64 {
		return fields[protocol.OffsetResponse](t, p.ok(protocol.SearchOffsetByTimestamp, &protocol.SearchOffsetHeader{Topic: "T", Timestamp: millis, Boundary: boundary}, nil)).Offset
	}
	if a, b, c, d := search(0, ""), search(1<<50, "lower"), search(1<<50, "UPPER"), search(0, "upper"); a != 0 || b != 2 || c != 1 || d != 0 {
		t.Errorf("found %d %d %d %d", a, b, c, d)
	}
	at := fields[protocol.StoreTimeResponse](t, p.ok(protocol.GetEarliestMsgStoreTime, &protocol.QueueHeader{Topic: "T"}, nil)).Timestamp
	if at <= 0 || search(at, "") != 0 {
		t.Errorf("the first message is of %d", at)
	}
	if at := fields[protocol.StoreTimeResponse](t, p.ok(protocol.GetEarliestMsgStoreTime, &protocol.QueueHeader{Topic: "T", QueueID: 1}, nil)).Timestamp; at != -1 {
		t.Errorf("an empty queue has a first message of %d", at)
	}
}

func TestQueueEntries(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.sendOK("T", "x", "TAGS\x01TagA\x02")
	p.sendOK("T", "y", "TAGS\x01TagB\x02")
	q := &protocol.QueryConsumeQueueHeader{Topic: "T", Index: 0, Count: 5, Group: "g"}
	got := body[protocol.ConsumeQueue](t, p.ok(protocol.QueryConsumeQueue, q, nil))
	if len(got.Entries) != 2 || got.Max != 2 || got.Entries[0].TagsCode != 2598919 || got.FilterData != "g@T is not online!" {
		t.Errorf("got %+v", got)
	}
	h, err := protocol.DecodeHeartbeat(heartbeat("c@1", "g", "T"))
	if err != nil {
		t.Fatal(err)
	}
	h.Consumers[0].Subscriptions[0].Expression = "TagB"
	p.ok(protocol.HeartBeat, nil, protocol.EncodeBody(h))
	got = body[protocol.ConsumeQueue](t, p.ok(protocol.QueryConsumeQueue, q, nil))
	if got.Entries[0].Eval || !got.Entries[1].Eval || got.Subscription == nil {
		t.Errorf("got %+v", got)
	}
	q.Count, q.Index = 1, 1
	if got = body[protocol.ConsumeQueue](t, p.ok(protocol.QueryConsumeQueue, q, nil)); len(got.Entries) != 1 || got.Entries[0].TagsCode != 2598920 {
		t.Errorf("got %+v", got)
	}
	q.QueueID = 9
	if resp := p.do(protocol.QueryConsumeQueue, q, nil); resp.Code != int32(protocol.SystemError) {
		t.Errorf("a queue that is not there: %d", resp.Code)
	}
}

func TestDelayedMessagesAreCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	p.sendOK("T", "later", "DELAY\x015\x02")
	eventually(t, "the message is counted", func() bool {
		info := body[protocol.KVTable](t, p.ok(protocol.GetBrokerRuntimeInfo, nil, nil)).Table
		return info["delayPending"] == "1" && info["delayPending_5"] == "1" && info["scheduleMessageOffset_5"] == "0,1"
	})
	off := body[protocol.DelayOffsets](t, p.ok(protocol.GetAllDelayOffset, nil, nil))
	if off.Offsets[5] != 0 {
		t.Errorf("offsets %+v", off)
	}
}

func TestRuntimeInfo(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	p.sendOK("T", "x", "")
	p.ask(message("no such topic!", "x", ""))
	p.pull(pullOf("g", "T", 0))
	p.pull(pullOf("g", "T", 1))
	info := body[protocol.KVTable](t, p.ok(protocol.GetBrokerRuntimeInfo, nil, nil)).Table
	for key, want := range map[string]string{
		"putMessageTimesTotal": "1", "putMessageFailedTimes": "1", "msgGetTotalTodayNow": "1", "brokerActive": "true", "commitLogMinOffset": "0",
		"timerCongestNum": "0", "timerEnqueueTps": "0.0", "sendThreadPoolQueueSize": "0", "pullThreadPoolQueueCapacity": "100000",
	} {
		if info[key] != want {
			t.Errorf("%s is %q, want %q", key, info[key], want)
		}
	}
	for _, key := range []string{"putTps", "getFoundTps", "getMissTps", "getTotalTps", "getTransferredTps"} {
		if n := len(strings.Fields(info[key])); n != 3 {
			t.Errorf("%s is %q, tools want three numbers", key, info[key])
		}
	}
	for _, key := range []string{"bootTimestamp", "earliestMessageTimeStamp", "commitLogMaxOffset", "pageCacheLockTimeMills", "dispatchBehindBytes"} {
		if _, err := strconv.ParseInt(info[key], 10, 64); err != nil {
			t.Errorf("%s is %q, tools want a number", key, info[key])
		}
	}
}

func TestBrokerConfigIsAPropertiesFile(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{api: func(c *Config) {
		c.Properties = [][2]string{{"brokerName", "broker-a"}, {"path", `C:\data`}, {"note", " a=b\nünd"}, {"odd key", "x"}}
	}}).connect()
	resp := p.ok(protocol.GetBrokerConfig, nil, nil)
	const want = "brokerName=broker-a\npath=C:\\\\data\nnote=\\ a=b\\n\\u00fcnd\nodd\\ key=x\n"
	if string(resp.Body) != want {
		t.Errorf("got  %q\nwant %q", resp.Body, want)
	}
	var v mq.DataVersion
	if err := protocol.DecodeBody([]byte(fields[protocol.ConfigResponse](t, resp).Version), &v); err != nil {
		t.Error(err)
	}
}

func TestSystemTopicsAreListed(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	list := body[protocol.TopicList](t, p.ok(protocol.GetSystemTopicListFromBroker, nil, nil)).Topics
	for _, want := range []string{"TBW102", "SCHEDULE_TOPIC_XXXX", "DefaultCluster", "broker-a"} {
		if !slices.Contains(list, want) {
			t.Errorf("%s is not in %v", want, list)
		}
	}
}

func TestForbiddenTopics(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.sendOK("T", "x", "")
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	ask := func(readable *bool) bool {
		return body[protocol.GroupForbidden](t, p.ok(protocol.UpdateAndGetGroupForbidden, &protocol.ForbiddenHeader{Group: "g", Topic: "T", Readable: readable}, nil)).Readable
	}
	h := pullOf("g", "T", 0)
	h.SysFlag = 0 // by its heartbeat
	if !ask(nil) || p.pull(h).Code != 0 {
		t.Error("forbidden from the start")
	}
	if ask(new(false)) {
		t.Error("still readable")
	}
	resp := p.pull(h)
	if kind, _ := resp.Get("forbiddenType"); resp.Code != int32(protocol.NoPermission) || kind != "5" {
		t.Errorf("a forbidden pull: %d %q, type %s", resp.Code, resp.Remark, kind)
	}
	if !ask(new(true)) || p.pull(h).Code != 0 {
		t.Error("still forbidden")
	}
}

func TestProgressOfAllGroups(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	for range 4 {
		p.sendOK("T", "x", "")
	}
	for group, off := range map[string]int64{"fast": 3, "slow": 1} {
		p.ok(protocol.HeartBeat, nil, heartbeat("c@"+group, group, "T"))
		p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: group, Topic: "T", CommitOffset: off}, nil)
	}
	stats := body[protocol.BrokerConsumeStats](t, p.ok(protocol.GetBrokerConsumeStats, &protocol.BrokerConsumeStatsHeader{}, nil))
	if stats.Behind != 4 || len(stats.Groups["fast"]) != 1 || len(stats.Groups["TOOLS_CONSUMER"]) != 0 {
		t.Errorf("got %+v", stats)
	}
	if s := body[protocol.BrokerConsumeStats](t, p.ok(protocol.GetBrokerConsumeStats, &protocol.BrokerConsumeStatsHeader{Ordered: true}, nil)); len(s.Groups["fast"]) != 0 {
		t.Errorf("of ordered topics: %+v", s)
	}
	correct := func(compare, except string) int64 {
		h := &protocol.CorrectionHeader{Topic: "T", Compare: compare, Except: except}
		return int64(body[protocol.CorrectionOffsets](t, p.ok(protocol.QueryCorrectionOffset, h, nil)).Offsets[0])
	}
	if a, b, c := correct("fast", ""), correct("fast", "slow"), correct("slow", "slow"); a != 1 || b != 3 || c != 1<<63-1 {
		t.Errorf("slowest %d, without slow %d, compared with slow %d", a, b, c)
	}
	if correct("fast", "") != 1 {
		t.Error("asking deleted something")
	}

	p.ok(protocol.CloneGroupOffset, &protocol.CloneOffsetHeader{From: "fast", To: "copy", Topic: "T"}, nil)
	q := &protocol.QueryConsumerOffsetHeader{ConsumerGroup: "copy", Topic: "T", SetZeroIfNotFound: new(false)}
	if off := fields[protocol.OffsetResponse](t, p.ok(protocol.QueryConsumerOffset, q, nil)).Offset; off != 3 {
		t.Errorf("the copy is at %d", off)
	}
	if resp := p.do(protocol.CloneGroupOffset, &protocol.CloneOffsetHeader{From: "none", To: "copy"}, nil); resp.Code != int32(protocol.SubscriptionGroupNotExist) {
		t.Errorf("a clone of nobody: %d %q", resp.Code, resp.Remark)
	}
}

// C07: a reset by time leads to the end where nothing is newer.
func TestC07ResetToNowLeadsToTheEnd(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	for range 3 {
		p.sendOK("T", "x", "")
		p.sendOK("%RETRY%g", "y", "")
	}
	for topic, queues := range map[string]int{"T": 4, "%RETRY%g": 1} {
		h := &protocol.ResetOffsetHeader{Topic: topic, Group: "g", Timestamp: time.Now().Add(time.Minute).UnixMilli()}
		got := body[protocol.ResetOffsetBody](t, p.ok(protocol.InvokeBrokerToResetOffset, h, nil))
		if off := got.Offsets[protocol.MessageQueue{BrokerName: "broker-a", Topic: topic}]; off != 3 || len(got.Offsets) != queues {
			t.Errorf("%s: reset to %+v", topic, got)
		}
	}
}

// C10: a consumer that waits for news learns of a reset at once.
func TestC10ResetWakesParkedPulls(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	consumer, admin := b.connect(), b.connect()
	consumer.sendOK("T", "x", "")
	consumer.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	h := pullOf("g", "T", 1)
	h.SysFlag |= mq.PullSuspend
	h.SuspendMillis = 60_000
	consumer.send(&remoting.Command{Code: int32(protocol.PullMessage), Fields: h.Encode()})
	eventually(t, "the pull is parked", func() bool { return b.parts.Fetch.Parked() == 1 })
	admin.ok(protocol.InvokeBrokerToResetOffset, &protocol.ResetOffsetHeader{Topic: "T", Group: "g", Timestamp: 0}, nil)
	if resp := consumer.next(); resp.Code != int32(protocol.PullOffsetMoved) || resp.Remark != "OFFSET_RESET" {
		t.Errorf("the parked pull: %d %q", resp.Code, resp.Remark)
	}
	if c := body[protocol.ConsumerConnection](t, admin.ok(protocol.GetConsumerConnectionList, &protocol.ConsumerGroupHeader{ConsumerGroup: "g"}, nil)); len(c.Connections) != 1 {
		t.Errorf("after the reset %d members are listed", len(c.Connections))
	}
}

// A05: what is empty is an empty object or list, never null or missing.
func TestA05NothingIsNull(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	for _, c := range []struct {
		code   protocol.Code
		header any
	}{
		{protocol.GetAllTopicConfig, nil}, {protocol.GetAllSubscriptionGroupConfig, nil}, {protocol.GetAllProducerInfo, nil},
		{protocol.GetAllConsumerOffset, nil}, {protocol.GetAllDelayOffset, nil}, {protocol.GetSystemTopicListFromBroker, nil},
		{protocol.QueryTopicConsumeByWho, &protocol.TopicHeader{Topic: "none"}}, {protocol.QueryTopicsByConsumer, &protocol.GroupHeader{Group: "none"}},
		{protocol.GetConsumeStats, &protocol.ConsumeStatsHeader{ConsumerGroup: "none"}}, {protocol.GetBrokerConsumeStats, &protocol.BrokerConsumeStatsHeader{}},
		{protocol.QueryCorrectionOffset, &protocol.CorrectionHeader{Topic: "none", Compare: "none"}},
		{protocol.QuerySubscriptionByConsumer, &protocol.GroupTopicHeader{Group: "none", Topic: "none"}},
	} {
		if resp := p.ok(c.code, c.header, nil); len(resp.Body) == 0 || strings.Contains(string(resp.Body), "null") {
			t.Errorf("%s: %s", protocol.RequestName(c.code), resp.Body)
		}
	}
}
