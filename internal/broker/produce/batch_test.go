package produce

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
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
	good := string(block("A", "1"))
	for _, c := range []struct {
		name string
		req  Request
		says string
	}{
		{"a delayed item", Request{Body: batch("a", good, "b", string(block("DELAY", "2")))}, "item 1"},
		{"a timed item", Request{Body: batch("a", string(block("TIMER_DELAY_SEC", "2")))}, "item 0"},
		{"a transactional item", Request{Body: batch("a", string(block("TRAN_MSG", "true")))}, "item 0"},
		{"a delayed batch", Request{Body: batch("a", good), Properties: block("DELAY", "1")}, "the batch"},
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
