package delay

import (
	"sort"
	"strconv"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
)

// Lateness is how long after their due time messages were delivered in the last
// minute, levels and timed ones together, and since the start.
func (f *Flow) Lateness() (minute, all metric.Snapshot) {
	return f.count.late.LastMinute(), f.count.late.Snapshot()
}

// behind is how many entries of the timer queue are not indexed yet.
func (f *Flow) behind() int64 {
	return max(0, int64(f.store.MaxOffset(timedQueue)-f.timed.index.Next()))
}

// LevelCounts is Counts for the levels, all together. A level's queue is in the
// order of due times but where the clock or the level table changed; there it is off
// by what is out of order.
func (f *Flow) LevelCounts(at []int64) []int64 {
	if len(at) < 2 {
		return nil
	}
	type span struct {
		key    mq.QueueKey
		lo, hi int64
	}
	var spans []span
	f.mu.Lock()
	for _, l := range f.lanesLocked() {
		if l.done.low < l.end {
			spans = append(spans, span{l.key, l.done.low, l.end})
		}
	}
	f.mu.Unlock()
	counts := make([]int64, len(at)-1)
	var one [1]consumequeue.Entry
	for _, s := range spans {
		below := s.lo
		for i, bound := range at {
			upTo := below + int64(sort.Search(int(s.hi-below), func(n int) bool {
				got, _ := f.store.Entries(s.key, mq.QueueOffset(below+int64(n)), one[:])
				return got == 0 || one[0].TagsCode >= bound
			}))
			if i > 0 {
				counts[i-1] += upTo - below
			}
			below = upTo
		}
	}
	return counts
}

// Oldest is the pending timed message that is due first, if there is one.
func (f *Flow) Oldest() (Pending, bool) {
	for e, err := range f.timed.index.Scan(0, 1<<62) {
		if err != nil {
			break
		}
		if p, ok := f.pendingOf(&e); ok {
			return p, true
		}
	}
	return Pending{}, false
}

// Scheduled finds pending timed messages by a key, or by a unique key, like FindByKey,
// and hands out the records as they will be delivered: with their destination, and
// with the properties that say when they are due. Their place in the log is that of the
// pending record, the offset the one the destination gives next: no consumer is past it.
func (f *Flow) Scheduled(topic, key string, max int, begin, end int64) ([][]byte, error) {
	found, err := f.FindByKey(topic, key)
	if err != nil {
		return nil, err
	}
	var list [][]byte
	for i := range found {
		p := &found[i]
		if p.StoreTime < begin || p.StoreTime > end || len(list) == max {
			continue
		}
		b, err := f.asScheduled(p)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

func (f *Flow) asScheduled(p *Pending) ([]byte, error) {
	v, release, err := f.store.Record(p.Log)
	if err != nil {
		return nil, err
	}
	defer release()
	m := copyOf(v)
	m.Topic, m.QueueID = p.Topic, p.Queue
	m.QueueOffset = f.store.MaxOffset(mq.QueueKey{Topic: p.Topic, ID: p.Queue})
	m.LogOffset, m.StoreTime, m.BodyCRC = v.LogOffset(), v.StoreTime(), v.BodyCRC()
	m.Properties = record.AppendWithout(nil, v.Properties(), mq.PropRealTopic, mq.PropRealQueueID, mq.PropRecalled, mq.PropDue, mq.PropCRC32)
	m.Properties = record.AppendProperty(m.Properties, mq.PropDue, strconv.FormatInt(p.Due, 10))
	return m.Append(nil, false)
}
