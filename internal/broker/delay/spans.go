package delay

import (
	"slices"
)

// span is the offsets lo..hi-1.
type span struct{ lo, hi int64 }

// spans says which messages of a queue are done: all below low, and those in
// done, whose spans are sorted, apart from each other and above low. In the
// ordinary case, everything in order, done is empty.
type spans struct {
	low  int64
	done []span
}

// add marks lo..hi-1 as done and returns how many of them were not.
func (s *spans) add(lo, hi int64) (added int64) {
	lo = max(lo, s.low)
	if lo >= hi {
		return 0
	}
	added = hi - lo
	// i..j-1 are the spans that touch lo..hi.
	i, _ := slices.BinarySearchFunc(s.done, lo, func(d span, lo int64) int {
		if d.hi < lo {
			return -1
		}
		return 1
	})
	j := i
	for j < len(s.done) && s.done[j].lo <= hi {
		added -= max(0, min(hi, s.done[j].hi)-max(lo, s.done[j].lo))
		j++
	}
	merged := span{lo, hi}
	if j > i {
		merged = span{min(lo, s.done[i].lo), max(hi, s.done[j-1].hi)}
	}
	switch {
	case merged.lo <= s.low: // then i is 0
		s.low = merged.hi
		s.done = slices.Delete(s.done, 0, j)
	case j == i:
		s.done = slices.Insert(s.done, i, merged)
	default:
		s.done[i] = merged
		s.done = slices.Delete(s.done, i+1, j)
	}
	if len(s.done) == 0 && cap(s.done) > 64 {
		s.done = nil
	}
	return added
}

// has reports whether n is done.
func (s *spans) has(n int64) bool {
	_, in := s.find(n)
	return n < s.low || in
}

// find returns the index of the span that holds n, or of the next one.
func (s *spans) find(n int64) (int, bool) {
	return slices.BinarySearchFunc(s.done, n, func(d span, n int64) int {
		switch {
		case d.hi <= n:
			return -1
		case d.lo > n:
			return 1
		}
		return 0
	})
}

// next returns the first n at or above from that is not done.
func (s *spans) next(from int64) int64 {
	from = max(from, s.low)
	if i, in := s.find(from); in {
		return s.done[i].hi
	}
	return from
}

// count is how many at or above low are done.
func (s *spans) count() int64 {
	var n int64
	for _, d := range s.done {
		n += d.hi - d.lo
	}
	return n
}

// clip keeps what lies in lo..hi: everything below lo is done, nothing from hi on.
func (s *spans) clip(lo, hi int64) {
	s.add(0, lo)
	s.low = min(s.low, hi)
	for n := len(s.done); n > 0 && s.done[n-1].hi > hi; n-- {
		if s.done[n-1].lo < hi {
			s.done[n-1].hi = hi
			break
		}
		s.done = s.done[:n-1]
	}
}

func (s *spans) clone() spans { return spans{s.low, slices.Clone(s.done)} }
