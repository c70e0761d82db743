package brokerapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/broker/fetch"
	"github.com/sundial-mq/sundial/internal/filter"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// subscribed is the body of a heartbeat with one SQL92 subscription.
func subscribed(client, group, topic, expr string, version int64) []byte {
	h := &protocol.Heartbeat{ClientID: client}
	h.Consumers = append(h.Consumers, protocol.HeartbeatGroup{
		Group: group, ConsumeType: "CONSUME_PASSIVELY", MessageModel: "CLUSTERING", ConsumeFromWhere: "CONSUME_FROM_FIRST_OFFSET",
		Subscriptions: protocol.Set[protocol.Subscription]{
			{Topic: topic, Expression: expr, ExpressionType: filter.SQL92, Version: version},
			{Topic: mq.RetryTopic(group), Expression: "*", ExpressionType: filter.TAG, Version: version},
		},
	})
	return protocol.EncodeBody(h)
}

// bodies are the messages of the answer to a pull.
func bodies(t testing.TB, resp *remoting.Command) string {
	t.Helper()
	var out []string
	for _, v := range records(t, resp.Body) {
		out = append(out, string(v.Body()))
	}
	return strings.Join(out, " ")
}

// F01: SQL92 on defaults, from subscription to message; what cannot be read is
// refused when it is subscribed to, with its place.
func TestF01SubscribeBySQL(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	for i := range 4 {
		p.sendOK("T", fmt.Sprint(i), fmt.Sprintf("n\x01%d\x02", i))
	}
	p.sendOK("T", "none", "")
	p.sendOK("T", "text", "n\x01many\x02")
	for _, c := range []struct{ expr, want string }{
		{"n > 1", "2 3"}, {"n >= 1.5 AND n < 3", "2"}, {"n IS NULL", "none"}, {"NOT (n > 1)", "0 1"}, {"n = 'many' OR n = 0", "0 text"}, {"n > 100", ""},
	} {
		group := "g" + fmt.Sprint(len(c.expr))
		p.ok(protocol.HeartBeat, nil, subscribed("c@1", group, "T", c.expr, 7))
		h := pullOf(group, "T", 0)
		h.SysFlag, h.Subscription, h.SubVersion = 0, "", 7
		resp := p.pull(h)
		if got := bodies(t, resp); got != c.want || fields[struct {
			Next int64 `h:"nextBeginOffset"`
		}](t, resp).Next != 6 {
			t.Errorf("%s: got %q with code %d %v, want %q", c.expr, got, resp.Code, resp.Fields, c.want)
		}
		if c.want == "" && resp.Code != int32(protocol.PullRetryImmediately) {
			t.Errorf("%s: code %d", c.expr, resp.Code)
		}
	}

	check := p.do(protocol.CheckClientConfig, nil, protocol.EncodeBody(&protocol.CheckClient{
		ClientID: "c@1", Group: "bad", Subscription: &protocol.Subscription{Topic: "T", ExpressionType: filter.SQL92, Expression: "n >>> 3"}}))
	beat := p.ok(protocol.HeartBeat, nil, subscribed("c@1", "bad", "T", "n >>> 3", 7))
	h := pullOf("bad", "T", 0)
	h.SysFlag, h.Subscription = 0, ""
	for what, resp := range map[string]*remoting.Command{"check": check, "pull": p.pull(h)} {
		if resp.Code != int32(protocol.SubscriptionParseFailed) || !strings.Contains(resp.Remark, "column 4") || !strings.Contains(resp.Remark, "n >^>> 3") {
			t.Errorf("%s: %d %q", what, resp.Code, resp.Remark)
		}
	}
	if !strings.Contains(beat.Remark, "group bad to topic T") || !strings.Contains(beat.Remark, "column 4") {
		t.Errorf("the heartbeat is answered %q", beat.Remark)
	}
	// The retry topic of that group is served, its subscription is good.
	h = pullOf("bad", mq.RetryTopic("bad"), 0)
	h.SysFlag, h.Subscription = 0, ""
	if resp := p.pull(h); resp.Code != int32(protocol.PullNotFound) {
		t.Errorf("retries: %d %q", resp.Code, resp.Remark)
	}
}

