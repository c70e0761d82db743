package brokerapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/broker/groups"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

func TestFirstHeartbeatMakesGroupAndRetryTopicAndWaitsForTheNameServers(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	told := 0
	b.api.p.Announced = func(ctx context.Context) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the wait has no end")
		}
		if b.parts.Topics.Get("%RETRY%g") == nil {
			t.Error("the retry topic is not there when it is to be announced")
		}
		if n := len(b.parts.Clients.Members("g")); n != 0 {
			t.Errorf("%d members, who are told to share out queues, while their heartbeat waits for its answer", n)
		}
		told++
	}
	p := b.connect()
	resp := fields[protocol.HeartbeatResponse](t, p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T")))
	if !resp.SupportsV2 || !resp.SubChange {
		t.Errorf("answered %+v; a client without fingerprint sends its subscriptions always", resp)
	}
	if told != 1 {
		t.Errorf("waited %d times", told)
	}
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	if told != 1 {
		t.Errorf("the second heartbeat waited, too")
	}
	if b.parts.Groups.Get("g") == nil {
		t.Error("the group has no configuration")
	}
}

func TestHeartbeatWithABadGroupServesTheOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	h := &protocol.Heartbeat{ClientID: "c@1"}
	for _, g := range []string{"bad name!", "good"} {
		h.Consumers = append(h.Consumers, protocol.HeartbeatGroup{Group: g, ConsumeType: "CONSUME_PASSIVELY", MessageModel: "CLUSTERING"})
	}
	p.ok(protocol.HeartBeat, nil, protocol.EncodeBody(h))
	if got := b.parts.Clients.Groups(); !slices.Equal(got, []string{"good"}) {
		t.Errorf("groups here: %v", got)
	}
}

// A heartbeat with more groups than are served: neither the tables of clients
// nor those of groups and topics grow beyond their limits, what was there before
// is served, and the answer says what is not.
func TestHeartbeatWithTooManyGroups(t *testing.T) {
	t.Parallel()
	const perConn, own = 40, 60
	b := newBench(t, options{
		clients: func(c *clients.Config) { c.MaxGroups = perConn },
		groups:  func(c *groups.Config) { c.MaxGroups = len(mq.SystemGroups) + own },
	})
	beat := func(p *peer, client, prefix string, n int) *remoting.Command {
		h := &protocol.Heartbeat{ClientID: client, Fingerprint: 1}
		for i := range n {
			h.Consumers = append(h.Consumers, protocol.HeartbeatGroup{Group: fmt.Sprint(prefix, i), ConsumeType: "CONSUME_PASSIVELY", MessageModel: "CLUSTERING"})
		}
		return p.ok(protocol.HeartBeat, nil, protocol.EncodeBody(h))
	}
	one, two := b.connect(), b.connect()
	if resp := beat(one, "c@1", "a", perConn); resp.Remark != "" || fields[protocol.HeartbeatResponse](t, resp).SubChange {
		t.Errorf("within the limits: %+v", resp)
	}
	for _, c := range []struct {
		p      *peer
		client string
		prefix string
		n      int
		here   int // groups with a member afterwards
		says   []string
	}{
		{one, "c@1", "a", 10 * perConn, perConn, []string{"360 of the 400 groups named are left out", "the connection is in 40 already, the limit is 40 (maxGroupsPerConnection)"}},
		{two, "c@2", "b", perConn, own, []string{"20 consumer groups are left out", "the limit for that is 68 (maxAutoCreatedGroups)"}},
		{two, "c@2", "a", 1, own, nil}, // another's group
	} {
		resp := beat(c.p, c.client, c.prefix, c.n)
		for _, want := range c.says {
			if !strings.Contains(resp.Remark, want) {
				t.Errorf("%d groups: the answer is %q, want it to say %q", c.n, resp.Remark, want)
			}
		}
		if got := fields[protocol.HeartbeatResponse](t, resp).SubChange; got != (c.says != nil) || (resp.Remark == "") != (c.says == nil) {
			t.Errorf("%d groups: asked for again %v, remark %q", c.n, got, resp.Remark)
		}
		if got := len(b.parts.Clients.Groups()); got != c.here {
			t.Errorf("%d groups are here, want %d", got, c.here)
		}
	}
	retry := 0
	all, _ := b.parts.Topics.All()
	for _, topic := range all {
		if mq.IsRetryTopic(topic.Name) {
			retry++
		}
	}
	if made, _ := b.parts.Groups.All(); len(made) != len(mq.SystemGroups)+own || retry != own {
		t.Errorf("%d groups and %d retry topics were made", len(made), retry)
	}
}

