package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
)

// save makes the queues durable up to the durable end of the log and writes down
// how far that is: first what is named, then what names it.
//
//	queue files, list of queues, state, checkpoint
//
// A crash between any two leaves a state that says too little, never too much.
func (s *Store) save(clean bool) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	mark := s.log.DurableMark()
	if err := s.sets.Flush(mark.End); err != nil {
		return err
	}
	if err := s.sets.Sync(); err != nil {
		return err
	}
	if err := s.saveManifest(clean); err != nil {
		return err
	}
	cp := s.checkpoint
	cp.logTime, cp.queueTime = mark.StoreTime, mark.StoreTime
	cp.queueLog, cp.confirmed = mark.End, mark.End
	if s.index != nil {
		cp.indexTime = s.index.SealedTime()
	}
	st := state{
		clean: clean, seq: s.state.seq + 1, covered: mark,
		checkpoint: [2]uint32{s.checkpointCRC, checkpointCRC(cp.append(nil))},
	}
	if err := s.writeState(st); err != nil {
		return err
	}
	if cp == s.checkpoint && !s.checkpointOld {
		return nil
	}
	if err := writeCheckpoint(s.fs, s.path("checkpoint"), cp); err != nil {
		return err
	}
	s.checkpoint, s.checkpointCRC, s.checkpointOld = cp, st.checkpoint[1], false
	return nil
}

func (s *Store) writeState(st state) error {
	if err := writeState(s.fs, s.cfg.own("state"), s.cfg.own(""), st); err != nil {
		return err
	}
	s.state = st
	s.covered.Store(int64(st.covered.End))
	return nil
}

// saveManifest writes the list of queues if it is not what is on disk.
func (s *Store) saveManifest(clean bool) error {
	m := manifest{Topics: map[string]map[string]bounds{}, Damaged: s.damaged}
	s.sets.Each(func(q *consumequeue.Queue) bool {
		k := q.Key()
		t := m.Topics[k.Topic]
		if t == nil {
			t = map[string]bounds{}
			m.Topics[k.Topic] = t
		}
		b := bounds{Min: q.Min()}
		if clean {
			b.Max = q.Max()
		}
		t[strconv.Itoa(int(k.ID))] = b
		return true
	})
	if same := maps.EqualFunc(m.Topics, s.manifest.Topics, func(a, b map[string]bounds) bool { return maps.Equal(a, b) }); same && slices.Equal(m.Damaged, s.manifest.Damaged) {
		return nil
	}
	if err := s.docs.manifest.Save(m); err != nil {
		return err
	}
	s.manifest = m
	return nil
}

func (s *Store) path(name string) string { return filepath.Join(s.cfg.Dir, name) }

// markRunning writes abort, whose presence means that the stop was not clean.
func (s *Store) markRunning() error {
	f, err := s.fs.Create(s.path("abort"))
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(strconv.Itoa(s.cfg.ProcessID)), 0)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", s.path("abort"), err)
	}
	return s.fs.SyncDir(s.cfg.Dir)
}

func (s *Store) markStopped() error {
	if err := s.fs.Remove(s.path("abort")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.fs.SyncDir(s.cfg.Dir)
}

// coveredEnd is the log position that the last save covers.
func (s *Store) coveredEnd() mq.LogOffset { return mq.LogOffset(s.covered.Load()) }