// F01: switched off, the refusal names the switch.
func TestF01SQLOff(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{fetch: func(c *fetch.Config) { c.PropertyFilter = false }}).connect()
	p.sendOK("T", "x", "")
	check := p.do(protocol.CheckClientConfig, nil, protocol.EncodeBody(&protocol.CheckClient{
		ClientID: "c", Group: "g", Subscription: &protocol.Subscription{Topic: "T", ExpressionType: filter.SQL92, Expression: "a > 1"}}))
	h := pullOf("g", "T", 0)
	h.ExpressionType, h.Subscription = filter.SQL92, "a > 1"
	for what, resp := range map[string]*remoting.Command{"check": check, "pull": p.pull(h)} {
		if resp.Code != int32(protocol.SystemError) || !strings.Contains(resp.Remark, "does not support consumer to filter message by SQL92") || !strings.Contains(resp.Remark, "enablePropertyFilter") {
			t.Errorf("%s: %d %q", what, resp.Code, resp.Remark)
		}
	}
}

// F02: pulls of both kinds bring their expression along.
func TestF02PullsBringTheirSQL(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.sendOK("T", "1", "n\x011\x02")
	p.sendOK("T", "2", "n\x012\x02")
	for _, code := range []protocol.Code{protocol.PullMessage, protocol.LitePullMessage} {
		h := pullOf("g", "T", 0)
		h.ExpressionType, h.Subscription = filter.SQL92, "n = 2"
		resp := p.ask(&remoting.Command{Code: int32(code), Version: 479, Fields: h.Encode()})
		if got := bodies(t, resp); got != "2" {
			t.Errorf("%d: %d %q, %q", code, resp.Code, resp.Remark, got)
		}
		h.Subscription = "n == 2"
		if resp := p.ask(&remoting.Command{Code: int32(code), Version: 479, Fields: h.Encode()}); resp.Code != int32(protocol.SubscriptionParseFailed) {
			t.Errorf("%d: bad SQL is answered %d %q", code, resp.Code, resp.Remark)
		}
		h.ExpressionType, h.Subscription = "XPATH", "n"
		if resp := p.ask(&remoting.Command{Code: int32(code), Version: 479, Fields: h.Encode()}); resp.Code != int32(protocol.SubscriptionParseFailed) {
			t.Errorf("%d: an unknown type is answered %d %q", code, resp.Code, resp.Remark)
		}
	}
}

// A subscription gives way to a newer one only, and a pull by one that is not
// known yet is told so.
func TestVersionsOfSQLSubscriptions(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.sendOK("T", "1", "n\x011\x02")
	p.sendOK("T", "2", "n\x012\x02")
	pull := func(version int64) *remoting.Command {
		h := pullOf("g", "T", 0)
		h.SysFlag, h.Subscription, h.SubVersion = 0, "", version
		return p.pull(h)
	}
	p.ok(protocol.HeartBeat, nil, subscribed("c@1", "g", "T", "n = 1", 5))
	if got := bodies(t, pull(5)); got != "1" {
		t.Errorf("version 5: %q", got)
	}
	if resp := pull(6); resp.Code != int32(protocol.SubscriptionNotLatest) {
		t.Errorf("a version ahead: %d %q", resp.Code, resp.Remark)
	}
	p.ok(protocol.HeartBeat, nil, subscribed("c@1", "g", "T", "n = 2", 4))
	if got := bodies(t, pull(5)); got != "1" {
		t.Errorf("an older version came: %q", got)
	}
	p.ok(protocol.HeartBeat, nil, subscribed("c@1", "g", "T", "n = 2", 6))
	if got := bodies(t, pull(6)); got != "2" {
		t.Errorf("version 6: %q", got)
	}
}

