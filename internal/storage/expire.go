package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/segment"
)

// Pin keeps the log from a position on: no rule deletes a file that holds
// something at or above what lowest returns, whatever the disk says. lowest is
// asked before each deletion; math.MaxInt64 pins nothing.
func (s *Store) Pin(name string, lowest func() mq.LogOffset) {
	s.pins.mu.Lock()
	defer s.pins.mu.Unlock()
	s.pins.mu.list = append(s.pins.mu.list, pin{name, lowest})
}

// pins are those who still need old records.
type pins struct {
	mu struct {
		sync.Mutex
		list []pin
	}
}

type pin struct {
	name   string
	lowest func() mq.LogOffset
}

// holds names who needs something below end, or is empty.
func (p *pins) holds(end mq.LogOffset) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.mu.list {
		if x.lowest() < end {
			return x.name
		}
	}
	return ""
}

// keepClean lets old files go until ctx is done.
func (s *Store) keepClean(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Expiry.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := s.expire(ctx, false); err != nil {
			s.note.Error("old files could not be deleted", "err", err)
		}
	}
}

// SetExpiry changes what decides when old messages go: how long they are kept,
// the hours in which files are deleted, and the percentage of the disk above which
// they are deleted at any hour.
func (s *Store) SetExpiry(reserved time.Duration, hours []int, maxUsed int) {
	e := s.cfg.Expiry
	e.Reserved, e.Hours, e.MaxUsed = reserved, slices.Clone(hours), maxUsed
	s.expiry.Store(&e)
}

// ExpireNow deletes what has expired, at any hour, and returns how many files of
// the log went.
func (s *Store) ExpireNow(ctx context.Context) (int, error) { return s.expire(ctx, true) }

// CleanQueues takes out of the queues and the index what points below the first
// message of the log, and forgets deleted topics of which nothing is left. It is
// done by itself whenever files go; asking for it does no harm.
func (s *Store) CleanQueues(ctx context.Context) error {
	select {
	case s.expiring <- struct{}{}:
		defer func() { <-s.expiring }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.followExpired()
}

// followExpired has everything follow the log, whose first files went.
func (s *Store) followExpired() error {
	first := s.log.First()
	err := s.sets.RaiseMin(first)
	if s.index != nil {
		_, indexErr := s.index.Expire(first)
		err = errors.Join(err, indexErr)
	}
	// The list of queues says where each begins; a start after a crash must not
	// look for entries that went with the log.
	return errors.Join(err, s.pruneGraves(), s.save(false))
}

// expire is one look: which rule applies now, how many files it lets go, and
// then what followed from the log.
func (s *Store) expire(ctx context.Context, asked bool) (int, error) {
	select {
	case s.expiring <- struct{}{}:
		defer func() { <-s.expiring }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	e := *s.expiry.Load()
	used, path, err := s.diskUsed()
	if err != nil {
		return 0, err
	}
	forced := used > e.Forced && e.Forcibly && !e.RefuseAtForced
	gone := 0
	if asked || used > e.MaxUsed || forced || slices.Contains(e.Hours, time.Now().Hour()) {
		if gone, err = s.dropFiles(ctx, forced, used, path); err != nil {
			return gone, err
		}
	}
	if _, err := s.log.Segments().Sweep(); err != nil {
		return gone, err
	}
	if gone == 0 {
		return 0, nil
	}
	return gone, s.followExpired()
}

// dropFiles takes files out of the log, oldest first, until one must stay.
func (s *Store) dropFiles(ctx context.Context, forced bool, used int, path string) (gone int, err error) {
	e := *s.expiry.Load()
	run := s.log.Segments()
	var lostFrom, lostTo mq.LogOffset
	for files := run.Files(); gone < e.Batch && len(files) > 1 && ctx.Err() == nil; files = run.Files() {
		f := files[0]
		expired, err := s.expired(f)
		if err != nil {
			return gone, err
		}
		if !expired && !forced {
			break
		}
		if who := s.pins.holds(mq.LogOffset(f.End())); who != "" {
			if forced {
				s.note.Warn("the disk is filling up and the oldest file cannot go", "path", path, "used", used, "limit", e.Forced, "neededFor", who, "file", f.Path())
			}
			break
		}
		from, to := mq.LogOffset(f.Start()), mq.LogOffset(f.End())
		if err := s.cover(to); err != nil {
			return gone, err
		}
		if !run.Drop() {
			break
		}
		gone++
		if expired {
			s.note.Info("expired file is deleted", "file", f.Path())
		} else {
			if lostFrom == lostTo {
				lostFrom = from
			}
			lostTo = to
			s.note.Error("file is deleted before its time because the disk is full", "file", f.Path(), "path", path, "used", used, "limit", e.Forced, "key", "diskSpaceCleanForciblyRatio")
		}
		if _, err := run.Sweep(); err != nil {
			return gone, err
		}
		if gone < e.Batch && e.FilePause > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(e.FilePause):
			}
		}
	}
	if lostFrom < lostTo && s.cfg.OnLost != nil {
		s.cfg.OnLost(lostFrom, lostTo)
	}
	return gone, nil
}

// cover saves if what was saved last lies before end: a start after a crash must
// not look for what was deleted.
func (s *Store) cover(end mq.LogOffset) error {
	if s.coveredEnd() >= end {
		return nil
	}
	if err := s.log.Flush(); err != nil {
		return err
	}
	return s.save(false)
}

func (s *Store) expired(f *segment.File) (bool, error) {
	changed, err := f.ModTime()
	if err != nil {
		return false, fmt.Errorf("age of %s: %w", f.Path(), err)
	}
	return time.Since(changed) >= s.expiry.Load().Reserved, nil
}
