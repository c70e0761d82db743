package storage

import (
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// counters are written on the hot path.
type counters struct {
	Messages atomic.Int64
	Bytes    atomic.Int64
}

// Stats is what a store tells of itself. Counts begin when it was opened.
type Stats struct {
	Messages int64 // appended
	Bytes    int64 // of their records

	Flushes   int64 // of the log that had something to do
	FlushTime time.Duration

	MinLog, MaxLog mq.LogOffset
	Durable        mq.LogOffset // below it everything survives a power loss
	Covered        mq.LogOffset // from here a start after a crash reads the log
	Indexed        mq.LogOffset // the key index knows all before it

	DiskUsed int   // percent, as the limits count it; -1 when it cannot be told
	Refusing error // why messages of users are refused now, or nil
}

// Stats tells how the store is. It may touch the disk.
func (s *Store) Stats() Stats {
	st := Stats{
		Messages: s.stats.Messages.Load(), Bytes: s.stats.Bytes.Load(),
		MinLog: s.MinLog(), MaxLog: s.MaxLog(), Durable: s.Durable(), Covered: s.coveredEnd(),
		Indexed: mq.LogOffset(s.follow.at.Load()), Refusing: s.refusal(0),
	}
	st.Flushes, st.FlushTime = s.log.Flushes()
	var err error
	if st.DiskUsed, _, err = s.diskUsed(); err != nil {
		st.DiskUsed = -1
	}
	if st.Refusing == nil {
		st.Refusing = s.log.Err()
	}
	return st
}
