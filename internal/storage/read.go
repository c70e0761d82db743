package storage

import (
	"fmt"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
)

// Record returns the record at a log position, as an offset message id names
// it. release must be called when the view is no longer used. Errors wrap
// [mq.ErrNotFound] when no record stands there.
func (s *Store) Record(at mq.LogOffset) (v record.View, release func(), err error) {
	if at >= s.visibleEnd() {
		return nil, nil, fmt.Errorf("%w: no message at log position %d", mq.ErrNotFound, at)
	}
	v, file, err := s.log.Read(at, 0)
	if err != nil {
		// Positions come from clients: a wrong one is not damage.
		return nil, nil, fmt.Errorf("%w: no message at log position %d: %w", mq.ErrNotFound, at, err)
	}
	return v, file.Release, nil
}

// Entry returns the place of a message, false when the queue does not hold it.
func (s *Store) Entry(key mq.QueueKey, off mq.QueueOffset) (consumequeue.Entry, bool) {
	q := s.sets.Get(key)
	if q == nil {
		return consumequeue.Entry{}, false
	}
	return q.Entry(off)
}

// MinOffset is the offset of the oldest message of a queue, 0 when there is no
// such queue.
func (s *Store) MinOffset(key mq.QueueKey) mq.QueueOffset {
	if q := s.sets.Get(key); q != nil {
		return q.Min()
	}
	return 0
}

// MaxOffset is the offset that the next visible message of a queue gets, 0 when
// there is no such queue.
func (s *Store) MaxOffset(key mq.QueueKey) mq.QueueOffset {
	if q := s.sets.Get(key); q != nil {
		return q.Max()
	}
	return 0
}

// StoreTime is when a message was stored, in ms; false when it is not there.
func (s *Store) StoreTime(key mq.QueueKey, off mq.QueueOffset) (millis int64, ok bool) {
	e, ok := s.Entry(key, off)
	if !ok {
		return 0, false
	}
	return s.storeTime(e)
}

func (s *Store) storeTime(e consumequeue.Entry) (int64, bool) {
	v, file, err := s.log.Read(e.Pos, e.Size)
	if err != nil {
		return 0, false
	}
	defer file.Release()
	return v.StoreTime(), true
}

// OffsetByTime finds a message by its store time. Lower: the first one not older
// than millis, or the end of the queue. Upper: the last one not younger, or 0.
func (s *Store) OffsetByTime(key mq.QueueKey, millis int64, upper bool) (mq.QueueOffset, error) {
	q := s.sets.Get(key)
	if q == nil {
		return 0, nil
	}
	return q.FindTime(millis, upper, s.storeTime)
}

// visibleEnd is the log position up to which records may be shown.
func (s *Store) visibleEnd() mq.LogOffset {
	if s.cfg.SyncFlush {
		return s.log.Durable()
	}
	return s.log.End()
}

// MinLog is the position of the oldest byte of the log.
func (s *Store) MinLog() mq.LogOffset { return s.log.First() }

// MaxLog is the end of the log.
func (s *Store) MaxLog() mq.LogOffset { return s.log.End() }

// Queues calls fn for every queue that exists, by topic and id.
func (s *Store) Queues(fn func(key mq.QueueKey, lo, hi mq.QueueOffset)) {
	s.sets.Each(func(q *consumequeue.Queue) bool {
		fn(q.Key(), q.Min(), q.Max())
		return true
	})
}
