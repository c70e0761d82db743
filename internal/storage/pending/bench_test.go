package pending

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// BenchmarkThrough adds entries due over a month, writes what memory does not
// hold, takes them all out again and marks them done.
func BenchmarkThrough(b *testing.B) {
	var end mq.LogOffset
	cfg := DefaultConfig()
	cfg.Durable = func() mq.LogOffset { return end }
	cfg.Fence = cfg.Durable
	cfg.Flush = func() error { return nil }
	dir := b.TempDir()
	x, _, err := Open(vfs.OS(), dir, cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { x.Close() }()
	r := rand.New(rand.NewPCG(1, 2))
	topic := x.Topic("t")
	const month = 30 * 24 * 3600 * 1000
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		x.Add(Entry{Due: r.Int64N(month), Seq: mq.QueueOffset(i), Log: end, Size: 1100, Topic: topic})
		end += 1100
		select {
		case <-x.Full():
			if err := x.Checkpoint("bench"); err != nil {
				b.Fatal(err)
			}
		default:
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "in/s")
	b.StopTimer()
	if err := x.Checkpoint("bench"); err != nil {
		b.Fatal(err)
	}
	x.Close()
	began := time.Now()
	if x, _, err = Open(vfs.OS(), dir, cfg); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "open-ms")
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	b.ReportMetric(float64(mem.HeapAlloc)/1e6, "heap-MB")
	b.StartTimer()
	in := b.Elapsed()
	buf := make([]Entry, 0, 1024)
	for until := int64(0); until < month+1000; {
		got, herds, err := x.Load(until, 1024, buf[:0])
		if err != nil || len(herds) > 0 {
			b.Fatal(err, herds)
		}
		for i := range got {
			end += 1100
			x.Done(got[i].Seq, topic, end)
		}
		if len(got) < 1024 {
			until += 1000_000
		}
	}
	b.ReportMetric(float64(b.N)/(b.Elapsed()-in).Seconds(), "out/s")
	if st := x.Stats(); st.Pending != 0 {
		b.Fatalf("%d are left", st.Pending)
	}
}
