package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/vfs/faultfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// open opens a store that the test gives up, unless it stopped it.
func open(t *testing.T, disk *memfs.FS, cfg Config) *Store {
	t.Helper()
	s, err := Open(disk, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keyed(topic, key, body string) *record.Message {
	m := message(topic, 0, body)
	m.Properties = record.AppendProperty(m.Properties, mq.PropKeys, key)
	return m
}

// S02: a crash just after the log went over to a new file, with nothing written
// to the queues yet: not only the newest file is looked at.
func TestS02QueuesBehindARollAreBuiltFromAllFiles(t *testing.T) {
	t.Parallel()
	for _, entered := range []bool{false, true} {
		disk, cfg := memfs.New(1), tinyConfig()
		cfg.Index = false
		s := open(t, disk, cfg)
		fill(t, s, 2)
		if entered { // some of it, in the file before the last
			if err := errors.Join(s.Flush(), s.sets.Flush(s.Durable()), s.save(false)); err != nil {
				t.Fatal(err)
			}
		}
		fill(t, s, 4)
		key := mq.QueueKey{Topic: "T"}
		want := bodies(t, s, key)
		next := disk.KillClone()
		s.giveUp()
		s = open(t, next, cfg)
		if got := bodies(t, s, key); !slices.Equal(got, want) {
			t.Errorf("entered=%v: %d messages, want %d", entered, len(got), len(want))
		}
		if err := s.Check(nil); err != nil {
			t.Error(err)
		}
		s.giveUp()
	}
}

// S04: what was appended before a clean stop is found by key after the power went
// right behind it.
func TestS04IndexIsOnDiskAfterAStop(t *testing.T) {
	t.Parallel()
	disk, cfg := memfs.New(4), tinyConfig()
	s := open(t, disk, cfg)
	stop := running(t, s)
	for i := range 100 {
		if _, err := s.Append(keyed("T", fmt.Sprint("k", i), "x")); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	disk = disk.Crash()
	s = open(t, disk, cfg)
	stop = running(t, s)
	defer stop()
	for i := range 100 {
		hits, err := s.Query("T", fmt.Sprint("k", i), 10, 0, 1<<60)
		if err != nil || len(hits.Records) != 1 || hits.Records[0].QueueOffset() != mq.QueueOffset(i) {
			t.Errorf("k%d: %d found, %v", i, len(hits.Records), err)
		}
		hits.Release()
	}
}

// S05: garbage and holes in the first entries of a queue file, also where the log
// no longer begins at 0, are put right.
func TestS05DamagedFirstEntriesAreCorrected(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(b []byte){
		"garbage": func(b []byte) {
			for i := range b[:60] {
				b[i] = byte(i*37 + 1)
			}
		},
		"hole": func(b []byte) { clear(b[:60]) },
	} {
		for _, expired := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, expired=%v", name, expired), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					disk, cfg := memfs.New(1), tinyConfig()
					cfg.Index, cfg.Expiry.Hours = false, []int{}
					cfg.FlushInterval, cfg.QueueFlushInterval, cfg.Expiry.Interval, cfg.Expiry.GuardInterval = time.Hour, time.Hour, time.Hour, time.Hour
					s := open(t, disk, cfg)
					fill(t, s, 4)
					if expired {
						stop := running(t, s)
						pass(100 * time.Hour)
						if _, err := s.ExpireNow(t.Context()); err != nil {
							t.Fatal(err)
						}
						stop()
					} else if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					dir := filepath.Join(cfg.Dir, "consumequeue", "T", "0")
					files, err := disk.ReadDir(dir)
					if err != nil || len(files) == 0 {
						t.Fatal(files, err)
					}
					path := filepath.Join(dir, files[0].Name())
					b, err := disk.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					damage(b)
					put(t, disk, path, b)
					key := mq.QueueKey{Topic: "T"}
					for range 2 {
						s = open(t, disk, cfg)
						if a, err := s.Append(message("T", 0, "goes on")); err != nil || a.Queue != s.MaxOffset(key)-1 {
							t.Errorf("append: %+v, %v", a, err)
						}
						got := bodies(t, s, key)
						if len(got) != int(s.MaxOffset(key)-s.MinOffset(key)) || len(got) < 2 {
							t.Errorf("%d messages between %d and %d", len(got), s.MinOffset(key), s.MaxOffset(key))
						}
						if err := s.Check(nil); err != nil {
							t.Error(err)
						}
						if err := s.Close(); err != nil {
							t.Fatal(err)
						}
					}
				})
			})
		}
	}
}

