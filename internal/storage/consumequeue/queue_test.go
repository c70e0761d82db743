package consumequeue

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sundial-mq/sundial/internal/invariant"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/faultfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

const root = "/consumequeue"

// small has 10 entries a file.
func small() Config { return Config{FileSize: 10 * EntrySize, OpenFiles: 16} }

func open(t testing.TB, fsys vfs.FS, cfg Config) *Set {
	t.Helper()
	s, err := OpenSet(fsys, root, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nth is an entry for message i of a queue whose records are 100 bytes.
func nth(i int) Entry {
	return Entry{Pos: mq.LogOffset(i * 100), Size: 100, TagsCode: int64(i) * 7}
}

func fill(t testing.TB, q *Queue, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := q.Append(mq.QueueOffset(i), nth(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// all reads the whole queue.
func all(t testing.TB, q *Queue) []Entry {
	t.Helper()
	out := make([]Entry, q.Max()-q.Min())
	n, err := q.Read(q.Min(), out)
	if err != nil || n != len(out) {
		t.Fatalf("read %d of %d entries: %v", n, len(out), err)
	}
	return out
}

func expect(t testing.TB, q *Queue, from, to int) {
	t.Helper()
	if q.Min() != mq.QueueOffset(from) || q.Max() != mq.QueueOffset(to) {
		t.Fatalf("queue holds %d..%d, want %d..%d", q.Min(), q.Max(), from, to)
	}
	for i, e := range all(t, q) {
		if e != nth(from+i) {
			t.Fatalf("entry %d is %+v, want %+v", from+i, e, nth(from+i))
		}
	}
	if err := q.Check(); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var key = mq.QueueKey{Topic: "T", ID: 3}

func TestEntryBytes(t *testing.T) {
	t.Parallel()
	want := "00000000000003e80000009d000000000027a807"
	e := Entry{Pos: 1000, Size: 157, TagsCode: mq.TagsCode("TagA")}
	if got := hex.EncodeToString(AppendEntry(nil, e)); got != want {
		t.Errorf("encoded %s, want %s", got, want)
	}
	raw, _ := hex.DecodeString(want)
	if got := DecodeEntry(raw); got != e {
		t.Errorf("decoded %+v, want %+v", got, e)
	}
	e = Entry{Size: 1, TagsCode: mq.TagsCode("TagB||TagC")}
	if got := hex.EncodeToString(AppendEntry(nil, e)[12:]); got != "ffffffff9f8f7991" {
		t.Errorf("tags code %s", got)
	}
}

func TestReadsFromMemoryAndFiles(t *testing.T) {
	t.Parallel()
	s := open(t, memfs.New(1), small())
	q := s.GetOrCreate(key)
	fill(t, q, 0, 1000)
	expect(t, q, 0, 1000)
	for _, upTo := range []int{7, 10, 33, 640, 999, 1000} {
		must(t, s.Flush(mq.LogOffset(upTo*100+50)))
		expect(t, q, 0, 1000)
	}
	fill(t, q, 1000, 1300)
	expect(t, q, 0, 1300)
	if n, err := q.Read(1300, make([]Entry, 5)); n != 0 || err != nil {
		t.Errorf("read at the end gives %d, %v", n, err)
	}
	if n, err := q.Read(-1, make([]Entry, 5)); n != 0 || err != nil {
		t.Errorf("read before the start gives %d, %v", n, err)
	}
	if e, ok := q.Entry(1234); !ok || e != nth(1234) {
		t.Errorf("entry 1234 is %+v, %v", e, ok)
	}
	if err := q.Append(1299, nth(1299)); err == nil {
		t.Error("an entry is accepted twice")
	}
	if err := q.Append(1301, nth(1301)); err == nil {
		t.Error("a gap is accepted")
	}
	if err := q.Append(1300, nth(1299)); err == nil {
		t.Error("a position before the last is accepted")
	}
	if err := q.Append(1300, Entry{Pos: 1300 * 100}); err == nil {
		t.Error("a size of 0 is accepted")
	}
	must(t, s.Close())
}

// Entries are written only when the log has what they speak of.
func TestFlushStopsAtTheDurableLog(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	s := open(t, disk, small())
	fill(t, s.GetOrCreate(key), 0, 25)
	must(t, s.Flush(1599)) // record 15 ends at 1600
	expect(t, open(t, disk.KillClone(), small()).Get(key), 0, 15)
	must(t, s.Flush(1600))
	expect(t, open(t, disk.KillClone(), small()).Get(key), 0, 16)
	for _, name := range []string{"00000000000000000000", "00000000000000000200"} {
		info, err := disk.Stat(root + "/T/3/" + name)
		if err != nil || info.Size() != 200 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestSyncSurvivesPowerCut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		disk := memfs.New(seed)
		s := open(t, disk, small())
		fill(t, s.GetOrCreate(key), 0, 25)
		must(t, s.Flush(2500))
		must(t, s.Sync())
		fill(t, s.Get(key), 25, 40)
		must(t, s.Flush(4000))
		q := open(t, disk.Crash(), small()).Get(key)
		if q == nil || q.Max() < 25 || q.Max() > 40 {
			t.Fatalf("seed %d: %v", seed, q)
		}
		expect(t, q, 0, int(q.Max()))
	}
}

func TestFirstOffsetOfAQueueMayBeAny(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	s := open(t, disk, small())
	q := s.GetOrCreate(key)
	fill(t, q, 127, 145)
	expect(t, q, 127, 145)
	must(t, s.Flush(math.MaxInt64))
	expect(t, q, 127, 145)
	must(t, s.Close())
	raw, err := disk.ReadFile(root + "/T/3/" + fileName(120*EntrySize))
	must(t, err)
	filler := "00000000000000007fffffff0000000000000000"[1:]
	for i := range 7 {
		if got := hex.EncodeToString(raw[i*EntrySize : (i+1)*EntrySize]); got != "0"+filler {
			t.Errorf("slot %d before the first entry is %s", i, got)
		}
	}
	s = open(t, disk, small())
	expect(t, s.Get(key), 127, 145)
	fill(t, s.Get(key), 145, 150)
	expect(t, s.Get(key), 127, 150)
}

func TestFollowsTheStartOfTheLog(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	s := open(t, disk, small())
	q := s.GetOrCreate(key)
	fill(t, q, 0, 55)
	must(t, s.Flush(math.MaxInt64))
	files := func() int {
		entries, err := disk.ReadDir(root + "/T/3")
		must(t, err)
		return len(entries)
	}
	for _, c := range []struct{ log, min, files int }{
		{0, 0, 6}, {1, 1, 6}, {900, 9, 6}, {901, 10, 5}, {1000, 10, 5}, {3456, 35, 3}, {5400, 54, 1}, {5401, 55, 1}, {9999, 55, 1},
	} {
		must(t, s.RaiseMin(mq.LogOffset(c.log)))
		expect(t, q, c.min, 55)
		if n := files(); n != c.files {
			t.Errorf("log starts at %d: %d files, want %d", c.log, n, c.files)
		}
	}
	fill(t, q, 55, 70)
	expect(t, q, 55, 70)
	must(t, s.Flush(math.MaxInt64))
	expect(t, q, 55, 70)
	s = open(t, disk.KillClone(), small())
	must(t, s.RaiseMin(5401))
	expect(t, s.Get(key), 55, 70)
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, flushed := range []int{0, 5, 25, 50} {
		for _, end := range []int{0, 1, 9, 10, 11, 20, 24, 25, 26, 49, 50, 60} {
			disk := memfs.New(1)
			s := open(t, disk, small())
			q := s.GetOrCreate(key)
			fill(t, q, 0, 50)
			must(t, s.Flush(mq.LogOffset(flushed*100)))
			must(t, s.TruncateAt(mq.LogOffset(end*100+99)))
			kept := min(end, 50)
			expect(t, q, 0, kept)
			fill(t, q, kept, kept+7)
			expect(t, q, 0, kept+7)
			must(t, s.Flush(math.MaxInt64))
			s = open(t, disk.KillClone(), small())
			expect(t, s.Get(key), 0, kept+7)
		}
	}
}

// A shorter life after a cut must not find entries of the longer one behind its own.
func TestTruncatedEntriesNeverComeBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		disk := memfs.New(seed)
		s := open(t, disk, small())
		fill(t, s.GetOrCreate(key), 0, 48)
		must(t, s.Flush(math.MaxInt64))
		if seed%2 == 0 {
			must(t, s.Sync())
		}
		must(t, s.TruncateAt(1300))
		disk = disk.Crash()
		s = open(t, disk, small())
		if q := s.Get(key); q != nil && q.Max() > 13 {
			t.Fatalf("seed %d: %d entries after a cut at 13", seed, q.Max())
		}
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	s := open(t, disk, small())
	q := s.GetOrCreate(key)
	fill(t, q, 0, 35)
	must(t, s.Flush(math.MaxInt64))
	must(t, q.Reset())
	if q.Min() != 0 || q.Max() != 0 {
		t.Fatalf("holds %d..%d", q.Min(), q.Max())
	}
	fill(t, q, 7, 19)
	must(t, s.Flush(math.MaxInt64))
	expect(t, open(t, disk.KillClone(), small()).Get(key), 7, 19)
}

// Files that a RocketMQ 5.5.0 broker wrote, 50 entries each.
func TestOpensRocketMQsFiles(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	must(t, disk.MkdirAll(root))
	copyTree(t, disk, "testdata/java", root)
	s := open(t, disk, Config{FileSize: 1000, OpenFiles: 16})
	if got := s.Topics(); !slices.Equal(got, []string{"SCHEDULE_TOPIC_XXXX", "bulk"}) {
		t.Fatalf("topics %q", got)
	}
	bulk := s.Get(mq.QueueKey{Topic: "bulk"})
	if bulk.Min() != 0 || bulk.Max() != 60 {
		t.Errorf("bulk holds %d..%d, want 0..60", bulk.Min(), bulk.Max())
	}
	schedule := s.Get(mq.QueueKey{Topic: mq.TopicSchedule})
	if schedule.Min() != 0 || schedule.Max() != 3 {
		t.Errorf("schedule holds %d..%d, want 0..3", schedule.Min(), schedule.Max())
	}
	if e, _ := schedule.Entry(0); e != (Entry{Pos: 0, Size: 322, TagsCode: 1796066955136 + 1000}) {
		t.Errorf("first delayed message %+v", e)
	}
	must(t, s.Check())

	// What we write is the same, byte for byte.
	again := memfs.New(1)
	copySet := open(t, again, Config{FileSize: 1000, OpenFiles: 16})
	s.Each(func(q *Queue) bool {
		c := copySet.GetOrCreate(q.Key())
		for i, e := range all(t, q) {
			must(t, c.Append(q.Min()+mq.QueueOffset(i), e))
		}
		return true
	})
	must(t, copySet.Flush(math.MaxInt64))
	must(t, copySet.Sync())
	must(t, filepath.WalkDir("testdata/java", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want, err := os.ReadFile(path)
		must(t, err)
		got, err := again.ReadFile(root + strings.TrimPrefix(filepath.ToSlash(path), "testdata/java"))
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs", path)
		}
		return nil
	}))
}

func copyTree(t testing.TB, disk vfs.FS, from, to string) {
	t.Helper()
	must(t, filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(filepath.ToSlash(path), from)
		if d.IsDir() {
			return disk.MkdirAll(target)
		}
		raw, err := os.ReadFile(path)
		must(t, err)
		write(t, disk, target, raw)
		return nil
	}))
}

func write(t testing.TB, disk vfs.FS, path string, raw []byte) {
	t.Helper()
	must(t, disk.MkdirAll(filepath.Dir(path)))
	f, err := disk.Create(path)
	must(t, err)
	_, err = f.WriteAt(raw, 0)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
}

// raw is a file of the queue with the given slots and then zeros.
func raw(slots ...Entry) []byte {
	var b []byte
	for _, e := range slots {
		b = AppendEntry(b, e)
	}
	return append(b, make([]byte, 200-len(b))...)
}

func TestOddFilesThatRocketMQLeaves(t *testing.T) {
	t.Parallel()
	filler := fillerEntry
	full := []Entry{nth(0), nth(1), nth(2), nth(3), nth(4), nth(5), nth(6), nth(7), nth(8), nth(9)}
	for _, c := range []struct {
		name     string
		files    map[string][]byte
		min, max int
	}{
		{"nothing but zeros", map[string][]byte{"00000000000000000000": raw()}, 0, 0},
		{"a last file of zeros", map[string][]byte{"00000000000000000000": raw(full...), "00000000000000000200": raw()}, 0, 10},
		{"a last file without length", map[string][]byte{"00000000000000000000": raw(full...), "00000000000000000200": nil}, 0, 10},
		{"only a file without length", map[string][]byte{"00000000000000000000": nil}, 0, 0},
		{"garbage behind the end", map[string][]byte{"00000000000000000000": raw(nth(0), nth(1), nth(2), Entry{Pos: -5, Size: 3}, nth(9))}, 0, 3},
		{"older entries behind the end", map[string][]byte{"00000000000000000000": raw(nth(4), nth(5), nth(6), nth(2), nth(3))}, 0, 3},
		{"older entries behind a hole", map[string][]byte{"00000000000000000000": raw(nth(0), Entry{}, Entry{}, nth(60), nth(61))}, 0, 1},
		{"fillers first", map[string][]byte{"00000000000000000000": raw(filler, filler, nth(2), nth(3))}, 2, 4},
		{"fillers only", map[string][]byte{"00000000000000000000": raw(filler, filler)}, 2, 2},
		{"starts later", map[string][]byte{"00000000000000000400": raw(nth(20), nth(21))}, 20, 22},
		{"starts later, empty", map[string][]byte{"00000000000000000400": raw()}, 20, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, covered := range []mq.LogOffset{0, math.MaxInt64} {
				if covered > 0 && strings.Contains(c.name, "behind") {
					continue // not after a clean stop of ours
				}
				disk := memfs.New(1)
				for name, content := range c.files {
					write(t, disk, root+"/T/3/"+name, content)
				}
				cfg := small()
				cfg.Covered = covered
				s := open(t, disk, cfg)
				q := s.Get(key)
				if int(q.Min()) != c.min || int(q.Max()) != c.max {
					t.Fatalf("covered %d: holds %d..%d, want %d..%d", covered, q.Min(), q.Max(), c.min, c.max)
				}
				must(t, q.Check())
				// It can be appended to, and nothing old comes back.
				next := int(q.Max())
				e := nth(next + 40)
				must(t, q.Append(mq.QueueOffset(next), e))
				must(t, s.Flush(math.MaxInt64))
				q = open(t, disk.KillClone(), small()).Get(key)
				if int(q.Max()) != next+1 {
					t.Errorf("covered %d: after one more entry it ends at %d, want %d", covered, q.Max(), next+1)
				}
			}
		})
	}
}

func TestDamageIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]int
		want  string
	}{
		{"wrong size", map[string]int{"T/3/00000000000000000000": 1000}, "mappedFileSizeConsumeQueue"},
		{"gap", map[string]int{"T/3/00000000000000000000": 200, "T/3/00000000000000000400": 200}, "the next file should be 00000000000000000200"},
		{"not a multiple", map[string]int{"T/3/00000000000000000100": 200}, "does not begin at a multiple"},
		{"foreign name", map[string]int{"T/3/readme": 200}, "20 digits"},
		{"RocksDB", map[string]int{"CURRENT": 16}, "RocksDB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			disk := memfs.New(1)
			for name, size := range c.files {
				write(t, disk, root+"/"+name, make([]byte, size))
			}
			_, err := OpenSet(disk, root, small())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something with %q", err, c.want)
			}
		})
	}
	if _, err := OpenSet(memfs.New(1), root, Config{FileSize: 30}); err == nil {
		t.Error("a file size of 30 and no open files are accepted")
	}
}

func TestAQueueWithAFileOfAWrongSizeIsBroken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files map[string]int
	}{
		{"odd", map[string]int{"T/3/00000000000000000000": 137}},
		{"odd, not last", map[string]int{"T/3/00000000000000000000": 137, "T/3/00000000000000000200": 200}},
		{"no length, not last", map[string]int{"T/3/00000000000000000000": 0, "T/3/00000000000000000200": 200}},
		{"a size that another has not", map[string]int{"T/3/00000000000000000000": 100, "T/4/00000000000000000000": 200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			disk := memfs.New(1)
			for name, size := range c.files {
				write(t, disk, root+"/"+name, make([]byte, size))
			}
			cfg := small()
			cfg.ReadOnly = true
			if _, err := OpenSet(disk, root, cfg); err == nil {
				t.Error("opened read-only")
			}
			s := open(t, disk, small())
			q := s.Get(mq.QueueKey{Topic: "T", ID: 3})
			if q == nil || q.Broken() == nil || q.Max() != 0 {
				t.Fatalf("%+v", q)
			}
			must(t, q.Reset())
			must(t, q.Broken())
			must(t, q.Append(15, nth(15)))
			must(t, s.Flush(math.MaxInt64))
			if q = open(t, disk.KillClone(), small()).Get(q.Key()); q.Broken() != nil || q.Min() != 15 || q.Max() != 16 {
				t.Errorf("%d to %d, %v", q.Min(), q.Max(), q.Broken())
			}
		})
	}
}

