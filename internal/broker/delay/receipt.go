package delay

import (
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// A receipt names the pending record that a delivered message was made from, as
// the value of the property SUNDIAL_RECEIPT:
//
//	<store id> <topic> <queue> <offset>
//
// The store takes it off everything that comes from outside, so it can only be
// the delivery's own.
type receipt struct {
	store  string
	queue  mq.QueueKey
	offset mq.QueueOffset
}

func appendReceipt(props []byte, store string, queue mq.QueueID, off mq.QueueOffset) []byte {
	var value [96]byte
	v := append(value[:0], store...)
	v = append(v, ' ')
	v = append(v, mq.TopicSchedule...)
	v = append(v, ' ')
	v = strconv.AppendInt(v, int64(queue), 10)
	v = append(v, ' ')
	v = strconv.AppendInt(v, int64(off), 10)
	return record.AppendProperty(props, mq.PropReceipt, string(v))
}

func parseReceipt(value string) (r receipt, ok bool) {
	parts := strings.Split(value, " ")
	if len(parts) != 4 {
		return r, false
	}
	id, err1 := strconv.ParseInt(parts[2], 10, 32)
	off, err2 := strconv.ParseInt(parts[3], 10, 64)
	if err1 != nil || err2 != nil || id < 0 || off < 0 || parts[0] == "" || parts[1] == "" {
		return r, false
	}
	return receipt{parts[0], mq.QueueKey{Topic: parts[1], ID: mq.QueueID(id)}, mq.QueueOffset(off)}, true
}
