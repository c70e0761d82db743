package delay

import (
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// receiptOf names a pending message; due counts for timed messages.
func receiptOf(store string, queue mq.QueueKey, off mq.QueueOffset, due int64) record.Receipt {
	r := record.Receipt{Store: store, Queue: queue, Offset: off}
	if queue == timedQueue {
		r.Due = due
	}
	return r
}
