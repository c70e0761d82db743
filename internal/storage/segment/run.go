package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
)

const nameDigits = 20

// Run is an open run of files.
type Run struct {
	fs  vfs.FS
	cfg Config

	files atomic.Pointer[[]*File] // by start, without gaps; replaced under mu

	written  atomic.Int64 // where the writer is
	wakeAt   atomic.Int64 // the writer wakes Run when it passes this
	wake     chan struct{}
	prepared int64 // faulted in up to here; owner: the goroutine of Run

	mu struct {
		sync.Mutex
		making   chan struct{} // not nil while Run makes the spare; closed when it is done
		spare    *File         // the file after the last, ready
		spareErr error         // why there is none
		closed   bool
	}

	// dropped is taken after mu where both are needed.
	dropped struct {
		sync.Mutex
		files []*File // taken out of the run, oldest first; their names are still there
	}
}

// Open finds the files of a run and maps them.
func Open(fsys vfs.FS, cfg Config) (*Run, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Run{fs: fsys, cfg: cfg, wake: make(chan struct{}, 1)}
	found, err := r.list()
	if err != nil {
		return nil, err
	}
	files := make([]*File, 0, len(found))
	for _, e := range found {
		f, err := r.mapFile(e.path, e.start)
		if err != nil {
			for _, f := range files {
				f.Release()
			}
			return nil, err
		}
		files = append(files, f)
	}
	r.files.Store(&files)
	return r, nil
}

type found struct {
	path  string
	start int64
	size  int64
}

// list finds the files and removes what a crash left at the end.
func (r *Run) list() ([]found, error) {
	var all []found
	for _, dir := range r.cfg.Dirs {
		if !r.cfg.ReadOnly {
			if err := r.fs.MkdirAll(dir); err != nil {
				return nil, fmt.Errorf("make directory of segments: %w", err)
			}
		}
		entries, err := r.fs.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) && r.cfg.ReadOnly {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list segments: %w", err)
		}
		for _, e := range entries {
			start, ok := parseName(e.Name())
			if !ok {
				continue
			}
			if !e.Type().IsRegular() {
				return nil, &mq.CorruptionError{File: filepath.Join(dir, e.Name()), Err: fmt.Errorf(
					"it is named like a segment and is no regular file (%v): move it away or put the file back", e.Type())}
			}
			info, err := e.Info()
			if err != nil {
				return nil, fmt.Errorf("list segments: %w", err)
			}
			all = append(all, found{filepath.Join(dir, e.Name()), start, info.Size()})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].start < all[j].start })
	for len(all) > 0 && all[len(all)-1].size != r.cfg.FileSize {
		last := all[len(all)-1]
		if empty, err := r.nothingIn(last); err != nil {
			return nil, err
		} else if !empty {
			break
		}
		if !r.cfg.ReadOnly {
			if err := r.remove(last.path); err != nil {
				return nil, fmt.Errorf("remove unfinished segment: %w", err)
			}
		}
		all = all[:len(all)-1]
	}
	for i, e := range all {
		if e.size != r.cfg.FileSize {
			return nil, &mq.CorruptionError{File: e.path, Offset: e.size, Err: fmt.Errorf(
				"the file has %d bytes, every segment has %d: if the store was made with another %s, set that", e.size, r.cfg.FileSize, r.cfg.FileSizeKey)}
		}
		if i == 0 {
			continue
		}
		switch want := all[i-1].start + r.cfg.FileSize; {
		case e.start == all[i-1].start:
			return nil, &mq.CorruptionError{File: e.path, Err: fmt.Errorf("there is a second file of this name: %s", all[i-1].path)}
		case e.start != want:
			return nil, &mq.CorruptionError{File: e.path, Err: fmt.Errorf("the segments before it end at %d: file %s is missing", want, name(want))}
		}
	}
	return all, nil
}

// nothingIn reports whether a file of the wrong size is what a crash leaves of
// one that was being made.
func (r *Run) nothingIn(e found) (bool, error) {
	if e.size == 0 {
		return true, nil
	}
	if e.size > r.cfg.FileSize {
		return false, nil
	}
	f, err := r.fs.OpenRead(e.path)
	if err != nil {
		return false, fmt.Errorf("open segment: %w", err)
	}
	defer f.Close()
	buf := make([]byte, 1<<16)
	for off := int64(0); off < e.size; {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), e.size-off)], off)
		for _, c := range buf[:n] {
			if c != 0 {
				return false, nil
			}
		}
		if off += int64(n); n == 0 && err != nil {
			return false, fmt.Errorf("read segment: %w", err)
		}
	}
	return true, nil
}

