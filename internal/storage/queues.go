package storage

import (
	"fmt"
	"strings"
	"sync"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/commitlog"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
)

// queue is one queue as the append path sees it: it gives out offsets. What
// readers may see is cq's to say; under sync flush it is behind.
type queue struct {
	store *Store
	key   mq.QueueKey
	cq    *consumequeue.Queue
	due   bool           // entries hold due times: the tags code needs the store time
	next  mq.QueueOffset // guarded by the log's lock
	dead  bool           // its topic was deleted; guarded by the log's lock
	tally *metric.Tally  // of what is appended, or nil
}

// Ready implements commitlog.Queue.
func (q *queue) Ready() error {
	if q.dead {
		return fmt.Errorf("%w: topic %s was deleted", mq.ErrNoTopic, q.key.Topic)
	}
	return nil
}

// NextOffset implements commitlog.Queue.
func (q *queue) NextOffset() mq.QueueOffset { return q.next }

// Appended implements commitlog.Queue.
func (q *queue) Appended(m *record.Message, p *commitlog.Placed) {
	q.next = p.Offset + 1
	if q.due {
		p.TagsCode = q.store.tagsCode(m.Topic, m.Properties, p.StoreTime)
	}
	if q.store.cfg.SyncFlush {
		q.store.dispatch.push(q, *p)
		return
	}
	q.enter(*p)
}

// enter makes the message visible.
func (q *queue) enter(p commitlog.Placed) {
	err := q.cq.Append(p.Offset, consumequeue.Entry{Pos: p.Log, Size: p.Size, TagsCode: p.TagsCode})
	if err != nil {
		q.store.queueFailed(q, err)
	}
}

// noQueue is for records that stand in no queue: prepared and rolled back
// transactions of old brokers.
type noQueue struct{}

func (noQueue) Ready() error                                { return nil }
func (noQueue) NextOffset() mq.QueueOffset                  { return 0 }
func (noQueue) Appended(*record.Message, *commitlog.Placed) {}

// queueTable is all queues that were appended to.
type queueTable struct {
	mu struct {
		sync.RWMutex
		queues   map[mq.QueueKey]*queue
		deleting map[string]bool // topics on their way out
	}
}

// queueFor returns the queue to append to, made when it is new.
func (s *Store) queueFor(key mq.QueueKey) (*queue, error) {
	t := &s.queues
	t.mu.RLock()
	q := t.mu.queues[key]
	deleting := len(t.mu.deleting) > 0 && t.mu.deleting[key.Topic]
	t.mu.RUnlock()
	if deleting {
		return nil, fmt.Errorf("%w: topic %s is being deleted", mq.ErrNoTopic, key.Topic)
	}
	if q != nil {
		return q, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.deleting[key.Topic] {
		return nil, fmt.Errorf("%w: topic %s is being deleted", mq.ErrNoTopic, key.Topic)
	}
	if q := t.mu.queues[key]; q != nil {
		return q, nil
	}
	if s.cfg.Known != nil && !s.cfg.Known(key.Topic) {
		return nil, fmt.Errorf("%w: topic %s does not exist, or not any more", mq.ErrNoTopic, key.Topic)
	}
	// The caller's string may be part of a network buffer.
	key.Topic = strings.Clone(key.Topic)
	cq := s.sets.GetOrCreate(key)
	q = &queue{store: s, key: cq.Key(), cq: cq, due: key.Topic == mq.TopicSchedule, next: cq.Max()}
	if s.cfg.Tally != nil {
		q.tally = s.cfg.Tally(q.key)
	}
	t.mu.queues[q.key] = q
	return q, nil
}

// dispatchList is what is appended and, under sync flush, not yet visible, in
// the order of the log.
type dispatchList struct {
	mu struct {
		sync.Mutex
		list []waiting
		head int
	}
	one sync.Mutex // one dispatches at a time
}

type waiting struct {
	q *queue
	p commitlog.Placed
}

func (d *dispatchList) push(q *queue, p commitlog.Placed) {
	d.mu.Lock()
	d.mu.list = append(d.mu.list, waiting{q, p})
	d.mu.Unlock()
}

// upTo makes visible what ends at or below durable.
func (d *dispatchList) upTo(durable mq.LogOffset) {
	d.one.Lock()
	defer d.one.Unlock()
	for {
		var batch [64]waiting
		d.mu.Lock()
		n := 0
		for n < len(batch) && d.mu.head < len(d.mu.list) && d.mu.list[d.mu.head].p.End <= durable {
			batch[n] = d.mu.list[d.mu.head]
			d.mu.list[d.mu.head] = waiting{}
			d.mu.head++
			n++
		}
		if d.mu.head == len(d.mu.list) {
			d.mu.list, d.mu.head = d.mu.list[:0], 0
			if cap(d.mu.list) > 1<<16 {
				d.mu.list = nil
			}
		}
		d.mu.Unlock()
		if n == 0 {
			return
		}
		for _, w := range batch[:n] {
			w.q.enter(w.p)
			w.q.store.arrived(w.q.key, w.p.Offset, w.p.TagsCode)
		}
	}
}

// hashTags is the tags code of an ordinary message.
func hashTags(props []byte) int64 {
	tags, ok := record.Property(props, mq.PropTags)
	if !ok {
		return 0
	}
	return mq.TagsCode(bin.String(tags))
}
