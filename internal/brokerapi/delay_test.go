package brokerapi

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// D23: a timed message that is still pending is found by its key and by its unique key
// on its real topic, and says when it is due.
func TestD23PendingTimedMessagesAreFound(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	due := time.Now().Add(time.Hour).UnixMilli()
	p.sendOK("T", "already here", "KEYS\x01k1\x02UNIQ_KEY\x01U0\x02")
	p.sendOK("T", "later", fmt.Sprintf("KEYS\x01k1 k2\x02UNIQ_KEY\x01U1\x02TIMER_DELIVER_MS\x01%d\x02", due))
	for key, want := range map[string]int{"k1": 2, "k2": 1, "U1": 1} {
		h := &protocol.QueryMessageHeader{Topic: "T", Key: key, Max: 32, End: 1 << 60, Unique: key == "U1"}
		rs := records(t, p.ok(protocol.QueryMessage, h, nil).Body)
		if len(rs) != want {
			t.Fatalf("%s: %d messages, want %d", key, len(rs), want)
		}
		v := rs[len(rs)-1]
		said, _ := v.Property(mq.PropDue)
		if _, hidden := v.Property(mq.PropRealTopic); string(v.Topic()) != "T" || string(v.Body()) != "later" || string(said) != fmt.Sprint(due) || hidden {
			t.Errorf("%s: %s %s %s", key, v.Topic(), v.Body(), v.Properties())
		}
	}
	old := &protocol.QueryMessageHeader{Topic: "T", Key: "k2", Max: 32, End: 1}
	if resp := p.do(protocol.QueryMessage, old, nil); resp.Code != int32(protocol.QueryNotFound) {
		t.Errorf("a window of the past: %d %s", resp.Code, resp.Remark)
	}
	p.ok(protocol.RecallDelayed, &protocol.DelayedHeader{Topic: "T", Unique: "U1"}, nil)
	gone := &protocol.QueryMessageHeader{Topic: "T", Key: "k2", Max: 32, End: 1 << 60}
	if resp := p.do(protocol.QueryMessage, gone, nil); resp.Code != int32(protocol.QueryNotFound) {
		t.Errorf("recalled, and found: %d %s", resp.Code, resp.Remark)
	}
}

// D25: a DELAY topic takes all four forms of a delay.
func TestD25DelayTopicsTakeAllForms(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.ok(protocol.UpdateAndCreateTopic, &protocol.CreateTopicHeader{Topic: "D", DefaultTopic: "TBW102", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: "+message.type=DELAY"}, nil)
	for _, form := range []string{
		"DELAY\x0118\x02", "TIMER_DELAY_SEC\x013600\x02", "TIMER_DELAY_MS\x013600000\x02", fmt.Sprintf("TIMER_DELIVER_MS\x01%d\x02", time.Now().Add(time.Hour).UnixMilli()),
	} {
		p.sendOK("D", "x", form)
	}
	eventually(t, "all four wait", func() bool {
		s := p.delays()
		return s.Pending == 3 && s.Levels == 1
	})
	if got := p.runtime(); got["timerCongestNum"] != "3" || got["timerOffsetBehind"] != "0" || got["timerReadBehind"] != "0" {
		t.Errorf("runtime info: %v", got)
	}
}

func (p *peer) delays() *protocol.DelayState {
	p.t.Helper()
	return body[protocol.DelayState](p.t, p.ok(protocol.GetDelayState, nil, nil))
}

