package protocol

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/invariant"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/remoting"
)

func fullSend() SendHeader {
	return SendHeader{ProducerGroup: "pg", Topic: "t", DefaultTopic: "TBW102", DefaultTopicQueues: 4, QueueID: 3, SysFlag: 5,
		BornTime: 1700000000000, Flag: -7, Properties: "A\x01b\x02", ReconsumeTimes: 2, UnitMode: true, MaxReconsumeTimes: new(int32(16)),
		Batch: true, BrokerName: "broker-a"}
}

func TestSendHeaderInBothSpellings(t *testing.T) {
	t.Parallel()
	h := fullSend()
	for name, fields := range map[string][]remoting.Field{"letters": h.Encode(), "words": h.EncodeV1()} {
		var got SendHeader
		if err := DecodeSend(&remoting.Command{Code: int32(SendMessageV2), Fields: fields}, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, h) {
			t.Errorf("%s: got %+v, want %+v", name, got, h)
		}
	}
}

func TestSendHeaderSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	h := fullSend()
	for i, name := range sendNames {
		for _, code := range []Code{SendMessage, SendMessageV2} {
			fields := h.EncodeV1()
			if code == SendMessageV2 {
				fields = h.Encode()
			}
			fields = append(fields[:i:i], fields[i+1:]...)
			err := DecodeSend(&remoting.Command{Code: int32(code), Fields: fields}, new(SendHeader))
			if !errors.Is(err, mq.ErrInvalid) || !strings.Contains(err.Error(), "missing field "+name) {
				t.Errorf("without %s: %v", name, err)
			}
		}
	}
}

func TestSendHeaderNamesTheBadNumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, value string }{
		{"e", "abc"}, {"e", ""}, {"e", "2147483648"}, {"g", "9223372036854775808"}, {"g", "-"}, {"d", "1.5"}, {"h", " 1"}, {"l", "x"}, {"j", "0x1"},
	} {
		h := fullSend()
		fields := h.Encode()
		for i := range fields {
			if fields[i].Key == c.key {
				fields[i].Value = c.value
			}
		}
		err := DecodeSend(&remoting.Command{Code: 310, Fields: fields}, new(SendHeader))
		if !errors.Is(err, mq.ErrInvalid) || !strings.Contains(err.Error(), "field "+c.key+" is \""+c.value+"\"") {
			t.Errorf("%s=%q: %v", c.key, c.value, err)
		}
	}
}

func TestSendResponseFields(t *testing.T) {
	t.Parallel()
	r := SendResponse{MsgID: "7F00000100002A9F0000000000000000", QueueID: 3, QueueOffset: 1 << 40, TransactionID: "U", Region: "DefaultRegion", TraceOn: true}
	var got SendResponse
	if err := DecodeSendResponse(&remoting.Command{Fields: r.AppendFields(nil)}, &got); err != nil || got != r {
		t.Errorf("got %+v, %v", got, err)
	}
	refused := SendResponse{Region: "r", TraceOn: false}
	if f := refused.AppendFields(nil); len(f) != 2 || f[0].Value != "r" || f[1].Value != "false" {
		t.Errorf("a refused send is answered with %v", f)
	}
}

// The way of a send and of a pull through this package: no allocation to read a
// header, one to write an answer.
func TestHotPathAllocations(t *testing.T) {
	if invariant.On {
		t.Skip("the race detector allocates")
	}
	h := fullSend()
	h.MaxReconsumeTimes = nil
	send := &remoting.Command{Code: 310, Fields: h.Encode()}
	pull := &remoting.Command{Fields: (&PullHeader{ConsumerGroup: "g", Topic: "t", Subscription: "*"}).Encode()}
	sent := &SendResponse{MsgID: "id", QueueID: 3, QueueOffset: 1 << 40, TransactionID: "U", Region: "r"}
	pulled := &PullResponse{Next: 1 << 40, Max: 1 << 50}
	fields := make([]remoting.Field, 0, 8)
	var gotSend SendHeader
	var gotPull PullHeader
	for _, c := range []struct {
		name   string
		budget float64
		run    func()
	}{
		{"read a send", 0, func() { _ = DecodeSend(send, &gotSend) }},
		{"read a pull", 0, func() { _ = DecodePull(pull, &gotPull) }},
		{"answer a send", 1, func() { fields = sent.AppendFields(fields[:0]) }},
		{"answer a pull", 1, func() { fields = pulled.AppendFields(fields[:0]) }},
	} {
		if n := testing.AllocsPerRun(100, c.run); n > c.budget {
			t.Errorf("%s: %v allocations, the budget is %v", c.name, n, c.budget)
		}
	}
}