// Heartbeat V2: what was left out must be asked for again when it is not known.
func TestHeartbeatV2(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	beat := func(fingerprint int32, without bool) bool {
		h, err := protocol.DecodeHeartbeat(heartbeat("c@1", "g", "T"))
		if err != nil {
			t.Fatal(err)
		}
		h.Fingerprint, h.WithoutSub = fingerprint, without
		if without {
			h.Consumers[0].Subscriptions = nil
		}
		return fields[protocol.HeartbeatResponse](t, p.ok(protocol.HeartBeat, nil, protocol.EncodeBody(h))).SubChange
	}
	if !beat(7, true) {
		t.Error("subscriptions that nobody knows were not asked for")
	}
	if beat(7, false) {
		t.Error("subscriptions that came are asked for again")
	}
	if beat(7, true) {
		t.Error("known subscriptions are asked for again")
	}
	if !beat(8, true) {
		t.Error("subscriptions of another fingerprint were not asked for")
	}
	if b.parts.Clients.View("g").Subscription("T") == nil {
		t.Error("the subscription is lost")
	}
}

func TestMembersAreToldOfChanges(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	one, two := b.connect(), b.connect()
	told := func(p *peer) {
		t.Helper()
		select {
		case c := <-p.asked:
			if g, _ := c.Get("consumerGroup"); c.Code != int32(protocol.NotifyConsumerIdsChanged) || g != "g" || !c.IsOneway() {
				t.Errorf("told %+v", c)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("a member was not told")
		}
	}
	one.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	told(one)
	two.ok(protocol.HeartBeat, nil, heartbeat("c@2", "g", "T"))
	told(one)
	told(two)
	list := body[protocol.ConsumerList](t, one.ok(protocol.GetConsumerListByGroup, &protocol.ConsumerGroupHeader{ConsumerGroup: "g"}, nil))
	if !slices.Equal(list.IDs, []string{"c@1", "c@2"}) {
		t.Errorf("members %v", list.IDs)
	}
	two.nc.Close()
	told(one)
	one.ok(protocol.UnregisterClient, &protocol.UnregisterClientHeader{ClientID: "c@1", ConsumerGroup: "g", ProducerGroup: "pg"}, nil)
	resp := one.do(protocol.GetConsumerListByGroup, &protocol.ConsumerGroupHeader{ConsumerGroup: "g"}, nil)
	if resp.Code != int32(protocol.SystemError) || resp.Remark != "no consumer for this group, g" {
		t.Errorf("an empty group: %d %q", resp.Code, resp.Remark)
	}
}

func TestOrderLocks(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	one, two := b.connect(), b.connect()
	one.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	two.ok(protocol.HeartBeat, nil, heartbeat("c@2", "g", "T"))
	lock := func(p *peer, code protocol.Code, id string, queues ...mq.QueueID) []mq.QueueID {
		req := &protocol.LockRequest{ClientID: id, Group: "g"}
		for _, q := range queues {
			req.Queues = append(req.Queues, protocol.MessageQueue{BrokerName: "as I call it", QueueID: q, Topic: "T"})
		}
		resp := p.ok(code, nil, protocol.EncodeBody(req))
		if code == protocol.UnlockBatchMQ {
			return nil
		}
		var got []mq.QueueID
		for _, q := range body[protocol.LockResponse](t, resp).Locked {
			if q.BrokerName != "as I call it" {
				t.Errorf("the queue came back as %+v", q)
			}
			got = append(got, q.QueueID)
		}
		slices.Sort(got)
		return got
	}
	if got := lock(one, protocol.LockBatchMQ, "c@1", 0, 1); !slices.Equal(got, []mq.QueueID{0, 1}) {
		t.Errorf("first: %v", got)
	}
	if got := lock(two, protocol.LockBatchMQ, "c@2", 0, 1, 2); !slices.Equal(got, []mq.QueueID{2}) {
		t.Errorf("second: %v", got)
	}
	lock(two, protocol.UnlockBatchMQ, "c@2", 0) // not its own
	lock(one, protocol.UnlockBatchMQ, "c@1", 1)
	if got := lock(two, protocol.LockBatchMQ, "c@2", 0, 1, 2); !slices.Equal(got, []mq.QueueID{1, 2}) {
		t.Errorf("after an unlock: %v", got)
	}
	one.nc.Close()
	eventually(t, "the lock of a client that is gone is free", func() bool {
		return slices.Equal(lock(two, protocol.LockBatchMQ, "c@2", 0), []mq.QueueID{0})
	})
	for _, bad := range []string{`{"clientId":"x"}`, `{"consumerGroup":"g"}`, `nonsense`} {
		if resp := two.do(protocol.LockBatchMQ, nil, []byte(bad)); resp.Code != int32(protocol.InvalidParameter) {
			t.Errorf("%s: %d %q", bad, resp.Code, resp.Remark)
		}
	}
}

// What an administrator asks a client goes through the broker and comes back.
func TestRelay(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{api: func(c *Config) { c.ClientTimeout = 300 * time.Millisecond }})
	silent := make(chan bool, 1)
	consumer := b.connectAs(func(c *remoting.Command) *remoting.Command {
		select {
		case <-silent:
			return nil
		default:
		}
		switch protocol.Code(c.Code) {
		case protocol.GetConsumerRunningInfo:
			return &remoting.Command{Code: 0, Remark: "fine", Body: []byte(`{"x":1}`)}
		case protocol.ConsumeMessageDirectly:
			broker, _ := c.Get("brokerName")
			rs := records(t, c.Body)
			return &remoting.Command{Body: []byte(broker + " " + string(rs[0].Body()))}
		case protocol.GetConsumerStatusFromClient:
			return &remoting.Command{Body: protocol.EncodeBody(&protocol.ConsumerStatus{Queues: protocol.QueueTable[mq.QueueOffset]{{BrokerName: "broker-a", QueueID: 1, Topic: "T"}: 42}})}
		}
		return nil
	})
	admin := b.connect()
	info := &protocol.RunningInfoHeader{ConsumerGroup: "g", ClientID: "c@1"}
	if resp := admin.do(protocol.GetConsumerRunningInfo, info, nil); resp.Code != int32(protocol.SystemError) || !strings.Contains(resp.Remark, "not online") {
		t.Errorf("a client that is not here: %d %q", resp.Code, resp.Remark)
	}
	consumer.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	if resp := admin.ok(protocol.GetConsumerRunningInfo, info, nil); resp.Remark != "fine" || string(resp.Body) != `{"x":1}` {
		t.Errorf("got %+v", resp)
	}
	sent := admin.sendOK("T", "body", "")
	direct := &protocol.ConsumeDirectlyHeader{ConsumerGroup: "g", ClientID: "c@1", MsgID: sent.MsgID}
	if resp := admin.ok(protocol.ConsumeMessageDirectly, direct, nil); string(resp.Body) != "broker-a body" {
		t.Errorf("got %+v", resp)
	}
	direct.MsgID = mq.MessageID(brokerAddr, 1<<40)
	if resp := admin.do(protocol.ConsumeMessageDirectly, direct, nil); resp.Code != int32(protocol.SystemError) {
		t.Errorf("a message that is not here: %d %q", resp.Code, resp.Remark)
	}
	status := body[protocol.ConsumerStatus](t, admin.ok(protocol.InvokeBrokerToGetConsumerStatus, &protocol.ConsumerStatusHeader{Topic: "T", Group: "g"}, nil))
	if got := status.Clients["c@1"][protocol.MessageQueue{BrokerName: "broker-a", QueueID: 1, Topic: "T"}]; got != 42 {
		t.Errorf("status %+v", status)
	}
	silent <- true
	if resp := admin.do(protocol.GetConsumerRunningInfo, info, nil); resp.Code != int32(protocol.ConsumeMsgTimeout) {
		t.Errorf("a client that is silent: %d %q", resp.Code, resp.Remark)
	}
}

