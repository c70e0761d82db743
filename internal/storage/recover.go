package storage

import (
	"fmt"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/commitlog"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
)

// recover finds the end of the log and makes the queues agree with it.
func (s *Store) recover() error {
	tail, err := s.log.Scan(commitlog.Scan{Visit: s.recoverRecord})
	if err != nil {
		return err
	}
	if s.cfg.ReadOnly {
		return nil
	}
	if err := s.log.Start(tail); err != nil {
		return err
	}
	return s.sets.TruncateAt(tail.End)
}

// recoverRecord gives a record of the log its place in its queue.
func (s *Store) recoverRecord(v record.View) error {
	if tx := v.SysFlag().Tx(); tx == mq.SysTxPrepared || tx == mq.SysTxRollback {
		return nil
	}
	q := s.sets.GetOrCreate(mq.QueueKey{Topic: string(v.Topic()), ID: v.QueueID()})
	off := v.QueueOffset()
	if off < q.Max() {
		return nil
	}
	err := q.Append(off, consumequeue.Entry{
		Pos: v.LogOffset(), Size: int32(len(v)),
		TagsCode: s.tagsCode(string(v.Topic()), v.Properties(), v.StoreTime()),
	})
	if err != nil {
		return fmt.Errorf("recover consume queue: %w", err)
	}
	return nil
}
