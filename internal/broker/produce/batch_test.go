package produce

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/delay"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// batch writes bodies and property blocks, by turns, as clients do.
func batch(parts ...string) []byte {
	var b []byte
	for i := 0; i < len(parts); i += 2 {
		body, props := parts[i], parts[i+1]
		b = binary.BigEndian.AppendUint32(b, uint32(22+len(body)+len(props)))
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
		b = binary.BigEndian.AppendUint32(b, uint32(i/2))
		b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
		b = append(b, body...)
		b = binary.BigEndian.AppendUint16(b, uint16(len(props)))
		b = append(b, props...)
	}
	return b
}

// F04: a batch is taken wherever a single message is, even of one.
func TestF04BatchesOfAnySize(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	next := mq.QueueOffset(0)
	for _, n := range []int{1, 2, 100} {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprint("body ", i), string(open(block("TAGS", fmt.Sprint("t", i), "WAIT", fmt.Sprint(i%2 == 0)))))
		}
		res := b.sent(&Request{Topic: "T", Queue: 1, Batch: true, Body: batch(parts...)})
		ids := strings.Split(res.MessageID, ",")
		if len(ids) != n || res.Offset != next {
			t.Fatalf("batch of %d: %d ids, first offset %d, want %d", n, len(ids), res.Offset, next)
		}
		got := b.stored("T", 1)[next:]
		for i, m := range got {
			if string(m.Body) != fmt.Sprint("body ", i) || m.Flag != int32(i) || string(m.Properties) != parts[2*i+1] || mq.MessageID(host, m.LogOffset) != ids[i] {
				t.Fatalf("batch of %d, item %d: %+v", n, i, m)
			}
		}
		next += mq.QueueOffset(n)
	}
}

func TestBatchesBringInNothingOfOurs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sent(&Request{Topic: "T", Batch: true, Body: batch("x", string(block("A", "1", "SUNDIAL_RECEIPT", "s,t,0,1", "POP_CK", "p", "B", "2")))})
	if got := b.stored("T", 0); string(got[0].Properties) != string(block("A", "1", "B", "2")) {
		t.Errorf("stored %q", got[0].Properties)
	}
}

func TestBatchesThatCannotBe(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delay = rules(t)
	good := string(block("A", "1"))
	for _, c := range []struct {
		name string
		req  Request
		says string
	}{
		{"an item with half a level", Request{Body: batch("a", good, "b", string(block("DELAY", "2.5")))}, "item 1"},
		{"an item that is due in eleven years", Request{Body: batch("a", string(block("TIMER_DELAY_SEC", "346896000")))}, "timerMaxDelaySec"},
		{"an item that is due before it is sent", Request{Body: batch("a", good, "b", string(block("DELAY", "1")), "c", string(block("TIMER_DELAY_MS", "-1")))}, "item 2"},
		{"an item that is due some day", Request{Body: batch("a", string(block("TIMER_DELIVER_MS", "x")))}, "item 0"},
		{"an item that recalls", Request{Body: batch("a", string(block("TIMER_DEL_UNIQKEY", "x", "TIMER_DELAY_MS", "1")))}, "recall"},
		{"a transactional item", Request{Body: batch("a", string(block("TRAN_MSG", "true")))}, "item 0"},
		{"a delayed batch", Request{Body: batch("a", good), Properties: block("DELAY", "1")}, "the batch"},
		{"a timed batch", Request{Body: batch("a", good), Properties: block("TIMER_DELAY_MS", "1")}, "the batch"},
		{"a transactional batch", Request{Body: batch("a", good), SysFlag: mq.SysTxPrepared}, "transactional"},
		{"a batch within the batch", Request{Body: batch("a", good), SysFlag: mq.SysInnerBatch}, "0x80"},
		{"an empty item", Request{Body: batch("a", good, "", good)}, "item 1"},
		{"an item with too many properties", Request{Body: batch("a", good, "b", string(block("x", strings.Repeat("y", 32000))))}, "item 1"},
		{"half an item", Request{Body: batch("a", good)[:20]}, "item 0"},
		{"a retry topic", Request{Topic: mq.RetryTopic("g"), Body: batch("a", good)}, "retry"},
	} {
		req := c.req
		req.Batch = true
		if req.Topic == "" {
			req.Topic = "T"
		}
		if _, err := b.send(&req); !errors.Is(err, mq.ErrIllegalMessage) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want a refusal that names %q", c.name, err, c.says)
		}
	}
	if got := b.stored("T", 0); len(got) != 0 {
		t.Errorf("%d messages of refused batches are stored", len(got))
	}
	for _, topic := range []string{mq.TopicSchedule, mq.TopicTimer} {
		if got := b.stored(topic, 0); len(got) != 0 {
			t.Errorf("%d messages of refused batches wait in %s", len(got), topic)
		}
	}
}

