package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/keyindex"
	"github.com/sundial-mq/sundial/internal/storage/segment"
)

const (
	// followEvery is how often the follower of the log looks for news by itself.
	followEvery = 100 * time.Millisecond
	// markEvery is how often the index is made durable, so that a crash costs the
	// follower no more than what came since.
	markEvery = 30 * time.Second
	// catchUp is how long a query waits for the follower.
	catchUp = time.Second
	// maxFound bounds one query (RocketMQ: maxMsgsNumBatch).
	maxFound = 64
)

// follower reads the log behind the append and fills the key index. It keeps
// out of the way: an append does nothing for it.
type follower struct {
	at   atomic.Int64  // the index knows all before this
	kick chan struct{} // somebody waits

	marked time.Time // of the last mark; the follower's own

	mu struct {
		sync.Mutex
		waiting []chan struct{} // closed at the next step
	}
}

// openIndex opens the key index and cuts what it knows of lost records.
func (s *Store) openIndex(clean bool, logEnd mq.LogOffset) error {
	if !s.cfg.Index {
		return nil
	}
	var err error
	s.index, err = keyindex.Open(s.fs, s.path("index"), keyindex.Config{
		Slots: s.cfg.IndexSlots, Entries: s.cfg.IndexEntries, Tags: true, Mark: s.cfg.own("index.mark"),
	}, clean)
	if err != nil {
		return err
	}
	if err := s.index.Cut(logEnd); err != nil {
		return err
	}
	s.follow.kick, s.follow.marked = make(chan struct{}, 1), time.Now()
	s.follow.at.Store(int64(s.log.Boundary(max(s.index.End(), s.log.First()))))
	return nil
}

// followLog fills the index until ctx is done, and then as far as the log goes.
func (s *Store) followLog(ctx context.Context) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	failing := false
	for {
		err := s.followOnce()
		if err != nil && !failing {
			s.note.Error("the key index does not follow the log; it is tried again", "at", s.follow.at.Load(), "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			if err := s.followOnce(); err != nil {
				s.note.Error("the key index ends before the log; the next start goes on", "at", s.follow.at.Load(), "err", err)
			}
			return
		case <-s.follow.kick:
		case <-tick.C:
		}
	}
}

// followOnce brings the index to where the visible log ends now.
func (s *Store) followOnce() error {
	const step = 4 << 20 // so that those who wait are told in between
	for {
		at, end := mq.LogOffset(s.follow.at.Load()), s.visibleEnd()
		if at >= end {
			s.follow.step()
			return nil
		}
		var failed error
		next, err := s.log.Walk(at, min(end, at+step), func(v record.View) bool {
			failed = s.index.Put(v)
			return failed == nil
		})
		if failed != nil {
			// next is behind the record that was not put.
			return fmt.Errorf("before log position %d: %w", next, failed)
		}
		s.follow.at.Store(int64(next))
		s.follow.step()
		if err != nil {
			return err
		}
		if time.Since(s.follow.marked) < markEvery {
			continue
		}
		if err := s.index.Mark(); err != nil {
			return err
		}
		s.follow.marked = time.Now()
	}
}

func (f *follower) step() {
	f.mu.Lock()
	waiting := f.mu.waiting
	f.mu.waiting = nil
	f.mu.Unlock()
	for _, c := range waiting {
		close(c)
	}
}

// reach waits until the index knows all before end, or a second.
func (f *follower) reach(end mq.LogOffset) {
	if mq.LogOffset(f.at.Load()) >= end {
		return
	}
	timer := time.NewTimer(catchUp)
	defer timer.Stop()
	for {
		c := make(chan struct{})
		f.mu.Lock()
		f.mu.waiting = append(f.mu.waiting, c)
		f.mu.Unlock()
		if mq.LogOffset(f.at.Load()) >= end {
			return
		}
		select {
		case f.kick <- struct{}{}:
		default:
		}
		select {
		case <-c:
		case <-timer.C:
			return
		}
	}
}

// Hits answers a query by key. Release must be called when the records are no
// longer needed.
type Hits struct {
	Records []record.View // newest first

	// The last message that the index knows: what is younger was not searched.
	IndexedTo mq.LogOffset

	held []*segment.File
}

// Release gives back the memory behind Records.
func (f *Hits) Release() {
	for _, file := range f.held {
		file.Release()
	}
	f.Records, f.held = nil, nil
}

// Query finds messages of a topic by one of their keys (UNIQ_KEY or a token of
// KEYS), stored within [begin, end] ms or less than a second beside it, newest
// first, at most max and at most 64. What was appended before the call is found,
// unless the index is more than a second behind.
func (s *Store) Query(topic, key string, max int, begin, end int64) (Hits, error) {
	return s.query(topic, key, max, begin, end, func(props []byte) bool { return hasKey(props, key) })
}

// QueryTags is Query for the messages whose TAGS are tags. What an earlier release
// indexed, RocketMQ before 5.5 or Sundial before it knew tags, is not found.
func (s *Store) QueryTags(topic, tags string, max int, begin, end int64) (Hits, error) {
	return s.query(topic, keyindex.TagKey(tags), max, begin, end, func(props []byte) bool {
		v, ok := record.Property(props, mq.PropTags)
		return ok && string(v) == tags
	})
}

func (s *Store) query(topic, key string, max int, begin, end int64, has func(props []byte) bool) (Hits, error) {
	if s.index == nil {
		return Hits{}, fmt.Errorf("%w: the key index is switched off (messageIndexEnable)", mq.ErrUnsupported)
	}
	s.follow.reach(s.visibleEnd())
	if max <= 0 || max > maxFound {
		max = maxFound
	}
	var out Hits
	out.IndexedTo = s.index.End()
	// Hashes collide, and a colliding key must not use up the count.
	for ask := max; ; ask *= 4 {
		out.Release()
		places, err := s.index.Query(topic, key, ask, begin, end)
		if err != nil {
			return out, fmt.Errorf("query by key: %w", err)
		}
		for _, at := range places {
			v, file, err := s.log.Read(at, 0)
			if errors.Is(err, mq.ErrNotFound) {
				continue // deleted
			}
			if err != nil {
				s.note.Error("the key index points to no message", "log", at, "err", err)
				continue
			}
			if string(v.Topic()) != topic || !has(v.Properties()) || !s.queued(v) && v.SysFlag().Tx() == 0 {
				file.Release()
				continue
			}
			out.Records = append(out.Records, v)
			out.held = append(out.held, file)
			if len(out.Records) == max {
				break
			}
		}
		if len(out.Records) == max || len(places) < ask || ask > 1<<16 {
			return out, nil
		}
	}
}

func hasKey(props []byte, key string) bool {
	if v, ok := record.Property(props, mq.PropUniqueKey); ok && string(v) == key {
		return true
	}
	keys, _ := record.Property(props, mq.PropKeys)
	for token := range bytes.SplitSeq(keys, []byte(" ")) {
		if string(token) == key {
			return len(key) > 0
		}
	}
	return false
}
