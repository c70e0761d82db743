package protocol

import (
	"github.com/sundial-mq/sundial/internal/mq"
)

// Timed messages looked at and changed by whoever operates a broker: codes 31010 to
// 31017. Bodies of answers are JSON; what says no says it with ILLEGAL_OPERATION
// (604) and a remark that begins with "not found", "already done" or "too late".

// ListDelayedHeader is the request of LIST_DELAYED (31010): pending timed messages in
// the order of their due times.
type ListDelayedHeader struct {
	From     int64           `h:"from"`     // due from then on, epoch ms
	To       int64           `h:"to"`       // due before then; 0: whenever
	Topic    string          `h:"topic"`    // for this topic only
	AfterDue int64           `h:"afterDue"` // behind the message with this due time and sequence
	AfterSeq *mq.QueueOffset `h:"afterSeq"`
	Max      int32           `h:"max"` // 1 to 1000; 0: 100
}

// Delayed is a pending timed message in answers.
type Delayed struct {
	Seq       mq.QueueOffset `json:"seq"`
	Due       int64          `json:"due"` // epoch ms
	Topic     string         `json:"topic"`
	Queue     mq.QueueID     `json:"queue"`
	Unique    string         `json:"uniqueKey"`
	Keys      string         `json:"keys,omitempty"`
	Tags      string         `json:"tags,omitempty"`
	Body      int            `json:"bodyBytes"`
	StoreTime int64          `json:"storeTime"` // epoch ms
	Log       mq.LogOffset   `json:"logOffset"` // of its record, for VIEW_MESSAGE_BY_ID
}

// DelayedList is the answer of LIST_DELAYED and FIND_DELAYED.
type DelayedList struct {
	Messages []Delayed      `json:"messages"`
	Next     *DelayedCursor `json:"next,omitempty"` // where to go on; none: that was all
}

// DelayedCursor is a place in the list of pending messages.
type DelayedCursor struct {
	Due int64          `json:"due"`
	Seq mq.QueueOffset `json:"seq"`
}

// FindDelayedHeader is the request of FIND_DELAYED (31011): the pending timed messages
// with a key or a unique key.
type FindDelayedHeader struct {
	Topic string `h:"topic,required"`
	Key   string `h:"key,required"`
}

// CountDelayedHeader is the request of COUNT_DELAYED (31012): how many messages are due
// between one time and the next.
type CountDelayedHeader struct {
	At string `h:"at,required"` // ascending, epoch ms, separated by commas, 2 to 1001
}

// DelayedCounts is its answer.
type DelayedCounts struct {
	At     []int64 `json:"at"`
	Timed  []int64 `json:"timed"`  // due in [at[i], at[i+1])
	Levels []int64 `json:"levels"` // the same of the delay levels
}

// DelayedHeader is the request of RECALL_DELAYED (31013), RESCHEDULE_DELAYED (31014) and
// FIRE_DELAYED (31015): a timed message by its unique key, its sequence, or both.
type DelayedHeader struct {
	Topic  string          `h:"topic,required"`
	Unique string          `h:"uniqueKey"`
	Seq    *mq.QueueOffset `h:"seq"`
	Due    int64           `h:"due"` // of 31014: the new due time, epoch ms
}

// DelayedDone is their answer.
type DelayedDone struct {
	Seq mq.QueueOffset `json:"seq"` // of a message that was rescheduled: its new one; else of the record in its queue
	Log mq.LogOffset   `json:"logOffset"`
}

// DelayedAside is a message that could not be delivered, in the answer of
// LIST_DELAYED_ASIDE (31016).
type DelayedAside struct {
	Topic  string         `json:"topic"` // of the queue of pending messages
	Level  int            `json:"level,omitempty"`
	Offset mq.QueueOffset `json:"offset"`
	Log    mq.LogOffset   `json:"logOffset"` // -1: not known
	Reason string         `json:"reason"`
	Time   int64          `json:"time"`
}

// DelayedAsides is that answer: the latest, a thousand at most, of all that there were.
type DelayedAsides struct {
	Total    int64          `json:"total"`
	Messages []DelayedAside `json:"messages"`
}

// DelayState is the answer of GET_DELAY_STATE (31017).
type DelayState struct {
	Pending   int64         `json:"pending"` // timed
	Levels    int64         `json:"levels"`  // pending with delay levels
	NextDue   int64         `json:"nextDue"` // of both, epoch ms; 0: nothing is pending
	Overdue   int64         `json:"overdueMillis"`
	First     *Delayed      `json:"first,omitempty"` // the timed message that is due first
	Behind    int64         `json:"behind"`          // stored and not indexed yet
	PerSecond float64       `json:"deliveredPerSecond"`
	Delivered int64         `json:"delivered"` // since the start
	Aside     int64         `json:"aside"`     // set aside since the store was made
	Parked    []DelayParked `json:"parked"`
	Topics    []DelayTopic  `json:"topics"` // by pending, most first; 1000 at most
	Minute    DelayLateness `json:"lateLastMinute"`
	All       DelayLateness `json:"lateSinceStart"`
}

// DelayTopic is how many timed messages are pending for a topic.
type DelayTopic struct {
	Topic   string `json:"topic"`
	Pending int64  `json:"pending"`
}

// DelayParked is a destination that does not take its messages now.
type DelayParked struct {
	Topic    string     `json:"topic"` // empty: records that cannot be read
	Queue    mq.QueueID `json:"queue"`
	Messages int        `json:"messages"`
	Since    int64      `json:"since"`
	Error    string     `json:"error,omitempty"`
}

// DelayLateness is how long after their due time messages were stored at their
// destination.
type DelayLateness struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50Millis"`
	P99   float64 `json:"p99Millis"`
	Max   float64 `json:"maxMillis"`
}