func TestReadOnlyChangesNothing(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	write(t, disk, root+"/T/3/00000000000000000000", raw(nth(0), nth(1), Entry{Pos: -1}, nth(3)))
	before := disk.OpCount()
	cfg := small()
	cfg.ReadOnly = true
	s := open(t, disk, cfg)
	q := s.Get(key)
	expect(t, q, 0, 2)
	must(t, s.RaiseMin(100))
	expect(t, q, 1, 2)
	for name, err := range map[string]error{"flush": q.Flush(1), "truncate": q.Truncate(0), "reset": q.Reset(), "delete": s.DeleteTopic("T")} {
		if err == nil {
			t.Errorf("%s works", name)
		}
	}
	if disk.OpCount() != before {
		t.Error("the disk was changed")
	}
	if _, err := OpenSet(disk, "/nowhere", cfg); err != nil {
		t.Error(err)
	}
}

func TestFindTimeAsRocketMQDoes(t *testing.T) {
	t.Parallel()
	s := open(t, memfs.New(1), small())
	q := s.GetOrCreate(key)
	storeTime := func(e Entry) (int64, bool) { return times[e.Pos/100], true }
	if off, err := q.FindTime(5, false, storeTime); off != 0 || err != nil {
		t.Errorf("empty queue: %d, %v", off, err)
	}
	fill(t, q, 0, len(times))
	for _, c := range []struct {
		millis       int64
		lower, upper mq.QueueOffset
	}{
		{5, 0, 0}, {10, 0, 0}, {15, 1, 0}, {20, 1, 3}, {25, 4, 3}, {30, 4, 4}, {35, 5, 4}, {40, 5, 24}, {41, 25, 24},
	} {
		lower, err := q.FindTime(c.millis, false, storeTime)
		must(t, err)
		upper, err := q.FindTime(c.millis, true, storeTime)
		must(t, err)
		if lower != c.lower || upper != c.upper {
			t.Errorf("at %d: lower %d, upper %d, want %d and %d", c.millis, lower, upper, c.lower, c.upper)
		}
	}
	gone := func(e Entry) (int64, bool) { return times[e.Pos/100], e.Pos >= 200 }
	if off, _ := q.FindTime(1, false, gone); off != 2 {
		t.Errorf("with two records gone the lowest is %d, want 2", off)
	}
}

