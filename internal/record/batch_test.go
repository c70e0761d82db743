package record_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

type wireBatch struct{ From, Case, Hex string }

// TestRocketMQBatches reads batches that RocketMQ's clients sent.
func TestRocketMQBatches(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, b := range lines[wireBatch](t, "testdata/rocketmq-batches.jsonl") {
		got.WriteString(b.From + ":")
		for item, err := range record.Batch(unhex(t, b.Hex)) {
			if err != nil {
				got.WriteString(" " + err.Error())
				break
			}
			id, _ := record.Property(item.Properties, "UNIQ_KEY")
			tag, _ := record.Property(item.Properties, "TAGS")
			got.WriteString(" " + string(item.Body) + "/" + string(id[len(id)-2:]) + "/" + string(tag))
		}
		got.WriteString("\n")
	}
	want := `client5-remoting: wire batch 0/04/TagA wire batch 1/05/TagA wire batch 2/06/TagA
client4: wire batch 0/04/TagA wire batch 1/05/TagA wire batch 2/06/TagA
raw: one/B1/ two/B2/
raw: message illegal: batch item 0 at byte 0: 11 bytes left, an item has at least 22
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// item is one item of a batch on the wire.
func item(body, props string) string {
	be := func(n, width int) string {
		b := make([]byte, width)
		for i := range b {
			b[width-1-i] = byte(n >> (8 * i))
		}
		return string(b)
	}
	return be(22+len(body)+len(props), 4) + be(0, 8) + be(7, 4) + be(len(body), 4) + body + be(len(props), 2) + props
}

func TestBatchErrors(t *testing.T) {
	t.Parallel()
	good := item("body", "A\x01b\x02")
	for _, c := range []struct{ name, batch, want string }{
		{"an item and a byte", good + "x", "item 1 at byte 30: 1 bytes left"},
		{"cut in the properties", good + good[:29], "item 1 at byte 30: property length 4 with 3 bytes left"},
		{"cut in the body", good[:23], "item 0 at byte 0: body length 4 with 1 bytes left"},
		{"a negative body length", good[:16] + "\xff\xff\xff\xff" + good[20:], "body length -1"},
		{"too long properties", item("b", strings.Repeat("x", 32768)), "property length 32768, a record holds at most 32767"},
	} {
		n := 0
		var last error
		for it, err := range record.Batch([]byte(c.batch)) {
			if err == nil && (string(it.Body) != "body" || it.Flag != 7) {
				t.Errorf("%s: item %+v", c.name, it)
			}
			last = err
			n++
		}
		if !errors.Is(last, mq.ErrIllegalMessage) || !strings.Contains(last.Error(), c.want) {
			t.Errorf("%s: %d items, then %v, want %q", c.name, n, last, c.want)
		}
	}
	for range record.Batch(nil) {
		t.Error("an empty batch has an item")
	}
	for range record.Batch([]byte(good + good)) {
		break // stopping early is allowed
	}
	for it, err := range record.Batch([]byte(item(strings.Repeat("b", 100), strings.Repeat("x", 32767)))) {
		if err != nil || len(it.Properties) != 32767 {
			t.Errorf("the longest properties: %v", err)
		}
	}
	// RocketMQ counts neither the size nor the checksum that stand there.
	for _, err := range record.Batch([]byte("\x00\x00\x00\x00" + good[4:])) {
		if err != nil {
			t.Errorf("a wrong total size: %v", err)
		}
	}
}