// S07: the index is far ahead of the queues, and the checkpoint does not claim
// more than the queues hold.
func TestS07CheckpointSpeaksForTheLeastOfAll(t *testing.T) {
	t.Parallel()
	disk, cfg := memfs.New(7), tinyConfig()
	s := open(t, disk, cfg)
	for i := range 20 {
		if _, err := s.Append(keyed("T", fmt.Sprint("k", i), "early")); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Flush(), s.followOnce(), s.save(false)); err != nil {
		t.Fatal(err)
	}
	covered := s.Durable()
	for i := range 20 {
		if _, err := s.Append(keyed("T", fmt.Sprint("l", i), "late")); err != nil {
			t.Fatal(err)
		}
	}
	// The index is filled and durable, the queues are not.
	if err := errors.Join(s.Flush(), s.followOnce(), s.index.Mark()); err != nil {
		t.Fatal(err)
	}
	cp, _, err := readCheckpoint(disk, s.path("checkpoint"))
	if err != nil || cp.queueLog != covered {
		t.Errorf("checkpoint says %d, queues hold up to %d: %v", cp.queueLog, covered, err)
	}
	next := disk.Crash()
	s.giveUp()
	s = open(t, next, cfg)
	stop := running(t, s)
	defer stop()
	if got := bodies(t, s, mq.QueueKey{Topic: "T"}); len(got) != 40 {
		t.Errorf("%d messages, want 40", len(got))
	}
	if hits, err := s.Query("T", "l19", 10, 0, 1<<60); err != nil || len(hits.Records) != 1 {
		t.Errorf("%d found by key: %v", len(hits.Records), err)
	} else {
		hits.Release()
	}
}

// S16: the window of a query means the time of the store, whatever the clock of
// the producer showed.
func TestS16QueriesGoByStoreTime(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	s := open(t, disk, tinyConfig())
	stop := running(t, s)
	defer stop()
	m := keyed("T", "k", "x")
	m.BornTime = time.Now().Add(-2 * time.Hour).UnixMilli()
	a, err := s.Append(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		begin, end int64
		found      int
	}{{a.StoreTime, a.StoreTime, 1}, {a.StoreTime - 1800_000, a.StoreTime + 1000, 1}, {m.BornTime - 60_000, m.BornTime + 60_000, 0}} {
		hits, err := s.Query("T", "k", 10, w.begin, w.end)
		if err != nil || len(hits.Records) != w.found {
			t.Errorf("from %d to %d: %d found, want %d, %v", w.begin, w.end, len(hits.Records), w.found, err)
		}
		hits.Release()
	}
}

// H04: what was cut off the end never comes back: not at a further crash, and not
// when the next record ends exactly where the cut ones went on. H02: offsets that
// were not confirmed are given anew by what is left.
func TestH04ACutTailStaysCut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		disk, cfg := memfs.New(seed), tinyConfig()
		s := open(t, disk, cfg)
		key := mq.QueueKey{Topic: "T"}
		var cut mq.LogOffset
		for i := range 6 {
			a, err := s.Append(message("T", 0, fmt.Sprint("old ", i, strings.Repeat("x", 100))))
			if err != nil {
				t.Fatal(err)
			}
			if i == 2 {
				cut = a.Log
				if err := s.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		next := disk.KillClone()
		s.giveUp()
		scratch(t, next, cfg, int64(cut), func(b []byte) { b[4] ^= 0xFF })
		s = open(t, next, cfg)
		if got := s.MaxOffset(key); got != 2 {
			t.Fatalf("behind the damage at 2 the queue ends at %d", got)
		}
		next = next.Crash()
		s.giveUp()
		s = open(t, next, cfg)
		if got := s.MaxOffset(key); got != 2 {
			t.Fatalf("after a second crash the queue ends at %d", got)
		}
		// As long as the damaged one: "old 3" stands right behind it.
		a, err := s.Append(message("T", 0, fmt.Sprint("new 2", strings.Repeat("x", 100))))
		if err != nil || a.Queue != 2 || a.Log != cut {
			t.Fatalf("append: %+v, %v", a, err)
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		for _, then := range []*memfs.FS{next.KillClone(), next.Crash()} {
			s := open(t, then, cfg)
			got := bodies(t, s, key)
			if len(got) != 3 || !strings.HasPrefix(got[2], "new 2") {
				t.Fatalf("seed %d: %.30q", seed, got)
			}
			s.giveUp()
		}
		s.giveUp()
	}
}

// N11: messages of IPv4 and IPv6 hosts share a log, also when it is read again.
func TestN11IPv6AndIPv4InOneLog(t *testing.T) {
	t.Parallel()
	disk, cfg := memfs.New(1), tinyConfig()
	s := open(t, disk, cfg)
	hosts := []netip.AddrPort{
		netip.MustParseAddrPort("10.1.2.3:1"), netip.MustParseAddrPort("[::1]:65535"), netip.MustParseAddrPort("[fd00::1:2]:10911"), netip.MustParseAddrPort("[2001:db8::7]:10911"),
	}
	var places []mq.LogOffset
	for i := range 32 {
		m := keyed("T", "k", fmt.Sprint(i))
		m.BornHost, m.StoreHost, m.BornTime = hosts[i%4], hosts[i/4%4], int64(i)
		a, err := s.Append(m)
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, a.Log)
	}
	look := func() {
		t.Helper()
		for i, at := range places {
			v, release, err := s.Record(at)
			if err != nil {
				t.Fatal(err)
			}
			if v.BornHost() != hosts[i%4] || v.StoreHost() != hosts[i/4%4] || v.BornTime() != int64(i) || string(v.Body()) != fmt.Sprint(i) || v.QueueOffset() != mq.QueueOffset(i) {
				t.Errorf("%d: born at %v, stored at %v, time %d, body %s", i, v.BornHost(), v.StoreHost(), v.BornTime(), v.Body())
			}
			release()
		}
		if got := bodies(t, s, mq.QueueKey{Topic: "T"}); len(got) != 32 {
			t.Errorf("%d messages in the queue", len(got))
		}
		if err := s.Check(nil); err != nil {
			t.Error(err)
		}
	}
	look()
	killed := disk.KillClone()
	s.giveUp()
	s = open(t, killed, cfg)
	look()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := killed.RemoveAll(filepath.Join(cfg.Dir, "consumequeue")); err != nil {
		t.Fatal(err)
	}
	s = open(t, killed, cfg)
	look()
	s.giveUp()
}

