package brokerapi

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// forged is what a client may try: the broker's own bookkeeping.
const forged = "SUNDIAL_RECEIPT\x01x rmq_sys_wheel_timer 0 0\x02SUNDIAL_DUE\x011\x02SUNDIAL_RECALLED\x01x rmq_sys_wheel_timer 0 0\x02" +
	"SUNDIAL_TX_CLIENT\x01evil\x02SUNDIAL_TX_DUE\x011\x02SUNDIAL_DELAY_MS\x011\x02SUNDIAL_DEAD_REASON\x01none\x02SUNDIAL_NEW\x011\x02" +
	"REAL_TOPIC\x01Elsewhere\x02REAL_QID\x019\x02TIMER_OUT_MS\x011\x02"

// forgeries are the names of the broker's own properties that v carries with the
// forged value.
func forgeries(props []byte) (found []string) {
	for name, value := range record.EachProperty(props) {
		if !strings.HasPrefix(string(name), "SUNDIAL_") {
			continue
		}
		if strings.Contains(forged, string(name)+"\x01"+string(value)+"\x02") {
			found = append(found, string(name))
		}
	}
	return found
}

// X18: the broker's own properties cannot be set by clients, on whatever path a
// message takes, and change neither where nor when it is delivered.
func TestX18BookkeepingCannotBeSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	requester, p := b.connectAs(takes), b.connect()
	requester.produces("req@1")
	check := func(path string, v record.View) {
		t.Helper()
		if found := forgeries(v.Properties()); len(found) > 0 {
			t.Errorf("%s: %v survive", path, found)
		}
		if kept, _ := v.Property("own"); string(kept) != "mine" {
			t.Errorf("%s: the client's own property is %q", path, kept)
		}
	}
	const mine = "own\x01mine\x02" + forged

	p.sendOK("Plain", "x", mine)
	check("send", p.await("g", "Plain", 0))

	item := make([]byte, 20, 512)
	item = append(append(item, 'x', 0, 0), mine...)
	binary.BigEndian.PutUint32(item, uint32(len(item)))
	binary.BigEndian.PutUint32(item[16:], 1)
	binary.BigEndian.PutUint16(item[21:], uint16(len(mine)))
	h := protocol.SendHeader{ProducerGroup: "pg", Topic: "Batch", DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 4, Batch: true}
	if resp := p.ask(&remoting.Command{Code: int32(protocol.SendBatchMessage), Version: 479, Fields: h.Encode(), Body: append(item, item...)}); resp.Code != 0 {
		t.Fatalf("batch: %d %s", resp.Code, resp.Remark)
	}
	check("batch", p.await("g", "Batch", 1))

	sent := time.Now()
	p.sendOK("Timed", "x", mine+"TIMER_DELAY_MS\x01600\x02")
	p.sendOK("Level", "x", mine+"DELAY\x011\x02")
	check("timed", p.await("g", "Timed", 0))
	if early := 600*time.Millisecond - time.Since(sent); early > 0 {
		t.Errorf("timed: %v early", early)
	}
	v := p.await("g", "Level", 0)
	check("level", v)
	if early := time.Second - time.Since(sent); early > 0 {
		t.Errorf("level: %v early", early)
	}

	for i, level := range []int32{1, -1} {
		topic, group := []string{"%RETRY%back0", "%DLQ%back1"}[i], fmt.Sprint("back", i)
		p.ok(protocol.ConsumerSendMsgBack, &protocol.SendBackHeader{Offset: int64(v.LogOffset()), Group: group, DelayLevel: level, OriginTopic: "Level"}, nil)
		if level < 0 { // its readers are people, and the broker lets nobody read it at first
			eventually(t, "the dead letter is there", func() bool { return b.parts.Store.MaxOffset(mq.QueueKey{Topic: topic}) == 1 })
			e, _ := b.parts.Store.Entry(mq.QueueKey{Topic: topic}, 0)
			dead, release, err := b.parts.Store.Record(e.Pos)
			if err != nil {
				t.Fatal(err)
			}
			check(topic, dead)
			release()
			continue
		}
		check(topic, p.await(group, topic, 0))
	}

	half := p.sendOK("Trans", "x", mine+"TRAN_MSG\x01true\x02PGROUP\x01pg\x02UNIQ_KEY\x01tx\x02")
	e, _ := b.parts.Store.Entry(mq.QueueKey{Topic: mq.TopicTransHalf}, half.QueueOffset)
	p.ok(protocol.EndTransaction, &protocol.EndTransactionHeader{
		ProducerGroup: "pg", QueueOffset: half.QueueOffset, LogOffset: e.Pos, Verdict: 8, MsgID: "tx", TransactionID: "tx",
	}, nil)
	check("committed", p.await("g", "Trans", 0))

	reply := message(replyTopic, "x", mine+"MSG_TYPE\x01reply\x02REPLY_TO_CLIENT\x01req@1\x02CORRELATION_ID\x01c\x02")
	reply.Code = int32(protocol.SendReplyMessageV2)
	if resp := p.ask(reply); resp.Code != 0 {
		t.Fatalf("reply: %d %s", resp.Code, resp.Remark)
	}
	pushed, _ := requester.pushed()
	if found := forgeries([]byte(pushed.Properties)); len(found) > 0 {
		t.Errorf("reply as pushed: %v survive", found)
	}
	check("reply", p.await("g", replyTopic, 0))

	// What goes straight to a topic of the broker's own is refused.
	for _, topic := range []string{mq.TopicTimer, mq.TopicSchedule, mq.TopicTransHalf, mq.TopicTransOp} {
		if resp := p.ask(message(topic, "x", mine)); resp.Code == 0 {
			t.Errorf("%s takes messages of clients", topic)
		}
	}
}
