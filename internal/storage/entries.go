package storage

import (
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
)

// Entries fills dst with the entries of a queue from an offset on and returns
// how many there were: none when the offset is not in the queue.
func (s *Store) Entries(key mq.QueueKey, from mq.QueueOffset, dst []consumequeue.Entry) (int, error) {
	q := s.sets.Get(key)
	if q == nil {
		return 0, nil
	}
	return q.Read(from, dst)
}