// Timed messages are listed, counted, moved, fired and taken back, with true answers.
func TestTimedMessagesAreLookedAtAndChanged(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	base := time.Now().Add(time.Hour).Truncate(time.Second).UnixMilli()
	for i := range 5 {
		topic := []string{"T", "Other"}[i%2]
		p.sendOK(topic, "x", fmt.Sprintf("KEYS\x01k\x02UNIQ_KEY\x01U%d\x02TIMER_DELIVER_MS\x01%d\x02", i, base+int64(i)*60_000))
	}
	p.sendOK("T", "x", "DELAY\x0118\x02")
	eventually(t, "all wait", func() bool { return p.delays().Pending == 5 })

	list := func(h *protocol.ListDelayedHeader) (keys []string, next *protocol.DelayedCursor) {
		t.Helper()
		l := body[protocol.DelayedList](t, p.ok(protocol.ListDelayed, h, nil))
		for _, m := range l.Messages {
			keys = append(keys, m.Unique)
		}
		return keys, l.Next
	}
	keys, next := list(&protocol.ListDelayedHeader{Max: 3})
	if fmt.Sprint(keys) != "[U0 U1 U2]" || next == nil {
		t.Fatalf("the first three: %v, next %v", keys, next)
	}
	if keys, next = list(&protocol.ListDelayedHeader{Max: 3, AfterDue: next.Due, AfterSeq: &next.Seq}); fmt.Sprint(keys) != "[U3 U4]" || next != nil {
		t.Errorf("the rest: %v, next %v", keys, next)
	}
	if keys, _ = list(&protocol.ListDelayedHeader{Topic: "Other", From: base + 60_001}); fmt.Sprint(keys) != "[U3]" {
		t.Errorf("of a topic and a window: %v", keys)
	}
	if l := body[protocol.DelayedList](t, p.ok(protocol.FindDelayed, &protocol.FindDelayedHeader{Topic: "T", Key: "k"}, nil)); len(l.Messages) != 3 {
		t.Errorf("by key: %+v", l)
	}

	at := fmt.Sprintf("%d,%d,%d,%d", base-7_200_000, base, base+120_000, base+600_000)
	c := body[protocol.DelayedCounts](t, p.ok(protocol.CountDelayed, &protocol.CountDelayedHeader{At: at}, nil))
	if !slices.Equal(c.Timed, []int64{0, 2, 3}) {
		t.Errorf("timed %v", c.Timed)
	}
	hours := fmt.Sprintf("0,%d,%d", time.Now().Add(time.Hour).UnixMilli(), time.Now().Add(3*time.Hour).UnixMilli())
	if c = body[protocol.DelayedCounts](t, p.ok(protocol.CountDelayed, &protocol.CountDelayedHeader{At: hours}, nil)); !slices.Equal(c.Levels, []int64{0, 1}) {
		t.Errorf("levels %v", c.Levels)
	}

	say := func(code protocol.Code, h *protocol.DelayedHeader, want string) {
		t.Helper()
		if resp := p.do(code, h, nil); resp.Code != int32(protocol.IllegalOperation) || !strings.HasPrefix(resp.Remark, want) {
			t.Errorf("%s %+v: %d %q, want %s", protocol.RequestName(code), h, resp.Code, resp.Remark, want)
		}
	}
	p.ok(protocol.RecallDelayed, &protocol.DelayedHeader{Topic: "T", Unique: "U0"}, nil)
	say(protocol.RecallDelayed, &protocol.DelayedHeader{Topic: "T", Unique: "U0"}, "already done")
	say(protocol.RecallDelayed, &protocol.DelayedHeader{Topic: "T", Unique: "U1"}, "not found")
	say(protocol.FireDelayed, &protocol.DelayedHeader{Topic: "T", Seq: new(mq.QueueOffset(4711))}, "not found")

	moved := body[protocol.DelayedDone](t, p.ok(protocol.RescheduleDelayed, &protocol.DelayedHeader{Topic: "T", Unique: "U2", Due: base + 30_000}, nil))
	eventually(t, "it is indexed", func() bool {
		keys, _ = list(&protocol.ListDelayedHeader{})
		return fmt.Sprint(keys) == "[U2 U1 U3 U4]"
	})
	p.ok(protocol.FireDelayed, &protocol.DelayedHeader{Topic: "T", Seq: &moved.Seq}, nil)
	if v := p.await("g", "T", 0); string(v.Body()) != "x" {
		t.Errorf("fired: %s", v.Body())
	}
	say(protocol.RescheduleDelayed, &protocol.DelayedHeader{Topic: "T", Unique: "U2", Due: base}, "already done")

	s := p.delays()
	if s.Pending != 3 || s.Levels != 1 || s.First == nil || s.First.Unique != "U1" || s.NextDue != base+60_000 || len(s.Parked) != 0 {
		t.Errorf("state %+v", s)
	}
	if fmt.Sprint(s.Topics) != "[{Other 2} {T 1}]" {
		t.Errorf("topics %v", s.Topics)
	}
	m := body[protocol.TimerMetrics](t, p.ok(protocol.GetTimerMetrics, nil, nil))
	if m.Pending["Other"].Count != 2 || m.Pending["T"].Count != 1 {
		t.Errorf("timer metrics %+v", m)
	}
	check := p.ok(protocol.GetTimerCheckPoint, nil, nil).Body
	// Five sends, a recall and a move.
	if len(check) != 56 || binary.BigEndian.Uint64(check[16:]) != 7 {
		t.Errorf("checkpoint % x", check)
	}
	if a := body[protocol.DelayedAsides](t, p.ok(protocol.ListDelayedAside, nil, nil)); a.Total != 0 || a.Messages == nil {
		t.Errorf("aside %+v", a)
	}
	for _, bad := range []struct {
		code   protocol.Code
		header any
		says   string
	}{
		{protocol.CountDelayed, &protocol.CountDelayedHeader{At: "5"}, "want 2 to 1001"},
		{protocol.CountDelayed, &protocol.CountDelayedHeader{At: "5,4"}, "place 2"},
		{protocol.CountDelayed, &protocol.CountDelayedHeader{At: strings.Repeat("1,", 5000)}, "want 2 to 1001"},
		{protocol.ListDelayed, &protocol.ListDelayedHeader{Max: 1001}, "1000"},
		{protocol.RecallDelayed, &protocol.DelayedHeader{Topic: "T"}, "uniqueKey or seq"},
		{protocol.RecallDelayed, &protocol.DelayedHeader{Topic: "T", Seq: new(mq.QueueOffset(-1))}, "0 or more"},
		{protocol.RescheduleDelayed, &protocol.DelayedHeader{Topic: "T", Unique: "U1"}, "due"},
		{protocol.RescheduleDelayed, &protocol.DelayedHeader{Topic: "Other", Unique: "U1", Due: 1 << 60}, "timerMaxDelaySec"},
	} {
		if resp := p.do(bad.code, bad.header, nil); resp.Code != int32(protocol.InvalidParameter) || !strings.Contains(resp.Remark, bad.says) {
			t.Errorf("%+v: %d %q", bad.header, resp.Code, resp.Remark)
		}
	}
}
