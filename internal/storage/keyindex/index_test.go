package keyindex

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/faultfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

const dir = "store/index"

var small = Config{Slots: 3, Entries: 6, Tags: true}

// rocketMQ is how the store in testdata was configured.
var rocketMQ = Config{Slots: 40, Entries: 200, Tags: true}

func open(t testing.TB, fsys vfs.FS, cfg Config, clean bool) *Index {
	t.Helper()
	x, err := Open(fsys, dir, cfg, clean)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func closed(t testing.TB, x *Index) {
	t.Helper()
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// message is a record with a unique key (none if empty) and other keys.
func message(t testing.TB, topic string, at mq.LogOffset, storeTime int64, uniq, keys string) record.View {
	t.Helper()
	m := record.Message{Topic: topic, LogOffset: at, StoreTime: storeTime}
	m.Properties = record.AppendProperty(m.Properties, mq.PropUniqueKey, uniq)
	m.Properties = record.AppendProperty(m.Properties, mq.PropKeys, keys)
	b, err := m.Append(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return record.View(b)
}

func put(t testing.TB, x *Index, vs ...record.View) {
	t.Helper()
	for _, v := range vs {
		if err := x.Put(v); err != nil {
			t.Fatal(err)
		}
	}
}

func query(t testing.TB, x *Index, topic, key string) []mq.LogOffset {
	t.Helper()
	found, err := x.Query(topic, key, 1000, 0, 1<<60)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// files reads all index files.
func files(t testing.TB, fsys vfs.FS) [][]byte {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var all [][]byte
	for _, e := range entries {
		b, err := fsys.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

func write(t testing.TB, fsys vfs.FS, name string, b []byte) {
	t.Helper()
	if err := fsys.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.Create(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
}

// rocketMQStore is a disk with the index that RocketMQ 5.5.0 wrote.
func rocketMQStore(t testing.TB) vfs.FS {
	t.Helper()
	fsys := memfs.New(1)
	names, _ := filepath.Glob("testdata/rocketmq/*")
	if len(names) != 5 {
		t.Fatalf("%d files in testdata, want 5", len(names))
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, fsys, filepath.Base(name), b)
	}
	return fsys
}

// rocketMQLog is the commit log that the index in testdata was made from.
func rocketMQLog(t testing.TB) (records []record.View) {
	t.Helper()
	f, err := os.Open("testdata/rocketmq-commitlog.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	log, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for {
		v, _, err := record.Next(log)
		if err != nil {
			return records
		}
		records = append(records, v)
		log = log[len(v):]
	}
}

func TestHashVectors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		topic, key string
		hash, slot int32
	}{
		{"TopicTest", "7F000001ABCD", 889455372, 4455372},
		{"T", "order-1", 1840611261, 611261},
	} {
		if h := keyHash(c.topic, c.key); h != c.hash || h%5_000_000 != c.slot || keyHash([]byte(c.topic), []byte(c.key)) != h {
			t.Errorf("%s#%s: %d", c.topic, c.key, h)
		}
	}
	// The one hash without a positive counterpart: "polygenelubricants" in Java.
	if h := mq.JavaHash("polygenelubricants"); h != -1<<31 {
		t.Errorf("hash %d", h)
	}
	if keyHash("t", "AaAa") != keyHash("t", "BBBB") {
		t.Error("AaAa and BBBB do not collide")
	}
}

// TestRocketMQQueries asks an index that RocketMQ wrote what RocketMQ was asked.
func TestRocketMQQueries(t *testing.T) {
	t.Parallel()
	fsys := rocketMQStore(t)
	x := open(t, fsys, rocketMQ, true)
	f, err := os.Open("testdata/rocketmq-queries.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); n++ {
		var q struct {
			Topic, Key string
			Max        int
			End        int64
			Offsets    []mq.LogOffset // oldest first, as the broker answers
		}
		if err := json.Unmarshal(s.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		found, err := x.Query(q.Topic, q.Key, q.Max, 0, q.End)
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(found)
		if d := cmp.Diff(q.Offsets, found, cmp.Transformer("nil", func(o []mq.LogOffset) []mq.LogOffset { return append([]mq.LogOffset{}, o...) })); d != "" {
			t.Errorf("%s#%s, at most %d (-rocketmq +ours):\n%s", q.Topic, q.Key, q.Max, d)
		}
	}
	if n < 40 {
		t.Errorf("%d queries", n)
	}
	if x.End() != 35242 {
		t.Errorf("end %d, RocketMQ said 35242", x.End())
	}
	closed(t, x)
}

// TestRocketMQBytes puts the same messages in the same order and compares the
// files.
func TestRocketMQBytes(t *testing.T) {
	t.Parallel()
	want := files(t, rocketMQStore(t))
	fsys := memfs.New(1)
	x := open(t, fsys, rocketMQ, true)
	put(t, x, rocketMQLog(t)...)
	closed(t, x)
	got := files(t, fsys)
	if len(got) != len(want) {
		t.Fatalf("%d files, want %d", len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			at := 0
			for got[i][at] == want[i][at] {
				at++
			}
			t.Errorf("file %d differs from byte %d on: % X, want % X", i, at, got[i][at:min(at+40, len(got[i]))], want[i][at:min(at+40, len(want[i]))])
		}
	}
}

// TestGoldenFile is the drawing in format.go.
func TestGoldenFile(t *testing.T) {
	t.Parallel()
	fsys := memfs.New(1)
	x := open(t, fsys, Config{Slots: 2, Entries: 4}, true)
	put(t, x, message(t, "T", 1000, 1700000000000, "order-1", ""), message(t, "T", 2000, 1700000002999, "", "order-1"))
	closed(t, x)
	hash := binary.BigEndian.AppendUint32(nil, 1840611261)
	want := slices.Concat(
		be64(1700000000000), be64(1700000002999), be64(1000), be64(2000), be32(1), be32(3), // header
		be32(0), be32(2), // slots
		make([]byte, 20), // entry 0
		hash, be64(1000), be32(0), be32(0),
		hash, be64(2000), be32(2), be32(1),
		make([]byte, 20),
	)
	if got := files(t, fsys); len(got) != 1 || !bytes.Equal(got[0], want) {
		t.Errorf("file\n% X, want\n% X", got, want)
	}
}

func be64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }
func be32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }

func TestKeysOfAMessage(t *testing.T) {
	t.Parallel()
	x := open(t, memfs.New(1), Config{Slots: 10, Entries: 100, Tags: true}, true)
	put(t, x, message(t, "t", 10, 1000, "u1", "a  b c "), message(t, "t", 20, 1001, "", "a"), message(t, "t", 22, 1002, "", ""))
	tagged := message(t, "t", 25, 1002, "", "")
	tagged = append(tagged, "TAGS\x01a\x02"...)
	binary.BigEndian.PutUint32(tagged, uint32(len(tagged)))
	tagged[len(tagged)-8] = 7 // the property length
	put(t, x, tagged)
	rolledBack := message(t, "t", 40, 1003, "u1", "a")
	rolledBack[39] |= byte(mq.SysTxRollback)
	put(t, x, rolledBack)
	for key, want := range map[string][]mq.LogOffset{"u1": {10}, "a": {20, 10}, "b": {10}, "c": {10}, "": nil, "d": nil, TagKey("a"): {25}} {
		if got := query(t, x, "t", key); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", key, got, want)
		}
	}
	if got := query(t, x, "t2", "a"); got != nil {
		t.Errorf("another topic: %v", got)
	}
	if x.End() != 25 {
		t.Errorf("end %d, want 25: the last message with a key", x.End())
	}
	closed(t, x)
	if _, err := x.Query("t", "a", 1, 0, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("query after close: %v", err)
	}
	if err := x.Put(rolledBack); err != nil {
		t.Errorf("nothing to put after close: %v", err)
	}
	if err := x.Put(message(t, "t", 50, 1, "u", "")); !errors.Is(err, ErrClosed) {
		t.Errorf("put after close: %v", err)
	}
}

// TestPutTwice: the follower may repeat itself; one message whose keys collide
// is found once.
func TestPutTwice(t *testing.T) {
	t.Parallel()
	fsys := memfs.New(1)
	x := open(t, fsys, small, true)
	log := []record.View{message(t, "t", 10, 1000, "AaAa", "BBBB AaAa"), message(t, "t", 20, 1000, "AaAa", "")}
	put(t, x, log[0], log[0], log[1], log[0], log[1])
	if got := query(t, x, "t", "BBBB"); !slices.Equal(got, []mq.LogOffset{20, 10}) {
		t.Errorf("found %v", got)
	}
	if n := x.mu.files[0].next(); n != 5 {
		t.Errorf("%d entries, want 4", n-1)
	}
	closed(t, x)
	x = open(t, fsys, small, true)
	put(t, x, log...)
	if n := x.mu.files[0].next(); n != 5 {
		t.Errorf("after a clean stop: %d entries, want 4", n-1)
	}
	closed(t, x)
}

func TestQueryByTime(t *testing.T) {
	t.Parallel()
	x := open(t, memfs.New(1), small, true)
	for i := range 12 { // three files, one message every 700 ms
		put(t, x, message(t, "t", mq.LogOffset(100+i), 100_000+700*int64(i), "k", ""))
	}
	for _, c := range []struct {
		begin, end    int64
		first, last   int // that must be found
		loose, looser int // that may be found besides: less than a second off
	}{
		{0, 1 << 60, 0, 11, 0, 11},
		{100_000, 100_000, 0, 0, 0, 1},
		{103_500, 104_900, 5, 7, 4, 8},
		{99_000, 99_999, 1, 0, 1, 0},
		{107_701, 200_000, 12, 11, 10, 11},
		{109_000, 200_000, 12, 11, 12, 11},
	} {
		found, err := x.Query("t", "k", 100, c.begin, c.end)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(found)
		for i := c.first; i <= c.last; i++ {
			if !slices.Contains(found, mq.LogOffset(100+i)) {
				t.Errorf("[%d, %d]: message %d is missing in %v", c.begin, c.end, i, found)
			}
		}
		for _, at := range found {
			if int(at)-100 < c.loose || int(at)-100 > c.looser {
				t.Errorf("[%d, %d]: message %d is found", c.begin, c.end, at-100)
			}
		}
	}
	if found, _ := x.Query("t", "k", 3, 0, 1<<60); !slices.Equal(found, []mq.LogOffset{111, 110, 109}) {
		t.Errorf("the newest three: %v", found)
	}
	if found, _ := x.Query("t", "k", 0, 0, 1<<60); found != nil {
		t.Errorf("none asked for: %v", found)
	}
	closed(t, x)
}

func TestTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	fsys := memfs.New(1)
	write(t, fsys, "99991231235959999", nil)
	if err := fsys.Remove(dir + "/99991231235959999"); err != nil {
		t.Fatal(err)
	}
	x := open(t, fsys, small, true)
	for i, at := range []int64{50_000, 10_000, 5_000} {
		put(t, x, message(t, "t", mq.LogOffset(i+1), at, "k", ""))
	}
	// The difference cannot be negative: the later ones pass for the first time.
	if found, _ := x.Query("t", "k", 10, 50_000, 50_999); len(found) != 3 {
		t.Errorf("found %v", found)
	}
	closed(t, x)
}

func TestNamesGrow(t *testing.T) {
	t.Parallel()
	fsys := memfs.New(1)
	x := open(t, fsys, Config{Slots: 1, Entries: 2}, true)
	for i := range 20 { // a file each, several in one millisecond
		put(t, x, message(t, "t", mq.LogOffset(i+1), int64(i), "k", ""))
	}
	closed(t, x)
	x = open(t, fsys, Config{Slots: 1, Entries: 2}, true)
	if len(x.mu.files) != 20 {
		t.Fatalf("%d files", len(x.mu.files))
	}
	for i, f := range x.mu.files {
		if len(f.name) != 17 || f.endOffset() != mq.LogOffset(i+1) {
			t.Errorf("file %d, %s, ends at %d", i, f.name, f.endOffset())
		}
	}
	closed(t, x)
}

func TestExpireAndCut(t *testing.T) {
	t.Parallel()
	fsys := memfs.New(1)
	x := open(t, fsys, small, true)
	var log []record.View
	for i := range 13 { // five a file, and three
		log = append(log, message(t, "t", mq.LogOffset(10*i), int64(i), "k", ""))
	}
	put(t, x, log...)
	for _, c := range []struct {
		minLog mq.LogOffset
		want   int
	}{{40, 0}, {41, 1}, {90, 0}, {1000, 1}, {1000, 0}} {
		if n, err := x.Expire(c.minLog); n != c.want || err != nil {
			t.Errorf("the log begins at %d: %d files removed, %v, want %d", c.minLog, n, err, c.want)
		}
	}
	if got := query(t, x, "t", "k"); !slices.Equal(got, []mq.LogOffset{120, 110, 100}) {
		t.Errorf("left: %v", got)
	}
	if err := x.Cut(121); err != nil || x.End() != 120 {
		t.Errorf("cut at the end: %v, end %d", err, x.End())
	}
	if err := x.Cut(120); err != nil || x.End() != 110 {
		t.Errorf("cut: %v, end %d", err, x.End())
	}
	if got := query(t, x, "t", "k"); !slices.Equal(got, []mq.LogOffset{110, 100}) {
		t.Errorf("left: %v", got)
	}
	if err := x.Cut(0); err != nil || x.End() != 0 || len(files(t, fsys)) != 0 {
		t.Errorf("cut all: %v, end %d", err, x.End())
	}
	put(t, x, log...)
	if err := x.Cut(75); err != nil || x.End() != 70 || len(files(t, fsys)) != 2 {
		t.Errorf("cut: %v, end %d", err, x.End())
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	if err := x.Cut(50); err != nil || x.End() != 40 || len(files(t, fsys)) != 1 {
		t.Errorf("cut: %v, end %d", err, x.End())
	}
	put(t, x, log[4:7]...)
	if got := query(t, x, "t", "k"); !slices.Equal(got, []mq.LogOffset{60, 50, 40, 30, 20, 10, 0}) {
		t.Errorf("put again: %v", got)
	}
	closed(t, x)
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	_, err := Open(rocketMQStore(t), dir, DefaultConfig(), true)
	if err == nil || !strings.Contains(err.Error(), "20261130194018782") || !strings.Contains(err.Error(), "4200 bytes") || !strings.Contains(err.Error(), "420000040") {
		t.Errorf("files of another size: %v", err)
	}
	for name, damage := range map[string]func(b []byte){
		"too many entries":               func(b []byte) { binary.BigEndian.PutUint32(b[36:], 201) },
		"negative entries":               func(b []byte) { b[36] = 0x80 },
		"too many slots":                 func(b []byte) { binary.BigEndian.PutUint32(b[32:], 41) },
		"a store time in the far future": func(b []byte) { b[0] = 1 },
		"offsets reversed":               func(b []byte) { b[16] = 1 },
	} {
		fsys := rocketMQStore(t)
		b := files(t, fsys)[1]
		damage(b)
		write(t, fsys, "20261130194019446", b)
		_, err := Open(fsys, dir, rocketMQ, true)
		if e, ok := errors.AsType[*mq.CorruptionError](err); !ok || !strings.HasSuffix(e.File, "20261130194019446") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(memfs.New(1), dir, Config{}, true); err == nil || !strings.Contains(err.Error(), "maxHashSlotNum") || !strings.Contains(err.Error(), "maxIndexNum") {
		t.Errorf("no configuration: %v", err)
	}
}

func TestOpenAfterAnUncleanStop(t *testing.T) {
	t.Parallel()
	fsys := rocketMQStore(t)
	write(t, fsys, "notes.txt", []byte("not ours"))
	write(t, fsys, "20261130194024794", nil) // the last one, whose size was not set yet
	x := open(t, fsys, rocketMQ, false)
	if len(x.mu.files) != 4 || x.End() != 0x703a {
		t.Errorf("%d files, end %d", len(x.mu.files), x.End())
	}
	put(t, x, rocketMQLog(t)...)
	if got := query(t, x, "indexed2", "key-1"); !slices.Equal(got, []mq.LogOffset{34138}) {
		t.Errorf("found %v", got)
	}
	closed(t, x)
}

// TestPutAgainAfterAnError: a full disk stops the follower, not for good.
func TestPutAgainAfterAnError(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	for _, op := range []faultfs.Op{faultfs.OpMkdirAll, faultfs.OpCreate, faultfs.OpAllocate, faultfs.OpSync, faultfs.OpSyncDir, faultfs.OpMap} {
		below := memfs.New(1)
		broken := false
		fsys := faultfs.Wrap(below, func(o faultfs.Op, _ string) error {
			if broken && o == op {
				return full
			}
			return nil
		})
		x := open(t, fsys, small, true)
		put(t, x, message(t, "t", 10, 1000, "a", "b c"))
		broken = true
		wide := message(t, "t", 20, 1000, "d", "e f g")
		if err := x.Put(wide); !errors.Is(err, full) {
			t.Errorf("%s: %v", op, err)
		}
		if got := query(t, x, "t", "a"); !slices.Equal(got, []mq.LogOffset{10}) {
			t.Errorf("%s: meanwhile found %v", op, got)
		}
		broken = false
		put(t, x, wide)
		for _, key := range []string{"d", "e", "f", "g"} {
			if got := query(t, x, "t", key); !slices.Equal(got, []mq.LogOffset{20}) {
				t.Errorf("%s: %s found %v", op, key, got)
			}
		}
		put(t, x, message(t, "t", 30, 1000, "a", "b c"))
		broken = true
		half := message(t, "t", 40, 1000, "a", "b c d e f")
		if err := x.Put(half); !errors.Is(err, full) {
			t.Errorf("%s: %v", op, err)
		}
		broken = false
		closed(t, x) // with half a message in
		x = open(t, below, small, true)
		put(t, x, half)
		closed(t, x)
		got := files(t, below)
		fresh := memfs.New(1)
		x = open(t, fresh, small, true)
		put(t, x, message(t, "t", 10, 1000, "a", "b c"), wide, message(t, "t", 30, 1000, "a", "b c"), half)
		closed(t, x)
		if !slices.EqualFunc(files(t, fresh), got, bytes.Equal) {
			t.Errorf("%s: the files are not what they are without an error", op)
		}
	}
}

// TestPowerCutAnywhere cuts the power at every operation, opens what is left,
// follows the log again, and finds everything; with marks in between and
// without, in files of several sizes.
func TestPowerCutAnywhere(t *testing.T) {
	t.Parallel()
	var log []record.View
	want := map[string][]mq.LogOffset{}
	for i := range 23 {
		at := mq.LogOffset(100 * i)
		key := string(rune('a' + i%4))
		log = append(log, message(t, "t", at, int64(1000*i), "u"+key, key))
		for _, k := range []string{key, "u" + key} {
			want[k] = append([]mq.LogOffset{at}, want[k]...)
		}
	}
	marked, whole := small, Config{Slots: 3, Entries: 100}
	marked.Mark, whole.Mark = "store/mark", "store/mark"
	for seed := range uint64(3) {
		for name, cfg := range map[string]Config{"no mark": small, "small files": marked, "one file": whole} {
			for n := int64(1); powerCutAt(t, name, cfg, seed, n, log, want); n++ {
			}
		}
	}
}

// powerCutAt reports whether the power was cut before the work was done.
func powerCutAt(t *testing.T, name string, cfg Config, seed uint64, n int64, log []record.View, want map[string][]mq.LogOffset) bool {
	fsys := memfs.New(seed)
	if err := errors.Join(fsys.MkdirAll("store"), fsys.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
	fsys.StopAfter(n)
	marked := mq.LogOffset(-1) // durable by what Mark said
	x, err := Open(fsys, dir, cfg, true)
	for i := 0; err == nil && i < len(log); i++ {
		if err = x.Put(log[i]); err == nil && cfg.Mark != "" && i%5 == 3 {
			if err = x.Mark(); err == nil {
				marked = log[i].LogOffset()
			}
		}
	}
	if err == nil {
		err = x.Close()
	}
	done := err == nil && !fsys.Stopped()
	for how, after := range map[string]*memfs.FS{"power cut": fsys.Crash(), "killed": fsys.KillClone()} {
		x, err := Open(after, dir, cfg, done)
		if err != nil {
			t.Fatalf("%s, seed %d, %s at operation %d: %v", name, seed, how, n, err)
		}
		if x.End() < marked {
			t.Fatalf("%s, seed %d, %s at operation %d: marked at %d, the index ends at %d", name, seed, how, n, marked, x.End())
		}
		if err := x.Check(); err != nil {
			t.Fatalf("%s, seed %d, %s at operation %d: %v", name, seed, how, n, err)
		}
		for i := range log {
			if log[i].LogOffset() >= x.End() {
				put(t, x, log[i])
			}
		}
		got := map[string][]mq.LogOffset{}
		for k := range want {
			got[k] = query(t, x, "t", k)
		}
		if !maps.EqualFunc(want, got, slices.Equal) {
			t.Fatalf("%s, seed %d, %s at operation %d (-want +got):\n%s", name, seed, how, n, cmp.Diff(want, got))
		}
		closed(t, x)
	}
	return !done
}

func TestPutDoesNotAllocate(t *testing.T) {
	x := open(t, memfs.New(1), Config{Slots: 1000, Entries: 100_000}, true)
	v := message(t, "topic", 0, 1, "0A000001C35018B4AAC2000000000001", "order-1 order-2")
	put(t, x, v)
	at := uint64(0)
	if n := testing.AllocsPerRun(100, func() {
		at++
		binary.BigEndian.PutUint64(v[28:], at)
		if err := x.Put(v); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	closed(t, x)
}

// TestMark: an unclean stop costs what came after the mark, and the files are in
// the end the same as without the stop.
func TestMark(t *testing.T) {
	t.Parallel()
	log := rocketMQLog(t)
	cfg := rocketMQ
	cfg.Mark = "store/sundial.mark"
	for _, stop := range []int{1, 30, 31, 60, 100, 125} {
		fsys := memfs.New(uint64(stop))
		if err := errors.Join(fsys.MkdirAll("store"), fsys.SyncDir(".")); err != nil {
			t.Fatal(err)
		}
		x := open(t, fsys, cfg, true)
		put(t, x, log[:stop]...)
		if err := x.Mark(); err != nil {
			t.Fatal(err)
		}
		marked := x.End()
		put(t, x, log[stop:min(stop+3, len(log))]...)
		fsys = fsys.CrashKeeping(0.5)
		x = open(t, fsys, cfg, false)
		if x.End() < marked {
			t.Errorf("marked at %d, the index ends at %d", marked, x.End())
		}
		if err := x.Check(); err != nil {
			t.Error(err)
		}
		put(t, x, log...)
		closed(t, x)
		want := files(t, rocketMQStore(t))
		if got := files(t, fsys); !slices.EqualFunc(want, got, bytes.Equal) {
			t.Errorf("marked after %d messages: the files differ", stop)
		}
	}
}

// TestMarkOfSomethingElse: a mark that is damaged, or of another file or other
// entries, costs the last file and nothing else.
func TestMarkOfSomethingElse(t *testing.T) {
	t.Parallel()
	cfg := small
	cfg.Mark = "store/mark"
	good := mark{next: 4, end: 30, time: 3000}
	for name, change := range map[string]func(m *mark) []byte{
		"good":             func(m *mark) []byte { return m.encode() },
		"another file":     func(m *mark) []byte { m.name = "20261130194018782"; return m.encode() },
		"another end":      func(m *mark) []byte { m.end++; return m.encode() },
		"more entries":     func(m *mark) []byte { m.next = 100; return m.encode() },
		"no entries":       func(m *mark) []byte { m.next = 1; return m.encode() },
		"negative entries": func(m *mark) []byte { m.next = -5; return m.encode() },
		"a flipped bit":    func(m *mark) []byte { b := m.encode(); b[40] ^= 1; return b },
		"cut short":        func(m *mark) []byte { return m.encode()[:50] },
		"empty":            func(m *mark) []byte { return nil },
	} {
		fsys := memfs.New(1)
		x := open(t, fsys, cfg, true)
		var log []record.View
		for i := range 4 {
			log = append(log, message(t, "t", mq.LogOffset(10*(i+1)), int64(1000*(i+1)), "k", ""))
		}
		put(t, x, log...)
		m := good
		m.name = x.mu.files[0].name
		write(t, fsys, "../mark", change(&m))
		x = open(t, fsys.KillClone(), cfg, false)
		if want := map[bool]mq.LogOffset{true: 30}[name == "good"]; x.End() != want {
			t.Errorf("%s: the index ends at %d, want %d", name, x.End(), want)
		}
		put(t, x, log...)
		if got := query(t, x, "t", "k"); !slices.Equal(got, []mq.LogOffset{40, 30, 20, 10}) {
			t.Errorf("%s: found %v", name, got)
		}
		closed(t, x)
	}
}
