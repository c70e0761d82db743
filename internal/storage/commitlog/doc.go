// Package commitlog appends records to the one log of a broker, makes them
// durable in groups and reads them back. The bytes are RocketMQ's: files of one
// size in DIR/commitlog, records as package record draws them, a blank at the
// end of each file.
//
// # What it promises
//
// There is one order: [Log.Append] and [Log.AppendBatch] run one at a time, and
// under that lock a record gets its store time, which never goes back, its log
// offset, its queue offset from a [Queue], and its bytes, straight into mapped
// memory. A record never crosses a file, the records of a batch neither.
//
// Appended is not durable. [Log.Durable] is the position below which everything
// survives a power loss; one fdatasync makes durable what all have appended
// since the last ([Log.WhenDurable] tells each). When fdatasync fails, nobody
// knows what is on disk and asking again proves nothing: the log then refuses
// every further append and names the cause, until it is opened anew.
//
// # What it needs
//
// [Open] maps the files, [Log.Scan] finds out where the records end, and
// [Log.Start] cuts the log there; before that nothing can be appended. [Log.Run]
// works ahead of the writer and flushes.
//
// # What a crash leaves
//
// Whole records up to some point at or above Durable, and after it anything
// that the system wrote of the rest. Scan stops at the first record that is not
// whole or says that it stands elsewhere, and Start makes everything after it
// zero on disk before a byte is appended, so that no older record comes back.
package commitlog
