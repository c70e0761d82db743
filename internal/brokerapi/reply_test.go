package brokerapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
)

const replyTopic = "DefaultCluster_REPLY_TOPIC"

// replyTo is a reply as clients of 4.9 and 5.5 write it.
func replyTo(client, text string) *remoting.Command {
	c := message(replyTopic, text, "MSG_TYPE\x01reply\x02REPLY_TO_CLIENT\x01"+client+"\x02UNIQ_KEY\x01U1\x02TTL\x0115000\x02CORRELATION_ID\x01c-7")
	c.Code = int32(protocol.SendReplyMessageV2)
	return c
}

func takes(*remoting.Command) *remoting.Command { return &remoting.Command{} }

func (p *peer) produces(client string) {
	p.ok(protocol.HeartBeat, nil, protocol.EncodeBody(&protocol.Heartbeat{ClientID: client, Producers: []protocol.ProducerGroup{{Group: "requesters"}}}))
}

// pushed is the next reply that a requester is handed.
func (p *peer) pushed() (*protocol.PushReplyHeader, []byte) {
	p.t.Helper()
	select {
	case c := <-p.asked:
		if c.Code != int32(protocol.PushReplyMessageToClient) || c.IsOneway() {
			p.t.Fatalf("asked %+v", c)
		}
		return fields[protocol.PushReplyHeader](p.t, c), c.Body
	case <-time.After(20 * time.Second):
		p.t.Fatal("no reply was pushed in 20 s")
	}
	return nil, nil
}

// F05: a request carries its cluster; the reply is stored, handed to the
// requester with the fields that RocketMQ gives, and the replier hears of
// success when the requester took it.
func TestF05RequestAndReply(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	requester, replier := b.connectAs(takes), b.connect()
	requester.produces("req@1")
	requester.sendOK("T", "question", "REPLY_TO_CLIENT\x01req@1\x02CORRELATION_ID\x01c-7\x02TTL\x0115000\x02")
	v := replier.await("g", "T", 0)
	if c, _ := v.Property("CLUSTER"); string(c) != "DefaultCluster" {
		t.Errorf("the request has cluster %q, and no reply could find its topic", c)
	}
	for _, code := range []protocol.Code{protocol.SendReplyMessageV2, protocol.SendReplyMessage} {
		resp := replier.ask(func() *remoting.Command { c := replyTo("req@1", "answer"); c.Code = int32(code); return c }())
		var ans protocol.SendResponse
		if err := protocol.DecodeSendResponse(resp, &ans); err != nil || resp.Code != 0 || ans.MsgID == "" || ans.Region != "DefaultRegion" {
			t.Errorf("the replier hears %d %q %+v %v", resp.Code, resp.Remark, ans, err)
		}
		h, text := requester.pushed()
		if string(text) != "answer" || h.Topic != replyTopic || h.ProducerGroup != "pg" || h.BornTime != 1700000000000 || h.StoreHost != brokerAddr.String() ||
			h.BornHost == "" || time.Since(time.UnixMilli(h.StoreTime)).Abs() > time.Minute {
			t.Errorf("the requester got %+v, %q", h, text)
		}
		for name, want := range map[string]string{"CORRELATION_ID": "c-7", "MSG_TYPE": "reply", "UNIQ_KEY": "U1", "TTL": "15000", "REPLY_TO_CLIENT": "req@1",
			"MSG_REGION": "DefaultRegion", "TRACE_ON": "true", "PUSH_REPLY_TIME": fmt.Sprint(h.StoreTime)} {
			if got, _ := record.Property([]byte(h.Properties), name); string(got) != want {
				t.Errorf("property %s is %q, want %q", name, got, want)
			}
		}
		if got := replier.await("g", replyTopic, ans.QueueOffset); string(got.Body()) != "answer" {
			t.Errorf("stored is %q", got.Body())
		}
	}
}

