package brokerapi

import (
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// The table serves exactly what the code table says a broker serves.
func TestServedIsWhatTheCodeTableSays(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	served := map[protocol.Code]bool{}
	for _, c := range b.api.commands() {
		if served[c.code] {
			t.Errorf("%s is in the table twice", protocol.RequestName(c.code))
		}
		served[c.code] = true
	}
	for _, r := range protocol.Requests() {
		want := r.Served() && r.For&protocol.Broker != 0
		if served[r.Code] != want {
			t.Errorf("%s (%d): served %v, the code table says %v", r.Name, r.Code, served[r.Code], want)
		}
	}
}

func TestA02WhatIsNotServedSaysWhy(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	for _, r := range protocol.Requests() {
		if r.Served() && r.For&protocol.Broker != 0 {
			continue
		}
		resp := p.do(r.Code, nil, nil)
		if resp.Code != int32(protocol.RequestCodeNotSupported) || !strings.Contains(resp.Remark, r.Name) {
			t.Errorf("%s: %d %q", r.Name, resp.Code, resp.Remark)
		}
	}
	if resp := p.do(9999, nil, nil); resp.Code != int32(protocol.RequestCodeNotSupported) {
		t.Errorf("9999: %d %q", resp.Code, resp.Remark)
	}
}

// S17: every request without its fields gets a clean answer.
func TestS17RequestsWithoutFields(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	for _, c := range b.api.commands() {
		resp := p.do(c.code, nil, nil)
		switch protocol.Code(resp.Code) {
		case protocol.InvalidParameter:
			if !strings.Contains(resp.Remark, "missing field ") && !strings.Contains(resp.Remark, "body") {
				t.Errorf("%s: %q", protocol.RequestName(c.code), resp.Remark)
			}
		case protocol.Success: // it needs none
		default:
			t.Errorf("%s: %d %q", protocol.RequestName(c.code), resp.Code, resp.Remark)
		}
	}
}

// The life of a message through the front end, in both header forms.
func TestSendPullCommit(t *testing.T) {
	t.Parallel()
	for _, form := range []remoting.Serialize{remoting.JSON, remoting.Binary} {
		t.Run(form.String(), func(t *testing.T) {
			t.Parallel()
			p := newBench(t, options{}).connect()
			p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))

			m := message("T", "hello", "TAGS\x01a\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01U1\x02")
			m.Serialize = form
			resp := p.ask(m)
			var sent protocol.SendResponse
			if err := protocol.DecodeSendResponse(resp, &sent); err != nil || resp.Code != 0 {
				t.Fatalf("%v: %+v", err, resp)
			}
			if resp.Serialize != form || resp.Version != 513 {
				t.Errorf("answered in %v, version %d", resp.Serialize, resp.Version)
			}
			want := protocol.SendResponse{MsgID: mq.MessageID(brokerAddr, 0), TransactionID: "U1", Region: "DefaultRegion", TraceOn: true}
			if sent != want {
				t.Errorf("sent %+v, want %+v", sent, want)
			}

			got := p.pull(pullOf("g", "T", 0))
			var pulled protocol.PullResponse
			if err := protocol.DecodePullResponse(got, &pulled); err != nil || got.Code != 0 || got.Remark != "FOUND" {
				t.Fatalf("%v: %+v", err, got)
			}
			if pulled.Next != 1 || pulled.Min != 0 || pulled.Max != 1 {
				t.Errorf("pulled %+v", pulled)
			}
			rs := records(t, got.Body)
			if len(rs) != 1 || string(rs[0].Body()) != "hello" {
				t.Errorf("got %v", rs)
			}

			q := &protocol.QueryConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", SetZeroIfNotFound: new(false)}
			if resp := p.do(protocol.QueryConsumerOffset, q, nil); resp.Code != int32(protocol.QueryNotFound) {
				t.Errorf("offset before a commit: %d %s", resp.Code, resp.Remark)
			}
			p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 1}, nil)
			if off := fields[protocol.OffsetResponse](t, p.ok(protocol.QueryConsumerOffset, q, nil)).Offset; off != 1 {
				t.Errorf("committed %d", off)
			}

			view := p.ok(protocol.ViewMessageByID, &protocol.ViewMessageHeader{Offset: 0}, nil)
			if string(view.Body) != string(got.Body) {
				t.Errorf("view by id gives another record")
			}
			for _, key := range []string{"k1", "k2"} {
				h := &protocol.QueryMessageHeader{Topic: "T", Key: key, Max: 32, End: 1 << 60}
				if resp := p.ok(protocol.QueryMessage, h, nil); string(resp.Body) != string(got.Body) {
					t.Errorf("query by %s gives another record", key)
				}
			}
			h := &protocol.QueryMessageHeader{Topic: "T", Key: "U1", Max: 32, End: 1 << 60, Unique: true}
			if resp := p.ok(protocol.QueryMessage, h, nil); string(resp.Body) != string(got.Body) {
				t.Errorf("query by unique key gives another record")
			}
		})
	}
}

func TestAParkedPullGetsTheMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	consumer, producer := b.connect(), b.connect()
	producer.sendOK("T", "first", "")
	h := pullOf("g", "T", 1)
	h.SysFlag |= mq.PullSuspend
	h.SuspendMillis = 15000
	id := consumer.send(&remoting.Command{Code: int32(protocol.PullMessage), Fields: h.Encode()})
	eventually(t, "the pull is parked", func() bool { return b.parts.Fetch.Parked() == 1 })
	producer.sendOK("T", "second", "")
	resp := consumer.next()
	if rs := records(t, resp.Body); resp.Opaque != id || resp.Code != 0 || len(rs) != 1 || string(rs[0].Body()) != "second" {
		t.Errorf("got %+v", resp)
	}

	// A connection that closes takes its parked pulls along.
	h.QueueOffset = 2
	consumer.send(&remoting.Command{Code: int32(protocol.PullMessage), Fields: h.Encode()})
	eventually(t, "the pull is parked", func() bool { return b.parts.Fetch.Parked() == 1 })
	consumer.nc.Close()
	eventually(t, "the pull is forgotten", func() bool { return b.parts.Fetch.Parked() == 0 })
}
