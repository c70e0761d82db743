package brokerapi

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// What was sent and pulled is what every view shows.
func TestWhatWasSentAndPulledIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const sent, batched, delayed, pulled, back = 20, 5, 3, 12, 2
		b := newBench(t, options{})
		p := b.connect()
		p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
		for i := range sent {
			time.Sleep(time.Second)
			p.sendOK("T", fmt.Sprint("message ", i), "")
		}
		p.sendBatch("T", batched)
		for range delayed {
			p.sendOK("T", "later", "DELAY\x011\x02")
		}
		h := pullOf("g", "T", 0)
		h.MaxMsgNums = pulled
		first := records(t, p.pull(h).Body)
		bytes := 0
		for _, r := range first {
			bytes += len(r)
		}
		for i := range back {
			p.ok(protocol.ConsumerSendMsgBack, &protocol.SendBackHeader{Group: "g", Offset: int64(first[i].LogOffset()), DelayLevel: 1 - 2*int32(i), OriginTopic: "T"}, nil)
		}
		h.QueueOffset = 1000
		p.pull(h) // misses
		stats := func(name, key string) protocol.BrokerStats {
			t.Helper()
			return *body[protocol.BrokerStats](t, p.ok(protocol.ViewBrokerStatsData, &protocol.StatsHeader{Name: name, Key: key}, nil))
		}
		for _, c := range []struct {
			name, key string
			sum       int64
			mean      float64 // -1: not looked at
		}{
			{"TOPIC_PUT_NUMS", "T", sent + batched, float64(sent+batched) / (sent + 1)},
			{"TOPIC_PUT_NUMS", mq.TopicSchedule, delayed + 1, 1}, // and the message to be tried again
			{"QUEUE_PUT_NUMS", "T@0", sent + batched, -1},
			{"GROUP_GET_NUMS", "T@g", pulled, pulled},
			{"GROUP_GET_SIZE", "T@g", int64(bytes), float64(bytes)},
			{"QUEUE_GET_NUMS", "T@0@g", pulled, pulled},
			{"SNDBCK_PUT_NUMS", "T@g", back, 1},
			{"DLQ_PUT_NUMS", "g", 1, 1},
			{"BROKER_PUT_NUMS", "DefaultCluster", sent + batched + delayed + back, 0},
			{"BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", "DefaultCluster", sent + batched + 1, 0}, // and the dead letter
			{"BROKER_GET_NUMS", "DefaultCluster", pulled, 0},
		} {
			s := stats(c.name, c.key)
			if s.Minute.Sum != c.sum || s.Hour.Sum != c.sum || s.Day.Sum != c.sum || c.mean >= 0 && float64(s.Minute.Mean) != c.mean {
				t.Errorf("%s %s: %+v, want %d, %v a call", c.name, c.key, s, c.sum, c.mean)
			}
		}
		if resp := p.do(protocol.ViewBrokerStatsData, &protocol.StatsHeader{Name: "TOPIC_PUT_NUMS", Key: "none"}, nil); resp.Code != int32(protocol.SystemError) {
			t.Errorf("a topic that is not there: %d %s", resp.Code, resp.Remark)
		}
		if resp := p.do(protocol.ViewBrokerStatsData, &protocol.StatsHeader{Name: "BROKER_PUT_NUMS", Key: "other"}, nil); resp.Code != int32(protocol.SystemError) {
			t.Errorf("another cluster: %d %s", resp.Code, resp.Remark)
		}

		topic := body[protocol.TopicStats](t, p.ok(protocol.GetTopicStatsInfo, &protocol.TopicHeader{Topic: "T"}, nil))
		if want := stats("TOPIC_PUT_NUMS", "T").Minute.TPS; topic.PutTPS != want || want < 1 {
			t.Errorf("topicPutTps is %v, want %v", topic.PutTPS, want)
		}
		group := body[protocol.ConsumeStats](t, p.ok(protocol.GetConsumeStats, &protocol.ConsumeStatsHeader{ConsumerGroup: "g", Topic: "T"}, nil))
		if want := stats("GROUP_GET_NUMS", "T@g").Minute.TPS; group.TPS != want || want <= 0 {
			t.Errorf("consumeTps is %v, want %v", group.TPS, want)
		}
		info := body[protocol.KVTable](t, p.ok(protocol.GetBrokerRuntimeInfo, nil, nil)).Table
		for key, want := range map[string]int64{
			"msgPutTotalTodayNow": sent + batched + 1, "msgPutTotalTodayMorning": 0, "msgGetTotalTodayNow": pulled,
			"putMessageTimesTotal": sent + batched + delayed + back, "putMessageFailedTimes": 0, "dispatchBehindBytes": 0,
		} {
			if got := info[key]; got != strconv.FormatInt(want, 10) {
				t.Errorf("%s is %s, want %d", key, got, want)
			}
		}
		if got := info["putMessageDistributeTime"]; !strings.HasPrefix(got, fmt.Sprintf("[<=0ms]:%d [0~10ms]:0 ", sent+1+delayed)) {
			t.Errorf("put times %s", got)
		}

		p.ok(protocol.DeleteTopicInBroker, &protocol.TopicHeader{Topic: "T"}, nil)
		if resp := p.do(protocol.ViewBrokerStatsData, &protocol.StatsHeader{Name: "TOPIC_PUT_NUMS", Key: "T"}, nil); resp.Code != int32(protocol.SystemError) {
			t.Errorf("a deleted topic: %d %s", resp.Code, resp.Remark)
		}
		p.sendOK("T", "anew", "")
		if got := stats("TOPIC_PUT_NUMS", "T").Minute.Sum; got != 1 {
			t.Errorf("a topic made anew has %d messages", got)
		}
		p.nc.Close()
		b.stop()
	})
}