// The retries of a group that filters are not filtered: they passed when they
// were new, and a group that changes its mind still gets them.
func TestRetriesPassSQL(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.ok(protocol.HeartBeat, nil, subscribed("c@1", "g", "T", "n = 1", 5))
	p.sendOK("T", "1", "n\x011\x02")
	h := pullOf("g", "T", 0)
	h.SysFlag, h.Subscription, h.SubVersion = 0, "", 5
	v := records(t, p.pull(h).Body)[0]
	p.ok(protocol.ConsumerSendMsgBack, &protocol.SendBackHeader{Offset: int64(v.LogOffset()), Group: "g", DelayLevel: 1}, nil)
	p.ok(protocol.HeartBeat, nil, subscribed("c@1", "g", "T", "n = 2", 6))
	h = pullOf("g", mq.RetryTopic("g"), 0)
	h.SysFlag, h.Subscription, h.SubVersion = mq.PullSuspend, "", 6
	h.SuspendMillis = 15_000
	if got := bodies(t, p.pull(h)); got != "1" {
		t.Errorf("the retry: %q", got)
	}
}

// An SQL expression of 64 KB is served, a longer one refused with its length,
// one that is only parentheses with its depth.
func TestSQLOf64KBOnTheWire(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.sendOK("T", "x", "n\x0107999\x02")
	var list []string
	for i := range 8000 {
		list = append(list, fmt.Sprintf("'%05d'", i))
	}
	h := pullOf("g", "T", 0)
	h.ExpressionType, h.Subscription = filter.SQL92, "n IN ("+strings.Join(list, ",")+")"
	if resp := p.pull(h); bodies(t, resp) != "x" {
		t.Errorf("%d bytes: %d %q", len(h.Subscription), resp.Code, resp.Remark)
	}
	for expr, want := range map[string]string{
		"n = '" + strings.Repeat("x", 70_000) + "'": "the limit is 65536",
		strings.Repeat("(", 60_000):                 "more than 256 levels",
	} {
		h.Subscription = expr
		if resp := p.pull(h); resp.Code != int32(protocol.SubscriptionParseFailed) || !strings.Contains(resp.Remark, want) || len(resp.Remark) > 500 {
			t.Errorf("%.20s: %d %.600q", expr, resp.Code, resp.Remark)
		}
	}
}

// A filter class is refused when it is subscribed to and when it is pulled by.
func TestClassFilterIsRefused(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.sendOK("T", "x", "")
	sub := protocol.Subscription{Topic: "T", Expression: "org.example.Filter", ClassFilterMode: true, Version: 1}
	check := p.do(protocol.CheckClientConfig, nil, protocol.EncodeBody(&protocol.CheckClient{ClientID: "c", Group: "g", Subscription: &sub}))
	p.ok(protocol.HeartBeat, nil, protocol.EncodeBody(&protocol.Heartbeat{ClientID: "c", Consumers: protocol.Set[protocol.HeartbeatGroup]{
		{Group: "g", ConsumeType: "CONSUME_PASSIVELY", MessageModel: "CLUSTERING", Subscriptions: protocol.Set[protocol.Subscription]{sub}},
	}}))
	h := pullOf("g", "T", 0)
	h.SysFlag, h.Subscription, h.SubVersion = 0, "", 1
	brought := pullOf("g", "T", 0)
	brought.SysFlag |= mq.PullClassFilter
	for what, resp := range map[string]*remoting.Command{"check": check, "pull": p.pull(h), "pull that brings it": p.pull(brought)} {
		if resp.Code != int32(protocol.SubscriptionParseFailed) || !strings.Contains(resp.Remark, "filter class") {
			t.Errorf("%s: %d %q", what, resp.Code, resp.Remark)
		}
	}
}
