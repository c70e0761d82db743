package protocol

import (
	"github.com/sundial-mq/sundial/internal/mq"
)

// EndTransactionHeader is the request of END_TRANSACTION (37).
type EndTransactionHeader struct {
	Topic         string         `h:"topic"`
	ProducerGroup string         `h:"producerGroup,required"`
	QueueOffset   mq.QueueOffset `h:"tranStateTableOffset,required"`
	LogOffset     mq.LogOffset   `h:"commitLogOffset,required"`
	Verdict       int32          `h:"commitOrRollback,required"` // 0 unknown, 8 commit, 12 rollback
	FromCheck     bool           `h:"fromTransactionCheck"`
	MsgID         string         `h:"msgId"`
	TransactionID string         `h:"transactionId"`
}

// CheckTransactionHeader is the request of CHECK_TRANSACTION_STATE (39), whose
// body is the half message.
type CheckTransactionHeader struct {
	Topic         string         `h:"topic"` // the half topic
	QueueOffset   mq.QueueOffset `h:"tranStateTableOffset"`
	LogOffset     mq.LogOffset   `h:"commitLogOffset"`
	MsgID         string         `h:"msgId"` // unique key
	TransactionID string         `h:"transactionId"`
	OffsetMsgID   string         `h:"offsetMsgId"`
	Broker        string         `h:"bname"`
}

// ResumeCheckHeader is the request of RESUME_CHECK_HALF_MESSAGE (323).
type ResumeCheckHeader struct {
	Topic string `h:"topic"`
	MsgID string `h:"msgId"`
}

// ListTransactionsHeader is the request of LIST_TRANSACTIONS (31000).
type ListTransactionsHeader struct {
	Group    string         `h:"group"`
	Topic    string         `h:"topic"`
	MinAge   int64          `h:"minAge"`   // ms since the birth of the message
	GivenUp  bool           `h:"givenUp"`  // those in TRANS_CHECK_MAX_TIME_TOPIC
	Resolved bool           `h:"resolved"` // of them also those that were resolved
	After    mq.QueueOffset `h:"after"`    // offset of the last one seen, below 0 to begin
	Max      int32          `h:"max"`
}

// TransactionHeader is the request of SHOW_TRANSACTION (31001) and
// RESOLVE_TRANSACTION (31002): a transaction by its offset or by its id.
type TransactionHeader struct {
	GivenUp bool            `h:"givenUp"`
	Offset  *mq.QueueOffset `h:"offset"`
	ID      string          `h:"transactionId"` // counts when it is not empty
	Action  string          `h:"action"`        // of 31002: commit, rollback, resume
}

// Transaction is one transaction in the answers of 31000 to 31002.
type Transaction struct {
	State     string         `json:"state"` // open, given-up, committed, rolled-back, resumed
	Offset    mq.QueueOffset `json:"offset"`
	Log       mq.LogOffset   `json:"log"`
	ID        string         `json:"id"`
	MessageID string         `json:"messageId"`
	Group     string         `json:"group"`
	Topic     string         `json:"topic"`
	Queue     mq.QueueID     `json:"queue"`
	Keys      string         `json:"keys,omitempty"`
	Tags      string         `json:"tags,omitempty"`
	Client    string         `json:"client,omitempty"`
	Born      int64          `json:"born"`
	Stored    int64          `json:"stored"`
	Size      int            `json:"size"`
	Tries     int            `json:"tries"`
	NextCheck int64          `json:"nextCheck,omitempty"`
	Waiting   bool           `json:"waiting,omitempty"`
	Decided   int64          `json:"decided,omitempty"`
}

// TransactionList is the answer of LIST_TRANSACTIONS.
type TransactionList struct {
	Transactions []Transaction  `json:"transactions"`
	Next         mq.QueueOffset `json:"next"` // -1: no more
	Total        int64          `json:"total"`
}

// TransactionShown is the answer of SHOW_TRANSACTION and RESOLVE_TRANSACTION; the
// record is that of the half message.
type TransactionShown struct {
	Transaction Transaction `json:"transaction"`
	Record      []byte      `json:"record,omitempty"`
}
