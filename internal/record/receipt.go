package record

import (
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Receipt names the waiting record that a message was made from when the broker
// moved it on, as the value of the property SUNDIAL_RECEIPT:
//
//	<store id> <topic> <queue> <offset>[ <due>]
//
// with the due time of a message that waited for one.
//
// The broker takes the property off everything that comes from outside, so it can
// only be its own, and the message is the proof that the waiting one is done with.
type Receipt struct {
	Store  string
	Queue  mq.QueueKey
	Offset mq.QueueOffset
	Due    int64 // epoch ms, 0 for none
}

// AppendReceipt appends the property to the block props.
func AppendReceipt(props []byte, r Receipt) []byte {
	props = append(props, mq.PropReceipt...)
	props = append(props, mq.PropNameEnd)
	return append(r.appendValue(props), mq.PropValueEnd)
}

// String is the value of the property.
func (r Receipt) String() string {
	return string(r.appendValue(nil))
}

func (r Receipt) appendValue(v []byte) []byte {
	v = append(v, r.Store...)
	v = append(v, ' ')
	v = append(v, r.Queue.Topic...)
	v = append(v, ' ')
	v = strconv.AppendInt(v, int64(r.Queue.ID), 10)
	v = append(v, ' ')
	v = strconv.AppendInt(v, int64(r.Offset), 10)
	if r.Due != 0 {
		v = append(v, ' ')
		v = strconv.AppendInt(v, r.Due, 10)
	}
	return v
}

// ParseReceipt reads the value of the property. Its strings alias value.
func ParseReceipt(value string) (r Receipt, ok bool) {
	parts := strings.Split(value, " ")
	if len(parts) < 4 || len(parts) > 5 {
		return r, false
	}
	id, err1 := strconv.ParseInt(parts[2], 10, 32)
	off, err2 := strconv.ParseInt(parts[3], 10, 64)
	if err1 != nil || err2 != nil || id < 0 || off < 0 || parts[0] == "" || parts[1] == "" {
		return r, false
	}
	r = Receipt{Store: parts[0], Queue: mq.QueueKey{Topic: parts[1], ID: mq.QueueID(id)}, Offset: mq.QueueOffset(off)}
	if len(parts) == 5 {
		due, err := strconv.ParseInt(parts[4], 10, 64)
		if err != nil || due <= 0 {
			return Receipt{}, false
		}
		r.Due = due
	}
	return r, true
}
