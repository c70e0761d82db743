package storage

import (
	"fmt"
	"time"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/commitlog"
)

// Appended says where a message is stored.
type Appended struct {
	Log, End  mq.LogOffset
	Queue     mq.QueueOffset
	Size      int32
	StoreTime int64         // ms
	Tally     *metric.Tally // of its queue: for the time that it took, which the caller knows; may be nil
}

func appended(it commitlog.Item, p commitlog.Placed) Appended {
	a := Appended{Log: p.Log, End: p.End, Queue: p.Offset, Size: p.Size, StoreTime: p.StoreTime}
	if q, ok := it.Queue.(*queue); ok {
		a.Tally = q.tally
	}
	return a
}

// Append stores one message and fills in its places, store time and body CRC.
// Nothing of m is kept. It may be called by any number of goroutines; each
// queue gets its messages in the order in which the calls come. Errors wrap
// [mq.ErrIllegalMessage] when m is over a limit, [mq.ErrUnavailable] when nothing
// can be stored now; a refused message takes no offset.
func (s *Store) Append(m *record.Message) (Appended, error) { return s.append(m, false) }

// AppendInternal is Append for messages that the broker moves itself, such as
// deliveries of pending ones: limits on what users send do not count, and they
// are taken while a full disk keeps others out, as long as the reserve lasts.
func (s *Store) AppendInternal(m *record.Message) (Appended, error) { return s.append(m, true) }

func (s *Store) append(m *record.Message, internal bool) (Appended, error) {
	it, err := s.prepare(m, internal)
	if err != nil {
		return Appended{}, err
	}
	p, err := s.log.Append(it)
	if err != nil {
		return Appended{}, s.appendError(err)
	}
	s.stats.Messages.Add(1)
	s.stats.Bytes.Add(int64(p.Size))
	a := appended(it, p)
	a.Tally.Add(1, int64(p.Size))
	s.afterAppend(it, p)
	return a, nil
}

// AppendBatch stores all messages, one behind the other, or none.
func (s *Store) AppendBatch(ms []*record.Message) ([]Appended, error) {
	return s.appendBatch(ms, nil, false)
}

// AppendAllInternal is AppendInternal for many messages, of which all are stored,
// or none. The places are appended to dst.
func (s *Store) AppendAllInternal(ms []*record.Message, dst []Appended) ([]Appended, error) {
	return s.appendBatch(ms, dst, true)
}

func (s *Store) appendBatch(ms []*record.Message, out []Appended, internal bool) ([]Appended, error) {
	if len(ms) == 0 {
		return out, nil
	}
	items := make([]commitlog.Item, len(ms))
	size := 0
	for i, m := range ms {
		var err error
		if items[i], err = s.prepare(m, internal); err != nil {
			return nil, fmt.Errorf("message %d of the batch: %w", i, err)
		}
		size += items[i].Size
	}
	if max := s.log.MaxSize(); size > max {
		return nil, fmt.Errorf("%w: the batch takes %d bytes, a commit log file holds %d (mappedFileSizeCommitLog)", mq.ErrIllegalMessage, size, max)
	}
	places := make([]commitlog.Placed, len(ms))
	if err := s.log.AppendBatch(items, places); err != nil {
		return nil, s.appendError(err)
	}
	s.stats.Messages.Add(int64(len(ms)))
	s.stats.Bytes.Add(int64(size))
	first := len(out)
	for i, p := range places {
		out = append(out, appended(items[i], p))
	}
	tally(out[first:])
	for i, p := range places {
		s.afterAppend(items[i], p)
	}
	return out, nil
}

// tally counts a batch as one call for each run of messages of one queue.
func tally(placed []Appended) {
	for len(placed) > 0 {
		n, bytes := 0, int64(0)
		for n < len(placed) && placed[n].Tally == placed[0].Tally {
			bytes += int64(placed[n].Size)
			n++
		}
		placed[0].Tally.Add(int64(n), bytes)
		placed = placed[n:]
	}
}

// prepare does all that needs no lock.
func (s *Store) prepare(m *record.Message, internal bool) (commitlog.Item, error) {
	size, err := s.log.Size(m)
	if err != nil {
		return commitlog.Item{}, err
	}
	if !internal {
		if err := s.refusal(size); err != nil {
			return commitlog.Item{}, err
		}
		if err := s.checkLimits(m, size); err != nil {
			return commitlog.Item{}, err
		}
	}
	if m.QueueID < 0 {
		return commitlog.Item{}, fmt.Errorf("%w: queue %d of topic %s", mq.ErrInvalid, m.QueueID, m.Topic)
	}
	m.BodyCRC = record.BodyCRC(m.Body)
	it := commitlog.Item{Message: m, Size: size}
	if m.Topic != mq.TopicSchedule { // that one waits for the store time
		it.TagsCode = s.tagsCode(m.Topic, m.Properties, 0)
	}
	if tx := m.SysFlag.Tx(); tx == mq.SysTxPrepared || tx == mq.SysTxRollback {
		it.Queue = noQueue{}
		return it, nil
	}
	q, err := s.queueFor(mq.QueueKey{Topic: m.Topic, ID: m.QueueID})
	if err != nil {
		return commitlog.Item{}, err
	}
	it.Queue = q
	return it, nil
}

// afterAppend runs without locks.
func (s *Store) afterAppend(it commitlog.Item, p commitlog.Placed) {
	if s.cfg.SyncFlush {
		s.log.Kick()
		return
	}
	if q, ok := it.Queue.(*queue); ok {
		s.arrived(q.key, p.Offset, p.TagsCode)
	}
}

func (s *Store) arrived(key mq.QueueKey, off mq.QueueOffset, tagsCode int64) {
	if s.cfg.OnArrival != nil {
		s.cfg.OnArrival(key, off, tagsCode)
	}
}

func (s *Store) tagsCode(topic string, props []byte, storeTime int64) int64 {
	if s.cfg.TagsCode != nil {
		return s.cfg.TagsCode(topic, props, storeTime)
	}
	return hashTags(props)
}

// SyncFlush reports whether a message is confirmed only when it is durable.
func (s *Store) SyncFlush() bool { return s.cfg.SyncFlush }

// WhenDurable calls fn once: with nil when everything below end is durable,
// perhaps before it returns; with [mq.ErrFlushTimeout] when that takes longer
// than timeout; with the cause when the log cannot be made durable any more.
// fn must not block.
func (s *Store) WhenDurable(end mq.LogOffset, timeout time.Duration, fn func(error)) {
	s.log.WhenDurable(end, timeout, fn)
}

// Durable is the log position below which everything survives a power loss.
func (s *Store) Durable() mq.LogOffset { return s.log.Durable() }

// Flush makes everything appended so far durable.
func (s *Store) Flush() error { return s.log.Flush() }
