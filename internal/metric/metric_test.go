package metric

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBucketsCoverEveryDurationOnceAndAreNarrow(t *testing.T) {
	t.Parallel()
	for i := range bucketCount {
		upper := bucketUpper(i)
		if got := bucketOf(upper - 1); got != i {
			t.Fatalf("bucket %d ends at %d, but %d is counted in bucket %d", i, upper, upper-1, got)
		}
		if i < bucketCount-1 && bucketOf(upper) != i+1 {
			t.Fatalf("%d is counted in bucket %d, want %d", upper, bucketOf(upper), i+1)
		}
		if i > 0 {
			if width := upper - bucketUpper(i-1); width > 64 && width > bucketUpper(i-1)/16 {
				t.Fatalf("bucket %d is %v wide at %v", i, width, bucketUpper(i-1))
			}
		}
	}
	if end := bucketUpper(bucketCount - 1); end != 1<<41 {
		t.Errorf("the last bucket ends at %v, want 2^41 ns", end)
	}
	if bucketOf(-5) != 0 || bucketOf(math.MaxInt64) != bucketCount-1 {
		t.Error("the extremes have no bucket")
	}
}

func TestQuantilesAgainstSortedValues(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	var all []time.Duration
	var sum time.Duration
	for range 20000 {
		// From a microsecond to minutes, evenly over the magnitudes.
		d := time.Duration(math.Exp(math.Log(1e3) + rng.Float64()*(math.Log(3e11)-math.Log(1e3))))
		h.Record(d)
		all = append(all, d)
		sum += d
	}
	slices.Sort(all)
	s := h.Snapshot()
	if s.Count != 20000 || s.Sum != sum || s.Max != all[len(all)-1] || s.Mean() != sum/20000 {
		t.Errorf("count %d sum %v max %v mean %v", s.Count, s.Sum, s.Max, s.Mean())
	}
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[min(int(q*20000), 19999)]
		got := s.Quantile(q)
		if off := math.Abs(float64(got-want)) / float64(want); off > 1.0/30 {
			t.Errorf("quantile %v is %v, sorted values say %v (%.1f %% off)", q, got, want, 100*off)
		}
	}
}

func TestHistogramEdges(t *testing.T) {
	t.Parallel()
	var h Histogram
	s := h.Snapshot()
	if s.Quantile(0.5) != 0 || s.Mean() != 0 {
		t.Error("an empty histogram has no quantiles")
	}
	h.Record(-time.Second)
	h.Record(2 * time.Hour)
	s = h.Snapshot()
	if s.Count != 2 || s.Quantile(0) != 32 && s.Quantile(0) != 31 || s.Quantile(0.9) != 2*time.Hour || s.Max != 2*time.Hour {
		t.Errorf("quantiles %v %v, max %v", s.Quantile(0), s.Quantile(0.9), s.Max)
	}
}

func TestSinceAndMergeAndBelow(t *testing.T) {
	t.Parallel()
	var h Histogram
	h.Record(time.Minute)
	before := h.Snapshot()
	h.Record(time.Millisecond)
	h.Record(3 * time.Millisecond)
	after := h.Snapshot()
	d := after.Since(&before)
	if d.Count != 2 || d.Sum != 4*time.Millisecond || d.Max < 3*time.Millisecond || d.Max > 3300*time.Microsecond {
		t.Errorf("the span holds %d, sum %v, max %v", d.Count, d.Sum, d.Max)
	}
	if n := d.Below(2 * time.Millisecond); n != 1 {
		t.Errorf("%d below 2 ms, want 1", n)
	}
	d.Merge(&before)
	if d.Count != 3 || d.Max != time.Minute || d.Below(time.Hour) != 3 {
		t.Errorf("merged: %d, max %v", d.Count, d.Max)
	}
}

func TestRecordingIsSafeAndAllocatesNothing(t *testing.T) {
	var h Histogram
	var m Meter
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 1000 {
				h.Record(time.Duration(g*1000+i) * time.Microsecond)
				m.Inc()
			}
		})
	}
	wg.Wait()
	s := h.Snapshot()
	if s.Count != 4000 || s.Max != 3999*time.Microsecond || m.Value() != 4000 {
		t.Errorf("count %d, max %v, meter %d", s.Count, s.Max, m.Value())
	}
	if n := testing.AllocsPerRun(100, func() { h.Record(time.Millisecond); m.Inc() }); n != 0 {
		t.Errorf("recording allocates %v times", n)
	}
}