func TestConnectionsAsAdministratorsSeeThem(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	if resp := p.do(protocol.GetConsumerConnectionList, &protocol.ConsumerGroupHeader{ConsumerGroup: "g"}, nil); resp.Code != int32(protocol.ConsumerNotOnline) {
		t.Errorf("nobody here: %d %q", resp.Code, resp.Remark)
	}
	if resp := p.do(protocol.GetProducerConnectionList, &protocol.ProducerGroupHeader{ProducerGroup: "pg"}, nil); resp.Code != int32(protocol.SystemError) {
		t.Errorf("nobody here: %d %q", resp.Code, resp.Remark)
	}
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	c := body[protocol.ConsumerConnection](t, p.ok(protocol.GetConsumerConnectionList, &protocol.ConsumerGroupHeader{ConsumerGroup: "g"}, nil))
	if len(c.Connections) != 1 || c.Connections[0].ClientID != "c@1" || c.Connections[0].Language != "JAVA" || c.Connections[0].Version != 479 ||
		c.ConsumeType != "CONSUME_PASSIVELY" || c.MessageModel != "CLUSTERING" || c.Subscriptions["T"].Expression != "*" {
		t.Errorf("consumers %+v", c)
	}
	pr := body[protocol.ProducerConnection](t, p.ok(protocol.GetProducerConnectionList, &protocol.ProducerGroupHeader{ProducerGroup: "pg"}, nil))
	if len(pr.Connections) != 1 || pr.Connections[0].ClientID != "c@1" {
		t.Errorf("producers %+v", pr)
	}
	all := body[protocol.ProducerTable](t, p.ok(protocol.GetAllProducerInfo, nil, nil))
	if len(all.Groups["pg"]) != 1 || all.Groups["pg"][0].LastUpdate == 0 {
		t.Errorf("producers %+v", all)
	}
	s := body[protocol.GroupSubscription](t, p.ok(protocol.QuerySubscriptionByConsumer, &protocol.GroupTopicHeader{Group: "g", Topic: "T"}, nil))
	if s.Subscription == nil || s.Subscription.Topic != "T" {
		t.Errorf("subscription %+v", s)
	}
	who := body[protocol.GroupList](t, p.ok(protocol.QueryTopicConsumeByWho, &protocol.TopicHeader{Topic: "T"}, nil))
	if !slices.Equal(who.Groups, []string{"g"}) {
		t.Errorf("who consumes: %v", who.Groups)
	}
}

func TestCheckClientConfig(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	check := func(expressionType, expression string) *remoting.Command {
		return p.do(protocol.CheckClientConfig, nil, protocol.EncodeBody(&protocol.CheckClient{
			ClientID: "c", Group: "g", Subscription: &protocol.Subscription{Topic: "T", ExpressionType: expressionType, Expression: expression}}))
	}
	if resp := check("TAG", "a || b"); resp.Code != 0 {
		t.Errorf("tags: %d %q", resp.Code, resp.Remark)
	}
	if resp := check("SQL92", "a > 1"); resp.Code != 0 {
		t.Errorf("SQL92: %d %q", resp.Code, resp.Remark)
	}
	if resp := check("TAG", "||"); resp.Code != int32(protocol.SubscriptionParseFailed) {
		t.Errorf("no tag: %d %q", resp.Code, resp.Remark)
	}
}
