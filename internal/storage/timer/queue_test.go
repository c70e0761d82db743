package timer

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"pgregory.net/rapid"
)

// wall is a wall clock that can be set.
type wall struct{ shift atomic.Int64 }

func (w *wall) now() time.Time           { return time.Now().Add(time.Duration(w.shift.Load())) }
func (w *wall) set(by time.Duration)     { w.shift.Add(int64(by)) }
func (w *wall) in(d time.Duration) int64 { return w.now().Add(d).UnixMilli() }

type fired struct {
	Item
	at int64 // wall clock
}

// start runs a queue and collects what it hands over.
func start(t *testing.T, w *wall, cfg Config) (q *Queue, got func() []fired) {
	t.Helper()
	q, err := New(PlainWall(w.now), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var out []fired
	stopped := make(chan error, 1)
	go func() {
		stopped <- q.Run(ctx, func(due []Item) {
			mu.Lock()
			defer mu.Unlock()
			for _, it := range due {
				out = append(out, fired{it, w.now().UnixMilli()})
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return q, func() []fired {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(out)
	}
}

func TestItemsComeInTheirMillisecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w wall
		q, got := start(t, &w, DefaultConfig())
		rnd := rand.New(rand.NewPCG(1, 2))
		for i := range 1000 {
			q.Add(Item{Due: w.in(time.Duration(rnd.IntN(5000)) * time.Millisecond), Lane: int32(i % 7), Offset: mq.QueueOffset(i)})
			if i%10 == 0 {
				time.Sleep(time.Duration(rnd.IntN(40_000)) * time.Microsecond)
			}
		}
		time.Sleep(10 * time.Second)
		all := got()
		if len(all) != 1000 || q.Len() != 0 {
			t.Fatalf("%d items came and %d are left, want 1000 and 0", len(all), q.Len())
		}
		for _, f := range all {
			if f.at != f.Due {
				t.Fatalf("item %+v came at %d, %d ms off", f.Item, f.at, f.at-f.Due)
			}
		}
	})
}

func TestEarlierItemWakesTheSleeper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w wall
		q, got := start(t, &w, DefaultConfig())
		synctest.Wait()
		q.Add(Item{Due: w.in(time.Hour), Offset: 1})
		time.Sleep(123 * time.Millisecond)
		q.Add(Item{Due: w.in(50 * time.Millisecond), Offset: 2})
		q.Add(Item{Due: w.in(-time.Minute), Offset: 3})
		if all := got(); len(all) != 1 || all[0].Offset != 3 {
			t.Fatalf("got %+v, want only what was due already", all)
		}
		time.Sleep(50 * time.Millisecond)
		if all := got(); len(all) != 2 || all[1].Offset != 2 || all[1].at != all[1].Due {
			t.Fatalf("got %+v, want item 2 in its millisecond", all)
		}
		if due, ok := q.Next(); !ok || due != w.in(time.Hour-173*time.Millisecond) {
			t.Fatalf("next is %d, %v", due, ok)
		}
	})
}

func TestClockSetBackKeepsItemsWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w wall
		q, got := start(t, &w, DefaultConfig())
		q.Add(Item{Due: w.in(10 * time.Second)})
		time.Sleep(5 * time.Second)
		w.set(-time.Hour)
		time.Sleep(time.Hour + 5*time.Second - time.Millisecond)
		if all := got(); len(all) != 0 {
			t.Fatalf("came before the clock showed its time: %+v", all)
		}
		time.Sleep(time.Millisecond)
		if all := got(); len(all) != 1 || all[0].at != all[0].Due {
			t.Fatalf("got %+v", all)
		}
	})
}

func TestClockSetForwardIsNoticedWithinAStretch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w wall
		q, got := start(t, &w, DefaultConfig())
		q.Add(Item{Due: w.in(time.Hour)})
		time.Sleep(1500 * time.Millisecond)
		w.set(time.Hour)
		time.Sleep(time.Second)
		if all := got(); len(all) != 1 {
			t.Fatalf("got %+v, want the item within a second of the jump", all)
		}
	})
}

func TestNothingRunsWhileNothingIsPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w wall
		counting := &countingWaiter{Waiter: PlainWall(w.now)}
		q, err := New(counting, DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- q.Run(ctx, func([]Item) {}) }()
		time.Sleep(24 * time.Hour)
		if n := counting.waits.Load(); n != 1 {
			t.Errorf("woke up %d times in a day without items", n-1)
		}
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

type countingWaiter struct {
	Waiter
	waits atomic.Int64
}

func (c *countingWaiter) Wait(d time.Duration) { c.waits.Add(1); c.Waiter.Wait(d) }

func TestHerdOfOneLaneDoesNotStarveAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w wall
		q, err := New(PlainWall(w.now), DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		due := w.in(0)
		for i := range 100_000 {
			q.Add(Item{Due: due, Lane: 1, Offset: mq.QueueOffset(i)})
		}
		for i := range 10 {
			q.Add(Item{Due: due + 1, Lane: 2, Offset: mq.QueueOffset(i)})
		}
		time.Sleep(5 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		before, canaries := 0, 0
		_ = q.Run(ctx, func(items []Item) {
			for _, it := range items {
				if it.Lane == 2 {
					canaries++
				} else if canaries < 10 {
					before++
				}
			}
			if canaries == 10 {
				cancel()
			}
		})
		if before > 2*DefaultConfig().Slice {
			t.Errorf("%d items of the herd went before the last of ten others", before)
		}
	})
}

