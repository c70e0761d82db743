package delay

import (
	"maps"
	"math"
	"slices"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
)

// Stats is the state of a flow.
type Stats struct {
	Levels  []LevelStats // by level: those of the table and those that have a queue
	Pending int64        // in all levels, and timed
	Timed   TimedStats
	NextDue int64 // ms, 0 when nothing is pending
	Parked  []ParkedStats
	Aside   int64 // set aside since the store was made
}

// TimedStats is the state of the timed messages.
type TimedStats struct {
	Pending   int64
	Parked    int
	NextDue   int64 // ms, of those not yet at hand, 0 when there is none
	Delivered int64 // since the start
	PerSecond float64
	Read      mq.QueueOffset // entries of the timer queue below are indexed
	Behind    int64          // entries that are not
	Indexed   float64        // entries a second, mean of the last ten seconds
}

// LevelStats is the state of one level.
type LevelStats struct {
	Level     mq.DelayLevel
	Millis    int64          // its delay, 0 when it is no longer in the table
	Low       mq.QueueOffset // lowest that is not delivered
	Max       mq.QueueOffset
	Pending   int64
	Parked    int     // of them due, but refused by their destination
	NextDue   int64   // of the oldest not delivered, ms, 0 when nothing is pending
	LagMillis int64   // how long the oldest not delivered is overdue
	Delivered int64   // since the start
	PerSecond float64 // delivered, mean of the last ten seconds
}

// ParkedStats is a destination that takes no messages now.
type ParkedStats struct {
	Destination mq.QueueKey // without topic: records that cannot be read
	Messages    int
	Since       int64 // ms
	Err         error
}

// Stats looks at everything.
func (f *Flow) Stats() Stats {
	var st Stats
	now := f.timer.Now()
	f.mu.Lock()
	for _, l := range f.lanesLocked() {
		ls := LevelStats{
			Level: l.level, Low: mq.QueueOffset(l.done.low), Max: mq.QueueOffset(l.end), Pending: l.pending(), Parked: l.parked,
			Delivered: l.delivered, PerSecond: l.rate.perSecond(now),
		}
		st.Levels = append(st.Levels, ls)
	}
	for _, d := range f.mu.parked {
		st.Parked = append(st.Parked, ParkedStats{d.key, len(d.items), d.since.UnixMilli(), d.err})
	}
	st.Aside = f.mu.aside.count
	t := &f.timed.tally
	st.Timed = TimedStats{Parked: t.parked, Delivered: t.delivered, PerSecond: t.rate.perSecond(now)}
	f.mu.Unlock()
	in := f.timed.index.Stats()
	st.Timed.Pending, st.Timed.Read = in.Pending, in.Next
	st.Timed.Behind, st.Timed.Indexed = f.behind(), f.count.indexed.Rates().Sec10
	if due := f.timed.index.NextDue(); due != math.MaxInt64 {
		st.Timed.NextDue = due
	}
	if due, ok := f.timer.LaneNext(timedLane); ok && (st.Timed.NextDue == 0 || due < st.Timed.NextDue) {
		st.Timed.NextDue = due
	}
	st.Pending, st.NextDue = st.Timed.Pending, st.Timed.NextDue

	for n := 1; n <= f.cfg.Levels.Count(); n++ {
		level := mq.DelayLevel(n)
		i, ok := slices.BinarySearchFunc(st.Levels, level, func(l LevelStats, level mq.DelayLevel) int { return int(l.Level) - int(level) })
		if !ok {
			st.Levels = slices.Insert(st.Levels, i, LevelStats{Level: level})
		}
		st.Levels[i].Millis = f.cfg.Levels.Millis(level)
	}
	for i := range st.Levels {
		l := &st.Levels[i]
		st.Pending += l.Pending
		if l.Pending == 0 {
			continue
		}
		var one [1]consumequeue.Entry
		if n, _ := f.store.Entries(mq.QueueKey{Topic: mq.TopicSchedule, ID: mq.QueueID(l.Level - 1)}, l.Low, one[:]); n == 1 {
			l.NextDue = one[0].TagsCode
			l.LagMillis = max(0, now-l.NextDue)
			if st.NextDue == 0 || l.NextDue < st.NextDue {
				st.NextDue = l.NextDue
			}
		}
	}
	return st
}

// Aside returns the latest messages that were set aside.
func (f *Flow) Aside() []Aside {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.mu.aside.list)
}

// Offsets is what delayOffset.json would say now.
func (f *Flow) Offsets() OffsetTable {
	t := f.table(f.snapshot())
	return OffsetTable{Version: f.files.version(), Offsets: maps.Clone(t)}
}
