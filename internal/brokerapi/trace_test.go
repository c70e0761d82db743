package brokerapi

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/produce"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// A07: traces are messages of clients; their topic is made by the first, and
// they are found by each id they are about, as tools ask for them.
func TestA07TracesAreFoundByTheIDsTheyAreAbout(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.sendOK(mq.TopicTrace, "Pub...", "KEYS\x01ID1 order-7\x02TAGS\x01T\x02")
	p.sendOK(mq.TopicTrace, "SubBefore... of two", "KEYS\x01ID1 ID2\x02TAGS\x01T\x02")
	p.sendOK(mq.TopicTrace, "SubAfter... of another", "KEYS\x01ID2\x02TAGS\x01T\x02")
	for key, want := range map[string]string{"ID1": "Pub... SubBefore... of two", "order-7": "Pub...", "ID2": "SubBefore... of two SubAfter... of another"} {
		var got string
		eventually(t, "the traces of "+key+" are found", func() bool {
			resp := p.do(protocol.QueryMessage, &protocol.QueryMessageHeader{Topic: mq.TopicTrace, Key: key, Max: 64, End: time.Now().Add(time.Hour).UnixMilli()}, nil)
			got = bodies(t, resp)
			return got == want
		})
	}
}

// A07: the switch reaches senders, with every answer, and consumers, with every
// message; what a client claims does not count.
func TestA07TraceSwitch(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		b := newBench(t, options{api: func(c *Config) { c.TraceOn, c.Region = on, "R1" }, produce: func(c *produce.Config) { c.TraceOn, c.Region = on, "R1" }})
		p := b.connect()
		claims := "TRACE_ON\x01" + strconv.FormatBool(!on) + "\x02MSG_REGION\x01elsewhere\x02"
		if resp := p.sendOK("T", "x", claims); resp.TraceOn != on || resp.Region != "R1" {
			t.Errorf("the sender hears %+v", resp)
		}
		refused := p.ask(message("T", "", ""))
		var resp protocol.SendResponse
		if err := protocol.DecodeSendResponse(refused, &resp); err != nil || refused.Code == 0 || resp.TraceOn != on || resp.Region != "R1" {
			t.Errorf("the sender of a refused message hears %+v, %v", resp, err)
		}
		v := p.await("g", "T", 0)
		for name, want := range map[string]string{"TRACE_ON": strconv.FormatBool(on), "MSG_REGION": "R1"} {
			if got, _ := v.Property(name); string(got) != want {
				t.Errorf("traceOn=%v: %s is %q", on, name, got)
			}
		}
	}
}

// A08: a delayed message shows the consumer that traces it when it was sent, how
// long it was to wait, when it came, and which schedule event it was.
func TestA08DelayedMessagesShowPlannedAndActualTime(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	h := protocol.SendHeader{ProducerGroup: "pg", Topic: "T", DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 4, BornTime: time.Now().UnixMilli(), Properties: "DELAY\x011\x02UNIQ_KEY\x01ID1\x02"}
	if resp := p.ask(&remoting.Command{Code: int32(protocol.SendMessageV2), Version: 479, Fields: h.Encode(), Body: []byte("x")}); resp.Code != 0 {
		t.Fatal(resp.Remark)
	}
	v := p.await("g", "T", 0)
	level, _ := v.Property(mq.PropDelay)
	wait, _ := v.Property(mq.PropDelayMillis)
	receipt, _ := v.Property(mq.PropReceipt)
	planned, err := strconv.ParseInt(string(wait), 10, 64)
	if string(level) != "1" || err != nil || planned != 1000 || v.BornTime() != h.BornTime {
		t.Errorf("level %q, delay %q, born %d, sent %d: the planned time is not there", level, wait, v.BornTime(), h.BornTime)
	}
	if late := v.StoreTime() - v.BornTime() - planned; late < 0 || late > 15_000 {
		t.Errorf("came %d ms after its time", late)
	}
	if !strings.HasSuffix(string(receipt), " "+mq.TopicSchedule+" 0 0") {
		t.Errorf("the receipt is %q and names no schedule event", receipt)
	}
	if id, _ := v.Property(mq.PropUniqueKey); string(id) != "ID1" {
		t.Errorf("the unique key is %q, so send and consumption do not meet", id)
	}
}