// times of messages 0, 1, ...
var times = append([]int64{10, 20, 20, 20, 30}, slices.Repeat([]int64{40}, 20)...)

func TestDeleteTopic(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	s := open(t, disk, small())
	var queues []*Queue
	for i := range 5 {
		q := s.GetOrCreate(mq.QueueKey{Topic: "T", ID: mq.QueueID(i)})
		fill(t, q, 0, 35)
		queues = append(queues, q)
	}
	other := s.GetOrCreate(mq.QueueKey{Topic: "U"})
	fill(t, other, 0, 3)
	must(t, s.Flush(3000))
	must(t, s.DeleteTopic("T"))
	must(t, s.DeleteTopic("T"))
	if s.Get(key) != nil || len(s.TopicQueues("T")) != 0 || !slices.Equal(s.Topics(), []string{"U"}) {
		t.Error("it is still there")
	}
	for _, q := range queues {
		if err := q.Append(35, nth(35)); !errors.Is(err, mq.ErrNoTopic) {
			t.Errorf("append to a deleted queue: %v", err)
		}
		if n, err := q.Read(0, make([]Entry, 1)); n != 0 || err != nil {
			t.Errorf("read of a deleted queue: %d, %v", n, err)
		}
		must(t, q.Flush(math.MaxInt64))
	}
	fill(t, s.GetOrCreate(key), 0, 12) // a new generation
	must(t, s.Flush(math.MaxInt64))
	must(t, s.Sync())
	s = open(t, disk.KillClone(), small())
	expect(t, s.Get(key), 0, 12)
	expect(t, s.Get(mq.QueueKey{Topic: "U"}), 0, 3)
}