// Every key that RocketMQ 5.5.0 tells is told, with a value of the same form.
func TestRuntimeInfoHasRocketMQsKeys(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/runtime.json") // of a RocketMQ 5.5.0
	if err != nil {
		t.Fatal(err)
	}
	var theirs protocol.KVTable
	if err := protocol.DecodeBody(raw, &theirs); err != nil {
		t.Fatal(err)
	}
	p := newBench(t, options{}).connect()
	p.sendOK("T", "a", "DELAY\x011\x02")
	p.sendOK("T", "a", "DELAY\x013\x02")
	ours := body[protocol.KVTable](t, p.ok(protocol.GetBrokerRuntimeInfo, nil, nil)).Table
	form := func(s string) string { // numbers are all alike
		return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r >= '0' && r <= '9' }), "0")
	}
	for key, value := range theirs.Table {
		name := strings.ReplaceAll(key, "/data/store", "/store")
		got, ok := ours[name]
		switch {
		case strings.HasPrefix(key, "EndTransaction") && !ok:
			if r, _ := protocol.Lookup(protocol.EndTransaction); r.Served() {
				t.Errorf("%s is missing", key)
			}
		case !ok:
			t.Errorf("%s is missing", key)
		case strings.HasSuffix(key, "Tps"):
			for _, n := range strings.Fields(got) {
				if _, err := strconv.ParseFloat(n, 64); err != nil {
					t.Errorf("%s is %q", key, got)
				}
			}
		case key == "commitLogDirCapacity" || key == "remainHowManyDataToFlush" || key == "putMessageAverageSize" || strings.Contains(key, "DiskRatio"):
			if strings.TrimRight(got, "0123456789.") == "" != (strings.TrimRight(value, "0123456789.") == "") {
				t.Errorf("%s is %q, RocketMQ has %q", key, got, value)
			}
		case form(got) != form(value):
			t.Errorf("%s is %q, RocketMQ has %q", key, got, value)
		}
	}
}

func TestConsumeTimeSpan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, options{})
		p := b.connect()
		p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
		var at []int64
		for range 4 {
			p.sendOK("T", "x", "")
			at = append(at, time.Now().UnixMilli())
			time.Sleep(10 * time.Second)
		}
		ask := func() []protocol.TimeSpan {
			return body[protocol.TimeSpans](t, p.ok(protocol.QueryConsumeTimeSpan, &protocol.TimeSpanHeader{Topic: "T", Group: "g"}, nil)).Queues
		}
		s := ask()
		if len(s) != 4 || s[0].Min != at[0] || s[0].Max != at[3] || s[0].Consumed != at[0] || s[0].Delay != 40_000 {
			t.Errorf("nothing consumed: %+v", s)
		}
		if s[1].Min != -1 || s[1].Max != -1 || s[1].Consumed != -1 || s[1].Delay != 0 || s[1].MinText != spanText(-1) {
			t.Errorf("an empty queue: %+v", s[1])
		}
		for off, want := range map[int64][2]int64{2: {at[1], 20_000}, 4: {at[3], 0}} {
			p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: off}, nil)
			if s := ask()[0]; s.Consumed != want[0] || s.Delay != want[1] || s.ConsumedText != spanText(want[0]) {
				t.Errorf("%d consumed: %+v, want %v", off, s, want)
			}
		}
		if resp := p.do(protocol.QueryConsumeTimeSpan, &protocol.TimeSpanHeader{Topic: "none", Group: "g"}, nil); resp.Code != int32(protocol.TopicNotExist) {
			t.Errorf("an unknown topic: %d %s", resp.Code, resp.Remark)
		}
		p.nc.Close()
		b.stop()
	})
}

func TestNoReplicasAndNoTimersAreTold(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	p.sendOK("T", "x", "")
	ha := body[protocol.HAStatus](t, p.ok(protocol.GetBrokerHAStatus, nil, nil))
	if !ha.Master || len(ha.Replicas) != 0 || ha.InSync != 0 || ha.End == 0 {
		t.Errorf("%+v", ha)
	}
	if got := string(p.ok(protocol.GetTimerMetrics, nil, nil).Body); !strings.Contains(got, `"timingCount":{}`) {
		t.Error(got)
	}
}

func TestHumanBytes(t *testing.T) {
	t.Parallel()
	for n, want := range map[uint64]string{0: "0 B", 303: "303 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 252 << 30: "252.0 GiB", 3 << 50: "3.0 PiB"} {
		if got := humanBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for v, want := range map[float64]string{0.15: "0.15", 0: "0.0", 354.5: "354.5", 3: "3.0"} {
		if got := decimal(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

// sendBatch sends n messages in one batch.
func (p *peer) sendBatch(topic string, n int) {
	p.t.Helper()
	var items []byte
	for i := range n {
		text := fmt.Sprint("item ", i)
		items = binary.BigEndian.AppendUint32(items, uint32(22+len(text)))
		items = append(items, make([]byte, 12)...)
		items = binary.BigEndian.AppendUint32(items, uint32(len(text)))
		items = append(items, text...)
		items = append(items, 0, 0)
	}
	m := message(topic, string(items), "")
	m.Code = int32(protocol.SendBatchMessage)
	m.Set("m", "true")
	if resp := p.ask(m); resp.Code != 0 {
		p.t.Fatalf("batch: %d %s", resp.Code, resp.Remark)
	}
}
