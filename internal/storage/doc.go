// Package storage is the engine: it appends messages to the commit log, keeps
// the consume queues and the key index that are derived from it, reads messages
// back, lets old ones go, and recovers all of it after any kind of stop. The
// files are RocketMQ's; what is only ours lies in DIR/sundial.
//
// # What it promises
//
// A message has its place in the log and in its queue when [Store.Append]
// returns. It is visible to readers when it is dispatched, in the order of the
// log: at once, or, with Config.SyncFlush, as soon as it is durable, so that
// nobody reads what a power loss could take back. [Store.WhenDurable] tells when
// that is. A queue offset once told is never given to another message; only with
// asynchronous flush a power loss may take the unflushed tail, and its offsets
// are then used again.
//
// The log is the truth. Queues and index can be deleted and are built anew from
// it. What is written about progress (DIR/sundial/state, checkpoint) never
// passes what is durable.
//
// # What it needs
//
// A directory of its own, which the lock file guards against a second process,
// also a Java one. [Open] has recovered when it returns; [Store.Run] does the
// background work and stops the store clean when its context is done.
//
// # What a crash leaves
//
// The log up to some point at or above the last flush, queues and index at most
// up to there. Open cuts the log behind the last whole record and appends to the
// queues what they lack, from the position that DIR/sundial/state names on. A
// store without that file, such as a Java one, is walked from its first record,
// once. Damage below what is known to have been durable is not healed: Open
// refuses with an [mq.CorruptionError], unless Config.AcceptDamage.
//
// # Locks
//
// The log's lock comes before a queue's; dispatch (sync flush) and the locks of
// the parts come after both. Callbacks of Config run without locks, but for
// TagsCode, which runs under the log's.
package storage
