package brokerapi

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// C19: a topic that is deleted while all the world uses it is gone: sends under
// way are stored before or refused, pulls that wait are answered, what is pending
// for it is set aside, and a topic of the same name made later begins empty, at 0,
// without anybody's progress.
func TestC19TopicDeletedUnderLoad(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	admin := b.connect()
	create := func() {
		t.Helper()
		admin.ok(protocol.UpdateAndCreateTopic, &protocol.CreateTopicHeader{Topic: "T", DefaultTopic: mq.TopicAutoCreate, ReadQueues: 1, WriteQueues: 1, Perm: 6, Filter: "SINGLE_TAG"}, nil)
	}
	for round := range 5 {
		create()
		admin.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
		admin.sendOK("T", fmt.Sprint("old ", round), "")
		admin.sendOK("T", "old delayed", "DELAY\x012\x02") // 5 s
		var load sync.WaitGroup
		var stop atomic.Bool
		for i := range 4 {
			p := b.connect()
			load.Go(func() {
				for !stop.Load() {
					m := message("T", fmt.Sprint("load ", i), "")
					m.Fields = append(m.Fields[:0:0], m.Fields...)
					for j := range m.Fields {
						if m.Fields[j].Key == "c" {
							m.Fields[j].Value = "no-template" // it must not come back by itself
						}
					}
					if resp := p.ask(m); resp.Code != 0 && resp.Code != int32(protocol.TopicNotExist) {
						t.Errorf("a send: %d %q", resp.Code, resp.Remark)
						return
					}
					commit := &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 1}
					if resp := p.do(protocol.UpdateConsumerOffset, commit, nil); resp.Code != 0 && resp.Code != int32(protocol.TopicNotExist) {
						t.Errorf("a commit: %d %q", resp.Code, resp.Remark)
						return
					}
				}
			})
		}
		max := b.parts.Store.MaxOffset(mq.QueueKey{Topic: "T"})
		eventually(t, "messages come", func() bool { return b.parts.Store.MaxOffset(mq.QueueKey{Topic: "T"}) > max+20 })
		admin.ok(protocol.DeleteTopicInBroker, &protocol.TopicHeader{Topic: "T"}, nil)
		for range 3 {
			if resp := admin.pull(pullOf("g", "T", 0)); resp.Code != int32(protocol.TopicNotExist) {
				t.Errorf("a pull of a deleted topic: %d %q", resp.Code, resp.Remark)
			}
		}
		create()
		stop.Store(true)
		load.Wait()
		// Whatever the load sent since is of the new generation; nothing else is there.
		resp := admin.pull(pullOf("g", "T", 0))
		for i, v := range records(t, resp.Body) {
			if v.QueueOffset() != mq.QueueOffset(i) || strings.HasPrefix(string(v.Body()), "old") {
				t.Errorf("round %d: message %d of the new topic is %q at %d", round, i, v.Body(), v.QueueOffset())
			}
		}
		admin.ok(protocol.DeleteTopicInBroker, &protocol.TopicHeader{Topic: "T"}, nil)
		admin.ok(protocol.DeleteTopicInBroker, &protocol.TopicHeader{Topic: "T"}, nil) // again: no harm
		create()
		if off, found := b.parts.Offsets.Query("g", "T", 0); found {
			t.Errorf("round %d: the group is at %d already", round, off)
		}
		if hi := b.parts.Store.MaxOffset(mq.QueueKey{Topic: "T"}); hi != 0 {
			t.Errorf("round %d: the new topic begins at %d", round, hi)
		}
	}
	admin.sendOK("T", "new", "")
	eventually(t, "what was pending for the deleted topics is set aside", func() bool { return b.parts.Delay.Stats().Aside == 5 })
	if hi := b.parts.Store.MaxOffset(mq.QueueKey{Topic: "T"}); hi != 1 {
		t.Errorf("the new topic has %d messages, 1 was sent to it", hi)
	}
}

// A pull that waits for a topic's messages hears at once that the topic is gone.
func TestPullsThatWaitForADeletedTopicAreAnswered(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	admin, waiting := b.connect(), b.connect()
	admin.sendOK("T", "x", "")
	admin.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	h := pullOf("g", "T", 1)
	h.SysFlag, h.SuspendMillis = h.SysFlag|mq.PullSuspend, 60_000
	waiting.send(&remoting.Command{Code: int32(protocol.PullMessage), Version: 479, Fields: h.Encode()})
	eventually(t, "the pull waits", func() bool { return b.parts.Fetch.Parked() == 1 })
	began := time.Now()
	admin.ok(protocol.DeleteTopicInBroker, &protocol.TopicHeader{Topic: "T"}, nil)
	if resp := waiting.next(); resp.Code != int32(protocol.TopicNotExist) || time.Since(began) > 15*time.Second {
		t.Errorf("answered %d %q after %v", resp.Code, resp.Remark, time.Since(began))
	}
}

// C19: a group that is deleted with its offsets begins anew; without, it goes on
// where it was. Its settings are the defaults both times.
func TestC19DeletedGroups(t *testing.T) {
	t.Parallel()
	for _, clean := range []bool{false, true} {
		t.Run(fmt.Sprint("cleanOffset=", clean), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, options{})
			p := b.connect()
			for range 3 {
				p.sendOK("T", "x", "")
			}
			p.ok(protocol.UpdateAndCreateSubscriptionGroup, nil, []byte(`{"groupName":"g","retryMaxTimes":3}`))
			p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
			p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 2}, nil)
			p.ok(protocol.InvokeBrokerToResetOffset, &protocol.ResetOffsetHeader{Topic: "T", Group: "g", Timestamp: -1}, nil)
			p.ok(protocol.UpdateAndGetGroupForbidden, &protocol.ForbiddenHeader{Group: "g", Topic: "T", Readable: new(false)}, nil)
			p.ok(protocol.DeleteSubscriptionGroup, &protocol.DeleteGroupHeader{Group: "g", CleanOffset: clean}, nil)
			if resp := p.do(protocol.GetSubscriptionGroupConfig, &protocol.GroupHeader{Group: "g"}, nil); resp.Code != int32(protocol.SubscriptionGroupNotExist) {
				t.Errorf("the deleted group: %d %q", resp.Code, resp.Remark)
			}
			if resp := p.do(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 1}, nil); resp.Code != int32(protocol.SubscriptionGroupNotExist) {
				t.Errorf("a commit of the deleted group: %d %q", resp.Code, resp.Remark)
			}
			p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
			g := body[mq.GroupConfig](t, p.ok(protocol.GetSubscriptionGroupConfig, &protocol.GroupHeader{Group: "g"}, nil))
			if g.RetryMaxTimes != 16 || b.parts.Groups.ReadForbidden("g", "T") {
				t.Errorf("the new group has settings of the old: %+v", g)
			}
			off, found := b.parts.Offsets.Query("g", "T", 0)
			_, waits := b.parts.Offsets.WaitingReset("g", "T", 0)
			if found == clean || waits == clean || found && off != 3 {
				t.Errorf("the new group is at %d (%v), a reset waits: %v", off, found, waits)
			}
		})
	}
}
