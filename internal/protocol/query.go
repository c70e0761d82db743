package protocol

import "github.com/sundial-mq/sundial/internal/mq"

// QueryMessageHeader is the header of QUERY_MESSAGE (12). Times are store
// times.
type QueryMessageHeader struct {
	Topic     string `h:"topic,required"`
	Key       string `h:"key,required"`
	Max       int32  `h:"maxNum,required"`
	Begin     int64  `h:"beginTimestamp,required"`
	End       int64  `h:"endTimestamp,required"`
	IndexType string `h:"indexType"`         // K key, U unique key, T tag
	Unique    bool   `h:"_UNIQUE_KEY_QUERY"` // Key is a unique key
}

// QueryMessageResponse is the header of the answer to 12: how far the index is.
type QueryMessageResponse struct {
	IndexTime   int64 `h:"indexLastUpdateTimestamp,required"`
	IndexOffset int64 `h:"indexLastUpdatePhyoffset,required"`
}

// ViewMessageHeader is the header of VIEW_MESSAGE_BY_ID (33).
type ViewMessageHeader struct {
	Topic  string `h:"topic"`
	Offset int64  `h:"offset,required"` // in the commit log
}

// QueryConsumeQueueHeader is the header of QUERY_CONSUME_QUEUE (321).
type QueryConsumeQueueHeader struct {
	Topic   string `h:"topic,required"`
	QueueID int32  `h:"queueId,required"`
	Index   int64  `h:"index,required"`
	Count   int32  `h:"count,required"`
	Group   string `h:"consumerGroup"`
}

// ConsumeQueue is the body of the answer to 321.
type ConsumeQueue struct {
	FilterData   string                 `json:"filterData,omitempty"`
	Max          mq.QueueOffset         `json:"maxQueueIndex"`
	Min          mq.QueueOffset         `json:"minQueueIndex"`
	Entries      Set[ConsumeQueueEntry] `json:"queueData"`
	Subscription *Subscription          `json:"subscriptionData,omitempty"`
}

// ConsumeQueueEntry is one entry of a [ConsumeQueue].
type ConsumeQueueEntry struct {
	Message  string       `json:"msg,omitempty"` // what is wrong with it
	Eval     bool         `json:"eval"`          // whether the group's filter takes it
	Pos      mq.LogOffset `json:"physicOffset"`
	Size     int32        `json:"physicSize"`
	TagsCode int64        `json:"tagsCode"`
}

// RunningInfoHeader is the header of GET_CONSUMER_RUNNING_INFO (307), which the
// broker relays to the client it names.
type RunningInfoHeader struct {
	ConsumerGroup string `h:"consumerGroup,required"`
	ClientID      string `h:"clientId,required"`
	JStack        bool   `h:"jstackEnable"`
}

// ConsumeDirectlyHeader is the header of CONSUME_MESSAGE_DIRECTLY (309), which
// the broker relays to the client it names, with the message as the body.
type ConsumeDirectlyHeader struct {
	ConsumerGroup string `h:"consumerGroup,required"`
	ClientID      string `h:"clientId,required"`
	MsgID         string `h:"msgId,required"`
	BrokerName    string `h:"brokerName"`
	Topic         string `h:"topic"`
	TopicSysFlag  *int32 `h:"topicSysFlag"`
	GroupSysFlag  *int32 `h:"groupSysFlag"`
}

// ConsumerStatusHeader is the header of INVOKE_BROKER_TO_GET_CONSUMER_STATUS
// (223) and of what it makes the broker ask clients,
// GET_CONSUMER_STATUS_FROM_CLIENT (221).
type ConsumerStatusHeader struct {
	Topic      string `h:"topic,required"`
	Group      string `h:"group,required"`
	ClientAddr string `h:"clientAddr"`
}

// ConsumerStatus is the body of the answers to 221 (Queues) and 223 (Clients).
type ConsumerStatus struct {
	Clients Map[string, QueueTable[mq.QueueOffset]] `json:"consumerTable"`
	Queues  QueueTable[mq.QueueOffset]              `json:"messageQueueTable"`
}

func (s *ConsumerStatus) appendBody(dst []byte) ([]byte, error) {
	o := newObject(dst)
	o.table("consumerTable", func(dst []byte) ([]byte, error) {
		c := newObject(dst)
		for _, id := range sortedKeys(s.Clients) {
			c.keyText(id)
			buf, err := s.Clients[id].appendJSON(c.buf)
			if err != nil {
				return nil, err
			}
			c.buf = buf
		}
		return c.close()
	})
	o.table("messageQueueTable", s.Queues.appendJSON)
	return o.close()
}

// ConfigResponse is the header of the answer to GET_BROKER_CONFIG (26); the body
// is text in the form of Java's properties.
type ConfigResponse struct {
	Version string `h:"version"` // an mq.DataVersion, JSON
}

// PeekHeader is the header of PEEK_MESSAGE (200052).
type PeekHeader struct {
	ConsumerGroup string     `h:"consumerGroup,required"`
	Topic         string     `h:"topic,required"`
	QueueID       mq.QueueID `h:"queueId,required"` // below 0: all
	MaxMsgNums    int32      `h:"maxMsgNums,required"`
}

// PeekResponse is the header of the answer to a peek: that of POP, of which only
// the rest means something.
type PeekResponse struct {
	PopTime       int64 `h:"popTime"`
	InvisibleTime int64 `h:"invisibleTime"`
	ReviveQueue   int32 `h:"reviveQid"`
	Rest          int64 `h:"restNum"` // not consumed yet, the shown ones among them
}
