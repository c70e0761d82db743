package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// scratch changes bytes of a commit log file.
func scratch(t testing.TB, disk vfs.FS, cfg Config, at int64, change func(b []byte)) {
	t.Helper()
	path := filepath.Join(cfg.logDirs()[0], logName(at/cfg.LogFileSize*cfg.LogFileSize))
	b, err := disk.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	change(b[at%cfg.LogFileSize:])
	info, err := disk.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, disk, path, b)
	if err := disk.SetModTime(path, info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

func logName(start int64) string {
	const zeros = "00000000000000000000"
	s := ""
	for ; start > 0; start /= 10 {
		s = string(rune('0'+start%10)) + s
	}
	return zeros[:20-len(s)] + s
}

// lastStored is the record of a manifest that stands last in the log before end.
func lastStored(truth javaStore, before int64) (at, size int64) {
	for _, r := range truth.Stored {
		if p := number(r[3]); p > at && p < before {
			at, size = p, number(r[4])
		}
	}
	return at, size
}

func TestDamagedStoresOfRocketMQ(t *testing.T) {
	t.Parallel()
	flipBody := func(b []byte) { b[90] ^= 0xFF; b[95] ^= 0xFF }
	for _, c := range []struct {
		name   string
		store  string
		damage func(t *testing.T, disk *memfs.FS, cfg Config, truth javaStore)
		refuse string // part of the refusal; with AcceptDamage it opens
		lost   int    // messages of the manifest that are not served (after accepting)
	}{
		{"clean, last body flipped", "clean", func(t *testing.T, disk *memfs.FS, cfg Config, truth javaStore) {
			at, _ := lastStored(truth, 1<<60)
			scratch(t, disk, cfg, at, flipBody)
		}, "body CRC", 1},
		{"killed, last body flipped", "killed", func(t *testing.T, disk *memfs.FS, cfg Config, truth javaStore) {
			at, _ := lastStored(truth, 1<<60)
			scratch(t, disk, cfg, at, flipBody)
		}, "", 1},
		{"clean, a body in the middle of the last file flipped", "clean", func(t *testing.T, disk *memfs.FS, cfg Config, truth javaStore) {
			at, _ := lastStored(truth, 170_000)
			scratch(t, disk, cfg, at, flipBody)
		}, "body CRC", 1},
		{"clean, a body in the first file flipped", "clean", func(t *testing.T, disk *memfs.FS, cfg Config, truth javaStore) {
			at, _ := lastStored(truth, 30_000)
			scratch(t, disk, cfg, at, flipBody)
		}, "", 1},
		{"clean, the length of a record in the first file zeroed", "clean", func(t *testing.T, disk *memfs.FS, cfg Config, truth javaStore) {
			at, _ := lastStored(truth, 30_000)
			scratch(t, disk, cfg, at, func(b []byte) { clear(b[:8]) })
		}, "no record", 1},
		{"clean, an old record copied behind the end", "clean", func(t *testing.T, disk *memfs.FS, cfg Config, truth javaStore) {
			at, size := lastStored(truth, 1<<60)
			var old []byte
			scratch(t, disk, cfg, at, func(b []byte) { old = bytes.Clone(b[:size]) })
			scratch(t, disk, cfg, at+size, func(b []byte) { copy(b, old) })
		}, "", 0},
		{"killed, garbage behind the end", "killed", func(t *testing.T, disk *memfs.FS, cfg Config, truth javaStore) {
			at, size := lastStored(truth, 1<<60)
			scratch(t, disk, cfg, at+size, func(b []byte) { copy(b, bytes.Repeat([]byte{0xDA, 0xA3, 0x20, 0xA7}, 500)) })
		}, "", 0},
		{"killed, the last empty file removed", "killed", func(t *testing.T, disk *memfs.FS, cfg Config, _ javaStore) {
			if err := disk.Remove(filepath.Join(cfg.logDirs()[0], logName(851968))); err != nil {
				t.Fatal(err)
			}
		}, "", 0},
		{"killed, a file in the middle removed", "killed", func(t *testing.T, disk *memfs.FS, cfg Config, _ javaStore) {
			if err := disk.Remove(filepath.Join(cfg.logDirs()[0], logName(131072))); err != nil {
				t.Fatal(err)
			}
		}, "00000000000000131072 is missing", -1},
		{"clean, no commit log", "clean", func(t *testing.T, disk *memfs.FS, cfg Config, _ javaStore) {
			if err := disk.RemoveAll(cfg.logDirs()[0]); err != nil {
				t.Fatal(err)
			}
		}, "known to be on disk", 190},
		{"killed, no commit log", "killed", func(t *testing.T, disk *memfs.FS, cfg Config, _ javaStore) {
			if err := disk.RemoveAll(cfg.logDirs()[0]); err != nil {
				t.Fatal(err)
			}
		}, "queues are full of them", 736},
		{"killed, everything behind the first files lost", "killed", func(t *testing.T, disk *memfs.FS, cfg Config, _ javaStore) {
			scratch(t, disk, cfg, 131072, func(b []byte) { clear(b) })
			for at := int64(196608); at <= 851968; at += 65536 {
				if err := disk.Remove(filepath.Join(cfg.logDirs()[0], logName(at))); err != nil {
					t.Fatal(err)
				}
			}
		}, "checkpoint says", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			disk, cfg, truth := unpackJava(t, c.store)
			c.damage(t, disk, cfg, truth)
			before := tree(t, disk, "/store/commitlog") + tree(t, disk, "/store/consumequeue")
			s, err := Open(disk, cfg)
			if c.refuse != "" {
				var damage *mq.CorruptionError
				if !errors.As(err, &damage) || !strings.Contains(err.Error(), c.refuse) {
					t.Fatalf("opened with %v, want a refusal with %q", err, c.refuse)
				}
				if after := tree(t, disk, "/store/commitlog") + tree(t, disk, "/store/consumequeue"); after != before {
					t.Errorf("the refused store was changed:\n%s\nwas\n%s", after, before)
				}
				if c.lost < 0 {
					return
				}
				cfg.AcceptDamage = true
				s, err = Open(disk, cfg)
			}
			if err != nil {
				t.Fatal(err)
			}
			lost := 0
			for _, r := range truth.Stored {
				f := s.Fetch(FetchRequest{Queue: mq.QueueKey{Topic: r[0].(string), ID: mq.QueueID(number(r[1]))}, From: mq.QueueOffset(number(r[2])), MaxCount: 1})
				if f.Status != Found || crc(f.Chunks[0]) != uint32(number(r[5])) {
					lost++
				}
				f.Release()
			}
			if lost != c.lost {
				t.Errorf("%d messages are lost, want %d", lost, c.lost)
			}
			a, err := s.Append(message("new", 0, "goes on"))
			if err != nil || a.Queue != 0 {
				t.Errorf("append: %+v, %v", a, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			cfg.AcceptDamage = false
			if s, err = Open(disk, cfg); err != nil {
				t.Fatal(err)
			}
			if got := bodies(t, s, mq.QueueKey{Topic: "new"}); len(got) != 1 {
				t.Errorf("the new queue holds %q", got)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// tree lists the files below a directory with their sizes.
func tree(t testing.TB, disk vfs.FS, dir string) string {
	t.Helper()
	var b strings.Builder
	var walk func(string)
	walk = func(dir string) {
		entries, err := disk.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if e.IsDir() {
				walk(path)
				continue
			}
			raw, err := disk.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(path + " ")
			b.WriteString(hexCRC(crc(raw)) + "\n")
		}
	}
	walk(dir)
	return b.String()
}

func TestWithoutStateTheWholeLogIsWalked(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"sundial/state", "sundial", "checkpoint", "consumequeue", "consumequeue/A", "sundial/queues.json"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			disk, cfg, d := memfs.New(1), tinyConfig(), newDiary()
			if err := live(disk, cfg, d, 1); err != nil {
				t.Fatal(err)
			}
			if lost == "sundial" {
				// With it goes the memory of deleted topics.
				for key := range d.told {
					if key.Topic == "C" {
						delete(d.told, key)
					}
				}
			}
			if err := disk.RemoveAll(filepath.Join(cfg.Dir, lost)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				s, err := Open(disk, cfg)
				if err != nil {
					t.Fatal(err)
				}
				if err := d.holds(s, true); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestQueueEntriesInFilesAreEvidenceOfTheLog(t *testing.T) {
	t.Parallel()
	disk, cfg := memfs.New(1), tinyConfig()
	s, err := Open(disk, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var at mq.LogOffset
	for range 10 {
		a, err := s.Append(message("T", 0, strings.Repeat("x", 200)))
		if err != nil {
			t.Fatal(err)
		}
		at = a.Log
	}
	if err := errors.Join(s.Flush(), s.sets.Flush(s.Durable())); err != nil {
		t.Fatal(err)
	}
	s.giveUp()
	scratch(t, disk, cfg, int64(at), func(b []byte) { b[100] ^= 1 })
	_, err = Open(disk, cfg)
	var damage *mq.CorruptionError
	if !errors.As(err, &damage) || damage.Offset != int64(at) || !strings.Contains(err.Error(), "consume queue T/0") {
		t.Fatalf("opened with %v", err)
	}
}

// What a hand removed is built anew where the log has it, and told where not.
func TestFilesRemovedByHand(t *testing.T) {
	t.Parallel()
	key := mq.QueueKey{Topic: "A"}
	make := func(t *testing.T) (*memfs.FS, Config, []string) {
		disk, cfg := memfs.New(1), smallConfig("/store")
		s, err := Open(disk, cfg)
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			if _, err := s.Append(message("A", 0, strings.Repeat("x", 1000))); err != nil {
				t.Fatal(err)
			}
		}
		want := bodies(t, s, key)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return disk, cfg, want
	}
	remove := func(t *testing.T, disk *memfs.FS, path string) {
		t.Helper()
		if err := disk.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("the first file of a queue", func(t *testing.T) {
		t.Parallel()
		disk, cfg, want := make(t)
		remove(t, disk, filepath.Join(cfg.Dir, "consumequeue", "A", "0", logName(0)))
		s, err := Open(disk, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got := bodies(t, s, key); len(got) != len(want) || s.MinOffset(key) != 0 {
			t.Errorf("%d of %d messages from %d on: the log holds them all", len(got), len(want), s.MinOffset(key))
		}
	})
	t.Run("the first file of a queue, killed", func(t *testing.T) {
		t.Parallel()
		disk, cfg, want := make(t)
		s, err := Open(disk, cfg)
		if err != nil {
			t.Fatal(err)
		}
		killed := disk.KillClone()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		remove(t, killed, filepath.Join(cfg.Dir, "consumequeue", "A", "0", logName(0)))
		if s, err = Open(killed, cfg); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got := bodies(t, s, key); len(got) != len(want) {
			t.Errorf("%d of %d messages: the log holds them all", len(got), len(want))
		}
	})
	t.Run("the only file of a queue that went on, killed", func(t *testing.T) {
		t.Parallel()
		disk, cfg := memfs.New(1), smallConfig("/store")
		for i := range 2 {
			s, err := Open(disk, cfg)
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if _, err := s.Append(message("B", 0, "x")); err != nil {
					t.Fatal(err)
				}
			}
			if i == 1 {
				killed := disk.KillClone()
				defer s.Close()
				disk = killed
			} else if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		remove(t, disk, filepath.Join(cfg.Dir, "consumequeue", "B", "0", logName(0)))
		s, err := Open(disk, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got := bodies(t, s, mq.QueueKey{Topic: "B"}); len(got) != 40 {
			t.Errorf("%d of 40 messages: the log holds them all", len(got))
		}
	})
	t.Run("the first file of the log", func(t *testing.T) {
		t.Parallel()
		disk, cfg, _ := make(t)
		remove(t, disk, filepath.Join(cfg.logDirs()[0], logName(0)))
		var told bytes.Buffer
		cfg.Log = slog.New(slog.NewTextHandler(&told, nil))
		for i, want := range []int{1, 1} { // not again by the second start
			s, err := Open(disk, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(told.String(), "were removed while no broker ran"); n != want {
				t.Errorf("start %d: told %d times\n%s", i, n, &told)
			}
		}
	})
	t.Run("the last file of the log", func(t *testing.T) {
		t.Parallel()
		disk, cfg, _ := make(t)
		s, err := Open(disk, cfg)
		if err != nil {
			t.Fatal(err)
		}
		last := s.fileOf(s.state.covered.Last)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		remove(t, disk, last)
		_, err = Open(disk, cfg)
		if damage, ok := errors.AsType[*mq.CorruptionError](err); !ok || damage.File != last {
			t.Errorf("%v, want the name of %s", err, last)
		}
	})
}

// manyFiles is a store stopped clean whose log has several files.
func manyFiles(t *testing.T) (*memfs.FS, Config) {
	t.Helper()
	disk, cfg := memfs.New(1), smallConfig("/store")
	s, err := Open(disk, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if _, err := s.Append(message("A", 0, strings.Repeat("x", 1000))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return disk, cfg
}

func TestALogFileThatLostItsContentIsFoundByTheStart(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int64{"the first": 0, "in the middle": 2 * 64 << 10} {
		for what, change := range map[string]func(b []byte){
			"zeroed":               func(b []byte) { clear(b[:64<<10]) },
			"first record damaged": func(b []byte) { b[30] ^= 1 }, // its log offset
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				disk, cfg := manyFiles(t)
				scratch(t, disk, cfg, at, change)
				var told bytes.Buffer
				cfg.Log = slog.New(slog.NewTextHandler(&told, nil))
				for _, accept := range []bool{false, true, false, false} { // accepted once, it stays so
					before := told.Len()
					cfg.AcceptDamage = accept
					s, err := Open(disk, cfg)
					if !accept && before == 0 {
						if damage, ok := errors.AsType[*mq.CorruptionError](err); !ok || damage.File != filepath.Join(cfg.logDirs()[0], logName(at)) || damage.Offset != 0 {
							t.Fatalf("opened with %v", err)
						}
						told.WriteString("refused\n")
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					if !strings.Contains(told.String()[before:], "does not begin with a message") {
						t.Errorf("told only %s", told.String()[before:])
					}
				}
			})
		}
	}
}

func TestWholeRecordsDroppedBehindADamagedOneAreTold(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b []byte){
		"its body":      func(b []byte) { b[100] ^= 1 },
		"its beginning": func(b []byte) { clear(b[:40]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk, cfg := memfs.New(1), smallConfig("/store")
			cfg.SyncFlush = true
			s, err := Open(disk, cfg)
			if err != nil {
				t.Fatal(err)
			}
			var at []mq.LogOffset
			for range 20 {
				a, err := s.Append(message("A", 0, strings.Repeat("x", 500)))
				if err != nil {
					t.Fatal(err)
				}
				at = append(at, a.Log)
			}
			if err := s.log.Flush(); err != nil {
				t.Fatal(err)
			}
			killed := disk.KillClone()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			scratch(t, killed, cfg, int64(at[12]), change)
			var told bytes.Buffer
			cfg.Log = slog.New(slog.NewTextHandler(&told, nil))
			if s, err = Open(killed, cfg); err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.MaxOffset(mq.QueueKey{Topic: "A"}) != 12 {
				t.Errorf("the queue ends at %d", s.MaxOffset(mq.QueueKey{Topic: "A"}))
			}
			want := "records=7"
			if text := told.String(); !strings.Contains(text, want) || !strings.Contains(text, fmt.Sprintf("offset=%d ", at[12])) || !strings.Contains(text, logName(0)) {
				t.Errorf("told %s", text)
			}
		})
	}
}

func TestMissingFilesOfOursAreTold(t *testing.T) {
	t.Parallel()
	for lost, want := range map[string]string{
		"store.json": "the store has a new id",
		"state":      "all of the log is read and verified",
		"":           "", // of a store of ours nothing is told, and neither of one that has only just come to us
		".":          "",
	} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			disk, cfg := manyFiles(t)
			if lost != "" {
				for _, path := range []string{lost, lost + ".bak"} {
					if err := disk.RemoveAll(cfg.own(path)); err != nil {
						t.Fatal(err)
					}
				}
			}
			var told bytes.Buffer
			cfg.Log = slog.New(slog.NewTextHandler(&told, nil))
			s, err := Open(disk, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got := bodies(t, s, mq.QueueKey{Topic: "A"}); len(got) != 300 {
				t.Errorf("%d messages", len(got))
			}
			if text := told.String(); !strings.Contains(text, want) || want == "" && strings.Contains(text, "WARN") {
				t.Errorf("told %s", text)
			}
		})
	}
}

func TestAQueueWithAFileOfAWrongSizeIsBuiltAnew(t *testing.T) {
	t.Parallel()
	for size, file := range map[int]int64{0: 1000, 137: 0, 500: 3000, 1001: 5000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			disk, cfg := manyFiles(t)
			s, err := Open(disk, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Append(message("B", 0, "x")); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			put(t, disk, filepath.Join(cfg.Dir, "consumequeue", "A", "0", logName(file)), make([]byte, size))
			if s, err = Open(disk, cfg); err != nil {
				t.Fatal(err)
			}
			if got := bodies(t, s, mq.QueueKey{Topic: "A"}); len(got) != 300 {
				t.Errorf("%d of 300 messages: the log holds them all", len(got))
			}
			if err := errors.Join(s.Check(nil), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}
