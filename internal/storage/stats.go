package storage

import (
	"fmt"
	"sync"
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

// Disk is a directory of the store and how full its disk is.
type Disk struct {
	Dir     string
	Total   uint64 // bytes
	Free    uint64 // bytes, those kept for the superuser too
	Percent int    // used, as the limits count it
}

// Disks tells of the directories of the log, and of that of the queues.
func (s *Store) Disks() (log []Disk, queues Disk, err error) {
	look := func(dir string) (Disk, error) {
		u, err := s.fs.Usage(dir)
		if err != nil {
			return Disk{}, fmt.Errorf("usage of the disk of %s: %w", dir, err)
		}
		return Disk{Dir: dir, Total: u.Total, Free: u.Total - min(u.Used, u.Total), Percent: percent(u)}, nil
	}
	for _, dir := range s.cfg.logDirs() {
		d, err := look(dir)
		if err != nil {
			return nil, Disk{}, err
		}
		log = append(log, d)
	}
	queues, err = look(s.cfg.Dir)
	return log, queues, err
}

// LockHeld is how long an append would have to wait, or waits, for the lock of the
// write path. It does not wait itself but for a moment.
func (s *Store) LockHeld() time.Duration {
	p := &s.probe
	p.mu.Lock()
	if p.mu.done == nil {
		done := make(chan struct{})
		p.mu.done, p.mu.began = done, time.Now()
		go func() {
			s.log.Locked(func(mq.LogOffset) {})
			p.mu.Lock()
			defer p.mu.Unlock()
			p.mu.done = nil
			close(done)
		}()
	}
	done, began := p.mu.done, p.mu.began
	p.mu.Unlock()
	select {
	case <-done:
	case <-time.After(probeWait):
	}
	return time.Since(began)
}

// probeWait is how long LockHeld waits before it says what it knows.
const probeWait = 10 * time.Millisecond

// probe is somebody who waits for the lock of the write path to find out how long
// that takes; at most one does.
type probe struct {
	mu struct {
		sync.Mutex
		began time.Time
		done  chan struct{} // nil: nobody is under way
	}
}
