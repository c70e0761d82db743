package delay

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// live is a store and a flow on the machine's own disk and clock.
type live struct {
	store *storage.Store
	flow  *Flow
	close func()
}

func openLive(b testing.TB, dir string, arrived func(mq.QueueKey)) *live {
	b.Helper()
	cfg := DefaultConfig()
	prior, err := ReadPrior(vfs.OS(), dir+"/config", dir+"/sundial", nil)
	if err != nil {
		b.Fatal(err)
	}
	sc := storage.DefaultConfig(dir)
	sc.LogFileSize, sc.Index, sc.Reserve = 256<<20, false, 0
	sc.TagsCode, sc.RecoverFrom, sc.Recovered = cfg.Levels.TagsCode, prior.From(), prior.See
	var flow atomic.Pointer[Flow]
	sc.OnArrival = func(key mq.QueueKey, off mq.QueueOffset, tags int64) {
		if f := flow.Load(); f != nil {
			f.Arrived(key, off, tags)
		}
		if arrived != nil {
			arrived(key)
		}
	}
	store, err := storage.Open(vfs.OS(), sc)
	if err != nil {
		b.Fatal(err)
	}
	f, err := Open(store, prior, cfg)
	if err != nil {
		b.Fatal(err)
	}
	flow.Store(f)
	ctx, stop := context.WithCancel(b.Context())
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 2)
	go func() { ended <- store.Run(storeCtx) }()
	go func() {
		ended <- f.Run(ctx)
		stopStore()
	}()
	return &live{store, f, func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				b.Error(err)
			}
		}
	}}
}

func (l *live) send(b testing.TB, m *record.Message, props []byte, topic string, level int) {
	m.Topic, m.QueueID = topic, 0
	m.Properties = record.AppendProperty(props[:0], mq.PropDelay, fmt.Sprint(level))
	if err := l.flow.cfg.Levels.Retarget(m); err != nil {
		b.Fatal(err)
	}
	if _, err := l.store.Append(m); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDeliver drains a backlog of one level: all overdue at the start.
func BenchmarkDeliver(b *testing.B) {
	for _, size := range []int{100, 1024} {
		b.Run(fmt.Sprintf("body=%d", size), func(b *testing.B) {
			dir := b.TempDir()
			l := openLive(b, dir, nil)
			m := &record.Message{BornHost: host, StoreHost: host, Body: make([]byte, size)}
			props := make([]byte, 0, 512)
			const n = 200_000
			for range n {
				l.send(b, m, props, "T", 1)
			}
			l.close()
			done := make(chan struct{})
			var count atomic.Int64
			b.ResetTimer()
			start := time.Now()
			l = openLive(b, dir, func(key mq.QueueKey) {
				if key.Topic == "T" && count.Add(1) == n {
					close(done)
				}
			})
			already := n - l.flow.Stats().Pending
			if count.Add(already) >= n && already > 0 {
				b.Skip("the machine was slow: all was delivered before the measurement")
			}
			<-done
			took := time.Since(start)
			b.StopTimer()
			b.ReportMetric(float64(n-already)/took.Seconds(), "delivered/s")
			b.ReportMetric(0, "ns/op")
			l.close()
		})
	}
}

// BenchmarkLateness sends level 1 messages at a steady rate and reports how late
// they are stored in their topic, in microseconds after the due millisecond began.
func BenchmarkLateness(b *testing.B) {
	for _, rate := range []int{100, 5000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			var late []time.Duration
			var l *live
			got := make(chan struct{}, 1<<20)
			l = openLive(b, b.TempDir(), func(key mq.QueueKey) {
				if key.Topic != "T" {
					return
				}
				now := time.Now()
				e, ok := l.store.Entry(key, mq.QueueOffset(len(late)))
				if !ok {
					return
				}
				v, release, err := l.store.Record(e.Pos)
				if err != nil {
					return
				}
				late = append(late, now.Sub(time.UnixMilli(v.BornTime()+1000)))
				release()
				got <- struct{}{}
			})
			m := &record.Message{BornHost: host, StoreHost: host, Body: make([]byte, 1024)}
			props := make([]byte, 0, 512)
			n := 3 * rate
			tick := time.NewTicker(time.Second / time.Duration(rate))
			for range n {
				<-tick.C
				m.BornTime = time.Now().UnixMilli()
				l.send(b, m, props, "T", 1)
			}
			tick.Stop()
			for range n {
				<-got
			}
			l.close()
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(late[len(late)-1].Microseconds()), "max-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkArrived is what a delayed message costs its sender beyond the append.
func BenchmarkArrived(b *testing.B) {
	l := openLive(b, b.TempDir(), nil)
	defer l.close()
	due := time.Now().Add(time.Hour).UnixMilli()
	key := mq.QueueKey{Topic: mq.TopicSchedule, ID: 17}
	b.ReportAllocs()
	n := mq.QueueOffset(0)
	for b.Loop() {
		l.flow.Arrived(key, n, due+int64(n/100))
		n++
	}
}

// BenchmarkTimedHerd sends timed messages that are all due in one millisecond and
// measures from there until the last is stored in its topic, and what it costs.
func BenchmarkTimedHerd(b *testing.B) {
	const n = 300_000
	done := make(chan time.Time, 1)
	var count atomic.Int64
	l := openLive(b, b.TempDir(), func(key mq.QueueKey) {
		if key.Topic == "T" && count.Add(1) == n {
			done <- time.Now()
		}
	})
	m := &record.Message{BornHost: host, StoreHost: host, Body: make([]byte, 1024)}
	rules := Rules{Levels: l.flow.cfg.Levels, Timers: DefaultTimers(), Now: time.Now}
	due := time.Now().Add(6 * time.Second).UnixMilli()
	start := time.Now()
	for range n {
		m.Topic, m.QueueID = "T", 0
		m.Properties = record.AppendProperty(nil, mq.PropTimerDeliverMs, fmt.Sprint(due))
		if err := rules.Retarget(m); err != nil {
			b.Fatal(err)
		}
		if _, err := l.store.Append(m); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(n/time.Since(start).Seconds(), "accepted/s")
	if late := time.Since(time.UnixMilli(due)); late > 0 {
		b.Fatalf("the machine was slow: due %v before all was sent", late)
	}
	b.ResetTimer()
	took := (<-done).Sub(time.UnixMilli(due))
	b.ReportMetric(n/took.Seconds(), "delivered/s")
	b.ReportMetric(0, "ns/op")
	l.close()
}
