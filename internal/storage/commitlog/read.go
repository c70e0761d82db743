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
	if at < 0 || at+mq.LogOffset(size) > l.End() {
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
		from, more, err = walkFile(f, from, min(to, mq.LogOffset(f.End())), visit)
		f.Release()
		if err != nil || !more {
			return from, err
		}
	}
	return from, nil
}

func walkFile(f *segment.File, from, to mq.LogOffset, visit func(v record.View) bool) (next mq.LogOffset, more bool, err error) {
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
