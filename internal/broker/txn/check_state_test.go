package txn

import (
	"fmt"
)

// check looks at everything that must hold together, for tests.
func (f *Flow) check() error {
	f.gate.Lock()
	defer f.gate.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &f.mu.halves
	open := 0
	for i := range t.list {
		h := &t.list[i]
		if i > 0 && (t.list[i-1].off >= h.off || t.list[i-1].pos >= h.pos) {
			return fmt.Errorf("half %d at %d stands behind %d at %d", h.off, h.pos, t.list[i-1].off, t.list[i-1].pos)
		}
		if h.is(closed) {
			continue
		}
		open++
		if i < t.head {
			return fmt.Errorf("open half %d stands before the head", h.off)
		}
		if !h.is(timed) && !h.is(waiting) {
			return fmt.Errorf("open half %d waits for nothing", h.off)
		}
		if h.is(asked) != (f.mu.asked[h.off] != nil) {
			return fmt.Errorf("half %d: asked %v", h.off, h.is(asked))
		}
	}
	if open != t.open {
		return fmt.Errorf("%d are open, counted are %d", open, t.open)
	}
	sum := int64(0)
	for _, n := range t.topics.counts() {
		sum += n
	}
	if sum != int64(open) {
		return fmt.Errorf("%d are open, topics count %d", open, sum)
	}
	for off, p := range f.mu.asked {
		if _, ok := p.asked[off]; !ok {
			return fmt.Errorf("half %d: its producer does not know that it was asked", off)
		}
	}
	return nil
}