// rules are the broker's own.
func rules(t testing.TB) delay.Rules {
	t.Helper()
	levels, err := delay.ParseLevels(delay.DefaultLevels)
	if err != nil {
		t.Fatal(err)
	}
	return delay.Rules{Levels: levels, Timers: delay.DefaultTimers(), Now: time.Now}
}

// Each item of a batch goes where it waits: by its level, by its due time, or
// nowhere. A level outweighs a due time.
func TestItemsOfABatchAreDelayed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.delay = rules(t)
	far := time.Now().Add(time.Hour).UnixMilli()
	items := batch(
		"now", string(block("A", "1")),
		"level 2", string(block("DELAY", "2", "TIMER_DELAY_MS", "77")),
		"in an hour", string(block("TIMER_DELIVER_MS", fmt.Sprint(far), "SUNDIAL_DUE", "1")),
		"level 1", string(block("DELAY", "1")),
		"past", string(block("TIMER_DELIVER_MS", "1000")),
		"in a minute", string(block("TIMER_DELAY_SEC", "60")),
		"no level", string(block("DELAY", "0")),
	)
	before := time.Now().UnixMilli()
	res := b.sent(&Request{Topic: "T", Queue: 1, Batch: true, Body: items})
	after := time.Now().UnixMilli()
	ids := strings.Split(res.MessageID, ",")
	if len(ids) != 7 || res.Messages != 7 || res.Queue != 1 {
		t.Fatalf("answered %+v", res)
	}
	n := map[string]int{}
	last := mq.LogOffset(-1)
	for _, c := range []struct {
		id    int
		topic string
		queue mq.QueueID
	}{{0, "T", 1}, {1, mq.TopicSchedule, 1}, {2, mq.TopicTimer, 0}, {3, mq.TopicSchedule, 0}, {4, "T", 1}, {5, mq.TopicTimer, 0}, {6, "T", 1}} {
		key := fmt.Sprint(c.topic, c.queue)
		got := b.stored(c.topic, c.queue)
		if len(got) <= n[key] {
			t.Fatalf("item %d is not in %s/%d", c.id, c.topic, c.queue)
		}
		m := got[n[key]]
		n[key]++
		if mq.MessageID(host, m.LogOffset) != ids[c.id] || m.Flag != int32(c.id) || m.LogOffset <= last {
			t.Errorf("item %d is stored as %+v", c.id, m)
		}
		last = m.LogOffset
		if c.topic != "T" && (property(t, &m, mq.PropRealTopic) != "T" || property(t, &m, mq.PropRealQueueID) != "1") {
			t.Errorf("item %d is on its way to %q", c.id, m.Properties)
		}
	}
	timers := b.stored(mq.TopicTimer, 0)
	if got := property(t, &timers[0], mq.PropDue); got != fmt.Sprint(far) {
		t.Errorf("due at %s, want %d", got, far)
	}
	if got, _ := strconv.ParseInt(property(t, &timers[1], mq.PropDue), 10, 64); got < before+60_000 || got > after+60_000 {
		t.Errorf("due in %d ms, want 60,000", got-before)
	}
	if got := b.stored("T", 1); len(got) != 3 {
		t.Errorf("%d messages are there at once, want 3", len(got))
	}
	// What the broker adds has to fit; otherwise nothing is stored.
	huge := string(block("x", strings.Repeat("y", record.MaxProperties-PropertyReserve-30), "DELAY", "1"))
	b.sent(&Request{Topic: strings.Repeat("t", 127), Batch: true, Body: batch("a", huge, "b", huge)})
	if got := b.stored(mq.TopicSchedule, 0); len(got) != 3 {
		t.Errorf("%d messages wait at level 1, want 3", len(got))
	}
}

// S25: 32,767 bytes of properties and more in a batch damage nothing.
func TestS25HugeProperties(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, n := range []int{32767, 32768, 65536} {
		props := string(block("x", strings.Repeat("y", n-3)))
		if _, err := b.send(&Request{Topic: "T", Batch: true, Body: batch("a", "", "b", props, "c", "")}); !errors.Is(err, mq.ErrIllegalMessage) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	b.sent(&Request{Topic: "T", Body: []byte("after")})
	if got := b.stored("T", 0); len(got) != 1 || string(got[0].Body) != "after" {
		t.Errorf("the queue holds %+v", got)
	}
}
