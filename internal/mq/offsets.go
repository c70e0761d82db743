package mq

import "math"

// LogOffset is a byte position in the commit log ("physical offset"). It never
// goes back to zero when old files are deleted.
type LogOffset int64

// QueueOffset is the index of a message within one queue of one topic, counted
// from 0 when the queue was made.
type QueueOffset int64

// QueueID numbers the queues of a topic on one broker, from 0.
type QueueID int32

// DelayLevel is a 1-based position in the broker's messageDelayLevel table;
// 0 and below mean no delay.
type DelayLevel int32

// UnknownOffset is the absence of an offset: neither zero nor the end.
const UnknownOffset QueueOffset = math.MinInt64

// QueueKey names one queue of one topic on this broker.
type QueueKey struct {
	Topic string
	ID    QueueID
}