func (r *Run) remove(path string) error {
	if err := r.fs.Remove(path); err != nil {
		return err
	}
	return r.fs.SyncDir(filepath.Dir(path))
}

func (r *Run) mapFile(path string, start int64) (*File, error) {
	open := r.fs.Open
	if r.cfg.ReadOnly {
		open = r.fs.OpenRead
	}
	h, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	defer h.Close()
	m, err := h.Map(r.cfg.FileSize, !r.cfg.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("map segment: %w", err)
	}
	f := &File{fs: r.fs, path: path, start: start, data: m.Bytes(), mapping: m}
	f.refs.Store(1)
	return f, nil
}

// Files are the files of the run, oldest first. They may be dropped at any
// time: use Acquire on one before reading its bytes.
func (r *Run) Files() []*File { return *r.files.Load() }

// FileSize is the size of every file.
func (r *Run) FileSize() int64 { return r.cfg.FileSize }

// Dirs are the directories of the files.
func (r *Run) Dirs() []string { return r.cfg.Dirs }

// First is the position of the first byte that is there; 0 when there is none.
func (r *Run) First() int64 {
	if files := r.Files(); len(files) > 0 {
		return files[0].start
	}
	return 0
}

// Acquire returns the file that holds position pos, or nil. The caller must
// Release it.
func (r *Run) Acquire(pos int64) *File {
	files := r.Files()
	if len(files) == 0 || pos < files[0].start {
		return nil
	}
	i := (pos - files[0].start) / r.cfg.FileSize
	if i >= int64(len(files)) || !files[i].Acquire() {
		return nil
	}
	return files[i]
}

// Cut removes the files that begin after end and makes everything from end to
// the end of its file zero, durably. No file is left when end is 0 and the run
// began there.
func (r *Run) Cut(end int64) error {
	files := r.Files()
	n := len(files)
	for n > 0 && files[n-1].start > end {
		f := files[n-1]
		if err := f.closeHandle(true); err != nil {
			return err
		}
		f.Release()
		if err := r.remove(f.path); err != nil {
			return fmt.Errorf("remove segment behind the end of the log: %w", err)
		}
		n--
	}
	files = files[:n:n]
	r.files.Store(&files)
	if n == 0 || end >= files[n-1].End() {
		return nil
	}
	last := files[n-1]
	return last.withHandle(func(h vfs.File) error {
		if err := h.Zero(end-last.start, last.End()-end); err != nil {
			return fmt.Errorf("clear what is behind the end of the log: %w", err)
		}
		return h.Sync()
	})
}

// Drop takes the first file out of the run; the last cannot be dropped. Nobody
// gets it any more, and its name is removed once its readers have let go:
// Sweep does that.
func (r *Run) Drop() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	files := r.Files()
	if len(files) < 2 {
		return false
	}
	f := files[0]
	rest := files[1:]
	r.files.Store(&rest)
	r.dropped.Lock()
	f.droppedAt = time.Now()
	r.dropped.files = append(r.dropped.files, f)
	r.dropped.Unlock()
	f.Release()
	return true
}

// Sweep removes the names of dropped files, oldest first, up to the first that
// still has readers and was dropped less than ForceAfter ago. It returns how
// many are left.
func (r *Run) Sweep() (left int, err error) {
	r.dropped.Lock()
	defer r.dropped.Unlock()
	for len(r.dropped.files) > 0 {
		f := r.dropped.files[0]
		if f.refs.Load() > 0 && time.Since(f.droppedAt) < r.cfg.ForceAfter {
			break
		}
		if err := f.closeHandle(true); err != nil {
			return len(r.dropped.files), err
		}
		if err := r.remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return len(r.dropped.files), fmt.Errorf("remove segment: %w", err)
		}
		r.dropped.files = r.dropped.files[1:]
	}
	return len(r.dropped.files), nil
}

// Close gives everything back. The file made in advance and never used is
// removed. Readers that still hold files keep their mappings.
func (r *Run) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return nil
	}
	r.mu.closed = true
	var errs []error
	if f := r.mu.spare; f != nil {
		r.mu.spare = nil
		errs = append(errs, f.closeHandle(true))
		f.Release()
		errs = append(errs, r.remove(f.path))
	}
	for _, f := range r.Files() {
		errs = append(errs, f.closeHandle(true))
		f.Release()
	}
	r.files.Store(&[]*File{})
	return errors.Join(errs...)
}

func name(start int64) string { return fmt.Sprintf("%0*d", nameDigits, start) }

func parseName(s string) (int64, bool) {
	if len(s) != nameDigits {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
