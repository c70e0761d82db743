package redeliver

import "github.com/sundial-mq/sundial/internal/mq"

// Request is one message sent back by a consumer (CONSUMER_SEND_MSG_BACK). Group
// must be a string of its own: the registers may keep it.
type Request struct {
	Group        string
	Offset       mq.LogOffset  // where the failed message is
	DelayLevel   mq.DelayLevel // 0: by the ladder; below 0: dead letter at once
	OriginID     string        // offset message id of the first delivery, when the client knows it
	OriginTopic  string
	UnitMode     bool
	MaxReconsume int32 // below 0 when the client did not say
}
