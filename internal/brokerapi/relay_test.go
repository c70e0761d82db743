package brokerapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// What goes wrong between the administrator, the broker and a client has each its
// own answer.
func TestRelayTellsWhatWentWrong(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{api: func(c *Config) { c.ClientTimeout = 300 * time.Millisecond }})
	admin := b.connect()
	sent := admin.sendOK("T", "body", "UNIQ_KEY\x01UK1\x02")
	var gone *peer
	gone = b.connectAs(func(c *remoting.Command) *remoting.Command {
		if protocol.Code(c.Code) == protocol.GetConsumerRunningInfo {
			gone.nc.Close()
		}
		return nil
	})
	gone.as(remoting.Java, 513, heartbeat("gone", "g", "T"))
	silent := b.connect()
	silent.as(remoting.Java, 513, heartbeat("silent", "g", "T"))
	stone := b.connect()
	stone.as(remoting.Java, 20, heartbeat("stone", "g", "T"))
	var asked *remoting.Command
	angry := b.connectAs(func(c *remoting.Command) *remoting.Command {
		if protocol.Code(c.Code) == protocol.NotifyConsumerIdsChanged {
			return nil
		}
		asked = c
		return &remoting.Command{Code: 1, Remark: "no such consumer here"}
	})
	angry.as(remoting.Java, 409, heartbeat("angry", "g", "T"))

	for _, c := range []struct {
		client string
		code   protocol.Code
		says   string
	}{
		{"nobody", protocol.SystemError, "The Consumer <g> <nobody> not online"},
		{"stone", protocol.SystemError, "too old"},
		{"silent", protocol.ConsumeMsgTimeout, "did not answer in time"},
		{"angry", protocol.SystemError, "no such consumer here"},
		{"gone", protocol.ConsumerNotOnline, "the connection is closed"},
	} {
		resp := admin.do(protocol.GetConsumerRunningInfo, &protocol.RunningInfoHeader{ConsumerGroup: "g", ClientID: c.client, JStack: true}, nil)
		if resp.Code != int32(c.code) || !strings.Contains(resp.Remark, c.says) {
			t.Errorf("running info of %s: %d %q, want %d and %q", c.client, resp.Code, resp.Remark, c.code, c.says)
		}
	}
	if stack, _ := asked.Get("jstackEnable"); stack != "true" {
		t.Errorf("the client is not asked for its stacks: %+v", asked)
	}

	for _, c := range []struct {
		h    protocol.ConsumeDirectlyHeader
		says string
	}{
		{protocol.ConsumeDirectlyHeader{MsgID: "nonsense"}, "nonsense"},
		{protocol.ConsumeDirectlyHeader{MsgID: "UK2", Topic: "T"}, "no message UK2"},
		{protocol.ConsumeDirectlyHeader{MsgID: mq.MessageID(brokerAddr, 1<<40), Topic: "T"}, "neither by offset id nor by unique key"},
		{protocol.ConsumeDirectlyHeader{MsgID: sent.MsgID, BrokerName: "broker-b"}, "broker-b"},
		{protocol.ConsumeDirectlyHeader{MsgID: sent.MsgID}, "no such consumer here"}, // it came there
		{protocol.ConsumeDirectlyHeader{MsgID: "UK1", Topic: "T"}, "no such consumer here"},
	} {
		c.h.ConsumerGroup, c.h.ClientID = "g", "angry"
		asked = nil
		resp := admin.do(protocol.ConsumeMessageDirectly, &c.h, nil)
		if resp.Code == 0 || !strings.Contains(resp.Remark, c.says) {
			t.Errorf("consume directly %+v: %d %q, want it to say %q", c.h, resp.Code, resp.Remark, c.says)
		}
		if arrived := asked != nil; arrived != (c.says == "no such consumer here") || arrived && string(records(t, asked.Body)[0].Body()) != "body" {
			t.Errorf("consume directly %+v: the client was asked %+v", c.h, asked)
		}
	}
}

