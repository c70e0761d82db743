// Package offsets is the register of progress: how far each consumer group is
// in each queue.
//
// What it promises: a commit is a short lock on one (group, topic) pair and no
// disk; what was never committed is reported as not found, never as 0; progress
// may go back as well as on, but not beyond the end of a queue. Deleting a group or a topic starts a new
// generation: its progress is gone from the file, too, when the call returns. A
// reset that an administrator ordered stands until a pull took it, and commits
// of consumers that do not know of it yet are ignored.
//
// What it needs: a directory for consumerOffset.json, which has RocketMQ's
// form. Tables in it that are not ours are kept. Nothing is saved before the
// file was read.
//
// What a crash leaves: the last saved file, at most a few seconds old: consumers
// get again what they had since. A clean stop saves everything.
package offsets
