package mq

// Names of message properties (MessageConst). The encoding of the property
// block is in internal/record.
const (
	PropKeys            = "KEYS"
	PropTags            = "TAGS"
	PropWait            = "WAIT"
	PropDelay           = "DELAY"
	PropRetryTopic      = "RETRY_TOPIC"
	PropRealTopic       = "REAL_TOPIC"
	PropRealQueueID     = "REAL_QID"
	PropTransaction     = "TRAN_MSG"
	PropProducerGroup   = "PGROUP"
	PropMinOffset       = "MIN_OFFSET"
	PropMaxOffset       = "MAX_OFFSET"
	PropOriginMessageID = "ORIGIN_MESSAGE_ID"
	PropReconsumeTime   = "RECONSUME_TIME"
	PropMaxReconsume    = "MAX_RECONSUME_TIMES"
	PropMsgRegion       = "MSG_REGION"
	PropTraceOn         = "TRACE_ON"
	PropUniqueKey       = "UNIQ_KEY"
	PropCluster         = "CLUSTER"
	PropInnerNum        = "INNER_NUM"
	PropInnerBase       = "INNER_BASE"
	PropTransactionID   = "__transactionId__"
	PropCheckImmunity   = "CHECK_IMMUNITY_TIME_IN_SECONDS"
	PropCheckTimes      = "TRANSACTION_CHECK_TIMES"
	PropPreparedOffset  = "TRAN_PREPARED_QUEUE_OFFSET"
	PropMultiDispatch   = "INNER_MULTI_DISPATCH"
	PropCRC32           = "__CRC32#"
	PropPopCK           = "POP_CK"
	PropPriority        = "_SYS_MSG_PRIORITY_"

	// Of requests and replies.
	PropReplyToClient = "REPLY_TO_CLIENT" // client id of the requester
	PropCorrelationID = "CORRELATION_ID"
	PropPushReplyTime = "PUSH_REPLY_TIME" // when the reply was handed on, in ms

	PropTimerDelaySec   = "TIMER_DELAY_SEC"
	PropTimerDelayMs    = "TIMER_DELAY_MS"
	PropTimerDeliverMs  = "TIMER_DELIVER_MS"
	PropTimerOutMs      = "TIMER_OUT_MS"
	PropTimerEnqueueMs  = "TIMER_ENQUEUE_MS"
	PropTimerDequeueMs  = "TIMER_DEQUEUE_MS"
	PropTimerRollTimes  = "TIMER_ROLL_TIMES"
	PropTimerDeleteKey  = "TIMER_DEL_UNIQKEY"
	PropTimerDelayLevel = "TIMER_DELAY_LEVEL"

	// PropReceipt is ours: a delivered delayed or committed message names the
	// pending record it was made from, and so is the proof of its own delivery after
	// a crash. It is removed from everything that comes in from outside.
	PropReceipt = "SUNDIAL_RECEIPT"
	// PropTxClient is ours: the id of the client that sent a half message, whom to
	// ask first.
	PropTxClient = "SUNDIAL_TX_CLIENT"
	// PropTxDue is ours: when a half message that was appended again is to be asked
	// about, ms.
	PropTxDue = "SUNDIAL_TX_DUE"
	// PropDelayMillis is ours: the delay in ms that a level meant when the message
	// was accepted, so that a later change of the table moves nothing. The delivered
	// message keeps it: with the time of its birth it is the time it was planned for.
	PropDelayMillis = "SUNDIAL_DELAY_MS"
	// PropDue is ours: the exact due time of a timed message, epoch ms. What RocketMQ
	// keeps (TIMER_OUT_MS) is rounded.
	PropDue = "SUNDIAL_DUE"
	// PropRecalled is ours: a record of the timer topic names, in the form of a
	// receipt, the timed message that it takes back.
	PropRecalled = "SUNDIAL_RECALLED"
)

// Separators of the property block (MessageDecoder).
const (
	PropNameEnd  = 0x01
	PropValueEnd = 0x02
)
