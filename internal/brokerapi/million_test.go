package brokerapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/invariant"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// A group with a million offsets holds nobody up: neither while they are saved,
// nor while administrators look at them; a list that fits in no frame is refused
// with its size.
func TestAMillionOffsets(t *testing.T) {
	t.Parallel()
	if testing.Short() || invariant.On {
		t.Skip("it makes a million offsets and looks at the time")
	}
	b := newBench(t, options{})
	p, admin := b.connect(), b.connect()
	p.sendOK("T", "x", "")
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "small", "T"))
	p.ok(protocol.UpdateAndCreateSubscriptionGroup, nil, protocol.EncodeBody(mq.NewGroupConfig("big")))
	for i := range 125_000 {
		topic := fmt.Sprint("a-topic-with-a-name-that-is-longer-than-most-but-not-out-of-the-world-", i)
		for id := range mq.QueueID(8) {
			if err := b.parts.Offsets.Commit("big", topic, id, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	saved := make(chan error, 1)
	go func() { saved <- b.parts.Offsets.Save() }()
	var worst time.Duration
	n := 0
	for saving := true; saving; n++ {
		began := time.Now()
		p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "small", Topic: "T", CommitOffset: 1}, nil)
		p.ok(protocol.QueryConsumerOffset, &protocol.QueryConsumerOffsetHeader{ConsumerGroup: "small", Topic: "T"}, nil)
		worst = max(worst, time.Since(began))
		select {
		case err := <-saved:
			if saving = false; err != nil {
				t.Error(err)
			}
		default:
		}
	}
	t.Logf("%d commits while a million offsets are saved, the slowest took %v", n, worst)
	if n < 2 {
		t.Errorf("%d commits while a million offsets are saved, the slowest took %v", n, worst)
	}
	if resp := admin.do(protocol.GetAllConsumerOffset, nil, nil); resp.Code != int32(protocol.SystemError) || !strings.Contains(resp.Remark, "more than a frame") {
		t.Errorf("all offsets in one answer: %d %q, %d bytes", resp.Code, resp.Remark, len(resp.Body))
	}
	for _, c := range []struct {
		code protocol.Code
		h    any
	}{
		{protocol.GetConsumeStats, &protocol.ConsumeStatsHeader{ConsumerGroup: "big"}},
		{protocol.GetBrokerConsumeStats, &protocol.BrokerConsumeStatsHeader{}},
		{protocol.QueryTopicsByConsumer, &protocol.GroupHeader{Group: "small"}},
		{protocol.QueryTopicConsumeByWho, &protocol.TopicHeader{Topic: "T"}},
	} {
		began := time.Now()
		if resp := admin.do(c.code, c.h, nil); resp.Code != 0 {
			t.Errorf("%s: %d %q", protocol.RequestName(c.code), resp.Code, resp.Remark)
		}
		t.Logf("%s took %v", protocol.RequestName(c.code), time.Since(began))
	}
	began := time.Now()
	p.ok(protocol.DeleteSubscriptionGroup, &protocol.DeleteGroupHeader{Group: "big", CleanOffset: true}, nil)
	if left := b.parts.Offsets.TopicsOf("big"); len(left) != 0 {
		t.Errorf("%d topics are left after %v", len(left), time.Since(began))
	}
}
