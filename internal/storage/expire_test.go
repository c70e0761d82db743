package storage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// fill appends until the log has that many files.
func fill(t *testing.T, s *Store, files int) {
	t.Helper()
	for i := 0; len(s.log.Segments().Files()) < files; i++ {
		if _, err := s.Append(message("T", i%2, fmt.Sprintf("%d %s", i, strings.Repeat("x", 700)))); err != nil {
			t.Fatal(err)
		}
	}
}

// pass lets time go by in a bubble.
func pass(d time.Duration) { <-time.After(d) }

func usage(percent uint64) vfs.Usage {
	return vfs.Usage{Total: 1000 << 30, Used: percent * 10 << 30, Available: (100 - percent) * 10 << 30}
}

// onDisk runs do in a bubble with a running store of tiny files.
func onDisk(t *testing.T, change func(*Config), do func(t *testing.T, disk *memfs.FS, s *Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		disk := memfs.New(1)
		disk.SetUsage(usage(10))
		cfg := tinyConfig()
		cfg.Expiry.Hours = []int{}
		cfg.FlushInterval, cfg.QueueFlushInterval = time.Minute, time.Minute
		if change != nil {
			change(&cfg)
		}
		s, err := Open(disk, cfg)
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, s)
		do(t, disk, s)
		if err := s.Check(nil); err != nil {
			t.Error(err)
		}
		stop()
		if s, err = Open(disk, cfg); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(nil); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestExpiredFilesGoInTheirHour(t *testing.T) {
	t.Parallel()
	onDisk(t, func(c *Config) { c.Index, c.Expiry.Hours, c.Expiry.GuardInterval = false, []int{4}, time.Minute }, func(t *testing.T, disk *memfs.FS, s *Store) {
		fill(t, s, 6)
		key := mq.QueueKey{Topic: "T"}
		reached := s.MaxOffset(key)
		pass(71 * time.Hour) // the bubble begins at midnight
		if got := s.log.First(); got != 0 {
			t.Fatalf("after 71 hours the log begins at %d", got)
		}
		pass(2 * time.Hour)
		if got := s.log.First(); got != 0 {
			t.Fatalf("at one o'clock the log begins at %d", got)
		}
		pass(4 * time.Hour)
		if got := len(s.log.Segments().Files()); got != 1 {
			t.Fatalf("after the hour there are %d files, want the last", got)
		}
		lo, hi := s.MinOffset(key), s.MaxOffset(key)
		if lo == 0 || hi != reached || lo > hi {
			t.Fatalf("the queue holds %d to %d", lo, hi)
		}
		if f := s.Fetch(FetchRequest{Queue: key, From: 0}); f.Status != TooSmall || f.Next != lo {
			t.Fatalf("fetch at 0: %v, next %d", f.Status, f.Next)
		}
	})
}

func TestS10AFullDiskLetsTheOldestGoAndSaysWhatIsLost(t *testing.T) {
	t.Parallel()
	var lost [][2]mq.LogOffset
	onDisk(t, func(c *Config) {
		c.OnLost = func(from, to mq.LogOffset) { lost = append(lost, [2]mq.LogOffset{from, to}) }
		c.Expiry.Batch = 3
	}, func(t *testing.T, disk *memfs.FS, s *Store) {
		fill(t, s, 6)
		disk.SetUsage(usage(80))
		pass(time.Minute)
		if s.log.First() != 0 {
			t.Fatal("at 80 percent a file went before its time")
		}
		var pinned atomic.Int64
		pinned.Store(8192*4 + 5)
		s.Pin("a test", func() mq.LogOffset { return mq.LogOffset(pinned.Load()) })
		disk.SetUsage(usage(87))
		pass(time.Minute)
		if got := s.log.First(); got != 8192*4 {
			t.Fatalf("at 87 percent the log begins at %d, want the file that is pinned", got)
		}
		if fmt.Sprint(lost) != "[[0 24576] [24576 32768]]" {
			t.Fatalf("told to be lost: %v", lost)
		}
		if _, err := s.Append(message("T", 0, "still")); err != nil {
			t.Fatal(err)
		}
		pinned.Store(math.MaxInt64)
		pass(time.Minute)
		if n := len(s.log.Segments().Files()); n != 1 {
			t.Fatalf("without the pin %d files are left", n)
		}
	})
}

func TestS08AboveTheLimitMessagesAreRefusedUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	onDisk(t, func(c *Config) { c.Expiry.RefuseAtForced = false }, func(t *testing.T, disk *memfs.FS, s *Store) {
		fill(t, s, 2)
		for _, step := range []struct {
			used    uint64
			refused bool
		}{{50, false}, {90, false}, {91, true}, {89, true}, {86, true}, {85, false}, {90, false}, {95, true}, {50, false}} {
			disk.SetUsage(usage(step.used))
			pass(2 * time.Second)
			_, err := s.Append(message("T", 0, "body"))
			if (err != nil) != step.refused {
				t.Fatalf("at %d percent: %v", step.used, err)
			}
			if !step.refused {
				continue
			}
			if !errors.Is(err, mq.ErrUnavailable) || !strings.Contains(err.Error(), "diskSpaceWarningLevelRatio") || !strings.Contains(err.Error(), "/data/store") {
				t.Errorf("the refusal does not say why: %v", err)
			}
			if _, err := s.AppendInternal(message("T", 0, "delivery")); err != nil {
				t.Errorf("a delivery is refused too: %v", err)
			}
			if f := s.Fetch(FetchRequest{Queue: mq.QueueKey{Topic: "T"}, From: s.MinOffset(mq.QueueKey{Topic: "T"})}); f.Status != Found {
				t.Errorf("fetch while refusing: %v", f.Status)
			} else {
				f.Release()
			}
		}
	})
}

