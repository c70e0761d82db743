package commitlog

import (
	"errors"
	"fmt"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/segment"
)

// Read returns the record at a position, whose size is known when size is not 0.
// The view lives until the file is released. Errors wrap [mq.ErrNotFound] when
// the record is not, or no longer, there, and are a CorruptionError when
// something else stands in its place.
func (l *Log) Read(at mq.LogOffset, size int32) (record.View, *segment.File, error) {
	if at < 0 || at+mq.LogOffset(max(size, 1)) > l.End() {
		return nil, nil, fmt.Errorf("%w: position %d is behind the end of the log, %d", mq.ErrNotFound, at, l.End())
	}
	f := l.run.Acquire(int64(at))
	if f == nil {
		return nil, nil, fmt.Errorf("%w: the log begins at %d, position %d is gone", mq.ErrNotFound, l.First(), at)
	}
	b := f.Bytes()[int64(at)-f.Start():]
	if size > 0 && int(size) <= len(b) {
		b = b[:size]
	}
	v, blank, err := record.Next(b)
	switch {
	case err == nil && blank, err == nil && size > 0 && len(v) != int(size):
		err = errors.New("no record of that size")
	case err == nil:
		err = record.Check(v, at, false)
	}
	if err != nil {
		err = &mq.CorruptionError{File: f.Path(), Offset: int64(at) - f.Start(), Err: err}
		f.Release()
		return nil, nil, err
	}
	return v, f, nil
}

// Boundary returns a position at or below at where a record or a blank starts:
// at itself if one is seen there, else the start of its file.
func (l *Log) Boundary(at mq.LogOffset) mq.LogOffset {
	if at <= l.First() {
		return l.First()
	}
	f := l.run.Acquire(int64(at))
	if f == nil {
		return at // the end
	}
	defer f.Release()
	start := mq.LogOffset(f.Start())
	v, blank, err := record.Next(f.Bytes()[at-start:])
	if err == nil && (blank || record.Check(v, at, false) == nil) {
		return at
	}
	return start
}

// Walk visits the records from one position, where a record or a blank starts,
// to another. It ends early without an error when visit returns false, and with
// a CorruptionError where no record stands. next is where it stopped. Records
// that were dropped meanwhile are passed over: the walk goes on at the first
// that is there.
func (l *Log) Walk(from, to mq.LogOffset, visit func(v record.View) bool) (next mq.LogOffset, err error) {
	for from < to {
		f := l.run.Acquire(int64(from))
		if f == nil {
			first := l.First()
			if first <= from {
				return from, fmt.Errorf("%w: no log file holds position %d", mq.ErrNotFound, from)
			}
			from = first
			continue
		}
		more := true
		from, more, err = l.walkFile(f, from, min(to, mq.LogOffset(f.End())), visit)
		f.Release()
		if err != nil || !more {
			return from, err
		}
	}
	return from, nil
}

func (l *Log) walkFile(f *segment.File, from, to mq.LogOffset, visit func(v record.View) bool) (next mq.LogOffset, more bool, err error) {
	start := mq.LogOffset(f.Start())
	b := f.Bytes()
	for from < to {
		v, blank, err := record.Next(b[from-start:])
		if blank {
			return mq.LogOffset(f.End()), true, nil
		}
		if err == nil {
			err = record.Check(v, from, false)
		}
		if err != nil && l.cfg.SkipDamage {
			next, ok := findRecord(b, start, from+1, mq.LogOffset(f.End()))
			if !ok {
				return min(to, mq.LogOffset(f.End())), true, nil
			}
			from = next
			continue
		}
		if err != nil {
			return from, false, &mq.CorruptionError{File: f.Path(), Offset: int64(from - start), Err: err}
		}
		from += mq.LogOffset(len(v))
		if !visit(v) {
			return from, false, nil
		}
	}
	return from, true, nil
}

// Peek returns the first record at or behind a position that is the start of a
// file, before the log is started.
func (l *Log) Peek(at mq.LogOffset) (record.View, *segment.File, error) {
	f := l.run.Acquire(int64(at))
	if f == nil {
		return nil, nil, fmt.Errorf("%w: position %d", mq.ErrNotFound, at)
	}
	v, blank, err := record.Next(f.Bytes()[int64(at)-f.Start():])
	if err == nil && blank {
		err = mq.ErrNotFound
	}
	if err == nil {
		err = record.Check(v, at, false)
	}
	if err != nil {
		f.Release()
		return nil, nil, err
	}
	return v, f, nil
}

// Holds reports whether this is the log that m was taken of: its last record
// stands where it stood, or has been dropped since.
func (l *Log) Holds(m Mark) bool {
	if m.End < l.First() {
		return false
	}
	if m.Last < l.First() {
		// Nothing of what m knows is left. An empty log has nothing to contradict;
		// any other must still have the file that m ends in or next to.
		files := l.run.Files()
		return len(files) == 0 && m.End == 0 || len(files) > 0 && int64(m.End) <= files[len(files)-1].End()
	}
	v, f, err := l.Peek(m.Last)
	if err != nil {
		return false
	}
	defer f.Release()
	return v.StoreTime() == m.StoreTime && m.Last+mq.LogOffset(len(v)) <= m.End
}
