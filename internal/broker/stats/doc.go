// Package stats counts what goes through the broker: messages stored and handed
// out, by topic, by queue, by group and topic, and of the whole broker, over the
// last minute, hour and day, and today and yesterday by the calendar.
//
// What it promises: counting takes no lock. A message stored costs a few atomic
// additions to a [metric.Tally] that the store keeps with its queue; a pull that
// found something costs one look-up without a lock more. Every message is counted
// once, whoever stored it: clients, the delay of a message that is over, a retry.
// What is told is true to the moment it is asked for, not to the last sample;
// a window never reaches back further than it says.
//
//	window   steps        reaches back
//	minute    6 of 10 s   50 s to 60 s
//	hour      6 of 10 min 50 min to 60 min
//	day      24 of 1 h    23 h to 24 h
//
// Steps are counted by the clock that does not jump; the calendar's day ends at
// midnight where the broker is, and a clock that is set back a little does not
// begin it twice.
//
// What it needs: [Register.Run], which takes the samples. Memory is bounded: a
// queue that was idle for a day keeps its counters only, a group's reading of
// it leaves altogether, and no more than Config.MaxReaders of those are
// told apart; what is beyond counts for the broker as a whole.
//
// What a crash leaves: the numbers of today and yesterday, at most
// Config.SaveInterval old (DIR/sundial/stats.json). Windows begin anew with the
// process.
package stats
