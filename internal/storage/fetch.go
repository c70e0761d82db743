package storage

import (
	"errors"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
	"github.com/sundial-mq/sundial/internal/storage/segment"
)

// FetchRequest says what to read of one queue.
type FetchRequest struct {
	Queue mq.QueueKey
	From  mq.QueueOffset

	// MaxCount and MaxBytes bound what is found; the first message is found
	// whatever its size. MaxScan bounds how many entries are looked at.
	MaxCount int
	MaxBytes int
	MaxScan  int

	// Match, if set, chooses by tags code, MatchRecord by the whole record.
	Match       func(tagsCode int64) bool
	MatchRecord func(v record.View) bool
}

// FetchStatus is what came of a fetch.
type FetchStatus uint8

// What came of a fetch, with what Next is.
const (
	Found         FetchStatus = iota // Chunks hold records; behind the last looked at
	NoMatched                        // nothing matched; behind the last looked at
	NoQueue                          // the queue does not exist; 0
	NoMessage                        // nothing was ever in it; 0
	TooSmall                         // From is below Min; Min
	OverflowOne                      // From is Max: nothing yet; From
	OverflowBadly                    // From is above Max; Max
	Removing                         // the records are being deleted; the next one there
	FoundNull                        // the queue cannot be read there; the next file
)

// String is RocketMQ's name.
func (s FetchStatus) String() string {
	return [...]string{"FOUND", "NO_MATCHED_MESSAGE", "NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE", "OFFSET_TOO_SMALL",
		"OFFSET_OVERFLOW_ONE", "OFFSET_OVERFLOW_BADLY", "MESSAGE_WAS_REMOVING", "OFFSET_FOUND_NULL"}[s]
}

// Fetched answers a FetchRequest. Release must be called when Chunks are no longer
// needed; it may be called in any case.
type Fetched struct {
	Status         FetchStatus
	Chunks         [][]byte // whole records back to back; records that lie together share a chunk
	Count          int
	Bytes          int
	Next, Min, Max mq.QueueOffset
	Behind         int64 // bytes of log after the last record found

	// Files that Chunks lie in, in their order: mostly one.
	first *segment.File
	more  []*segment.File
}

// Release gives back the memory behind Chunks.
func (f *Fetched) Release() {
	if f.first != nil {
		f.first.Release()
	}
	for _, file := range f.more {
		file.Release()
	}
	f.first, f.more, f.Chunks = nil, nil, nil
}

// hold keeps the file of the next record and reports whether it is that of the
// record before.
func (f *Fetched) hold(file *segment.File) (same bool) {
	last := f.first
	if n := len(f.more); n > 0 {
		last = f.more[n-1]
	}
	switch {
	case last == file:
		file.Release() // held already
		return true
	case last == nil:
		f.first = file
	default:
		f.more = append(f.more, file)
	}
	return false
}

// Limits of one fetch where the FetchRequest names none, as RocketMQ has them for
// messages in memory: a mapped log reads the same from the disk.
const (
	defaultFetchCount = 32
	defaultFetchBytes = 256 << 10
	minFetchScan      = 800 // entries: RocketMQ's 16,000 bytes
)

// Fetch reads messages of one queue.
func (s *Store) Fetch(q FetchRequest) Fetched {
	cq := s.sets.Get(q.Queue)
	if cq == nil {
		return Fetched{Status: NoQueue}
	}
	r := Fetched{Max: cq.Max(), Min: cq.Min(), Next: q.From}
	switch {
	case r.Max == 0:
		r.Status, r.Next = NoMessage, 0
	case q.From < r.Min:
		r.Status, r.Next = TooSmall, r.Min
	case q.From == r.Max:
		r.Status = OverflowOne
	case q.From > r.Max:
		r.Status, r.Next = OverflowBadly, r.Max
	default:
		if q.MaxCount <= 0 {
			q.MaxCount = defaultFetchCount
		}
		if q.MaxBytes <= 0 {
			q.MaxBytes = defaultFetchBytes
		}
		if q.MaxScan <= 0 {
			q.MaxScan = max(minFetchScan, q.MaxCount)
		}
		s.collect(cq, q, &r)
	}
	return r
}

// collect fills r from an offset that is in the queue.
func (s *Store) collect(cq *consumequeue.Queue, q FetchRequest, r *Fetched) {
	r.Status = NoMatched
	var end mq.LogOffset // behind the last record found
	for scanned := 0; scanned < q.MaxScan && r.Next < r.Max; {
		var entries [32]consumequeue.Entry
		n := min(len(entries), q.MaxScan-scanned, int(r.Max-r.Next))
		n, err := cq.Read(r.Next, entries[:n])
		if n == 0 {
			if r.Count == 0 {
				s.unreadable(cq, r, err)
			}
			break
		}
		scanned += n
		for _, e := range entries[:n] {
			more := s.take(e, q, r, &end)
			if !more {
				s.finish(r, end)
				return
			}
			r.Next++
			if r.Count == q.MaxCount {
				s.finish(r, end)
				return
			}
		}
	}
	s.finish(r, end)
}

func (s *Store) finish(r *Fetched, end mq.LogOffset) {
	if r.Count > 0 {
		r.Status = Found
		r.Behind = int64(s.log.End() - end)
	}
}

// take adds the record of one entry if it matches. It returns false when the
// fetch ends before this entry.
func (s *Store) take(e consumequeue.Entry, q FetchRequest, r *Fetched, end *mq.LogOffset) bool {
	if q.Match != nil && !q.Match(e.TagsCode) {
		return true
	}
	if r.Count > 0 && r.Bytes+int(e.Size) > q.MaxBytes {
		return false
	}
	v, file, err := s.log.Read(e.Pos, e.Size)
	if err != nil {
		if r.Count > 0 {
			return false // told when it is asked for
		}
		return s.skipUnreadable(e, r, err)
	}
	if q.MatchRecord != nil && !q.MatchRecord(v) {
		file.Release()
		return true
	}
	if same := r.hold(file); same && *end == e.Pos {
		// It lies behind the record before: one chunk.
		i := len(r.Chunks) - 1
		size := mq.LogOffset(len(r.Chunks[i]) + len(v))
		from := e.End() - size - mq.LogOffset(file.Start())
		r.Chunks[i] = file.Bytes()[from : from+size]
	} else {
		if r.Chunks == nil {
			r.Chunks = make([][]byte, 0, min(q.MaxCount, int(r.Max-r.Next), 32))
		}
		r.Chunks = append(r.Chunks, v)
	}
	*end = e.End()
	r.Count++
	r.Bytes += len(v)
	return true
}

// skipUnreadable passes over an entry whose record cannot be read, before
// anything was found.
func (s *Store) skipUnreadable(e consumequeue.Entry, r *Fetched, err error) bool {
	if errors.Is(err, mq.ErrNotFound) && e.Pos < s.log.First() {
		r.Status = Removing
		return true
	}
	s.note.Error("a message cannot be read and is passed over", "log", e.Pos, "err", err)
	return true
}

// unreadable is a queue that has an entry and does not give it.
func (s *Store) unreadable(cq *consumequeue.Queue, r *Fetched, err error) {
	if lowest := cq.Min(); r.Next < lowest {
		r.Status, r.Next = Removing, lowest
		return
	}
	if err != nil {
		s.note.Error("a queue cannot be read", "topic", cq.Key().Topic, "queue", cq.Key().ID, "offset", r.Next, "err", err)
	}
	perFile := mq.QueueOffset(s.cfg.QueueFileSize / consumequeue.EntrySize)
	r.Status, r.Next = FoundNull, min(r.Max, r.Next-r.Next%perFile+perFile)
}