func TestPullHeaderThereAndBack(t *testing.T) {
	t.Parallel()
	h := PullHeader{ConsumerGroup: "g", Topic: "t", QueueID: 1, QueueOffset: 1 << 50, MaxMsgNums: 32, SysFlag: 7, CommitOffset: -1,
		SuspendMillis: 15000, Subscription: "a || b", SubVersion: 9, ExpressionType: "TAG", MaxMsgBytes: 5, RequestSource: -1}
	var got PullHeader
	if err := DecodePull(&remoting.Command{Fields: h.Encode()}, &got); err != nil || got != h {
		t.Errorf("got %+v, %v", got, err)
	}
	for i, name := range pullNames {
		fields := h.Encode()
		fields = append(fields[:i:i], fields[i+1:]...)
		if err := DecodePull(&remoting.Command{Fields: fields}, &got); !errors.Is(err, mq.ErrInvalid) || !strings.HasSuffix(err.Error(), "missing field "+name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestPullResponseThereAndBack(t *testing.T) {
	t.Parallel()
	r := PullResponse{SuggestBroker: 1, Next: math.MaxInt64, Min: math.MinInt64, Max: -5, TopicSysFlag: math.MinInt32, GroupSysFlag: math.MaxInt32}
	var got PullResponse
	if err := DecodePullResponse(&remoting.Command{Fields: r.AppendFields(nil)}, &got); err != nil || got != r {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFieldsByPlan(t *testing.T) {
	t.Parallel()
	type header struct {
		Name    string  `h:"name,required"`
		N       int32   `h:"n,required"`
		L       int64   `h:"l"`
		B       bool    `h:"b"`
		Maybe   *int32  `h:"maybe"`
		MaybeS  *string `h:"maybes"`
		Ignored string
	}
	field := func(kv ...string) (out []remoting.Field) {
		for i := 0; i < len(kv); i += 2 {
			out = append(out, remoting.Field{Key: kv[i], Value: kv[i+1]})
		}
		return out
	}
	var h header
	if err := DecodeFields(field("n", "1", "x", "y", "b", "TRUE", "name", "a", "n", "2", "maybe", "5", "maybes", "", "l", ""), &h); err != nil {
		t.Fatal(err)
	}
	if h.Name != "a" || h.N != 2 || !h.B || *h.Maybe != 5 || *h.MaybeS != "" || h.L != 0 {
		t.Errorf("got %+v", h)
	}
	var again header
	if err := DecodeFields(EncodeFields(&h), &again); err != nil || !reflect.DeepEqual(h, again) {
		t.Errorf("got %+v, %v", again, err)
	}
	for _, c := range []struct {
		fields []remoting.Field
		want   string
	}{
		{nil, "missing field name"},
		{field("name", "a"), "missing field n"},
		{field("name", "a", "n", ""), "missing field n"},
		{field("name", "a", "n", "x1"), `field n is "x1", want a 32-bit number`},
		{field("name", "a", "n", "1", "l", "99999999999999999999"), `field l is "99999999999999999999", want a 64-bit number`},
		{field("name", "a", "n", "1", "maybe", strings.Repeat("9", 100)), `field maybe is "` + strings.Repeat("9", 64) + `..."`},
	} {
		err := DecodeFields(c.fields, &header{})
		if !errors.Is(err, mq.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %s", c.fields, err, c.want)
		}
	}
}

// Case S17: every header with required fields says which one is missing.
func TestEveryHeaderSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		&SendBackHeader{}, &QueryConsumerOffsetHeader{}, &UpdateConsumerOffsetHeader{}, &QueueHeader{}, &SearchOffsetHeader{}, &ResetOffsetHeader{},
		&UnregisterClientHeader{}, &ConsumerGroupHeader{}, &ProducerGroupHeader{}, &TopicHeader{}, &MemberGroupHeader{}, &BrokerNameHeader{},
		&DeleteTopicNamesrvHeader{}, &ClusterHeader{}, &KVHeader{}, &KVKeyHeader{}, &KVNamespaceHeader{}, &RegisterBrokerHeader{}, &UnregisterBrokerHeader{},
		&QueryDataVersionHeader{}, &BrokerHeartbeatHeader{}, &CreateTopicHeader{}, &DeleteGroupHeader{}, &GroupHeader{}, &GroupTopicHeader{},
		&ConsumeStatsHeader{}, &QueryMessageHeader{}, &ViewMessageHeader{}, &QueryConsumeQueueHeader{}, &RunningInfoHeader{}, &ConsumeDirectlyHeader{},
		&ConsumerStatusHeader{}, &ForbiddenHeader{}, &CloneOffsetHeader{}, &CorrectionHeader{},
	} {
		p := planOf(reflect.TypeOf(v).Elem())
		for _, missing := range p.fields {
			if !missing.required {
				continue
			}
			var fields []remoting.Field
			for _, f := range p.fields {
				if f.name != missing.name {
					fields = append(fields, remoting.Field{Key: f.name, Value: "1"})
				}
			}
			err := DecodeFields(fields, reflect.New(reflect.TypeOf(v).Elem()).Interface())
			if !errors.Is(err, mq.ErrInvalid) || !strings.HasSuffix(err.Error(), "missing field "+missing.name) {
				t.Errorf("%T without %s: %v", v, missing.name, err)
			}
		}
	}
}

func TestParseInt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"-0", 0, true}, {"+5", 5, true}, {"9223372036854775807", math.MaxInt64, true}, {"-9223372036854775808", math.MinInt64, true},
		{"9223372036854775808", 0, false}, {"-9223372036854775809", 0, false}, {"9999999999999999999", 0, false}, {"00000000000000000001", 0, false},
		{"", 0, false}, {"-", 0, false}, {"1 ", 0, false}, {"１", 0, false},
	} {
		got, ok := parseInt(c.text, math.MinInt64, math.MaxInt64)
		if got != c.want || ok != c.ok {
			t.Errorf("parseInt(%q) = %d, %v", c.text, got, ok)
		}
	}
	if _, ok := parseInt("-2147483649", math.MinInt32, math.MaxInt32); ok {
		t.Error("-2147483649 passed as 32 bits")
	}
}

func TestAttributeChanges(t *testing.T) {
	t.Parallel()
	got, err := AttributeChanges("+message.type=FIFO,-reserve.time,+a=")
	if err != nil || !reflect.DeepEqual(got, map[string]string{"+message.type": "FIFO", "-reserve.time": "", "+a": ""}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"a=b", "+a", "-a=b", "+", "=", "+a=1,+a=2"} {
		if _, err := AttributeChanges(bad); !errors.Is(err, mq.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
