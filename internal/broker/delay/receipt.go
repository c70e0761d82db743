package delay

import (
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// receiptOf names a message of a level.
func receiptOf(store string, queue mq.QueueID, off mq.QueueOffset) record.Receipt {
	return record.Receipt{Store: store, Queue: mq.QueueKey{Topic: mq.TopicSchedule, ID: queue}, Offset: off}
}
