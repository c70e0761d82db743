// Package segment is a run of mapped files of one size that together are one
// long row of bytes. A file is named by the position of its first byte in 20
// decimal digits, as RocketMQ names the files of its commit log.
//
// # What it promises
//
// Positions never change: dropping the oldest files moves no byte. The files
// are without a gap from the first to the last. A file handed out by
// [Run.Acquire] stays mapped until it is released, whatever happens to its name.
// [Run.Next] finds its file already made, mapped and partly faulted in, because
// [Run.Run] works ahead of the writer; when it is behind, Next makes the file
// itself.
//
// # What it needs
//
// One writer, which calls Next and Advance. Acquire, Files, First and Drop may
// be called from anywhere. Cut is for recovery, before there are others.
//
// # What a crash leaves
//
// Files are made, given their full size and synced before they are used, so
// after a crash every file has its full size but possibly the last, which then
// holds nothing but zeros and is removed. Files are removed oldest first by Drop
// and newest first by Cut; in no case is there a gap. A gap, or another file
// size, is damage and is refused.
package segment
