// Package pending is the index of messages that wait for a point in time: which
// they are, in the order of their due times, far more than memory holds.
//
// # How
//
// Time only moves forward, so a sorted file of due times is read once, from left
// to right. New entries go into a heap in memory (the table). A full table is
// sorted and written as a run: an immutable file of checked blocks; runs are
// merged when there are many. [Index.Load] takes what falls due next from the
// heads of all runs and of the table; those entries are then "out": the caller
// delivers them and says [Index.Done]. Thousands that are due in one and the same
// millisecond, a herd, are not taken but told as a range, from which
// [Index.LoadHerd] takes slices, so that they hold up nobody else.
//
// An entry that is cancelled, or delivered before its time, stays where it is; its
// sequence number is kept in a bitmap of those that are gone until its time comes.
//
// # What it promises
//
// The index is derived from the log: the queue of pending messages gives the
// entries, receipts and recalls in the log say which are done. It can be deleted.
// [Index.Checkpoint] writes down what it knows, of durable log only: entries below
// [State.Next], deliveries and recalls below [State.Log]. After a crash Open returns
// the last checkpoint, or the one before if that cannot be read, or nothing, and
// the caller adds what the queue and the log hold from there on, in any order.
//
// # What it needs
//
// A directory of its own and little memory: [Config.TableEntries] entries up to four times
// over, 32 bytes each; a block of 16 KiB for each run; what is out.
package pending
