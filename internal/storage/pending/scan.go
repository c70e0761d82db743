package pending

import (
	"errors"
	"iter"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// Scan yields the pending entries that are due in [from, to), in order, as they
// were at one moment. It reads runs beside everything else. An error ends it.
func (x *Index) Scan(from, to int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		parts, memory, gone, err := x.view(from, to)
		defer func() {
			for _, p := range parts {
				x.release(p.run)
			}
		}()
		if err != nil {
			yield(Entry{}, err)
			return
		}
		next, stop := iter.Pull2(mergeParts(parts))
		defer stop()
		e, err, ok := next()
		for ok || len(memory) > 0 {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			var out Entry
			if len(memory) > 0 && (!ok || memory[0].before(&e)) {
				out, memory = memory[0], memory[1:]
			} else {
				out = e
				e, err, ok = next()
				if gone.Contains(uint64(out.Seq)) {
					continue
				}
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}

// view is what is pending of a window of due times: parts of runs, which the caller
// releases, entries in memory, and which of the runs' are gone.
func (x *Index) view(from, to int64) (parts []part, memory []Entry, gone *roaring64.Bitmap, err error) {
	x.load.Lock()
	defer x.load.Unlock()
	for _, s := range x.sourcesLocked() {
		lo, err1 := s.run.find(from, -1)
		hi, err2 := s.run.find(to, -1)
		if err := errors.Join(err1, err2); err != nil {
			return parts, nil, nil, err
		}
		if lo, hi = max(lo, s.lo), min(hi, s.hi); lo < hi {
			x.retain(s.run)
			parts = append(parts, part{s, s.run, lo, hi})
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	m := &x.mu
	take := func(e *Entry) {
		if e.Due >= from && e.Due < to && !m.gone.Contains(uint64(e.Seq)) {
			memory = append(memory, *e)
		}
	}
	for _, t := range m.out {
		if t.by == 0 {
			take(&t.Entry)
		}
	}
	for i := range m.table {
		take(&m.table[i])
	}
	for i := range m.frozen {
		take(&m.frozen[i])
	}
	slices.SortFunc(memory, compare)
	return parts, memory, m.gone.Clone(), nil
}

// Counts tells how many entries are pending in [at[i], at[i+1]) for each i. at is
// sorted. Without cancelled entries it reads one block per run and bound; with
// them it goes over all entries of the window.
func (x *Index) Counts(at []int64) ([]int64, error) {
	if len(at) < 2 {
		return nil, nil
	}
	counts := make([]int64, len(at)-1)
	parts, memory, gone, err := x.view(at[0], at[len(at)-1])
	defer func() {
		for _, p := range parts {
			x.release(p.run)
		}
	}()
	if err != nil {
		return nil, err
	}
	book := func(due, n int64) {
		i, exact := slices.BinarySearch(at, due)
		if !exact {
			i--
		}
		for i+1 < len(counts) && at[i+1] == due { // empty intervals
			i++
		}
		counts[i] += n
	}
	for i := range memory {
		book(memory[i].Due, 1)
	}
	if !gone.IsEmpty() {
		for e, err := range mergeParts(parts) {
			if err != nil {
				return nil, err
			}
			if !gone.Contains(uint64(e.Seq)) {
				book(e.Due, 1)
			}
		}
		return counts, nil
	}
	for _, p := range parts {
		below := p.from
		for i := range counts {
			upTo, err := p.run.find(at[i+1], -1)
			if err != nil {
				return nil, err
			}
			upTo = min(max(upTo, below), p.to)
			counts[i] += upTo - below
			below = upTo
		}
	}
	return counts, nil
}