func TestMeterRatesOverItsWindows(t *testing.T) {
	t.Parallel()
	var m Meter
	if m.Rates() != (Rates{}) {
		t.Error("a meter that was never sampled has no rate")
	}
	now := time.Unix(1000, 0)
	m.Sample(now)
	if m.Rates() != (Rates{}) {
		t.Error("one sample makes no rate")
	}
	step := func(seconds int, perSecond int64) {
		for range seconds {
			now = now.Add(time.Second)
			m.Add(perSecond)
			m.Sample(now)
		}
	}
	step(5, 100) // younger than any window
	if got, want := m.Rates(), (Rates{100, 100, 100}); got != want {
		t.Errorf("after 5 s: %v, want %v", got, want)
	}
	step(700, 10)
	step(30, 70)
	step(10, 200)
	r := m.Rates()
	if r.Sec10 != 200 || math.Abs(r.Min1-(200*10+70*30+10*20)/60.0) > 0.01 {
		t.Errorf("rates %+v", r)
	}
	if want := (2000 + 2100 + 10*560) / 600.0; math.Abs(r.Min10-want) > 0.3 {
		t.Errorf("ten-minute rate %v, want about %v", r.Min10, want)
	}
}

func TestRegistryListsByNameAndRunsItsMeters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry()
		m := r.Meter("b_total", "things", Label{"kind", "y"})
		r.Counter("b_total", "things", Label{"kind", "x"}).Add(3)
		r.Gauge("a", "level").Set(-2)
		r.Histogram("c_seconds", "latency").Record(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		m.Add(30)
		<-time.After(10*time.Second + time.Millisecond)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := m.Rates().Sec10; got != 3 {
			t.Errorf("rate %v, want 3", got)
		}
		var lines []string
		for _, s := range r.Read() {
			line := s.Name
			for _, l := range s.Labels {
				line += " " + l.Name + "=" + l.Value
			}
			lines = append(lines, line)
		}
		if want := []string{"a", "b_total kind=x", "b_total kind=y", "c_seconds"}; !slices.Equal(lines, want) {
			t.Errorf("listed %q, want %q", lines, want)
		}
		rd := r.Read()
		if rd[0].Value != -2 || rd[1].Value != 3 || rd[2].Value != 30 || rd[3].Histogram.Count != 1 || rd[3].Kind != KindHistogram {
			t.Errorf("values %+v", rd)
		}
	})
}

func TestRegisteringTwiceIsABugAndNilRegistersNothing(t *testing.T) {
	t.Parallel()
	var none *Registry
	none.Counter("x", "").Inc()
	none.Meter("x", "").Inc()
	none.Gauge("x", "").Set(1)
	none.Histogram("x", "").Record(1)
	if none.Read() != nil {
		t.Error("a nil registry lists something")
	}
	defer func() {
		if recover() == nil {
			t.Error("the second registration went through")
		}
	}()
	r := NewRegistry()
	r.Counter("x", "")
	r.Gauge("x", "")
}

func BenchmarkHistogramRecord(b *testing.B) {
	var h Histogram
	b.ReportAllocs()
	for b.Loop() {
		h.Record(123 * time.Microsecond)
	}
}

func TestLatencyKnowsItsLastMinute(t *testing.T) {
	t.Parallel()
	var l Latency
	now := time.Unix(1_000_000, 0)
	for sec := range 200 {
		l.Record(time.Duration(sec) * time.Millisecond)
		l.Sample(now.Add(time.Duration(sec) * time.Second))
		s := l.LastMinute()
		if want := int64(sec + 1); sec < 50 && s.Count != want {
			t.Fatalf("second %d: %d, want all %d", sec, s.Count, want)
		}
		if sec >= 60 && (s.Count < 50 || s.Count > 60) {
			t.Fatalf("second %d: %d in the last minute", sec, s.Count)
		}
	}
	if s := l.LastMinute(); s.Quantile(0) < 130*time.Millisecond {
		t.Errorf("the minute has one of %v", s.Quantile(0))
	}
}

func TestTallyCountsCalls(t *testing.T) {
	t.Parallel()
	var none *Tally
	none.Add(1, 1)
	none.Took(1)
	var all Counter
	var a, b Tally
	a.CountIn(&all)
	b.CountIn(&all)
	a.Add(1, 10)
	a.Add(7, 70)
	a.Took(time.Second)
	a.Took(-1)
	b.Add(1, 5)
	if got, want := a.Values(), (TallyValues{Things: 8, Bytes: 80, Calls: 2, Time: time.Second}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if all.Value() != 9 {
		t.Errorf("%d in all", all.Value())
	}
}

func TestMeterFuncReadsWhatIsCountedElsewhere(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	var n int64
	m := r.MeterFunc("x_total", "x", func() int64 { return n })
	now := time.Unix(1_000_000, 0)
	for sec := range 20 {
		n += 5
		m.Sample(now.Add(time.Duration(sec) * time.Second))
	}
	if got := m.Rates(); got.Sec10 != 5 || got.Min1 != 5 {
		t.Errorf("%+v", got)
	}
	if got := r.Read(); len(got) != 1 || got[0].Value != 100 || got[0].Kind != KindCounter {
		t.Errorf("%+v", got)
	}
}
