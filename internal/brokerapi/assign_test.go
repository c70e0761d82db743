package brokerapi

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

func (p *peer) assigned(group, topic, client, strategy, model string) ([]string, string) {
	p.t.Helper()
	resp := p.do(protocol.QueryAssignment, nil, protocol.EncodeBody(&protocol.AssignmentQuery{ClientID: client, Group: group, Topic: topic, Strategy: strategy, Model: model}))
	if resp.Code != 0 {
		return nil, fmt.Sprintf("%d %s", resp.Code, resp.Remark)
	}
	out := []string{}
	for _, q := range body[protocol.Assignments](p.t, resp).Queues {
		if q.Mode != "PULL" || q.Queue.Topic != topic {
			p.t.Errorf("assigned %+v", q)
		}
		out = append(out, fmt.Sprint(q.Queue.BrokerName, "/", q.Queue.QueueID))
	}
	return out, ""
}

// Consumers that leave it to the broker get its queues and those of the topic's
// other brokers, each one part.
func TestQueuesAreAssigned(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	one, two := b.connect(), b.connect()
	one.sendOK("T", "x", "") // four queues
	one.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	two.ok(protocol.HeartBeat, nil, heartbeat("c@2", "g", "T"))
	for _, c := range []struct {
		client, strategy, model string
		want                    []string
	}{
		{"c@1", "AVG", "CLUSTERING", []string{"broker-a/0", "broker-a/1"}},
		{"c@2", "AVG", "CLUSTERING", []string{"broker-a/2", "broker-a/3"}},
		{"c@1", "AVG_BY_CIRCLE", "CLUSTERING", []string{"broker-a/0", "broker-a/2"}},
		{"c@2", "AVG_BY_CIRCLE", "CLUSTERING", []string{"broker-a/1", "broker-a/3"}},
		{"x", "AVG", "BROADCASTING", []string{"broker-a/0", "broker-a/1", "broker-a/2", "broker-a/3"}},
	} {
		if got, refused := one.assigned("g", "T", c.client, c.strategy, c.model); refused != "" || !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %v %s", c, got, refused)
		}
	}
	if got, refused := one.assigned("g", "%RETRY%g", "c@1", "AVG", "CLUSTERING"); refused != "" || !slices.Equal(got, []string{"broker-a/0"}) {
		t.Errorf("the retry topic: %v %s", got, refused)
	}
	for _, c := range []struct{ group, topic, client, strategy, model, want string }{
		{"g", "T", "c@9", "AVG", "CLUSTERING", "206"},
		{"none", "T", "c@1", "AVG", "CLUSTERING", "206"},
		{"g", "none", "c@1", "AVG", "CLUSTERING", "17"},
		{"g", "T", "c@1", "MACHINE_ROOM", "CLUSTERING", "29"},
		{"g", "T", "c@1", "AVG", "", "29"},
	} {
		if got, refused := one.assigned(c.group, c.topic, c.client, c.strategy, c.model); !strings.HasPrefix(refused, c.want+" ") {
			t.Errorf("%+v: %v %q", c, got, refused)
		}
	}

	// With name servers what they say counts.
	b = newBench(t, options{})
	asked := 0
	b.api.p.Route = func(_ context.Context, topic string) (*protocol.Route, error) {
		if asked++; topic != "T" {
			return nil, errors.New("the name server is gone")
		}
		return &protocol.Route{Queues: []protocol.RouteQueues{
			{BrokerName: "broker-b", Perm: 4, ReadQueues: 2}, {BrokerName: "broker-a", Perm: 6, ReadQueues: 1}, {BrokerName: "broker-c", Perm: 2, ReadQueues: 9},
		}}, nil
	}
	one = b.connect()
	one.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	for range 3 {
		if got, refused := one.assigned("g", "T", "c@1", "AVG", "CLUSTERING"); refused != "" || !slices.Equal(got, []string{"broker-a/0", "broker-b/0", "broker-b/1"}) {
			t.Errorf("over several brokers: %v %s", got, refused)
		}
	}
	if asked != 1 {
		t.Errorf("three clients ask the name servers %d times", asked)
	}
	if got, refused := one.assigned("g", "U", "c@1", "AVG", "CLUSTERING"); refused == "" {
		t.Errorf("without an answer of the name servers: %v", got)
	}
}

func TestModesOfConsumption(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	p.sendOK("T", "x", "")
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	set := func(topic, group, mode string) int32 {
		return p.do(protocol.SetMessageRequestMode, nil, protocol.EncodeBody(&protocol.RequestMode{Topic: topic, Group: group, Mode: mode})).Code
	}
	for _, c := range []struct {
		topic, group, mode string
		want               protocol.Code
	}{
		{"T", "g", "PULL", protocol.Success}, {"T", "g", "POP", protocol.RequestCodeNotSupported}, {"T", "g", "", protocol.InvalidParameter},
		{"%RETRY%g", "g", "PULL", protocol.NoPermission}, {"none", "g", "PULL", protocol.TopicNotExist}, {"T", "none", "PULL", protocol.SubscriptionGroupNotExist},
	} {
		if got := set(c.topic, c.group, c.mode); got != int32(c.want) {
			t.Errorf("%+v: %d", c, got)
		}
	}
	all := func() map[string]map[string]protocol.RequestMode {
		return body[protocol.RequestModes](t, p.ok(protocol.GetAllMessageRequestMode, nil, nil)).Modes
	}
	if got := all(); !reflect.DeepEqual(got, map[string]map[string]protocol.RequestMode{"T": {"g": {Group: "g", Mode: "PULL", Topic: "T"}}}) {
		t.Errorf("all modes: %+v", got)
	}
	p.ok(protocol.DeleteTopicInBroker, &protocol.TopicHeader{Topic: "T"}, nil)
	if got := all(); len(got) != 0 {
		t.Errorf("a mode of a deleted topic is left: %+v", got)
	}
}

// What an administrator may clean, and what stays.
func TestCleaningByCommand(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	p.sendOK("T", "x", "")
	p.sendOK("Kept", "x", "")
	p.ok(protocol.CleanExpiredConsumeQueue, nil, nil)
	if resp := p.ok(protocol.DeleteExpiredCommitLog, nil, nil); resp.Remark != "0 files of the commit log were deleted" {
		t.Errorf("nothing has expired: %q", resp.Remark)
	}
	if resp := p.ok(protocol.CleanUnusedTopic, nil, nil); !strings.Contains(resp.Remark, "no queue") {
		t.Errorf("every queue has its topic: %q", resp.Remark)
	}
	if err := b.parts.Topics.Delete("T"); err != nil { // and the power goes
		t.Fatal(err)
	}
	key := mq.QueueKey{Topic: "T"}
	if resp := p.do(protocol.CleanUnusedTopic, nil, nil); resp.Code == 0 || b.parts.Store.MaxOffset(key) != 1 {
		t.Errorf("the list of topics is new: %d %q, the queue ends at %d", resp.Code, resp.Remark, b.parts.Store.MaxOffset(key))
	}
}
