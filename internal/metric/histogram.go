package metric

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// The buckets of a Histogram are linear within each power of two: with
// v = nanoseconds / 64,
//
//	v < 32            one bucket for each v              (64 ns wide, up to 2 µs)
//	2^k <= v < 2^k+1  16 buckets of equal width, k >= 5  (so at most 1/16 of the value wide)
//
// The last power of two ends at 2^41 ns, 36 minutes; longer ones are counted in
// the last bucket, and exactly in the maximum.
const (
	unitBits    = 6
	subBits     = 4
	maxBits     = 41 - unitBits
	bucketCount = (maxBits-subBits)<<subBits + 1<<subBits
)

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0)) >> unitBits
	shift := max(bits.Len64(v)-subBits-1, 0)
	return min(shift<<subBits+int(v>>shift), bucketCount-1)
}

// bucketUpper is the first duration that is too long for bucket i.
func bucketUpper(i int) time.Duration {
	shift := max(i>>subBits-1, 0)
	return time.Duration(uint64(i-shift<<subBits+1) << shift << unitBits)
}

// Histogram holds how often durations occurred, from 64 ns to 36 minutes, with
// an error of at most a sixteenth of the value (a thirty-second in the middle
// of a bucket). It takes 4 KB. The zero Histogram is ready; it must not be
// copied.
type Histogram struct {
	buckets [bucketCount]atomic.Int64
	sum     atomic.Int64
	max     atomic.Int64
}

// Record counts one duration; a negative one counts as zero. Its cost is two
// atomic additions.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.buckets[bucketOf(d)].Add(1)
	h.sum.Add(int64(d))
	for {
		m := h.max.Load()
		if int64(d) <= m || h.max.CompareAndSwap(m, int64(d)) {
			return
		}
	}
}

// Snapshot is the histogram's content. Durations recorded meanwhile are in it or not.
func (h *Histogram) Snapshot() Snapshot {
	s := Snapshot{Max: time.Duration(h.max.Load()), Sum: time.Duration(h.sum.Load())}
	for i := range h.buckets {
		n := h.buckets[i].Load()
		s.buckets[i] = n
		s.Count += n
	}
	return s
}

// Snapshot is the content of a [Histogram] at one time.
type Snapshot struct {
	Count    int64
	Sum, Max time.Duration
	buckets  [bucketCount]int64
}

// Quantile is the duration that a share q, 0 to 1, of all did not exceed; 0
// when nothing was recorded. It is the middle of a bucket, but never above Max.
func (s *Snapshot) Quantile(q float64) time.Duration {
	if s.Count == 0 {
		return 0
	}
	if q >= 1 {
		return s.Max
	}
	rank := min(int64(max(q, 0)*float64(s.Count)), s.Count-1)
	for i, n := range s.buckets {
		if rank < n {
			return s.middle(i)
		}
		rank -= n
	}
	return s.Max
}

func (s *Snapshot) middle(i int) time.Duration {
	lower := time.Duration(0)
	if i > 0 {
		lower = bucketUpper(i - 1)
	}
	if i == bucketCount-1 {
		return s.Max
	}
	return min(lower+(bucketUpper(i)-lower)/2, s.Max)
}

// Mean is the average; 0 when nothing was recorded.
func (s *Snapshot) Mean() time.Duration {
	if s.Count == 0 {
		return 0
	}
	return s.Sum / time.Duration(s.Count)
}

// Since is what was recorded after the earlier snapshot of the same histogram.
// The maximum of such a span is not known exactly: it is the end of the highest
// bucket in use, or the overall Max where that is lower.
func (s *Snapshot) Since(earlier *Snapshot) Snapshot {
	d := Snapshot{Count: s.Count - earlier.Count, Sum: s.Sum - earlier.Sum}
	for i := range s.buckets {
		d.buckets[i] = s.buckets[i] - earlier.buckets[i]
		if d.buckets[i] > 0 {
			d.Max = min(bucketUpper(i), s.Max)
			if i == bucketCount-1 {
				d.Max = s.Max
			}
		}
	}
	return d
}

// Merge adds o to s, for one picture of several histograms.
func (s *Snapshot) Merge(o *Snapshot) {
	s.Count += o.Count
	s.Sum += o.Sum
	s.Max = max(s.Max, o.Max)
	for i := range s.buckets {
		s.buckets[i] += o.buckets[i]
	}
}

// Below is how many were shorter than d, exact when d is a bucket's end and
// otherwise counting d's whole bucket; exporters use it for cumulative buckets.
func (s *Snapshot) Below(d time.Duration) (n int64) {
	for i := range s.buckets[:bucketOf(d-1)+1] {
		n += s.buckets[i]
	}
	return n
}
