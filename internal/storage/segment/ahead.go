package segment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// retryAfter is the pause after a file could not be made in advance.
const retryAfter = time.Second

// Next adds a file to the end of the run and returns it. Only the writer calls
// it. It fails when the file cannot be made, for instance on a full disk, and
// may be called again.
func (r *Run) Next() (*File, error) {
	r.mu.Lock()
	for r.mu.making != nil {
		making := r.mu.making
		r.mu.Unlock()
		<-making
		r.mu.Lock()
	}
	defer r.mu.Unlock()
	if r.mu.closed {
		return nil, fmt.Errorf("%w: the log is closed", mq.ErrUnavailable)
	}
	f := r.mu.spare
	if f == nil {
		var err error
		if f, err = r.make(r.nextStart()); err != nil {
			r.mu.spareErr = err
			return nil, err
		}
	}
	r.mu.spare, r.mu.spareErr = nil, nil
	old := r.Files()
	files := make([]*File, len(old), len(old)+1)
	copy(files, old)
	files = append(files, f)
	r.files.Store(&files)
	return f, nil
}

// nextStart is where the file after the last begins. It stays so under mu.
func (r *Run) nextStart() int64 {
	files := r.Files()
	if len(files) == 0 {
		return 0
	}
	return files[len(files)-1].End()
}

// make creates one file with its room reserved.
func (r *Run) make(start int64) (*File, error) {
	dir := r.cfg.Dirs[start/r.cfg.FileSize%int64(len(r.cfg.Dirs))]
	path := filepath.Join(dir, name(start))
	h, err := r.fs.Create(path)
	if err != nil {
		return nil, fmt.Errorf("make segment: %w", err)
	}
	err = h.Allocate(r.cfg.FileSize)
	if err == nil {
		err = h.Sync()
	}
	if err == nil {
		err = r.fs.SyncDir(dir)
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("reserve %d bytes for segment %s: %w", r.cfg.FileSize, path, err), h.Close())
		if rm := r.fs.Remove(path); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
			err = errors.Join(err, rm)
		}
		return nil, err
	}
	m, err := h.Map(r.cfg.FileSize, true)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map segment: %w", err), h.Close(), r.fs.Remove(path))
	}
	f := &File{fs: r.fs, path: path, start: start, data: m.Bytes(), mapping: m}
	f.refs.Store(1)
	f.handle.f = h
	return f, nil
}

// Advance says that the writer has come to pos. It is cheap enough to be called
// after every write.
func (r *Run) Advance(pos int64) {
	r.written.Store(pos)
	if pos >= r.wakeAt.Load() {
		r.Wake()
	}
}

// Wake makes Run look at once.
func (r *Run) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// SpareError is why the next file could not be made in advance, nil when it is
// there or not needed yet.
func (r *Run) SpareError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.spareErr
}

// Run makes files and faults in memory ahead of the writer until ctx is done.
func (r *Run) Run(ctx context.Context) error {
	r.prepared = r.written.Load()
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		r.work()
		if r.SpareError() != nil {
			retry.Reset(retryAfter)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-retry.C:
		}
	}
}

// work does what is due: a spare file once less than half of the last is left,
// and pages up to Prefault ahead, in steps of a quarter of it.
func (r *Run) work() {
	pos := r.written.Load()
	// The writer may pass this while we work; it is set first so that it wakes us.
	r.wakeAt.Store(pos + max(min(r.cfg.Prefault/4, r.cfg.FileSize/4), 1))
	if r.cfg.Prefault == 0 {
		r.wakeAt.Store(pos + r.cfg.FileSize/4)
	}
	r.makeSpare(pos)
	from, to := max(r.prepared, pos), pos+r.cfg.Prefault
	for from < to {
		f := r.at(from)
		if f == nil {
			break
		}
		end := min(to, f.End())
		f.mapping.Populate(from-f.start, end-from)
		f.Release()
		from = end
	}
	r.prepared = from
}

// at returns the file of the run, or the spare, that holds pos.
func (r *Run) at(pos int64) *File {
	if f := r.Acquire(pos); f != nil {
		return f
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.mu.spare; f != nil && f.start <= pos && pos < f.End() && f.Acquire() {
		return f
	}
	return nil
}

func (r *Run) makeSpare(pos int64) {
	r.mu.Lock()
	start := r.nextStart()
	if start-pos > r.cfg.FileSize/2 || r.mu.spare != nil || r.mu.making != nil || r.mu.closed {
		r.mu.Unlock()
		return
	}
	making := make(chan struct{})
	r.mu.making = making
	r.mu.Unlock()

	f, err := r.make(start)

	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.spare, r.mu.spareErr = f, err
	r.mu.making = nil
	close(making)
	if r.mu.closed && f != nil { // Close came in between: it is not used
		r.mu.spare = nil
		_ = f.closeHandle(true)
		f.Release()
		_ = r.remove(f.path)
	}
}
