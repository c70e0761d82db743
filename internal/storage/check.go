package storage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
)

// maxComplaints bounds what one check reports.
const maxComplaints = 20

// Check visits all of the store: every record with its checksums, for every
// record its queue entry, for every queue entry its record, every index entry. It
// sees what is visible when it is called and may run beside everything else. The
// error joins up to twenty complaints. progress may be nil.
func (s *Store) Check(progress func(at, end mq.LogOffset)) error {
	var errs []error
	more := 0
	complain := func(err error) {
		if err == nil {
			return
		}
		if len(errs) < maxComplaints {
			errs = append(errs, err)
			return
		}
		more++
	}
	end := s.visibleEnd()
	met := map[*consumequeue.Queue]int64{} // entries that a record stands behind
	told := s.log.First()
	_, err := s.log.Walk(s.log.First(), end, func(v record.View) bool {
		complain(s.checkRecord(v, met))
		if at := v.LogOffset(); progress != nil && at-told >= 64<<20 {
			told = at
			progress(at, end)
		}
		return true
	})
	complain(err)
	complain(s.sets.Check())
	s.sets.Each(func(q *consumequeue.Queue) bool {
		upTo, err := q.FindLog(end)
		complain(err)
		from, err := q.FindLog(s.log.First())
		complain(err)
		if n := int64(upTo - from); n > met[q] && !s.cfg.AcceptDamage && !strings.HasPrefix(q.Key().Topic, mq.LMQPrefix) {
			complain(fmt.Errorf("queue %s/%d has %d entries from %d to %d, and the log holds messages for %d of them", q.Key().Topic, q.Key().ID, n, from, upTo, met[q]))
		}
		return true
	})
	if s.index != nil {
		complain(s.index.Check())
	}
	if more > 0 {
		errs = append(errs, fmt.Errorf("and %d complaints more", more))
	}
	return errors.Join(errs...)
}

// checkRecord looks at one record and at its queue entry.
func (s *Store) checkRecord(v record.View, met map[*consumequeue.Queue]int64) error {
	at := v.LogOffset()
	if err := record.Check(v, at, true); err != nil {
		return fmt.Errorf("record at log position %d: %w", at, err)
	}
	if !s.queued(v) {
		return nil
	}
	key := mq.QueueKey{Topic: bin.String(v.Topic()), ID: v.QueueID()}
	q := s.sets.Get(key)
	off := v.QueueOffset()
	if q == nil {
		return fmt.Errorf("record at log position %d: there is no queue %s/%d", at, key.Topic, key.ID)
	}
	if off < q.Min() {
		return nil
	}
	e, ok := q.Entry(off)
	switch {
	case !ok && at < q.End():
		return nil // of a former life of the topic, which had more messages
	case !ok:
		return fmt.Errorf("record at log position %d: queue %s/%d has no entry %d (it has %d to %d)", at, key.Topic, key.ID, off, q.Min(), q.Max())
	case e.Pos > at:
		return nil // of a former life of the topic
	case e.Pos != at || int(e.Size) != len(v):
		return fmt.Errorf("record at log position %d of %d bytes: entry %d of queue %s/%d names position %d and %d bytes", at, len(v), off, key.Topic, key.ID, e.Pos, e.Size)
	}
	met[q]++
	return nil
}
