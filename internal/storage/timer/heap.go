package timer

// lane is a four-way min-heap of items. Four children a node mean half the
// levels of a binary heap and children side by side in memory.
type lane struct {
	id     int32
	at     int  // index in the heap of lanes, -1 when not there
	inTurn bool // in the list of lanes with due items instead
	items  []Item
}

const ways = 4

func (l *lane) push(it Item) {
	l.items = append(l.items, it)
	l.up(len(l.items) - 1)
}

func (l *lane) pop() Item {
	top := l.items[0]
	l.removeAt(0)
	return top
}

func (l *lane) removeAt(i int) {
	n := len(l.items) - 1
	last := l.items[n]
	l.items = l.items[:n]
	if cap(l.items) > 1024 && n < cap(l.items)/4 {
		l.items = append(make([]Item, 0, cap(l.items)/2), l.items...)
	}
	if i == n {
		return
	}
	l.items[i] = last
	if !l.down(i) {
		l.up(i)
	}
}

// remove takes it out of the heap. Subtrees whose root is due later are skipped.
func (l *lane) remove(it Item) bool {
	stack := []int{0}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if i >= len(l.items) || it.before(l.items[i]) {
			continue
		}
		if l.items[i].Due == it.Due && l.items[i].Offset == it.Offset {
			l.removeAt(i)
			return true
		}
		for c := i*ways + 1; c <= i*ways+ways; c++ {
			stack = append(stack, c)
		}
	}
	return false
}

func (l *lane) up(i int) {
	it := l.items[i]
	for i > 0 {
		parent := (i - 1) / ways
		if !it.before(l.items[parent]) {
			break
		}
		l.items[i] = l.items[parent]
		i = parent
	}
	l.items[i] = it
}

// down reports whether the item at i moved.
func (l *lane) down(i int) bool {
	start, it := i, l.items[i]
	for {
		least := i*ways + 1
		if least >= len(l.items) {
			break
		}
		for c := least + 1; c < min(i*ways+ways+1, len(l.items)); c++ {
			if l.items[c].before(l.items[least]) {
				least = c
			}
		}
		if !l.items[least].before(it) {
			break
		}
		l.items[i] = l.items[least]
		i = least
	}
	l.items[i] = it
	return i != start
}

// laneHeap is a binary min-heap of lanes by the due time of their first item.
type laneHeap []*lane

func (h *laneHeap) add(l *lane) {
	l.at = len(*h)
	*h = append(*h, l)
	h.up(l.at)
}

func (h *laneHeap) drop(l *lane) {
	i, n := l.at, len(*h)-1
	h.swap(i, n)
	(*h)[n] = nil
	*h = (*h)[:n]
	l.at = -1
	if i < n {
		h.down(i)
		h.up(i)
	}
}

func (h laneHeap) fix(l *lane) {
	h.up(l.at)
	h.down(l.at)
}

func (h laneHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h laneHeap) less(i, j int) bool { return h[i].items[0].Due < h[j].items[0].Due }

func (h laneHeap) up(i int) {
	for i > 0 && h.less(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h laneHeap) down(i int) {
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
		h.swap(i, c)
		i = c
	}
}
