package commitlog

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

func config() Config {
	return Config{Dirs: []string{"/log"}, FileSize: 4096, FlushInterval: time.Second}
}

// counter is a queue that only counts.
type counter struct {
	next mq.QueueOffset
	dead error
	seen []Placed
}

func (c *counter) Ready() error               { return c.dead }
func (c *counter) NextOffset() mq.QueueOffset { return c.next }
func (c *counter) Appended(m *record.Message, p *Placed) {
	c.next++
	c.seen = append(c.seen, *p)
}

func start(t testing.TB, disk vfs.FS, cfg Config) *Log {
	t.Helper()
	l, err := Open(disk, cfg)
	if err != nil {
		t.Fatal(err)
	}
	tail, err := l.Scan(Scan{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Start(tail); err != nil {
		t.Fatal(err)
	}
	return l
}

func item(t testing.TB, l *Log, q Queue, total int) Item {
	t.Helper()
	host := netip.MustParseAddrPort("10.0.0.1:50000")
	m := &record.Message{Topic: "T", BornHost: host, StoreHost: host}
	size, err := l.Size(m)
	if err != nil {
		t.Fatal(err)
	}
	m.Body = []byte(strings.Repeat("b", total-size))
	m.BodyCRC = record.BodyCRC(m.Body)
	return Item{Message: m, Queue: q, Size: total}
}

func TestARecordNeverCrossesAFileAndABlankClosesIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, second int
		at            mq.LogOffset // of the second
	}{
		{1000, 1000, 1000},
		{1000, 3088, 1000}, // fills all but the 8 bytes of the blank
		{1000, 3089, 4096},
		{1000, 4088, 4096},
		{4088, 92, 4096},
	} {
		disk := memfs.New(1)
		l := start(t, disk, config())
		q := &counter{}
		for _, size := range []int{c.first, c.second} {
			if _, err := l.Append(item(t, l, q, size)); err != nil {
				t.Fatal(err)
			}
		}
		if got := q.seen[1].Log; got != c.at || q.seen[1].Offset != 1 {
			t.Errorf("behind %d bytes, %d bytes stand at %d with offset %d, want %d", c.first, c.second, got, q.seen[1].Offset, c.at)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = start(t, disk, config())
		if got := l.End(); got != c.at+mq.LogOffset(c.second) {
			t.Errorf("reopened it ends at %d", got)
		}
		n := 0
		if _, err := l.Walk(0, l.End(), func(v record.View) bool { n++; return true }); err != nil || n != 2 {
			t.Errorf("walked over %d records, %v", n, err)
		}
	}
}

func TestWhatDoesNotFitOrIsRefusedTakesNoPlace(t *testing.T) {
	t.Parallel()
	l := start(t, memfs.New(1), config())
	q, dead := &counter{}, &counter{dead: mq.ErrNoTopic}
	if _, err := l.Append(item(t, l, q, 4089)); !errors.Is(err, mq.ErrIllegalMessage) {
		t.Errorf("a record of 4089 bytes: %v", err)
	}
	if _, err := l.Append(item(t, l, dead, 100)); !errors.Is(err, mq.ErrNoTopic) {
		t.Errorf("a record for a dead queue: %v", err)
	}
	batch := []Item{item(t, l, q, 200), item(t, l, dead, 200)}
	if err := l.AppendBatch(batch, make([]Placed, 2)); !errors.Is(err, mq.ErrNoTopic) {
		t.Errorf("a batch with a record for a dead queue: %v", err)
	}
	if err := l.AppendBatch([]Item{item(t, l, q, 3000), item(t, l, q, 1089)}, make([]Placed, 2)); !errors.Is(err, mq.ErrIllegalMessage) {
		t.Errorf("a batch of 4089 bytes: %v", err)
	}
	if l.End() != 0 || q.next != 0 {
		t.Errorf("the log ends at %d, the queue at %d", l.End(), q.next)
	}
}

func TestABatchStandsInOneFile(t *testing.T) {
	t.Parallel()
	l := start(t, memfs.New(1), config())
	q := &counter{}
	if _, err := l.Append(item(t, l, q, 3000)); err != nil {
		t.Fatal(err)
	}
	places := make([]Placed, 3)
	if err := l.AppendBatch([]Item{item(t, l, q, 500), item(t, l, q, 400), item(t, l, q, 300)}, places); err != nil {
		t.Fatal(err)
	}
	if places[0].Log != 4096 || places[1].Log != 4596 || places[2].Log != 4996 || places[2].Offset != 3 {
		t.Errorf("the batch stands at %+v", places)
	}
}

func TestStoreTimeNeverGoesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := memfs.New(1)
		l := start(t, disk, config())
		<-time.After(time.Hour)
		q := &counter{}
		if _, err := l.Append(item(t, l, q, 100)); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		// A clock set back over a restart.
		l = start(t, disk, config())
		l.mu.lastTime += 5000
		p, err := l.Append(item(t, l, q, 100))
		if err != nil || p.StoreTime != q.seen[0].StoreTime+5000 {
			t.Errorf("stored at %d, the one before at %d, %v", p.StoreTime, q.seen[0].StoreTime, err)
		}
	})
}

func TestOneSyncConfirmsAllWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.SyncFlush = true
		l := start(t, memfs.New(1), cfg)
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		q := &counter{}
		var told []int
		for i := range 5 {
			p, err := l.Append(item(t, l, q, 200))
			if err != nil {
				t.Fatal(err)
			}
			l.WhenDurable(p.End, time.Second, func(err error) {
				if err != nil || l.Durable() < p.End {
					t.Errorf("told durable at %d, which is %d: %v", p.End, l.Durable(), err)
				}
				told = append(told, i)
			})
		}
		synctest.Wait()
		if len(told) != 5 {
			t.Errorf("%d of 5 were told", len(told))
		}
		for i, n := range told {
			if i != n {
				t.Errorf("told in the order %v", told)
				break
			}
		}
		late := false
		l.WhenDurable(l.End(), time.Second, func(err error) { late = err == nil })
		if !late {
			t.Error("what is durable already is not told at once")
		}
		stop()
		if err := errors.Join(<-done, l.Close()); err != nil {
			t.Error(err)
		}
		var after error
		l.WhenDurable(l.End()+1, time.Second, func(err error) { after = err })
		if !errors.Is(after, mq.ErrUnavailable) {
			t.Errorf("told after the log was closed: %v", after)
		}
		if _, err := l.Append(item(t, l, q, 100)); !errors.Is(err, mq.ErrUnavailable) {
			t.Errorf("appended after the log was closed: %v", err)
		}
	})
}

func TestReadKnowsARecordFromAnythingElse(t *testing.T) {
	t.Parallel()
	l := start(t, memfs.New(1), config())
	q := &counter{}
	for range 3 {
		if _, err := l.Append(item(t, l, q, 300)); err != nil {
			t.Fatal(err)
		}
	}
	v, f, err := l.Read(300, 300)
	if err != nil || v.QueueOffset() != 1 {
		t.Fatalf("read %d, %v", v.QueueOffset(), err)
	}
	f.Release()
	for _, c := range []struct {
		at   mq.LogOffset
		size int32
		want error
	}{{900, 0, mq.ErrNotFound}, {-5, 0, mq.ErrNotFound}, {1 << 40, 100, mq.ErrNotFound}, {600, 400, mq.ErrNotFound}} {
		if _, _, err := l.Read(c.at, c.size); !errors.Is(err, c.want) {
			t.Errorf("read %d at %d: %v", c.size, c.at, err)
		}
	}
	for _, c := range []struct {
		at   mq.LogOffset
		size int32
	}{{301, 0}, {300, 299}, {0, 600}} {
		_, _, err := l.Read(c.at, c.size)
		if _, damage := errors.AsType[*mq.CorruptionError](err); !damage {
			t.Errorf("read %d at %d: %v", c.size, c.at, err)
		}
	}
}

// Whatever stands in a file, a scan ends, and what Start leaves of it is a log.
func FuzzScan(f *testing.F) {
	l := start(f, memfs.New(1), config())
	q := &counter{}
	for _, n := range []int{100, 1000, 300} {
		if _, err := l.Append(item(f, l, q, n)); err != nil {
			f.Fatal(err)
		}
	}
	whole := append([]byte(nil), l.Segments().Files()[0].Bytes()...)
	f.Add(whole, int64(0), false)
	f.Add(whole[100:], int64(4096), true)
	broken := append([]byte(nil), whole...)
	broken[150] ^= 1
	f.Add(broken, int64(0), true)
	f.Fuzz(func(t *testing.T, content []byte, skip int64, crc bool) {
		disk := memfs.New(1)
		if err := disk.MkdirAll("/log"); err != nil {
			t.Fatal(err)
		}
		h, err := disk.Create("/log/00000000000000000000")
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Truncate(4096); err != nil {
			t.Fatal(err)
		}
		if _, err := h.WriteAt(content[:min(len(content), 4096)], 0); err != nil {
			t.Fatal(err)
		}
		cfg := config()
		cfg.SkipDamage = skip > 0
		l, err := Open(disk, cfg)
		if err != nil {
			t.Fatal(err)
		}
		s := Scan{SkipTo: mq.LogOffset(skip), PropertyCRC: crc}
		n := int64(0)
		s.Visit = func(v record.View) error { n++; return nil }
		tail, err := l.Scan(s)
		if err != nil || tail.End > 4096 || tail.Records != n {
			t.Fatalf("tail %+v after %d records, %v", tail, n, err)
		}
		if err := l.Start(tail); err != nil {
			t.Fatal(err)
		}
		walked := int64(0)
		if _, err := l.Walk(0, l.End(), func(v record.View) bool { walked++; return true }); err != nil || walked < n || walked > n && skip <= 0 {
			// A walk does not look at checksums, so it may see more of what was passed over.
			t.Fatalf("scanned %d records, walked over %d, %v", n, walked, err)
		}
		if _, err := l.Append(item(t, l, &counter{}, 200)); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
