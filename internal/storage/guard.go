package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// The disk guard stands between users and a full disk. Three things make it
// refuse their messages, but not what the broker moves itself:
//
// The disk is used above a limit.
//
// There is no room for the next commit log file. Users may write the last file
// but for its end (Config.Reserve), which is kept for deliveries.
//
// Queue entries find no room. They and the small documents get that of
// DIR/sundial/reserve, a file that holds nothing and is given up then; users
// wait until it can be made again.
// diskUsed is how full the disk is, in percent rounded up, as RocketMQ counts:
// the least used of the directories of the log, but not less than that of the
// queues. path is the one that counts.
func (s *Store) diskUsed() (percent int, path string, err error) {
	percent = math.MaxInt
	for _, dir := range s.cfg.logDirs() {
		p, err := s.usedPercent(dir)
		if err != nil {
			return 0, dir, err
		}
		if p < percent {
			percent, path = p, dir
		}
	}
	p, err := s.usedPercent(s.cfg.Dir)
	if err != nil {
		return 0, s.cfg.Dir, err
	}
	if p > percent {
		percent, path = p, s.cfg.Dir
	}
	return percent, path, nil
}

func (s *Store) usedPercent(dir string) (int, error) {
	u, err := s.fs.Usage(dir)
	if err != nil {
		return 0, fmt.Errorf("usage of the disk of %s: %w", dir, err)
	}
	return percent(u), nil
}

func percent(u vfs.Usage) int { return int(math.Ceil(u.Ratio() * 100)) }

// guardDisk looks at the disk until ctx is done.
func (s *Store) guardDisk(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Expiry.GuardInterval)
	defer tick.Stop()
	for {
		if err := s.lookAtDisk(); err != nil {
			s.note.Error("disk guard", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lookAtDisk decides whether users may send.
func (s *Store) lookAtDisk() error {
	e := s.cfg.Expiry
	used, path, err := s.diskUsed()
	if err != nil {
		return err
	}
	limit, key := e.Warning, "diskSpaceWarningLevelRatio"
	if e.RefuseAtForced {
		limit, key = e.Forced, "diskSpaceCleanForciblyRatio"
	}
	// Below the limit is not enough to be let in again: it must be worth it.
	back := min(limit-1, e.Forced)
	was := s.refused.Load()
	var why error
	switch spare := s.log.Segments().SpareError(); {
	case used > limit, was != nil && used > back && s.byUsage:
		s.byUsage = true
		why = fmt.Errorf("%w: the disk of %s is %d%% full, messages are refused above %d%% (%s) and accepted again at %d%%", mq.ErrUnavailable, path, used, limit, key, back)
	default:
		s.byUsage = false
		if s.queuesFull.Load() || s.reserveUsed {
			why = fmt.Errorf("%w: no space left on the disk of %s for queue entries, messages are accepted again when %s free there", mq.ErrUnavailable, s.cfg.Dir, s.roomWanted())
		}
		s.noSpare.Store(nil)
		if spare != nil {
			spare = fmt.Errorf("%w: the next commit log file cannot be made: %w", mq.ErrUnavailable, spare)
			s.noSpare.Store(&spare)
		}
	}
	switch {
	case why != nil:
		s.refused.Store(&why)
	case was != nil:
		s.refused.Store(nil)
	}
	if (why != nil) != (was != nil) {
		if why != nil {
			s.note.Error("messages are refused", "err", why)
		} else {
			s.note.Info("messages are accepted again", "path", path, "used", used)
		}
	}
	return s.keepReserve(s.queuesFull.Load())
}

// reserveTail is how much at the end of the last file is kept from users when no
// further file can be made.
func (s *Store) reserveTail() int64 { return min(s.cfg.Reserve, s.cfg.LogFileSize/4) }

// refusal is why a user's message of size bytes is not accepted now, or nil.
func (s *Store) refusal(size int) error {
	if p := s.refused.Load(); p != nil {
		return *p
	}
	if p := s.noSpare.Load(); p != nil && s.log.Room()-int64(size) < s.reserveTail() {
		return *p
	}
	if n := int64(s.log.End() - s.log.Durable()); n > s.cfg.MaxVolatile {
		return fmt.Errorf("%w: %d bytes of the commit log wait for the disk, which does not keep up; at most %d may", mq.ErrBusy, n, s.cfg.MaxVolatile)
	}
	return nil
}

// keepReserve gives the reserve file up when the disk is full and makes it again
// when there is room.
func (s *Store) keepReserve(full bool) error {
	if s.cfg.Reserve == 0 {
		return nil
	}
	path := s.cfg.own("reserve")
	_, err := s.fs.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch there := err == nil; {
	case there && full:
		s.note.Warn("the disk is full: the reserve is given up", "file", path, "bytes", s.cfg.Reserve)
		s.reserveUsed = true
		return s.fs.Remove(path)
	case !there && !full:
		made, err := s.makeReserve(path)
		s.reserveUsed = s.reserveUsed && !made
		return err
	}
	return nil
}

// reserveNeeds is how much room there must be for the reserve to be made: not
// the last there is, because what follows may need that more.
func (s *Store) reserveNeeds() uint64 { return 2 * uint64(s.cfg.Reserve) }

func (s *Store) roomWanted() string {
	if s.cfg.Reserve == 0 {
		return "some is"
	}
	return fmt.Sprintf("%d bytes are", s.reserveNeeds())
}

func (s *Store) makeReserve(path string) (made bool, err error) {
	u, err := s.fs.Usage(s.cfg.own(""))
	if err != nil || u.Available < s.reserveNeeds() {
		return false, err
	}
	f, err := s.fs.Create(path)
	if err != nil {
		return false, err
	}
	if err = errors.Join(f.Allocate(s.cfg.Reserve), f.Close()); err == nil {
		return true, nil
	}
	rm := s.fs.Remove(path)
	if vfs.IsNoSpace(err) {
		return false, rm
	}
	return false, errors.Join(err, rm)
}