// F05: the requester comes back on another connection and is found there, also
// while the old one looks alive; when it is gone the replier is told so.
func TestF05RequesterReconnectsAndGoes(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	old, replier := b.connectAs(takes), b.connect()
	old.produces("req@1")
	again := b.connectAs(takes)
	again.produces("req@1")
	if resp := replier.ask(replyTo("req@1", "to the new one")); resp.Code != 0 {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
	if _, text := again.pushed(); string(text) != "to the new one" {
		t.Errorf("got %q", text)
	}
	again.nc.Close()
	eventually(t, "the new connection is forgotten", func() bool { return len(b.parts.Clients.Requesters("req@1")) == 1 })
	if resp := replier.ask(replyTo("req@1", "to the old one")); resp.Code != 0 {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
	if _, text := old.pushed(); string(text) != "to the old one" {
		t.Errorf("got %q", text)
	}
	old.nc.Close()
	eventually(t, "the old connection is forgotten", func() bool { return len(b.parts.Clients.Requesters("req@1")) == 0 })
	resp := replier.ask(replyTo("req@1", "to nobody"))
	var ans protocol.SendResponse
	if err := protocol.DecodeSendResponse(resp, &ans); err != nil || resp.Code != int32(protocol.SystemError) ||
		!strings.Contains(resp.Remark, "push reply message fail, channel of <req@1> not found") || ans.QueueOffset != 2 {
		t.Errorf("a requester that is gone: %d %q %+v %v", resp.Code, resp.Remark, ans, err)
	}
}

// F05: replies that cannot be handed on, with the true reason.
func TestF05RepliesThatFail(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{api: func(c *Config) { c.ClientTimeout = 50 * time.Millisecond }})
	silent := b.connectAs(nil)
	silent.produces("silent@1")
	says := b.connectAs(func(*remoting.Command) *remoting.Command {
		return &remoting.Command{Code: int32(protocol.SystemError), Remark: "I asked nothing"}
	})
	says.produces("no@1")
	p := b.connect()
	noClient := message(replyTopic, "x", "CORRELATION_ID\x01c-7\x02")
	noClient.Code = int32(protocol.SendReplyMessageV2)
	empty, batch, queue, missing := replyTo("no@1", ""), replyTo("no@1", "x"), replyTo("no@1", "x"), &remoting.Command{Code: int32(protocol.SendReplyMessage), Body: []byte("x")}
	for i := range batch.Fields {
		if batch.Fields[i].Key == "m" {
			batch.Fields[i].Value = "true"
		}
		if queue.Fields[i].Key == "e" {
			queue.Fields[i].Value = "7"
		}
	}
	for _, c := range []struct {
		what   string
		cmd    *remoting.Command
		code   protocol.Code
		remark string
		stored bool
	}{
		{"no client named", noClient, protocol.SystemError, "reply message properties[REPLY_TO_CLIENT] is null", true},
		{"nobody there", replyTo("nobody@1", "x"), protocol.SystemError, "channel of <nobody@1> not found", true},
		{"a client that does not answer", replyTo("silent@1", "x"), protocol.SystemError, "client did not answer in time", true},
		{"a client that says no", replyTo("no@1", "x"), protocol.SystemError, "I asked nothing", true},
		{"no body", empty, protocol.MessageIllegal, "no body", false},
		{"a batch", batch, protocol.MessageIllegal, "not a batch", false},
		{"no such queue", queue, protocol.InvalidParameter, "queue 7", false},
		{"no fields", missing, protocol.InvalidParameter, "producerGroup", false},
	} {
		key := mq.QueueKey{Topic: replyTopic}
		before := b.parts.Store.MaxOffset(key)
		resp := p.ask(c.cmd)
		if resp.Code != int32(c.code) || !strings.Contains(resp.Remark, c.remark) {
			t.Errorf("%s: %d %q", c.what, resp.Code, resp.Remark)
		}
		if got := b.parts.Store.MaxOffset(key) - before; (got == 1) != c.stored {
			t.Errorf("%s: %d replies were stored", c.what, got)
		}
		if len(resp.Fields) == 0 {
			t.Errorf("%s: Java clients fall over an answer without fields", c.what)
		}
	}
}

// A requester that hangs holds up nobody else's replies, and has a bound.
func TestAHangingRequesterIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	hangs, lives := b.connect(), b.connectAs(takes)
	hangs.produces("hangs@1")
	lives.produces("lives@1")
	p, other := b.connect(), b.connect()
	go func() {
		for range hangs.asked { // it reads and does not answer
		}
	}()
	for range maxRepliesRequester {
		p.send(replyTo("hangs@1", "x"))
	}
	eventually(t, "all replies wait", func() bool {
		b.api.replies.Lock()
		defer b.api.replies.Unlock()
		return b.api.replies.all.count == maxRepliesRequester
	})
	if resp := other.ask(replyTo("hangs@1", "x")); resp.Code != int32(protocol.SystemError) || !strings.Contains(resp.Remark, "the limit is 100") {
		t.Errorf("one too many: %d %q", resp.Code, resp.Remark)
	}
	if resp := other.ask(replyTo("lives@1", "x")); resp.Code != 0 {
		t.Errorf("another requester: %d %q", resp.Code, resp.Remark)
	}
	hangs.nc.Close()
	for range maxRepliesRequester {
		if resp := p.next(); resp.Code != int32(protocol.SystemError) {
			t.Fatalf("%d %q", resp.Code, resp.Remark)
		}
	}
	if b.api.replies.all != (waitingReplies{}) || len(b.api.replies.to) != 0 {
		t.Errorf("left: %+v", b.api.replies.to)
	}
}

// A hundred replies may be large: what waits for a requester that does not read is
// bounded in bytes, too.
func TestAHangingRequesterIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	hangs := b.connect()
	hangs.produces("hangs@1")
	p, other := b.connect(), b.connect()
	go func() {
		for range hangs.asked { // it reads and does not answer
		}
	}()
	large := strings.Repeat("x", 3<<20)
	const room = maxReplyBytesOfRequester / (3 << 20)
	for range room {
		p.send(replyTo("hangs@1", large))
	}
	eventually(t, "the replies wait", func() bool {
		b.api.replies.Lock()
		defer b.api.replies.Unlock()
		return b.api.replies.all.count == room
	})
	if resp := other.ask(replyTo("hangs@1", large)); resp.Code != int32(protocol.SystemError) || !strings.Contains(resp.Remark, "the limit of 16777216") {
		t.Errorf("one too many: %d %q", resp.Code, resp.Remark)
	}
	hangs.nc.Close()
	for range room {
		p.next()
	}
	if b.api.replies.all != (waitingReplies{}) || len(b.api.replies.to) != 0 {
		t.Errorf("left: %+v %+v", b.api.replies.all, b.api.replies.to)
	}
}

func TestRepliesThatAreNotStored(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{api: func(c *Config) { c.StoreReplies = false }})
	requester := b.connectAs(takes)
	requester.produces("req@1")
	var ans protocol.SendResponse
	resp := b.connect().ask(replyTo("req@1", "x"))
	if err := protocol.DecodeSendResponse(resp, &ans); err != nil || resp.Code != 0 || ans.MsgID != "0" {
		t.Errorf("%d %q %+v %v", resp.Code, resp.Remark, ans, err)
	}
	if n := b.parts.Store.MaxOffset(mq.QueueKey{Topic: replyTopic}); n != 0 {
		t.Errorf("%d replies are stored", n)
	}
}
