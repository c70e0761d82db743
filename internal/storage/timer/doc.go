// Package timer holds things that are due at a wall-clock millisecond and hands
// them over in that millisecond: never before it, and as soon after it as the
// machine allows.
//
// # What it promises
//
// [Queue.Run] sleeps until the earliest item is due, however it was added, and
// hands over what is due in slices of bounded length. Items have a lane; when
// several lanes have due items, each gets a turn of at most [Config.Turn] items,
// so a million items of one lane do not keep the next lane waiting. Within a
// lane items come in order of (Due, Offset). When nothing is pending nothing
// runs.
//
// Due times are absolute wall-clock milliseconds. Waiting is done on the
// monotonic clock in stretches of at most [Config.Stretch], after each of which
// the wall clock is looked at again: when it was set back, items wait for the
// time it shows; when it was set forward, they are handed over within a stretch.
//
// # What it needs
//
// Memory of 32 bytes an item, so the caller feeds it what is near. A [Waiter] to
// sleep with: [Precise] in production, which on Linux sleeps in the kernel and
// wakes within a tenth of a millisecond, or [Plain], which uses Go's timers and
// therefore runs under testing/synctest.
//
// # What a crash leaves
//
// Nothing: all is in memory. Its callers load it again from what is durable.
package timer
