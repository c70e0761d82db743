package protocol

import (
	"strconv"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// PullHeader is the header of PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361).
type PullHeader struct {
	ConsumerGroup  string         // consumerGroup
	Topic          string         // topic
	QueueID        mq.QueueID     // queueId
	QueueOffset    mq.QueueOffset // queueOffset: where to read from
	MaxMsgNums     int32          // maxMsgNums
	SysFlag        mq.PullFlag    // sysFlag
	CommitOffset   mq.QueueOffset // commitOffset: consumed up to here, if SysFlag says so
	SuspendMillis  int64          // suspendTimeoutMillis: how long to wait for a message
	Subscription   string         // subscription: the expression, if SysFlag says so
	SubVersion     int64          // subVersion
	ExpressionType string         // expressionType: TAG or SQL92; empty means TAG
	MaxMsgBytes    int32          // maxMsgBytes: 0 if not said
	RequestSource  int32          // requestSource: -1 a client, else a proxy
}

const (
	pullGroup = 1 << iota
	pullTopic
	pullQueue
	pullOffset
	pullNums
	pullFlag
	pullCommit
	pullSuspend
	pullSubVersion
	pullRequired = 1<<iota - 1
)

var pullNames = [...]string{"consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "sysFlag", "commitOffset", "suspendTimeoutMillis", "subVersion"}

// DecodePull reads the header of a pull.
func DecodePull(c *remoting.Command, h *PullHeader) error {
	*h = PullHeader{RequestSource: -1}
	var seen uint
	for i := range c.Fields {
		f := &c.Fields[i]
		var err error
		var n int32
		var l int64
		switch f.Key {
		case "consumerGroup":
			h.ConsumerGroup = f.Value
			seen |= pullGroup
		case "topic":
			h.Topic = f.Value
			seen |= pullTopic
		case "queueId":
			err = fieldInt32(f.Key, f.Value, &n)
			h.QueueID = mq.QueueID(n)
			seen |= pullQueue
		case "queueOffset":
			err = fieldInt64(f.Key, f.Value, &l)
			h.QueueOffset = mq.QueueOffset(l)
			seen |= pullOffset
		case "maxMsgNums":
			err = fieldInt32(f.Key, f.Value, &h.MaxMsgNums)
			seen |= pullNums
		case "sysFlag":
			err = fieldInt32(f.Key, f.Value, &n)
			h.SysFlag = mq.PullFlag(n)
			seen |= pullFlag
		case "commitOffset":
			err = fieldInt64(f.Key, f.Value, &l)
			h.CommitOffset = mq.QueueOffset(l)
			seen |= pullCommit
		case "suspendTimeoutMillis":
			err = fieldInt64(f.Key, f.Value, &h.SuspendMillis)
			seen |= pullSuspend
		case "subscription":
			h.Subscription = f.Value
		case "subVersion":
			err = fieldInt64(f.Key, f.Value, &h.SubVersion)
			seen |= pullSubVersion
		case "expressionType":
			h.ExpressionType = f.Value
		case "maxMsgBytes":
			if f.Value != "" {
				err = fieldInt32(f.Key, f.Value, &h.MaxMsgBytes)
			}
		case "requestSource":
			if f.Value != "" {
				err = fieldInt32(f.Key, f.Value, &h.RequestSource)
			}
		}
		if err != nil {
			return err
		}
	}
	if seen != pullRequired {
		for i, name := range pullNames {
			if seen&(1<<i) == 0 {
				return missingField(name)
			}
		}
	}
	return nil
}

// Encode returns the header as fields.
func (h *PullHeader) Encode() []remoting.Field {
	out := []remoting.Field{
		{Key: "consumerGroup", Value: h.ConsumerGroup},
		{Key: "topic", Value: h.Topic},
		{Key: "queueId", Value: itoa(int64(h.QueueID))},
		{Key: "queueOffset", Value: itoa(int64(h.QueueOffset))},
		{Key: "maxMsgNums", Value: itoa(int64(h.MaxMsgNums))},
		{Key: "sysFlag", Value: itoa(int64(h.SysFlag))},
		{Key: "commitOffset", Value: itoa(int64(h.CommitOffset))},
		{Key: "suspendTimeoutMillis", Value: itoa(h.SuspendMillis)},
		{Key: "subVersion", Value: itoa(h.SubVersion)},
	}
	if h.Subscription != "" {
		out = append(out, remoting.Field{Key: "subscription", Value: h.Subscription})
	}
	if h.ExpressionType != "" {
		out = append(out, remoting.Field{Key: "expressionType", Value: h.ExpressionType})
	}
	if h.MaxMsgBytes > 0 {
		out = append(out, remoting.Field{Key: "maxMsgBytes", Value: itoa(int64(h.MaxMsgBytes))})
	}
	return out
}

// PullResponse is the header of the answer to a pull.
type PullResponse struct {
	SuggestBroker int64          // suggestWhichBrokerId: 0 is the master
	Next          mq.QueueOffset // nextBeginOffset: where to read next
	Min           mq.QueueOffset // minOffset of the queue
	Max           mq.QueueOffset // maxOffset of the queue
	TopicSysFlag  int32          // topicSysFlag
	GroupSysFlag  int32          // groupSysFlag
}

// AppendFields appends the fields of the answer to dst. It allocates one
// string, for the numbers.
func (r *PullResponse) AppendFields(dst []remoting.Field) []remoting.Field {
	var raw [96]byte
	b := strconv.AppendInt(raw[:0], r.SuggestBroker, 10)
	e1 := len(b)
	b = strconv.AppendInt(b, int64(r.Next), 10)
	e2 := len(b)
	b = strconv.AppendInt(b, int64(r.Min), 10)
	e3 := len(b)
	b = strconv.AppendInt(b, int64(r.Max), 10)
	e4 := len(b)
	b = strconv.AppendInt(b, int64(r.TopicSysFlag), 10)
	e5 := len(b)
	b = strconv.AppendInt(b, int64(r.GroupSysFlag), 10)
	text := string(b)
	return append(dst,
		remoting.Field{Key: "suggestWhichBrokerId", Value: text[:e1]},
		remoting.Field{Key: "nextBeginOffset", Value: text[e1:e2]},
		remoting.Field{Key: "minOffset", Value: text[e2:e3]},
		remoting.Field{Key: "maxOffset", Value: text[e3:e4]},
		remoting.Field{Key: "topicSysFlag", Value: text[e4:e5]},
		remoting.Field{Key: "groupSysFlag", Value: text[e5:]})
}

// DecodePullResponse reads the answer to a pull, as a client does.
func DecodePullResponse(c *remoting.Command, r *PullResponse) error {
	var w struct {
		SuggestBroker int64 `h:"suggestWhichBrokerId"`
		Next          int64 `h:"nextBeginOffset,required"`
		Min           int64 `h:"minOffset,required"`
		Max           int64 `h:"maxOffset,required"`
		TopicSysFlag  int32 `h:"topicSysFlag"`
		GroupSysFlag  int32 `h:"groupSysFlag"`
	}
	if err := DecodeFields(c.Fields, &w); err != nil {
		return err
	}
	*r = PullResponse{SuggestBroker: w.SuggestBroker, Next: mq.QueueOffset(w.Next), Min: mq.QueueOffset(w.Min),
		Max: mq.QueueOffset(w.Max), TopicSysFlag: w.TopicSysFlag, GroupSysFlag: w.GroupSysFlag}
	return nil
}

// Forbidden* say in the field forbiddenType what a pull was refused for.
const (
	ForbiddenBroker       int32 = 1
	ForbiddenGroup        int32 = 2
	ForbiddenTopic        int32 = 3
	ForbiddenBroadcast    int32 = 4
	ForbiddenSubscription int32 = 5
)