func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var w wall
		q, err := New(PlainWall(w.now), Config{Slice: rapid.IntRange(1, 9).Draw(r, "slice"), Turn: rapid.IntRange(1, 4).Draw(r, "turn"), Stretch: time.Second})
		if err != nil {
			r.Fatal(err)
		}
		var model []Item
		next := mq.QueueOffset(0)
		now := int64(0)
		less := func(a, b Item) int {
			return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Offset, b.Offset))
		}
		r.Repeat(map[string]func(*rapid.T){
			"add": func(r *rapid.T) {
				it := Item{Due: now + rapid.Int64Range(-5, 40).Draw(r, "due"), Lane: rapid.Int32Range(0, 4).Draw(r, "lane"), Offset: next}
				next++
				q.Add(it)
				model = append(model, it)
			},
			"remove": func(r *rapid.T) {
				it := Item{Due: now + rapid.Int64Range(0, 40).Draw(r, "due"), Lane: 1, Offset: next}
				want := false
				if len(model) > 0 && rapid.Bool().Draw(r, "known") {
					i := rapid.IntRange(0, len(model)-1).Draw(r, "which")
					it, want = model[i], true
					model = slices.Delete(model, i, i+1)
				}
				if got := q.Remove(it); got != want {
					r.Fatalf("Remove(%+v) = %v, want %v", it, got, want)
				}
			},
			"advance": func(r *rapid.T) {
				now += rapid.Int64Range(0, 20).Draw(r, "by")
			},
			"take": func(r *rapid.T) {
				got, _ := q.take(make([]Item, 0, q.cfg.Slice), now)
				var due []Item
				for _, it := range model {
					if it.Due <= now {
						due = append(due, it)
					}
				}
				if want := min(len(due), q.cfg.Slice); len(got) != want {
					r.Fatalf("took %d items, want %d", len(got), want)
				}
				last := map[int32]Item{}
				for _, it := range got {
					if it.Due > now {
						r.Fatalf("%+v taken at %d", it, now)
					}
					if prev, ok := last[it.Lane]; ok && less(prev, it) >= 0 {
						r.Fatalf("lane %d: %+v after %+v", it.Lane, it, prev)
					}
					last[it.Lane] = it
					i := slices.Index(model, it)
					if i < 0 {
						r.Fatalf("%+v was not there", it)
					}
					model = slices.Delete(model, i, i+1)
				}
			},
			"": func(r *rapid.T) {
				if q.Len() != len(model) {
					r.Fatalf("Len is %d, want %d", q.Len(), len(model))
				}
				due, ok := q.Next()
				if ok != (len(model) > 0) || ok && due != slices.MinFunc(model, less).Due {
					r.Fatalf("Next is %d, %v with %+v", due, ok, model)
				}
			},
		})
	})
}

func TestConfigComplaints(t *testing.T) {
	t.Parallel()
	if _, err := New(Plain(), Config{}); err == nil {
		t.Error("a config of zeros is accepted")
	}
}

func TestPreciseWaiter(t *testing.T) {
	t.Parallel()
	q, err := New(Precise(), DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error)
	got := make(chan fired, 100)
	go func() {
		stopped <- q.Run(ctx, func(due []Item) {
			at := time.Now().UnixMilli()
			for _, it := range due {
				got <- fired{it, at}
			}
		})
	}()
	now := time.Now().UnixMilli()
	for i := range int64(20) {
		q.Add(Item{Due: now + 300 - i*10, Offset: mq.QueueOffset(i)}) // each earlier than the one before
	}
	for range 20 {
		if f := <-got; f.at < f.Due {
			t.Errorf("%+v came %d ms early", f.Item, f.Due-f.at)
		}
	}
	q.Add(Item{Due: now + 3_600_000})
	cancel() // while it sleeps in the kernel
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	// Waking a waiter that is done touches nothing.
	q.Add(Item{Due: now})
}

func BenchmarkAddAndDrain(b *testing.B) {
	for _, n := range []int{8192, 1_000_000} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(1, 2))
			items := make([]Item, n)
			for i := range items {
				items[i] = Item{Due: rnd.Int64N(1_000_000), Lane: int32(i % 18), Offset: mq.QueueOffset(i)}
			}
			q, err := New(Plain(), DefaultConfig())
			if err != nil {
				b.Fatal(err)
			}
			buf := make([]Item, 0, 128)
			for b.Loop() {
				for _, it := range items {
					q.Add(it)
				}
				for q.Len() > 0 {
					q.take(buf, 1_000_000)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/item")
		})
	}
}

// BenchmarkLateness reports how many microseconds after its millisecond an item is handed over.
func BenchmarkLateness(b *testing.B) {
	for name, w := range map[string]Waiter{"plain": Plain(), "precise": Precise()} {
		b.Run("waiter="+name, func(b *testing.B) {
			q, err := New(w, DefaultConfig())
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			got := make(chan time.Duration, 1)
			stopped := make(chan error)
			go func() {
				stopped <- q.Run(ctx, func(due []Item) {
					now := time.Now()
					for _, it := range due {
						got <- now.Sub(time.UnixMilli(it.Due))
					}
				})
			}()
			var late []time.Duration
			for b.Loop() {
				q.Add(Item{Due: time.Now().UnixMilli() + 3})
				late = append(late, <-got)
			}
			cancel()
			if err := <-stopped; err != nil {
				b.Fatal(err)
			}
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(late[len(late)-1].Microseconds()), "max-µs")
		})
	}
}
