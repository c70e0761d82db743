// Package txn keeps transactional messages until it is decided whether they
// count: half messages wait in RMQ_SYS_TRANS_HALF_TOPIC, as in RocketMQ, until
// their producer commits or rolls back, now, later, or when it is asked.
//
// # The way of one message
//
// [Flow.Accept] stores a half message. [Flow.End] brings the verdict: a commit
// appends the message to its topic, with a receipt that names the half; a
// rollback is a mark in RMQ_SYS_TRANS_OP_HALF_TOPIC. Who gives no verdict in
// time is asked (CHECK_TRANSACTION_STATE), in the millisecond when that is due,
// and again after an interval; whom nobody answers for after the last try goes
// to TRANS_CHECK_MAX_TIME_TOPIC, from where an operator can take it back.
//
// # What it promises
//
// The first final verdict counts: the same again is answered as done, another
// one as already decided. A committed message becomes visible once, a rolled back
// one never, through kill -9 in both flush modes. An open half is never lost: not
// by a restart, not by retention (before its log file goes it is appended again,
// once per retention period), and its body is not rewritten for a check. Only
// requests that were really sent count as tries.
//
// Both topics are RocketMQ's, marks and progress (CID_RMQ_SYS_TRANS) included: a
// store with open transactions is continued by either broker.
//
// # What it needs
//
// The store, the registers of topics and clients, a function that sends a check,
// and a file of its own, DIR/sundial/txn.journal. Memory grows with the open
// halves, about 100 bytes each; their bodies stay on disk.
//
// # What a crash leaves
//
// A journal of some seconds ago. What came since is in the log: halves, marks and
// receipts from the position on that the journal names. When the journal is lost,
// or another broker was here, the whole log and RocketMQ's progress say it.
package txn
