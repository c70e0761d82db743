package pending

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// mergeAhead is how far ahead of the horizon entries must be due to be merged, in
// ms, and mergePace how many entries are surely merged in a millisecond: what is
// due sooner stays in its run, so that nothing is taken from what is being merged.
const (
	mergeAhead = 60_000
	mergePace  = 100
)

// part is what is merged of a source: entries from..to-1 of its run.
type part struct {
	src      *source
	run      *run
	from, to int64
}

// Merge makes one run of several, when there are Config.Fan of about one size, and
// reports whether it did. The next checkpoint makes it durable; until then, and
// one more, the old files stay.
func (x *Index) Merge() (bool, error) {
	x.save.Lock()
	defer x.save.Unlock()
	parts, floor, err := x.choose()
	if err != nil || len(parts) == 0 {
		return false, err
	}
	defer func() {
		for _, p := range parts {
			x.release(p.run)
		}
	}()
	name := x.fileName(runSuffix)
	if _, err := writeRun(x.fs, x.dir, name, mergeParts(parts)); err != nil {
		return false, fmt.Errorf("merge runs: %w", err)
	}
	merged, err := openRun(x.fs, x.dir, name)
	if err != nil {
		return false, fmt.Errorf("merge runs: %w", err)
	}
	x.load.Lock()
	defer x.load.Unlock()
	x.retain(merged)
	x.mu.Lock()
	late := (&Entry{Due: floor, Seq: -1}).before(&x.mu.horizon)
	x.mu.Unlock()
	for _, p := range parts {
		late = late || p.src.hi != p.to // a herd was split off it
	}
	if late {
		x.note.Warn("entries were taken from runs while they were merged; the merge is given up", "entries", merged.n)
		x.release(merged)
		return false, nil
	}
	for _, p := range parts {
		p.src.hi = p.from
	}
	x.load.heads = slices.DeleteFunc(x.load.heads, func(s *source) bool {
		if s.lo < s.hi {
			return false
		}
		x.release(s.run)
		return true
	})
	x.load.heads.heapify()
	if err := x.admit(newSource(merged, 0, merged.n)); err != nil {
		return true, err
	}
	return true, nil
}

func (h sourceHeap) heapify() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// choose finds runs to merge: the smallest size of which there are enough.
func (x *Index) choose() (parts []part, floor int64, err error) {
	x.load.Lock()
	defer x.load.Unlock()
	x.mu.Lock()
	horizon := x.mu.horizon.Due
	x.mu.Unlock()
	if horizon == math.MinInt64 {
		return nil, 0, nil // nothing was taken yet
	}
	tiers := map[int][]*source{}
	for _, s := range x.load.heads {
		if n := s.hi - s.lo; n > 0 && !s.herd {
			tiers[x.tier(n)] = append(tiers[x.tier(n)], s)
		}
	}
	lowest := -1
	for t, list := range tiers {
		if len(list) >= x.cfg.Fan && (lowest < 0 || t < lowest) {
			lowest = t
		}
	}
	if lowest < 0 {
		return nil, 0, nil
	}
	var total int64
	for _, s := range tiers[lowest] {
		total += s.hi - s.lo
	}
	floor = horizon + mergeAhead + total/mergePace
	for _, s := range tiers[lowest] {
		from, err := s.run.find(floor, -1)
		if err != nil {
			return nil, 0, err
		}
		if from = max(from, s.lo); from < s.hi {
			parts = append(parts, part{s, s.run, from, s.hi})
		}
	}
	if len(parts) < 2 || len(parts) < x.cfg.Fan/2 {
		return nil, 0, nil // most of it will soon be gone by itself
	}
	for _, p := range parts {
		x.retain(p.run)
	}
	return parts, floor, nil
}

// tier is the size class of a run with n entries.
func (x *Index) tier(n int64) int {
	t := 0
	for size := int64(x.cfg.TableEntries); n > size; size *= int64(x.cfg.Fan) {
		t++
	}
	return t
}

// mergeParts yields the entries of all parts in order.
func mergeParts(parts []part) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var heads sourceHeap
		for _, p := range parts {
			s := newSource(p.run, p.from, p.to)
			if _, err := s.head(); err != nil {
				yield(Entry{}, err)
				return
			}
			heads.push(s)
		}
		for len(heads) > 0 {
			s := heads[0]
			e := *s.buffered()
			s.lo++
			next, err := s.head()
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if next == nil {
				heads.drop()
			} else {
				heads.down(0)
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}