// A start cut short at any point of a deletion finds no gap.
func TestPowerCutDuringDeletions(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		for n := int64(0); ; n++ {
			disk := memfs.New(seed)
			s := open(t, disk, small())
			fill(t, s.GetOrCreate(key), 0, 55)
			fill(t, s.GetOrCreate(mq.QueueKey{Topic: "U"}), 0, 55)
			must(t, s.Flush(math.MaxInt64))
			must(t, s.Sync())
			disk.StopAfter(disk.OpCount() + n)
			_ = s.RaiseMin(2500)
			_ = s.DeleteTopic("U")
			s = open(t, disk.Crash(), small())
			must(t, s.RaiseMin(2500))
			expect(t, s.Get(key), 25, 55)
			must(t, s.Check())
			if !disk.Stopped() {
				break
			}
		}
	}
}

// Any operation may fail: an error comes out, nothing is lost, and it goes on afterwards.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for n := 1; ; n++ {
		disk := memfs.New(1)
		hits, armed := 0, false
		faulty := faultfs.Wrap(disk, func(op faultfs.Op, name string) error {
			if armed {
				if hits++; hits == n {
					return broken
				}
			}
			return nil
		})
		// try does what may fail and, if it did, does it again.
		try := func(what func() error) {
			t.Helper()
			armed = true
			err := what()
			armed = false
			if errors.Is(err, broken) {
				err = what()
			}
			must(t, err)
		}
		var s *Set
		try(func() (err error) {
			s, err = OpenSet(faulty, root, small())
			return err
		})
		q := s.GetOrCreate(key)
		fill(t, q, 3, 25)
		for _, upTo := range []mq.LogOffset{1000, 2500} {
			try(func() error { return s.Flush(upTo) })
			expect(t, q, 3, 25)
			try(s.Sync)
		}
		fill(t, q, 25, 40)
		try(func() error { return s.RaiseMin(1500) })
		try(func() error { return s.Flush(math.MaxInt64) })
		try(s.Sync)
		expect(t, q, 15, 40)
		next := open(t, disk.CrashKeeping(0), small())
		must(t, next.RaiseMin(1500))
		expect(t, next.Get(key), 15, 40)
		if hits < n {
			if n < 30 {
				t.Errorf("only %d operations could fail", hits)
			}
			return
		}
	}
}

