package protocol

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
)

// RecallHandle names a timed message for RECALL_MESSAGE (370). On the wire it is
// base64url, with padding, of RocketMQ's five fields and our sequence behind them,
// separated by single spaces (RecallMessageHandle):
//
//	v1 <topic> <broker> <time> <unique key>[ <sequence>]
type RecallHandle struct {
	Topic  string
	Broker string
	Time   int64 // TIMER_OUT_MS + 1
	Unique string
	Seq    mq.QueueOffset // the message's offset in the timer topic, -1 when the handle has none
}

const recallVersion = "v1"

// String is the handle as it goes over the wire.
func (h RecallHandle) String() string {
	text := strings.Join([]string{recallVersion, h.Topic, h.Broker, strconv.FormatInt(h.Time, 10), h.Unique}, " ")
	if h.Seq >= 0 {
		text += " " + strconv.FormatInt(int64(h.Seq), 10)
	}
	return base64.URLEncoding.EncodeToString([]byte(text))
}

// ParseRecallHandle reads a handle of RocketMQ's or of ours. Errors wrap
// [mq.ErrIllegalOperation].
func ParseRecallHandle(s string) (h RecallHandle, err error) {
	bad := func(why string) (RecallHandle, error) {
		return RecallHandle{}, fmt.Errorf("%w: recall handle %.120q is invalid: %s", mq.ErrIllegalOperation, s, why)
	}
	raw, err := base64.URLEncoding.DecodeString(s)
	if err != nil {
		return bad("it is not base64url")
	}
	parts := strings.Split(string(raw), " ")
	if len(parts) < 5 || parts[0] != recallVersion {
		return bad("it does not read \"v1 topic broker time key\"")
	}
	h = RecallHandle{Topic: parts[1], Broker: parts[2], Unique: parts[4], Seq: -1}
	if h.Time, err = strconv.ParseInt(parts[3], 10, 64); err != nil {
		return bad("its time is no number")
	}
	if len(parts) > 5 {
		seq, err := strconv.ParseInt(parts[5], 10, 64)
		if err != nil || seq < 0 {
			return bad("its sequence is no number")
		}
		h.Seq = mq.QueueOffset(seq)
	}
	return h, nil
}

// RecallHeader is the request of RECALL_MESSAGE (370).
type RecallHeader struct {
	ProducerGroup string `h:"producerGroup"`
	Topic         string `h:"topic,required"`
	Handle        string `h:"recallHandle,required"`
}

// RecallResponse is its answer.
type RecallResponse struct {
	MsgID string `h:"msgId"` // the unique key
}
