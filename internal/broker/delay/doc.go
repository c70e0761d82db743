// Package delay delivers messages later: those sent with one of the broker's
// delay levels wait in SCHEDULE_TOPIC_XXXX, as in RocketMQ, until they are due,
// and then go where they were meant to go.
//
// # The way of one message
//
// [Levels.Retarget] turns a message with a DELAY property into one of the
// schedule topic, queue level-1, that remembers its destination. Its due time
// stands in the consume queue entry ([Levels.TagsCode]). [Flow] feeds what comes
// next in each schedule queue into one due-time queue (internal/storage/timer)
// and, in the millisecond of the due time, appends the message to its
// destination.
//
// # What it promises
//
// Never early, whatever the clock or the level table does: due times are
// absolute, and a changed table changes only what is sent later. Never lost:
// what cannot be put stays, its destination is tried again with growing pauses
// while all others go on; progress passes only what is delivered. Exactly once,
// through kill -9 in both flush modes: the delivered message carries a receipt
// that names the pending one, and so proves its own delivery; see progress.go.
// A power cut under asynchronous flush can take a delivery back that a consumer
// has seen; the message comes again then.
//
// A record that cannot be delivered (unreadable, without destination) is set
// aside: counted, listed in DIR/sundial/delay.json, never in the way.
//
// # What it needs
//
// The store, a directory for RocketMQ's delayOffset.json and one for our
// delay.json. Nothing is saved before both were read. Memory is bounded by the
// number of schedule queues, not by what is pending.
//
// # What a crash leaves
//
// delay.json of some seconds ago. Open brings it up to date with the receipts
// that the log holds from the position it names on. When it is lost the whole
// log is searched for receipts and for the copies a RocketMQ broker delivered.
package delay
