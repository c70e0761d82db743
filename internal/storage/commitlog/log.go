package commitlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/segment"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Log is an open commit log.
type Log struct {
	cfg Config
	run *segment.Run

	end      atomic.Int64 // after the last whole record or blank; written under mu
	durable  atomic.Int64 // written by who flushes
	flushes  atomic.Int64
	flushing atomic.Int64          // ns
	failed   atomic.Pointer[error] // why nothing can be appended any more

	// mu is the one lock of the write path.
	mu struct {
		sync.Mutex
		file     *segment.File // the last file; nil when it is full or there is none
		last     mq.LogOffset  // start of the last record, -1 when there is none
		lastTime int64         // its store time, ms
		started  bool
		placed   Placed // of the record being appended
	}

	flush chan struct{}        // holds one while somebody flushes, which may take long
	mark  atomic.Pointer[Mark] // the durable position; written by who flushes
	kick  chan struct{}        // somebody waits for a flush
	waits waitList
}

// Open maps the files of a log. [Log.Scan] and [Log.Start] make it ready.
func Open(fsys vfs.FS, cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	run, err := segment.Open(fsys, segment.Config{
		Dirs: cfg.Dirs, FileSize: cfg.FileSize, FileSizeKey: "mappedFileSizeCommitLog",
		Prefault: cfg.Prefault, ForceAfter: cfg.ForceAfter, ReadOnly: cfg.ReadOnly,
	})
	if err != nil {
		return nil, err
	}
	l := &Log{cfg: cfg, run: run, flush: make(chan struct{}, 1), kick: make(chan struct{}, 1)}
	l.mark.Store(&Mark{Last: -1})
	l.waits.init()
	return l, nil
}

// Start cuts the log at the end that Scan found and makes it ready for appends.
// Everything behind is removed or made zero durably before Start returns, and
// what is kept is made durable.
func (l *Log) Start(t Tail) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.started {
		panic("BUG: the log was started before")
	}
	if err := l.run.Cut(int64(t.End)); err != nil {
		return err
	}
	if files := l.run.Files(); len(files) > 0 {
		last := files[len(files)-1]
		if int64(t.End) < last.End() {
			l.mu.file = last
		}
		// What the crashed process had not flushed lies in the files scanned.
		for _, f := range files {
			if f.End() > int64(t.From) && f.Start() < int64(t.End) {
				if err := f.Sync(); err != nil {
					return fmt.Errorf("make the recovered log durable: %w", err)
				}
			}
		}
	}
	l.mu.last, l.mu.lastTime = t.Last, t.StoreTime
	l.mark.Store(&t.Mark)
	l.mu.started = true
	l.end.Store(int64(t.End))
	l.durable.Store(int64(t.End))
	l.run.Advance(int64(t.End))
	return nil
}

// StartReadOnly makes a log that was opened for reading end where Scan found it
// to end.
func (l *Log) StartReadOnly(t Tail) error {
	_ = l.fail(fmt.Errorf("%w: the store is open for reading only", mq.ErrUnavailable))
	l.end.Store(int64(t.End))
	l.durable.Store(int64(t.End))
	return nil
}

// First is the position of the first byte still there.
func (l *Log) First() mq.LogOffset { return mq.LogOffset(l.run.First()) }

// End is the position after the last record.
func (l *Log) End() mq.LogOffset { return mq.LogOffset(l.end.Load()) }

// Durable is the position below which everything survives a power loss.
func (l *Log) Durable() mq.LogOffset { return mq.LogOffset(l.durable.Load()) }

// Segments is the run of files below, for expiry and reports.
func (l *Log) Segments() *segment.Run { return l.run }

// Err is why the log takes no appends any more, or nil.
func (l *Log) Err() error {
	if p := l.failed.Load(); p != nil {
		return *p
	}
	return nil
}

func (l *Log) fail(err error) error {
	l.failed.CompareAndSwap(nil, &err)
	return *l.failed.Load()
}

// Run flushes and works ahead until ctx is done; then it flushes a last time.
// Nothing should be appended after that.
func (l *Log) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.run.Run(ctx) })
	wg.Go(func() { l.waits.watch(ctx) })
	err := l.flushLoop(ctx)
	wg.Wait()
	return err
}

// Close flushes what is left, refuses further appends and gives the files back.
func (l *Log) Close() error {
	var err error
	l.mu.Lock()
	started := l.mu.started
	l.mu.Unlock()
	if started {
		err = l.Flush()
	}
	_ = l.fail(fmt.Errorf("%w: the store is closed", mq.ErrUnavailable))
	l.waits.settle(l.Durable(), l.Err())
	l.mu.Lock()
	l.mu.file = nil
	l.mu.Unlock()
	return errors.Join(err, l.run.Close())
}

// File is one file of the log.
type File = segment.File