// Readers, an appender, flushes and deletions at once.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := open(t, memfs.New(1), small())
	q := s.GetOrCreate(key)
	const n = 20_000
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			buf := make([]Entry, 37)
			for {
				from := q.Min()
				for {
					k, err := q.Read(from, buf)
					if err != nil {
						t.Error(err)
						return
					}
					for i, e := range buf[:k] {
						if e != nth(int(from)+i) {
							t.Errorf("entry %d is %+v", int(from)+i, e)
							return
						}
					}
					if k == 0 {
						break
					}
					from += mq.QueueOffset(k)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	wg.Go(func() {
		for i := 0; ; i++ {
			end := q.End()
			if err := errors.Join(s.Flush(end-500), s.RaiseMin(end-100_000)); err != nil {
				t.Error(err)
			}
			if i%8 == 0 {
				if err := s.Sync(); err != nil {
					t.Error(err)
				}
			}
			select {
			case <-done:
				return
			default:
				runtime.Gosched()
			}
		}
	})
	fill(t, q, 0, n)
	close(done)
	wg.Wait()
}

// Queues that nobody uses cost little, and few files are open.
func TestManyQueues(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	cfg := Config{FileSize: 10 * EntrySize, OpenFiles: 64}
	s := open(t, disk, cfg)
	n := 1500
	if invariant.On {
		n = 300 // everything takes ten times as long
	}
	for i := range n {
		fill(t, s.GetOrCreate(mq.QueueKey{Topic: fmt.Sprint("topic-", i%10), ID: mq.QueueID(i / 10)}), 0, 15)
	}
	must(t, s.Flush(math.MaxInt64))
	must(t, s.Close())
	cfg.Covered = math.MaxInt64
	s = open(t, disk, cfg)
	count := 0
	s.Each(func(q *Queue) bool {
		count++
		expect(t, q, 0, 15)
		return true
	})
	if count != n {
		t.Errorf("%d queues, want %d", count, n)
	}
	if got := s.handles.mu.open; got > 64 {
		t.Errorf("%d files are open, want at most 64", got)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(raw(nth(0), nth(1)), raw(nth(10)), int64(0))
	f.Add(raw(fillerEntry, nth(1)), []byte{}, int64(500))
	f.Add(raw(), raw(nth(3), Entry{Pos: -1, Size: -1}), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, first, second []byte, covered int64) {
		disk := memfs.New(1)
		pad := func(b []byte) []byte {
			return append(bytes.Clone(b[:min(len(b), 200)]), make([]byte, 200-min(len(b), 200))...)
		}
		write(t, disk, root+"/T/3/00000000000000000000", pad(first))
		write(t, disk, root+"/T/3/00000000000000000200", pad(second))
		cfg := small()
		cfg.Covered = max(0, mq.LogOffset(covered))
		s := open(t, disk, cfg)
		q := s.Get(key)
		if q.Min() > q.Max() || q.Max() > 20 {
			t.Fatalf("holds %d..%d", q.Min(), q.Max())
		}
		// Whatever it took for entries, it goes on from there.
		e := Entry{Pos: min(q.End(), math.MaxInt64-1000), Size: 100}
		if e.Pos < q.End() || q.End() < 0 {
			return
		}
		must(t, q.Append(q.Max(), e))
		must(t, s.Flush(math.MaxInt64))
		if got, ok := q.Entry(q.Max() - 1); !ok || got != e {
			t.Fatalf("read %+v, %v, appended %+v", got, ok, e)
		}
		if covered == 0 {
			must(t, q.Check())
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	s := open(b, memfs.New(1), DefaultConfig())
	q := s.GetOrCreate(key)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := q.Append(mq.QueueOffset(i), nth(i)); err != nil {
			b.Fatal(err)
		}
		i++
		if i%100_000 == 0 {
			must(b, s.Flush(math.MaxInt64))
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, where := range []string{"memory", "file"} {
		for _, n := range []int{1, 32, 1024} {
			b.Run(fmt.Sprintf("from=%s/entries=%d", where, n), func(b *testing.B) {
				s, err := OpenSet(vfs.OS(), b.TempDir(), DefaultConfig())
				must(b, err)
				q := s.GetOrCreate(key)
				fill(b, q, 0, 100_000)
				if where == "file" {
					must(b, s.Flush(math.MaxInt64))
				}
				buf := make([]Entry, n)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if got, err := q.Read(mq.QueueOffset(i%90_000), buf); got != n || err != nil {
						b.Fatal(got, err)
					}
					i += n
				}
				must(b, s.Close())
			})
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, covered := range []mq.LogOffset{0, math.MaxInt64} {
		b.Run(fmt.Sprintf("queues=1024/covered=%v", covered > 0), func(b *testing.B) {
			dir := b.TempDir()
			s, err := OpenSet(vfs.OS(), dir, DefaultConfig())
			must(b, err)
			for i := range 1024 {
				fill(b, s.GetOrCreate(mq.QueueKey{Topic: "T", ID: mq.QueueID(i)}), 0, 100)
			}
			must(b, s.Flush(math.MaxInt64))
			must(b, s.Close())
			cfg := DefaultConfig()
			cfg.Covered = covered
			for b.Loop() {
				s, err := OpenSet(vfs.OS(), dir, cfg)
				must(b, err)
				must(b, s.Close())
			}
		})
	}
}