// Compressed bodies, of each kind and none that exists, alone and in a batch,
// fresh, given back and delayed: neither bytes nor flags are touched.
func TestCompressedBodiesPassUntouched(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	zlib := []byte{0x78, 0x9c, 0, 1, 2, 0xff, 0xfe}
	for _, flag := range []mq.SysFlag{mq.SysCompressed, mq.SysCompressed | 1<<8, mq.SysCompressed | 2<<8, mq.SysCompressed | 3<<8, mq.SysCompressed | 7<<8} {
		const kept = mq.SysCompressed | mq.SysCompressType
		send := func(code protocol.Code, props string, body []byte, batch bool) *protocol.SendResponse {
			h := protocol.SendHeader{ProducerGroup: "pg", Topic: "T", DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 4, SysFlag: flag, Properties: props, Batch: batch}
			resp := p.ask(&remoting.Command{Code: int32(code), Version: 479, Fields: h.Encode(), Body: body})
			r := new(protocol.SendResponse)
			if err := protocol.DecodeSendResponse(resp, r); err != nil || resp.Code != 0 {
				t.Fatalf("%#x: %d %q %v", flag, resp.Code, resp.Remark, err)
			}
			return r
		}
		check := func(what string, v record.View) {
			t.Helper()
			if !bytes.Equal(v.Body(), zlib) || v.SysFlag()&kept != flag {
				t.Errorf("%s, %#x: body %x, flag %#x", what, flag, v.Body(), v.SysFlag())
			}
		}
		single := send(protocol.SendMessageV2, "", zlib, false)
		v := p.await("g", "T", single.QueueOffset)
		check("alone", v)
		batch := send(protocol.SendBatchMessage, "", wireBatch(zlib, zlib), true)
		check("in a batch", p.await("g", "T", batch.QueueOffset+1))
		p.ok(protocol.ConsumerSendMsgBack, &protocol.SendBackHeader{Offset: int64(v.LogOffset()), Group: "g", DelayLevel: -1}, nil)
		dead := records(t, p.pull(pullOf("g", mq.DLQTopic("g"), 0)).Body)
		check("dead letter", dead[len(dead)-1])
	}
	h := protocol.SendHeader{ProducerGroup: "pg", Topic: "D", DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 4, SysFlag: mq.SysCompressed | 2<<8, Properties: "DELAY\x011\x02"}
	if resp := p.ask(&remoting.Command{Code: int32(protocol.SendMessageV2), Version: 479, Fields: h.Encode(), Body: zlib}); resp.Code != 0 {
		t.Fatal(resp.Remark)
	}
	if v := p.await("g", "D", 0); !bytes.Equal(v.Body(), zlib) || v.SysFlag()&(mq.SysCompressed|mq.SysCompressType) != h.SysFlag {
		t.Errorf("delayed: body %x, flag %#x", v.Body(), v.SysFlag())
	}
}

// wireBatch is the body of a batch of messages without properties.
func wireBatch(bodies ...[]byte) []byte {
	var out []byte
	put := func(n int) { out = append(out, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)) }
	for _, b := range bodies {
		put(22 + len(b))
		put(0)
		put(0)
		put(0)
		put(len(b))
		out = append(append(out, b...), 0, 0)
	}
	return out
}

// F04: a batch is taken wherever a single message is: of one, of a hundred, of
// items that want to wait and items that do not; what it cannot hold is named.
func TestF04BatchesOverTheWire(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	send := func(code protocol.Code, queue mq.QueueID, flag mq.SysFlag, n int) *remoting.Command {
		h := protocol.SendHeader{ProducerGroup: "pg", Topic: "T", DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 4, QueueID: queue, SysFlag: flag, Batch: true}
		all := make([][]byte, n)
		for i := range all {
			all[i] = []byte(strconv.Itoa(i))
		}
		return p.ask(&remoting.Command{Code: int32(code), Version: 479, Fields: h.Encode(), Body: wireBatch(all...)})
	}
	for _, c := range []struct {
		code  protocol.Code
		queue mq.QueueID
		n     int
	}{{protocol.SendBatchMessage, 0, 1}, {protocol.SendBatchMessage, 0, 100}, {protocol.SendMessageV2, 1, 2}, {protocol.SendBatchMessage, -1, 3}} {
		resp := send(c.code, c.queue, 0, c.n)
		var r protocol.SendResponse
		if err := protocol.DecodeSendResponse(resp, &r); err != nil || resp.Code != 0 || strings.Count(r.MsgID, ",") != c.n-1 || c.queue >= 0 && r.QueueID != c.queue {
			t.Errorf("%d of %d: %d %q %+v %v", c.n, c.code, resp.Code, resp.Remark, r, err)
		}
	}
	for _, c := range []struct {
		queue mq.QueueID
		flag  mq.SysFlag
		code  protocol.Code
		says  string
	}{
		{9, 0, protocol.InvalidParameter, "queue 9"},
		{0, mq.SysInnerBatch, protocol.MessageIllegal, "a batch within"},
	} {
		if resp := send(protocol.SendBatchMessage, c.queue, c.flag, 2); resp.Code != int32(c.code) || !strings.Contains(resp.Remark, c.says) {
			t.Errorf("queue %d, flag %#x: %d %q", c.queue, c.flag, resp.Code, resp.Remark)
		}
	}
}