func TestRefusingInsteadOfDeletingIsASetting(t *testing.T) {
	t.Parallel()
	onDisk(t, func(c *Config) { c.Expiry.RefuseAtForced = true }, func(t *testing.T, disk *memfs.FS, s *Store) {
		fill(t, s, 4)
		disk.SetUsage(usage(86))
		pass(time.Minute)
		if s.log.First() != 0 {
			t.Error("a file went")
		}
		if _, err := s.Append(message("T", 0, "body")); !errors.Is(err, mq.ErrUnavailable) || !strings.Contains(err.Error(), "diskSpaceCleanForciblyRatio") {
			t.Errorf("append: %v", err)
		}
		disk.SetUsage(usage(80))
		pass(2 * time.Second)
		if _, err := s.Append(message("T", 0, "body")); err != nil {
			t.Error(err)
		}
	})
}

func TestDeliveriesHaveTheReserve(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		left int64 // bytes on the disk when the next file is wanted
		text string
	}{
		{"no room for a file", 40 << 10, "the next commit log file cannot be made"},
		{"no room at all", 0, "/data/store"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				disk := memfs.New(1)
				cfg := tinyConfig()
				cfg.LogFileSize, cfg.QueueFileSize = 64<<10, 6000
				cfg.Reserve = 16 << 10
				cfg.Index = false
				disk.SetLimit(4 << 20)
				disk.SetUsage(usage(50)) // as with a quota: the disk has room, we have not
				s, err := Open(disk, cfg)
				if err != nil {
					t.Fatal(err)
				}
				stop := running(t, s)
				defer stop()
				pass(2 * time.Second)
				if _, err := disk.Stat(cfg.own("reserve")); err != nil {
					t.Fatalf("no reserve: %v", err)
				}
				fill(t, s, 2)
				pass(2 * time.Second) // what is made in advance is made
				disk.SetLimit(disk.Used() + c.left)
				send := func(by func(*record.Message) (Appended, error)) (n int, err error) {
					for ; err == nil; n++ {
						_, err = by(message("T", 0, strings.Repeat("u", 500)))
						pass(2 * time.Second)
					}
					return n - 1, err
				}
				users, err := send(s.Append)
				if !errors.Is(err, mq.ErrUnavailable) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("users are refused: %v", err)
				}
				delivered, err := send(s.AppendInternal)
				if !errors.Is(err, mq.ErrUnavailable) {
					t.Errorf("deliveries are refused: %v", err)
				}
				if users == 0 || delivered < 20 {
					t.Errorf("%d messages of users, then %d deliveries fit", users, delivered)
				}
				disk.SetLimit(4 << 20)
				pass(5 * time.Second)
				if _, err := s.Append(message("T", 0, "again")); err != nil {
					t.Errorf("with room again: %v", err)
				}
				if _, err := disk.Stat(cfg.own("reserve")); err != nil {
					t.Errorf("the reserve was not made again: %v", err)
				}
				if err := s.Check(nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAFileIsNotPulledFromUnderItsReader(t *testing.T) {
	t.Parallel()
	onDisk(t, func(c *Config) {
		c.Index, c.Expiry.ForceAfter, c.Expiry.GuardInterval = false, time.Minute, time.Minute
	}, func(t *testing.T, disk *memfs.FS, s *Store) {
		fill(t, s, 4)
		key := mq.QueueKey{Topic: "T"}
		f := s.Fetch(FetchRequest{Queue: key, From: 0})
		if f.Status != Found {
			t.Fatal(f.Status)
		}
		was := string(f.Chunks[0])
		first := s.log.Segments().Files()[0].Path()
		pass(100 * time.Hour)
		// Every age is over, and nobody deletes: there is no hour.
		if n, err := s.ExpireNow(context.Background()); err != nil || n != 3 {
			t.Fatalf("deleted %d: %v", n, err)
		}
		if _, err := disk.Stat(first); err != nil {
			t.Fatalf("the file of a reader is gone: %v", err)
		}
		pass(30 * time.Second)
		if _, err := disk.Stat(first); err != nil {
			t.Fatalf("the file of a reader is gone: %v", err)
		}
		pass(time.Minute)
		if _, err := disk.Stat(first); err == nil {
			t.Fatal("the file is still there a minute after it was dropped")
		}
		if string(f.Chunks[0]) != was {
			t.Fatal("the bytes changed under the reader")
		}
		f.Release()
	})
}

// What decides when files go can be changed while they wait.
func TestExpiryIsChangedWhileRunning(t *testing.T) {
	t.Parallel()
	onDisk(t, func(c *Config) { c.Index, c.Expiry.Hours, c.Expiry.GuardInterval = false, []int{4}, time.Minute }, func(t *testing.T, disk *memfs.FS, s *Store) {
		fill(t, s, 6)
		pass(3 * time.Hour)
		s.SetExpiry(2*time.Hour, []int{9}, 75)
		pass(2 * time.Hour) // five o'clock
		if got := s.log.First(); got != 0 {
			t.Fatalf("in the hour that does not count any more the log begins at %d", got)
		}
		pass(5 * time.Hour)
		if got := len(s.log.Segments().Files()); got != 1 {
			t.Fatalf("after the new hour there are %d files, want the last", got)
		}
	})
}
