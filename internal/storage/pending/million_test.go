package pending

import (
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// X05: with a million pending, what falls due is found as with a few: exactly that,
// in order, by looking at nothing else.
func TestX05AMillionPending(t *testing.T) {
	t.Parallel()
	var end mq.LogOffset
	cfg := DefaultConfig()
	cfg.Durable = func() mq.LogOffset { return end }
	cfg.Fence = cfg.Durable
	cfg.Flush = func() error { return nil }
	x, _, err := Open(memfs.New(1), "/x", cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { x.Close() }()
	topic := x.Topic("t")
	const n, stride, step = 1_000_000, 611_953, 100 // due every 100 ms, sent in disorder
	for i := range int64(n) {
		x.Add(Entry{Due: (i * stride % n) * step, Seq: mq.QueueOffset(i), Log: end, Size: 1000, Topic: topic})
		end += 1000
		select {
		case <-x.Full():
			if err := x.Checkpoint("s"); err != nil {
				t.Fatal(err)
			}
		default:
		}
	}
	if st := x.Stats(); st.Pending != n {
		t.Fatalf("%d pending", st.Pending)
	}
	fastest := time.Hour
	for tick := range int64(200) {
		began := time.Now()
		got, herds, err := x.Load((tick+1)*1000, 100, nil)
		fastest = min(fastest, time.Since(began))
		if err != nil || len(herds) > 0 || len(got) != 10 {
			t.Fatalf("second %d: %d due, %d herds, %v", tick, len(got), len(herds), err)
		}
		for i, e := range got {
			if want := tick*1000 + int64(i)*step; e.Due != want {
				t.Fatalf("due at %d, want %d", e.Due, want)
			}
			end += 1000
			x.Done(e.Seq, topic, end)
		}
	}
	if fastest > 20*time.Millisecond {
		t.Errorf("a look for what is due takes %v at best", fastest)
	}
	if st := x.Stats(); st.Pending != n-2000 {
		t.Errorf("%d pending", st.Pending)
	}
}
