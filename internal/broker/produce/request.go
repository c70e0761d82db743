package produce

import (
	"net/netip"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
)

// Request is one message, or one batch of messages, that a producer sends.
// Body, Properties and all strings are read only until Accept returns.
type Request struct {
	Group         string // producer group
	Topic         string
	DefaultTopic  string     // whose likeness a missing topic is made in, as a rule TBW102
	DefaultQueues int32      // how many queues the producer wants for it
	Queue         mq.QueueID // below 0: any
	Flag          int32
	SysFlag       mq.SysFlag
	BornTime      int64
	BornHost      netip.AddrPort
	Properties    []byte // encoded block
	Reconsume     int32
	MaxReconsume  int32 // for retry topics: below 0 when the sender did not say
	UnitMode      bool
	Batch         bool // Body is a batch: record.Batch reads it
	Body          []byte
	Sender        any // the connection it came from; comparable, or nil
}

// Result tells where a message is. It stands beside a nil error and beside
// [mq.ErrFlushTimeout], where the message is stored but not known durable.
type Result struct {
	MessageID     string // offset message id; of a batch one an item, joined by commas
	Queue         mq.QueueID
	Offset        mq.QueueOffset // of a batch the first
	TransactionID string         // the unique key
	TimerOut      int64          // of a timed message its TIMER_OUT_MS, else 0
	Topic         string         // of a timed message
	Messages      int
	Tally         *metric.Tally // of the queue it is stored in, to be told how long it took; may be nil
}