// All members are asked at the same time: those that are silent cost the others
// nothing but the one wait, and are named.
func TestStatusOfAGroupWithSilentMembers(t *testing.T) {
	t.Parallel()
	const silent = 60
	b := newBench(t, options{api: func(c *Config) { c.ClientTimeout = time.Second }})
	queue := protocol.MessageQueue{BrokerName: "broker-a", Topic: "T"}
	for i := range silent + 1 {
		var answer func(*remoting.Command) *remoting.Command
		if i == silent {
			answer = func(c *remoting.Command) *remoting.Command {
				if protocol.Code(c.Code) != protocol.GetConsumerStatusFromClient {
					return nil
				}
				return &remoting.Command{Body: protocol.EncodeBody(&protocol.ConsumerStatus{Queues: protocol.QueueTable[mq.QueueOffset]{queue: 42}})}
			}
		}
		id := "silent"
		if answer != nil {
			id = "speaks"
		}
		p := b.connectAs(answer)
		go func() {
			for range p.asked { // it is told of each new member, too
			}
		}()
		p.as(remoting.Java, 513, heartbeat(fmt.Sprint(id, i), "g"))
	}
	admin := b.connect()
	ask := func(client string) *remoting.Command {
		return admin.do(protocol.InvokeBrokerToGetConsumerStatus, &protocol.ConsumerStatusHeader{Topic: "T", Group: "g", ClientAddr: client}, nil)
	}
	if resp := ask("speaks60"); resp.Code != 0 || body[protocol.ConsumerStatus](t, resp).Clients["speaks60"][queue] != 42 {
		t.Errorf("the one that speaks: %+v", resp)
	}
	if resp := ask("silent3"); resp.Code != int32(protocol.ConsumeMsgTimeout) {
		t.Errorf("one that is silent: %d %q", resp.Code, resp.Remark)
	}
	if resp := ask("nobody"); resp.Code != int32(protocol.SystemError) || !strings.Contains(resp.Remark, "<nobody> not online") {
		t.Errorf("one that is not here: %d %q", resp.Code, resp.Remark)
	}
	began := time.Now()
	resp := ask("")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%d silent members take %v", silent, took)
	}
	if resp.Code != 0 || body[protocol.ConsumerStatus](t, resp).Clients["speaks60"][queue] != 42 || !strings.Contains(resp.Remark, "60 of 61 clients did not answer") {
		t.Errorf("all: %d %q", resp.Code, resp.Remark)
	}
	// The broker serves others while clients think.
	admin.send(remoting.NewRequest(int32(protocol.InvokeBrokerToGetConsumerStatus), protocol.EncodeFields(&protocol.ConsumerStatusHeader{Topic: "T", Group: "g"})...))
	if resp := b.connect().do(protocol.GetAllTopicConfig, nil, nil); resp.Code != 0 {
		t.Errorf("an administrator beside: %d %q", resp.Code, resp.Remark)
	}
}

// Tags are found as RocketMQ 5.5 finds them: the whole text, in this topic, and
// no key that only looks like them.
func TestQueryByTags(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.sendOK("T", "one", "TAGS\x01Tag B\x02KEYS\x01k\x02UNIQ_KEY\x01U1\x02")
	p.sendOK("T", "two", "TAGS\x01TagA\x02KEYS\x01T#Tag T#TagB\x02UNIQ_KEY\x01U2\x02")
	p.sendOK("Other", "three", "TAGS\x01TagA\x02UNIQ_KEY\x01U3\x02")
	for _, c := range []struct{ kind, key, want string }{
		{"T", "Tag B", "one"}, {"T", "TagA", "two"}, {"T", "Tag", ""}, {"T", "TagB", ""}, {"T", "k", ""}, {"T", "", ""},
		{"K", "T#TagB", "two"}, {"K", "T#TagA", ""}, {"K", "TagA", ""}, {"K", "k", "one"}, {"U", "U2", "two"}, {"", "U2", "two"},
	} {
		resp := p.do(protocol.QueryMessage, &protocol.QueryMessageHeader{Topic: "T", Key: c.key, Max: 32, End: 1 << 60, IndexType: c.kind}, nil)
		if resp.Code != 0 && resp.Code != int32(protocol.QueryNotFound) {
			t.Errorf("%+v: %d %q", c, resp.Code, resp.Remark)
			continue
		}
		got := ""
		for _, v := range records(t, resp.Body) {
			got += string(v.Body())
		}
		if got != c.want {
			t.Errorf("%+v: found %q", c, got)
		}
	}
	if resp := p.do(protocol.QueryMessage, &protocol.QueryMessageHeader{Topic: "T", Key: "k", Max: 32, End: 1 << 60, IndexType: "X"}, nil); resp.Code != int32(protocol.InvalidParameter) {
		t.Errorf("an unknown index: %d %q", resp.Code, resp.Remark)
	}
}
