package storage

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/vfs"
)

var testHost = netip.MustParseAddrPort("127.0.0.1:10911")

// smallConfig has files that a test fills soon.
func smallConfig(dir string) Config {
	c := DefaultConfig(dir)
	c.LogFileSize = 64 << 10
	c.QueueFileSize = 1000
	c.IndexSlots, c.IndexEntries = 100, 400
	c.Prefault = 0
	c.Reserve = 0
	return c
}

func message(topic string, queue int, body string) *record.Message {
	return &record.Message{
		Topic: topic, QueueID: mq.QueueID(queue), BornHost: testHost, StoreHost: testHost, BornTime: 1,
		Body: []byte(body), Properties: record.AppendProperty(nil, mq.PropTags, "TagA"),
	}
}

// bodies reads a whole queue.
func bodies(t testing.TB, s *Store, key mq.QueueKey) []string {
	t.Helper()
	var out []string
	for off := s.MinOffset(key); ; {
		f := s.Fetch(FetchRequest{Queue: key, From: off})
		if f.Status != Found {
			if f.Status != OverflowOne && f.Status != NoMessage && f.Status != NoQueue {
				t.Fatalf("queue %v at %d: %v, next %d", key, off, f.Status, f.Next)
			}
			return out
		}
		n := off
		for _, c := range f.Chunks {
			for len(c) > 0 {
				v, _, err := record.Next(c)
				if err != nil {
					t.Fatal(err)
				}
				if v.QueueOffset() != n {
					t.Fatalf("queue %v: offset %d where %d should be", key, v.QueueOffset(), n)
				}
				n++
				out = append(out, string(v.Body()))
				c = c[len(v):]
			}
		}
		off = f.Next
		f.Release()
	}
}

func TestWhatIsAppendedIsReadAlsoAfterReopening(t *testing.T) {
	t.Parallel()
	for _, sync := range []bool{false, true} {
		dir := t.TempDir()
		var want [3][]string
		for round := range 3 {
			cfg := smallConfig(dir)
			cfg.SyncFlush = sync
			s, err := Open(vfs.OS(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			for i := range 300 {
				body := fmt.Sprintf("%d-%d-%0*d", round, i, i, 0)
				a, err := s.Append(message("T", i%3, body))
				if err != nil {
					t.Fatal(err)
				}
				if int(a.Queue) != len(want[i%3]) {
					t.Fatalf("got offset %d, want %d", a.Queue, len(want[i%3]))
				}
				want[i%3] = append(want[i%3], body)
			}
			durable := make(chan error, 1)
			s.WhenDurable(s.MaxLog(), time.Minute, func(err error) { durable <- err })
			if err := <-durable; err != nil {
				t.Fatal(err)
			}
			for q := range want {
				if got := bodies(t, s, mq.QueueKey{Topic: "T", ID: mq.QueueID(q)}); fmt.Sprint(got) != fmt.Sprint(want[q]) {
					t.Fatalf("queue %d: got %d messages, want %d", q, len(got), len(want[q]))
				}
			}
			stop()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestBatchesStandTogether(t *testing.T) {
	t.Parallel()
	var arrived []mq.QueueOffset
	var mu sync.Mutex
	cfg := smallConfig(t.TempDir())
	cfg.OnArrival = func(key mq.QueueKey, off mq.QueueOffset, tags int64) {
		mu.Lock()
		defer mu.Unlock()
		if tags != mq.TagsCode("TagA") {
			t.Errorf("tags code %d", tags)
		}
		arrived = append(arrived, off)
	}
	s, err := Open(vfs.OS(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var batch []*record.Message
	for i := range 20 {
		batch = append(batch, message("T", 0, fmt.Sprint(i)))
	}
	for range 100 {
		places, err := s.AppendBatch(batch)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range places {
			if i > 0 && (p.Queue != places[i-1].Queue+1 || p.Log != places[i-1].End || p.StoreTime != places[0].StoreTime) {
				t.Fatalf("message %d of a batch at %+v, the one before at %+v", i, p, places[i-1])
			}
		}
	}
	if st := s.Stats(); st.Messages != 2000 || st.MaxLog != s.MaxLog() || st.Refusing != nil || st.DiskUsed < 0 {
		t.Errorf("stats: %+v", st)
	}
	if len(arrived) != 2000 || len(bodies(t, s, mq.QueueKey{Topic: "T"})) != 2000 {
		t.Fatalf("%d arrived", len(arrived))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// running runs a store; stop ends it clean.
func running(t testing.TB, s *Store) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}
