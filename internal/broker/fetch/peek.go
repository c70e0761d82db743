package fetch

import (
	"fmt"
	"math/rand/v2"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage"
)

// Peeked is what a look ahead found.
type Peeked struct {
	Chunks  [][]byte // records back to back, views into the log; valid until Release
	Count   int
	Rest    int64  // messages that the group has not consumed, those of Chunks among them
	Release func() // never nil; call once
}

// Peek shows a group the next messages of a queue, or below 0 of the topic's
// queues from any of them on, and changes nothing: neither its progress nor what
// anybody is given. It may read from the disk.
func (f *Flow) Peek(groupName, topicName string, queue mq.QueueID, most int32) (Peeked, error) {
	if !f.permission().Readable() {
		return Peeked{}, fmt.Errorf("%w: this broker does not give messages (brokerPermission is %d)", mq.ErrNoPermission, f.permission())
	}
	topic := f.topics.Get(topicName)
	switch {
	case topic == nil:
		return Peeked{}, fmt.Errorf("%w: topic[%s] not exist, make it first or send to it", mq.ErrNoTopic, topicName)
	case !topic.Perm.Readable():
		return Peeked{}, fmt.Errorf("%w: topic %s is not readable (its perm is %d)", mq.ErrNoPermission, topicName, topic.Perm)
	case int32(queue) >= topic.ReadQueues:
		return Peeked{}, fmt.Errorf("%w: queue %d of topic %s does not exist, it has %d to read", mq.ErrInvalid, queue, topicName, topic.ReadQueues)
	case most < 0:
		return Peeked{}, fmt.Errorf("%w: maxMsgNums is %d", mq.ErrInvalid, most)
	}
	if group := f.groups.Get(groupName); group != nil && !group.ConsumeEnable {
		return Peeked{}, fmt.Errorf("%w: group %s may not consume (consumeEnable is false)", mq.ErrNoPermission, groupName)
	}
	first, queues := queue, int32(1)
	if queue < 0 {
		queues = topic.ReadQueues
		first = mq.QueueID(rand.Int32N(max(1, queues)))
	}
	var p Peeked
	var held []*storage.Fetched
	left, room := min(int(most), f.cfg.MaxMessages), f.cfg.MaxBytes
	for i := range queues {
		id := first
		if queue < 0 {
			id = (first + mq.QueueID(i)) % mq.QueueID(queues)
		}
		key := mq.QueueKey{Topic: topicName, ID: id}
		from := f.store.MinOffset(key)
		if off, ok := f.offsets.Query(groupName, topicName, id); ok {
			from = max(from, off)
		}
		p.Rest += max(0, int64(f.store.MaxOffset(key)-from))
		if left == 0 || room <= 0 {
			continue
		}
		got := f.store.Fetch(storage.FetchRequest{Queue: key, From: from, MaxCount: left, MaxBytes: room})
		held = append(held, &got)
		if got.Status == storage.Found {
			p.Chunks = append(p.Chunks, got.Chunks...)
			p.Count += got.Count
			left -= got.Count
			room -= got.Bytes
		}
	}
	p.Release = func() {
		for _, h := range held {
			h.Release()
		}
	}
	return p, nil
}
