package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/commitlog"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
	"github.com/sundial-mq/sundial/internal/storage/keyindex"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Store is an open store. Its methods are safe for concurrent use.
type Store struct {
	fs   vfs.FS
	cfg  Config
	note *slog.Logger
	lock io.Closer // nil when read only

	log      *commitlog.Log
	sets     *consumequeue.Set
	index    *keyindex.Index // nil when switched off
	queues   queueTable
	dispatch dispatchList

	docs      documents
	identity  identity               // immutable after Open
	foreign   bool                   // another broker wrote here since we did, or we never did; immutable after Open
	damaged   []mq.LogOffset         // starts of log files whose first record cannot be read; immutable after Open
	graveyard sync.Mutex             // held by whoever changes graves
	graves    atomic.Pointer[graves] // topics that were deleted
	expiry    atomic.Pointer[Expiry] // cfg.Expiry, or what it was changed to
	follow    follower

	saving        sync.Mutex // guards what follows
	state         state      // as last written
	checkpoint    checkpoint
	checkpointCRC uint32
	checkpointOld bool // it is another process's and may not be durable
	manifest      manifest

	covered    atomic.Int64 // state.covered.End, for those who do not save
	pins       pins
	expiring   chan struct{}         // holds one while somebody deletes files
	queuesFull atomic.Bool           // the last flush of the queues found no room on the disk
	refused    atomic.Pointer[error] // why users' messages are refused now
	noSpare    atomic.Pointer[error] // why there will be no next commit log file
	// Owner: the disk guard.
	byUsage     bool // refused because of the limit
	reserveUsed bool // the reserve file was given up
	stats       counters
	probe       probe

	closing struct {
		sync.Mutex
		done bool
		err  error
	}
}

// Open locks the directory, recovers the store and returns it ready for use.
// [Store.Run] must follow, or Close.
func Open(fsys vfs.FS, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("store settings: %w", err)
	}
	s := &Store{fs: fsys, cfg: cfg, note: cfg.Log, expiring: make(chan struct{}, 1)}
	s.expiry.Store(&s.cfg.Expiry)
	if s.note == nil {
		s.note = slog.New(slog.DiscardHandler)
	}
	s.queues.mu.queues = map[mq.QueueKey]*queue{}
	s.queues.mu.deleting = map[string]bool{}
	if err := s.open(); err != nil {
		s.giveUp()
		return nil, fmt.Errorf("open store %s: %w", cfg.Dir, err)
	}
	return s, nil
}

func (s *Store) open() error {
	if err := s.takeLock(); err != nil {
		return err
	}
	logConfig := s.cfg.logConfig()
	if s.cfg.SyncFlush {
		logConfig.OnDurable = s.dispatch.upTo
	}
	if err := s.openDocuments(); err != nil {
		return err
	}
	var err error
	if s.log, err = commitlog.Open(s.fs, logConfig); err != nil {
		return err
	}
	return s.recover()
}

// takeLock keeps every other process out, one written in Java too.
func (s *Store) takeLock() error {
	if s.cfg.ReadOnly {
		_, err := s.fs.Stat(s.cfg.Dir)
		return err
	}
	if err := s.makeDirs(); err != nil {
		return err
	}
	var err error
	path := filepath.Join(s.cfg.Dir, "lock")
	if s.lock, err = s.fs.Lock(path); err != nil {
		if errors.Is(err, vfs.ErrLocked) {
			return fmt.Errorf("another broker runs on this directory: %s: %w", path, err)
		}
		return err
	}
	return nil
}

// giveUp closes what is open after a failed Open, without writing anything.
func (s *Store) giveUp() {
	if s.log != nil {
		_ = s.log.Segments().Close()
	}
	if s.sets != nil {
		_ = s.sets.Close()
	}
	if s.index != nil {
		_ = s.index.Close()
	}
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

// Run does the background work until ctx is done and then closes the store
// clean. Whoever appends must have stopped before; later appends fail.
func (s *Store) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.log.Run(ctx) }) // its failure is Close's to report
	wg.Go(func() { s.keepQueues(ctx) })
	wg.Go(func() { s.keepClean(ctx) })
	wg.Go(func() { s.guardDisk(ctx) })
	if s.index != nil {
		wg.Go(func() { s.followLog(ctx) })
	}
	wg.Wait()
	return s.Close()
}

// keepQueues writes queue entries out while the store runs, and now and then
// makes them durable and saves how far they go.
func (s *Store) keepQueues(ctx context.Context) {
	tick := time.NewTicker(s.cfg.QueueFlushInterval)
	defer tick.Stop()
	saved := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		durable := s.log.Durable()
		err := s.sets.Flush(durable)
		if behind := durable - s.coveredEnd(); err == nil && (behind >= mq.LogOffset(s.cfg.QueueSyncBytes) || behind > 0 && time.Since(saved) >= s.cfg.QueueSyncInterval) {
			saved = time.Now()
			err = s.save(false)
		}
		if err != nil {
			s.note.Error("queue entries could not be written; they stay in memory", "err", err)
		}
		s.queuesFull.Store(err != nil && vfs.IsNoSpace(err))
	}
}

// Foreign reports whether another broker has written here since we did, or we never
// did: then what RocketMQ says of its progress counts.
func (s *Store) Foreign() bool { return s.foreign }

// Close makes everything durable and stops the store clean. It may be called
// again.
func (s *Store) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closing.done {
		return s.closing.err
	}
	s.closing.done = true
	s.closing.err = s.close()
	return s.closing.err
}

func (s *Store) close() error {
	if s.cfg.ReadOnly {
		return errors.Join(s.log.Segments().Close(), s.sets.Close())
	}
	err := s.log.Close()
	clean := err == nil && s.log.Durable() == s.log.End()
	if s.index != nil {
		indexErr := s.index.Close()
		clean = clean && indexErr == nil
		err = errors.Join(err, indexErr)
	}
	if clean {
		if err = s.save(true); err == nil {
			err = s.markStopped()
		}
	}
	return errors.Join(err, s.sets.Close(), s.lock.Close())
}

// appendError keeps errors of the log in the words of callers.
func (s *Store) appendError(err error) error { return err }

// queueFailed is called when an entry could not be added to its queue, which
// only a deleted topic or a bug can bring about.
func (s *Store) queueFailed(q *queue, err error) {
	if errors.Is(err, mq.ErrNoTopic) {
		return // deleted: nobody waits for the message
	}
	s.note.Error("a stored message is missing in its queue until the next start", "topic", q.key.Topic, "queue", q.key.ID, "err", err)
}

// makeDirs makes the directories of the store, durably. An earlier process may
// have made them and died before that was durable, so their parents are synced
// in any case.
func (s *Store) makeDirs() error {
	dirs := append([]string{s.cfg.own(""), s.path("consumequeue")}, s.cfg.logDirs()...)
	parents := map[string]bool{filepath.Dir(s.cfg.Dir): true}
	for _, dir := range dirs {
		if err := makeDir(s.fs, dir); err != nil {
			return err
		}
		parents[filepath.Dir(dir)] = true
	}
	for dir := range parents {
		if err := s.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// makeDir makes a directory and, durably, those above it.
func makeDir(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if _, err := fsys.Stat(parent); errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := makeDir(fsys, parent); err != nil {
			return err
		}
		if err := fsys.SyncDir(filepath.Dir(parent)); err != nil {
			return err
		}
	}
	return fsys.MkdirAll(dir)
}
