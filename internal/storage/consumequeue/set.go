package consumequeue

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Set is all consume queues of a store.
type Set struct {
	fs       vfs.FS
	dir      string
	perFile  int64
	readOnly bool
	handles  *handles

	// dirs is held for reading while files are made, for writing while the
	// directories of a topic are removed, so that a queue made anew under the same
	// name does not lose its files. Locked before a queue's locks.
	dirs sync.RWMutex

	mu struct {
		sync.RWMutex
		queues map[mq.QueueKey]*Queue
		topics map[string][]*Queue // by queue id
		dying  map[string][]*Queue // of topics whose deletion has failed so far
	}
	// Queues that have something to flush or to sync. Locked after a queue's locks.
	work struct {
		sync.Mutex
		busy     []*Queue
		unsynced []*Queue
	}
}

// Get returns a queue, nil when there is none.
func (s *Set) Get(key mq.QueueKey) *Queue {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.queues[key]
}

// GetOrCreate returns a queue and makes it, without a file yet, when there is none.
func (s *Set) GetOrCreate(key mq.QueueKey) *Queue {
	if q := s.Get(key); q != nil {
		return q
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.mu.queues[key]; q != nil {
		return q
	}
	q := newQueue(s, key)
	s.addLocked(q)
	return q
}

func (s *Set) addLocked(q *Queue) {
	s.mu.queues[q.key] = q
	list := s.mu.topics[q.key.Topic]
	i, _ := slices.BinarySearchFunc(list, q.key.ID, func(q *Queue, id mq.QueueID) int { return int(q.key.ID) - int(id) })
	s.mu.topics[q.key.Topic] = slices.Insert(slices.Clone(list), i, q)
}

// Topics returns the names of all topics that have queues, sorted.
func (s *Set) Topics() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := make([]string, 0, len(s.mu.topics))
	for name := range s.mu.topics {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TopicQueues returns the queues of a topic by id. The slice must not be changed.
func (s *Set) TopicQueues(topic string) []*Queue {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.topics[topic]
}

// Each calls fn for every queue, by topic and id, until it returns false.
func (s *Set) Each(fn func(*Queue) bool) {
	for _, topic := range s.Topics() {
		for _, q := range s.TopicQueues(topic) {
			if !fn(q) {
				return
			}
		}
	}
}

// each calls fn for every queue and joins the errors.
func (s *Set) each(fn func(*Queue) error) error {
	var errs []error
	s.Each(func(q *Queue) bool {
		errs = append(errs, fn(q))
		return true
	})
	return errors.Join(errs...)
}

// End is the highest log position after a record that has an entry.
func (s *Set) End() mq.LogOffset {
	var end mq.LogOffset
	s.Each(func(q *Queue) bool {
		end = max(end, q.End())
		return true
	})
	return end
}

// Flush flushes every queue that has entries in memory only; see [Queue.Flush].
func (s *Set) Flush(upTo mq.LogOffset) error {
	s.work.Lock()
	list := s.work.busy
	s.work.busy = nil
	s.work.Unlock()
	var errs []error
	for _, q := range list {
		errs = append(errs, q.Flush(upTo))
		q.mu.Lock()
		q.mu.busy = len(q.mu.blocks) > 0 && !q.mu.gone
		if q.mu.busy {
			s.addBusy(q)
		}
		q.mu.Unlock()
	}
	return errors.Join(errs...)
}

// Sync makes everything that was flushed durable.
func (s *Set) Sync() error {
	s.work.Lock()
	list := s.work.unsynced
	s.work.unsynced = nil
	s.work.Unlock()
	var errs []error
	dirs := map[string]bool{}
	for _, q := range list {
		q.io.Lock()
		if err := q.syncIO(dirs); err != nil {
			errs = append(errs, err)
		}
		q.io.Unlock()
	}
	for dir := range dirs {
		if err := s.fs.SyncDir(dir); err != nil {
			errs = append(errs, fmt.Errorf("sync consume queues: %w", err))
		}
	}
	if len(errs) > 0 {
		// Which directories were whose is forgotten: next time all of them.
		for _, q := range list {
			q.io.Lock()
			q.newFiles, q.newDir = true, true
			q.io.Unlock()
			s.addUnsynced(q)
		}
	}
	return errors.Join(errs...)
}

// TruncateAt cuts every queue at the end of the log; see [Queue.TruncateAt].
func (s *Set) TruncateAt(logEnd mq.LogOffset) error {
	return s.each(func(q *Queue) error { return q.TruncateAt(logEnd) })
}

// RaiseMin lets every queue follow the start of the log; see [Queue.RaiseMin].
func (s *Set) RaiseMin(minLog mq.LogOffset) error {
	return s.each(func(q *Queue) error { return q.RaiseMin(minLog) })
}

// DeleteTopic removes all queues of a topic with their files. Appends to them fail from now on.
func (s *Set) DeleteTopic(topic string) error {
	if s.readOnly {
		return errReadOnly
	}
	s.dirs.Lock()
	defer s.dirs.Unlock()
	s.mu.Lock()
	list := append(s.mu.dying[topic], s.mu.topics[topic]...)
	delete(s.mu.topics, topic)
	s.mu.dying[topic] = list
	for _, q := range list {
		delete(s.mu.queues, q.key)
	}
	s.mu.Unlock()
	for _, q := range list {
		if err := q.destroy(); err != nil {
			return fmt.Errorf("delete consume queues of topic %s: %w", topic, err)
		}
	}
	if err := s.fs.RemoveAll(filepath.Join(s.dir, topic)); err != nil {
		return fmt.Errorf("delete consume queues of topic %s: %w", topic, err)
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return fmt.Errorf("delete consume queues of topic %s: %w", topic, err)
	}
	s.mu.Lock()
	delete(s.mu.dying, topic)
	s.mu.Unlock()
	return nil
}

func (q *Queue) destroy() error {
	q.io.Lock()
	defer q.io.Unlock()
	q.mu.Lock()
	q.mu.gone = true
	n := len(q.mu.files)
	q.min.Store(q.max.Load())
	q.mu.blocks = nil
	q.mu.Unlock()
	if err := q.removeFiles(n); err != nil {
		return err
	}
	q.newFiles, q.newDir = false, false
	return nil
}

// Check visits every entry of every queue and returns what is wrong.
func (s *Set) Check() error { return s.each((*Queue).Check) }

// Close closes all files. It neither flushes nor syncs.
func (s *Set) Close() error {
	return s.each(func(q *Queue) error {
		q.io.Lock()
		defer q.io.Unlock()
		q.mu.Lock()
		files := q.mu.files
		q.mu.files, q.mu.gone = nil, true
		q.min.Store(q.max.Load())
		q.mu.Unlock()
		for _, f := range files {
			s.handles.drop(f)
		}
		return nil
	})
}

func (s *Set) addBusy(q *Queue) {
	s.work.Lock()
	defer s.work.Unlock()
	s.work.busy = append(s.work.busy, q)
}

func (s *Set) addUnsynced(q *Queue) {
	s.work.Lock()
	defer s.work.Unlock()
	s.work.unsynced = append(s.work.unsynced, q)
}
