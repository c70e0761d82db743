package commitlog

import (
	"fmt"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/segment"
)

// Queue gives out the offsets of one queue and hears what became of them. Its
// methods are called under the log's lock, in log order, and must be short.
type Queue interface {
	// Ready returns why the queue takes no records any more, or nil.
	Ready() error
	// NextOffset is the offset for the record about to be written.
	NextOffset() mq.QueueOffset
	// Appended says that m is in the log; the next record gets the next offset.
	// It may change the tags code and must not keep p.
	Appended(m *record.Message, p *Placed)
}

// Item is a message on its way into the log. Its BodyCRC is set.
type Item struct {
	Message  *record.Message
	Queue    Queue
	Size     int   // as Message.Size says
	TagsCode int64 // carried to Queue.Appended, not stored
}

// Placed says where a record is.
type Placed struct {
	Log, End  mq.LogOffset
	Offset    mq.QueueOffset
	Size      int32
	StoreTime int64 // ms
	TagsCode  int64
}

// Size is how many bytes m takes in this log. The error wraps
// [mq.ErrIllegalMessage].
func (l *Log) Size(m *record.Message) (int, error) { return m.Size(l.cfg.CRCTail) }

// MaxSize is the largest record, or batch of records, that fits into a file.
func (l *Log) MaxSize() int { return int(l.cfg.FileSize) - record.BlankSize }

// Append puts one record at the end of the log. Budget: no allocation, one copy,
// and beyond the copy well under a microsecond under the lock.
func (l *Log) Append(it Item) (Placed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := it.Queue.Ready(); err != nil {
		return Placed{}, err
	}
	dst, err := l.roomLocked(it.Size)
	if err != nil {
		return Placed{}, err
	}
	now := l.storeTimeLocked()
	return l.putLocked(dst, it, now), nil
}

// AppendBatch puts all records into the log, one behind the other in one file,
// with one store time, or none. dst is filled with their places and must be as
// long as items.
func (l *Log) AppendBatch(items []Item, dst []Placed) error {
	size := 0
	for i := range items {
		size += items[i].Size
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range items {
		if err := items[i].Queue.Ready(); err != nil {
			return err
		}
	}
	room, err := l.roomLocked(size)
	if err != nil {
		return err
	}
	now := l.storeTimeLocked()
	for i := range items {
		dst[i] = l.putLocked(room, items[i], now)
		room = room[items[i].Size:]
	}
	return nil
}

// Locked runs do under the lock of the write path: nothing is appended meanwhile.
func (l *Log) Locked(do func(end mq.LogOffset)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do(l.End())
}

// roomLocked returns memory at the end of the log for size bytes and a blank
// behind them, going on to the next file when the last has no room.
func (l *Log) roomLocked(size int) ([]byte, error) {
	if err := l.Err(); err != nil {
		return nil, err
	}
	if !l.mu.started {
		panic("BUG: append to a log that was not started")
	}
	if size > l.MaxSize() {
		return nil, fmt.Errorf("%w: %d bytes do not fit into a log file of %d bytes (mappedFileSizeCommitLog)", mq.ErrIllegalMessage, size, l.cfg.FileSize)
	}
	end := l.end.Load()
	if f := l.mu.file; f != nil {
		if rest := f.Bytes()[end-f.Start():]; size+record.BlankSize <= len(rest) {
			return rest[:size], nil
		}
	}
	f, err := l.nextFileLocked(end)
	if err != nil {
		return nil, err
	}
	return f.Bytes()[:size], nil
}

// nextFileLocked closes the last file with a blank. The next file is there
// before that, so that a full disk leaves the log as it was.
func (l *Log) nextFileLocked(end int64) (*segment.File, error) {
	next, err := l.run.Next()
	if err != nil {
		return nil, fmt.Errorf("%w: the next commit log file cannot be made: %w", mq.ErrUnavailable, err)
	}
	if f := l.mu.file; f != nil {
		record.PutBlank(f.Bytes()[end-f.Start():])
	}
	l.mu.file = next
	l.end.Store(next.Start())
	return next, nil
}

func (l *Log) storeTimeLocked() int64 {
	l.mu.lastTime = max(l.mu.lastTime, time.Now().UnixMilli())
	return l.mu.lastTime
}

func (l *Log) putLocked(dst []byte, it Item, now int64) Placed {
	at := l.end.Load()
	m := it.Message
	m.StoreTime = now
	m.LogOffset = mq.LogOffset(at)
	m.QueueOffset = it.Queue.NextOffset()
	n := m.Encode(dst, l.cfg.CRCTail)
	end := at + int64(n)
	l.end.Store(end)
	l.mu.last = mq.LogOffset(at)
	l.run.Advance(end)
	p := &l.mu.placed // on the stack it would escape
	*p = Placed{Log: mq.LogOffset(at), End: mq.LogOffset(end), Offset: m.QueueOffset, Size: int32(n), StoreTime: now, TagsCode: it.TagsCode}
	it.Queue.Appended(m, p)
	return *p
}

// Room is how many bytes the last file still takes.
func (l *Log) Room() int64 {
	files := l.run.Files()
	if len(files) == 0 {
		return 0
	}
	return max(files[len(files)-1].End()-l.end.Load()-record.BlankSize, 0)
}
