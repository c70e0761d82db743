package protocol

import "github.com/sundial-mq/sundial/internal/mq"

// QueryConsumerOffsetHeader is the header of QUERY_CONSUMER_OFFSET (14).
type QueryConsumerOffsetHeader struct {
	ConsumerGroup     string `h:"consumerGroup,required"`
	Topic             string `h:"topic,required"`
	QueueID           int32  `h:"queueId,required"`
	SetZeroIfNotFound *bool  `h:"setZeroIfNotFound"` // nil counts as true
}

// UpdateConsumerOffsetHeader is the header of UPDATE_CONSUMER_OFFSET (15).
type UpdateConsumerOffsetHeader struct {
	ConsumerGroup string `h:"consumerGroup,required"`
	Topic         string `h:"topic,required"`
	QueueID       int32  `h:"queueId,required"`
	CommitOffset  int64  `h:"commitOffset,required"`
}

// QueueHeader is a header that names a queue: of GET_MAX_OFFSET (30),
// GET_MIN_OFFSET (31) and GET_EARLIEST_MSG_STORETIME (32).
type QueueHeader struct {
	Topic   string `h:"topic,required"`
	QueueID int32  `h:"queueId,required"`
}

// SearchOffsetHeader is the header of SEARCH_OFFSET_BY_TIMESTAMP (29).
type SearchOffsetHeader struct {
	Topic     string `h:"topic,required"`
	QueueID   int32  `h:"queueId,required"`
	Timestamp int64  `h:"timestamp,required"`
	Boundary  string `h:"boundaryType"` // upper, or lower as anything else
}

// OffsetResponse is the header of the answers of 14, 29, 30 and 31.
type OffsetResponse struct {
	Offset int64 `h:"offset,required"`
}

// StoreTimeResponse is the header of the answer of 32: -1 if there is none.
type StoreTimeResponse struct {
	Timestamp int64 `h:"timestamp,required"`
}

// ConsumerOffsets is the body of the answer to GET_ALL_CONSUMER_OFFSET (43):
// offsets by "topic@group" and queue.
type ConsumerOffsets struct {
	DataVersion mq.DataVersion                        `json:"dataVersion"`
	GroupTopics Map[string, []string]                 `json:"groupTopicMap"`
	Offsets     Map[string, map[int32]mq.QueueOffset] `json:"offsetTable"`
	PullOffsets Map[string, map[int32]mq.QueueOffset] `json:"pullOffsetTable"` // handed out, not yet consumed
}

// DelayOffsets is the body of the answer to GET_ALL_DELAY_OFFSET (45): the first
// undelivered offset of each level.
type DelayOffsets struct {
	DataVersion mq.DataVersion             `json:"dataVersion"`
	Offsets     Map[int32, mq.QueueOffset] `json:"offsetTable"`
}

// ResetOffsetHeader is the header of INVOKE_BROKER_TO_RESET_OFFSET (222) and of
// what it makes the broker tell clients, RESET_CONSUMER_CLIENT_OFFSET (220).
type ResetOffsetHeader struct {
	Topic     string `h:"topic,required"`
	Group     string `h:"group,required"`
	Timestamp int64  `h:"timestamp,required"` // -1 means the end
	Force     *bool  `h:"isForce"`            // also forward
	QueueID   *int32 `h:"queueId"`            // -1 or absent: all queues
	Offset    *int64 `h:"offset"`             // instead of Timestamp
}

// ResetOffsetBody is the body of 220 and of the answer to 222.
type ResetOffsetBody struct {
	Offsets QueueTable[mq.QueueOffset] `json:"offsetTable"`
}

func (b *ResetOffsetBody) appendBody(dst []byte) ([]byte, error) {
	o := newObject(dst)
	o.table("offsetTable", b.Offsets.appendJSON)
	return o.close()
}

// ResetOffsetList is the body of 220 for C++ clients, which know no object keys.
type ResetOffsetList struct {
	Offsets Set[ResetOffsetItem] `json:"offsetTable"`
}

// ResetOffsetItem is one queue of a [ResetOffsetList].
type ResetOffsetItem struct {
	BrokerName string         `json:"brokerName"`
	Offset     mq.QueueOffset `json:"offset"`
	QueueID    mq.QueueID     `json:"queueId"`
	Topic      string         `json:"topic"`
}
