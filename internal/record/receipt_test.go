package record

import (
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
)

func TestReceiptIsReadBack(t *testing.T) {
	t.Parallel()
	want := Receipt{Store: "id", Queue: mq.QueueKey{Topic: mq.TopicTransHalf, ID: 3}, Offset: 1 << 40}
	value, ok := Property(AppendReceipt(nil, want), mq.PropReceipt)
	if got, parsed := ParseReceipt(string(value)); !ok || !parsed || got != want {
		t.Errorf("%q is read as %+v", value, got)
	}
	for _, bad := range []string{"", "a b 1", "a b 1 x", "a b -1 2", " b 1 2", "a b 1 2 3 4", "a b 1 2 0", "a b 1 2 x"} {
		if got, ok := ParseReceipt(bad); ok {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}