// S11: who is refused is told the one true cause, where it is, and what changes it.
func TestS11RefusalsNameTheOneTrueCause(t *testing.T) {
	t.Parallel()
	type on struct {
		cfg    *Config
		disk   *memfs.FS
		broken *atomic.Bool
	}
	all := []string{"diskSpaceWarningLevelRatio", "diskSpaceCleanForciblyRatio", "no space left", "permission", "durable", "closed"}
	for _, c := range []struct {
		name    string
		change  func(on)
		refused func(on, *testing.T, *Store)
		want    []string
	}{
		{"above the limit", nil, func(o on, t *testing.T, _ *Store) { o.disk.SetUsage(usage(93)) },
			[]string{"diskSpaceWarningLevelRatio", "/data/store", "93%", "90%"}},
		{"above the other limit", func(o on) { o.cfg.Expiry.RefuseAtForced = true }, func(o on, t *testing.T, _ *Store) { o.disk.SetUsage(usage(87)) },
			[]string{"diskSpaceCleanForciblyRatio", "/data/store", "87%", "85%"}},
		{"nothing left, though the disk has room", nil, func(o on, t *testing.T, s *Store) {
			pass(2 * time.Second)
			o.disk.SetLimit(o.disk.Used())
		}, []string{"no space left", "/data/store"}},
		{"no file can be made", nil, func(o on, t *testing.T, _ *Store) { o.broken.Store(true) }, []string{"permission", "/data/store/commitlog"}},
		{"the store is closed", nil, func(o on, t *testing.T, s *Store) {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}, []string{"closed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg, disk := tinyConfig(), memfs.New(1)
				var broken atomic.Bool
				o := on{&cfg, disk, &broken}
				cfg.Index, cfg.LogFileSize = false, 64<<10
				disk.SetUsage(usage(31))
				if c.change != nil {
					c.change(o)
				}
				s, err := Open(faultfs.Wrap(disk, func(op faultfs.Op, name string) error {
					if broken.Load() && op == faultfs.OpCreate && strings.Contains(name, "commitlog") {
						return fs.ErrPermission
					}
					return nil
				}), cfg)
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- s.Run(ctx) }()
				defer func() { stop(); <-ended }() // with whatever the disk made of it
				if _, err := s.Append(message("T", 0, "at 31 percent")); err != nil {
					t.Fatal(err)
				}
				c.refused(o, t, s)
				pass(2 * time.Second)
				for i := 0; err == nil && i < 500; i++ {
					_, err = s.Append(message("T", 0, strings.Repeat("x", 1000)))
					if i%20 == 0 {
						pass(2 * time.Second)
					}
				}
				if !errors.Is(err, mq.ErrUnavailable) {
					t.Fatalf("refused with %v", err)
				}
				for _, part := range c.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("the text does not name %q: %v", part, err)
					}
				}
				for _, other := range all {
					if strings.Contains(err.Error(), other) && !slices.Contains(c.want, other) {
						t.Errorf("the text speaks of %q: %v", other, err)
					}
				}
			})
		})
	}
}

// S13: a start after a kill reads what came after the last save, not the whole log.
func TestS13AStartReadsOnlyTheTail(t *testing.T) {
	t.Parallel()
	disk, cfg := memfs.New(1), tinyConfig()
	cfg.Index, cfg.RecoverFrom = false, math.MaxInt64
	var seen int
	cfg.Recovered = func(record.View) { seen++ }
	s := open(t, disk, cfg)
	fill(t, s, 50)
	if err := errors.Join(s.Flush(), s.save(false)); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := s.Append(message("T", 0, "tail")); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		next := disk.KillClone()
		s.giveUp()
		disk, seen = next, 0
		s = open(t, disk, cfg)
		if seen > 5 {
			t.Errorf("%d records were read", seen)
		}
	}
	if got := len(bodies(t, s, mq.QueueKey{Topic: "T"})); got < 100 {
		t.Errorf("%d messages", got)
	}
	s.giveUp()
}
