// Package consumequeue keeps, for every queue of every topic, the index from a
// message's number in its queue to its place in the commit log. The bytes are
// RocketMQ's: DIR/<topic>/<queue>/<20-digit byte offset>, files of one fixed
// size, entries of 20 bytes (docs/formats/consumequeue.md).
//
// # What it promises
//
// The queues are derived from the log and never ahead of it on disk: [Queue.Append]
// puts an entry into memory, [Queue.Flush] writes those whose records the log
// has made durable, [Queue.Sync] makes them durable too. So whatever a crash
// leaves in the files speaks of records that are there, and what it took away
// is appended again by whoever follows the log from [Config.Covered].
//
// Reads run beside appends, flushes and deletions. What was appended can be
// read at once, from memory or from the file; callers see no difference.
//
// # What it needs
//
// Entries come in queue order, one after the other; the first of a new queue
// may have any number. The positions within a queue grow. Truncate and Reset are
// for recovery, before a queue has readers; everything else may run at once.
//
// # What a crash leaves
//
// A file of the full size whose tail is zeros, or, after a power cut, a file
// with any subset of the pages written since the last Sync. Open takes the
// entries up to the first that is not valid or not above its predecessor,
// starting where [Config.Covered] says the files are complete; the last one may
// be torn, which recovery mends with [Queue.Confirm]. A file is durable
// before its successor is made, and files are removed oldest first, so a gap
// between files is damage and is refused, and a file of a wrong size makes its
// queue [Queue.Broken].
package consumequeue
