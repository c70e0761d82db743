package fetch

import (
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Request is one pull. Its strings must outlive the call: a parked pull keeps
// the request.
type Request struct {
	Group          string
	Topic          string
	Queue          mq.QueueID
	Offset         mq.QueueOffset
	Max            int32 // messages
	Flag           mq.PullFlag
	CommitOffset   mq.QueueOffset // with PullCommitOffset: what the group has consumed here
	Suspend        time.Duration  // with PullSuspend: how long to wait for news
	Subscription   string         // with PullSubscription: the filter
	ExpressionType string         // TAG when empty
	SubVersion     int64
	Conn           any    // the connection that asks, comparable: Forget drops what it has parked
	ClientHost     string // for the commit log line of offsets
	Told           Told   // nil: the client hears of resets from its pulls alone
}

// Told knows which resets the client heard of in another way.
type Told interface {
	// Reset reports whether the client was told a moment ago that group is moved in
	// topic. It is on its way to the new place then, and a jump of an old pull would
	// only disturb it.
	Reset(group, topic string) bool
}

// Status is the outcome of a pull that was allowed.
type Status uint8

// Outcomes, with the response code each has on the wire.
const (
	Found    Status = iota // 0: Chunks hold whole records
	NoNew                  // 19: nothing at Next yet
	Filtered               // 20: nothing matched up to Next, ask again at once
	Moved                  // 21: the offset was no place in the queue, Next is
)

// Result answers a pull. Next, Min and Max are always set.
type Result struct {
	Status         Status
	Remark         string   // RocketMQ's name of the finding: FOUND, OFFSET_TOO_SMALL ...
	Chunks         [][]byte // records back to back, views into the log; valid until Release
	Count          int
	Bytes          int           // of the records
	Behind         int64         // bytes of log after the last of them
	Took           time.Duration // to look
	Release        func()        // never nil in a Found result; call once
	Next, Min, Max mq.QueueOffset
	SuggestBroker  int64
	TopicSysFlag   int32
	GroupSysFlag   int32
}

// ForbiddenError is an [mq.ErrNoPermission] that says which register forbids.
type ForbiddenError struct {
	Type int32 // 1 broker, 2 group, 3 topic, 4 broadcasting, 5 subscription
	Text string
}

func (e *ForbiddenError) Error() string { return mq.ErrNoPermission.Error() + ": " + e.Text }

func (e *ForbiddenError) Unwrap() error { return mq.ErrNoPermission }
