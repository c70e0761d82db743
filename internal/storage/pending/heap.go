package pending

// entryHeap is a binary heap of entries, the first due on top.
type entryHeap []Entry

func (h *entryHeap) push(e Entry) {
	a := append(*h, e)
	i := len(a) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(&a[up]) {
			break
		}
		a[i] = a[up]
		i = up
	}
	a[i] = e
	*h = a
}

func (h *entryHeap) pop() Entry {
	a := *h
	top := a[0]
	last := len(a) - 1
	e := a[last]
	a = a[:last]
	if last > 0 {
		i := 0
		for {
			down := 2*i + 1
			if down >= last {
				break
			}
			if down+1 < last && a[down+1].before(&a[down]) {
				down++
			}
			if !a[down].before(&e) {
				break
			}
			a[i] = a[down]
			i = down
		}
		a[i] = e
	}
	*h = a
	return top
}

// sourceHeap has the source with the earliest head on top. All of its sources
// have their head in memory.
type sourceHeap []*source

func (h sourceHeap) less(i, j int) bool { return h[i].buffered().before(h[j].buffered()) }

func (h sourceHeap) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h.less(c+1, c) {
			c++
		}
		if !h.less(c, i) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

func (h *sourceHeap) push(s *source) {
	*h = append(*h, s)
	a := *h
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.less(i, up) {
			return
		}
		a[i], a[up] = a[up], a[i]
		i = up
	}
}

// drop takes the top off.
func (h *sourceHeap) drop() {
	a := *h
	last := len(a) - 1
	a[0] = a[last]
	a[last] = nil
	*h = a[:last]
	if last > 0 {
		(*h).down(0)
	}
}
